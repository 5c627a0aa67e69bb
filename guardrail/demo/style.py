"""Words, symbols and colours of the views. Colour never says what a word or symbol does not say too."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from guardrail.events import Decision, Verdict
from guardrail.printable import escape_controls

VERDICT_STYLES: Final = {
    Verdict.SUPPORTED: "green",
    Verdict.PARTIALLY_SUPPORTED: "yellow",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.CONTRADICTED: "bold red",
    Verdict.UNVERIFIED: "magenta",
}
DECISION_STYLES: Final = {
    Decision.RELEASE: "green",
    Decision.FLAG: "yellow",
    Decision.REDACT: "dark_orange",
    Decision.BLOCK: "red",
}
DECISION_WORDS: Final = {
    Decision.RELEASE: "RELEASED",
    Decision.FLAG: "FLAGGED",
    Decision.REDACT: "REDACTED",
    Decision.BLOCK: "BLOCKED",
}


@dataclass(frozen=True, slots=True)
class Symbols:
    """Marks of one cell each, in what the output's encoding can carry."""

    verdicts: dict[Verdict, str]
    decisions: dict[Decision, str]
    ellipsis: str
    dot: str
    cursor: str
    arrow: str
    quotes: tuple[str, str]
    rule: str


_UNICODE: Final = Symbols(
    verdicts={
        Verdict.SUPPORTED: "✔",
        Verdict.PARTIALLY_SUPPORTED: "≈",
        Verdict.UNSUPPORTED: "?",
        Verdict.CONTRADICTED: "✘",
        Verdict.UNVERIFIED: "!",
    },
    decisions={Decision.RELEASE: "✔", Decision.FLAG: "⚑", Decision.REDACT: "▒", Decision.BLOCK: "✘"},
    ellipsis="…",
    dot="·",
    cursor="▌",
    arrow="→",
    quotes=("“", "”"),
    rule="─",
)
_ASCII: Final = Symbols(
    verdicts={
        Verdict.SUPPORTED: "+",
        Verdict.PARTIALLY_SUPPORTED: "~",
        Verdict.UNSUPPORTED: "?",
        Verdict.CONTRADICTED: "x",
        Verdict.UNVERIFIED: "!",
    },
    decisions={Decision.RELEASE: "+", Decision.FLAG: "!", Decision.REDACT: "#", Decision.BLOCK: "x"},
    ellipsis="...",
    dot="-",
    cursor="_",
    arrow="->",
    quotes=('"', '"'),
    rule="-",
)


def symbols_for(encoding: str) -> Symbols:
    """Unicode marks where the encoding has them, ASCII ones elsewhere."""
    return _UNICODE if encoding.lower().replace("-", "").startswith("utf") else _ASCII


def visible(text: str) -> str:
    """Text of unknown origin, made harmless for a terminal.

    Control characters (escape sequences begin with one), direction overrides, zero-width and unassigned
    characters and lone surrogates become U+FFFD, one for one, so that spans stay true. New lines stay and
    tabs become spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char == "\n":
        return char
    if char == "\t":
        return " "
    if char == "\u200d" or not unicodedata.category(char).startswith("C"):
        return char
    return "\ufffd"


def one_line(text: str, limit: int, ellipsis: str = "…") -> str:
    """Text of unknown origin on one line of at most ``limit`` characters, white space folded."""
    # The slice keeps the cost bounded for a text of megabytes of which one line is shown.
    line = escape_controls(" ".join(text[: 8 * limit + 64].split()))
    return line if len(line) <= limit else line[: max(0, limit - len(ellipsis))].rstrip() + ellipsis


def milliseconds(value: float | None) -> str:
    """A duration to read: ``-`` for none, ms under a second, then seconds."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def score(value: float | None) -> str:
    """Two decimals, never rounded up to 1.00; ``-`` when nothing was checked."""
    if value is None:
        return "-"
    return "1.00" if value >= 1.0 else f"{min(value, 0.99):.2f}"
