"""The stored form of a session, how to read it, and the session that writes it as it goes and that another
process can resume.

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

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from guardrail.claims.citations import CitationReader
from guardrail.claims.cutter import ClaimCutter, CutPosition, Cutter, ResumingCutter
from guardrail.claims.links import KnownLinks
from guardrail.claims.model import Claim, Segment
from guardrail.errors import StateError, UnreadableSession, said_wrong
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    Interruption,
    Response,
    ResponseHead,
    SegmentKind,
    Severity,
    Usage,
)
from guardrail.policy import Policy
from guardrail.session.machine import Ending, HeldSegment, News, Pending, Session
from guardrail.session.outputs import AskJudge, Deliveries, Effect, OutputEvents, Ready
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


# ---------------------------------------------------------------------------- a session that stores itself
#
# The stored state grows with the text and no faster: each piece of text, segment, claim and verdict is
# written once, and only while it can still matter.

Facts = dict[str, Any]
"""Names and JSON-able values."""


class Journal(News):
    """What is new about one session, which adds to it as it goes, and what has been stored already."""

    __slots__ = ("_claims", "_known", "_number", "_parts", "_ready", "_replaced")

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._known = Standing()
        self._claims: set[int] = set()  # written as claims without a verdict
        self._parts = self._ready = self._replaced = 0  # how many of each are written

    def resume(self, state: SessionState, parts: int, deliveries: Deliveries) -> None:
        """Continue after the records of ``state``."""
        self._number = state.records
        self._known = state.standing
        self._claims.update(claim.index for held in state.open for claim in held.pending)
        self._note_lengths(parts, deliveries)

    def forget(self) -> None:
        """The session is decided: nothing that led to it matters any more."""
        self.cut.clear()
        self.verdicts.clear()
        self._claims.clear()

    def write(
        self,
        standing: Standing,
        parts: Sequence[str],
        contexts: Sequence[Context],
        deliveries: Deliveries,
        first_open: int,
        pending: Container[int],
    ) -> Facts | None:
        """What is new, or None. ``first_open``: the first segment that has to be stored; ``pending``: the
        numbers of claims without a verdict.
        """
        held = [cut for cut in self.cut if cut.segment.index >= first_open]
        facts: Facts = {
            "text": "".join(parts[self._parts :]),
            "segments": [_segment(segment) for segment, _ in held],
            "claims": [_claim(claim) for cut in self.cut for claim in cut.claims if claim.index in pending],
            "ready": [
                [segment.index, decision.value, rule]
                for segment, decision, rule, _, _ in deliveries.ready[self._ready :]
            ],
            "replaced": [list(span) for span in deliveries.replaced[self._replaced :]],
            "kinds": [
                [segment.index, segment.kind.value] for segment, _ in self.cut if segment.index < first_open
            ],
        }
        self._note_lengths(len(parts), deliveries)
        self._claims.update(claim["index"] for claim in facts["claims"])
        facts["verdicts"] = [self._verdict(*said, contexts) for said in self.verdicts]
        self.cut.clear()
        self.verdicts.clear()
        facts = {name: value for name, value in facts.items() if value} | standing.since(self._known)
        self._known = standing
        if not facts:
            return None
        written = {"v": STATE_VERSION, "number": self._number, **facts}
        self._number += 1
        return written

    def write_silent(self, next_seq: int) -> Facts | None:
        """That there is no more output: written once, in place of all earlier records."""
        if self._known.decided:
            return None
        self._known.decided = True
        return {"v": STATE_VERSION, "number": 0, "next_seq": next_seq, "decided": True}

    def _note_lengths(self, parts: int, deliveries: Deliveries) -> None:
        self._parts = parts
        self._ready, self._replaced = len(deliveries.ready), len(deliveries.replaced)

    def _verdict(
        self, claim: Claim, judgement: Judgement, latency_ms: float, contexts: Sequence[Context]
    ) -> Facts:
        facts: Facts = {"claim": claim.index, "latency_ms": latency_ms}
        if claim.index in self._claims:
            self._claims.discard(claim.index)
        else:
            facts |= _place(claim)
        return facts | judgement.pack(contexts, claim.start)


def _segment(segment: Segment) -> Facts:
    facts: Facts = {
        "index": segment.index,
        "kind": segment.kind.value,
        "span": [segment.start, segment.end],
        "body": list(segment.body),
    }
    return facts | {"header": True} if segment.header else facts


def _claim(claim: Claim) -> Facts:
    facts = {"index": claim.index} | _place(claim)
    return facts | {"lead_in": claim.lead_in} if claim.lead_in else facts


def _place(claim: Claim) -> Facts:
    span, severity = [claim.start, claim.end], str(claim.severity)
    facts: Facts = {"segment": claim.segment, "span": span, "severity": severity}
    return facts | {"reasons": list(claim.severity_reasons)} if claim.severity_reasons else facts


UNREADABLE: Final = "session_state_unreadable"


class StoredSession(Session):
    """``capture`` returns what is new since the last time; ``restored`` makes the session from all captures.

    A restored session continues as the captured one would have: releases and judgements stand, and ``resume``
    asks again only about claims without a verdict. Given the same events it has the same effects, times
    apart.
    """

    __slots__ = ("_excused_ms", "_journal")

    def __init__(
        self,
        head: ResponseHead,
        policy: Policy,
        cutter: Cutter,
        *,
        now: float,
        max_answer_chars: int,
        challenger: Policy | None = None,
    ) -> None:
        super().__init__(
            head, policy, cutter, now=now, max_answer_chars=max_answer_chars, challenger=challenger
        )
        self._news = self._journal = Journal()
        self._excused_ms = 0  # how far the deadline has been put off

    @classmethod
    def restored(
        cls,
        head: ResponseHead,
        policy: Policy,
        progress: Sequence[Mapping[str, Any]],
        *,
        new_cutter: Callable[[], ClaimCutter],
        started_at: float,
        now: float,
        reading: Callable[[int], float],
        max_answer_chars: int,
        challenger: Policy | None = None,
        excused_s: float = 0.0,
        unreadable: bool = False,
    ) -> Self:
        """The session whose captures, in order, are ``progress``.

        ``started_at`` is when it began, on the clock of ``now``; ``reading`` converts Unix milliseconds to
        readings of that clock. ``excused_s``: how long nobody held the session, which its deadline doesn't
        count; what was excused before is in ``progress``. Of an ``unreadable`` one it is what can be
        salvaged; unless that is decided, end it. Raises UnreadableSession, and StateError for state of a
        newer version.
        """
        state = salvage(progress, UNREADABLE) if unreadable else read_state(head, policy, progress)
        standing = state.standing
        cutter = ResumingCutter(new_cutter, state.text, CutPosition(*standing.cut))
        session = cls(
            head, policy, cutter, now=started_at, max_answer_chars=max_answer_chars, challenger=challenger
        )
        if head.deadline_ms is not None:
            session._excused_ms = min(MOST, standing.excused_ms + round(excused_s * 1000))
            session._due += session._excused_ms / 1000
        session._stand_at(state, now, reading)
        if not standing.decided:
            session._take_up(state, now)
        session._journal.resume(state, len(session._parts), session._out)
        return session

    def resume(self, now: float) -> list[Effect]:
        """Ask again about claims without a verdict, and cut the rest of a text that had ended; tell what only
        waited for reasons."""
        if self._outcome is not None:
            return self.tell_verdict()
        effects: list[Effect] = []
        if self.pending:
            asked = ((claim_id, pending.claim) for claim_id, pending in self.pending.items())
            effects.append(AskJudge(tuple(asked)))
        if self.reading and (self.input_ended or self._incomplete_rule is not None):
            self.reading = False
            self._text_ended_at = now
            effects += self._end_cutting((), now)
        return effects

    def capture(self, unix_ms: Callable[[float], int]) -> Facts | None:
        """What is new since the last capture, as this module describes it; None: nothing.

        ``unix_ms`` converts a reading of the session's clock to Unix milliseconds.
        """
        journal = self._journal
        if self.decided and self.silent:
            return journal.write_silent(self.next_seq)
        standing = self._standing(unix_ms)
        parts = () if isinstance(self.head, Response) else self._parts  # whose text is in the head
        # Until the end a policy that holds needs all segments.
        first_open = standing.resolved if self._streaming or self._observing else 0
        pending = {one.claim.index for one in self.pending.values()}
        return journal.write(standing, parts, self.head.contexts, self._out, first_open, pending)

    # ----------------------------------------------------------------------------------- inside

    def _standing(self, unix_ms: Callable[[float], int]) -> Standing:
        position = self._cutter.position
        after_end = self._observing and self._text_ended_at is not None
        ended_at = None if self.uncut else self._text_ended_at  # whoever resumes it has to cut the rest
        early, stopped, outcome = self._ended_early, self._stopped, self._outcome
        return Standing(
            next_seq=self.next_seq,
            chars=self.answer_chars if after_end else None,
            cut=(position.chars, position.segments, position.claims),
            resolved=self._queue[0].segment.index if self._queue else position.segments,
            delivered=self._out.seq,
            released=self._out.released_end,
            worst=(self._decider.worst, self._decider.worst_rule),
            incomplete=self._incomplete_rule,
            judging_stopped=self._judging_stopped,
            ended_at=None if early is None else (early.after, early.forced),
            stopped_at=None if stopped is None else stopped.after,
            outcome=None if outcome is None else (outcome.decision, outcome.rule, outcome.to_the_end),
            decided=self.decided and outcome is None,
            ended=self.input_ended,
            text_ended_ms=None if ended_at is None else unix_ms(ended_at),
            outcome_ms=None if outcome is None else unix_ms(outcome.at),
            first_verdict_ms=None if self._first_verdict_at is None else unix_ms(self._first_verdict_at),
            excused_ms=self._excused_ms,
            usage=self.usage,
        )

    def _release(self) -> None:
        super()._release()
        self._journal.forget()

    def _stand_at(self, state: SessionState, now: float, reading: Callable[[int], float]) -> None:
        standing = state.standing
        self.next_seq = standing.next_seq
        self.answer_chars = state.answer_chars
        self.usage = standing.usage
        if standing.outcome is not None and not standing.decided:
            at = now if standing.outcome_ms is None else min(now, reading(standing.outcome_ms))
            self._outcome = Ending(*standing.outcome, at)
        self.decided = standing.decided or self._outcome is not None
        self.input_ended = standing.ended
        self._decider.worst, self._decider.worst_rule = standing.worst
        self._incomplete_rule = standing.incomplete
        self._judging_stopped = standing.judging_stopped
        self._out.seq, self._out.released_end = standing.delivered, standing.released
        self._last_event_at = now
        if standing.text_ended_ms is not None:
            self._text_ended_at = min(now, reading(standing.text_ended_ms))
        if standing.first_verdict_ms is not None:
            self._first_verdict_at = min(now, reading(standing.first_verdict_ms))
        self.reading = not self.decided and self._text_ended_at is None
        if standing.decided:
            self._release()

    def _take_up(self, state: SessionState, now: float) -> None:
        if state.text:
            self._parts.append(state.text)
        self._out.ready += state.ready
        self._out.replaced += state.replaced
        self._claims += state.resolved
        self._decider.count(state.resolved)
        self._take_up_course(state)
        due = min(now + self._claim_timeout_s, self._due)
        for found in state.open:
            held = HeldSegment(found.segment, len(found.pending), found.verdicts)
            self._queue.append(held)
            for claim in found.pending:
                self.pending[self._make.claim_id(claim)] = Pending(claim, held, now, due)

    def _take_up_course(self, state: SessionState) -> None:
        claims = Counter(verdict.segment for verdict in state.resolved)
        standing = state.standing
        resolved = range(standing.cut[1] - len(state.open))
        self._resolved += [(state.kinds.get(segment), claims[segment]) for segment in resolved]
        if standing.incomplete is not None:
            after, forced = standing.ended_at or (len(resolved), False)
            self._ended_early = Interruption(rule=standing.incomplete, after=after, forced=forced)
        if standing.judging_stopped is not None:
            self._stopped = Interruption(rule=standing.judging_stopped, after=standing.stopped_at or 0)
