"""Runs many sessions with one judge, plus those that policies name.

The way of a response's text::

    handle ──event──> session ──effects──> _carry_out ──outputs──> emit      (all outputs of a step at once)
                         ^                     │     └──change──> on_change  (what the step leaves to store)
                         │                     │ claims
                      _judged <──verdicts── Gatherer.call ──> judge

The engine owns everything that waits: the judge's calls, their deadlines, the timers, the bounds. Its input
is ``handle``, which never waits, and its output is a callback, so the same engine serves a Kafka consumer,
the Python API and offline scoring. A step is an event, some verdicts, or time that has passed; ``_carry_out``
is the only place where what a session asks for is done.

A response belongs to a lane, which can be any hashable value; a consumer uses its partitions. Lanes share the
judge evenly. Each lane remembers its own finished responses and can be dropped silently. With ``on_change``,
the engine hands out state changes together with the outputs of the step that caused them, and another process
can continue from these with ``restore``.

Invariants (tests/property/test_event_fuzzing.py, tests/contract):
- output events of one response come in the order of its text; responses never wait for each other;
- a claim that is asked about gets one verdict, at its deadline at the latest, by a clock that stands still
  when the process does;
- every response that was begun is closed once, and leaves nothing behind in the bounds;
- no more claims, characters and responses are in flight than ``limits`` allow, but for what one event adds;
- a step takes one reading of the clock: all that comes of it bears the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from guardrail.awake import BEAT_S, awake
from guardrail.engine.judging import Gatherer, reason_in_words
from guardrail.engine.load import Backlog
from guardrail.engine.runs import (
    Captured,
    Change,
    ClosedResponse,
    Cutters,
    Headers,
    LaneRuns,
    Output,
    Run,
    RunTable,
    digest,
    read_head,
    restored_session,
    size_of,
)
from guardrail.errors import ConfigError, ProtocolError, UnreadableSession
from guardrail.events import (
    InputEvent,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
)
from guardrail.judges.base import MOST_QUESTION_CHARS, Judge, PacedJudge
from guardrail.limits import Limits
from guardrail.log_events import EventLog
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session.machine import Session
from guardrail.session.outputs import AskJudge, Cancel, CutOn, Effect, Emit, Explain
from guardrail.session.stored import UNREADABLE, StoredSession
from guardrail.verdicts import Judgement

__all__ = ["OVERLOADED", "Captured", "Change", "ClosedResponse", "Engine", "Headers", "Output"]

_log = EventLog(__name__)
_TOLD_EVERY_S: Final = 60.0
_STANDSTILL_TOLD_S: Final = 1.0
_LATEST_BEAT: Final = 0.2  # what the latest beat counts in how slow everything is
_TOKEN_S: Final = 0.02  # in which a language model writes one
_RUSHED: Final = 1.5  # times as slow as it should be: claims wait noticeably longer
_TOLD_AT_ONCE: Final = 10  # verdicts, in a turn of the event loop: a few milliseconds
_MOST_UNROUTED: Final = 100
"""Names of routes, which come from outside."""

OVERLOADED: Final = "overloaded"
WRONG_LANE: Final = "wrong_partition"
MAX_SEQ: Final = 2**31
MOST_WHILE_SHEDDING: Final = 1.5
"""Times ``limits.max_bytes``: while only reading can make room, text grows up to here and no further."""


class Engine:
    """Carries out what sessions ask for.

    Use as an async context manager; leaving it cancels all work in progress. The engine calls ``emit`` with
    the outputs of each step that has any, ``on_closed`` once for every response that will emit and read
    nothing more, and ``on_change`` when a response has something to store; it reports further changes of
    that response only after those are taken. It makes all calls on the event loop, and none of the callbacks
    may raise. Without ``on_change`` the engine keeps no journal and can't restore. ``judges`` are those that
    policies name by ``judge``; ``judge`` is for all other policies. ``clock`` gives seconds on any monotonic
    clock, by default one that stands still when the process does, ``wall`` Unix time in seconds.
    """

    def __init__(
        self,
        judge: Judge,
        router: PolicyRouter,
        *,
        emit: Callable[[Sequence[Output]], None],
        on_closed: Callable[[ClosedResponse], None] | None = None,
        on_change: Callable[[Change], None] | None = None,
        limits: Limits | None = None,
        judges: Mapping[str, Judge] | None = None,
        clock: Callable[[], float] = awake,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._judge = judge
        self._judges: Mapping[str, Judge] = {}
        self._limits = limits or Limits()
        self._backlog = Backlog(self._limits.max_concurrent_judgements, self._limits.resume_at, clock)
        self._told_behind_at = float("-inf")
        self.use(router, judges)
        self._emit = emit
        self._on_closed = on_closed
        self._on_change = on_change
        self._session_type: type[Session] = StoredSession if on_change else Session
        self._clock = clock
        self._wall = wall
        self._table = RunTable(self._limits)
        self._runs, self._bounds = self._table.by_id, self._table.bounds
        self._cutters = Cutters()
        self._cutting: deque[Run] = deque()
        self._gatherer = Gatherer(
            self._limits,
            clock,
            judged=self._judged,
            proceed=lambda run: self._carry_out(run, (), self._clock()),
            wait=lambda run: self._arm(run, self._clock()),
        )
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = False
        self._heart: asyncio.TimerHandle | None = None
        self._stood_s = 0.0
        self._unrouted: set[str] = set()  # told already

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        awake.start()
        self._stood_s = awake.stood_s
        self._beat()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leaving = True
        if self._heart is not None:
            self._heart.cancel()
            awake.stop()
        for run in list(self._runs.values()):
            self._drop(run)
        for task in self._tasks:
            task.cancel()
        # Don't pass the caller's error to the task group, which would wrap it in a group of one.
        await self._group.__aexit__(None, None, None)

    def use(self, router: PolicyRouter, judges: Mapping[str, Judge] | None = None) -> None:
        """Use ``router`` to choose the policies of responses that begin from now on; others keep theirs.

        ``judges`` are added to those that policies can name. Raises ConfigError, and changes nothing, if a
        policy names a judge that doesn't exist.
        """
        known = {**self._judges, **(judges or {})}
        for policy in router.policies:
            if policy.judge is not None and policy.judge not in known:
                raise ConfigError(
                    f"policies.{policy.name}.judge: there is no judge {policy.judge!r} here; hand it over in "
                    f"judges, or name one of {', '.join(sorted(known)) or 'none'}"
                )
        self._router, self._judges = router, known
        paced = {
            id(judge): judge for judge in (self._judge, *known.values()) if isinstance(judge, PacedJudge)
        }
        self._paced = tuple(paced.values())
        self._backlog.timeout_s = min(policy.claim_timeout_ms for policy in router.policies) / 1000

    # ------------------------------------------------------------------------------------ state

    @property
    def sessions(self) -> int:
        """Responses in flight."""
        return len(self._runs)

    @property
    def pending_claims(self) -> int:
        """Claims that wait for a verdict."""
        return self._bounds.total.pending

    @property
    def chars(self) -> int:
        """Characters of questions, contexts and answers in flight."""
        return self._bounds.total.chars

    @property
    def judging(self) -> int:
        """Requests that the judge is working on."""
        return self._gatherer.slots.held

    @property
    def judge_queue(self) -> int:
        """Requests waiting for a turn at the judge."""
        return self._gatherer.slots.waiting

    @property
    def judge_wait_s(self) -> float:
        """How long a claim would wait for its verdict at the judge's recent pace, in seconds; 0 while the
        judge takes every request at once.
        """
        self._look()
        return self._backlog.wait_s

    @property
    def behind(self) -> bool:
        """Whether the judge is so far behind that claims might get no verdict in time: a claim would wait for
        a quarter of ``claim_timeout_ms``, the shortest of all policies. Nobody should add text until it has
        caught up, which needs no further input.
        """
        if self._may_be_behind:
            self._look()
        return self._backlog.behind

    @property
    def _may_be_behind(self) -> bool:
        backlog = self._backlog
        return bool(self._paced) or backlog.busy or backlog.behind or backlog.calls > backlog.at_once

    async def caught_up(self) -> None:
        """Wait until the judge is not behind."""
        await self._backlog.caught_up.wait()

    def oldest_held_s(self) -> float:
        """How long ago the oldest text that waits for its release was written, in seconds; 0 if there is
        none.
        """
        now = self._clock()
        runs = self._runs.values()
        ages = (now - at for run in runs if (at := run.session.oldest_held_at) is not None)
        return max(0.0, max(ages, default=0.0))

    @property
    def saturated(self) -> bool:
        """Whether a bound is reached; stays true until all are below ``limits.resume_at`` of it."""
        return self._bounds.saturated

    @property
    def shedding(self) -> bool:
        """Whether new responses are turned away. Ends by itself once there is room."""
        return self._bounds.shedding

    @shedding.setter
    def shedding(self, value: bool) -> None:
        self._bounds.shedding = value

    async def room(self) -> None:
        """Wait until the engine is not saturated."""
        await self._bounds.room.wait()

    def load(self, lane: Hashable) -> float:
        """A lane's share of the bound that it is closest to."""
        found = self._table.lanes.get(lane)
        return 0.0 if found is None else found.load.share(self._limits)

    def lanes_to_pause(self, lanes: Collection[Hashable]) -> set[Hashable]:
        """Which of ``lanes``, all lanes currently read, to pause; call it regularly.

        All of them while the engine is saturated or the judge behind, unless the engine sheds; before that,
        those above their fair share.
        """
        hot = self._table.lanes_to_pause(lanes)
        return set(lanes) if self.behind and not self.shedding else hot

    def knows(self, response_id: str) -> bool:
        """Whether this response is in flight."""
        return response_id in self._runs

    def lane_of(self, response_id: str) -> Hashable | None:
        """The lane of a response in flight; None if it isn't in flight."""
        run = self._runs.get(response_id)
        return None if run is None else run.lane.key

    def delivered(self, response_id: str) -> bool:
        """Whether more of this response's text changes nothing; its final verdict may wait for reasons."""
        run = self._runs.get(response_id)
        return run is None or run.session.delivered

    def decided(self, response_id: str) -> bool:
        """Whether the final events of this response are out."""
        run = self._runs.get(response_id)
        return run is None or run.session.silent

    # ------------------------------------------------------------------------------------ input

    def skip(
        self, head: ResponseStarted | Response, headers: Headers = (), *, lane: Hashable = None, born: int = 0
    ) -> None:
        """Read this response to its end without output: it was decided before a restart."""
        if head.response_id not in self._runs:
            run = self._open(head, headers, digest(head), self._table.lane(lane), born)
            run.session.stop_output()
            now = self._clock()
            if isinstance(head, Response):
                run.session.complete(1, now)
            self._carry_out(run, (), now)

    def joins(self, response_id: str, seq: int, chars: int, lane: Hashable) -> bool:
        """Whether the deltas of this response from ``seq`` on, so many characters, may be handled as one."""
        run = self._runs.get(response_id)
        return run is not None and run.lane.key == lane and run.session.joins(seq, chars)

    def handle(
        self,
        event: InputEvent,
        headers: Headers = (),
        *,
        lane: Hashable = None,
        born: int = 0,
        late_s: float = 0.0,
        policy: Policy | None = None,
        pieces: int = 1,
    ) -> None:
        """Handle one event that was read from ``lane``, ``late_s`` seconds after it was written. Raises
        ProtocolError if it does not fit its response.

        A response in flight then ends early, under its policy; the others are unaffected. The caller
        dead-letters the event itself. ``born`` is stored with the response that the event begins, if any, to
        distinguish two lives of one id. ``policy`` is for that response, in place of the router's.
        ``pieces``: how many deltas the event joins, as ``joins`` allows.
        """
        run = self._runs.get(event.response_id)
        if run is not None and run.stored:
            self._changed(run)
        now = self._clock()
        if run is not None:
            run.session.late_s = late_s
            if run.lane.key is not lane and run.lane.key != lane:
                self._carry_out(run, run.session.end_early(WRONG_LANE, now), now)
                raise ProtocolError(
                    WRONG_LANE,
                    "this response is under way on another partition; key all its events by its id",
                )
        if isinstance(event, ResponseStarted | Response):
            self._start(event, headers, run, lane, born, late_s, policy, now)
            return
        if run is None:
            self._table.lane(lane).finished.require_repeated(event, now)
            return
        session = run.session
        chars = session.answer_chars
        run.behind_s = self._backlog.behind_s
        try:
            if isinstance(event, ResponseDelta):  # by far the most frequent event
                effects = session.delta(event.seq, event.text, now, pieces)
            elif isinstance(event, ResponseCompleted):
                effects = session.complete(event.seq, now)
            else:
                effects = session.abort(now)
        except ProtocolError as error:
            effects = session.end_early(error.reason, now)
            if isinstance(event, ResponseCompleted):
                effects = [*effects, *session.complete(event.seq, now)]
            self._carry_out(run, effects, now)
            raise
        grown = session.answer_chars - chars
        if grown:
            run.chars += grown
            run.lane.load.chars += grown
            total = self._bounds.total
            total.chars += grown
            if total.chars >= self._limits.max_bytes:
                self._bounds.measure()
                if self.shedding and total.chars >= MOST_WHILE_SHEDDING * self._limits.max_bytes:
                    effects = [*effects, *session.end_early(OVERLOADED, now, force_block=True)]
        if effects or session.closed:
            self._carry_out(run, effects, now)

    def reject(
        self, response_id: str, reason: str, headers: Headers = (), *, lane: Hashable = None, born: int = 0
    ) -> None:
        """Report an unusable event of this response: end the response early, or refuse it if it is new.

        Nobody should wait for a response that can't be checked. The engine answers an unknown one with a
        block, under a policy that blocks if there is one, and ignores its later text.
        """
        now = self._clock()
        run = self._runs.get(response_id)
        place = self._table.lane(lane)
        if run is not None:
            self._changed(run)
            self._carry_out(run, run.session.end_early(reason, now), now)
        elif place.finished.get(response_id, now) is None:
            head = ResponseStarted(response_id=response_id)
            run = self._open(head, headers, b"", place, born, self._router.for_unknown())
            effects = run.session.end_early(reason, now, force_block=True)
            if run.session.silent:
                # Keep only its id, so that garbage input can't fill the guard.
                run.session.complete(0, now)
                run.session.next_seq = MAX_SEQ
            self._carry_out(run, effects, now)

    def discard(self, response_ids: Iterable[str]) -> None:
        """Drop responses silently: another process takes them over."""
        for response_id in list(response_ids):
            run = self._runs.get(response_id)
            if run is not None:
                self._drop(run)

    def drop_lane(self, lane: Hashable) -> None:
        """Silently drop a lane's responses, those in flight and those that finished."""
        found = self._table.lanes.pop(lane, None)
        if found is not None:
            for run in list(found.runs.values()):
                self._drop(run)

    async def drain(self) -> None:
        """Wait until no claim waits for a verdict."""
        await self._bounds.idle.wait()

    def tell_verdicts(self) -> None:
        """Tell at once the final verdicts that only wait for reasons."""
        for run in list(self._runs.values()):
            if effects := run.session.tell_verdict():
                self._carry_out(run, effects, self._clock())

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run ``work`` for as long as the engine lives; an error in it ends the engine."""
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -------------------------------------------------------------------------- stored sessions

    def restore(
        self,
        response_id: str,
        head: Mapping[str, Any],
        progress: Sequence[Mapping[str, Any]],
        policy: Policy | None,
        *,
        lane: Hashable,
        born: int,
        excused_s: float = 0.0,
    ) -> None:
        """Resume a response from its increments, in order, under the policy it began with.

        Emits nothing, and asks the judge only about claims without a verdict. These have their whole
        ``claim_timeout_ms`` again, and ``deadline_ms`` is put off by ``excused_s``, in which nobody held the
        response. If ``progress`` is unreadable,
        or ``policy`` is None because it is unreadable, the response ends blocked by the rule
        session_state_unreadable. Raises UnreadableSession if ``head`` is unreadable or belongs to another
        response, and StateError if a newer version wrote any of it.
        """
        if not issubclass(self._session_type, StoredSession):
            raise TypeError("an engine without on_change restores nothing")
        stored = read_head(head)
        if stored.event.response_id != response_id:
            raise UnreadableSession("head: it is another response's")
        now = self._clock()
        other = self._runs.get(response_id)
        if other is not None:  # it was started on two partitions, held by two processes
            self._changed(other)
            self._carry_out(other, other.session.end_early(WRONG_LANE, now), now)
            self._tell_closed(ClosedResponse(response_id, lane, born, stored.digest.hex(), 0))
            return
        session, readable = restored_session(
            stored,
            progress,
            policy,
            self._router,
            self._cutters,
            now=now,
            epoch=self._wall() - now,  # readings of the clock mean nothing to another process
            max_answer_chars=self._limits.max_answer_chars,
            excused_s=excused_s,
        )
        judge = self._judge_of(session.policy)
        run = self._table.add(session, judge, stored.headers, stored.digest, self._table.lane(lane), born)
        run.head_captured, run.silence_captured = True, stored.silent
        run.behind_s = self._backlog.behind_s
        effects = session.resume(now) if readable else session.end_early(UNREADABLE, now, force_block=True)
        if excused_s and stored.event.deadline_ms is not None:
            self._changed(run)  # or the next one to take it up would not know of it
        self._carry_out(run, effects, now)

    def remember(self, lane: Hashable, response_id: str, digest: str, next_seq: int, age_s: float) -> None:
        """Remember a response that finished on this lane ``age_s`` seconds ago in another process; oldest
        first.
        """
        finished = self._table.lane(lane).finished
        finished.add(response_id, bytes.fromhex(digest), next_seq, self._clock() - max(0.0, age_s))

    def check_size(self, head: ResponseHead) -> None:
        """Raises ProtocolError for a response that is too large before its answer."""
        if (size := size_of(head)) > self._limits.max_context_chars:
            raise ProtocolError(
                "contexts_too_large",
                f"question, contexts and metadata: {size:,} characters are more than "
                f"limits.max_context_chars ({self._limits.max_context_chars:,}); send fewer passages or "
                "raise the limit",
            )

    # ----------------------------------------------------------------------------------- inside

    def _start(
        self,
        head: ResponseStarted | Response,
        headers: Headers,
        run: Run | None,
        lane: Hashable,
        born: int,
        late_s: float,
        policy: Policy | None,
        now: float,
    ) -> None:
        fingerprint = digest(head)
        place = self._table.lane(lane)
        known = run.digest if run is not None else place.finished.get(head.response_id, now)
        if known is not None:
            if known == fingerprint:
                return  # sent twice by a producer, or read twice after a restart
            if run is None:
                raise ProtocolError("response_finished", "a response with this id has finished already")
            self._carry_out(run, run.session.end_early("duplicate_start", now), now)
            raise ProtocolError("duplicate_start", "a response with this id and another content is under way")
        too_large: ProtocolError | None = None
        try:
            self.check_size(head)
        except ProtocolError as error:
            too_large = error
            head = head.model_copy(update={"contexts": (), "metadata": {}, "question": ""})
        run = self._open(head, headers, fingerprint, place, born, policy)
        session = run.session
        session.late_s = late_s
        if too_large is not None:
            self._carry_out(run, session.end_early("contexts_too_large", now, force_block=True), now)
        elif self.shedding:
            self._carry_out(run, session.stop_judging(OVERLOADED, now), now)
        if isinstance(head, Response):
            self._whole(run, head.answer, now)
        if too_large is not None:
            raise too_large

    def _whole(self, run: Run, answer: str, now: float) -> None:
        session = run.session
        try:
            self._carry_out(run, session.answer(answer, now), now)
        except ProtocolError as error:  # too long: none of it is judged
            effects = session.end_early(error.reason, now, force_block=True)
            self._carry_out(run, [*effects, *session.answer(answer, now)], now)
            raise

    def _open(
        self,
        head: ResponseHead,
        headers: Headers,
        fingerprint: bytes,
        lane: LaneRuns,
        born: int,
        policy: Policy | None = None,
    ) -> Run:
        challenger = None
        if policy is None:
            policy = self._router.choose(head.route, head.tenant, head.generator_model, head.response_id)
            self._note_unrouted(head)
            challenger = self._router.challenger(policy, head.response_id)
        session = self._session_type(
            head,
            policy,
            self._cutters.new(policy, head.question, head.contexts),
            now=self._clock(),
            max_answer_chars=self._limits.max_answer_chars,
            challenger=challenger,
        )
        if len(head.question) > MOST_QUESTION_CHARS:
            _log.warning("judge.question_cut", response_id=head.response_id, characters=len(head.question))
        run = self._table.add(session, self._judge_of(policy), headers, fingerprint, lane, born)
        run.behind_s = self._backlog.behind_s
        self._changed(run)
        self._arm(run, self._clock())
        return run

    def _note_unrouted(self, head: ResponseHead) -> None:
        """Say once of each route that no entry of ``routes`` names it: it may be misspelt there."""
        route = head.route
        if route is None or route in self._unrouted or len(self._unrouted) >= _MOST_UNROUTED:
            return
        if self._router.misses(route, head.tenant, head.generator_model):
            self._unrouted.add(route)
            _log.warning("policy.unrouted", route=route, response_id=head.response_id)

    def _judge_of(self, policy: Policy) -> Judge:
        """The judge that a policy names. The default judge replaces one that no longer exists, because the
        response began under another configuration.
        """
        if policy.judge is None:
            return self._judge
        judge = self._judges.get(policy.judge)
        if judge is None:
            _log.warning(
                "judge.not_set_up", policy=policy.name, judge=policy.judge, effect="the usual one judges"
            )
        return judge or self._judge

    def _carry_out(self, run: Run, effects: Sequence[Effect], now: float) -> None:
        """Do what a step of the session asks for, and what follows from where it stands now."""
        outputs = self._do(run, effects, now)
        session, gatherer = run.session, self._gatherer
        if outputs:
            self._emit(outputs)
            if run.stored:
                self._changed(run)
        self._table.count(run)
        if session.closed:
            self._close(run)
            return
        if session.decided:
            run.evidence = None  # it holds the contexts
            if run.reasons and session.concluded:
                _stop(run.reasons)
        if run.equal.known and not run.telling:
            self._tell_known(run)
        may_judge = (run.waiting or run.deferred) and not session.decided and not self._leaving
        if may_judge and gatherer.may_begin(run):
            call = self.spawn(gatherer.call(run), name="judge")
            run.calls.add(call)
            self._backlog.calls += 1
            call.add_done_callback(partial(self._call_ended, run))
        if self._may_be_behind:
            self._look()
        due = min(session.next_deadline, gatherer.due(run)) if run.deferred else session.next_deadline
        if due < run.timer_due:
            self._arm(run, now)

    def _do(self, run: Run, effects: Sequence[Effect], now: float) -> list[Output]:
        outputs: list[Output] = []
        for effect in effects:
            if type(effect) is Emit:
                waited_s = None if effect.since is None else now - effect.since
                late_s = run.session.late_s
                outputs.append(
                    Output(effect.channel, effect.event, run.headers, run.lane.key, waited_s, late_s)
                )
            elif type(effect) is AskJudge:
                self._gatherer.take(run, effect.claims)
            elif type(effect) is Cancel:
                self._cancel(run)
            elif type(effect) is Explain:
                task = self.spawn(self._explain(run, effect), name="explain")
                run.reasons.add(task)
                task.add_done_callback(run.reasons.discard)
            elif type(effect) is CutOn:
                self._cutting.append(run)
                if len(self._cutting) == 1:
                    asyncio.get_running_loop().call_soon(self._cut_on)
        return outputs

    async def _explain(self, run: Run, effect: Explain) -> None:
        """Nothing but the final verdict waits for it."""
        reason = await reason_in_words(run, effect)
        if not run.dropped:
            self._carry_out(run, run.session.explained(effect.claim_id, reason), self._clock())

    def _call_ended(self, run: Run, call: asyncio.Task[None]) -> None:
        run.calls.discard(call)
        self._backlog.calls -= 1
        self._look()

    def _look(self, verdicts: int = 0) -> None:
        """Note how far the judge is behind, and say so, once a minute at most."""
        backlog = self._backlog
        told_s = max((judge.wait_s(self._gatherer.not_asked) for judge in self._paced), default=0.0)
        fell_behind = backlog.look(self.pending_claims, verdicts, told_s)
        if fell_behind and self._clock() - self._told_behind_at >= _TOLD_EVERY_S:
            self._told_behind_at = self._clock()
            _log.warning(
                "judge.behind",
                claims=self.pending_claims,
                wait_s=round(backlog.wait_s, 1),
                effect="text is taken no faster than it is judged",
            )

    def _changed(self, run: Run) -> None:
        if run.stored and self._on_change is not None:
            run.stored = False
            lane, response_id = run.lane.key, run.session.head.response_id
            self._on_change(Change(lane, response_id, run, self._clock, self._wall))

    def _cut_on(self) -> None:
        """Cut on one of the long texts; the next one has its turn when others have had theirs."""
        run = self._cutting[0]
        if not run.dropped:
            now = self._clock()
            self._carry_out(run, run.session.cut_on(now), now)
        self._cutting.popleft()
        if self._cutting:
            asyncio.get_running_loop().call_soon(self._cut_on)

    def _tell_known(self, run: Run) -> None:
        """Tell the session the verdicts on claims that are equal to others, some in each turn of the loop."""
        run.telling = True
        asyncio.get_running_loop().call_soon(self._tell, run)

    def _tell(self, run: Run) -> None:
        run.telling = False
        if not run.dropped:
            known = [run.equal.known.popleft() for _ in range(min(_TOLD_AT_ONCE, len(run.equal.known)))]
            now = self._clock()
            self._carry_out(run, run.session.judged(known, now), now)

    def _cancel(self, run: Run) -> None:
        run.waiting.clear()
        self._gatherer.not_asked += run.newly_waiting(self._limits.max_claims_per_call)
        run.equal.forget()
        run.deferred.clear()
        _stop(run.calls)

    def _close(self, run: Run) -> None:
        closed = run.closed()
        run.lane.finished.add(closed.response_id, run.digest, closed.next_seq, self._clock())
        self._drop(run)
        self._tell_closed(closed)

    def _tell_closed(self, closed: ClosedResponse) -> None:
        if self._on_closed is not None:
            self._on_closed(closed)

    def _drop(self, run: Run) -> None:
        if run.dropped:
            return
        self._table.remove(run)
        self._cancel(run)
        _stop(run.reasons)
        if run.timer is not None:
            run.timer.cancel()

    # ----------------------------------------------------------------------------------- timers

    def _beat(self) -> None:
        """Tell the clock that the process runs. What was in flight while it stood still has that time again
        on it; only the text's age goes on.
        """
        loop = asyncio.get_running_loop()
        awake.beat()
        loop.call_soon(self._turned, awake())
        self._heart = loop.call_later(BEAT_S, self._beat)
        stood_s, self._stood_s = awake.stood_s - self._stood_s, awake.stood_s
        if stood_s:
            for run in self._runs.values():
                run.session.stood(stood_s)
        if stood_s >= _STANDSTILL_TOLD_S:
            _log.info(
                "guard.stood_still", seconds=round(stood_s, 1), effect="claims in flight get that time again"
            )

    def _turned(self, since: float) -> None:
        """Where one turn of the loop takes as long as several tokens, every answer is a token a turn."""
        before = self._gatherer.slowness
        self._gatherer.slowness += (1 + (awake() - since) / _TOKEN_S - before) * _LATEST_BEAT
        if self._gatherer.slowness < before > _RUSHED:
            for run in self._runs.values():
                if run.deferred and not run.calls:
                    self._arm(run, self._clock())  # it need not wait as long any more

    def _arm(self, run: Run, now: float) -> None:
        """Schedule ``_on_timer`` for the session's next deadline or earlier.

        A timer that fires early just rearms itself, so deadlines that move away cost nothing.
        """
        due = min(run.session.next_deadline, self._gatherer.due(run))
        if due >= run.timer_due:
            return
        if run.timer is not None:
            run.timer.cancel()
        run.timer = asyncio.get_running_loop().call_later(max(0.0, due - now), self._on_timer, run)
        run.timer_due = due

    def _on_timer(self, run: Run) -> None:
        run.timer, run.timer_due = None, float("inf")
        now = self._clock()
        behind_s = self._backlog.behind_s
        if behind_s > run.behind_s:
            run.session.excuse(behind_s - run.behind_s, now)
            run.behind_s = behind_s
        self._carry_out(run, run.session.tick(now) if run.session.next_deadline <= now else (), now)

    # ------------------------------------------------------------------------------------ judge

    def _judged(self, run: Run, judgements: Sequence[Judgement]) -> None:
        now = self._clock()
        effects = run.session.judged(judgements, now)
        for judgement in judgements:
            run.equal.take(judgement, final=judgement.claim_id not in run.session.pending)
        self._carry_out(run, effects, now)
        if self._backlog.busy:
            self._look(sum(not judgement.unanswered for judgement in judgements))


def _stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel all of them but the one that runs now."""
    for task in {*tasks} - {asyncio.current_task()}:
        task.cancel()
