"""Streams of judgements: validated, bounded in time, merged, and always closed; claims of one response that
gather while its text is being written, so that they share a call; one judge in another's place; and models
that would judge their own answers, with which they tend to agree.

None of these yields inside a timeout or a task group, whose cancellation would reach the reader.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeVar

from pydantic import Field

from guardrail.errors import JudgeError, JudgeUnavailable, only_cause
from guardrail.events import Usage
from guardrail.frozen import Frozen
from guardrail.judges.base import Around, Judge, JudgeRequest, Meter, without_contexts
from guardrail.log_events import EventLog
from guardrail.printable import escape_controls, shorten
from guardrail.verdicts import Judgement, sound, unverified

T = TypeVar("T")
_END: Final = object()


async def checked(judge: Judge, request: JudgeRequest) -> AsyncIterator[Judgement]:
    """The valid judgements of ``judge`` on the claims it is asked about, at most one for each.

    The first one counts. A claim whose judgements are all invalid is UNVERIFIED. Spans that don't fit the
    claim are dropped as ``spans_within`` says, and so are all spans of a claim that is SUPPORTED or
    UNVERIFIED. Raises what the judge raises.
    """
    waiting = dict(request.claims)
    unusable: dict[str, None] = {}
    async with closing(judge.judge(request)) as judgements:
        async for offered in judgements:
            claim_id = offered.claim_id
            if claim_id not in waiting:
                continue
            judgement = sound(offered, waiting[claim_id].prose.text)
            if judgement is None:
                unusable[claim_id] = None
                continue
            del waiting[claim_id]
            yield judgement
    for claim_id in unusable:
        if claim_id in waiting:
            yield unverified(claim_id, judge.name, "the judge's verdict on this claim is unusable")


@asynccontextmanager
async def closing(stream: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """``stream``, closed at the end if possible, so that the work behind it is cancelled and has ended."""
    try:
        yield stream
    finally:
        aclose = getattr(stream, "aclose", None)
        if aclose is not None:
            await aclose()


async def within(seconds: float, stream: AsyncIterator[T]) -> AsyncIterator[T]:
    """``stream``, for at most that long. Raises TimeoutError if it takes longer, and cancels it."""
    until = asyncio.get_running_loop().time() + seconds
    async with closing(stream):
        while True:
            async with asyncio.timeout_at(until):
                try:
                    item = await anext(stream)
                except StopAsyncIteration:
                    return
            yield item


async def from_callback(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]) -> AsyncIterator[T]:
    """The values that ``work`` passes to its callback while it runs in a task. Raises what it raises."""
    queue: asyncio.Queue[Any] = asyncio.Queue()
    async with beside(work(queue.put_nowait)) as task:
        task.add_done_callback(lambda _: queue.put_nowait(_END))
        while (item := await queue.get()) is not _END:
            yield item
        await task


def merged(*streams: AsyncIterator[T]) -> AsyncIterator[T]:
    """The values of all streams as they come. The first error ends them all."""

    async def read(stream: AsyncIterator[T], tell: Callable[[T], None]) -> None:
        async with closing(stream):
            async for item in stream:
                tell(item)

    async def read_all(tell: Callable[[T], None]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for stream in streams:
                    group.create_task(read(stream, tell))
        except ExceptionGroup as errors:
            raise only_cause(errors) from None

    return from_callback(read_all)


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run ``work`` in its own task. It is cancelled at the end and leaves nothing behind."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        cancelled = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio doesn't report it as never retrieved
        if cancelled is not None:
            raise cancelled


async def decided(
    request: JudgeRequest,
    judge: str,
    decide: Callable[[JudgeRequest, Callable[[Judgement], None]], Coroutine[Any, Any, None]],
) -> AsyncIterator[Judgement]:
    """What ``decide`` tells of a request, for ``judge``, a model that is paid for each call: without
    claims or contexts it isn't asked. Raises what ``decide`` raises.
    """
    if not request.claims:
        return
    request.meter.add(Usage())  # counted here, so that zero calls are known to be zero
    if not request.has_contexts:
        for judgement in without_contexts(request, judge):
            yield judgement
        return
    async with closing(from_callback(partial(decide, request))) as judgements:
        async for judgement in judgements:
            yield judgement


# -------------------------------------------------------------------------------------------------- gathering

ENOUGH: Final = 4
"""Claims that are asked about without waiting for more: models write verdicts one after the other, and the
last one should not take too long."""
_WAITS: Final = "waits for other claims"


def defer(request: JudgeRequest, claim_ids: Iterable[str], judge: str) -> bool:
    """Leave these claims, of which nothing is known yet, to the next request, if that may be and helps."""
    if request.gathering is None:
        return False
    waiting = [unverified(claim_id, judge, _WAITS, attempts=0) for claim_id in claim_ids]
    return request.gathering.defer(waiting, urgent=len(waiting) >= ENOUGH)


class GatheringAround(Around):
    """A Judge around another that lets claims gather before it asks it."""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields what the judge yields, or nothing if the claims were put off."""
        if defer(request, request.claims, self.name):
            return
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                yield judgement


# ----------------------------------------------------------------------------------------- in another's place

KEPT_SHARE: Final = 0.4
"""Of the time left, for a second judge that could answer."""


class FallbackJudge(Around):
    """A Judge. Judgements of the second judge name the first, and why, in ``degraded_from``."""

    def __init__(self, judge: Judge, other: Judge, on: type[JudgeError], kept_share: float = 0.0) -> None:
        """Takes over both judges, and closes them. ``other`` answers where ``judge`` raises ``on``, and a
        ``kept_share`` of the time is kept for it.
        """
        super().__init__(judge)
        self._other = other
        self._on = on
        self._kept_share = kept_share

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """The first judge's judgements, and the second's on the remaining claims where that fails."""
        meter = Meter(request.meter)
        left = dict(request.claims)
        now = time.monotonic()
        until = request.deadline - self._kept_share * max(0.0, request.deadline - now)
        try:
            async with closing(
                self._judge.judge(replace(request, meter=meter, deadline=until))
            ) as judgements:
                async for judgement in judgements:
                    left.pop(judgement.claim_id, None)
                    yield judgement
                return
        except self._on as error:
            why = f"{self._judge.name}: {error}"
        async with closing(self._other.judge(replace(request, claims=left))) as judgements:
            async for judgement in judgements:
                yield replace(
                    judgement,
                    # Calls may have failed until there was no room for another.
                    attempts=judgement.attempts + meter.usage.judge_calls,
                    degraded_from=(why, *judgement.degraded_from),
                )

    async def aclose(self) -> None:
        """Close both."""
        try:
            await super().aclose()
        finally:
            await self._other.aclose()


# -------------------------------------------------------------------------------------------- its own answers

_log = EventLog(__name__)
_NAME_CHARS: Final = 120


class SelfJudged(JudgeUnavailable):
    """The judge was not asked, or not believed, because its model wrote the answer."""


class SelfJudgingSettings(Frozen):
    """What happens if the judge's model also wrote the answer (``generator_model``)."""

    policy: Literal["warn", "refuse"] = Field(
        default="warn",
        description="warn: judge anyway, and log a warning once. refuse: don't ask; with kind "
        "cascade the first judge's verdict stands, with kind llm the claims are UNVERIFIED. Names are "
        "compared without the provider (openai/) and in lower case.",
    )


def same_model(one: str | None, other: str) -> bool:
    """Whether both names say the same model; ``openai/GPT-4o`` is ``gpt-4o``. False for an unknown name."""
    return bool(one) and _bare(str(one)) == _bare(other) != ""


def _bare(name: str) -> str:
    return name.strip().lower().rsplit("/", 1)[-1]


class SelfJudgingGuard(Around):
    """A Judge around the LLM judge that applies the self-judging policy."""

    def __init__(self, judge: Judge, model: str, settings: SelfJudgingSettings) -> None:
        """Judgements by other models than ``model`` (fallbacks) are recognised by their judge's name."""
        super().__init__(judge)
        self._model = model
        self._policy = settings.policy
        self._warned: set[str] = set()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judgements of models that may answer. Raises SelfJudged if none may."""
        if not self._may_judge(request.generator_model, self._model):
            request.meter.add(Usage())  # known: no call was made
            raise SelfJudged("not asked: its model wrote the answer")
        kept = refused = False
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                if self._may_judge(request.generator_model, judgement.judge.partition(":")[2]):
                    kept = True
                    yield judgement
                else:
                    refused = True
        if refused and not kept:
            raise SelfJudged("the only model that answered wrote the answer")

    def _may_judge(self, generator: str | None, model: str) -> bool:
        if not same_model(generator, model):
            return True
        if model not in self._warned:
            self._warned.add(model)
            name = shorten(escape_controls(str(generator)), _NAME_CHARS)
            _log.warning("judge.self_judging", generator_model=name, model=model, self_judging=self._policy)
        return self._policy == "warn"
