"""Contexts that don't fit: the closest passages are sent, and it is said that they are not all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from guardrail.claims import Citation, Claim
from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Verdict
from guardrail.judges.llm.prompt import Sentences, Shown, ShownSentences, select
from tests.support.judges import joined
from tests.support.llm_server import LlmServer, Reply, member, verdicts
from tests.unit.judges.llm.asking import claim, judge, request

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
