"""What a terminal shows."""

from __future__ import annotations

import io

from rich.console import Console


def shown(card: object, width: int = 100, *, colour: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
        no_color=not colour,
        highlight=False,
    )
    console.print(card)
    return stream.getvalue()
