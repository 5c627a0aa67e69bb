"""What is seen of Kafka beside the work: whether it answers and has the topics, and other groups of guards.

Each is noticed within seconds or a minute, and told once for each change. The client library tells of every
request that failed, and asks for topics that came back after minutes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

from consumers.kafka.client import quiet_while
from consumers.kafka.workarounds import Subscription, ask_for_metadata, subscriptions
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
        if answers and self._away_since is not None:
            _log.info(
                "guard.kafka_back",
                servers=self._settings.bootstrap_servers,
                away_s=round(time.monotonic() - self._away_since, 1),
            )
            self._away_since = None
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


# -------------------------------------------------------------------------- other groups on the same input
#
# Each group reads every response and writes its own deliveries. Where two write to the same topic, a reader
# shows whichever comes first, so that a group in mode observe lets everything through. A guard therefore
# tells the coordinator where it writes, in the part of its subscription that Kafka leaves to the members, and
# anybody who may describe the group can read that.

_GROUPS_EVERY_S: Final = 60.0
_OTHERS_AGAIN_S: Final = 900.0
"""After so long a group is looked at again that was not a group of guards: a cluster may have thousands."""
_GROUPS_PATIENCE_S: Final = 30.0
_DELIVERIES: Final = "deliveries"
_MOST_BYTES: Final = 1_000


def announcing(deliveries: str) -> type[RangePartitionAssignor]:
    """The range assignor, which keeps partitions of a number together; its members tell where they write."""

    class Announcing(RangePartitionAssignor):
        @classmethod
        def metadata(cls, topics: Iterable[str]) -> Any:
            made = super().metadata(topics)
            told = json.dumps({"guardrail": {_DELIVERIES: deliveries}}).encode()
            return type(made)(made.version, made.subscription, told)

    return Announcing


class OtherGroup(NamedTuple):
    """A group of guards, and the topic that it writes its deliveries to."""

    group: str
    deliveries: str


class GroupWatch:
    """Looks for other groups of guards that read the same topic, of those that this user may describe."""

    def __init__(self, settings: KafkaSettings, admin: AIOKafkaAdminClient) -> None:
        self._settings = settings
        self._admin = admin
        self._again_at: dict[str, float] = {}
        """When to look again at groups that were none of guards."""
        self._told: set[OtherGroup] = set()

    async def run(self) -> None:
        """Look each minute, and warn once of each group, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_GROUPS_PATIENCE_S):
                    self._tell(await self.look())
            except (KafkaError, OSError, TimeoutError):
                pass  # what was seen before still holds
            except Exception as error:  # noqa: BLE001 - what others tell of themselves must not end the guard's watch
                _log.warning("guard.groups_unread", error=type(error).__name__, effect="it is tried again")
            await asyncio.sleep(_GROUPS_EVERY_S)

    async def look(self) -> list[OtherGroup]:
        """The other groups that have members now. Raises KafkaError and OSError."""
        found: set[OtherGroup] = set()
        now = time.monotonic()
        self._again_at = {name: at for name, at in self._again_at.items() if at > now}
        cluster: dict[str, Any] = await self._admin.describe_cluster()
        for broker in cluster["brokers"]:
            node = broker["node_id"]
            names = [
                name
                for name, kind, *_ in await self._admin.list_consumer_groups([node])
                if kind == "consumer" and name != self._settings.group_id and name not in self._again_at
            ]
            if not names:
                continue
            for name, members in (await subscriptions(self._admin, node, names)).items():
                guards = {OtherGroup(name, topic) for topic in self._written_by(members)}
                found |= guards
                if members and not guards:
                    self._again_at[name] = now + _OTHERS_AGAIN_S
        return sorted(found)

    def _written_by(self, members: Sequence[Subscription]) -> Iterator[str]:
        for topics, user_data in members:
            if len(user_data) > _MOST_BYTES:
                continue
            try:
                told = json.loads(user_data)["guardrail"][_DELIVERIES]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # not by a guard
            if isinstance(told, str) and self._settings.topics.responses in topics:
                yield told

    def _tell(self, found: Sequence[OtherGroup]) -> None:
        ours = self._settings.topics.deliveries
        telemetry.OTHER_GROUPS.set(sum(each.deliveries == ours for each in found))
        for each in found:
            if each in self._told:
                continue
            if each.deliveries == ours:
                _log.error(
                    "guard.other_group",
                    group=each.group,
                    deliveries=each.deliveries,
                    effect="readers show whichever group is first: nothing is enforced for certain",
                    remedy="stop it, or give it outputs of its own; GuardClient(group=…) obeys one alone",
                )
            else:
                _log.info("guard.other_group", group=each.group, deliveries=each.deliveries)
        self._told = set(found)
