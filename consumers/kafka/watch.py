"""Whether Kafka answers and has the topics: noticed within seconds, and told once for each change.

The client library tells of every request that failed, and asks for topics that came back after minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Final

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from consumers.kafka.client import quiet_while
from consumers.kafka.workarounds import ask_for_metadata
from consumers.settings import KafkaSettings
from guardrail import telemetry
from guardrail.log_events import EventLog

_EVERY_S: Final = 3.0
_AGAIN_S: Final = 1.0
_PATIENCE_S: Final = 10.0

_log = EventLog(__name__)


class KafkaWatch:
    """What is known of Kafka by one consumer. ``run`` is to run beside it."""

    def __init__(
        self,
        settings: KafkaSettings,
        consumer: AIOKafkaConsumer,
        admin: AIOKafkaAdminClient,
        read: Collection[str],
        needed: Collection[str],
        *,
        without: str = "nothing is read or released",
    ) -> None:
        """``read`` are the topics that the consumer reads, ``needed`` all that the process does; ``without``
        tells what does not happen while they are away.
        """
        self._without = without
        self._settings = settings
        self._consumer = consumer
        self._admin = admin
        self._read = tuple(read)
        self._needed = frozenset(needed)
        self._away_since: float | None = None
        self._looked = False  # once already, and a topic was missing
        self.missing = False
        """Are topics missing that are to be read?"""

    @property
    def away(self) -> bool:
        """Does no broker answer?"""
        return self._away_since is not None

    @property
    def waits_for(self) -> str:
        """What is away, in words; empty if nothing is."""
        if self.away:
            return "Kafka: no broker answers"
        return f"topics: {', '.join(self._read)} can't be found" if self.missing else ""

    async def run(self) -> None:
        """Ask every few seconds, until cancelled."""
        try:
            while True:
                await asyncio.sleep(_AGAIN_S if self.away or self.missing or self._looked else _EVERY_S)
                await self.look()
        finally:
            quiet_while(self, away=False)

    async def look(self) -> None:
        """Ask once, and tell what has changed."""
        began = time.monotonic()
        answers = await self._answers()
        telemetry.KAFKA_AWAY.set(not answers)
        if answers and self.away:
            self._come_back()
        elif not answers and not self.away:
            self._away_since = began
            _log.warning(
                "guard.kafka_away",
                servers=self._settings.bootstrap_servers,
                effect=f"{self._without}; it is tried again until Kafka answers",
            )
        if answers:
            await self._look_for_topics()
        quiet_while(self, away=self.away or self.missing)

    def _come_back(self) -> None:
        since = self._away_since or 0.0
        self._away_since = None
        _log.info(
            "guard.kafka_back",
            servers=self._settings.bootstrap_servers,
            away_s=round(time.monotonic() - since, 1),
        )

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await ask_for_metadata(self._consumer)
        except (KafkaError, OSError, TimeoutError):
            return False

    async def _look_for_topics(self) -> None:
        lost = [topic for topic in self._read if not self._consumer.partitions_for_topic(topic)]
        if not lost:
            self._looked = False
            if self.missing:
                self.missing = False
                _log.info("guard.topics_back", topics=list(self._read))
            return
        # A broker that has just started may know its topics a moment later.
        if self._looked and not self.missing:
            self.missing = True
            _log.error(
                "guard.topics_missing",
                topics=sorted({*lost, *await self._not_listed()}),
                remedy=f"make them with: {self._settings.create_command}",
                effect=f"{self._without}; it goes on by itself when they are there",
            )
        self._looked = True

    async def _not_listed(self) -> set[str]:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return set(self._needed.difference(await self._admin.list_topics()))
        except (KafkaError, OSError, TimeoutError):
            return set()
