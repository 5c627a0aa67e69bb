"""The stored form of a session, and how to read it.

A session's state is one head and any number of progress records, each with only what is new: text, segments
and claims that arrived, verdicts, how far they are resolved. Texts are not repeated: claims and quotes are
stored by their position in the answer and the contexts. The records, read in order, say where the session
stood; nothing is judged or decided again. Once a session has no more output, one record replaces all earlier
ones.

Version 1. New fields don't need a new version: unknown ones are ignored, missing ones have defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guardrail.claims.citations import CitationReader
from guardrail.claims.cutter import CutPosition
from guardrail.claims.links import KnownLinks
from guardrail.claims.model import Claim, Segment
from guardrail.errors import StateError, UnreadableSession
from guardrail.events import (
    ClaimPart,
    ClaimVerdict,
    Decision,
    Evidence,
    Finding,
    Response,
    ResponseHead,
    SegmentKind,
    Severity,
    Span,
    Usage,
    Verdict,
)
from guardrail.policy import Policy
from guardrail.session.outputs import OutputEvents, Ready
from guardrail.verdicts import Judgement, spans_within

STATE_VERSION: Final = 1

MOST: Final = 2**30
"""More than any count of ours can be: what is more was not written by us, and an event can't carry it."""

_Count = Annotated[int, Field(ge=0, le=MOST)]
_Place = tuple[_Count, _Count]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _StoredSegment(_Stored):
    """A segment that is not resolved, or not released."""

    index: _Count
    kind: SegmentKind
    span: _Place
    body: _Place
    header: bool = False


class _StoredClaim(_Stored):
    """A claim without a verdict."""

    index: _Count
    segment: _Count
    span: _Place
    severity: Severity
    reasons: tuple[str, ...] = ()
    lead_in: str = ""


class _StoredVerdict(_Stored):
    """A verdict. It includes its claim's data unless the claim was stored before."""

    claim: _Count
    verdict: Verdict
    confidence: float
    support: float | None = None
    contradiction: float | None = None
    findings: tuple[Finding, ...] = ()
    judge: str = ""
    latency_ms: float = 0.0
    parts: tuple[tuple[str, Verdict], ...] = ()
    attempts: _Count = 1
    degraded_from: tuple[str, ...] = ()
    usage: Usage | None = None
    evidence: tuple[tuple[_Count, _Count, _Count] | Evidence, ...] = ()
    conflicts: tuple[int | str, ...] = ()
    reasoning: str = ""
    unsupported: tuple[_Place, ...] = ()
    segment: _Count | None = None
    span: _Place | None = None
    severity: Severity | None = None
    reasons: tuple[str, ...] = ()


class _ProgressRecord(_Stored):
    """One progress record. A field that is None, or empty, adds nothing."""

    number: _Count | None = None
    text: str = ""
    next_seq: Annotated[int, Field(ge=0, le=2**31)] | None = None
    chars: _Count | None = None
    cut: tuple[_Count, _Count, _Count] | None = None
    resolved: _Count | None = None
    segments: tuple[_StoredSegment, ...] = ()
    claims: tuple[_StoredClaim, ...] = ()
    verdicts: tuple[_StoredVerdict, ...] = ()
    ready: tuple[tuple[_Count, Decision, str | None], ...] = ()
    replaced: tuple[_Place, ...] = ()
    kinds: tuple[tuple[_Count, SegmentKind], ...] = ()
    worst: tuple[Decision, str] | None = None
    delivered: _Count | None = None
    released: _Count | None = None
    incomplete: str | None = None
    judging_stopped: str | None = None
    ended_at: tuple[_Count, bool] | None = None
    stopped_at: _Count | None = None
    decided: bool | None = None
    ended: bool | None = None
    text_ended_ms: int | None = None
    first_verdict_ms: int | None = None
    excused_ms: _Count | None = None
    usage: Usage | None = None


# The latest record that has these decides.
_STANDING: Final = (
    "next_seq",
    "chars",
    "cut",
    "resolved",
    "delivered",
    "released",
    "worst",
    "incomplete",
    "judging_stopped",
    "ended_at",
    "stopped_at",
    "decided",
    "ended",
    "text_ended_ms",
    "first_verdict_ms",
    "excused_ms",
    "usage",
)


@dataclass(slots=True)
class OpenSegment:
    """An unresolved segment: the verdicts on its claims, and its claims without a verdict."""

    segment: Segment
    verdicts: list[ClaimVerdict] = field(default_factory=list)
    pending: list[Claim] = field(default_factory=list)


@dataclass(slots=True)
class SessionState:
    """Where a session stood. Times are Unix milliseconds. ``standing``: the latest stored values, by name.

    For the verdict's record and a challenger: ``kinds`` of the segments stored so far, and the segment (its
    number, and whether it was forced) at which the response ended early or its judging stopped.
    ``excused_ms``: the time that its deadline was put off by, because nobody held it.
    """

    records: int = 0
    standing: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    answer_chars: int = 0
    next_seq: int = 0
    cut: CutPosition = field(default_factory=lambda: CutPosition(0, 0, 0))
    open: list[OpenSegment] = field(default_factory=list)
    resolved: list[ClaimVerdict] = field(default_factory=list)
    ready: list[Ready] = field(default_factory=list)
    replaced: list[tuple[int, int]] = field(default_factory=list)
    kinds: dict[int, SegmentKind] = field(default_factory=dict)
    worst: tuple[Decision, str] = (Decision.RELEASE, "")
    delivered: int = 0
    released_end: int = 0
    incomplete_rule: str | None = None
    judging_stopped: str | None = None
    ended_at: tuple[int, bool] | None = None
    stopped_at: int | None = None
    decided: bool = False
    input_ended: bool = False
    text_ended_ms: int | None = None
    first_verdict_ms: int | None = None
    excused_ms: int = 0
    usage: Usage = field(default_factory=Usage)


def check_version(stored: Mapping[str, Any]) -> None:
    """Raises StateError if a newer version wrote this, UnreadableSession if it has no version."""
    version = stored.get("v")
    if not isinstance(version, int) or version < 1:
        raise UnreadableSession("no state version")
    if version > STATE_VERSION:
        raise StateError(
            f"a stored session has state version {version}, and this program reads versions up to "
            f"{STATE_VERSION}: it was written by a newer guardrail; run that one, or a newer, here too"
        )


def stands_alone(stored: Mapping[str, Any]) -> bool:
    """Whether this is the record of a session without further output, which replaces all earlier ones."""
    return stored.get("number") == 0 and stored.get("decided") is True


def read_state(head: ResponseHead, policy: Policy, progress: Sequence[Mapping[str, Any]]) -> SessionState:
    """Where the session of ``head`` stood after ``progress``, given in the order of writing.

    Raises StateError if a newer version wrote it, UnreadableSession if it makes no sense.
    """
    for stored in progress:
        check_version(stored)
    if progress and stands_alone(progress[-1]):
        progress = progress[-1:]
    try:
        records = [_ProgressRecord.model_validate(stored) for stored in progress]
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnreadableSession(f"{where}: {first['msg']}") from None
    state = _RecordReader(head, policy, records).read()
    state.standing = {name: stored[name] for stored in progress for name in _STANDING if name in stored}
    return state


def salvage(progress: Sequence[Mapping[str, Any]], rule: str) -> SessionState:
    """What can be salvaged of an unreadable state, for a session that ends, or has ended, by ``rule``."""
    state = SessionState(records=len(progress), incomplete_rule=rule)
    for stored in progress:
        state.delivered = max(state.delivered, _count(stored.get("delivered"), MOST))
        state.released_end = max(state.released_end, _count(stored.get("released"), MOST))
        state.next_seq = max(state.next_seq, _count(stored.get("next_seq"), 2**31))
        state.input_ended = state.input_ended or stored.get("ended") is True
        state.decided = state.decided or stored.get("decided") is True
    if state.decided:
        state.text_ended_ms = 0
        state.standing = {"decided": True}
    state.answer_chars = state.released_end
    return state


def _count(value: object, most: int) -> int:
    return value if isinstance(value, int) and 0 < value <= most else 0


class _RecordReader:
    """Assembles the records of one session."""

    def __init__(self, head: ResponseHead, policy: Policy, records: Sequence[_ProgressRecord]) -> None:
        self._head = head
        self._make = OutputEvents(head.response_id, policy)
        self._citations = CitationReader(head.contexts, KnownLinks(head.contexts))
        self._records = records
        self._text = ""

    def read(self) -> SessionState:
        standing: dict[str, Any] = {}
        for number, record in enumerate(self._records):
            if record.number is not None and record.number != number:
                raise UnreadableSession(f"record {number} is missing")
            standing |= {name: value for name in _STANDING if (value := getattr(record, name)) is not None}
        state = self._stand(standing)
        if state.decided:
            return state
        self._text = state.text = self._read_text(state)
        if not standing.get("chars"):
            state.answer_chars = len(state.text)
        _require(max(state.cut.chars, state.released_end) <= state.answer_chars)
        segments = self._segments()
        claims = {claim.index: claim for record in self._records for claim in record.claims}
        verdicts: dict[int, list[ClaimVerdict]] = {}
        for record in self._records:
            for stored in record.verdicts:
                verdict = self._verdict(stored, claims.pop(stored.claim, None))
                verdicts.setdefault(verdict.segment, []).append(verdict)
        first_open = standing.get("resolved", 0)
        _require(max((*verdicts, *segments), default=-1) < state.cut.segments)
        for index in sorted(verdicts):
            verdicts[index].sort(key=lambda verdict: verdict.index)
            if index < first_open:
                state.resolved += verdicts[index]
        self._open(state, first_open, segments, claims, verdicts)
        state.ready = [
            (
                _found(segments, index),
                decision,
                rule,
                tuple(v.claim_id for v in verdicts.get(index, ())),
                None,
            )
            for record in self._records
            for index, decision, rule in record.ready
        ]
        state.replaced = [span for record in self._records for span in record.replaced]
        state.kinds = {index: segment.kind for index, segment in segments.items()}
        state.kinds.update(kind for record in self._records for kind in record.kinds)
        return state

    def _stand(self, standing: dict[str, Any]) -> SessionState:
        state = SessionState(records=len(self._records))
        state.next_seq = standing.get("next_seq", 0)
        state.answer_chars = standing.get("chars", 0)
        state.cut = CutPosition(*standing.get("cut", (0, 0, 0)))
        state.worst = standing.get("worst", state.worst)
        state.delivered = standing.get("delivered", 0)
        state.released_end = standing.get("released", 0)
        state.incomplete_rule = standing.get("incomplete")
        state.judging_stopped = standing.get("judging_stopped")
        state.ended_at = standing.get("ended_at")
        state.stopped_at = standing.get("stopped_at")
        state.decided = standing.get("decided", False)
        state.input_ended = standing.get("ended", False)
        state.text_ended_ms = standing.get("text_ended_ms")
        state.first_verdict_ms = standing.get("first_verdict_ms")
        state.excused_ms = standing.get("excused_ms", 0)
        state.usage = standing.get("usage", state.usage)
        return state

    def _read_text(self, state: SessionState) -> str:
        if isinstance(self._head, Response):
            return self._head.answer if state.next_seq else ""
        return "".join([record.text for record in self._records])

    def _segments(self) -> dict[int, Segment]:
        return {
            stored.index: Segment(
                stored.index,
                stored.kind,
                self._piece(stored.span),
                stored.span[0],
                stored.body,
                stored.header,
            )
            for record in self._records
            for stored in record.segments
        }

    def _open(
        self,
        state: SessionState,
        first_open: int,
        segments: dict[int, Segment],
        claims: dict[int, _StoredClaim],
        verdicts: dict[int, list[ClaimVerdict]],
    ) -> None:
        for index in range(first_open, state.cut.segments):
            state.open.append(OpenSegment(_found(segments, index), verdicts.get(index, [])))
        for index in sorted(claims):
            stored = claims[index]
            _require(first_open <= stored.segment < state.cut.segments)
            state.open[stored.segment - first_open].pending.append(self._claim(stored))
        _require(not state.open or bool(state.open[0].pending))
        # A complete text whose segments are all resolved must have been decided; nothing would ever end this
        # one.
        _require(bool(state.open) or state.text_ended_ms is None)

    def _claim(self, stored: _StoredClaim) -> Claim:
        text = self._piece(stored.span)
        return Claim(
            index=stored.index,
            segment=stored.segment,
            text=text,
            start=stored.span[0],
            end=stored.span[1],
            severity=stored.severity,
            severity_reasons=stored.reasons,
            lead_in=stored.lead_in,
            citations=self._citations.find(text),
        )

    def _verdict(self, stored: _StoredVerdict, told: _StoredClaim | None) -> ClaimVerdict:
        if told is None:
            if stored.segment is None or stored.span is None or stored.severity is None:
                raise UnreadableSession(f"the verdict on claim {stored.claim} has no claim")
            told = _StoredClaim.model_construct(
                index=stored.claim,
                segment=stored.segment,
                span=stored.span,
                severity=stored.severity,
                reasons=stored.reasons,
                lead_in="",
            )
        claim = self._claim(told)
        claim_id = self._make.claim_id(claim)
        judgement = Judgement(
            claim_id=claim_id,
            verdict=stored.verdict,
            confidence=stored.confidence,
            support=stored.support,
            contradiction=stored.contradiction,
            findings=stored.findings,
            judge=stored.judge,
            evidence=tuple(self._evidence(evidence) for evidence in stored.evidence),
            conflicting_contexts=tuple(
                name if isinstance(name, str) else self._context(name).id for name in stored.conflicts
            ),
            reasoning=stored.reasoning,
            unsupported_spans=self._unsupported(stored, claim),
            parts=tuple(ClaimPart(text=text, verdict=verdict) for text, verdict in stored.parts),
            attempts=stored.attempts,
            degraded_from=stored.degraded_from,
            usage=stored.usage,
        )
        try:
            return self._make.claim_verdict(
                claim_id, claim, judgement, stored.latency_ms, self._head.contexts
            )
        except ValidationError:
            raise UnreadableSession(f"the verdict on claim {stored.claim} is none") from None

    def _unsupported(self, stored: _StoredVerdict, claim: Claim) -> tuple[Span, ...]:
        """Spans in the claim's text; like all positions, they are stored relative to the answer's."""
        spans = [(start - claim.start, end - claim.start) for start, end in stored.unsupported]
        sound = spans_within(claim.text, spans)
        _require(len(sound) == len(spans))
        return sound

    def _evidence(self, stored: tuple[int, int, int] | Evidence) -> Evidence:
        if isinstance(stored, Evidence):
            return stored
        number, start, end = stored
        context = self._context(number)
        _require(start <= end <= len(context.text))
        return Evidence(context_id=context.id, quote=context.text[start:end], span=(start, end))

    def _context(self, number: int) -> Any:
        _require(0 <= number < len(self._head.contexts))
        return self._head.contexts[number]

    def _piece(self, span: tuple[int, int]) -> str:
        _require(span[0] <= span[1] <= len(self._text))
        return self._text[span[0] : span[1]]


def _found(segments: dict[int, Segment], index: int) -> Segment:
    segment = segments.get(index)
    if segment is None:
        raise UnreadableSession(f"segment {index} is missing")
    return segment


def _require(holds: bool) -> None:
    if not holds:
        raise UnreadableSession("what is stored of it contradicts itself")
