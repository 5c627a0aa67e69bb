"""What of one response has been let out, and what waits to be."""

from __future__ import annotations

from guardrail.claims.model import Segment
from guardrail.effects import Channel, Emit
from guardrail.events import Decision, Span
from guardrail.output_events import OutputEvents, delivered, redacted

_DELIVERIES = Channel.DELIVERIES
Ready = tuple[Segment, Decision, str | None, tuple[str, ...]]
"""A resolved segment that is held back: with its decision, the rule to show and the ids of its claims."""


class Deliveries:
    """Counts and makes the events of one response's delivery."""

    __slots__ = ("_make", "_replacement", "ready", "released_end", "replaced", "seq")

    def __init__(self, make: OutputEvents, replacement: str) -> None:
        self._make = make
        self._replacement = replacement
        self.seq = 0  # of the next event
        self.released_end = 0  # what stands before it has left
        self.replaced: list[tuple[int, int]] = []  # spans of the response that readers saw replaced
        self.ready: list[Ready] = []  # in hold mode, until the last verdict

    def release(
        self, segment: Segment, decision: Decision, rule: str | None, claim_ids: tuple[str, ...]
    ) -> Emit:
        """Let out a segment, redacted if that was decided."""
        text = segment.text
        if decision is Decision.REDACT:
            text = redacted(segment, self._replacement)
            self.replaced.append((segment.start + segment.body[0], segment.start + segment.body[1]))
        return self.deliver(text, (segment.start, segment.end), segment.index, decision, rule, claim_ids)

    def deliver(
        self,
        text: str,
        span: Span,
        segment: int | None,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
    ) -> Emit:
        """Let out ``text`` for ``span`` of the response."""
        event = self._make.delivery_segment(self.seq, text, span, segment, decision, rule, claim_ids)
        self.seq += 1
        self.released_end = span[1]
        return Emit(_DELIVERIES, event)

    def completed(self, decision: Decision, rule: str, score: float | None) -> Emit:
        """All is out."""
        return Emit(_DELIVERIES, self._make.delivery_completed(self.seq, decision, rule, score))

    def blocked(self, rule: str, score: float | None) -> Emit:
        """No more leaves."""
        return Emit(_DELIVERIES, self._make.delivery_blocked(self.seq, rule, self.released_end, score))

    def shown(self, answer: str) -> str:
        """What readers have seen of ``answer``."""
        return delivered(answer, self.replaced, self._replacement, self.released_end)
