"""Transactional producers that die, freeze or fail at a chosen part of a step; and those with a bug.

The first is a fault and the guard must survive it. The others are deliberate mistakes that the checker must
find.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import KafkaTimeoutError

from consumers.kafka import TransactionalProducer
from consumers.settings import KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, StateRecord
from tests.support.kafka_settings import changed

STEP_PARTS: Final = (
    "before_send",
    "after_send",
    "before_offsets",
    "before_commit",
    "during_commit",
    "after_commit",
)
_ON_THE_WAY_S: Final = 0.002
"""How long after its begin a commit is "during": the request is out, the answer is not back."""


@dataclass(slots=True)
class Orders:
    """What is to happen to the next step of this process, whichever partition it is of."""

    part: str = ""
    signal: signal.Signals = signal.SIGKILL
    refused_sends: int = 0
    """How many of the next steps lose a record to a failed send."""


class DoomedProducer(TransactionalProducer):
    """The real one, up to the moment that ``orders`` names."""

    orders: Orders = Orders()

    async def send(self, records: Sequence[OutRecord], state: Sequence[StateRecord]) -> None:
        self._meet("before_send")
        refused: OutRecord | None = None
        if records and self.orders.refused_sends:
            self.orders.refused_sends -= 1
            refused, records = records[0], records[1:]
        await super().send(records, state)
        if refused is not None:
            failed = asyncio.get_running_loop().create_future()
            failed.set_exception(KafkaTimeoutError("the send failed, on order"))
            failed.exception()  # looked at: the library's own futures are, too
            self._sent[failed] = refused.topic
        self._meet("after_send")

    async def send_offsets(self, commit: Commit) -> None:
        self._meet("before_offsets")
        await super().send_offsets(commit)

    async def commit(self) -> None:
        self._meet("before_commit")
        if self.orders.part == "during_commit":
            asyncio.get_running_loop().call_later(_ON_THE_WAY_S, self._meet, "during_commit")
        await super().commit()
        self._meet("after_commit")

    def _meet(self, part: str) -> None:
        if self.orders.part == part:
            self.orders.part = ""
            os.kill(os.getpid(), self.orders.signal)


class HastyProducer(DoomedProducer):
    """Bug: commits before it knows what became of its sends."""

    async def settled(self) -> None:
        return


class UnfencedProducer(DoomedProducer):
    """Bug: an id of its own for every process, so that nobody fences anybody."""

    def __init__(self, settings: KafkaSettings, partition: Partition, topics: Collection[str] = ()) -> None:
        prefix = f"unfenced-{uuid.uuid4().hex[:8]}"
        super().__init__(changed(settings, transactional_id_prefix=prefix), partition, topics)


class ForgetfulProducer(DoomedProducer):
    """Bug: does not write what is in flight."""

    async def send(self, records: Sequence[OutRecord], state: Sequence[StateRecord]) -> None:
        await super().send(records, ())


class DetachedProducer(DoomedProducer):
    """Bug: outputs leave in a transaction of their own, before that of the position and the state."""

    async def send(self, records: Sequence[OutRecord], state: Sequence[StateRecord]) -> None:
        await super().send(records, ())
        await self.settled()
        await TransactionalProducer.commit(self)
        await self.begin()
        await super().send((), state)


PRODUCERS: Final[dict[str, type[DoomedProducer]]] = {
    "": DoomedProducer,
    "hasty": HastyProducer,
    "unfenced": UnfencedProducer,
    "forgetful": ForgetfulProducer,
    "detached": DetachedProducer,
}
"""By the name of the bug."""
