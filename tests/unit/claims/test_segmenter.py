"""Blocks, bodies and bounds of segments."""

from __future__ import annotations

import pytest

from guardrail.claims import Segment, Segmenter
from guardrail.events import SegmentKind


def segments(text: str, *, bound: int = 600, size: int = 1) -> list[Segment]:
    segmenter = Segmenter(max_segment_chars=bound)
    cut = [s for i in range(0, len(text), size) for s in segmenter.feed(text[i : i + size])]
    return cut + segmenter.finish()


def bodies(text: str) -> list[tuple[str, str]]:
    return [(s.kind.value, s.body_text) for s in segments(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- one\n* two\n+ three\n• four\n", [("list_item", w) for w in ("one", "two", "three", "four")]),
        (
            "1. one\n2) two\n10. ten\na) b\n(c) d\n(ii) e\n",
            [("list_item", w) for w in ("one", "two", "ten", "b", "d", "e")],
        ),
        ("- [ ] open\n- [x] done\n", [("list_item", "open"), ("list_item", "done")]),
        (
            "Intro:\n- one\n  - two\n    deeper",
            [("sentence", "Intro:"), ("list_item", "one"), ("list_item", "two"), ("sentence", "deeper")],
        ),
        ("- One. Two.\n- Three", [("list_item", "One."), ("list_item", "Two."), ("list_item", "Three")]),
        ("[1] Smith, 2020\n[2]: https://a.b\n", [("list_item", "Smith, 2020"), ("list_item", "https://a.b")]),
        (
            "✅ free\n❌ no returns\n1️⃣ first\n",
            [("list_item", w) for w in ("✅ free", "❌ no returns", "1️⃣ first")],
        ),
        ("-5 degrees is cold\n", [("sentence", "-5 degrees is cold")]),
        ("**bold** start\n", [("sentence", "**bold** start")]),
        ("A. Smith came\n", [("sentence", "A. Smith came")]),
        ("It rose to\n50. Then it fell.", [("sentence", "It rose to\n50."), ("sentence", "Then it fell.")]),
        ("# One\n## Two ##\nText", [("heading", "One"), ("heading", "Two"), ("sentence", "Text")]),
        ("#5 is alive\n", [("sentence", "#5 is alive")]),
        ("**Dosage**\nTake one.", [("heading", "**Dosage**"), ("sentence", "Take one.")]),
        ("**Dosage:**\nTake one.", [("heading", "**Dosage:**"), ("sentence", "Take one.")]),
        ("**Take 5 mg**\nNot more.", [("sentence", "**Take 5 mg**"), ("sentence", "Not more.")]),
        ("One\n\n---\n\nTwo", [("sentence", "One"), ("blank", "---"), ("sentence", "Two")]),
        (
            "> Quoted text. More\n> of it\n\nPlain",
            [("sentence", "Quoted text."), ("sentence", "More\n> of it"), ("sentence", "Plain")],
        ),
        ("Plain\n> quoted", [("sentence", "Plain"), ("sentence", "quoted")]),
        (
            "```py\nx = 1.  # Not. A. Sentence\n```\nText.",
            [("code", "```py\nx = 1.  # Not. A. Sentence\n```"), ("sentence", "Text.")],
        ),
        ("~~~\n```\n~~~\nText", [("code", "~~~\n```\n~~~"), ("sentence", "Text")]),
        ("````\n```\n````\nText", [("code", "````\n```\n````"), ("sentence", "Text")]),
        ("```inline``` \nText", [("code", "```inline```"), ("sentence", "Text")]),
        ("Text\n```\nnever closed. Really.", [("sentence", "Text"), ("code", "```\nnever closed. Really.")]),
        ("`code` in text. More", [("sentence", "`code` in text."), ("sentence", "More")]),
        ("\n \n", [("blank", "")]),
    ],
)
def test_lines_are_read_as_markdown(text: str, expected: list[tuple[str, str]]) -> None:
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
