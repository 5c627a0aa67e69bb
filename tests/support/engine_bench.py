"""An engine under test, and what came out of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from guardrail.engine import ClosedResponse, Engine, Output
from guardrail.events import (
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.judges import Judge
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter


class Bench:
    """An engine and what came out of it."""

    def __init__(
        self,
        judge: Judge,
        policy: Policy | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.outputs: list[Output] = []
        self.closed: list[str] = []
        self._changed = asyncio.Event()
        router = PolicyRouter.single(policy or Policy())
        self.engine = Engine(
            judge, router, emit=self._emit, on_closed=self._close, limits=limits, clock=clock
        )

    def _emit(self, outputs: Sequence[Output]) -> None:
        self.outputs += outputs
        self._changed.set()

    def _close(self, closed: ClosedResponse) -> None:
        self.closed.append(closed.response_id)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def start(self, response_id: str = "r1", **fields: object) -> None:
        head = {"response_id": response_id, "contexts": [{"id": "c1", "text": "A source."}], **fields}
        self.engine.handle(ResponseStarted.model_validate(head), (("traceparent", b"00-1"),))

    def delta(self, seq: int, text: str, response_id: str = "r1") -> None:
        self.engine.handle(ResponseDelta(response_id=response_id, seq=seq, text=text))

    def complete(self, seq: int, response_id: str = "r1") -> None:
        self.engine.handle(ResponseCompleted(response_id=response_id, seq=seq))

    def verdict(self, response_id: str = "r1") -> ResponseVerdict:
        [found] = [
            output.event
            for output in self.outputs
            if isinstance(output.event, ResponseVerdict) and output.event.response_id == response_id
        ]
        return found

    def claims(self) -> list[ClaimVerdict]:
        return [output.event for output in self.outputs if isinstance(output.event, ClaimVerdict)]

    def finals(self, response_id: str = "r1") -> list[DeliveryCompleted | DeliveryBlocked]:
        return [
            output.event
            for output in self.outputs
            if isinstance(output.event, DeliveryCompleted | DeliveryBlocked)
            and output.event.response_id == response_id
        ]


@asynccontextmanager
async def bench(
    judge: Judge,
    policy: Policy | None = None,
    limits: Limits | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Bench]:
    found = Bench(judge, policy, limits, clock)
    async with found.engine:
        yield found
