"""Writing to Kafka beside work that doesn't wait for it, as ``guardrail serve`` does."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, Self

from aiokafka.errors import MessageSizeTooLargeError

from consumers.kafka.client import asking, closed_in_time, connect_admin, quiet_while, require_topics
from consumers.kafka.producing import KafkaWriter, producer_options
from consumers.settings import MEBIBYTE, KafkaSettings
from consumers.transport import OutRecord
from guardrail import telemetry
from guardrail.errors import GuardrailError
from guardrail.log_events import EventLog

_MOST_BYTES: Final = 64 * MEBIBYTE
_AT_ONCE: Final = 500
_AGAIN_S: Final = 1.0
_LATE_S: Final = 5.0
_CLOSE_S: Final = 5.0
_NOT_YET: Final = "Kafka is not connected yet"

_log = EventLog(__name__)


class KafkaPublisher:
    """Writes records in their order, each at least once, for as long as there is room for them.

    What Kafka doesn't take waits, up to 64 MiB; what has no room is lost, and counted. Within ``async with``;
    at its end what waits has ``within_s`` to be written.
    """

    def __init__(self, settings: KafkaSettings, topics: Collection[str], within_s: float) -> None:
        """``topics`` must exist before anything is written. Raises ConfigError."""
        producer_options(settings)  # which reads certificates and passwords
        self._settings = settings
        self._topics = topics
        self._within_s = within_s
        self._waiting: deque[OutRecord] = deque()
        self._bytes = 0
        self._some, self._none = asyncio.Event(), asyncio.Event()
        self._none.set()
        self._why = _NOT_YET
        """Why nothing can be written; empty: it can."""
        self._lost = 0
        """Since it last could be."""

    def put(self, records: Sequence[OutRecord]) -> None:
        """Have them written. Never waits, and raises nothing."""
        for record in records:
            if self._bytes + _size(record) > _MOST_BYTES:
                self._lose(1, "there is no room for more")
            else:
                self._waiting.append(record)
                self._bytes += _size(record)
                self._none.clear()
                self._some.set()

    def note(self) -> str:
        """What is wrong, in words; empty if nothing is."""
        waiting = f"{len(self._waiting)} events wait, {self._lost} are lost"
        return f"verdicts are not published: {self._why}; {waiting}" if self._why else ""

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._publish(), name="publisher")
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                await self._none.wait()
        self._work.cancel()
        await asyncio.wait([self._work])
        quiet_while(self, away=False)
        if self._waiting:
            self._lose(len(self._waiting), "the process ends")

    async def _publish(self) -> None:
        """After a failure a producer may refuse every record: a new one takes its place."""
        while True:
            try:
                writer = KafkaWriter(self._settings)  # which reads certificates and passwords again
                try:
                    await self._connect(writer)
                    while True:
                        await self._write(writer)
                        await self._some.wait()
                finally:
                    await closed_in_time("producer", writer.stop(), _CLOSE_S)
            except Exception as error:  # noqa: BLE001 - guarding goes on, whatever it is
                self._tell(str(error) if isinstance(error, GuardrailError) else type(error).__name__)
            await asyncio.sleep(_AGAIN_S)

    async def _connect(self, writer: KafkaWriter) -> None:
        admin = await connect_admin(self._settings, told=self._why != _NOT_YET)
        try:
            await require_topics(admin, self._settings, self._topics)
        finally:
            await closed_in_time("admin client", admin.close(), _CLOSE_S)
        async with asking("connecting a producer", self._settings.connect_timeout_ms):
            await writer.start()

    async def _write(self, writer: KafkaWriter) -> None:
        """Write all that waits. Raises TransportError; then the rest waits on."""
        while batch := list(islice(self._waiting, _AT_ONCE)):
            late = asyncio.get_running_loop().call_later(_LATE_S, self._tell, "Kafka takes nothing")
            try:
                await writer.write(batch)
            except GuardrailError as error:
                if isinstance(error.__cause__, MessageSizeTooLargeError):
                    self._drop(max(batch, key=_size))  # no repetition would help
                    self._lose(1, "the topic takes no record of its size")
                raise
            finally:
                late.cancel()
            for record in batch:
                self._drop(record)
            telemetry.PUBLISHED.labels("written").inc(len(batch))
        self._some.clear()
        self._none.set()
        self._tell("")

    def _drop(self, record: OutRecord) -> None:
        self._waiting.remove(record)  # which is the first, or nearly
        self._bytes -= _size(record)

    def _tell(self, why: str) -> None:
        """Log each change, and whether anything was lost meanwhile."""
        if not why and (self._why or self._lost):
            _log.info("serve.publishing", servers=self._settings.bootstrap_servers, lost=self._lost)
            self._lost = 0
        elif why and why != self._why:
            waiting = len(self._waiting)
            _log.warning("serve.not_published", error=why, waiting=waiting, effect="it is tried again")
        self._why = why
        telemetry.KAFKA_AWAY.set(bool(why))
        quiet_while(self, away=bool(why))

    def _lose(self, number: int, why: str) -> None:
        if not self._lost:
            _log.error("serve.verdicts_lost", events=number, why=why)
        self._lost += number
        telemetry.PUBLISHED.labels("lost").inc(number)


def _size(record: OutRecord) -> int:
    return len(record.value or b"") + len(record.key or b"")
