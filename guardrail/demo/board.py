"""What is known of every response of the demo, gathered from the topics as a chat service would read them."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from dataclasses import dataclass, field

from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
    ResponseVerdict,
)

BoardEvent = ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | AnyOutputEvent


@dataclass(slots=True)
class Card:
    """One response: what was written, what was judged, what was shown."""

    head: ResponseHead
    text: str = ""
    claims: list[ClaimVerdict] = field(default_factory=list)
    segments: list[DeliverySegment] = field(default_factory=list)
    end: DeliveryCompleted | DeliveryBlocked | None = None
    verdict: ResponseVerdict | None = None
    case: FlaggedCase | None = None
    delays_ms: list[float] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _times_s: list[float] = field(default_factory=list)

    @property
    def response_id(self) -> str:
        return self.head.response_id

    @property
    def finished(self) -> bool:
        """Has every topic said its last word on this response?"""
        if self.verdict is None or self.end is None:
            return False
        return self.case is not None or self.verdict.decision is Decision.RELEASE

    @property
    def delivered(self) -> str:
        """What the user reads, a blocked answer's fallback message left out."""
        return "".join(segment.text for segment in self.segments)

    @property
    def observed(self) -> bool:
        """Did the text leave as it came, before any verdict?"""
        return any(segment.segment is None for segment in self.segments)

    @property
    def delay_p50_ms(self) -> float | None:
        """Median wait of a piece of text from its last character being written to its release."""
        return statistics.median(self.delays_ms) if self.delays_ms else None

    def wrote(self, text: str, now_s: float) -> None:
        """A delta arrived."""
        self.text += text
        self._ends.append(len(self.text))
        self._times_s.append(now_s)

    def showed(self, segment: DeliverySegment, now_s: float) -> None:
        """A piece of text was released."""
        self.segments.append(segment)
        at = bisect_left(self._ends, segment.span[1])
        if at < len(self._ends):
            self.delays_ms.append(max(0.0, now_s - self._times_s[at]) * 1000)


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
