"""The output events of one response, with their deterministic ids, and the segments waiting for release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from guardrail.claims.citations import Citation
from guardrail.claims.model import Claim, Segment
from guardrail.decisions import claims_decided_by
from guardrail.event_ids import EventIds
from guardrail.events import (
    MAX_CITED_CONTEXTS,
    ChallengerDecision,
    ClaimCitation,
    ClaimVerdict,
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    Interruption,
    ResponseHead,
    ResponseVerdict,
    SegmentKind,
    Span,
    Timings,
    Usage,
    Verdict,
)
from guardrail.policy import Policy
from guardrail.scoring import count_verdicts
from guardrail.session.backing import NOT_BACKED, backing
from guardrail.session.effects import Channel, Emit
from guardrail.verdicts import SAID, Judgement

_DELIVERIES = Channel.DELIVERIES
Ready = tuple[Segment, Decision, str | None, tuple[str, ...], float | None]
"""A resolved segment that is held back: with its decision, the rule to show, the ids of its claims, and when
it was cut."""


class Deliveries:
    """Numbers and makes the delivery events of one response."""

    __slots__ = ("_make", "_replacement", "ready", "released_end", "replaced", "seq")

    def __init__(self, make: OutputEvents, replacement: str) -> None:
        self._make = make
        self._replacement = replacement
        self.seq = 0  # of the next event
        self.released_end = 0  # everything before it has been released
        self.replaced: list[tuple[int, int]] = []  # spans of the response that were replaced for readers
        self.ready: list[Ready] = []  # in hold mode, until the last verdict

    def release(
        self,
        segment: Segment,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
        since: float | None = None,
    ) -> Emit:
        """Release a segment that was cut at ``since``, redacted if that was decided."""
        text = segment.text
        if decision is Decision.REDACT:
            text = redacted(segment, self._replacement)
            self.replaced.append((segment.start + segment.body[0], segment.start + segment.body[1]))
        span = (segment.start, segment.end)
        return self.deliver(text, span, segment.index, decision, rule, claim_ids, since)

    def deliver(
        self,
        text: str,
        span: Span,
        segment: int | None,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
        since: float | None = None,
    ) -> Emit:
        """Release ``text`` for ``span`` of the response."""
        event = self._make.delivery_segment(self.seq, text, span, segment, decision, rule, claim_ids)
        self.seq += 1
        self.released_end = span[1]
        return Emit(_DELIVERIES, event, since)

    def completed(self, decision: Decision, rule: str, score: float | None) -> Emit:
        """Everything is released."""
        return Emit(_DELIVERIES, self._make.delivery_completed(self.seq, decision, rule, score))

    def blocked(self, rule: str, message: str, score: float | None) -> Emit:
        """Nothing more is released."""
        return Emit(
            _DELIVERIES, self._make.delivery_blocked(self.seq, rule, message, self.released_end, score)
        )

    def shown(self, answer: str) -> str:
        """What readers have seen of ``answer``."""
        return delivered(answer, self.replaced, self._replacement, self.released_end)


def _told(citation: Citation, claim_start: int) -> ClaimCitation:
    start, end = citation.span
    return ClaimCitation(
        span=(claim_start + start, claim_start + end),
        text=citation.text,
        contexts=citation.context_ids[:MAX_CITED_CONTEXTS],
    )


class OutputEvents:
    """Makes the events of one response under one policy.

    Their ids are those of ``EventIds``. Events that are numerous reuse the digest of what they belong to and
    append the rest in plain text.
    """

    __slots__ = ("_delivery_id", "_ids", "_policy", "_ref", "response_id")

    def __init__(self, response_id: str, policy: Policy) -> None:
        self.response_id = response_id
        self._policy = policy
        self._ref = policy.ref
        self._ids = EventIds(response_id, policy.name, policy.version)
        self._delivery_id = self.make_id("delivery")

    def make_id(self, about: str) -> str:
        """24 hex digits, the same for the same response, policy and ``about``."""
        return self._ids.make(about)

    def claim_id(self, claim: Claim) -> str:
        return self._ids.claim(claim.index, (claim.start, claim.end), claim.text)

    def claim_verdict(
        self,
        claim_id: str,
        claim: Claim,
        judgement: Judgement,
        latency_ms: float,
        contexts: Sequence[Context],
    ) -> ClaimVerdict:
        """The verdict on a claim of a response with these contexts."""
        return ClaimVerdict(
            id=f"{claim_id}-verdict",
            response_id=self.response_id,
            claim_id=claim_id,
            index=claim.index,
            text=claim.text,
            span=(claim.start, claim.end),
            segment=claim.segment,
            severity=claim.severity,
            severity_reasons=claim.severity_reasons,
            citations=tuple(_told(citation, claim.start) for citation in claim.citations),
            citation_backing=backing(judgement, claim.citations, contexts, claim.text),
            unsupported_spans=tuple(
                (claim.start + start, claim.start + end) for start, end in judgement.unsupported_spans
            ),
            **{name: getattr(judgement, name) for name in SAID},
            latency_ms=round(max(0.0, latency_ms), 3),
            policy=self._ref,
        )

    def delivery_segment(
        self,
        seq: int,
        text: str,
        span: Span,
        segment: int | None,
        decision: Decision,
        rule: str | None,
        claim_ids: tuple[str, ...],
    ) -> DeliverySegment:
        return DeliverySegment(
            id=f"{self._delivery_id}-{seq}-{span[0]}",
            response_id=self.response_id,
            seq=seq,
            text=text,
            segment=segment,
            span=span,
            decision=decision,
            rule=rule,
            claim_ids=claim_ids,
        )

    def delivery_completed(
        self, seq: int, decision: Decision, rule: str, score: float | None
    ) -> DeliveryCompleted:
        return DeliveryCompleted(
            id=self.make_id("delivery.completed"),
            response_id=self.response_id,
            seq=seq,
            decision=decision,
            rule=rule,
            score=score,
        )

    def delivery_blocked(
        self, seq: int, rule: str, message: str, released_chars: int, score: float | None
    ) -> DeliveryBlocked:
        return DeliveryBlocked(
            id=self.make_id("delivery.blocked"),
            response_id=self.response_id,
            seq=seq,
            message=message,
            rule=rule,
            released_chars=released_chars,
            score=score,
        )

    def response_verdict(
        self,
        claims: Sequence[ClaimVerdict],
        score: float | None,
        decision: Decision,
        rule: str,
        *,
        complete: bool,
        usage: Usage,
        timings: Timings,
        challenger: ChallengerDecision | None = None,
        head: ResponseHead,
        kinds: Sequence[SegmentKind | None],
        judged_to_end: bool,
        ended_early: Interruption | None = None,
        judging_stopped: Interruption | None = None,
    ) -> ResponseVerdict:
        """``kinds``: of the segments that were decided; None of one that another process decided."""
        known = tuple(kind for kind in kinds if kind is not None)
        about = claims_decided_by(decision, rule, claims, self._policy)
        return ResponseVerdict(
            id=self.make_id("verdict.response"),
            response_id=self.response_id,
            score=score,
            counts=count_verdicts(claim.verdict for claim in claims),
            decision=decision,
            rule=rule,
            mode=self._policy.mode,
            complete=complete,
            claims=tuple(claims),
            deciding_claim=about[0].claim_id if about else None,
            hallucinated_claims=tuple(claim.text for claim in claims if claim.verdict in NOT_BACKED),
            summary=_summary(claims, score, decision, rule, complete),
            conflicting_contexts=tuple(sorted({c for claim in claims for c in claim.conflicting_contexts})),
            usage=usage,
            timings=timings,
            policy=self._ref,
            challenger=challenger,
            route=head.route,
            tenant=head.tenant,
            generator_model=head.generator_model,
            segment_kinds=known if len(known) == len(kinds) else None,
            judged_to_end=judged_to_end,
            ended_early=ended_early,
            judging_stopped=judging_stopped,
        )

    def flagged_case(
        self, head: ResponseHead, answer: str, delivered: str, verdict: ResponseVerdict
    ) -> FlaggedCase:
        return FlaggedCase(
            id=self.make_id("case.flagged"),
            response_id=self.response_id,
            question=head.question,
            contexts=head.contexts,
            answer=answer,
            delivered=delivered,
            decision=verdict.decision,
            rule=verdict.rule,
            score=verdict.score,
            claims=verdict.claims,
            deciding_claim=verdict.deciding_claim,
            route=head.route,
            tenant=head.tenant,
            generator_model=head.generator_model,
            metadata=head.metadata,
            policy=verdict.policy,
            mode=verdict.mode,
        )


def redacted(segment: Segment, replacement: str) -> str:
    """The segment's text with its body replaced; white space and list markers stay."""
    start, end = segment.body
    return segment.text[:start] + replacement + segment.text[end:]


def delivered(answer: str, replacements: Iterable[tuple[int, int]], replacement: str, end: int) -> str:
    """The text as released: ``answer[:end]`` with the replaced spans, in order, as the reader saw them.

    Rebuilt rather than stored, because few responses need it.
    """
    pieces: list[str] = []
    at = 0
    for start, stop in replacements:
        pieces += (answer[at:start], replacement)
        at = stop
    return "".join(pieces) + answer[at:end]


def timings(
    started_at: float,
    first_verdict_at: float | None,
    text_ended_at: float | None,
    now: float,
    claims: Iterable[ClaimVerdict],
) -> Timings:
    """The timings of a response that is decided ``now``; readings of one clock, in seconds."""

    def ms(since: float, until: float) -> float:
        return round(max(0.0, until - since) * 1000, 3)

    return Timings(
        total_ms=ms(started_at, now),
        first_claim_ms=None if first_verdict_at is None else ms(started_at, first_verdict_at),
        after_completion_ms=None if text_ended_at is None else ms(text_ended_at, now),
        max_claim_ms=max((claim.latency_ms for claim in claims), default=None),
    )


def _summary(
    claims: Sequence[ClaimVerdict], score: float | None, decision: Decision, rule: str, complete: bool
) -> str:
    """One sentence for people; contains only numbers and our own names, never the response's text."""
    tail = f"; decision: {decision} ({rule})" + ("" if complete else "; not judged to its end")
    if not claims:
        return f"Nothing to check{tail}."
    by_verdict: dict[Verdict, int] = {}
    for claim in claims:
        by_verdict[claim.verdict] = by_verdict.get(claim.verdict, 0) + 1
    counts = ", ".join(
        f"{by_verdict[v]} {v.value.lower().replace('_', ' ')}" for v in Verdict if v in by_verdict
    )
    scored = "no score" if score is None else f"score {score:.2f}"
    return f"{len(claims)} claim{'s' if len(claims) != 1 else ''}: {counts}; {scored}{tail}."
