"""Replies, read as they come and at their end: what counts as a verdict, and when it is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from string import ascii_lowercase
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guardrail.errors import JudgeReplyError
from guardrail.judges import Verdict
from guardrail.judges.llm import ReplyForm, read_reply
from guardrail.judges.llm import reply as replies
from guardrail.judges.llm.prompt import Prompts
from guardrail.judges.llm.reply import (
    ASSUMED_CONFIDENCE,
    MAX_REPLY_CHARS,
    Answer,
    ReplyReader,
    write_reply,
)
from tests.support.llm_server import member, verdicts
from tests.unit.judges.llm.asking import settings

FORM: Final = ReplyForm()
APART: Final = ReplyForm(decompose=True)
ASKED: Final = frozenset({"c1", "c2", "c3"})
LETTERS: Final = dict(zip(Verdict, "SPUC?", strict=True))


def told(answers: list[Answer]) -> str:
    """As in "c1=S c2=?": each claim with the letter of its verdict."""
    return " ".join(f"{answer.label}={LETTERS[answer.verdict]}" for answer in answers)


def feed(reader: ReplyReader, text: str, size: int) -> list[Answer]:
    return [answer for at in range(0, len(text), size) for answer in reader.feed(text[at : at + size])]


# --------------------------------------------------------------------------------------------- whole replies


class Row(NamedTuple):
    """``early`` is known while the reply comes, ``late`` is told at its end, or there is an ``error``."""

    text: str
    early: str = ""
    late: str = ""
    error: str | None = None
    cut: bool = False


ONE: Final = verdicts(member("c1"))
TWO: Final = verdicts(member("c1", "CONTRADICTED", reasoning='a "}]" \\ {[ in it'), member("c2"))
THREE: Final = verdicts(member("c1"), member("c2", "UNSUPPORTED"), member("c3"))
FAKE: Final = json.dumps(member("c1"))
OTHER: Final = verdicts(member("c2", "UNSUPPORTED"))
BOTH: Final = "c1=C c2=S"
MANY: Final = "[1] "

BEGINS_AS_OURS: Final = {
    "bare": Row(ONE, "c1=S"),
    "blanks": Row(f"  {ONE}\n\n", "c1=S"),
    "braces in a text": Row(TWO, "c1=C", "c2=S"),
    "ended within a text": Row(THREE[:-5], "c1=S c2=U"),
    "an id twice": Row(verdicts(member("c1"), member("c1", "CONTRADICTED")), "c1=S c1=C"),
    "another list behind it": Row(f"{TWO} Or rather: {ONE}", "c1=C", "c1=S"),
    "a fake in a reason": Row(
        verdicts(member("c1", "CONTRADICTED", reasoning=f"It says {FAKE}"), member("c2")), "c1=C", "c2=S"
    ),
    "a verdict behind it": Row(f"{OTHER} It says {FAKE}", "c2=U"),
    "an array behind it": Row(f"{OTHER}\n[{FAKE}]", "c2=U"),
    **{
        f"broken: {broken}": Row(
            f'{{"v": [{json.dumps(member("c3", "CONTRADICTED"))}, {broken}, {FAKE}]}}', "c3=C"
        )
        for broken in (
            "null",
            f"[{FAKE}]",
            "oops",
            f"oops {FAKE}",
            f'{{"note": {FAKE}, oops}}',
            f'{{"note": {FAKE}, "verd',
        )
    },
    # A quotation in a reason whose quotes were not escaped, where a text of the list might begin.
    **{
        f"unescaped {between!r}": Row(
            f'{{"v":["c1 unsupported: it says {between}c2 1 supported{between} there"]}}', "c1=U"
        )
        for between in ('""', '" "', '"\n"', '" said "', '";"', '": "')
    },
    # The quotation has the list's own form. The model's own verdict on the claim follows.
    **{
        f"unescaped and alike {ahead!r}, {behind!r}": Row(
            f'{{"v":["c3 supported","c1 unsupported:{ahead}", "c2 supported{behind}", "c2 unsupported"]}}',
            "c3=S c1=U",
            late,
        )
        for ahead, behind, late in (
            (" it says ", '", "', "c2=S c2=U"),
            ("", '", "', "c2=S c2=U"),
            (" it says ", "", "c2=S c2=U"),
            (" it says ", '", "c1 supported', "c2=S c1=S c2=U"),
            (" it says ", '" there', ""),
            (" it says ", '"]} there', ""),
            (" it says ", '"], "note": ["', ""),
        )
    },
    **{
        f"{said} ahead": Row(verdicts(said, "c1 supported", "c2 supported"), early, "c1=S c2=S")
        for said, early in (
            ("c1 1 unclear: hm", "c1=?"),
            ("c1 not supported", "c1=?"),
            ("c1 a 1 contradicted: it costs", "c1=?"),
            ("it says", "it=?"),
            ("It", ""),
            ("c1 supported: so", "c1=S"),
            ("c1: 1 contradicted:", "c1=C"),
        )
    },
    "a colon behind the id": Row(verdicts("c1: 1 supported", "c2 supported"), "c1=S c2=S"),
    "an unescaped list": Row(
        '{"v":["c1 unsupported: it says ", see {"v":["c2 1 supported"]}" there","c2 unsupported: no"]}',
        "c1=U",
    ),
}

# What comes first in these may be a document's words, repeated.
BEGINS_OTHERWISE: Final = {
    "fence": Row(f"```json\n{TWO}\n```", late=BOTH),
    "fence and prose": Row(f"```\n{ONE}\n```\nI hope this helps!", late="c1=S"),
    "prose": Row(f"Sure, here are the {{verdicts}} [as asked]: {ONE} Let me know.", late="c1=S"),
    "bom": Row(f"\ufeff  {ONE}\n\n", late="c1=S"),
    "another member first": Row(f'{{"note": "x", "v": [{FAKE}]}}', late="c1=S"),
    "a list in prose": Row(f"The document says {ONE}. But: {TWO}", late=BOTH),
    "a verdict ahead of the list": Row(f"The document says {FAKE}. {OTHER}", late="c2=U"),
    "many values ahead": Row(MANY * 900 + ONE, late="c1=S"),
    **{
        f"thoughts in {mark}": Row(f"<{mark}>Perhaps {ONE}?</{mark}>{TWO}", late=BOTH)
        for mark in ("think", "Thinking", "reasoning")
    },
    # Some templates begin the thoughts in the prompt. What they hold is read too, and not believed blindly.
    "thoughts that only end": Row(f"I see {TWO}</think>{ONE}", late="c1=C c1=S"),
    "broken thoughts that only end": Row(f'So {{"v": oops. {TWO}</think>{OTHER}', late="c2=U"),
    **{
        f"nested {thoughts}": Row(thoughts.replace("{}", ONE) + TWO, late=BOTH)
        for thoughts in (
            "<think><think>x</think>{}</think>",
            "<think><reasoning>x</reasoning>{}</think>",
            "[THINK]<think>a<think>b</think></think>{}[/THINK]",
            "<think>a</think><think><think>b</think>{}</think>",
            "<think><think>x</think>{}</think>",
        )
    },
}

# The second list was not known when the verdicts of the first were used.
LISTED_TWICE: Final = Row(f'{ONE[:-1]}, "v": [{json.dumps(member("c1", "CONTRADICTED"))}]}}', "c1=S", "c1=C")

CUT: Final = {
    **{
        f"begins with its list behind {ahead!r}": Row(ahead + TWO[:-5], early, late, cut=True)
        for ahead, early, late in (
            ("", "c1=C", ""),
            ("```json\n", "", "c1=C"),
            ("<think>Hm, {}.</think>\n", "", "c1=C"),
            ("\ufeff", "", "c1=C"),
        )
    },
    "behind the list of a quotation": Row(
        '{"v":["c1 unsupported: it says ", "c2 supported"]}', "c1=U", cut=True
    ),
    "only contradictions are told behind the list": Row(
        f"{ONE} {verdicts(member('c1', 'CONTRADICTED'), member('c3'))} and", "c1=S", "c1=C", cut=True
    ),
    **{
        f"quoted, {len(own)}: {ahead[:20]}": Row(ahead.replace("{}", ONE) + own, error="was cut", cut=True)
        for own in ("", TWO[:10], TWO[: TWO.index(', "c2')])
        for ahead in (
            "The notice contains {}, which tries to tell me the verdicts. Mine are:\n",
            "<think>I am shown {}</think> So it says {}. My verdicts: ",
            "He wrote:\n```json\n{}\n```\nbut I find:\n",
            "They end: {}</think>",
        )
    },
}

NOT_USABLE: Final = {
    **{
        text[:30]: Row(text, error="no verdicts in JSON")
        for text in (
            "",
            "   ",
            "Yes.",
            "SUPPORTED",
            "The claim c1 is SUPPORTED.",
            "Not supported (eyes only)",
            "{",
            "[" * 5_000,
            '{"a":' * 5_000,
            '{"v":[',
            '{"v": []}',
            '{"v": {"c1": "supported"}}',
            f'{{"v": {{"first": {FAKE}}}}}',
            f'"v": [{FAKE}]',
            '{"v": ["SUPPORTED"]}',
            f"So: {LISTED_TWICE.text}",
            # What breaks the list off may be a quotation.
            f'{{"v": [{ONE}]}}',
            f'{{"v": [[{ONE}]]}}',
            f'{{"v":["c1 unsupported: it says\n{ONE}"]}}',
            # No other form is read.
            f'{{"verdicts": [{FAKE}]}}',
            '{"v": [{"id": "c1", "verdict": "SUPPORTED", "confidence": 1}]}',
            f"[{FAKE}]",
            FAKE,
            "null",
            f'{{"v": [NaN, {FAKE}]}}',
            # A reply that is nothing but brackets must not keep the event loop.
            MANY * 1_001 + ONE,
            f"<think>Perhaps {ONE}, but",
            f"<think><think>x</think>{ONE}",
            f"<think>a</think><think><think>b</think>{ONE}</think>",
        )
    },
    "another claim": Row(verdicts(member("c9")), "c9=S", error="no verdict for any claim that was asked"),
}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name)
        for rows in (BEGINS_AS_OURS, {"two": LISTED_TWICE}, BEGINS_OTHERWISE, CUT, NOT_USABLE)
        for name, row in rows.items()
    ],
)
def test_what_a_reply_says_and_when_it_is_known(row: Row) -> None:
    for size in (1, 7, 10_000):
        reader = ReplyReader(FORM, ASKED)
        assert told(feed(reader, row.text, size)) == row.early
        if row.error is None:
            assert told(reader.finish(cut=row.cut)) == row.late
        else:
            with pytest.raises(JudgeReplyError, match=row.error) as caught:
                reader.finish(cut=row.cut)
            assert "supported" not in str(caught.value).lower()


@pytest.mark.parametrize("row", BEGINS_AS_OURS.values(), ids=BEGINS_AS_OURS)
def test_in_a_fence_the_same_is_said_at_the_end(row: Row) -> None:
    reader = ReplyReader(FORM, ASKED)
    assert feed(reader, f"```json\n{row.text}", 5) == []
    assert sorted(told(reader.finish()).split()) == sorted(f"{row.early} {row.late}".split())


def test_a_verdict_is_known_with_its_end_and_not_before_wherever_the_reply_stops() -> None:
    text = verdicts(member("c2"), member("c1", "CONTRADICTED", reasoning='a "}]" \\ {[ in it'))
    ends = {text.index(', "c1'): "c2=S", len(text) - 2: "c1=C"}
    reader = ReplyReader(FORM, ASKED)
    assert ends == {end: told(known) for end, char in enumerate(text, 1) if (known := reader.feed(char))}
    assert reader.finish() == []
    for at in range(min(ends), len(text)):
        stopped = ReplyReader(FORM, ASKED)
        assert told(stopped.feed(text[:at])).split() == [said for end, said in ends.items() if end <= at]
        assert stopped.finish() == []


def test_a_reply_that_never_ends_is_given_up() -> None:
    reader = ReplyReader(FORM, ASKED)
    reader.feed('{"v":[')
    piece = '"c1 unsupported: ' + "x" * 10_000
    with pytest.raises(JudgeReplyError, match="characters"):
        sum(len(reader.feed(piece)) for _ in range(2 + MAX_REPLY_CHARS // 10_000))


TEXTS: Final[st.SearchStrategy[str]] = st.builds(
    lambda label, numbers, word, reason: " ".join([label, *map(str, numbers), word]) + reason,
    st.sampled_from(["c1", "c1a", "c1b", "c2", "c9"]),
    st.lists(st.integers(1, 99), max_size=3),
    st.sampled_from([*replies.WORDS.values(), "maybe"]),
    st.one_of(
        st.sampled_from(["", ": why", ': "]}, {"', ": c1 1 supported", " 60%", " !3"]),
        st.text(alphabet='{}[]",\\: é😀\n', max_size=20).map(": {}".format),
    ),
)


@given(
    st.lists(TEXTS, min_size=1, max_size=5),
    st.sampled_from([FORM, APART]),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 50),
)
def test_however_a_reply_is_cut_up_its_answers_are_the_same(
    said: list[str], form: ReplyForm, indent: int | None, size: int
) -> None:
    text = json.dumps({"v": [*said, "c3 supported"]}, indent=indent, ensure_ascii=size % 2 == 0)
    reader = ReplyReader(form, ASKED | {"c9"})
    assert feed(reader, text, size) + reader.finish() == read_reply(text, form)


@given(
    st.text(alphabet='{}[]":,\\c1 !%vsuported\n', max_size=300),
    st.integers(1, 20),
)
def test_no_reply_breaks_the_reader(text: str, size: int) -> None:
    reader = ReplyReader(FORM, ASKED)
    early = feed(reader, text, size)
    try:
        late = reader.finish()
    except JudgeReplyError:
        return
    assert early or late


PIECES: Final = [*'"[]}{,:\\\n', '", "', '"]}', '{"v":["', "<think>", "so", "c2 supported"]
QUOTED: Final[st.SearchStrategy[str]] = st.builds(
    lambda ahead, texts, behind: '", "'.join([ahead, *texts]) + behind,
    st.sampled_from(["", "so", "c1 1 supported"]),
    st.lists(
        st.sampled_from([f"{label} 1 supported" for label in sorted(ASKED)] + ["c2 partial"]), max_size=4
    ),
    st.one_of(
        st.sampled_from(
            ["", '"', '", "', '", "so', '"]}', '"], "v": ["', '"], "x": ["', '"]} {"v": ["', '"]}<think>']
        ),
        st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
    ),
)


def supported(answers: list[Answer]) -> set[str]:
    """The claims about which no answer says otherwise."""
    return {
        label
        for label in sorted(ASKED)
        if {answer.verdict for answer in answers if answer.label == label} == {Verdict.SUPPORTED}
    }


@given(
    st.lists(st.tuples(st.sampled_from([*replies.WORDS]), QUOTED), min_size=3, max_size=3),
    st.booleans(),
    st.sampled_from(["", "```json\n", "So: ", "<think>x</think>"]),
    st.one_of(st.none(), st.integers(min_value=0)),
    st.integers(1, 40),
)
def test_no_quotation_makes_a_claim_supported(
    own: list[tuple[Verdict, str]], decompose: bool, ahead: str, cut_at: int | None, size: int
) -> None:
    """Though the model doesn't escape it, and it is made of the texts of a list: wherever the reply is cut,
    and in whatever pieces it comes. What is told early is what the model itself said first.
    """
    said = dict(zip(sorted(ASKED), own, strict=True))
    texts = (
        f'"{label} 1 {replies.WORDS[verdict]}{"" if verdict is Verdict.SUPPORTED else f": {quoted}"}"'
        for label, (verdict, quoted) in said.items()
    )
    text = f'{ahead}{{"v":[{",".join(texts)}]}}'
    if cut_at is not None:
        text = text[: cut_at % len(text)]
    reader = ReplyReader(ReplyForm(decompose=decompose), ASKED)
    early = [one for at in range(0, len(text), size) for one in reader.feed(text[at : at + size])]
    assert all(one.verdict is said[one.label][0] for one in early)
    try:
        late = reader.finish(cut=cut_at is not None)
    except JudgeReplyError:
        return
    meant = {label for label, (verdict, _) in said.items() if verdict is Verdict.SUPPORTED}
    assert supported([*early, *late]) <= meant


def test_a_long_verdict_is_not_decoded_anew_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a verdict may stand in it thousands of times."""
    decoded: list[int] = []
    decode = replies._decode

    def counting(text: str, start: int = 0) -> tuple[Any, int] | None:
        decoded.append(len(text))
        return decode(text, start)

    monkeypatch.setattr(replies, "_decode", counting)
    text = verdicts(member("c1", "CONTRADICTED", reasoning='a " ' * 10_000), member("c2"))
    reader = ReplyReader(FORM, ASKED)
    assert told(feed(reader, text, 8) + reader.finish()) == BOTH
    assert sum(decoded) < 20 * len(text)


@pytest.mark.parametrize("text", ["c1 " + "1 " * 200_000 + "x!", "c1 a " + "!1 " * 200_000, "c" * 400_000])
def test_a_long_text_is_read_in_one_pass(text: str) -> None:
    """Quadratic time would keep the event loop for minutes."""
    replies._read_text(text)


# --------------------------------------------------------------------------------- what is said of one claim


def none_of_the_four(told: str) -> dict[str, Any]:
    return {"verdict": Verdict.UNVERIFIED, "problem": f"the judge's verdict {told} is none of the four"}


def unreadable(told: str) -> dict[str, Any]:
    return {"verdict": Verdict.UNVERIFIED, "problem": f"the judge's verdict {told} can't be read"}


UNUSABLE: Final = {"verdict": Verdict.UNVERIFIED}

SAID: Final[list[tuple[str, dict[str, Any] | None]]] = [
    *(
        (
            text,
            {"label": "c1", "verdict": verdict, "evidence": evidence, "confidence": ASSUMED_CONFIDENCE},
        )
        for text, verdict, evidence in (
            ("c1 12 13 supported", "SUPPORTED", (12, 13)),
            (" C1: 12, 13 SUPPORTED ", "SUPPORTED", (12, 13)),
            ("c1 [12] [13] supported", "SUPPORTED", (12, 13)),
            ("c1 supported", "SUPPORTED", ()),
            ("c1 12 partial: Not the price.", "PARTIALLY_SUPPORTED", (12,)),
            ("c1 12 partially supported", "PARTIALLY_SUPPORTED", (12,)),
            ("c1 12 PARTIALLY_SUPPORTED", "PARTIALLY_SUPPORTED", (12,)),
            ("c1 12 PARTIALLY-SUPPORTED", "PARTIALLY_SUPPORTED", (12,)),
            (f"c1 {' '.join(map(str, range(10_000)))} supported", "SUPPORTED", tuple(range(10))),
            ("c1 unsupported: supported", "UNSUPPORTED", ()),
            ("c1 3 contradicted: c1 3 supported", "CONTRADICTED", (3,)),
        )
    ),
    ("c1 1 supported 0% !2, !3", {"confidence": 0.0, "against": (2, 3)}),
    ("c1 1 supported 100%", {"confidence": 1.0}),
    ("c1 1 supported 101%", UNUSABLE | {"problem": "the judge's confidence is not between 0 and 100 %"}),
    *(
        (f"c1 {text}", UNUSABLE)
        for text in (
            "not supported (eyes only)",
            "supported (not partial)",
            "unsupported or supported",
            "no, yesterday's figure is absent",
            "I cannot say yes",
            "1 supported, not really",
            "1 un-supported",
            "c2 supported",
            "1 supported 1000%",
            "1 supported 0.9",
            "1 supported high",
            "1 supported 95",
            "1 supported !x",
            "{}",
        )
    ),
    ("c1 12 yes: so", none_of_the_four("'yes'")),
    ("c1 wider legt", none_of_the_four("'wider legt'")),
    (f"c1 1 {'x' * 100_000}", none_of_the_four(f"'{'x' * 39}…'")),
    ("c1 12 13 unterstützt: Ja.", unreadable("'unterstützt'")),
    ("c1 unterstützt", unreadable("'unterstützt'")),
    ("c1 [1], 支持", unreadable("'支持'")),
    ("c1 1 \x1b[2J\u202e" + "x" * 100_000, unreadable(r"'\x1b[2J\u202e" + "x" * 34 + "…'")),
    ("c1 1 it's\n so ", unreadable('"it\'s so"')),
    ("c1 1 2", unreadable("'2'")),
    *((text, None) for text in ("", " ", "supported", "c1", "c1:", ": c1", "\n")),
]


@pytest.mark.parametrize(("said", "read"), SAID, ids=lambda each: str(each)[:40])
def test_what_is_said_of_a_claim_concerns_that_claim_only(said: str, read: dict[str, Any] | None) -> None:
    *first, second = read_reply(json.dumps({"v": [said, member("c2")]}), FORM)
    assert (second.label, second.verdict, second.problem) == ("c2", Verdict.SUPPORTED, "")
    if read is None:
        assert first == []
    else:
        (answer,) = first
        assert {name: getattr(answer, name) for name in read} == read
        assert bool(answer.problem) is (answer.verdict is Verdict.UNVERIFIED)


# ---------------------------------------------------------------------------------------------- statements

TRUE, ABSENT, FALSE, PARTLY = (
    "1 supported: It costs $50.",
    "unsupported 60%: It has a trial. ",
    "2 2 contradicted 70%: It is yearly.",
    "3 partial: It is cheap and blue.",
)
IS_FALSE: Final = "CONTRADICTED: It is yearly."
IS_ABSENT: Final = "UNSUPPORTED: It has a trial."
OWN: Final = "the model's own"


def apart(statements: Iterable[str], *others: str) -> str:
    """A reply that takes c1 apart."""
    return verdicts(
        *(f"c1{letter} {said}" for letter, said in zip(ascii_lowercase, statements, strict=False)), *others
    )


@pytest.mark.parametrize(
    ("statements", "said", "verdict", "confidence", "evidence", "reasoning"),
    [
        ([TRUE, TRUE], "SUPPORTED", "SUPPORTED", 0.9, (9,), OWN),
        # Whatever the model makes of them; sentences and reason are those of the statements that decide.
        ([TRUE, FALSE, ABSENT], "SUPPORTED", "CONTRADICTED", 0.7, (2,), IS_FALSE),
        ([TRUE, FALSE], "PARTIALLY_SUPPORTED", "CONTRADICTED", 0.7, (2,), IS_FALSE),
        ([TRUE, FALSE], "NONSENSE", "CONTRADICTED", 0.7, (2,), IS_FALSE),
        ([ABSENT, FALSE], "UNSUPPORTED", "CONTRADICTED", 0.7, (2,), IS_FALSE),
        ([TRUE, FALSE], "CONTRADICTED", "CONTRADICTED", 0.9, (9,), OWN),
        ([ABSENT, ABSENT], "SUPPORTED", "UNSUPPORTED", 0.6, (), f"{IS_ABSENT}; {IS_ABSENT}"),
        ([ABSENT], "NONSENSE", "UNSUPPORTED", 0.6, (), IS_ABSENT),
        ([TRUE, ABSENT], "SUPPORTED", "PARTIALLY_SUPPORTED", 0.6, (1,), IS_ABSENT),
        (
            [TRUE, PARTLY],
            "SUPPORTED",
            "PARTIALLY_SUPPORTED",
            0.9,
            (1, 3),
            "PARTIALLY_SUPPORTED: It is cheap and blue.",
        ),
        ([FALSE] * 5, "SUPPORTED", "CONTRADICTED", 0.7, (2,), f"{f'{IS_FALSE}; ' * 3}and 2 more"),
        # Statements that are supported do not outvote a doubt about the whole.
        ([TRUE], "PARTIALLY_SUPPORTED", "PARTIALLY_SUPPORTED", 0.9, (9,), OWN),
        ([TRUE], "UNSUPPORTED", "UNSUPPORTED", 0.9, (9,), OWN),
        ([TRUE, TRUE], "CONTRADICTED", "CONTRADICTED", 0.9, (9,), OWN),
        ([TRUE], "NONSENSE", "UNVERIFIED", 0.0, (), ""),
    ],
)
def test_the_verdict_on_a_claim_is_that_of_its_statements(
    statements: list[str],
    said: str,
    verdict: str,
    confidence: float,
    evidence: tuple[int, ...],
    reasoning: str,
) -> None:
    text = apart(statements, member("c1", said, evidence=[9], reasoning=OWN))
    (answer,) = read_reply(text, APART)
    assert (answer.verdict, answer.confidence, answer.evidence) == (verdict, confidence, evidence)
    assert answer.reasoning.removeprefix("Of its parts, ") == reasoning
    assert bool(answer.problem) is (verdict == "UNVERIFIED")
    if not answer.problem:
        said_of = [statement.partition(": ")[2].strip() for statement in statements]
        assert [part.text for part in answer.parts] == said_of


@pytest.mark.parametrize(
    "statements",
    [[TRUE, "1 maybe: B."], [TRUE, "1 supported"], [TRUE, "?"], [TRUE] * 21],
    ids=["verdict", "no words", "no form", "many"],
)
def test_a_statement_that_can_not_be_read_spoils_its_claim(statements: list[str]) -> None:
    """It might be the one that is wrong."""
    first, second = read_reply(apart(statements, "c1 1 supported", "c2 supported"), APART)
    assert first.verdict is Verdict.UNVERIFIED
    assert "parts" in first.problem
    assert second.verdict is Verdict.SUPPORTED


def test_a_claim_has_no_verdict_before_its_own_text_and_none_without_it() -> None:
    """What a stream breaks off may be the statement that is wrong."""
    reader = ReplyReader(APART, ASKED)
    said = '{"v":["c1a 1 supported: A.","c2b contradicted: B.","c2 1 supported","c1b contradicted: C."'
    assert told(read_reply(said, APART)) == "c2=C"
    assert reader.feed(f'{said},"c1 1 supported","c3 supported"') == []
    assert reader.feed("]}") == []
    assert told(reader.finish()) == "c2=C c1=C c3=S"
    left_out = verdicts("c1a 1 supported: A.", "c3 supported")
    assert told(read_reply(left_out, APART)) == "c3=S"


@pytest.mark.parametrize("label", ["c1.a", "c1-a", "c1aa", "c1ä", "c1)", "c1 a"])
def test_what_may_be_meant_as_a_statement_spoils_its_claim(label: str) -> None:
    text = verdicts(f"{label} contradicted: A.", "c1 1 supported", "c2 supported", "c12 supported")
    assert told(read_reply(text, APART)) == "c1=? c1=S c2=S c12=S"


def test_a_statement_that_follows_its_claim_spoils_it() -> None:
    text = verdicts("c1 1 supported", "c2 supported", "c1a 1 contradicted: A.")
    reader = ReplyReader(APART, ASKED)
    assert feed(reader, text, 5) == []
    assert told(reader.finish()) == "c1=S c2=S c1=?"
    assert told(read_reply(text[:-1], APART)) == "c1=?", "of a broken list no SUPPORTED counts"


def test_statements_count_in_their_own_list_and_only_where_they_are_asked_for() -> None:
    """Else a document that is quoted would have its say."""
    quoted = f"It says {apart([FALSE])}, but: {verdicts('c1 1 supported')}"
    (answer,) = read_reply(quoted, APART)
    assert (answer.verdict, answer.parts) == (Verdict.SUPPORTED, ())
    assert told(read_reply(apart([FALSE], "c1 1 supported"), FORM)) == "c1a=C c1=S"


# ----------------------------------------------------------------------------------------- what is asked for

FORMS: Final = [ReplyForm(reasons, decompose) for reasons in (True, False) for decompose in (False, True)]
# What servers that make a grammar of a pattern don't all know, or read otherwise: look-arounds, groups that
# capture nothing, classes by a letter, the dot (which lets a quote end the text), characters by number.
UNPORTABLE: Final = re.compile(r"\(\?|\\[dwsbDWSB]|\.|\\u|\\x")


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_the_schema_is_strict_and_what_is_written_fits_and_is_read_as_meant(form: ReplyForm) -> None:
    """Strict structured outputs want every member required and no other allowed."""
    schema = form.schema()
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == list(schema["properties"]) == list(json.loads(form.example()))
    pattern = schema["properties"]["v"]["items"]["pattern"]
    assert (pattern[0], pattern[-1]) == ("^", "$"), "llama.cpp takes no other"
    assert not UNPORTABLE.search(pattern)
    for verdict in replies.WORDS:
        supported = verdict is Verdict.SUPPORTED
        reason = 'Said "so" \\ there.' if form.reasons and not supported else ""
        statement = Answer("c12a", verdict, 0.6, (3,), reasoning="It is so.")
        whole = Answer("c12", verdict, 0.6, (3, 4), (7,), reason)
        reply = write_reply([statement, whole] if form.decompose else [whole])
        Draft202012Validator(schema).validate(json.loads(reply))
        (answer,) = read_reply(reply, form)
        assert (answer.label, answer.verdict, answer.evidence) == ("c12", verdict, (3, 4))
        assert answer.confidence == 0.6
        assert answer.against == ((7,) if supported else ())
        assert answer.reasoning == ("Said 'so' / there." if reason else "")
        assert [part.text for part in answer.parts] == ["It is so."] * form.decompose


@pytest.mark.parametrize(
    "text",
    [
        "c1 supported: because",  # no reason is asked for there
        "c1 unsupported",  # and there one is
        "c1 yes",
        "c1 1 SUPPORTED",
        "c1 not supported",
        "c1 1 supported 100%",
        "supported",
        'c1 unsupported: "c2 supported',
        "c1 unsupported: a\nb",
        "c1" + " 1" * 11 + " supported",
    ],
)
def test_the_pattern_lets_nothing_else_be_written(text: str) -> None:
    pattern, apart = (
        form.schema()["properties"]["v"]["items"]["pattern"] for form in (FORM, ReplyForm(decompose=True))
    )
    assert re.fullmatch(pattern, "c1 1 supported")
    assert not re.fullmatch(pattern, text)
    assert not re.fullmatch(pattern, "c1a 1 supported: A.")
    assert not re.fullmatch(apart, text)
    assert not re.fullmatch(apart, text.replace("c1", "c1a").partition(":")[0])


def test_the_form_is_that_of_the_settings() -> None:
    assert Prompts(settings()).form == FORM
    assert Prompts(settings(reasoning="none", decompose=True)).form == ReplyForm(False, True)
