"""The Python API: check an answer, or guard it while it is being written."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from guardrail.engine.engine import ClosedResponse, Engine, Output
from guardrail.errors import GuardrailError, InputError, ProtocolError
from guardrail.events import (
    AnyOutputEvent,
    InputEvent,
    OutputEvent,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.inputs import ContextLike, as_json, event_of, named_contexts, token_stream
from guardrail.judges.base import Judge
from guardrail.limits import Limits
from guardrail.policy import MissingContexts, Policy
from guardrail.routing import PolicyRouter
from guardrail.tracing import TRACE

if TYPE_CHECKING:
    from guardrail.telemetry import GuardState

_Queue = asyncio.Queue[OutputEvent | None]


class Guard:
    """Checks RAG answers against the contexts they were generated from.

    ::

        async with Guard() as guard:
            verdict = await guard.check(question, contexts, answer)

    ``judge`` defaults to the local judge, which loads off the event loop when the guard is entered. A judge
    that you pass in stays open when the guard closes. Pass ``policy`` for a single policy, or ``router`` to
    choose one by route, tenant and generator model; ``judges`` are those that policies name by ``judge``, and
    stay open too. Use a guard on one event loop only; any number of calls may run concurrently, and they wait
    for room when ``limits`` are reached.
    """

    def __init__(
        self,
        judge: Judge | None = None,
        policy: Policy | None = None,
        *,
        router: PolicyRouter | None = None,
        judges: Mapping[str, Judge] | None = None,
        limits: Limits | None = None,
        on_outputs: Callable[[Sequence[Output]], object] | None = None,
    ) -> None:
        """``on_outputs`` gets all that is said of all answers, before who asked; it may not wait or raise."""
        if policy is not None and router is not None:
            raise ValueError("give policy or router, not both: the router chooses among its own policies")
        if judge is not None and not isinstance(judge, Judge):
            raise TypeError(
                f"judge: {type(judge).__name__} has not all of name, judge and aclose (see guardrail.Judge)"
            )
        if judge is not None and inspect.iscoroutinefunction(judge.judge):
            raise TypeError(
                f"judge: {type(judge).__name__}.judge returns one reply; make it an async generator that "
                "yields a Judgement for each claim"
            )
        if policy is not None and not isinstance(policy, Policy):
            raise TypeError(f"policy: give a guardrail.Policy, not a {type(policy).__name__}")
        self._own_judge = judge is None
        self._judge = judge
        self._router = router or PolicyRouter.single(policy or Policy())
        self._judges = dict(judges or {})
        self._limits = limits
        self._on_outputs = on_outputs
        self._engine: Engine | None = None
        self._queues: dict[str, _Queue] = {}

    async def __aenter__(self) -> Self:
        if self._judge is None:
            self._judge = await asyncio.to_thread(_local_judge)  # takes tenths of a second, to load its model
        engine = Engine(
            self._judge,
            self._router,
            emit=self._emit,
            on_closed=self._closed,
            limits=self._limits,
            judges=self._judges,
        )
        self._engine = await engine.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        engine, self._engine = self._engine, None
        try:
            if engine is not None:
                await engine.__aexit__(kind, error, traceback)
        finally:
            for queue in self._queues.values():
                queue.put_nowait(None)  # nobody may wait for an engine that is gone
            if self._own_judge and self._judge is not None:
                judge, self._judge = self._judge, None
                await judge.aclose()

    def use(self, router: PolicyRouter, judges: Mapping[str, Judge] | None = None) -> None:
        """Use ``router`` to choose the policies of answers that begin from now on; those under way keep
        theirs.

        ``judges`` are added to those that policies can name. Raises ConfigError, and changes nothing, if a
        policy names a judge that doesn't exist.
        """
        if self._engine is not None:
            self._engine.use(router, judges)
        self._router, self._judges = router, {**self._judges, **(judges or {})}

    async def check(
        self,
        question: str,
        contexts: Sequence[ContextLike],
        answer: str,
        *,
        response_id: str | None = None,
        missing_contexts: MissingContexts | None = None,
        **head: Any,
    ) -> ResponseVerdict:
        """Judge a whole answer. ``head`` takes the other fields of ``Response`` (route, tenant, …).

        ``missing_contexts`` decides the claims of an answer without documents; without it the policy's rules
        do. Raises InputError, which names the invalid field.
        """
        fields = {"question": question, "contexts": named_contexts(contexts), "answer": answer, **head}
        return await self.check_event(event_of(Response, response_id, fields), missing_contexts)

    async def check_event(
        self, response: Response, missing_contexts: MissingContexts | None = None
    ) -> ResponseVerdict:
        """Judge a whole answer given as an event, as ``check``. Raises InputError if its id is in use."""
        verdict: ResponseVerdict | None = None
        async for event in self._run(response, None, missing_contexts):
            if isinstance(event, ResponseVerdict):
                verdict = event
        if verdict is None:
            raise GuardrailError("the response ended without a verdict")
        return verdict

    def stream(
        self,
        question: str,
        contexts: Sequence[ContextLike],
        deltas: AsyncIterable[str] | Iterable[str],
        *,
        response_id: str | None = None,
        missing_contexts: MissingContexts | None = None,
        **head: Any,
    ) -> AsyncIterator[AnyOutputEvent]:
        """Guard an answer while it is being written: yields deliveries, verdicts and the flagged case.

        Show the text of each ``delivery.segment`` as it comes; on ``delivery.blocked`` show its message
        instead. An error raised by ``deltas`` ends the response as aborted and is raised again after its last
        event. After a block the guard takes no more deltas and closes a generator. Closing the iterator early
        stops everything. ``missing_contexts`` and ``head`` are as for ``check``.
        """
        source = token_stream(deltas)
        fields = {"question": question, "contexts": named_contexts(contexts), **head}
        return self._run(event_of(ResponseStarted, response_id, fields), source, missing_contexts)

    def state(self) -> GuardState:
        """What the guard, which is open, currently holds."""
        from guardrail.telemetry import state_of  # which needs prometheus_client

        return state_of(self._open, self._open.oldest_held_s())

    def lane(
        self,
        told: Callable[[AnyOutputEvent], None],
        closed: Callable[[str], None],
        missing_contexts: MissingContexts | None = None,
    ) -> GuardLane:
        """A way to guard many answers at once, in events that somebody else has made. Close it at the end.

        ``told`` takes what comes of them, ``closed`` the id of an answer of which nothing more comes; neither
        may raise. ``missing_contexts`` is as for ``check``.
        """
        return GuardLane(self._open, told, closed, lambda head: self._policy_without(head, missing_contexts))

    def check_question(self, question: str, contexts: Sequence[ContextLike]) -> None:
        """Before a model is asked: raises InputError for what ``stream`` would turn away at its begin."""
        head = event_of(ResponseStarted, None, {"question": question, "contexts": named_contexts(contexts)})
        as_json(head)
        if self._engine is not None:
            self._engine.check_size(head)

    # ----------------------------------------------------------------------------------- inside

    @property
    def _open(self) -> Engine:
        if self._engine is None:
            raise GuardrailError("the guard is not open: use it as 'async with Guard() as guard:'")
        return self._engine

    async def _run(
        self,
        head: ResponseStarted | Response,
        source: AsyncIterable[str] | None,
        missing: MissingContexts | None,
    ) -> AsyncIterator[Any]:
        engine, response_id = self._open, head.response_id
        as_json(head)
        await _room(engine)
        if response_id in self._queues or engine.knows(response_id):
            raise InputError("duplicate_start", f"response_id {response_id!r} is being checked already")
        queue = self._queues[response_id] = asyncio.Queue()
        feeder: asyncio.Task[None] | None = None
        failures: list[Exception] = []
        try:
            engine.handle(head, TRACE.get(), policy=self._policy_without(head, missing))
            if not engine.knows(response_id) and queue.empty():
                raise InputError("response_finished", f"response_id {response_id!r} has been checked already")
            if source is not None:
                feeder = engine.spawn(_feed(engine, response_id, source, failures), name="guard-feeder")
            while (event := await queue.get()) is not None:
                yield event
        finally:
            del self._queues[response_id]
            if feeder is not None:
                feeder.cancel()
            engine.discard([response_id])
        if failures:
            raise failures[0]

    def _policy_without(
        self, head: ResponseStarted | Response, missing: MissingContexts | None
    ) -> Policy | None:
        """None where the router's policy holds."""
        if missing is None or any(context.text.strip() for context in head.contexts):
            return None
        chosen = self._router.choose(head.route, head.tenant, head.generator_model, head.response_id)
        return missing.applied_to(chosen)

    def _emit(self, outputs: Sequence[Output]) -> None:
        if self._on_outputs is not None:
            self._on_outputs(outputs)
        for output in outputs:
            if isinstance(output.lane, GuardLane):
                output.lane.told(output.event)
                continue
            queue = self._queues.get(output.event.response_id)
            if queue is not None:
                queue.put_nowait(output.event)

    def _closed(self, closed: ClosedResponse) -> None:
        if isinstance(closed.lane, GuardLane):
            closed.lane.closed(closed.response_id)
        queue = self._queues.get(closed.response_id)
        if queue is not None:
            queue.put_nowait(None)


class GuardLane:
    """Many answers at once; see ``Guard.lane``. What comes of one comes in order; none waits for another."""

    def __init__(
        self,
        engine: Engine,
        told: Callable[[Any], None],
        closed: Callable[[str], None],
        policy_of: Callable[[ResponseStarted | Response], Policy | None],
    ) -> None:
        self.told = told
        self.closed = closed
        self._engine = engine
        self._policy_of = policy_of

    async def take(self, event: InputEvent) -> None:
        """Handle an event, once there is room for it. Raises InputError if it can't be used; then its answer,
        if it is under way, ends early, under its policy.
        """
        engine, response_id = self._engine, event.response_id
        head = event if isinstance(event, ResponseStarted | Response) else None
        if head is None or engine.knows(response_id):
            await _caught_up(engine, response_id)
        else:
            try:
                await _room(engine, Limits.overload_grace_ms / 1000)
            except TimeoutError:
                raise InputError("overloaded", "the guard is full; give it again later") from None
        if engine.knows(response_id) and not self.knows(response_id):
            raise ProtocolError("duplicate_start", "a response with this id is under way elsewhere")
        engine.handle(event, TRACE.get(), lane=self, policy=None if head is None else self._policy_of(head))

    def reject(self, response_id: str, reason: str) -> None:
        """An event of this answer can't be read: it ends early, or is blocked if it is new."""
        if self.knows(response_id) or not self._engine.knows(response_id):
            self._engine.reject(response_id, reason, lane=self)

    def knows(self, response_id: str) -> bool:
        """Whether the answer is under way here."""
        return self._engine.lane_of(response_id) is self

    def decided(self, response_id: str) -> bool:
        """Whether all that is to say of the answer has been told."""
        return self._engine.decided(response_id)

    def close(self) -> None:
        """End silently what is under way."""
        self._engine.drop_lane(self)


async def _feed(
    engine: Engine, response_id: str, source: AsyncIterable[str], failures: list[Exception]
) -> None:
    """Pass the deltas to the engine until they end, or until the answer is decided and the rest no longer
    matters.

    Any error ends only this response.
    """
    seq = 0
    try:
        async for text in source:
            delta = event_of(ResponseDelta, response_id, {"seq": seq, "text": text})
            if not text.isascii():
                as_json(delta)
            await _caught_up(engine, response_id)
            engine.handle(delta)
            seq += 1
            if engine.delivered(response_id):
                break
        await _caught_up(engine, response_id)  # the last claim is cut at the end
        engine.handle(ResponseCompleted(response_id=response_id, seq=seq))
        if isinstance(source, AsyncGenerator):
            await source.aclose()  # blocked: the model need not go on writing
    except Exception as error:  # noqa: BLE001 - the caller's iterator may raise anything; it is raised again
        failures.append(error)
        engine.handle(ResponseAborted(response_id=response_id))


async def _room(engine: Engine, grace_s: float | None = None) -> None:
    """Wait until another answer may begin. Raises TimeoutError if for ``grace_s`` only input makes room."""
    while engine.saturated or engine.behind:
        async with asyncio.timeout(grace_s):
            await engine.room()
        await engine.caught_up()


async def _caught_up(engine: Engine, response_id: str) -> None:
    """Wait while the judge is behind: the time of a claim that is cut now might run out."""
    while engine.behind and not engine.delivered(response_id):
        await engine.caught_up()


def _local_judge() -> Judge:
    # Imported here, because this reads the parameters and makes the pool only when they are used.
    from guardrail.judges.local import LocalJudge

    return LocalJudge()
