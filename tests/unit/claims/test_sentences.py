"""Where sentences end: one text a case, ``|`` standing where it is to be cut."""

from __future__ import annotations

import pytest

from guardrail.claims import Segmenter
from guardrail.events import SegmentKind
from guardrail.evidence.sentences import sentence_spans
from tests.support.tables import table
from tests.unit.claims.test_segmenter import segments

SENTENCES = table(__file__, "sentences.yaml")


def cut(text: str, size: int) -> list[str]:
    found = segments(text, size=size)
    assert all(s.kind is SegmentKind.SENTENCE for s in found)
    return [s.text for s in found]


@pytest.mark.parametrize("text", SENTENCES["one"])
def test_is_one_sentence(text: str) -> None:
    assert cut(text, 1) == [text]
    assert cut(text, len(text)) == [text]


@pytest.mark.parametrize("marked", SENTENCES["cut"])
def test_is_cut_where_marked(marked: str) -> None:
    """White space behind a sentence belongs to it, so a mark stands before the space."""
    text = marked.replace("|", "")
    expected = [part for part in marked.split("|") if part]
    pieces = cut(text, 1)
    assert [p.strip() for p in pieces] == [p.strip() for p in expected]
    assert "".join(pieces) == text
    assert not any(p[0].isspace() for p in pieces)


@pytest.mark.parametrize("marked", [*SENTENCES["one"], *SENTENCES["cut"]])
def test_documents_end_sentences_as_answers_do(marked: str) -> None:
    """On one line: what a line break means is another matter for each."""
    text = marked.replace("|", "")
    if "\n" not in text:
        spans = zip(*sentence_spans(text), strict=True)
        assert [text[a:b] for a, b in spans] == [piece.strip() for piece in cut(text, len(text))]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("It costs $5. T", 13),
        ("これは文です。次", 7),
        ("Is it? Y", 7),
        ("First\n\n", 7),
        ("He met Dr. Smith. T", 18),
        ("It closes at 5 p.m. The d", 24),
        ("It is so. [3] N", 14),
        ("- item\n", 7),
        ("# Heading\n", 10),
        ("| a | b |\n| c", 13),
    ],
)
def test_is_final_with_the_character_that_decides(text: str, needed: int) -> None:
    """Fed one by one, the first segment comes with the character at ``needed`` at the latest."""
    segmenter = Segmenter()
    came = next(i for i, c in enumerate(text) if segmenter.feed(c))
    assert came <= needed
