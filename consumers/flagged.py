"""The subscriber to flagged cases: each is stored once, and a webhook is told.

Positions are committed only after the store has the cases, and a case's id is its key there. So whatever is
killed, and whenever, every case is stored, and stored once. The webhook has a loop of its own over the
store: a receiver that fails never keeps a case from being stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from consumers.cases import CaseStore, NewCase
from consumers.kafka.client import (
    asking,
    close_consumer,
    closed_in_time,
    connect_admin,
    groupless_options,
    require_topics,
    translated,
)
from consumers.kafka.watch import KafkaWatch
from consumers.reading import open_topic
from consumers.settings import KafkaSettings
from consumers.webhook import Webhook
from guardrail import telemetry
from guardrail.doctor import is_proof
from guardrail.errors import CaseStoreError, DecodeError
from guardrail.events import FlaggedCase, parse_output

_POLL_MS: Final = 250
_AT_ONCE: Final = 100
_CLOSE_S: Final = 5.0
_WAITING_TOLD_S: Final = 3.0
_STORE_RETRIES_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""After these waits the process ends with the store's error, and whatever started it starts it again. In sum
less than Kafka's max.poll.interval.ms, after which the partitions would go to another member."""

_log = structlog.stdlib.get_logger("guardrail.flagged")


def group_of(settings: KafkaSettings) -> str:
    """The consumer group of the subscribers beside guards of this group."""
    return f"{settings.group_id}-flagged"


class FlaggedSubscriber:
    """Reads ``topics.flagged`` in a group of its own, and stores. Any number of them share the partitions."""

    def __init__(
        self,
        settings: KafkaSettings,
        store: CaseStore,
        *,
        webhook: Webhook | None = None,
        retries_s: Sequence[float] = _STORE_RETRIES_S,
    ) -> None:
        """The caller opens and closes ``store`` and ``webhook``."""
        self._settings = settings
        self._store = store
        self._webhook = webhook
        self._retries_s = retries_s
        self._topic = settings.topics.flagged
        self._watch: KafkaWatch | None = None
        self._waits_for = "the subscriber starts"

    async def run(self, stop: asyncio.Event) -> None:
        """Until ``stop``: what was read by then is stored and committed, and posts under way are ended.

        Raises TransportError, ConfigError, and CaseStoreError when the store stays away.
        """
        async with AsyncExitStack() as stack:
            admin = await connect_admin(self._settings)
            stack.push_async_callback(lambda: closed_in_time("admin client", admin.close(), _CLOSE_S))
            await require_topics(admin, self._settings, [self._topic])
            consumer = AIOKafkaConsumer(
                self._topic, **{**groupless_options(self._settings), "group_id": group_of(self._settings)}
            )
            stack.push_async_callback(close_consumer, consumer, _CLOSE_S)
            async with asking(f"reading topic {self._topic}"):
                await consumer.start()
            self._waits_for = ""
            _log.info("flagged.started", topic=self._topic, group=group_of(self._settings))
            self._watch = KafkaWatch(
                self._settings, consumer, admin, [self._topic], [self._topic], without="no case is stored"
            )
            leave = asyncio.Event()
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch.run(), name="kafka-watch")
                if self._webhook is not None:
                    group.create_task(self._webhook.run(leave), name="webhook")
                try:
                    await self._read(consumer, stop)
                finally:
                    watching.cancel()
                    leave.set()
                    if self._webhook is not None:
                        self._webhook.wake()

    @property
    def waits_for(self) -> str:
        """What keeps it from its work, for a readiness probe; empty: nothing."""
        return (self._watch.waits_for if self._watch is not None else "") or self._waits_for

    async def _read(self, consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
        began, told = time.monotonic(), False
        while not stop.is_set():
            async with asking(f"reading topic {self._topic}"):
                batches = await consumer.getmany(timeout_ms=_POLL_MS, max_records=_AT_ONCE)
            if not told and not consumer.assignment() and time.monotonic() - began > _WAITING_TOLD_S:
                told = True
                _log.info(
                    "flagged.waiting",
                    waits_for="partitions",
                    hint="others of the group hold all of them, or one that was killed counts as dead after "
                    f"kafka.client.session_timeout_ms, {self._settings.client['session_timeout_ms']} ms",
                )
            if not batches:
                continue
            found = [
                _case_of(each.value, each.timestamp, each.partition, each.offset)
                for records in batches.values()
                for each in records
            ]
            read = [case for case in found if case is not None]
            cases = [case for case in read if not is_proof(case.case)]
            new = await self._add(cases)
            telemetry.CASES.labels("stored").inc(new)
            telemetry.CASES.labels("known").inc(len(cases) - new)
            telemetry.CASES.labels("proof").inc(len(read) - len(cases))
            telemetry.CASES.labels("unreadable").inc(len(found) - len(read))
            await self._commit(consumer, {tp: records[-1].offset + 1 for tp, records in batches.items()})
            _log.info(
                "flagged.stored", new=new, known=len(cases) - new, proofs_of_doctor=len(read) - len(cases)
            )
            if new and self._webhook is not None:
                self._webhook.wake()

    async def _add(self, cases: Sequence[NewCase]) -> int:
        """Store them, with patience. Raises CaseStoreError."""
        for wait_s in self._retries_s:
            try:
                return await self._store.add(cases, notify=self._webhook is not None)
            except CaseStoreError as error:
                _log.warning("flagged.store_away", error=str(error), again_in_s=wait_s)
                self._waits_for = "the store of cases"
                await asyncio.sleep(wait_s)
                self._waits_for = ""
        return await self._store.add(cases, notify=self._webhook is not None)

    async def _commit(self, consumer: AIOKafkaConsumer, positions: Mapping[TopicPartition, int]) -> None:
        """What can't be committed is read again, by whoever has the partition, and found to be stored."""
        try:
            await consumer.commit(dict(positions))
        except (CommitFailedError, IllegalStateError) as error:
            _log.warning("flagged.partition_lost", error=type(error).__name__)
        except KafkaError as error:
            if not error.retriable:
                raise translated(error, f"committing {self._topic}") from error
            _log.warning("flagged.not_committed", error=type(error).__name__)


def _case_of(value: bytes | None, at_ms: int, partition: int, offset: int) -> NewCase | None:
    """The case that a record holds. Anything else is left in the topic, and its position is logged."""
    body = value or b""
    try:
        event = parse_output(body)
    except DecodeError as error:
        reason = error.reason
    else:
        if isinstance(event, FlaggedCase):
            return NewCase(event, body, at_ms)
        reason = event.type
    _log.warning("flagged.no_case", partition=partition, offset=offset, reason=reason)
    return None


async def read_cases(settings: KafkaSettings) -> AsyncGenerator[NewCase, None]:
    """The cases that the topic holds now, in the order of each partition. Raises TransportError."""
    async with (
        open_topic(settings, settings.topics.flagged) as reader,
        aclosing(reader.until_end()) as records,
    ):
        async for record in records:
            case = _case_of(record.value, record.timestamp_ms, record.partition.index, record.offset)
            if case is not None:
                yield case
