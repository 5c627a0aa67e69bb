"""An engine with a journal, as one process of many runs it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from guardrail.engine import Captured, Change, ClosedResponse, Engine, Output
from guardrail.events import DeliverySegment, ResponseCompleted, ResponseDelta, ResponseStarted
from guardrail.judges import Judge
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.judges import GatedJudge

TRACE = (("traceparent", b"00-\xff"),)


class Process:
    """An engine with a journal, and what came out of it."""

    def __init__(self, judge: Judge, router: PolicyRouter, limits: Limits | None = None) -> None:
        self.outputs: list[Output] = []
        self.closed: list[ClosedResponse] = []
        self.changes: dict[str, Change] = {}
        self._changed = asyncio.Event()
        self.engine = Engine(
            judge,
            router,
            emit=self._emit,
            on_closed=self._close,
            on_change=self._change,
            limits=limits,
        )

    def _emit(self, outputs: Sequence[Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def _change(self, change: Change) -> None:
        self.changes[change.response_id] = change

    def _close(self, closed: ClosedResponse) -> None:
        self.closed.append(closed)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def start(self, response_id: str = "r1", lane: Hashable = "p0", born: int = 7, **fields: Any) -> None:
        head = {"response_id": response_id, "contexts": [{"id": "c1", "text": "A source."}], **fields}
        self.engine.handle(ResponseStarted.model_validate(head), TRACE, lane=lane, born=born)

    def delta(self, seq: int, text: str, response_id: str = "r1", lane: Hashable = "p0") -> None:
        self.engine.handle(ResponseDelta(response_id=response_id, seq=seq, text=text), lane=lane)

    def complete(self, seq: int, response_id: str = "r1", lane: Hashable = "p0") -> None:
        self.engine.handle(ResponseCompleted(response_id=response_id, seq=seq), lane=lane)

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

    @property
    def events(self) -> list[Any]:
        return [output.event for output in self.outputs]


@asynccontextmanager
async def process(
    judge: Judge,
    policy: Policy | None = None,
    limits: Limits | None = None,
    *,
    router: PolicyRouter | None = None,
) -> AsyncIterator[Process]:
    found = Process(judge, router or PolicyRouter.single(policy or Policy()), limits)
    async with found.engine:
        yield found


async def captured_halfway(policy: Policy | None = None) -> tuple[Captured, list[Any]]:
    """A process that ends with one sentence released, another waiting for its verdict, and text left over."""
    judge = GatedJudge()
    async with process(judge, policy) as p:
        p.start()
        judge.gate.set()
        p.delta(0, "Paris is in France. And ")
        await p.until(lambda: any(isinstance(event, DeliverySegment) for event in p.events))
        judge.gate.clear()
        first = p.capture()
        p.delta(1, "Rome is in Italy. Oslo is")
        second = p.capture()
        assert first.head is not None
        assert second.head is None
        return first, [first.progress, second.progress]
