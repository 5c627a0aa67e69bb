"""Writing to Kafka beside work that doesn't wait for it, as ``guardrail serve`` does."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Final, Self

from aiokafka.errors import MessageSizeTooLargeError

from consumers.kafka.client import asking, closed_in_time, connect_admin, quiet_while, require_topics
from consumers.kafka.producing import KafkaWriter, producer_options
from consumers.settings import MEBIBYTE, KafkaSettings
from consumers.transport import OutRecord
from guardrail import telemetry
from guardrail.errors import GuardrailError, TransportError
from guardrail.log_events import EventLog

_MOST_BYTES: Final = 64 * MEBIBYTE
_AT_ONCE: Final = 500
_AGAIN_S: Final = 1.0
_LATE_S: Final = 5.0
_CLOSE_S: Final = 5.0

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
        self._since: float | None = None
        """When what waits for longest was put, or tried for the last time with success."""
        self._some, self._none = asyncio.Event(), asyncio.Event()
        self._none.set()
        self._why = "Kafka is not connected yet"
        """Why nothing can be written; empty: it can."""
        self._lost = 0
        """Since it last could be written."""
        self._work: asyncio.Task[None] | None = None

    def put(self, records: Sequence[OutRecord]) -> None:
        """Have them written. Never waits, and raises nothing."""
        for record in records:
            if self._bytes + _size(record) > _MOST_BYTES:
                self._lose(1, "there is no room for more")
                continue
            self._since = self._since or time.monotonic()
            self._waiting.append(record)
            self._bytes += _size(record)
        self._none.clear()
        self._some.set()

    def note(self) -> str:
        """What is wrong, in words; empty if nothing is."""
        late = self._since is not None and time.monotonic() - self._since > _LATE_S
        if not self._why and not late:
            return ""
        waiting = f"{len(self._waiting)} events wait, {self._lost} are lost"
        return f"verdicts are not published: {self._why or 'Kafka takes nothing'}; {waiting}"

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._publish(), name="publisher")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._work is not None  # noqa: S101 - it was entered
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                await self._none.wait()
        self._work.cancel()
        await asyncio.wait([self._work])
        if self._waiting:
            self._lose(len(self._waiting), "the process ends")

    async def _publish(self) -> None:
        writer: KafkaWriter | None = None
        try:
            while True:
                try:
                    writer = writer or await self._connected()
                    if self._waiting:
                        await self._write(writer)
                    self._works()
                    await self._some.wait()
                except Exception as error:  # noqa: BLE001 - guarding goes on, whatever it is
                    self._fails(error)
                    # After a failure a producer may refuse every record: a new one takes its place.
                    if writer is not None:
                        await closed_in_time("producer", writer.stop(), _CLOSE_S)
                    writer = None
                    await asyncio.sleep(_AGAIN_S)
        finally:
            quiet_while(self, away=False)
            if writer is not None:
                await closed_in_time("producer", writer.stop(), _CLOSE_S)

    async def _connected(self) -> KafkaWriter:
        settings = self._settings
        admin = await connect_admin(settings)
        try:
            await require_topics(admin, settings, self._topics)
        finally:
            await closed_in_time("admin client", admin.close(), _CLOSE_S)
        writer = KafkaWriter(settings)
        try:
            async with asking("connecting a producer", settings.connect_timeout_ms):
                await writer.start()
        except BaseException:
            await closed_in_time("producer", writer.stop(), _CLOSE_S)
            raise
        return writer

    async def _write(self, writer: KafkaWriter) -> None:
        """Write the oldest of what waits. Raises TransportError; then it waits on."""
        batch = list(islice(self._waiting, _AT_ONCE))
        try:
            await writer.write(batch)
        except TransportError as error:
            if isinstance(error.__cause__, MessageSizeTooLargeError):
                # No repetition would help; what was written of the rest is written again.
                largest = max(batch, key=lambda record: len(record.value or b""))
                self._waiting.remove(largest)
                self._bytes -= _size(largest)
                self._lose(1, "the topic takes no record of its size")
            raise
        for record in batch:
            self._waiting.popleft()
            self._bytes -= _size(record)
        telemetry.PUBLISHED.labels("written").inc(len(batch))
        self._since = time.monotonic() if self._waiting else None
        if not self._waiting:
            self._some.clear()
            self._none.set()

    def _works(self) -> None:
        if self._why or self._lost:
            _log.info("serve.publishing", servers=self._settings.bootstrap_servers, lost=self._lost)
        self._why, self._lost = "", 0
        telemetry.KAFKA_AWAY.set(0)
        quiet_while(self, away=False)

    def _fails(self, error: Exception) -> None:
        text = str(error) if isinstance(error, GuardrailError) else type(error).__name__
        if self._why != text:
            _log.warning(
                "serve.not_published", error=text, waiting=len(self._waiting), effect="it is tried again"
            )
        self._why = text
        telemetry.KAFKA_AWAY.set(1)
        quiet_while(self, away=True)

    def _lose(self, number: int, why: str) -> None:
        if not self._lost or why == "the process ends":
            _log.error("serve.verdicts_lost", events=number, why=why)
        self._lost += number
        telemetry.PUBLISHED.labels("lost").inc(number)


def _size(record: OutRecord) -> int:
    return len(record.value or b"") + len(record.key or b"")
