"""Many sessions, one judge.

The engine owns what waits: the judge's calls, their deadlines, the timers, the bounds. It is driven by
``handle``, which never waits, and answers through a callback, so the same engine serves a Kafka consumer,
the Python API and offline scoring. Output events of one response come in order; responses never wait for
each other.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from guardrail.claims.cutter import ClaimCutter
from guardrail.claims.model import Claim
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.effects import Cancel, Channel, Effect, Emit
from guardrail.effects import Judge as AskJudge
from guardrail.errors import JudgeError, ProtocolError
from guardrail.events import (
    OutputEvent,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
    Usage,
)
from guardrail.evidence.index import EvidenceIndex
from guardrail.finished import FinishedResponses, digest
from guardrail.judges.base import Judge, Judgement, JudgeRequest, reconcile, unverified
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session import Session

Headers = tuple[tuple[str, bytes], ...]
InputEventType = ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | Response
OVERLOADED: Final = "overloaded"
MAX_SEQ: Final = 2**31
MOST_WHILE_SHEDDING: Final = 1.5
"""Times ``limits.max_bytes``: while only reading can make room, text grows up to here and no further."""

# The library logs by the standard means, which are silent about warnings' details until configured; never
# with a traceback of an unknown judge's error, whose message may hold texts.
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Output:
    """One event to publish, with the headers that came with the response's start."""

    channel: Channel
    event: OutputEvent
    headers: Headers


@dataclass(slots=True, eq=False)
class _Run:
    """A session and what the engine keeps beside it."""

    session: Session
    headers: Headers
    digest: bytes
    chars: int
    evidence: EvidenceIndex | None = None
    waiting: list[tuple[str, Claim]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None
    timer_due: float = float("inf")
    pending: int = 0
    silent: bool = False


class Engine:
    """Carries out what sessions ask for.

    Use as an async context manager; leaving it cancels what is still under way. ``emit`` is called, on the
    event loop, for every output; ``on_closed`` once for every response of which nothing more will be
    emitted or read. Neither may raise.
    """

    def __init__(
        self,
        judge: Judge,
        router: PolicyRouter,
        *,
        emit: Callable[[Output], None],
        on_closed: Callable[[str], None] | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._judge = judge
        self._name = judge.name
        self._router = router
        self._emit = emit
        self._on_closed = on_closed
        self._limits = limits or Limits()
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._finished = FinishedResponses(
            self._limits.finished_responses_remembered, self._limits.finished_response_ttl_ms / 1000
        )
        self._raters: dict[int, tuple[Policy, BuiltinSeverityRater]] = {}
        self._slots = asyncio.Semaphore(self._limits.max_concurrent_judgements)
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._chars = 0
        self._pending = 0
        self._silent = 0
        self._saturated = False
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.shedding = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for run in list(self._runs.values()):
            self._drop(run)
        for task in self._tasks:
            task.cancel()
        # The group is told nothing of the caller's error, which it would wrap into a group of one.
        await self._group.__aexit__(None, None, None)

    # ------------------------------------------------------------------------------------ state

    @property
    def sessions(self) -> int:
        """Responses in flight."""
        return len(self._runs)

    @property
    def pending_claims(self) -> int:
        """Claims that wait for a verdict."""
        return self._pending

    @property
    def saturated(self) -> bool:
        """A bound is reached; true until all are below ``limits.resume_at`` of it."""
        return self._saturated

    async def room(self) -> None:
        """Wait until the engine is not saturated."""
        await self._room.wait()

    def knows(self, response_id: str) -> bool:
        """Is this response in flight?"""
        return response_id in self._runs

    def decided(self, response_id: str) -> bool:
        """Are the final events of this response out, so that more of its text changes nothing?"""
        run = self._runs.get(response_id)
        return run is None or run.session.silent

    # ------------------------------------------------------------------------------------ input

    def pass_over(self, head: ResponseStarted | Response, headers: Headers = ()) -> None:
        """Read this response to its end and say nothing: it was decided before a restart."""
        if head.response_id not in self._runs:
            run = self._open(head, headers, digest(head))
            run.session.fall_silent()
            if isinstance(head, Response):
                run.session.complete(1, self._clock())
            self._carry_out(run, [])

    def handle(self, event: InputEventType, headers: Headers = ()) -> None:
        """Take one event. Raises ProtocolError when it does not fit its response.

        A response that is in flight then ends early, under its policy; the others are unaffected. The
        event itself is the caller's to dead-letter.
        """
        run = self._runs.get(event.response_id)
        if isinstance(event, ResponseStarted | Response):
            self._start(event, headers, run)
            return
        if run is None:
            self._finished_or_unknown(event)
            return
        session = run.session
        chars = session.answer_chars
        try:
            effects = self._step(session, event)
        except ProtocolError as error:
            effects = session.end_early(error.reason, self._clock())
            if isinstance(event, ResponseCompleted):
                effects = [*effects, *session.complete(event.seq, self._clock())]
            self._carry_out(run, effects)
            raise
        if session.answer_chars != chars:
            run.chars += session.answer_chars - chars
            self._chars += session.answer_chars - chars
            if self._chars >= self._limits.max_bytes:
                self._measure()
                if self.shedding and self._chars >= MOST_WHILE_SHEDDING * self._limits.max_bytes:
                    effects = [*effects, *session.end_early(OVERLOADED, self._clock(), force_block=True)]
        if effects or session.closed:
            self._carry_out(run, effects)

    def reject(self, response_id: str, reason: str, headers: Headers = ()) -> None:
        """An event of this response can't be used: end it early, or refuse it when it is new.

        Nobody is to wait for a response that can't be checked: an unknown one is answered with a block
        (under the default policy), and its later text is ignored.
        """
        now = self._clock()
        run = self._runs.get(response_id)
        if run is not None:
            self._carry_out(run, run.session.end_early(reason, now))
        elif self._finished.get(response_id, now) is None:
            head = ResponseStarted(response_id=response_id)
            run = self._open(head, headers, b"")
            effects = run.session.end_early(reason, now, force_block=True)
            if run.session.silent:
                # Nothing is kept of it but its id, so that rubbish can't fill the guard.
                run.session.complete(0, now)
                run.session.next_seq = MAX_SEQ
            self._carry_out(run, effects)

    def discard(self, response_ids: Iterable[str]) -> None:
        """Forget responses without a word: another process takes them over."""
        for response_id in list(response_ids):
            run = self._runs.get(response_id)
            if run is not None:
                self._drop(run)

    async def drain(self) -> None:
        """Wait until no claim waits for a verdict."""
        await self._idle.wait()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run ``work`` for as long as the engine lives; an error in it ends the engine."""
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # ----------------------------------------------------------------------------------- inside

    def _step(
        self, session: Session, event: ResponseDelta | ResponseCompleted | ResponseAborted
    ) -> list[Effect]:
        now = self._clock()
        if isinstance(event, ResponseDelta):  # by far the most frequent
            return session.delta(event.seq, event.text, now)
        if isinstance(event, ResponseCompleted):
            return session.complete(event.seq, now)
        return session.abort(now)

    def _start(self, head: ResponseStarted | Response, headers: Headers, run: _Run | None) -> None:
        now = self._clock()
        fingerprint = digest(head)
        known = run.digest if run is not None else self._finished.get(head.response_id, now)
        if known is not None:
            self._repeated_start(known == fingerprint, run)
            return
        size = _size(head)
        too_large = size > self._limits.max_context_chars
        if too_large:
            head = head.model_copy(update={"contexts": (), "metadata": {}, "question": ""})
        run = self._open(head, headers, fingerprint)
        session = run.session
        if too_large:
            self._carry_out(run, session.end_early("contexts_too_large", now, force_block=True))
        elif self.shedding:
            self._carry_out(run, session.stop_judging(OVERLOADED, now))
        if isinstance(head, Response):
            self._whole(run, head.answer, now)
        if too_large:
            raise ProtocolError(
                "contexts_too_large",
                f"question, contexts and metadata: {size:,} characters are more than "
                f"limits.max_context_chars ({self._limits.max_context_chars:,}); send fewer passages or "
                "raise the limit",
            )

    def _whole(self, run: _Run, answer: str, now: float) -> None:
        session = run.session
        try:
            self._carry_out(run, session.answer(answer, now))
        except ProtocolError as error:  # too long: not a word of it is judged
            effects = session.end_early(error.reason, now, force_block=True)
            self._carry_out(run, [*effects, *session.answer(answer, now)])
            raise

    def _repeated_start(self, same: bool, run: _Run | None) -> None:
        if same:
            return  # sent twice by a producer, or read twice after a restart
        if run is None:
            raise ProtocolError("response_finished", "a response with this id has finished already")
        self._carry_out(run, run.session.end_early("duplicate_start", self._clock()))
        raise ProtocolError("duplicate_start", "a response with this id and another content is under way")

    def _finished_or_unknown(self, event: ResponseDelta | ResponseCompleted | ResponseAborted) -> None:
        if self._finished.get(event.response_id, self._clock()) is None:
            raise ProtocolError("unknown_response", "no response with this id was started")
        if isinstance(event, ResponseDelta) and not self._finished.repeats(event.response_id, event.seq):
            raise ProtocolError("response_finished", f"delta {event.seq} came after the end of the response")

    def _open(self, head: ResponseHead, headers: Headers, fingerprint: bytes) -> _Run:
        policy = self._router.choose(head.route, head.tenant)
        cutter = ClaimCutter(self._rater(policy), max_segment_chars=policy.max_segment_chars)
        session = Session(
            head, policy, cutter, now=self._clock(), max_answer_chars=self._limits.max_answer_chars
        )
        chars = _size(head)
        if isinstance(head, Response):
            chars += len(head.answer)
        run = _Run(session, headers, fingerprint, chars)
        self._runs[head.response_id] = run
        self._chars += chars
        self._arm(run)
        self._measure()
        return run

    def _rater(self, policy: Policy) -> BuiltinSeverityRater:
        # Compiled once a policy; the policy is kept beside it so that its id can't be another's.
        cached = self._raters.get(id(policy))
        if cached is None:
            cached = self._raters[id(policy)] = (policy, BuiltinSeverityRater(policy.severity))
        return cached[1]

    def _carry_out(self, run: _Run, effects: list[Effect]) -> None:
        for effect in effects:
            if type(effect) is Emit:
                self._emit(Output(effect.channel, effect.event, run.headers))
            elif type(effect) is AskJudge:
                run.waiting.extend(effect.claims)
                if run.task is None:
                    run.task = self.spawn(self._judge_claims(run), name="judge")
            elif type(effect) is Cancel:
                self._cancel(run)
        self._count_pending(run)
        if run.session.closed:
            self._close(run)
            return
        if run.session.silent and not run.silent:  # it takes next to nothing until its input ends
            run.silent = True
            self._silent += 1
        if run.session.decided:  # the rest is read and ignored; the session has let go of its texts
            self._chars -= run.chars
            run.chars = 0
            run.evidence = None  # it holds the contexts
        self._arm(run)

    def _cancel(self, run: _Run) -> None:
        run.waiting.clear()
        if run.task is not None and run.task is not asyncio.current_task():
            run.task.cancel()

    def _count_pending(self, run: _Run) -> None:
        pending = run.session.pending_claims
        if pending != run.pending:
            self._pending += pending - run.pending
            run.pending = pending
            if self._pending:
                self._idle.clear()
            else:
                self._idle.set()
            self._measure()

    def _close(self, run: _Run) -> None:
        session = run.session
        self._finished.add(session.head.response_id, run.digest, session.next_seq, self._clock())
        self._drop(run)
        if self._on_closed is not None:
            self._on_closed(session.head.response_id)

    def _drop(self, run: _Run) -> None:
        if self._runs.pop(run.session.head.response_id, None) is None:
            return
        self._cancel(run)
        if run.timer is not None:
            run.timer.cancel()
        self._chars -= run.chars
        self._pending -= run.pending
        self._silent -= run.silent
        run.pending = 0
        if not self._pending:
            self._idle.set()
        self._measure()

    def _measure(self) -> None:
        limits = self._limits
        share = max(
            (len(self._runs) - self._silent) / limits.max_sessions,
            self._chars / limits.max_bytes,
            self._pending / limits.max_pending_claims,
        )
        if share >= 1.0 and not self._saturated:
            self._saturated = True
            self._room.clear()
        elif share < limits.resume_at and self._saturated:
            self._saturated = self.shedding = False
            self._room.set()

    # ----------------------------------------------------------------------------------- timers

    def _arm(self, run: _Run) -> None:
        """Have ``_on_timer`` called no later than the session's next deadline.

        A timer that fires early just arms itself again, so deadlines that move away cost nothing.
        """
        due = run.session.next_deadline
        if due >= run.timer_due:
            return
        if run.timer is not None:
            run.timer.cancel()
        delay = max(0.0, due - self._clock())
        run.timer = asyncio.get_running_loop().call_later(delay, self._on_timer, run)
        run.timer_due = due

    def _on_timer(self, run: _Run) -> None:
        run.timer, run.timer_due = None, float("inf")
        if run.session.next_deadline <= self._clock():
            self._carry_out(run, run.session.tick(self._clock()))
        else:
            self._arm(run)

    # ------------------------------------------------------------------------------------ judge

    async def _judge_claims(self, run: _Run) -> None:
        """Put the claims of one response to the judge, those that came meanwhile in the next call.

        One call at a time for each response: its claims go together, share their contexts, and are
        answered in order; responses are judged beside each other.
        """
        try:
            if run.evidence is None:
                run.evidence = EvidenceIndex(run.session.head.contexts)
            while run.waiting and not run.session.decided:
                async with self._slots:
                    batch = self._next_batch(run)
                    if not batch:
                        continue
                    found, usage = await self._ask(run, run.evidence, batch)
                run.session.usage = _add(run.session.usage, usage)
                self._carry_out(run, run.session.judged(found, self._clock()))
        finally:
            run.task = None

    def _next_batch(self, run: _Run) -> dict[str, Claim]:
        taken = run.waiting[: self._limits.max_claims_per_call]
        del run.waiting[: len(taken)]
        return {claim_id: claim for claim_id, claim in taken if run.session.awaits(claim_id)}

    async def _ask(
        self, run: _Run, evidence: EvidenceIndex, batch: dict[str, Claim]
    ) -> tuple[list[Judgement], Usage]:
        """One judgement for each claim, whatever the judge does."""
        session = run.session
        deadline = session.due(batch)
        request = JudgeRequest(
            response_id=session.head.response_id,
            question=session.head.question,
            claims=batch,
            evidence=evidence,
            deadline=deadline,
            generator_model=session.head.generator_model,
        )
        try:
            async with asyncio.timeout(deadline - self._clock()):
                reply = await self._judge.judge(request)
            return list(reconcile(list(batch), reply, self._name).values()), reply.usage
        except TimeoutError:
            reason = "no verdict in time"
        except JudgeError as error:
            reason = f"{type(error).__name__}: {error}"
            _log.warning("judge failed: %s", reason)
        except Exception as error:  # noqa: BLE001 - a faulty judge must not take others down
            reason = f"{type(error).__name__} in the judge"
            _log.error("faulty judge %r: %s", self._name, type(error).__name__)
        return [unverified(claim_id, self._name, reason) for claim_id in batch], Usage()


def _size(head: ResponseHead) -> int:
    """Characters that a response holds before its text."""
    size = len(head.question) + sum(len(c.text) + len(c.id) + len(c.source or "") for c in head.contexts)
    return size + (len(json.dumps(head.metadata)) if head.metadata else 0)


def _add(total: Usage, more: Usage) -> Usage:
    return Usage(**{name: getattr(total, name) + getattr(more, name) for name in Usage.model_fields})
