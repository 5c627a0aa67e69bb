"""Readers that go away, as in ``guardrail … | head``."""

from __future__ import annotations

import os
from typing import IO, Final

EXIT_PIPE_CLOSED: Final = 128 + 13
"""As a shell reports a program that SIGPIPE ended."""


def discard(stream: IO[str]) -> None:
    """Send what is still to come on ``stream`` nowhere, so that closing it at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
