"""A chat service, imitated: it writes answers token by token, and gathers what the topics tell of each.

Everything it writes follows from a seed: the cuts, the pauses and the interleaving are the same in every run.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.render import Card

BoardEvent = ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | AnyOutputEvent


class Board:
    """The cards of all responses seen, in the order they began."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}

    @property
    def running(self) -> list[Card]:
        return [card for card in self.cards.values() if not card.finished]

    @property
    def finished(self) -> list[Card]:
        return [card for card in self.cards.values() if card.finished]

    def apply(self, event: BoardEvent, now_s: float) -> Card | None:
        """Note one event; the card it belongs to, None for a response whose start was not seen."""
        if isinstance(event, ResponseStarted):
            return self.cards.setdefault(event.response_id, Card(event))
        card = self.cards.get(event.response_id)
        if card is None:
            return None
        match event:
            case ResponseDelta():
                card.wrote(event.text, now_s)
            case ClaimVerdict():
                card.claims.append(event)
            case DeliverySegment():
                card.showed(event, now_s)
            case DeliveryCompleted() | DeliveryBlocked():
                card.end = event
            case ResponseVerdict():
                card.verdict = event
            case FlaggedCase():
                card.case = event
        return card


StreamEvent = ResponseStarted | ResponseDelta | ResponseCompleted

TOKENS_PER_S: Final = 12.0
"""Pace of one answer; three of them at once are still readable."""
LANES: Final = 3
_PAUSE_BETWEEN_S: Final = 0.8


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """``event`` is sent ``at_s`` seconds after the start."""

    at_s: float
    event: StreamEvent


def cut_tokens(text: str, rng: random.Random) -> list[str]:
    """Pieces of 1 to 7 characters, 4 on average, as tokens are; joined they give ``text``."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = rng.choice((1, 2, 3, 4, 4, 5, 6, 7))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def schedule(responses: Sequence[Response]) -> list[TimedEvent]:
    """The events of all responses in the order they are sent, ``LANES`` responses at a time."""
    free_at = [0.4 + 1.1 * lane for lane in range(LANES)]
    steps: list[TimedEvent] = []
    for response in responses:
        lane = min(range(LANES), key=free_at.__getitem__)
        rng = random.Random(f"20:{response.response_id}")
        written = _write(response, free_at[lane], rng)
        free_at[lane] = written[-1].at_s + _PAUSE_BETWEEN_S
        steps += written
    # Stable: events of one response keep their order even where two have the same time.
    return sorted(steps, key=lambda step: step.at_s)


def _write(response: Response, start_s: float, rng: random.Random) -> list[TimedEvent]:
    response_id = response.response_id
    head = {name: getattr(response, name) for name in ResponseHead.model_fields}
    steps = [TimedEvent(start_s, ResponseStarted(**head))]
    now = start_s + 0.3
    tokens = cut_tokens(response.answer, rng)
    for seq, text in enumerate(tokens):
        steps.append(TimedEvent(now, ResponseDelta(response_id=response_id, seq=seq, text=text)))
        now += rng.uniform(0.2, 1.8) / TOKENS_PER_S
    end = ResponseCompleted(response_id=response_id, seq=len(tokens), finish_reason="stop")
    steps.append(TimedEvent(now, end))
    return steps


async def play(
    steps: Sequence[TimedEvent],
    send: Callable[[StreamEvent], None],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Send every event at its time, ``speed`` times as fast. Never ahead of time; late ones at once."""
    start = clock()
    for step in steps:
        # Sleeping for nothing still lets the guard run, so that a fast feed does not starve it.
        await asyncio.sleep(max(0.0, start + step.at_s / speed - clock()))
        send(step.event)
