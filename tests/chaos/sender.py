"""Sends the workload at its pace, acknowledged, by an idempotent producer of its own."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from aiokafka import AIOKafkaProducer

from tests.chaos.history import Headers
from tests.chaos.workload import SILENT, Sent, Workload, streams

BAD_HEADERS: Final[Headers] = (("origin", b"\xff\x00chaos"), ("traceparent", b"not one"))
"""On every bad record: they must be in its dead letter, byte for byte."""
TICK_S: Final = 0.02
MOST_UNACKNOWLEDGED: Final = 5_000


class Sender:
    """Sends one workload, once."""

    def __init__(self, workload: Workload, *, at_once: int, rate: float) -> None:
        """``rate`` is in responses per second; 0: as fast as it goes."""
        self.workload = workload
        self.records = 0
        self.answered = 0
        """Cases begun of which an answer is to come."""
        self._at_once = at_once
        self._rate = rate
        self._unacknowledged: deque[asyncio.Future[Any]] = deque()

    async def run(self, bootstrap: str, topic: str, may_send: Callable[[int], bool]) -> None:
        """Send everything; ``may_send(cases begun)`` is asked before each case. Raises KafkaError."""
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=5,
            # Through any time that a broker is away: what was sent is known, and nothing is sent twice.
            request_timeout_ms=120_000,
        )
        await producer.start()
        try:
            await self._send_all(producer, topic, may_send)
            while self._unacknowledged:
                await self._unacknowledged.popleft()
        finally:
            await producer.stop()

    async def _send_all(
        self, producer: AIOKafkaProducer, topic: str, may_send: Callable[[int], bool]
    ) -> None:
        per_case = sum(len(self.workload.case(n).records) for n in range(min(500, self.workload.cases)))
        per_tick = self._rate * TICK_S * per_case / min(500, self.workload.cases)
        allowed, begun = 0.0, 0
        clock = time.monotonic()
        for number, sent in streams(self.workload, at_once=self._at_once):
            while (self._rate and allowed < 1.0) or (number >= begun and not may_send(begun)):
                clock = max(clock + TICK_S, time.monotonic() - 0.5)  # what was missed is not caught up
                await asyncio.sleep(max(0.0, clock - time.monotonic()))
                allowed = min(allowed + per_tick, 2 * per_tick + 1)
            allowed -= 1.0
            while begun <= number:
                self.answered += self.workload.case(begun).ending not in SILENT
                begun += 1
            await self._send(producer, topic, sent)
        may_send(begun)

    async def _send(self, producer: AIOKafkaProducer, topic: str, sent: Sent) -> None:
        headers = list(BAD_HEADERS) if sent.bad else None
        self._unacknowledged.append(
            await producer.send(topic, value=sent.value, key=sent.key, headers=headers)
        )
        self.records += 1
        while self._unacknowledged and self._unacknowledged[0].done():
            self._unacknowledged.popleft().result()
        if len(self._unacknowledged) > MOST_UNACKNOWLEDGED:
            await self._unacknowledged.popleft()
