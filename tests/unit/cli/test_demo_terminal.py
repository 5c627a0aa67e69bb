"""The live view on a (pseudo) terminal: it draws, needs no key, and leaves the terminal in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.conftest import clean_environment

pty = pytest.importorskip("pty", reason="pseudo terminals are a thing of POSIX")

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class OnTerminal:
    """A ``guardrail`` process whose standard streams are a terminal of 80 columns and 24 lines."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
        import fcntl
        import struct
        import termios

        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = clean_environment(**{"TERM": "xterm-256color", "LINES": "24"} | env)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from guardrail.cli import main; main()", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self._text = b""

    def read_until(self, words: str) -> str:
        """What came, up to and with ``words``, or until the program ended."""
        while words.encode() not in self._text:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                data = b""
            if not data:
                break
            self._text += data
        return self._text.decode(errors="replace")

    def ended(self) -> tuple[int, str]:
        text = self.read_until("\0never written\0")
        status = self.process.wait(timeout=60)
        os.close(self._ours)
        return status, text


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
    assert text.startswith("started")


def test_no_color_on_a_terminal_leaves_words_and_symbols(tmp_path: Path) -> None:
    status, text = OnTerminal(tmp_path, "demo", "--speed", "20", "--only", "date", NO_COLOR="1").ended()
    assert status == 0
    assert not any(f"\x1b[{code}m" in text for code in (*range(30, 38), *range(90, 98)))
    assert "⚑ FLAGGED" in text
    assert "✘ CONTRADICTED" in text


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
