"""An engine under test, as one process of many runs it, and what came out of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from guardrail.engine import Captured, Change, ClosedResponse, Engine, Output
from guardrail.events import (
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    OutputEvent,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.judges import Judge
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.judges import GatedJudge

TRACE = (("traceparent", b"00-\xff"),)
_Event = TypeVar("_Event", bound=OutputEvent)


class Bench:
    """An engine and what came out of it; with a journal where it is ``stored``."""

    def __init__(
        self, judge: Judge, router: PolicyRouter, lane: Hashable, *, stored: bool, **options: Any
    ) -> None:
        self.lane = lane
        self.outputs: list[Output] = []
        self.closed: list[str] = []
        self.closings: list[ClosedResponse] = []
        self.changes: dict[str, Change] = {}
        self._changed = asyncio.Event()
        on_change = self._change if stored else None
        self.engine = Engine(
            judge, router, emit=self._emit, on_closed=self._close, on_change=on_change, **options
        )

    def _emit(self, outputs: Sequence[Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def _change(self, change: Change) -> None:
        self.changes[change.response_id] = change

    def _close(self, closed: ClosedResponse) -> None:
        self.closed.append(closed.response_id)
        self.closings.append(closed)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    # what is handed in -----------------------------------------------------------------

    def start(self, response_id: str = "r1", lane: Hashable = None, born: int = 7, **fields: Any) -> None:
        head = {"response_id": response_id, "contexts": [{"id": "c1", "text": "A source."}], **fields}
        started = ResponseStarted.model_validate(head)
        self.engine.handle(started, TRACE, lane=lane or self.lane, born=born)

    def delta(self, seq: int, text: str, response_id: str = "r1", lane: Hashable = None) -> None:
        delta = ResponseDelta(response_id=response_id, seq=seq, text=text)
        self.engine.handle(delta, lane=lane or self.lane)

    def complete(self, seq: int, response_id: str = "r1", lane: Hashable = None) -> None:
        completed = ResponseCompleted(response_id=response_id, seq=seq)
        self.engine.handle(completed, lane=lane or self.lane)

    def whole(self, text: str, response_id: str = "r1", lane: Hashable = None, **fields: Any) -> None:
        """A response in one piece."""
        self.start(response_id, lane, **fields)
        self.delta(0, text, response_id, lane)
        self.complete(1, response_id, lane)

    async def judged(self, text: str, **fields: Any) -> None:
        """A response in one piece, to its end."""
        self.whole(text, **fields)
        await self.until(lambda: "r1" in self.closed)

    async def ended(self, seq: int) -> None:
        """The text is complete, and all of it decided."""
        self.complete(seq)
        await self.until(lambda: "r1" in self.closed)

    def capture(self, response_id: str = "r1") -> Captured:
        captured = self.changes[response_id].take()
        assert captured is not None
        return captured

    def restore(
        self,
        head: Any,
        progress: list[Any],
        policy: Policy | None,
        *,
        lane: Hashable = "p0",
        born: int = 7,
        response_id: str = "r1",
    ) -> None:
        head, progress = json.loads(json.dumps([head, progress]))
        self.engine.restore(response_id, head, progress, policy, lane=lane, born=born)

    # what came out ---------------------------------------------------------------------

    @property
    def events(self) -> list[Any]:
        return [output.event for output in self.outputs]

    def of(self, kind: type[_Event]) -> list[_Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def verdict(self, response_id: str = "r1") -> ResponseVerdict:
        [found] = [event for event in self.of(ResponseVerdict) if event.response_id == response_id]
        return found

    def claims(self) -> list[ClaimVerdict]:
        return self.of(ClaimVerdict)

    def finals(self, response_id: str = "r1") -> list[DeliveryCompleted | DeliveryBlocked]:
        ends = [event for event in self.events if isinstance(event, DeliveryCompleted | DeliveryBlocked)]
        return [event for event in ends if event.response_id == response_id]


@asynccontextmanager
async def bench(
    judge: Judge,
    policy: Policy | None = None,
    limits: Limits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Bench]:
    """An engine that stores nothing."""
    router = PolicyRouter.single(policy or Policy())
    found = Bench(judge, router, None, stored=False, limits=limits, clock=clock)
    async with found.engine:
        yield found


@asynccontextmanager
async def process(
    judge: Judge,
    policy: Policy | None = None,
    limits: Limits | None = None,
    *,
    router: PolicyRouter | None = None,
) -> AsyncIterator[Bench]:
    """An engine with a journal, whose responses are of the lane p0."""
    router = router or PolicyRouter.single(policy or Policy())
    found = Bench(judge, router, "p0", stored=True, limits=limits)
    async with found.engine:
        yield found


async def captured_halfway(policy: Policy | None = None) -> tuple[Captured, list[Any]]:
    """A process that ends with one sentence released, another waiting for its verdict, and text left over."""
    judge = GatedJudge()
    async with process(judge, policy) as p:
        p.start()
        judge.gate.set()
        p.delta(0, "Paris is in France. And ")
        await p.until(lambda: bool(p.of(DeliverySegment)))
        judge.gate.clear()
        first = p.capture()
        p.delta(1, "Rome is in Italy. Oslo is")
        second = p.capture()
        assert first.head is not None
        assert second.head is None
        return first, [first.progress, second.progress]
