"""What an engine keeps about its responses, including finished ones, and the records it hands out.

Responses are stored as records, and sessions are made from stored records.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from guardrail.claims.citations import CitationReader
from guardrail.claims.cutter import ClaimCutter
from guardrail.claims.links import KnownLinks
from guardrail.claims.model import Claim
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.engine.load import Bounds, Load, over_their_share
from guardrail.errors import ProtocolError, UnreadableSession
from guardrail.events import (
    Context,
    OutputEvent,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
)
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import GatheringJudge, Judge, question_to_judge
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session.machine import Session
from guardrail.session.outputs import Channel
from guardrail.session.state import STATE_VERSION, check_version, unreadable
from guardrail.session.stored import StoredSession
from guardrail.verdicts import Judgement, better_of


def digest(head: ResponseHead) -> bytes:
    """Distinguishes two starts with one id: 8 bytes over the whole event."""
    return blake2b(head.to_json(), digest_size=8).digest()


class _Remembered(NamedTuple):
    forget_at: float
    digest: bytes
    next_seq: int


class FinishedResponses:
    """Bounded in number and time; the oldest go first."""

    def __init__(self, max_entries: int, ttl_s: float) -> None:
        self._max_entries = max_entries
        self._ttl_s = ttl_s
        self._entries: OrderedDict[str, _Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, response_id: str, fingerprint: bytes, next_seq: int, now: float) -> None:
        """Remember a response that has just finished, with the number of deltas read."""
        self._entries.pop(response_id, None)
        self._entries[response_id] = _Remembered(now + self._ttl_s, fingerprint, next_seq)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def get(self, response_id: str, now: float) -> bytes | None:
        """The digest of its start; None if it isn't remembered."""
        while self._entries and next(iter(self._entries.values())).forget_at <= now:
            self._entries.popitem(last=False)
        entry = self._entries.get(response_id)
        return None if entry is None else entry.digest

    def require_repeated(
        self, event: ResponseDelta | ResponseCompleted | ResponseAborted, now: float
    ) -> None:
        """Raises ProtocolError unless this event was read before its response finished."""
        if self.get(event.response_id, now) is None:
            raise ProtocolError("unknown_response", "no response with this id was started")
        if isinstance(event, ResponseDelta) and event.seq >= self._entries[event.response_id].next_seq:
            raise ProtocolError("response_finished", f"delta {event.seq} came after the end of the response")


_RATERS_KEPT: Final = 64


class Cutters:
    """Makes cutters; a policy's severity rules are compiled once for as long as it is in use."""

    def __init__(self) -> None:
        # The policy is kept with its rater so that another one can't get its id.
        self._raters: OrderedDict[int, tuple[Policy, BuiltinSeverityRater]] = OrderedDict()

    def new(self, policy: Policy, question: str, contexts: Sequence[Context]) -> ClaimCutter:
        """A cutter for one response to this question, with these contexts, under this policy."""
        cached = self._raters.get(id(policy))
        if cached is None:
            cached = self._raters[id(policy)] = (policy, BuiltinSeverityRater(policy.severity))
            if len(self._raters) > _RATERS_KEPT:  # policies of restored responses come and go
                self._raters.popitem(last=False)
        links = KnownLinks(contexts)
        return ClaimCutter(
            cached[1],
            citations=CitationReader(contexts, links),
            links=links,
            max_segment_chars=policy.max_segment_chars,
            question=question_to_judge(question),
        )


class EqualClaims:
    """Of the claims of one response that say the same, only the first is judged: an answer that repeats
    itself must not cost more than one that doesn't."""

    __slots__ = ("_behind", "_hurried", "_keys", "_said", "known")

    def __init__(self) -> None:
        self.known: deque[Judgement] = deque()
        """Judgements of claims that are equal to others, not told yet."""
        self._said: dict[Hashable, Judgement] = {}
        self._behind: dict[Hashable, list[tuple[str, Claim]]] = {}
        self._keys: dict[str, Hashable] = {}  # of those that are asked about
        self._hurried: dict[str, Judgement] = {}  # of those that are asked about again

    def first(self, asked: Iterable[tuple[str, Claim]]) -> list[tuple[str, Claim]]:
        """Those of ``asked`` that the judge is to be asked about."""
        found = []
        for claim_id, claim in asked:
            key = _said_by(claim)
            if claim_id in self._keys:  # again
                found.append((claim_id, claim))
            elif key in self._said:
                self.known.append(replace(self._said[key], claim_id=claim_id))
            elif key in self._behind:
                self._behind[key].append((claim_id, claim))
            else:
                self._behind[key], self._keys[claim_id] = [], key
                found.append((claim_id, claim))
        return found

    def take(self, judgement: Judgement, *, final: bool) -> None:
        """Take a judgement for all claims that are equal to the one it is of; what it cost is that one's.
        ``final``: unless it is asked about again."""
        if not final:
            self._hurried[judgement.claim_id] = judgement
            return
        key = self._keys.pop(judgement.claim_id, None)
        if key is not None:
            hurried = self._hurried.pop(judgement.claim_id, None)
            best = judgement if hurried is None else better_of(hurried, judgement)
            said = replace(best, usage=None, explain=None)
            if not (said.unanswered or said.hurried):  # a judge may say more of those that come later
                self._said[key] = said
            self.known.extend(replace(said, claim_id=claim_id) for claim_id, _ in self._behind.pop(key))

    def skip(self, claim_id: str) -> list[tuple[str, Claim]]:
        """No verdict on this claim is wanted any more; returns those to be asked about in its place."""
        key = self._keys.pop(claim_id, None)
        return [] if key is None else self.first(self._behind.pop(key))

    def forget(self) -> None:
        """No verdict is wanted any more."""
        for held in (self.known, self._said, self._behind, self._keys, self._hurried):
            held.clear()


def _said_by(claim: Claim) -> Hashable:
    """All of a claim that judges are told, and that their results are taken in by."""
    reasons = claim.severity_reasons
    return claim.text, claim.lead_in, claim.severity, reasons, claim.mentions, claim.citations


Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One event to publish, with the headers that came with the response's start, and its lane.

    ``waited_s`` is the age of the text that a delivery releases, if known; ``late_s`` how long ago the
    latest input of the response had been written when it was read.
    """

    channel: Channel
    event: OutputEvent
    headers: Headers
    lane: Hashable = None
    waited_s: float | None = None
    late_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ClosedResponse:
    """A response that will emit and read nothing more.

    ``born`` is the number it was started with, ``digest`` (hex) distinguishes its start from another with the
    same id, ``next_seq`` is the number of deltas read.
    """

    response_id: str
    lane: Hashable
    born: int
    digest: str
    next_seq: int


@dataclass(frozen=True, slots=True)
class Captured:
    """What is new about a response in flight, as JSON-able values. None: nothing new.

    ``head`` comes once, and again when there is nothing more to output: it is small then, and ``progress``
    replaces all earlier records.
    """

    born: int
    head: dict[str, Any] | None
    progress: dict[str, Any] | None
    policy: Policy


class Change(NamedTuple):
    """Effect of a step: a response has new state to store.

    A change comes with the outputs of the step, and no other follows until it is taken: what further steps
    add goes into the same increment. A writer that takes every change therefore has all state, and never has
    to ask the engine.
    """

    lane: Hashable
    """The lane that the response is read from, which owns this state."""
    response_id: str
    run: Run
    clock: Callable[[], float]
    """The engine's, in seconds."""
    wall: Callable[[], float]
    """Unix time, in seconds."""

    def take(self) -> Captured | None:
        """The increment since the last one, which counts as stored; None if the response is over."""
        run = self.run
        if run.dropped:
            return None
        run.stored = True
        session = run.session
        if not isinstance(session, StoredSession):
            raise TypeError("an engine without on_change captures nothing")
        epoch = self.wall() - self.clock()

        def unix_ms(reading: float) -> int:
            return round((epoch + reading) * 1000)

        silent = session.decided and session.silent  # most are not decided, which costs no call
        known = run.silence_captured if silent else run.head_captured
        head = None if known else capture_head(run, unix_ms)
        run.head_captured, run.silence_captured = True, silent
        return Captured(run.born, head, session.capture(unix_ms), session.policy)


@dataclass(slots=True, eq=False)
class LaneRuns:
    """Responses that are read from and written to one place: a partition."""

    key: Hashable
    finished: FinishedResponses
    load: Load = field(default_factory=Load)
    runs: dict[str, Run] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Run:
    """A session and what the engine keeps with it."""

    session: Session
    judge: Judge
    lane: LaneRuns
    born: int
    headers: Headers
    digest: bytes
    chars: int
    stored: bool = True
    """No Change of it is waiting to be taken."""
    head_captured: bool = False
    silence_captured: bool = False
    evidence: EvidenceIndex | None = None
    waiting: list[tuple[str, Claim]] = field(default_factory=list)
    equal: EqualClaims = field(default_factory=EqualClaims)
    counted_waiting: int = 0
    deferred: dict[str, tuple[Claim, Judgement]] = field(default_factory=dict)
    calls: set[asyncio.Task[None]] = field(default_factory=set)
    reasons: set[asyncio.Task[None]] = field(default_factory=set)  # that are being put into words
    reason_failed: bool = False
    sifting: set[object] = field(default_factory=set)  # gatherings of calls that can be joined
    timer: asyncio.TimerHandle | None = None
    timer_due: float = float("inf")
    pending: int = 0
    silent: bool = False
    telling: bool = False
    """The session is about to be told verdicts on claims that are equal to others."""
    dropped: bool = False
    max_wait_s: float = field(init=False)
    """How long the judge lets claims wait for others while more text comes; 0 for a judge that never does."""
    question: str = field(init=False)
    """As judges read it."""
    behind_s: float = 0.0
    """Of the engine's time with a judge that is behind: what was before its latest event, or is credited."""

    def __post_init__(self) -> None:
        self.question = question_to_judge(self.session.head.question)
        # Once: whether a judge fits a protocol takes longer to say than a delta to handle.
        self.max_wait_s = self.judge.max_wait_s if isinstance(self.judge, GatheringJudge) else 0.0

    def newly_waiting(self, most: int) -> int:
        """How many more claims wait for a call than at the last count, of those that one call takes: the
        others delay nobody else.
        """
        before, self.counted_waiting = self.counted_waiting, min(len(self.waiting), most)
        return self.counted_waiting - before

    def next_batch(self, most: int) -> tuple[dict[str, Claim], dict[str, Judgement]]:
        """Take the first claims to judge that still need a verdict, and what the judge said when it put some
        of them off.
        """
        batch: dict[str, Claim] = {}
        known: dict[str, Judgement] = {}
        for claim_id in list(self.deferred)[:most]:
            claim, said = self.deferred.pop(claim_id)
            if claim_id in self.session.pending:
                batch[claim_id], known[claim_id] = claim, said
            else:
                self.waiting += self.equal.skip(claim_id)
        taken = self.waiting[: most - len(batch)]
        del self.waiting[: len(taken)]
        for claim_id, claim in taken:
            if claim_id in self.session.pending:
                batch[claim_id] = claim
            else:
                self.waiting += self.equal.skip(claim_id)
        return batch, known

    def closed(self) -> ClosedResponse:
        """The record of the response when it is over."""
        session = self.session
        return ClosedResponse(
            session.head.response_id, self.lane.key, self.born, self.digest.hex(), session.next_seq
        )


def size_of(head: ResponseHead) -> int:
    """Characters of a response before its deltas."""
    size = len(head.question) + sum(len(c.text) + len(c.id) + len(c.source or "") for c in head.contexts)
    return size + (len(to_json(head.metadata)) if head.metadata else 0)


class RunTable:
    """The responses in flight, by id and by lane, and their share of the bounds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._hot: set[Hashable] = set()
        self.bounds = Bounds(limits)
        self.by_id: dict[str, Run] = {}
        self.lanes: dict[Hashable, LaneRuns] = {}

    def lane(self, key: Hashable) -> LaneRuns:
        """The lane, which exists from its first response until it is dropped."""
        lane = self.lanes.get(key)
        if lane is None:
            limits = self._limits
            finished = FinishedResponses(
                limits.finished_responses_remembered, limits.finished_response_ttl_ms / 1000
            )
            lane = self.lanes[key] = LaneRuns(key, finished)
        return lane

    def add(
        self, session: Session, judge: Judge, headers: Headers, digest: bytes, lane: LaneRuns, born: int
    ) -> Run:
        """Add a response."""
        head = session.head
        chars = size_of(head) + (len(head.answer) if isinstance(head, Response) else session.answer_chars)
        run = Run(session, judge, lane, born, headers, digest, chars)
        self.by_id[head.response_id] = lane.runs[head.response_id] = run
        self.bounds.add(lane.load, sessions=1, chars=chars)
        return run

    def count(self, run: Run) -> None:
        """Update the response's load."""
        session, load = run.session, run.lane.load
        # Text that is not cut counts as a claim, or its response would pass for idle.
        pending = len(session.pending) + bool(session.uncut)
        if pending != run.pending:
            more, run.pending = pending - run.pending, pending
            self.bounds.add(load, pending=more)
        if not session.decided or not session.concluded:
            return
        if session.silent and not run.silent:  # it takes next to nothing until its input ends
            run.silent = True
            self.bounds.add(load, sessions=-1)
        if run.chars:  # the session has dropped its texts
            chars, run.chars = run.chars, 0
            self.bounds.add(load, chars=-chars)

    def remove(self, run: Run) -> None:
        """Remove a response."""
        run.dropped = True
        response_id = run.session.head.response_id
        del self.by_id[response_id], run.lane.runs[response_id]
        self.bounds.add(run.lane.load, sessions=run.silent - 1, chars=-run.chars, pending=-run.pending)

    def lanes_to_pause(self, lanes: Collection[Hashable]) -> set[Hashable]:
        """Which of ``lanes`` to pause; see ``Engine.lanes_to_pause``."""
        loads = {key: lane.load if (lane := self.lanes.get(key)) else Load() for key in lanes}
        bounds = self.bounds
        self._hot = over_their_share(loads, bounds.total.share(self._limits), self._hot, self._limits)
        if bounds.shedding:
            return set()
        return set(lanes) if bounds.saturated else set(self._hot)


def _as_bytes(value: object) -> object:
    return value.encode("latin-1") if isinstance(value, str) else value


def _unhexed(value: object) -> object:
    return bytes.fromhex(value) if isinstance(value, str) else value


class StoredHead(BaseModel):
    """The stored start of a response. ``started_ms`` is in Unix milliseconds; a header's value is stored as
    characters of the same numbers as its bytes.

    ``silent``: it had no more output, so its contexts and the like were not stored again.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    event: ResponseStarted | Response = Field(discriminator="type")
    headers: tuple[tuple[str, Annotated[bytes, BeforeValidator(_as_bytes)]], ...] = ()
    started_ms: int
    digest: Annotated[bytes, BeforeValidator(_unhexed)] = b""
    silent: bool = False


def capture_head(run: Run, unix_ms: Callable[[float], int]) -> dict[str, Any]:
    """The start of a response to store, as JSON-able values.

    For a response without further output, only its id and lane: it has dropped its question, contexts and
    metadata, and no output will carry its headers. A whole response never waits for input in that state.
    """
    silent = run.session.silent
    return {
        "v": STATE_VERSION,
        "event": from_json(run.session.head.to_json()),
        "headers": [] if silent else [[name, value.decode("latin-1")] for name, value in run.headers],
        "started_ms": unix_ms(run.session.started_at),
        "digest": run.digest.hex(),
        "silent": silent,
    }


def read_head(head: Mapping[str, Any]) -> StoredHead:
    """Read what ``capture_head`` made.

    Raises StateError if a newer version wrote it, UnreadableSession if it makes no sense.
    """
    check_version(head)
    try:
        return StoredHead.model_validate(head)
    except ValidationError as error:
        raise unreadable(error, "head: ") from None


def restored_session(
    head: StoredHead,
    progress: Sequence[Mapping[str, Any]],
    policy: Policy | None,
    router: PolicyRouter,
    cutters: Cutters,
    *,
    now: float,
    epoch: float,
    max_answer_chars: int,
    excused_s: float = 0.0,
) -> tuple[StoredSession, bool]:
    """The captured session, or what can be salvaged of it; and whether it and its policy were readable.

    Raises StateError if a newer version wrote it.
    """
    event = head.event
    if policy is None:
        used = router.for_unknown(event.route, event.tenant, event.generator_model)
    else:  # one object for all sessions that have it, if it is still configured
        used = next((known for known in router.policies if known == policy), policy)

    def new_cutter() -> ClaimCutter:
        return cutters.new(used, event.question, event.contexts)

    def reading(unix_ms: int) -> float:
        return unix_ms / 1000 - epoch

    resumed = partial(
        StoredSession.restored,
        event,
        used,
        progress,
        new_cutter=new_cutter,
        now=now,
        reading=reading,
        max_answer_chars=max_answer_chars,
    )
    readable = policy is not None
    try:
        for stored in progress:
            check_version(stored)
        if readable:
            session = resumed(
                started_at=min(now, reading(head.started_ms)),
                challenger=router.challenger(used, event.response_id),
                excused_s=excused_s,
            )
    except UnreadableSession:
        readable = False
    if not readable:
        session = resumed(started_at=now, unreadable=True)
    if head.silent:  # whatever happened to its progress
        session.stop_output()
    return session, readable
