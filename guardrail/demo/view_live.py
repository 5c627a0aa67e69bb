"""The demo on a terminal: finished answers stay above as panels, running ones move below."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from guardrail.demo.board import Board, BoardEvent, Card
from guardrail.demo.feed import LANES
from guardrail.demo.render import finished_card, running_card
from guardrail.demo.style import VERDICT_STYLES, Symbols
from guardrail.events import Response, Verdict

_MAX_WIDTH: Final = 110
"""Longer lines are hard to read."""
_MAX_CARD_HEIGHT: Final = 8
_MIN_CARD_HEIGHT: Final = 4


class LiveView:
    """Drawn anew at every tick, in the caller's task: no thread, so nothing is left when it ends."""

    def __init__(self, console: Console, symbols: Symbols) -> None:
        self._console = console
        self._symbols = symbols
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._answers = 0
        self._printed: set[str] = set()
        self._started_s = 0.0

    def open(self, responses: Sequence[Response]) -> None:
        self._answers = len(responses)
        self._started_s = time.monotonic()
        self._live.start()

    def show(self, event: BoardEvent, card: Card) -> None:  # noqa: ARG002 - the card has it already
        if card.finished and card.verdict is not None and card.response_id not in self._printed:
            self._printed.add(card.response_id)
            self._console.print(finished_card(card, card.verdict, self._symbols, self._width))

    def tick(self, board: Board) -> None:
        self._live.update(self._picture(board), refresh=True)

    def close(self) -> None:
        self._live.stop()

    @property
    def _width(self) -> int:
        return min(self._console.width, _MAX_WIDTH)

    def _picture(self, board: Board) -> RenderableType:
        """The running cards over one line of totals; at most two thirds of the terminal's height."""
        running = board.running[-LANES:]
        room = self._console.height * 2 // 3 - 2
        height = max(_MIN_CARD_HEIGHT, min(_MAX_CARD_HEIGHT, room // max(1, LANES)))
        shown = running[-max(1, (self._console.height - 2) // height) :]
        cards = [running_card(card, self._symbols, self._console, self._width, height) for card in shown]
        return Group(*cards, self._totals(board))

    def _totals(self, board: Board) -> Text:
        counts = dict.fromkeys(Verdict, 0)
        for card in board.cards.values():
            for claim in card.claims:
                counts[claim.verdict] += 1
        dot = self._symbols.dot
        line = Text(f"{self._symbols.rule * 3} guardrail demo {dot} ", "dim")
        line.append(f"{len(board.finished)}/{self._answers} answers {dot} {sum(counts.values())} claims ")
        for verdict, count in counts.items():
            if count:
                line.append(f" {self._symbols.verdicts[verdict]} {count}", VERDICT_STYLES[verdict])
        line.append(f" {dot} {time.monotonic() - self._started_s:.0f} s", "dim")
        line.truncate(self._width, overflow="ellipsis")
        return line
