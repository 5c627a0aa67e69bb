"""The stored form of a session, and how to read it.

A session's state is one head and any number of progress records, each with only what is new: text, segments
and claims that arrived, verdicts, how far they are resolved. Texts are not repeated: claims and quotes are
stored by their position in the answer and the contexts. The records, read in order, say where the session
stood; nothing is judged or decided again. Once a session has no more output, one record replaces all earlier
ones.

A record is the fields of ``Standing`` that differ from what was written before, and the pieces that are new.
Reading is a fold: the latest value of each field, all pieces in order.

Version 1. New fields don't need a new version: unknown ones are ignored, missing ones have defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from guardrail.claims.citations import CitationReader
from guardrail.claims.links import KnownLinks
from guardrail.claims.model import Claim, Segment
from guardrail.errors import StateError, UnreadableSession, said_wrong
from guardrail.events import (
    ClaimVerdict,
    Decision,
    Response,
    ResponseHead,
    SegmentKind,
    Severity,
    Usage,
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
    """A verdict, beside its packed judgement. It includes its claim's data unless that was stored before."""

    claim: _Count
    latency_ms: float = 0.0
    segment: _Count | None = None
    span: _Place | None = None
    severity: Severity | None = None
    reasons: tuple[str, ...] = ()


class _Pieces(_Stored):
    """What is new in one progress record. A field that is missing, or empty, adds nothing."""

    number: _Count | None = None
    text: str = ""
    segments: tuple[_StoredSegment, ...] = ()
    claims: tuple[_StoredClaim, ...] = ()
    verdicts: tuple[dict[str, Any], ...] = ()
    ready: tuple[tuple[_Count, Decision, str | None], ...] = ()
    replaced: tuple[_Place, ...] = ()
    kinds: tuple[tuple[_Count, SegmentKind], ...] = ()


@dataclass(slots=True)
class Standing:
    """Where a session stands, but for its pieces. Times are Unix milliseconds.

    ``chars`` of the answer, where that is more than the text; ``cut``: the cutter's position; ``resolved``:
    the first segment that is not; ``delivered`` events, and the text ``released`` with them; ``worst``
    decision so far, with its rule; ``outcome``: decision and rule of a response that is delivered and lacks
    only its final verdict, and whether it was judged to its end, at ``outcome_ms``; ``decided``: the final
    events are out; ``ended``: no more input can come.
    For the verdict's record and a challenger: the segment (its number, and whether it was forced) at which
    the response ended early or its judging stopped. ``excused_ms``: the time that its deadline was put off
    by, because nobody held it.
    """

    next_seq: Annotated[int, Field(ge=0, le=2**31)] = 0
    chars: _Count | None = None
    cut: tuple[_Count, _Count, _Count] = (0, 0, 0)
    resolved: _Count = 0
    delivered: _Count = 0
    released: _Count = 0
    worst: tuple[Decision, str] = (Decision.RELEASE, "")
    incomplete: str | None = None
    judging_stopped: str | None = None
    ended_at: tuple[_Count, bool] | None = None
    stopped_at: _Count | None = None
    outcome: tuple[Decision, str, bool] | None = None
    decided: bool = False
    ended: bool = False
    text_ended_ms: int | None = None
    outcome_ms: int | None = None
    first_verdict_ms: int | None = None
    excused_ms: _Count = 0
    usage: Usage = field(default_factory=Usage)

    def since(self, known: Standing) -> dict[str, Any]:
        """The fields that differ from ``known``, as JSON-able values.

        A time that is known doesn't change; only its conversion may come out differently.
        """
        found: dict[str, Any] = {
            name: value
            for name, value, before in zip(_FIELDS, _VALUES(self), _VALUES(known), strict=True)
            if value is not before and value != before and (before is None or name not in _ONCE)
        }
        if "usage" in found:
            found["usage"] = self.usage.model_dump(exclude_defaults=True)
        return found


_ONCE: Final = frozenset(("text_ended_ms", "outcome_ms", "first_verdict_ms"))
_FIELDS: Final = tuple(field.name for field in fields(Standing))
_VALUES: Final = attrgetter(*_FIELDS)
_STANDING: Final = TypeAdapter(Standing)


@dataclass(slots=True)
class OpenSegment:
    """An unresolved segment: the verdicts on its claims, and its claims without a verdict."""

    segment: Segment
    verdicts: list[ClaimVerdict] = field(default_factory=list)
    pending: list[Claim] = field(default_factory=list)


@dataclass(slots=True)
class SessionState:
    """A stored session: where it stood after ``records`` records, and its pieces put together.

    ``kinds`` of the segments stored so far, by number.
    """

    standing: Standing
    records: int = 0
    text: str = ""
    open: list[OpenSegment] = field(default_factory=list)
    resolved: list[ClaimVerdict] = field(default_factory=list)
    ready: list[Ready] = field(default_factory=list)
    replaced: list[tuple[int, int]] = field(default_factory=list)
    kinds: dict[int, SegmentKind] = field(default_factory=dict)

    @property
    def answer_chars(self) -> int:
        """Characters of the answer so far, including those that are not kept."""
        return self.standing.chars or len(self.text)


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
    told = {name: record[name] for record in progress for name in _FIELDS if record.get(name) is not None}
    try:
        standing = _STANDING.validate_python(told)
        pieces = [_Pieces.model_validate(stored) for stored in progress]
    except ValidationError as error:
        raise unreadable(error) from None
    return _RecordReader(head, policy, standing, pieces).read()


def unreadable(error: ValidationError, what: str = "") -> UnreadableSession:
    """Says which field of ``what`` makes no sense, and quotes nothing of it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return UnreadableSession(f"{what}{where}: {said_wrong(first)}")


def salvage(progress: Sequence[Mapping[str, Any]], rule: str) -> SessionState:
    """What can be salvaged of an unreadable state, for a session that ends, or has ended, by ``rule``."""
    standing = Standing(incomplete=rule)
    for stored in progress:
        standing.delivered = max(standing.delivered, _count(stored.get("delivered"), MOST))
        standing.released = max(standing.released, _count(stored.get("released"), MOST))
        standing.next_seq = max(standing.next_seq, _count(stored.get("next_seq"), 2**31))
        standing.ended = standing.ended or stored.get("ended") is True
        delivered = stored.get("decided") is True or "outcome" in stored
        standing.decided = standing.decided or delivered
    if standing.decided:
        standing.text_ended_ms = 0
    standing.chars = standing.released
    return SessionState(standing, records=len(progress))


def _count(value: object, most: int) -> int:
    return value if isinstance(value, int) and 0 < value <= most else 0


class _RecordReader:
    """Assembles the records of one session."""

    def __init__(
        self, head: ResponseHead, policy: Policy, standing: Standing, records: Sequence[_Pieces]
    ) -> None:
        self._head = head
        self._make = OutputEvents(head.response_id, policy)
        self._citations = CitationReader(head.contexts, KnownLinks(head.contexts))
        self._standing = standing
        self._records = records
        self._text = ""

    def read(self) -> SessionState:
        standing = self._standing
        for number, record in enumerate(self._records):
            if record.number is not None and record.number != number:
                raise UnreadableSession(f"record {number} is missing")
        state = SessionState(standing, records=len(self._records))
        if standing.decided:
            return state
        self._text = state.text = self._read_text()
        cut_chars, cut_segments, _ = standing.cut
        _require(max(cut_chars, standing.released) <= state.answer_chars)
        segments = self._segments()
        claims = {claim.index: claim for record in self._records for claim in record.claims}
        verdicts: dict[int, list[ClaimVerdict]] = {}
        for record in self._records:
            for packed in record.verdicts:
                verdict = self._verdict(packed, claims)
                verdicts.setdefault(verdict.segment, []).append(verdict)
        _require(max((*verdicts, *segments), default=-1) < cut_segments)
        for index in sorted(verdicts):
            verdicts[index].sort(key=lambda verdict: verdict.index)
            if index < standing.resolved:
                state.resolved += verdicts[index]
        self._open(state, segments, claims, verdicts)
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

    def _read_text(self) -> str:
        if isinstance(self._head, Response):
            return self._head.answer if self._standing.next_seq else ""
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
        segments: dict[int, Segment],
        claims: dict[int, _StoredClaim],
        verdicts: dict[int, list[ClaimVerdict]],
    ) -> None:
        first_open, cut_segments = state.standing.resolved, state.standing.cut[1]
        for index in range(first_open, cut_segments):
            state.open.append(OpenSegment(_found(segments, index), verdicts.get(index, [])))
        for index in sorted(claims):
            stored = claims[index]
            _require(first_open <= stored.segment < cut_segments)
            state.open[stored.segment - first_open].pending.append(self._claim(stored))
        if state.standing.outcome is not None:
            return
        _require(not state.open or bool(state.open[0].pending))
        # A complete text whose segments are all resolved must have been decided; nothing would ever end this
        # one.
        _require(bool(state.open) or state.standing.text_ended_ms is None)

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

    def _verdict(self, packed: dict[str, Any], claims: dict[int, _StoredClaim]) -> ClaimVerdict:
        try:
            stored = _StoredVerdict.model_validate(packed)
            told = claims.pop(stored.claim) if stored.claim in claims else _own_claim(stored)
            claim = self._claim(told)
            claim_id = self._make.claim_id(claim)
            contexts = self._head.contexts
            judgement = Judgement.unpack(claim_id, packed, contexts, claim.start)
            spans = judgement.unsupported_spans
            _require(spans_within(claim.text, spans) == spans)
            return self._make.claim_verdict(claim_id, claim, judgement, stored.latency_ms, contexts)
        except ValueError:
            raise UnreadableSession("a verdict is unreadable, or has no claim") from None

    def _piece(self, span: tuple[int, int]) -> str:
        _require(span[0] <= span[1] <= len(self._text))
        return self._text[span[0] : span[1]]


def _own_claim(stored: _StoredVerdict) -> _StoredClaim:
    """The claim whose data came with the verdict. Raises ValueError if they are not there."""
    return _StoredClaim.model_validate({**stored.model_dump(), "index": stored.claim})


def _found(segments: dict[int, Segment], index: int) -> Segment:
    segment = segments.get(index)
    if segment is None:
        raise UnreadableSession(f"segment {index} is missing")
    return segment


def _require(holds: bool) -> None:
    if not holds:
        raise UnreadableSession("what is stored of it contradicts itself")
