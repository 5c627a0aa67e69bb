"""What the command line prints, and how: consoles, errors, untrusted text."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

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
    text = safe_lines(message)
    err().print(f"[bold red]error:[/] {text}", soft_wrap=True)


def safe_lines(text: str) -> str:
    """As ``safe``, but line breaks stay."""
    return escape(escape_controls(text, keep_lines=True))
