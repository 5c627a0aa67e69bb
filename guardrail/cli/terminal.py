"""What the command line prints, and how: consoles, untrusted text, readers that go away, errors.

A command that fails prints one clear message and ends with a meaningful status, without a traceback.
"""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from guardrail.errors import ConfigError, GuardrailError
from guardrail.printable import escape_controls


def out() -> Console:
    """Results, on stdout. Colour follows the terminal and ``NO_COLOR``."""
    return Console(highlight=False)


def err() -> Console:
    """Everything that is not the result, on stderr."""
    return Console(stderr=True, highlight=False)


def safe(text: str) -> str:
    """``text`` from anywhere, fit for a console with markup: control characters and brackets escaped."""
    return escape(escape_controls(text))


def print_error(message: str) -> None:
    """One message on stderr; never wrapped, so that paths can be copied and lines be searched."""
    text = escape(escape_controls(message, keep_lines=True))
    err().print(f"[bold red]error:[/] {text}", soft_wrap=True)


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


EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2


class GuardrailGroup(TyperGroup):
    """The root of the commands. Errors raised on purpose, and those of the system, become one message.

    Anything else is a bug and keeps its traceback, as does everything with ``--debug``.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (GuardrailError, OSError) as error:
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):
                raise

            print_error(_message(error))
            raise typer.Exit(EXIT_USAGE if isinstance(error, ConfigError) else EXIT_FAILURE) from None


def _message(error: GuardrailError | OSError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__
