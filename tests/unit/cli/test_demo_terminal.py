"""The live view on a (pseudo) terminal: it draws, needs no key, and leaves the terminal in order."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("pty", reason="pseudo terminals are a thing of POSIX")

from tests.support.terminal import OnTerminal

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def test_it_draws_live_ends_by_itself_and_shows_the_cursor_again(tmp_path: Path) -> None:
    status, text = OnTerminal(tmp_path, "demo", "--speed", "20", "--only", "date").ended()
    assert status == 0, text
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert "FLAGGED" in text
    assert "guardrail demo" in text
    assert "\x1b[33m" in text


def test_a_simple_terminal_gets_plain_lines(tmp_path: Path) -> None:
    status, text = OnTerminal(tmp_path, "demo", "--speed", "100", "--only", "date", TERM="dumb").ended()
    assert status == 0, text
    assert "\x1b" not in text
    assert text.startswith("1 prepared answer is written token by token")
    assert "started  date-changed" in text


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_the_terminal_in_order(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    running = OnTerminal(tmp_path, "demo")
    running.read_until("guardrail demo")
    running.process.send_signal(number)
    found, text = running.ended()
    assert found == status, text
    assert text.rindex(SHOW) > text.rindex(HIDE)
    assert "Traceback" not in text
