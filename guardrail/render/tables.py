"""Tables without lines, for a terminal; as plain lines for files and pipes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text


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
