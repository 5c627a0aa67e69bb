"""Blocks, bodies and bounds of segments."""

from __future__ import annotations

import pytest

from guardrail.claims import Segment, Segmenter
from guardrail.events import SegmentKind
from tests.support.tables import table


def segments(text: str, *, bound: int = 600, size: int = 1) -> list[Segment]:
    segmenter = Segmenter(max_segment_chars=bound)
    cut = [s for i in range(0, len(text), size) for s in segmenter.feed(text[i : i + size])]
    return cut + segmenter.finish()


def bodies(text: str) -> list[list[str]]:
    return [[s.kind.value, s.body_text] for s in segments(text)]


@pytest.mark.parametrize(("text", "expected"), table(__file__, "segmenter.yaml")["markdown"])
def test_lines_are_read_as_markdown(text: str, expected: list[list[str]]) -> None:
    assert bodies(text) == expected


def test_a_table_is_its_rows_and_its_header_is_known() -> None:
    rows = segments("| Plan | Price |\n|:--|--:|\n| Basic | $1 |\n\n| A | B |\n| C | D |\n\nText | no row")
    assert [(s.kind, s.body_text, s.header) for s in rows] == [
        (SegmentKind.TABLE_ROW, "Plan | Price", True),
        (SegmentKind.TABLE_ROW, ":--|--:", False),
        (SegmentKind.TABLE_ROW, "Basic | $1", False),
        (SegmentKind.TABLE_ROW, "A | B", False),
        (SegmentKind.TABLE_ROW, "C | D", False),
        (SegmentKind.SENTENCE, "Text | no row", False),
    ]


def test_a_table_without_outer_pipes() -> None:
    rows = segments("Prices:\n\nPlan | Price\n:--- | ---\nBasic | $1\nPro | $2\n\nText")
    assert [(s.kind.value, s.body_text, s.header) for s in rows] == [
        ("sentence", "Prices:", False),
        ("table_row", "Plan | Price", True),
        ("table_row", ":--- | ---", False),
        ("table_row", "Basic | $1", False),
        ("table_row", "Pro | $2", False),
        ("sentence", "Text", False),
    ]


def test_a_second_table_has_its_own_header() -> None:
    rows = segments("| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n")
    assert [s.body_text for s in rows if s.header] == ["a", "b"]


@pytest.mark.parametrize(
    "line", ["- item. two\n", "# heading\n", "1. item\n", "> quote\n\n", "```\ncode\n```\n"]
)
def test_a_line_of_its_own_is_final_at_its_end(line: str) -> None:
    segmenter = Segmenter()
    assert "".join(s.text for s in segmenter.feed(line)) == line


def test_running_text_is_cut_between_words_at_the_bound() -> None:
    text = "word " * 300
    cut = segments(text, bound=100)
    assert [len(s.text) for s in cut] == [100] * 15
    assert all(s.text.startswith("word") and s.kind is SegmentKind.SENTENCE for s in cut)


def test_the_bound_prefers_the_end_of_a_sentence_in_lower_case() -> None:
    text = "it is so here. " * 10
    assert {s.text for s in segments(text, bound=50)} == {"it is so here. " * 3, "it is so here. "}


def test_text_without_spaces_is_cut_at_the_bound() -> None:
    assert [len(s.text) for s in segments("x" * 250, bound=100)] == [100, 100, 50]


def test_a_bound_parts_no_character() -> None:
    """Combining marks, joined emoji and CR LF stay together."""
    for unit in ("e\u0301\u0302", "👩\u200d🚀", "\r\n", "👍🏽"):
        for s in segments("x" + unit * 200, bound=50):
            assert s.text.startswith(("x", unit))


def test_long_code_is_cut_at_line_ends() -> None:
    code = "```\n" + "line. of code\n" * 40 + "```\nText"
    cut = segments(code, bound=100)
    assert {s.kind for s in cut[:-1]} == {SegmentKind.CODE}
    assert all(s.text.endswith("\n") for s in cut[:-1])
    assert cut[-1].body_text == "Text"


def test_a_heading_too_long_for_one_is_prose() -> None:
    """Headings go unchecked; a whole answer behind a ``#`` must not."""
    (long,) = segments("# " + "The dose is 5 mg. " * 12)
    assert long.kind is SegmentKind.SENTENCE
    assert {s.kind for s in segments("# " + "The dose is 5 mg. " * 12, bound=100)} == {SegmentKind.SENTENCE}


def test_a_bound_too_small_to_hold_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Segmenter(max_segment_chars=15)


def test_nothing_in_nothing_out() -> None:
    segmenter = Segmenter()
    assert segmenter.feed("") == []
    assert segmenter.finish() == []
