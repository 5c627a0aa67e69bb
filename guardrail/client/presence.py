"""Whether Kafka answers the client and has its topics: told once for each change, and asked for with pauses.

aiokafka asks for metadata again at once where a partition has no leader, hundreds of times a second, and logs
each answer. Here, between updates that follow each other closely, there are pauses, which grow; and what
aiokafka's tasks of this client log is for debugging while the client has said what is away. Other clients of
the process are left as they are: the tasks are known by a context variable, which they inherit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from guardrail.client.library import Repetitions, demoted
from guardrail.log_events import EventLog

_CLOSELY_S: Final = 2.0
_FREE: Final = 3
"""Updates in a row without a pause: a client that starts makes some."""
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 1.0
_PATIENCE_S: Final = 1.0
"""What is away for a shorter time is not told: a broker that has just started may know its topics later."""
_LOGGERS: Final = (
    "aiokafka",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.fetcher",
    "aiokafka.producer.producer",
    "aiokafka.producer.sender",
)
_REVEALING: Final = frozenset({"aiokafka.conn", "aiokafka.producer.producer"})
"""Their lines for debugging show requests and records as they are sent, with passwords and texts."""

_log = EventLog(__name__)
_mine: ContextVar[ClientPresence | None] = ContextVar("guardrail_client_presence", default=None)


class Pace:
    """Pauses between updates: none for the first few, then ever longer ones, up to a second."""

    def __init__(self) -> None:
        self._row = 0
        self._last: float | None = None

    def pause_s(self, now: float) -> float:
        """How long to wait before the update that is due at ``now`` (seconds)."""
        close = self._last is not None and now - self._last < _CLOSELY_S
        self._row = self._row + 1 if close else 0
        if self._row < _FREE:
            return 0.0
        return min(_FIRST_PAUSE_S * 2.0 ** min(self._row - _FREE, 10), _LONGEST_PAUSE_S)

    def updated(self, now: float) -> None:
        """An update has ended at ``now``."""
        self._last = now


class ClientPresence:
    """What one client knows of Kafka, from the updates of its producer and its consumer."""

    def __init__(self, servers: str | list[str]) -> None:
        self._servers = servers if isinstance(servers, str) else ",".join(servers)
        self._since: float | None = None  # no broker answers
        self._away = False
        self._lost: dict[str, float] = {}  # topics, since when
        self._missing: frozenset[str] = frozenset()
        self._said = Repetitions()

    @contextmanager
    def known(self) -> Iterator[None]:
        """Tasks that begin in here, and those that these begin, are the client's."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_sparing)  # adding it again changes nothing
        token = _mine.set(self)
        try:
            yield
        finally:
            _mine.reset(token)

    def attend(self, kafka: AIOKafkaProducer | AIOKafkaConsumer) -> None:
        """Hear of the updates of a client that has not started, which from now on pause.

        Relies on private parts of aiokafka, as ``consumers.kafka.workarounds`` does.
        """
        client: Any = kafka.client if isinstance(kafka, AIOKafkaProducer) else kafka._client
        ask = client._metadata_update
        pace = Pace()

        async def update(cluster: Any, topics: Collection[str] | None) -> Any:
            await asyncio.sleep(pace.pause_s(time.monotonic()))
            answered = await ask(cluster, topics)
            now = time.monotonic()
            pace.updated(now)
            if cluster is client.cluster:
                asked = topics or ()
                missing = [topic for topic in asked if not cluster.partitions_for_topic(topic)]
                self.saw(answered=bool(answered), topics=asked, missing=missing, now=now)
            return answered

        client._metadata_update = update

    def saw(self, *, answered: bool, topics: Collection[str], missing: Collection[str], now: float) -> None:
        """An update has ended: did a broker answer, and which of the topics asked for has it not?"""
        if not answered:
            if self._since is None:
                self._since = now
            if not self._away and now - self._since >= _PATIENCE_S:
                self._away = True
                _log.warning(
                    "client.kafka_away",
                    servers=self._servers,
                    effect="answers wait or time out; it is tried again until Kafka answers",
                )
            return
        if self._away and self._since is not None:
            _log.info("client.kafka_back", servers=self._servers, away_s=round(now - self._since, 1))
        self._away, self._since = False, None
        for topic in topics:
            if topic in missing:
                self._lost.setdefault(topic, now)
            else:
                self._lost.pop(topic, None)
        told = frozenset(topic for topic, since in self._lost.items() if now - since >= _PATIENCE_S)
        if self._missing and not self._lost:
            _log.info("client.topics_back", topics=sorted(self._missing))
            self._missing = frozenset()
        elif told - self._missing:
            self._missing |= self._lost.keys()
            _log.error(
                "client.topics_missing",
                topics=sorted(self._lost),
                remedy="make them with: guardrail topics create",
                effect="answers wait or time out; the client goes on by itself when they are there",
            )

    def admits(self, record: logging.LogRecord) -> bool:
        """Should a line of aiokafka about this client be logged?"""
        if record.levelno <= logging.DEBUG:
            return record.name not in _REVEALING
        if self._away or self._missing:
            return demoted(record)
        # The topic or node comes first in a line.
        about = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        return not self._said.is_one(record, about)


class _SparingTasks(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        presence = _mine.get()
        return presence is None or presence.admits(record)


_sparing: Final = _SparingTasks()
