"""Numbered sentences: verbatim, the same in every call, and not to be forged by the texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.events import Context
from guardrail.judges.llm.prompt import MAX_SENTENCE_CHARS, Sentences, defuse_numbers


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
