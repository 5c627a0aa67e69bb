"""How verdicts and decisions look on a terminal: words, colours and marks; and tables without lines.

Colour never says what a word or mark does not say too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardrail.events import Decision, Verdict

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


def decided(decision: Decision, mode: str | None) -> tuple[str, str]:
    """The decision in words and its style; of an answer that was only observed, what it would have been."""
    words, style = DECISION_WORDS[decision], DECISION_STYLES[decision]
    if mode == "observe" and decision is not Decision.RELEASE:
        return f"would be {words}", style
    return words, f"bold {style}"


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


def table(*columns: str, right: Collection[str] = (), fold: bool = False) -> Table:
    """An empty table, columns in ``right`` flush right. With ``fold`` long cells break anywhere."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        shown.add_column(
            name, justify="right" if name in right else "left", overflow="fold" if fold else "ellipsis"
        )
    return shown


def print_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], *, right: Collection[str] = ()
) -> None:
    """Rows folded to the width of a terminal; elsewhere a line each, for grep."""
    if console.is_terminal:
        shown = table(*columns, right=right, fold=True)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
        return
    lines = [columns, *([cell.plain for cell in row] for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        padded = (set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True))
        console.print(Text("  ".join(padded).rstrip()), soft_wrap=True)
