"""Outputs that are not all a program could wish: readers that go away, encodings that lack a character."""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Final

EXIT_PIPE_CLOSED: Final = 128 + 13
"""As a shell reports a program that SIGPIPE ended."""


def discard(stream: IO[str]) -> None:
    """Send what is still to come on ``stream`` nowhere, so that closing it at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def replace_unencodable() -> None:
    """Print ``?`` for a character that stdout's or stderr's encoding lacks: that is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
