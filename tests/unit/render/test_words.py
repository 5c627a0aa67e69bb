"""Text of unknown origin can't steer a terminal, and spans into it stay true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.render import duration, one_line, score, symbols_for
from guardrail.render.words import visible


@given(st.text(st.characters(codec=None)))
def test_visible_keeps_every_character_in_its_place(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert not any(ord(char) < 32 and char != "\n" for char in shown)
    assert not any(0x7F <= ord(char) < 0xA0 for char in shown)
    shown.encode()


def test_visible_leaves_no_separator_of_lines() -> None:
    assert visible("a\u2028b\u2029c\nd") == "a\ufffdb\ufffdc\nd"


def test_visible_leaves_every_script_as_it_is() -> None:
    text = "Größe 5 µg · 価格は三千円です。 मात्रा ५ मि.ग्रा। 👩\u200d🔬"
    assert visible(text) == text


def test_escape_sequences_and_direction_overrides_are_disarmed() -> None:
    assert visible("\x1b[31m\u202eevil\x9b0m\r") == "\ufffd[31m\ufffdevil\ufffd0m\ufffd"


@given(st.text(st.characters(codec=None)), st.integers(min_value=4, max_value=100))
def test_one_line_is_one_line_of_at_most_the_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.isprintable() or all(char.isprintable() or ord(char) > 0x7F for char in line)
    assert "\n" not in line
    assert "\x1b" not in line


def test_marks_are_one_cell_and_different() -> None:
    for encoding in ("utf-8", "UTF8", "ascii", "latin-1"):
        symbols = symbols_for(encoding)
        for marks in (symbols.verdicts, symbols.decisions):
            assert len(set(marks.values())) == len(marks)
            assert all(len(mark) == 1 for mark in marks.values())


def test_an_encoding_without_the_marks_gets_ascii_ones() -> None:
    symbols = symbols_for("iso-8859-1")
    everything = "".join(
        (*symbols.verdicts.values(), *symbols.decisions.values(), symbols.ellipsis, symbols.arrow)
    )
    assert everything.isascii()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (0.25, "0.25 ms"), (42.4, "42 ms"), (1234.0, "1.23 s"), (90_000.0, "1.5 min")],
)
def test_durations(value: float | None, shown: str) -> None:
    assert duration(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(None, "-"), (1.0, "1.00"), (0.999, "0.99"), (0.5, "0.50")])
def test_a_score_is_never_rounded_up_to_perfect(value: float | None, shown: str) -> None:
    assert score(value) == shown
