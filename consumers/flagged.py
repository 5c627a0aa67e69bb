"""Flagged cases: a subscriber that stores each once, and the webhook that is told of them.

Positions are committed only after the store has the cases, and a case's id is its key there. So whatever is
killed, and whenever, every case is stored, and stored once. The webhook has a loop of its own over the
store: a receiver that fails never keeps a case from being stored.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from typing import Final

import httpx2
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from consumers.cases import CaseStore, DueCase, NewCase
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
from consumers.settings import KafkaSettings, is_loopback
from guardrail import __version__, telemetry
from guardrail.calls import BackOff
from guardrail.doctor import is_proof
from guardrail.errors import CaseStoreError, ConfigError, DecodeError
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


# --------------------------------------------------------------------------------------------- the webhook
#
# Posts are signed as Standard Webhooks says (standardwebhooks.com). At least once: a case is pending in the
# store until the receiver answered 2xx, whatever happens to this process. The receiver knows a repeated post
# by its webhook-id, which is the case's deterministic id.

ATTEMPTS: Final = 10
"""After so many a case's webhook has failed: three hours and a half after the first, with the waits below."""
WAITS: Final = BackOff(first_s=5.0, longest_s=3_600.0, growth=3.0)
_TIMEOUT_S: Final = 10.0
_LEASE_MS: Final = 60_000
"""Longer than a batch takes; so long after a process died another one posts what it had taken."""
_POSTS_AT_ONCE: Final = 8
_LOOK_S: Final = 5.0
"""Between looks at the store for what has become due, where nothing new was stored."""
_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)

IN_CLEAR: Final = "cases go to another host unencrypted, with questions, contexts and answers"


def signing_key(secret: str, setting: str) -> bytes:
    """The bytes to sign with. Raises ConfigError, which holds nothing of the secret."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) not in _KEY_BYTES:
        raise ConfigError(
            f"{setting}: this is not {_PREFIX} and the base64 of 24 to 64 bytes; make one with: "
            f"echo {_PREFIX}$(openssl rand -base64 32)"
        )
    return key


def receiver(url: str) -> httpx2.URL:
    """Where to post. Raises ConfigError for what is not a URL of HTTP."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        # The URL itself may be the secret of the receiver.
        raise ConfigError("flagged.webhook_url: this is not an http:// or https:// URL; correct it")
    return parsed


def in_clear(url: httpx2.URL) -> bool:
    """Do posts leave this machine without encryption?"""
    return url.scheme == "http" and not is_loopback(url.host)


def signature(key: bytes, case_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of ``webhook-signature``: HMAC-SHA256 over id, time and body, joined by dots."""
    signed = f"{case_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def wait_ms(attempt: int) -> int | None:
    """How long after this failed attempt, counted from 1, the next one comes; None after the last."""
    if attempt >= ATTEMPTS:
        return None
    return int(WAITS.bound(attempt - 1) * 1000)


class Webhook:
    """Posts what is due in a store. Use as a context manager, on one event loop."""

    def __init__(
        self, store: CaseStore, url: str, key: bytes, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Raises ConfigError for what is not a URL of HTTP."""
        self._store = store
        self._url = receiver(url)
        self._key = key
        self._clock = clock
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False)
        self._news = asyncio.Event()
        if in_clear(self._url):
            _log.warning("webhook.in_clear", effect=IN_CLEAR, remedy="use https://")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def wake(self) -> None:
        """There is something new in the store, or it is time to leave."""
        self._news.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Post until ``stop``, whatever receiver or store do; what was begun is ended, within seconds."""
        while not stop.is_set():
            self._news.clear()
            try:
                posted = await self.post_due()
            except CaseStoreError as error:
                _log.warning("webhook.store_away", error=str(error))
                posted = 0
            if posted < _POSTS_AT_ONCE and not stop.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._news.wait()

    async def post_due(self) -> int:
        """Post some of what is due now, side by side; how many were tried. Raises CaseStoreError."""
        due = await self._store.claim_due(int(self._clock() * 1000), _LEASE_MS, _POSTS_AT_ONCE)
        outcomes = await asyncio.gather(*(self._deliver(case) for case in due), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return len(due)

    async def _deliver(self, case: DueCase) -> None:
        why = await self._post(case)
        if why is None:
            await self._store.sent(case.id)
            telemetry.WEBHOOK_POSTS.labels("sent").inc()
            _log.info("webhook.sent", case=case.id, attempt=case.attempt)
            return
        wait = wait_ms(case.attempt)
        if wait is None:
            await self._store.not_sent(case.id, why, None)
            telemetry.WEBHOOK_POSTS.labels("given_up").inc()
            _log.error("webhook.given_up", case=case.id, attempts=case.attempt, why=why)
            return
        # Spread, so that what failed together doesn't come back together.
        next_at_ms = int(self._clock() * 1000) + int(wait * random.uniform(0.8, 1.2))
        await self._store.not_sent(case.id, why, next_at_ms)
        telemetry.WEBHOOK_POSTS.labels("failed").inc()
        _log.warning("webhook.not_sent", case=case.id, attempt=case.attempt, why=why, again_in_s=wait // 1000)

    async def _post(self, case: DueCase) -> str | None:
        """None once the receiver has taken it, else why not. What it answers is not read."""
        try:
            now_s = int(self._clock())
            headers = {
                "content-type": "application/json",
                "user-agent": f"streaming-guardrail/{__version__}",
                "idempotency-key": case.id,
                "webhook-id": case.id,
                "webhook-timestamp": str(now_s),
                "webhook-signature": signature(self._key, case.id, now_s, case.body),
            }
            async with (
                asyncio.timeout(_TIMEOUT_S),
                self._client.stream("POST", self._url, content=case.body, headers=headers) as reply,
            ):
                return None if reply.is_success else f"HTTP {reply.status_code}"
        except Exception as error:  # noqa: BLE001 - nothing that a receiver does may end the storing
            return type(error).__name__
