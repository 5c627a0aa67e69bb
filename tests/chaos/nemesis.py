"""What goes wrong and when: a schedule made from the seed, and its execution.

The schedule is the same for the same seed; what it meets is not, since processes and clocks are real.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from aiokafka.errors import KafkaError

from tests.chaos.cluster import ClusterControl, NodeControl
from tests.chaos.processes import BrokerControl, GuardSlot
from tests.chaos.producers import STEP_PARTS
from tests.chaos.proxy import FaultProxy
from tests.chaos.transactions import settled

AT_ONCE: Final = 3
"""Faults that may overlap."""
NOT_MET_S: Final = 4.0
"""How long a guard may take to come to the part of a step that it is to die in."""
ON_ITS_WAY_S: Final = 0.5
"""How long what a frozen guard has sent may be held up by the slowest connection (``latency``)."""
SETTLED_S: Final = 10.0
"""How long the broker may take to complete what it has decided."""
FULL_S: Final = 20.0
"""How long a broker may run on with a full disk before it is killed."""

WEIGHTS: Final[dict[str, float]] = {
    "kill": 12,
    **{f"kill {part}": 5.0 for part in STEP_PARTS},
    "freeze past the session timeout": 6,
    **{f"freeze {part}": 1.4 for part in STEP_PARTS},
    "pause": 5,
    "broker killed": 4,
    "broker restarted": 2,
    "latency": 5,
    "bandwidth": 4,
    "reset": 8,
    "black hole": 5,
    "connections refused": 3,
    "guard joins and leaves": 4,
    "guard restarted": 4,
    "rolling restart": 1.5,
    "judge hangs": 4,
    "judge fails": 4,
    "sends fail": 5,
}

CLUSTER_WEIGHTS: Final[dict[str, float]] = {
    "cluster: a broker killed": 5,
    "cluster: brokers restarted in turn": 3,
    "cluster: the group's coordinator killed": 4,
    "cluster: a transaction coordinator killed": 4,
    "cluster: a full disk": 4,
    "cluster: one broker cut off from a guard": 5,
    **{kind: weight / 2 for kind, weight in WEIGHTS.items() if not kind.startswith("broker")},
}
"""Of three brokers, in place of WEIGHTS."""


class Fault(NamedTuple):
    """One thing that goes wrong: on which guard, how hard (0 to 1), after which share of the workload."""

    kind: str
    guard: int
    force: float
    after: float


@dataclass(slots=True)
class Happened:
    """A fault that was carried out. Times are readings of time.monotonic()."""

    fault: Fault
    began: float
    ended: float = 0.0
    note: str = ""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    """When it began, as the guards' logs write it."""

    def told(self) -> dict[str, Any]:
        """For the evidence."""
        lasted_s = round(self.ended - self.began, 3)
        return {"at": self.at, **self.fault._asdict(), "lasted_s": lasted_s, "note": self.note}


def schedule(seed: int, faults: int, guards: int, weights: Mapping[str, float] = WEIGHTS) -> list[Fault]:
    """``faults`` faults spread over the workload; where there are enough, each kind at least once."""
    rng = random.Random(f"faults of {seed}")
    kinds = list(weights)[:faults]
    kinds += rng.choices(list(weights), list(weights.values()), k=faults - len(kinds))
    rng.shuffle(kinds)
    times = sorted(rng.uniform(0.02, 0.98) for _ in kinds)
    return [
        Fault(kind, rng.randrange(guards), rng.random(), after)
        for kind, after in zip(kinds, times, strict=True)
    ]


@dataclass(slots=True)
class Nemesis:
    """Carries out a schedule on the processes of a run. ``guards`` are always wanted, ``extra`` is not."""

    faults: Sequence[Fault]
    guards: Sequence[GuardSlot]
    extra: GuardSlot
    broker: BrokerControl | ClusterControl
    session_timeout_s: float
    group: str = ""
    input_topic: str = ""
    broker_anytime: bool = False
    """May the broker end between the decision over a transaction and its markers? Kafka 4.3.0 loses them."""
    happened: list[Happened] = field(default_factory=list)
    started: int = 0

    @property
    def finished(self) -> list[Happened]:
        return [one for one in self.happened if one.ended]

    def may_send(self, share: float) -> bool:
        """May the workload go past this share of itself? Not before the fault that is due there has begun."""
        return self.started == len(self.faults) or share < self.faults[self.started].after

    async def run(self, share: Callable[[], float]) -> None:
        """All faults, each when ``share`` (of the workload that has been sent) says that it is its turn."""
        room = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for fault in self.faults:
                while share() < fault.after:  # noqa: ASYNC110 - the sender's progress is looked at
                    await asyncio.sleep(0.05)
                await room.acquire()
                self.started += 1
                group.create_task(self._one(fault, room))
        await self.heal()

    async def heal(self) -> None:
        """Undo what may last."""
        async with self.broker.lock:
            await self.broker.start()
        for slot in (*self.guards, self.extra):
            for proxy in slot.proxies:
                proxy.heal()
            slot.signal(signal.SIGCONT)
            slot.order(trouble="", part="", signal="SIGKILL")

    async def _one(self, fault: Fault, room: asyncio.Semaphore) -> None:
        happened = Happened(fault, time.monotonic())
        self.happened.append(happened)
        try:
            for begins, action in self._actions():
                if fault.kind.startswith(begins):
                    happened.note = await action(fault, self.guards[fault.guard]) or ""
                    break
            else:
                raise ValueError(f"no such fault: {fault.kind}")
        finally:
            happened.ended = time.monotonic()
            room.release()

    def _actions(self) -> Iterator[tuple[str, Callable[[Fault, GuardSlot], Coroutine[Any, Any, str | None]]]]:
        """By the beginning of the kind; the first that fits."""
        yield "kill", self._kill
        yield "freeze past", self._freeze
        yield "freeze ", self._freeze_at
        yield "pause", self._freeze
        yield "broker", self._broker
        yield "cluster: one broker cut", self._cut_one
        yield "cluster: brokers", self._brokers_in_turn
        yield "cluster: ", self._node
        yield "guard joins", self._join
        yield "guard restarted", self._restart
        yield "rolling", self._rolling
        yield "judge", self._judge
        yield "sends fail", self._sends_fail
        yield "", self._network

    # --------------------------------------------------------------------------------- processes

    async def _kill(self, fault: Fault, slot: GuardSlot) -> str:
        """With a part, killed by itself at that part of its next step; from outside when no step comes."""
        part = fault.kind.removeprefix("kill").strip()
        async with slot.lock:
            if part:
                await slot.up.wait()
                slot.order(part=part, signal="SIGKILL")
            pid = slot.pid
            if part and await slot.ended(pid, NOT_MET_S):
                return ""
            slot.signal(signal.SIGKILL)
            await slot.ended(pid, NOT_MET_S)
            return "took no step in time: killed outside of one" if part else ""

    async def _freeze(self, fault: Fault, slot: GuardSlot) -> None:
        """So long that its partitions are given away, and it wakes and knows nothing of it; in a pause it
        keeps them, and its deadlines have passed."""
        times = 0.2 + 0.5 * fault.force if fault.kind == "pause" else 1.3 + fault.force
        async with slot.lock:
            slot.signal(signal.SIGSTOP)
            await asyncio.sleep(self.session_timeout_s * times)
            slot.signal(signal.SIGCONT)

    async def _freeze_at(self, fault: Fault, slot: GuardSlot) -> str:
        async with slot.lock:
            await slot.up.wait()
            slot.order(part=fault.kind.removeprefix("freeze "), signal="SIGSTOP")
            met = await self._until_frozen(slot)
            if met:
                await asyncio.sleep(self.session_timeout_s * (1.3 + fault.force))
            slot.order(part="", signal="SIGKILL")
            slot.signal(signal.SIGCONT)
            return "" if met else "took no step in time: not frozen"

    async def _until_frozen(self, slot: GuardSlot) -> bool:
        try:
            async with asyncio.timeout(NOT_MET_S):
                while not slot.frozen:  # noqa: ASYNC110 - a process has no event to wait for
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    async def _broker(self, fault: Fault, slot: GuardSlot) -> str:
        async with self.broker.lock, AsyncExitStack() as frozen:
            note = ""
            if not self.broker_anytime:
                note = await self._between_transactions(frozen)
            assert isinstance(self.broker, BrokerControl)
            if fault.kind == "broker killed":
                await self.broker.kill()
                await frozen.aclose()
                await asyncio.sleep(2.0 * fault.force)
            else:
                await self.broker.stop()
                await frozen.aclose()
            await self.broker.start()
        return note

    async def _node(self, fault: Fault, slot: GuardSlot) -> str:
        """One of three brokers dies, which one being the point, and comes back."""
        cluster = self.broker
        assert isinstance(cluster, ClusterControl)
        async with cluster.lock:
            node, note = cluster.nodes[int(fault.force * len(cluster.nodes))], ""
            if "coordinator" in fault.kind:
                try:
                    node = await cluster.coordinator(*self._coordinated(fault))
                except KafkaError as error:
                    note = f"the coordinator is not known, so any was killed: {type(error).__name__}"
            if fault.kind.endswith("full disk"):
                note = await self._fill(node)
            else:
                await node.do(node.broker.kill)
                # Longer than the controller takes to notice, or as long as it takes to start.
                await asyncio.sleep(8.0 * fault.force)
            await cluster.start()
            return note if await cluster.in_sync() else f"{note}; not in sync in time"

    def _coordinated(self, fault: Fault) -> tuple[str, int]:
        """Whose coordinator, and of what kind."""
        if "group" in fault.kind:
            return self.group, 0
        return f"guardrail-{self.group}-{self.input_topic}-{int(fault.force * 4)}", 1

    async def _fill(self, node: NodeControl) -> str:
        """Until the broker ends by itself, as it does when it can't write; it is started with room again."""
        await node.do(node.broker.fill_disk)
        try:
            async with asyncio.timeout(FULL_S):
                while not node.broker.ended:  # noqa: ASYNC110 - a process has no event to wait for
                    await asyncio.sleep(0.1)
        except TimeoutError:
            await node.do(node.broker.kill)
            return "it had not ended by itself"
        return ""

    async def _brokers_in_turn(self, fault: Fault, slot: GuardSlot) -> str:
        """As an operator restarts them: in order, the next one when all replicas are in sync."""
        cluster = self.broker
        assert isinstance(cluster, ClusterControl)
        async with cluster.lock:
            for node in cluster.nodes:
                await node.do(node.broker.stop)
                await cluster.start()
                if not await cluster.in_sync():
                    return "not in sync in time"
        return ""

    async def _cut_one(self, fault: Fault, slot: GuardSlot) -> None:
        """The guard reaches the others, and the broker all other guards."""
        proxy = slot.proxies[int(fault.force * len(slot.proxies))]
        async with slot.lock:
            proxy.silence()
            await asyncio.sleep(self.session_timeout_s * (0.5 + 2.5 * fault.force))
            proxy.heal()

    async def _between_transactions(self, frozen: AsyncExitStack) -> str:
        """Freeze all guards, wherever they are in a step, and let the broker complete what it has decided.

        A broker that ends in the middle of that may, once it is back, complete a transaction without its
        markers (KAFKA-20734): no guard could make up for it. ``frozen`` lets them go on.
        """
        for slot in (*self.guards, self.extra):
            await frozen.enter_async_context(slot.lock)
            if slot.wanted.is_set():
                frozen.callback(slot.signal, signal.SIGCONT)
                while not slot.frozen:
                    await slot.up.wait()
                    slot.signal(signal.SIGSTOP)
                    await asyncio.sleep(0.02)
        await asyncio.sleep(ON_ITS_WAY_S)
        try:
            if await settled(self.broker.bootstrap_servers, SETTLED_S):
                return ""
        except (KafkaError, OSError, TimeoutError) as error:
            return f"transactions were not looked at: {type(error).__name__}"
        return "transactions were not settled in time"

    async def _join(self, fault: Fault, slot: GuardSlot) -> None:
        async with self.extra.lock:
            self.extra.wanted.set()
            await asyncio.sleep(3.0 + 4.0 * fault.force)
            await self.extra.retire()

    async def _restart(self, fault: Fault, slot: GuardSlot) -> None:
        async with slot.lock:
            pid = slot.pid
            slot.signal(signal.SIGTERM)
            if not await slot.ended(pid, 15.0):
                slot.signal(signal.SIGKILL)

    async def _rolling(self, fault: Fault, slot: GuardSlot) -> None:
        for one in self.guards:
            await self._restart(fault, one)
            await one.up.wait()
            await asyncio.sleep(0.5 + fault.force)

    # ------------------------------------------------------------------------ judge, sends, network

    async def _judge(self, fault: Fault, slot: GuardSlot) -> None:
        """Every guard's judge is in trouble over delicate claims for a while."""
        for one in self.guards:
            one.order(trouble="hang" if fault.kind == "judge hangs" else "error")
        await asyncio.sleep(1.0 + 2.0 * fault.force)
        for one in self.guards:
            one.order(trouble="")

    async def _sends_fail(self, fault: Fault, slot: GuardSlot) -> None:
        slot.order(refused_sends=5 + int(10 * fault.force))
        await asyncio.sleep(1.0)

    async def _network(self, fault: Fault, slot: GuardSlot) -> None:
        """All ways of the guard to the brokers are bad for a while."""
        some = 1.0 + 2.0 * fault.force
        ways: dict[str, tuple[Callable[[FaultProxy], object], float]] = {
            "latency": (lambda proxy: proxy.slow(0.05 + 0.35 * fault.force), some),
            "bandwidth": (lambda proxy: proxy.narrow(20_000 + 80_000 * (1 - fault.force)), some),
            "reset": (lambda proxy: proxy.reset(lambda n: n % 2 == 0 or fault.force <= 0.5), 0.5),
            "black hole": (FaultProxy.silence, self.session_timeout_s * (0.3 + 1.7 * fault.force)),
            "connections refused": (FaultProxy.refuse, some),
        }
        do, lasts_s = ways[fault.kind]
        async with slot.lock:
            for proxy in slot.proxies:
                do(proxy)
            await asyncio.sleep(lasts_s)
            for proxy in slot.proxies:
                proxy.heal()
