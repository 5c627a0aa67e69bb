"""Programs on a pseudo terminal, as a person would run them."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.unit.cli.conftest import clean_environment


class OnTerminal:
    """A ``guardrail`` process whose standard streams are a terminal of 80 columns and 24 lines."""

    def __init__(self, folder: Path, *arguments: str, **env: str) -> None:
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

    def write(self, keys: bytes) -> None:
        """As typed."""
        os.write(self._ours, keys)

    def ended(self) -> tuple[int, str]:
        text = self.read_until("\0never written\0")
        status = self.process.wait()
        os.close(self._ours)
        return status, text
