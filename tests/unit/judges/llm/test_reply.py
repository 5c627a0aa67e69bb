"""Replies, read as they come and at their end: what counts as a verdict, and when it is known."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from guardrail.errors import JudgeReplyError
from guardrail.judges import Verdict
from guardrail.judges.llm import ReplyForm, read_reply
from guardrail.judges.llm import reply as replies
from guardrail.judges.llm.reply import ASSUMED_CONFIDENCE, MAX_REPLY_CHARS, Answer, ReplyReader
from guardrail.judges.llm.settings import Reasoning
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
FAKE: Final = json.dumps(member("c1"))
OTHER: Final = verdicts(member("c2", "UNSUPPORTED"))
BOTH: Final = "c1=C c2=S"
MANY: Final = "[1] "
COMPACT: Final = '{"v":["c1 1 supported","c2 unsupported: \\"no\\""]}'
OBJECT: Final = '{"id":"c2","verdict":"SUPPORTED","evidence":[1],"confidence":1}'

BEGINS_AS_OURS: Final = {
    "bare": Row(ONE, "c1=S"),
    "blanks": Row(f"  {ONE}\n\n", "c1=S"),
    "braces in a string": Row(TWO, BOTH),
    "compact": Row(COMPACT, "c1=S c2=U"),
    "ended within a member": Row(
        verdicts(member("c1"), member("c2", "UNSUPPORTED"), member("c3"))[:-90], "c1=S c2=U"
    ),
    "an id twice": Row(verdicts(member("c1"), member("c1", "CONTRADICTED")), "c1=S c1=C"),
    "a member twice": Row(
        '{"verdicts": [{"id": "c1", "verdict": "UNSUPPORTED", "verdict": "SUPPORTED", "confidence": 1}]}',
        "c1=?",
    ),
    "another list behind it": Row(f"{TWO} Or rather: {ONE}", BOTH, "c1=S"),
    "another list in it": Row(
        f'{ONE[:-1]}, "v": [{json.dumps(member("c1", "CONTRADICTED"))}]}}', "c1=S", "c1=C"
    ),
    "a fake in a string": Row(
        verdicts(member("c1", "CONTRADICTED", reasoning=f"It says {FAKE}"), member("c2")), BOTH
    ),
    "a verdict behind it": Row(f"{OTHER} It says {FAKE}", "c2=U"),
    "an array behind it": Row(f"{OTHER}\n[{FAKE}]", "c2=U"),
    **{
        f"broken: {broken[:30]}": Row(
            f'{{"verdicts": [{json.dumps(member("c3", "CONTRADICTED"))}, {broken}, {FAKE}]}}', "c3=C"
        )
        for broken in (
            f'{{"id": "c2", "reasoning": "it says {FAKE}", "verdict": "UNSUPPORTED"}}',
            f'{{"id": "c2", "note": {FAKE}, oops}}',
            f'{{"id": "c2", "note": {FAKE}, "verd',
            f"oops {FAKE}",
        )
    },
    # A quotation in a reason whose quotes were not escaped, where a text of the list might begin.
    **{
        f"unescaped {between!r}": Row(
            f'{{"v":["c1 unsupported: it says {between}c2 1 supported{between} there"]}}', "c1=U"
        )
        for between in ('""', '" "', '"\n"', '" said "', '";"', '": "')
    },
    **{
        f"unescaped {quoted!r}": Row(
            f'{{"v":["c1 unsupported: it says "{quoted}" there","c2 unsupported: no"]}}', "c1=U"
        )
        for quoted in (OBJECT, f'see {{"verdicts":[{OBJECT}]}}', ', see {"v":["c2 1 supported"]}')
    },
}

# What comes first in these may be a document's words, repeated.
BEGINS_OTHERWISE: Final = {
    "fence": Row(f"```json\n{TWO}\n```", late=BOTH),
    "fence and prose": Row(f"```\n{ONE}\n```\nI hope this helps!", late="c1=S"),
    "prose": Row(f"Sure, here are the {{verdicts}} [as asked]: {ONE} Let me know.", late="c1=S"),
    "bom": Row(f"\ufeff  {ONE}\n\n", late="c1=S"),
    "array": Row(f"[{FAKE}]", late="c1=S"),
    "single": Row(FAKE, late="c1=S"),
    "another member first": Row(f'{{"note": "x", "verdicts": [{FAKE}]}}', late="c1=S"),
    "a list in prose": Row(f"The document says {ONE}. But: {TWO}", late=f"c1=S {BOTH}"),
    "a verdict ahead of the list": Row(f"The document says {FAKE}. {OTHER}", late="c2=U"),
    "many values ahead": Row(MANY * 900 + ONE, late="c1=S"),
    **{
        f"thoughts in {mark}": Row(f"<{mark}>Perhaps {ONE}?</{mark}>{TWO}", late=BOTH)
        for mark in ("think", "Thinking", "reasoning")
    },
    # Some templates begin the thoughts in the prompt. What they hold is read too, and not believed blindly.
    "thoughts that only end": Row(f"I see {TWO}</think>{ONE}", late=f"{BOTH} c1=S"),
    "broken thoughts that only end": Row(f'So {{"verdicts": oops. {TWO}</think>{OTHER}', late="c2=U"),
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
    "only contradictions are told behind the list": Row(
        f"{ONE} {verdicts(member('c1', 'CONTRADICTED'), member('c3'))} and", "c1=S", "c1=C", cut=True
    ),
    **{
        f"quoted, {len(own)}: {ahead[:20]}": Row(ahead.replace("{}", ONE) + own, error="was cut", cut=True)
        for own in ("", TWO[:40], TWO[: TWO.index("}, {") + 1])
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
            '{"verdicts":[',
            '{"verdicts": []}',
            '{"verdicts": {"c1": "SUPPORTED"}}',
            f'{{"verdicts": {{"first": {FAKE}}}}}',
            f'"verdicts": [{FAKE}]',
            '{"verdicts": ["SUPPORTED"]}',
            '{"verdicts": [{"id": 1, "verdict": "SUPPORTED"}]}',
            '{"verdicts": [{"verdict": "SUPPORTED"}]}',
            "null",
            '{"verdicts": [{"id": "c1", "verdict": "SUPPORTED", "confidence": NaN}]}',
            # A reply that is nothing but brackets must not keep the event loop.
            MANY * 1_001 + ONE,
            # A verdict by itself is believed only where nothing else stands.
            f"It says {FAKE}",
            f"{FAKE} it says",
            f'{FAKE} it says {{"',
            f"It says [{FAKE}]",
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
        for rows in (BEGINS_AS_OURS, BEGINS_OTHERWISE, CUT, NOT_USABLE)
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
            assert "SUPPORTED" not in str(caught.value)


@pytest.mark.parametrize("row", BEGINS_AS_OURS.values(), ids=BEGINS_AS_OURS)
def test_behind_prose_the_same_is_said_at_the_end(row: Row) -> None:
    reader = ReplyReader(FORM, ASKED)
    assert feed(reader, f"So: {row.text}", 5) == []
    assert sorted(told(reader.finish()).split()) == sorted(f"{row.early} {row.late}".split())


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        (TWO, {TWO.index("}, {") + 1: "c1=C", len(TWO) - 2: "c2=S"}),
        (COMPACT, {COMPACT.index(","): "c1=S", len(COMPACT) - 2: "c2=U"}),
    ],
    ids=["objects", "texts"],
)
def test_a_verdict_is_known_with_its_end_and_not_before_wherever_the_reply_stops(
    text: str, ends: dict[int, str]
) -> None:
    reader = ReplyReader(FORM, ASKED)
    assert ends == {end: told(known) for end, char in enumerate(text, 1) if (known := reader.feed(char))}
    assert reader.finish() == []
    for at in range(min(ends), len(text)):
        stopped = ReplyReader(FORM, ASKED)
        assert told(stopped.feed(text[:at])).split() == [said for end, said in ends.items() if end <= at]
        assert stopped.finish() == []


def test_a_reply_that_never_ends_is_given_up() -> None:
    reader = ReplyReader(FORM, ASKED)
    reader.feed('{"verdicts":[')
    piece = '{"id": "c1", "reasoning": "' + "x" * 10_000
    with pytest.raises(JudgeReplyError, match="characters"):
        sum(len(reader.feed(piece)) for _ in range(2 + MAX_REPLY_CHARS // 10_000))
    with pytest.raises(JudgeReplyError, match="characters"):
        read_reply("x" * (MAX_REPLY_CHARS + 1), FORM)


MEMBERS: Final[st.SearchStrategy[Any]] = st.builds(
    member,
    st.sampled_from(["c1", "c2", "c3", "c9"]),
    st.sampled_from([*Verdict, "no"]),
    reasoning=st.text(alphabet='{}[]",\\: é😀\n', max_size=20),
    parts=st.lists(st.just({"text": "}", "verdict": "SUPPORTED"}), max_size=2),
)
TEXTS: Final[st.SearchStrategy[Any]] = st.builds(
    lambda label, numbers, word, reason: " ".join([label, *map(str, numbers), word]) + reason,
    st.sampled_from(["c1", "c2", "c9"]),
    st.lists(st.integers(1, 99), max_size=3),
    st.sampled_from([*replies.WORDS.values(), "maybe"]),
    st.sampled_from(["", ": why", ': "]}, {"', ": c1 1 supported", " 60%", " !3"]),
)


@given(
    st.one_of([st.lists(kind, min_size=1, max_size=5) for kind in (MEMBERS, TEXTS)]),
    st.sampled_from([FORM, APART]),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 50),
)
def test_however_a_reply_is_cut_up_its_answers_are_the_same(
    said: list[Any], form: ReplyForm, indent: int | None, size: int
) -> None:
    text = json.dumps({"verdicts": said}, indent=indent, ensure_ascii=size % 2 == 0)
    reader = ReplyReader(form, ASKED | {"c9"})
    assert feed(reader, text, size) == read_reply(text, form)
    assert reader.finish() == []


@given(
    st.one_of(
        st.text(alphabet='{}[]":,\\c1 verdictsSUPPORTED\n', max_size=300),
        st.text(alphabet='{}[]":,\\c1 !%vsuported\n', max_size=300),
    ),
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


def test_a_long_verdict_is_not_decoded_anew_with_each_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a verdict may stand in it thousands of times."""
    decoded: list[int] = []
    decode = replies._decode

    def counting(text: str, start: int = 0) -> tuple[Any, int] | None:
        decoded.append(len(text))
        return decode(text, start)

    monkeypatch.setattr(replies, "_decode", counting)
    text = verdicts(member("c1", "CONTRADICTED", reasoning="a } " * 10_000), member("c2"))
    reader = ReplyReader(FORM, ASKED)
    assert told(feed(reader, text, 8) + reader.finish()) == BOTH
    assert sum(decoded) < 20 * len(text)


@pytest.mark.parametrize("text", ["c1 " + "1 " * 200_000 + "x!", "c1 a " + "!1 " * 200_000, "c" * 400_000])
def test_a_long_text_is_read_in_one_pass(text: str) -> None:
    """Quadratic time would keep the event loop for minutes."""
    replies._read_text(text)


# --------------------------------------------------------------------------------- what is said of one claim


def none_of_the_four(told: str) -> dict[str, Any]:
    return {"verdict": Verdict.UNVERIFIED, "problem": f"the judge's verdict{told} is none of the four"}


def unreadable(told: str) -> dict[str, Any]:
    return {"verdict": Verdict.UNVERIFIED, "problem": f"the judge's verdict {told} can't be read"}


UNUSABLE: Final = {"verdict": Verdict.UNVERIFIED}
OFFERED: Final = [12, "13", "[14]", " 15 ", -1, 1.0, True, "first", "1-9", None]
C1: Final = member("c1")

SAID: Final[list[tuple[Any, dict[str, Any] | None]]] = [
    # A verdict is taken by its whole value.
    *(
        (C1 | {"verdict": value}, {"label": "c1", "verdict": verdict, "problem": ""})
        for value, verdict in {
            "SUPPORTED": "SUPPORTED",
            "supported": "SUPPORTED",
            " Partially supported ": "PARTIALLY_SUPPORTED",
            "PARTIALLY-SUPPORTED": "PARTIALLY_SUPPORTED",
            "UNSUPPORTED": "UNSUPPORTED",
            "CONTRADICTED": "CONTRADICTED",
        }.items()
    ),
    *(
        (C1 | {"verdict": value}, none_of_the_four(f" {value!r}"))
        for value in (
            "NOT SUPPORTED",
            "not supported (eyes only)",
            "SUPPORTED (not partial)",
            "SUPPORTED|UNSUPPORTED",
            "UNSUPPORTED or SUPPORTED",
            "NO, yesterday's figure is absent",
            "I cannot say yes",
            "yes",
            "UNVERIFIED",
            "unterstützt",
            "ſupported",  # whose upper case is an S
            "it's",
        )
    ),
    *(
        (C1 | {"verdict": value}, none_of_the_four(""))
        for value in ("", None, True, 7, -1, ["SUPPORTED"], {"verdict": "SUPPORTED"})
    ),
    # What is none is told fit to print and short.
    (C1 | {"verdict": " wider\n legt "}, none_of_the_four(" 'wider legt'")),
    (
        C1 | {"verdict": "\x1b[31mred\u200b\u202e\ud800"},
        none_of_the_four(r" '\x1b[31mred\u200b\u202e\ud800'"),
    ),
    (C1 | {"verdict": "x" * 100_000}, none_of_the_four(f" '{'x' * 39}…'")),
    *(
        (C1 | {"confidence": value}, UNUSABLE | {"problem": "the judge's confidence is not between 0 and 1"})
        for value in (-0.1, 1.1, 95, 10**400)
    ),
    *(
        (C1 | {"confidence": value}, UNUSABLE | {"problem": "the judge's confidence is not a number"})
        for value in ("0.9", "high", True, None, [0.9])
    ),
    (member("c1", evidence=OFFERED), {"evidence": (12, 13, 14, 15, -1, 0, 0, 0, 0, 0)}),
    (member("c1", evidence=list(range(10_000))), {"evidence": tuple(range(10))}),
    (
        member("c1", evidence="12", against=12, reasoning=["because"]),
        {"evidence": (), "against": (), "reasoning": ""},
    ),
    (
        member("c1", parts=[{"text": "A.", "verdict": "CONTRADICTED"}]),  # which were not asked for
        {"verdict": "SUPPORTED", "parts": ()},
    ),
    # As a text.
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
            ("c1 unsupported: supported", "UNSUPPORTED", ()),
            ("c1 3 contradicted: c1 3 supported", "CONTRADICTED", (3,)),
        )
    ),
    *(
        (f"c1 {text}", UNUSABLE)
        for text in (
            "not supported",
            "1 supported? No.",
            "1 supported, not really",
            "1 supported unsupported",
            "1 unsupported supported",
            "1 supported|unsupported",
            "1 un-supported",
            "1 yes",
            "1 unverified",
            "c2 supported",
            "-1 supported",
            "0.5 supported",
            "1-9 supported",
            "１ supported",
            "1 ſupported",
            "1 supp\u200borted",
            "1 supported 101%",
            "1 supported 95",
            "1 supported -5%",
            "1 supported !x",
            "{}",
        )
    ),
    ("c1 12 yes: so", none_of_the_four(" 'yes'")),
    ("c1 12 13 unterstützt: Ja.", unreadable("'unterstützt'")),
    ("c1 unterstützt", unreadable("'unterstützt'")),
    ("c1 [1], 支持", unreadable("'支持'")),
    ("c1 1 \x1b[2J\u202e" + "x" * 100_000, unreadable(r"'\x1b[2J\u202e" + "x" * 34 + "…'")),
    ("c1 1 2", unreadable("'2'")),
    *((text, None) for text in ("", " ", "supported", "c1", "c1:", ": c1", "\n")),
]


@pytest.mark.parametrize(("said", "read"), SAID, ids=lambda each: str(each)[:40])
def test_what_is_said_of_a_claim_concerns_that_claim_only(said: Any, read: dict[str, Any] | None) -> None:
    *first, second = read_reply(json.dumps({"verdicts": [said, member("c2")]}), FORM)
    assert (second.label, second.verdict, second.problem) == ("c2", Verdict.SUPPORTED, "")
    if read is None:
        assert first == []
    else:
        (answer,) = first
        assert {name: getattr(answer, name) for name in read} == read
        assert bool(answer.problem) is (answer.verdict is Verdict.UNVERIFIED)


def test_a_member_given_twice_is_told() -> None:
    (answer,) = read_reply(BEGINS_AS_OURS["a member twice"].text, FORM)
    assert "twice" in answer.problem


# ----------------------------------------------------------------------------------------------------- parts

TRUE, ABSENT, FALSE, PARTLY = (
    {"text": "It costs $50.", "verdict": "SUPPORTED"},
    {"text": " It has a trial. ", "verdict": "UNSUPPORTED"},
    {"text": "It is yearly.", "verdict": "CONTRADICTED"},
    {"text": "It is cheap and blue.", "verdict": "PARTIALLY_SUPPORTED"},
)
IS_FALSE: Final = "CONTRADICTED: It is yearly."
IS_ABSENT: Final = "UNSUPPORTED: It has a trial."
OWN: Final = "the model's own"


@pytest.mark.parametrize(
    ("parts", "said", "verdict", "evidence", "reasoning"),
    [
        ([TRUE, TRUE], "SUPPORTED", "SUPPORTED", (1,), OWN),
        # Whatever the model makes of its parts; there is no proof of another verdict, and it is said which.
        ([TRUE, FALSE, ABSENT], "SUPPORTED", "CONTRADICTED", (), f"Of its parts, {IS_FALSE}"),
        ([TRUE, FALSE], "PARTIALLY_SUPPORTED", "CONTRADICTED", (), f"Of its parts, {IS_FALSE}"),
        ([TRUE, FALSE], "NONSENSE", "CONTRADICTED", (), f"Of its parts, {IS_FALSE}"),
        ([ABSENT, FALSE], "UNSUPPORTED", "CONTRADICTED", (1,), f"Of its parts, {IS_FALSE}"),
        ([TRUE, FALSE], "CONTRADICTED", "CONTRADICTED", (1,), OWN),
        ([ABSENT, ABSENT], "SUPPORTED", "UNSUPPORTED", (), f"Of its parts, {IS_ABSENT}; {IS_ABSENT}"),
        ([ABSENT], "NONSENSE", "UNSUPPORTED", (), f"Of its parts, {IS_ABSENT}"),
        ([TRUE, ABSENT], "SUPPORTED", "PARTIALLY_SUPPORTED", (1,), f"Of its parts, {IS_ABSENT}"),
        ([PARTLY], "SUPPORTED", "PARTIALLY_SUPPORTED", (1,), None),
        ([FALSE] * 5, "SUPPORTED", "CONTRADICTED", (), f"Of its parts, {f'{IS_FALSE}; ' * 3}and 2 more"),
        # Parts that are supported do not outvote a doubt about the whole.
        ([TRUE], "PARTIALLY_SUPPORTED", "PARTIALLY_SUPPORTED", (1,), OWN),
        ([TRUE], "UNSUPPORTED", "UNSUPPORTED", (1,), OWN),
        ([TRUE, TRUE], "CONTRADICTED", "CONTRADICTED", (1,), OWN),
        ([TRUE], "NONSENSE", "UNVERIFIED", (), ""),
    ],
)
def test_the_verdict_on_a_claim_is_that_of_its_parts(
    parts: list[dict[str, str]], said: str, verdict: str, evidence: tuple[int, ...], reasoning: str | None
) -> None:
    text = verdicts(member("c1", said, evidence=[1], reasoning=OWN, parts=parts))
    (answer,) = read_reply(text, APART)
    assert (answer.verdict, answer.evidence) == (verdict, evidence)
    assert reasoning in {None, answer.reasoning}
    if verdict != "UNVERIFIED":
        assert [part.text for part in answer.parts] == [part["text"].strip() for part in parts]


@pytest.mark.parametrize(
    "parts",
    [[TRUE, TRUE | {"verdict": "MAYBE"}], [TRUE, "B."], [TRUE | {"text": 1}], [TRUE] * 21, TRUE],
    ids=["verdict", "text", "number", "many", "object"],
)
def test_a_part_that_can_not_be_read_spoils_its_claim(parts: Any) -> None:
    """It might be the one that is wrong."""
    first, second = read_reply(verdicts(member("c1", parts=parts), member("c2", parts=[])), APART)
    assert first.verdict is Verdict.UNVERIFIED
    assert "parts" in first.problem
    assert second.verdict is Verdict.SUPPORTED


# ----------------------------------------------------------------------------------------- what is asked for

FORMS: Final = [ReplyForm(reasoning, decompose) for reasoning in Reasoning for decompose in (False, True)]
# What servers that make a grammar of a pattern don't all know, or read otherwise: look-arounds, groups that
# capture nothing, classes by a letter, the dot (which lets a quote end the text), characters by number.
UNPORTABLE: Final = re.compile(r"\(\?|\\[dwsbDWSB]|\.|\\u|\\x")


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_the_schema_is_strict_and_what_is_written_fits_and_is_read_as_meant(form: ReplyForm) -> None:
    """Strict structured outputs want every member required and no other allowed, at each level."""
    schema = form.schema()
    Draft202012Validator.check_schema(schema)
    name = "v" if form.compact else "verdicts"
    items = schema["properties"][name]["items"]
    levels = [schema] if form.compact else [schema, items]
    if form.decompose:
        levels.append(items["properties"]["parts"]["items"])
    for level in levels:
        assert level["additionalProperties"] is False
        assert level["required"] == list(level["properties"])
    if form.compact:
        assert (items["pattern"][0], items["pattern"][-1]) == ("^", "$"), "llama.cpp takes no other"
        assert not UNPORTABLE.search(items["pattern"])
    else:
        example = json.loads(form.example().replace('"verdict":"…"', '"verdict":"SUPPORTED"'))
        assert tuple(example["verdicts"][0]) == form.members
        Draft202012Validator(schema).validate(example)
    for verdict in replies.VERDICTS.values():
        supported = verdict is Verdict.SUPPORTED
        reply = form.write([Answer("c12", verdict, 0.6, (3, 4), (7,), 'Said "so" \\ there.')])
        Draft202012Validator(schema).validate(json.loads(reply))
        (answer,) = read_reply(reply, form)
        assert (answer.label, answer.verdict, answer.evidence) == ("c12", verdict, (3, 4))
        assert answer.confidence == 0.6
        reasoned = form.reason_when_supported or (form.reasons and not supported)
        if form.compact:
            assert answer.against == ((7,) if supported else ())
            assert answer.reasoning == ("Said 'so' / there." if reasoned else "")
        else:
            assert answer.reasoning == ('Said "so" \\ there.' if reasoned else "")


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
    pattern = FORM.schema()["properties"]["v"]["items"]["pattern"]
    assert re.fullmatch(pattern, "c1 1 supported")
    assert not re.fullmatch(pattern, text)


@pytest.mark.parametrize(
    ("changes", "is_compact", "places"),
    [
        ({}, True, ("verdict", "reasoning")),
        ({"reasoning": "before"}, False, ("reasoning", "verdict")),
        ({"reasoning": "after"}, True, ("verdict", "reasoning")),
        ({"reasoning": "none"}, True, ("verdict",)),
        ({"decompose": True}, False, ("verdict", "reasoning")),
    ],
)
def test_the_form_is_compact_where_no_text_stands_ahead_of_the_verdict(
    changes: dict[str, Any], is_compact: bool, places: tuple[str, ...]
) -> None:
    form = ReplyForm.of(settings(**changes))
    assert form.compact is is_compact
    assert list(form.schema()["properties"]) == ["v" if is_compact else "verdicts"]
    assert form.example().startswith('{"v":[' if is_compact else '{"verdicts":[')
    assert tuple(name for name in form.members if name in {"verdict", "reasoning"}) == places
