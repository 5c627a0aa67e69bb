"""Which contexts are conversations, and where their turns begin."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.evidence.sentences import find_turns, speaker_of
from guardrail.evidence.shown import ShownText

CALL = """Call of 3 May
[10:02] Agent 2: Good morning. How can I help?
[10:02] Customer: My bill is wrong. It should be lower.
[10:03] Agent 2: Let me look: I see it now.
[10:05] Customer: Thank you."""


def speakers(text: str) -> list[str]:
    return [text[start:end] for start, end in zip(*find_turns(text), strict=True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CALL, ["[10:02] Agent 2:", "[10:02] Customer:", "[10:03] Agent 2:", "[10:05] Customer:"]),
        ("**User**: Hi\n\n**Bot**: Hi.\n\n**User**: Bye\n\n**Bot**: Bye.", ["**User**:", "**Bot**:"] * 2),
        ("Dr. Osei (GP): Sit.\nAnn: No.\nDr. Osei (GP): Do.\nAnn: No.", ["Dr. Osei (GP):", "Ann:"] * 2),
        ("  Ann: Hi.\r\n\r\n  Bo: Hi.\r\n  Ann: Bye.\r\n  Bo: Bye.\r\n", ["Ann:", "Bo:"] * 2),
        ("נועה: שלום.\nדני: מה נשמע?\nנועה: טוב.\nדני: יופי.", ["נועה:", "דני:"] * 2),
        ("Q: Is it dry?\nA: It is.\nQ: Is it warm?\nA: It isn't.", ["Q:", "A:"] * 2),
    ],
)
def test_turns_begin_with_who_speaks(text: str, expected: list[str]) -> None:
    assert speakers(text) == expected


@pytest.mark.parametrize(
    "other",
    [
        "Jane Doe, CEO",
        "Caller #2",
        "Jose\u0301",
        "“Bo”",
        "&lt;Bo&gt;",
        "प्रिया",
        "\u200fדני",
        "[10:02] Jane, CEO",
    ],
)
def test_speakers_with_unusual_names_take_the_word_from_who_spoke_before(other: str) -> None:
    text = f"Host: Hello.\n{other}: We grew. It was hard.\nHost: Why?\n{other}: It rained.\n" * 2
    assert speakers(text) == ["Host:", f"{other}:"] * 4
    index = EvidenceIndex([Context(id="a", text=text)])
    spoken = speaker_of(index.layout.sentences, index.turns, 2)
    assert spoken is not None
    assert index.shown(0)[slice(*spoken)] == f"{ShownText(other).text}:"


@pytest.mark.parametrize(
    "line", ["- Price: 5 euros", "* Price: 5 euros", "1. Price: 5 euros", "9:30: open", "> Price: 5"]
)
def test_items_of_a_list_in_a_turn_begin_none(line: str) -> None:
    text = f"Ann: Hi.\nBo: Look here.\n{line}\nAnn: And now?\nBo: The same.\n{line}"
    assert speakers(text) == ["Ann:", "Bo:"] * 2


def test_an_unusual_label_that_stands_once_begins_no_turn() -> None:
    assert speakers("Ann: Hi.\nBo: Hm.\nWell, look: rain.\nAnn: Bye.\nBo: Bye.") == ["Ann:", "Bo:"] * 2


def test_turns_take_little_more_than_eight_bytes_each() -> None:
    """A hostile context has hundreds of thousands of them."""
    turns = find_turns("a: b\n" * 5_000)
    assert len(turns.starts) == 5_000
    assert sum(sys.getsizeof(column) for column in turns) < 9 * 5_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Dose: 5 mg\nStorage: cool\nPrice: 3 euros\nMaker: Acme\nUse: daily",
        "Ann: Hi.\nBo: Hi.\nAnn: Bye.",
        "Note: it rains.\nIt rained.\nIt will rain.\nNote: bring a coat.\nIt pours.\n" * 3,
        "see https://a.b/\nsee https://a.c/\nsee https://a.d/\nsee https://a.e/",
        "10:30 tea\n10:30 cake\n10:30 milk\n10:30 buns",
    ],
)
def test_what_is_no_conversation_has_no_turns(text: str) -> None:
    assert speakers(text) == []


def test_sentences_know_who_says_them() -> None:
    index = EvidenceIndex([Context(id="a", text="It is dry. It is warm."), Context(id="b", text=CALL)])
    sentences = index.layout.sentences
    texts = [
        index.contexts[context].text[start:end]
        for context, start, end in zip(sentences.context, sentences.start, sentences.end, strict=True)
    ]
    lower = texts.index("It should be lower.")
    spoken = speaker_of(sentences, index.turns, lower)
    assert spoken is not None
    assert CALL[slice(*spoken)] == "[10:02] Customer:"
    assert speaker_of(sentences, index.turns, lower - 1) is None
    assert speaker_of(sentences, index.turns, 0) is None


HOSTILE = st.text(alphabet="aBc:[] \t\r\n*(.,#", max_size=300)


@given(HOSTILE)
def test_turns_ascend_and_lie_within_the_text(text: str) -> None:
    borders = [border for turn in zip(*find_turns(text), strict=True) for border in turn]
    assert borders == sorted(borders)
    assert all(0 <= border <= len(text) for border in borders)
