"""What a view is to the demo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from guardrail.demo.board import Board, BoardEvent, Card
from guardrail.events import Response


class View(Protocol):
    """Shows the demo. All calls come from one task, in the order of the events."""

    def open(self, responses: Sequence[Response]) -> None:
        """Called once, first: what is to come."""
        ...

    def show(self, event: BoardEvent, card: Card) -> None:
        """An event was applied to this card."""
        ...

    def tick(self, board: Board) -> None:
        """Called several times a second; where a moving picture is drawn."""
        ...

    def close(self) -> None:
        """Called once, last, however the demo ended; leaves the terminal as it was found."""
        ...
