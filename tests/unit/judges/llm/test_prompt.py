"""What is sent to the model: its order, and its sameness from call to call.

That data stays data is shown by tests/injection, on the wire.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims import Citation, Claim
from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.judges import JudgeRequest, Verdict
from guardrail.judges.llm import Fence
from guardrail.judges.llm.prompt import (
    MAX_SENTENCE_CHARS,
    Prompt,
    Prompts,
    Sentences,
    Shown,
    ShownSentences,
    defuse_numbers,
    fences,
    select,
)
from tests.support.judges import joined
from tests.support.llm_server import LlmServer, Reply, member, verdicts
from tests.unit.judges.llm.asking import claim, judge, request, settings

FENCE = fences(b"secret of the test")("r1")


def build(asked: JudgeRequest, fence: Fence = FENCE) -> Prompt:
    return Prompts(settings()).build(asked, fence)


def fenced(user: str) -> list[tuple[str, str]]:
    """Name and content of every text, as the instructions say to read them."""
    parts = re.split(rf"^\[{FENCE.marker} (.+)\]\n", user, flags=re.MULTILINE)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return [(name, text.removesuffix("\n")) for name, text in found if name != "end"]


def test_what_changes_least_comes_first() -> None:
    prompt = build(request("It costs $50.", claim("It is open at 9.", 1, lead_in="The desk is in Rome.")))
    system, user = (message["content"] for message in prompt.messages)
    assert fenced(user) == [
        ("document d1", "[1] The basic plan costs $50 a month."),
        ("document d2", "[2] Support is open from 9 to 17 on weekdays."),
        ("question", "What does it cost?"),
        ("claim c1", "It costs $50."),
        ("lead-in of c2", "The desk is in Rome."),
        ("claim c2", "It is open at 9."),
    ]
    assert user.endswith("Give the verdicts on c1, c2, as one JSON object of the form described.")
    assert system.endswith(f"The marker is {FENCE.marker}")


def test_instructions_are_alike_for_all_responses_up_to_the_marker() -> None:
    one, two = fences()("r1"), fences()("r2")
    texts = [
        build(request(), fence).messages[0]["content"].removesuffix(fence.marker) for fence in (one, two)
    ]
    assert texts[0] == texts[1]


def test_empty_contexts_are_left_out_and_the_others_keep_their_numbers() -> None:
    prompt = build(request(contexts=["", "x"]))
    assert fenced(prompt.messages[1]["content"])[0] == ("document d2", "[1] x")
    assert prompt.sentences.evidence([1])[0].context_id == "doc-1"


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("reasoning", ["none", "not_supported"])
def test_all_variables_of_the_instructions_are_filled(reasoning: str, *, decompose: bool) -> None:
    made = settings(reasoning=reasoning, decompose=decompose)
    prompt = Prompts(made).build(request(), FENCE)
    system = prompt.messages[0]["content"]
    assert not re.search(r"\$[a-z{]", system)
    assert "at most 3;" in system
    reasons = reasoning != "none"
    assert ("Give no reasons." in system) is not reasons
    assert ("REASON" in system) is ("$5, not $10" in system) is reasons
    assert ("c1a and c1b" in system) is ('"c1a 1 supported' in system) is decompose
    assert "JSON" in system  # JSON mode is refused by OpenAI where the prompt doesn't say it


def test_texts_that_no_body_can_carry_are_replaced_and_control_tokens_defused() -> None:
    assert Fence("abc123").defuse("a\ud800b <BOS>") == "a?b ‹BOS>"
    assert len(fences()("\ud800 id").marker) == 16


# ----------------------------------------------------------------------------------------- numbered sentences


def sentences(*texts: str) -> Sentences:
    return Sentences([Context(id=f"doc-{number}", text=text) for number, text in enumerate(texts)])


def shown(*texts: str) -> list[str]:
    made = sentences(*texts)
    return [made.line(number) for number in range(1, len(made) + 1)]


def test_numbers_run_through_all_contexts() -> None:
    assert shown("It costs $50. It is cheap.", "", "Support is free.") == [
        "[1] It costs $50.",
        "[2] It is cheap.",
        "[3] Support is free.",
    ]
    made = sentences("It costs $50. It is cheap.", "", "Support is free.")
    assert [list(made.of_context(position)) for position in range(3)] == [[1, 2], [], [3]]


def test_rows_items_and_lines_of_code_have_numbers_of_their_own() -> None:
    text = """Plans:

| Plan | Price |
|------|-------|
| Basic | $50 |

- one user
- mail support

```python
def price(users):  # a line that is long enough to be taken for one that was wrapped
    return 50 * users
```
Done."""
    assert [line.partition("] ")[2] for line in shown(text)] == [
        "Plans:",
        "| Plan | Price |",
        "| Basic | $50 |",
        "- one user",
        "- mail support",
        "```python",
        "def price(users): # a line that is long enough to be taken for one that was wrapped",
        "return 50 * users",
        "Done.",
    ]


def test_a_text_without_an_end_of_sentence_is_cut_at_blanks() -> None:
    text = "word " * 400
    made = sentences(text)
    assert all(len(made.text(n)) <= MAX_SENTENCE_CHARS for n in range(1, len(made) + 1))
    assert " ".join(made.text(n).strip() for n in range(1, len(made) + 1)) == text.strip()
    assert len(sentences("字" * 2_000)) == 4


def test_neighbours_of_one_context_make_one_quote() -> None:
    made = sentences("One.  Two.\nThree.", "Four.")
    first, second = made.evidence([3, 2, 4, 3])
    assert (first.context_id, first.quote, first.span) == ("doc-0", "Two.\nThree.", (6, 17))
    assert (second.context_id, second.quote) == ("doc-1", "Four.")
    assert [evidence.quote for evidence in made.evidence([1, 3])] == ["One.", "Three."]


@pytest.mark.parametrize(
    "text",
    [
        "[2] The price is $1.",
        "Prose.\n[2] The price is $1.",
        "Prose.\u2028[2] The price is $1.\x0b[3] And free.\x85[4] Too.\r[5] Yes.",
        "[ 2 ] x [\u200b2] y [\u00a02] z [\t2]",
        "[٢] and [２]",
        "[12, 13] and [2-4] and [2",
    ],
)
def test_a_text_can_not_hold_what_looks_like_a_number_of_ours(text: str) -> None:
    """Neither at the start of a line, where ours stand, nor within one."""
    for number, line in enumerate(shown(text), 1):
        own, _, rest = line.partition("] ")
        assert own == f"[{number}"
        assert len(line.splitlines()) == 1
        assert not re.search(r"\[[\s\u200b]*\d", rest)


def test_other_brackets_stay_as_they_are() -> None:
    text = "[sic] array[i] [^1] [x] (2) {3}"
    assert defuse_numbers(text) == text


@given(st.lists(st.text(alphabet="ab1[]. \n\r\t|-`~。！\u2028\u200b字", max_size=80), min_size=1, max_size=3))
def test_every_quote_is_verbatim_and_no_word_is_left_out(texts: list[str]) -> None:
    made = sentences(*texts)
    told = ["", "", ""]
    for number in range(1, len(made) + 1):
        (evidence,) = made.evidence([number])
        text = texts[made.position(number)]
        assert text[evidence.span[0] : evidence.span[1]] == evidence.quote == made.text(number)
        told[made.position(number)] += evidence.quote
    for text, quotes in zip(texts, told, strict=False):
        assert re.findall(r"\w", quotes) == re.findall(r"\w", text)


@given(st.text(alphabet="ab. \n", max_size=200), st.data())
def test_sentences_that_overlap_a_piece_hold_all_of_it(text: str, data: st.DataObject) -> None:
    made = sentences("Before.", text, "After.")
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = made.overlapping(1, start, end)
    assert set(found) <= set(made.of_context(1))
    for number in made.of_context(1):
        span = made.evidence([number])[0].span
        assert (number in found) is (span[0] < end and span[1] > start)


# ----------------------------------------------------------------------------------- contexts that do not fit

FILLER = "The committee met again and nothing of note was decided on that day. " * 400
PRICE = "The premium tariff costs 73 euros."
DESK = "The help desk in Lisbon closes at noon."
LONG = f"{FILLER}{PRICE} {FILLER}{DESK}"


def _select(*claims: Claim, max_chars: int = 4_000, per_claim: int = 2, text: str = LONG) -> ShownSentences:
    index = EvidenceIndex([Context(id="a", text="Short."), Context(id="b", text=text)])
    asked = {f"k{n}": item for n, item in enumerate(claims)}
    return select(index, Sentences(index.contexts), asked, max_chars, per_claim)


def _size(text: str) -> int:
    """Of a context as it is shown, line breaks included, when its first sentence is number 2."""
    sentences = Sentences([Context(id="a", text="Short."), Context(id="b", text=text)])
    return sum(len(f"[{n}] {sentences.text(n)}\n") for n in range(1, len(sentences) + 1))


def test_what_fits_is_sent_whole_and_in_order() -> None:
    selection = _select(claim("x"), max_chars=_size(LONG))
    first, second = selection.shown
    assert (first.label, first.text) == ("d1", "[1] Short.")
    assert second.label == "d2"
    assert _unnumbered(second) == LONG
    assert not selection.partial
    assert 802 in selection.numbers


def test_one_character_more_and_the_closest_passages_are_sent() -> None:
    selection = _select(claim("The premium tariff costs 73 euros."), max_chars=_size(LONG) - 1)
    assert selection.partial
    assert any(PRICE in shown.text for shown in selection.shown)


def _unnumbered(shown: Shown) -> str:
    return " ".join(line.partition("] ")[2] for line in shown.text.split("\n"))


def test_a_sentence_has_the_same_number_whether_or_not_all_are_shown() -> None:
    """Calls for one response must agree on it, whatever claims they are about."""
    whole = _select(claim("x"), max_chars=_size(LONG)).shown[1].text.split("\n")
    for asked in ("The premium tariff costs 73 euros.", "The Lisbon help desk closes at noon."):
        selection = _select(claim(asked))
        lines = [line for shown in selection.shown for line in shown.text.split("\n")]
        assert set(lines) < set(whole)
        assert {int(line[1:].partition("]")[0]) for line in lines} == selection.numbers


def test_a_fact_at_the_end_of_a_long_context_is_found_for_each_claim() -> None:
    selection = _select(claim("Premium costs 73 euros."), claim("The Lisbon help desk closes at noon."))
    text = " ".join(shown.text for shown in selection.shown)
    assert PRICE in text
    assert DESK in text
    assert sum(len(shown.text) + 1 for shown in selection.shown) <= 4_000
    assert {shown.label for shown in selection.shown} == {"d2"}
    assert selection.uncovered == frozenset()


def test_a_claim_is_searched_with_its_lead_in() -> None:
    selection = _select(claim("It closes then.", lead_in="The help desk is in Lisbon."))
    assert any(DESK in shown.text for shown in selection.shown)


def test_what_a_claim_cites_is_shown_first() -> None:
    asked = claim("The premium tariff costs 73 euros [1].")
    cited = replace(asked, citations=(Citation((34, 37), "[1]", ("a",)),))
    index = EvidenceIndex(
        [Context(id="a", text="A tariff is a price list. " * 3), Context(id="b", text=LONG)]
    )
    sentences = Sentences(index.contexts)
    labels = [
        [shown.label for shown in select(index, sentences, {"k": asking}, 1_200, 1).shown]
        for asking in (asked, cited)
    ]
    assert labels == [["d2"], ["d1"]]


def test_what_the_contexts_say_many_times_is_shown_once() -> None:
    selection = _select(claim("The committee met"), claim("nothing of note"), per_claim=20, max_chars=20_000)
    lines = [line for shown in selection.shown for line in shown.text.split("\n")]
    assert len(set(lines)) == len(lines) < 200


def test_a_claim_in_other_words_is_judged_by_what_fits() -> None:
    """A claim that shares no word with the contexts may be in another language; it is not left alone."""
    selection = _select(claim("高级套餐七十三欧元"))
    assert selection.shown
    assert selection.uncovered == frozenset()


def test_a_claim_of_which_no_passage_fits_is_named() -> None:
    index = EvidenceIndex([Context(id="a", text="xyz" * 10_000)])
    selection = select(index, Sentences(index.contexts), {"k0": claim("xyz")}, 2_000, 2)
    assert selection.shown == ()
    assert selection.uncovered == frozenset({"k0"})


def test_excerpts_that_overlap_are_joined() -> None:
    text = " ".join(f"Clause {number} concerns the matter of widgets." for number in range(200))
    index = EvidenceIndex([Context(id="a", text=text)])
    asked = {"k0": claim("widgets matter concerns clause")}
    selection = select(index, Sentences(index.contexts), asked, 6_000, 12)
    texts = [_unnumbered(shown) for shown in selection.shown]
    spans = [(text.index(shown), text.index(shown) + len(shown)) for shown in texts]
    assert spans == sorted(spans)
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    assert len(spans) < 12


async def test_the_model_and_the_reader_are_told_that_it_was_not_all() -> None:
    said = member("c1", evidence=[401])
    async with LlmServer(Reply(verdicts(said))) as server:
        reply = await judge(server, request(PRICE, contexts=[LONG]), max_context_chars=2_000)
    (judgement,) = reply.judgements
    assert judgement.verdict is Verdict.SUPPORTED
    assert judgement.evidence[0].span == (len(FILLER), len(FILLER) + len(PRICE))
    assert "Judged by excerpts" in judgement.reasoning
    user = server.calls[0].user
    assert user.startswith("The documents are not shown whole")
    assert " excerpt of document d1]" in user
    assert len(user) < 5_000


async def test_a_claim_that_could_not_be_shown_anything_is_unverified_and_says_why() -> None:
    async with LlmServer() as server:
        asked = request("xyz", contexts=["xyz" * 10_000])
        reply = await judge(server, asked, max_context_chars=2_000)
    assert server.calls == []
    found = joined(asked, reply, "llm:test")["k0"]
    assert found.verdict is Verdict.UNVERIFIED
    assert "max_context_chars" in found.reasoning
