"""Writes down what is new of a session since it was last written down.

The formats are those of ``guardrail.session_state``. What is written grows with the text and no faster:
each piece of text, segment, claim and verdict is written once, and only while it can still matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from guardrail.claims.cutter import CutSegment
from guardrail.claims.model import Claim, Segment
from guardrail.deliveries import Deliveries
from guardrail.events import ClaimVerdict, Context, Evidence
from guardrail.session_state import STATE_VERSION

Facts = dict[str, Any]
"""Names and JSON-able values."""

# What holds when nothing was written, so that it need not be.
_AT_FIRST: Final[Facts] = {
    "next_seq": 0,
    "chars": None,
    "cut": [0, 0, 0],
    "resolved": 0,
    "delivered": 0,
    "released": 0,
    "worst": ["release", ""],
    "incomplete": None,
    "judging_stopped": None,
    "decided": False,
    "ended": False,
    "text_ended_ms": None,
    "first_verdict_ms": None,
    "usage": {},
}


_ONCE: Final = frozenset(("text_ended_ms", "first_verdict_ms"))


class Journal:
    """What of one session is new, and what has been written down already."""

    __slots__ = ("_claims", "_known", "_number", "_parts", "_ready", "_replaced", "cut", "verdicts")

    def __init__(self) -> None:
        # New since the last writing; the session adds to these as it goes.
        self.cut: list[CutSegment] = []
        self.verdicts: list[ClaimVerdict] = []
        self._number = 0
        self._known = dict(_AT_FIRST)
        self._claims: set[int] = set()  # written as claims without a verdict
        self._parts = self._ready = self._replaced = 0  # how many of each are written

    def take_up(
        self, number: int, known: Facts, claims: Iterable[int], parts: int, deliveries: Deliveries
    ) -> None:
        """Go on after ``number`` writings, which say ``known`` and have left ``claims`` without a verdict."""
        self._number = number
        self._known.update(known)
        self._claims.update(claims)
        self._note_lengths(parts, deliveries)

    def forget(self) -> None:
        """The session is decided: nothing that led to it matters any more."""
        self.cut.clear()
        self.verdicts.clear()
        self._claims.clear()

    def write(
        self,
        standing: Facts,
        parts: Sequence[str],
        contexts: Sequence[Context],
        deliveries: Deliveries,
        is_open: Callable[[Segment], bool],
        is_pending: Callable[[Claim], bool],
    ) -> Facts | None:
        """What is new, or None. ``standing``: all that is but a number or a word, as it stands."""
        known = self._known
        facts: Facts = {
            name: value
            for name, value in standing.items()
            # A time is what it was; only its conversion may come out otherwise.
            if value != known[name] and (name not in _ONCE or known[name] is None)
        }
        self._known.update(facts)
        text = "".join(parts[self._parts :])
        new: Facts = {
            "text": text,
            "segments": [_segment(cut.segment) for cut in self.cut if is_open(cut.segment)],
            "claims": [_claim(claim) for cut in self.cut for claim in cut.claims if is_pending(claim)],
            "verdicts": [self._verdict(verdict, contexts) for verdict in self.verdicts],
            "ready": [
                [segment.index, decision.value, rule]
                for segment, decision, rule, _ in deliveries.ready[self._ready :]
            ],
            "replaced": [list(span) for span in deliveries.replaced[self._replaced :]],
        }
        self._claims.update(claim["index"] for claim in new["claims"])
        self.cut.clear()
        self.verdicts.clear()
        self._note_lengths(len(parts), deliveries)
        facts.update((name, value) for name, value in new.items() if value)
        if not facts:
            return None
        written = {"v": STATE_VERSION, "number": self._number, **facts}
        self._number += 1
        return written

    def write_silent(self, next_seq: int) -> Facts | None:
        """That nothing more will be said: written once, in place of all that was written before."""
        if self._known["decided"]:
            return None
        self._known["decided"] = True
        return {"v": STATE_VERSION, "number": 0, "next_seq": next_seq, "decided": True}

    def _note_lengths(self, parts: int, deliveries: Deliveries) -> None:
        self._parts = parts
        self._ready, self._replaced = len(deliveries.ready), len(deliveries.replaced)

    def _verdict(self, verdict: ClaimVerdict, contexts: Sequence[Context]) -> Facts:
        facts: Facts = {"claim": verdict.index}
        if verdict.index in self._claims:
            self._claims.discard(verdict.index)
        else:
            facts |= _place(verdict.segment, verdict.span, verdict.severity, verdict.severity_reasons)
        facts |= {
            "verdict": verdict.verdict.value,
            "confidence": verdict.confidence,
            "support": verdict.support,
            "judge": verdict.judge,
            "latency_ms": verdict.latency_ms,
        }
        if verdict.contradiction is not None:
            facts["contradiction"] = verdict.contradiction
        if verdict.findings:
            facts["findings"] = [finding.value for finding in verdict.findings]
        if verdict.evidence:
            facts["evidence"] = [_evidence(evidence, contexts) for evidence in verdict.evidence]
        if verdict.conflicting_contexts:
            facts["conflicts"] = [_context(name, contexts) for name in verdict.conflicting_contexts]
        if verdict.reasoning:
            facts["reasoning"] = verdict.reasoning
        if verdict.unsupported_spans:
            facts["unsupported"] = [list(span) for span in verdict.unsupported_spans]
        if verdict.parts:
            facts["parts"] = [[part.text, part.verdict.value] for part in verdict.parts]
        if verdict.attempts != 1:
            facts["attempts"] = verdict.attempts
        if verdict.degraded_from:
            facts["degraded_from"] = list(verdict.degraded_from)
        if verdict.usage is not None:
            facts["usage"] = verdict.usage.model_dump(exclude_defaults=True)
        return facts


def _segment(segment: Segment) -> Facts:
    facts: Facts = {
        "index": segment.index,
        "kind": segment.kind.value,
        "span": [segment.start, segment.end],
        "body": list(segment.body),
    }
    return facts | {"header": True} if segment.header else facts


def _claim(claim: Claim) -> Facts:
    facts = {"index": claim.index}
    facts |= _place(claim.segment, (claim.start, claim.end), claim.severity, claim.severity_reasons)
    return facts | {"lead_in": claim.lead_in} if claim.lead_in else facts


def _place(segment: int, span: tuple[int, int], severity: str, reasons: tuple[str, ...]) -> Facts:
    facts: Facts = {"segment": segment, "span": list(span), "severity": str(severity)}
    return facts | {"reasons": list(reasons)} if reasons else facts


def _evidence(evidence: Evidence, contexts: Sequence[Context]) -> Any:
    """The quote's place in the contexts; the quote itself where that does not give it."""
    start, end = evidence.span
    for number, context in enumerate(contexts):
        if context.id == evidence.context_id and context.text[start:end] == evidence.quote:
            return [number, start, end]
    return evidence.model_dump(mode="json")


def _context(name: str, contexts: Sequence[Context]) -> int | str:
    return next((number for number, context in enumerate(contexts) if context.id == name), name)
