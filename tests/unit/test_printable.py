"""Untrusted text becomes fit for a terminal, and stays readable in every script."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.printable import escape_controls, escape_in_json, shorten


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("\x1b[2J\x07", "\\x1b[2J\\x07"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202ecod.exe", "user\\u202ecod.exe"),
        ("\u2028\u2066\ufeff", "\\u2028\\u2066\\ufeff"),
        ("\ud800", "\\ud800"),
        ("50 € für 東京, नमस्ते 👩‍⚕️", "50 € für 東京, नमस्ते 👩‍⚕️"),
    ],
)
def test_escape_controls(text: str, expected: str) -> None:
    assert escape_controls(text) == expected


def test_lines_can_be_kept() -> None:
    assert escape_controls("a\n\tb\r\x1b", keep_lines=True) == "a\n\tb\\r\\x1b"


@given(st.text(st.characters(), max_size=200))
def test_nothing_that_steers_a_terminal_or_breaks_an_encoder_is_left(text: str) -> None:
    escaped = escape_controls(text)
    escaped.encode()
    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in escaped)
    assert escape_controls(escaped) == escaped


def test_json_stands_for_the_same_value_without_what_steers_a_terminal() -> None:
    value = {"a": "\x1b[31m\x7f\x85\x9b31m\u2028 \u202e\U000e0041 50 € 東京"}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    escaped = escape_in_json(text)
    assert json.loads(escaped) == value
    assert {char for char in escaped if not (char.isascii() and char.isprintable())} == set("\n€東京")
    assert escaped.splitlines()[-1] == "}"
    assert escape_in_json('"\ud800"') == '"\\ud800"'


def test_shorten_keeps_to_its_limit() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
