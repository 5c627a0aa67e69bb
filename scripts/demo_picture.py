"""Draw docs/demo.svg: two answers of ``guardrail demo``, as it shows them on a terminal.

    .venv/bin/python scripts/demo_picture.py

The answers go through the same guard as in the demo, and nothing in the picture is typed by hand. Draw it
again when verdicts, scores or the demo's cards change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console

from guardrail.cli.demo import play_all
from guardrail.config import LoggingSettings
from guardrail.demo import Board, BoardEvent, load_demo_settings, load_examples
from guardrail.events import Response
from guardrail.judges.factory import JudgeSet
from guardrail.logs import configure_logging
from guardrail.render import Card, finished_card, symbols_for

SHOWN: Final = ("medication-wrong-dose", "pricing-wrong-price")
PICTURE: Final = Path(__file__).parents[1] / "docs" / "demo.svg"
COLUMNS: Final = 120
SPEED: Final = 50.0

# rich's own format without its fonts, which come from another host: pages that show the picture don't load
# them. rich escapes the text.
FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<!-- Made by scripts/demo_picture.py of what 'guardrail demo' shows; don't edit. -->
<title>Two answers in guardrail demo: one blocked, one with a sentence redacted</title>
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{
  font-size: 18px;
  font-weight: bold;
  font-family: sans-serif;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
  <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class _Unseen:
    """A view that shows nothing: the cards are drawn when all is known."""

    def open(self, responses: Sequence[Response]) -> None:
        pass

    def show(self, event: BoardEvent, card: Card) -> None:
        pass

    def tick(self, board: Board) -> None:
        pass

    def close(self) -> None:
        pass


def drawn() -> str:
    """The picture as SVG."""
    configure_logging(LoggingSettings(level="error"))
    examples = {example.response.response_id: example.response for example in load_examples()}
    board = Board()
    settings = load_demo_settings()
    judges = JudgeSet(settings.judge)
    asyncio.run(play_all([examples[name] for name in SHOWN], settings, judges, board, _Unseen(), SPEED))
    console = Console(
        record=True,
        width=COLUMNS,
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
    )
    for name in SHOWN:
        card = board.cards[name]
        if card.verdict is None:
            raise SystemExit(f"{name} was not decided in time")
        console.print(finished_card(card, card.verdict, symbols_for("utf-8"), COLUMNS))
    return console.export_svg(
        title="guardrail demo", code_format=FORMAT, unique_id="demo", font_aspect_ratio=0.61
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
