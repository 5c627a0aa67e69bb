"""One chaos run, from its seed to its report.

    guards ──proxies──> broker <── sender, live reader        nemesis: kills, freezes, cuts

The workload is sent, the faults happen along its way, everything is healed, all is finished, and the topics
are read back and checked.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from consumers.settings import KafkaSettings, Topics
from consumers.topics import create_topics
from tests.chaos.cluster import ClusterControl
from tests.chaos.nemesis import CLUSTER_WEIGHTS, WEIGHTS, Fault, Happened, Nemesis, schedule
from tests.chaos.processes import BrokerControl, ChaosBroker, GuardSlot
from tests.chaos.proxy import FaultProxy
from tests.chaos.readers import OUTPUTS, LiveReader
from tests.chaos.sender import Sender
from tests.chaos.verify import Findings, Verifier
from tests.chaos.workload import SILENT, Workload

GROUP: Final = "chaos"
RECOVERY_WINDOW_S: Final = 15.0
_A_SHORT_RUN: Final = 1_000
"""Responses for which a broker need not be compiled well."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that makes a run: the same plan gives the same workload and the same schedule."""

    seed: int
    responses: int
    faults: int
    guards: int = 2
    partitions: int = 4
    brokers: int = 1
    """1, or 3 with replication factor 3 and min.insync.replicas 2."""
    rate: float = 0.0
    """Responses a second; 0: as fast as they go."""
    at_once: int = 100
    bug: str = ""
    """Name of a deliberate bug of the guards (tests.chaos.producers), for demonstrations."""
    kinds: tuple[str, ...] = ()
    """Only faults of these kinds, in turn; all kinds where empty."""
    broker_anytime: bool = False
    """May the broker end in the middle of completing a transaction? See Nemesis."""
    commit_gap_ms: int = 25
    session_timeout_ms: int = 3_000
    stall_s: float = 90.0
    """How long nothing may finish before the run is given up and checked as it is."""

    def schedule(self) -> list[Fault]:
        weights = WEIGHTS if self.brokers == 1 else CLUSTER_WEIGHTS
        faults = schedule(self.seed, self.faults, self.guards, weights)
        if not self.kinds:
            return faults
        return [f._replace(kind=self.kinds[n % len(self.kinds)]) for n, f in enumerate(faults)]

    def kafka(self) -> dict[str, Any]:
        """The guards' settings: everything that waits, waits briefly."""
        return {
            "group_id": GROUP,
            "delivery_timeout_ms": 10_000,
            "connect_timeout_ms": 20_000,
            "recovery_timeout_ms": 60_000,
            "client": {
                "session_timeout_ms": self.session_timeout_ms,
                "heartbeat_interval_ms": self.session_timeout_ms // 5,
                # Longer than a broker stays away: one that aborts a transaction on its way up forgets its
                # markers too (see Nemesis.broker_anytime).
                "transaction_timeout_ms": 120_000,
                "request_timeout_ms": 5_000,
                "fetch_max_wait_ms": 50,
            },
        }

    def pace(self) -> dict[str, int]:
        """The guards' own waits, likewise."""
        return {"commit_gap_ms": self.commit_gap_ms, "commit_interval_ms": 200, "poll_timeout_ms": 50}


@dataclass(slots=True)
class Result:
    """What came of a run."""

    plan: Plan
    findings: Findings
    happened: list[Happened]
    gaps: list[tuple[float, float, int]]
    guard_ends: Counter[str]
    seconds: float
    finished: bool
    """Did everything come to its end before the check?"""
    unfinished: list[int]
    folder: Path

    @property
    def ok(self) -> bool:
        return self.finished and not self.findings.counts and not self.findings.unplanned

    def recovery(self) -> dict[str, list[float]]:
        """By kind of fault, the longest silence of any partition that overlaps the fault or what follows.

        Faults overlap each other: a kind is charged with what another did at the same time.
        """
        found: dict[str, list[float]] = {}
        for one in self.happened:
            until = one.ended + RECOVERY_WINDOW_S
            silences = [
                end - max(begin, one.began)
                for begin, end, _ in self.gaps
                if end > one.began and begin < until
            ]
            found.setdefault(one.fault.kind, []).append(max(silences, default=0.0))
        return found

    def __str__(self) -> str:
        plan = self.plan
        lines = [
            f"seed {plan.seed}: {len(self.happened)} faults over {plan.responses} responses, "
            f"{self.seconds:.0f} s, evidence in {self.folder}",
            f"again: python -m benchmarks.chaos --seed {plan.seed} --responses {plan.responses} "
            f"--faults {plan.faults} --guards {plan.guards} --partitions {plan.partitions} "
            f"--rate {plan.rate:g} --at-once {plan.at_once} --brokers {plan.brokers}",
            f"anomalies: {dict(self.findings.counts) or 'none'}",
        ]
        if not self.finished:
            lines.append(f"not finished: {len(self.unfinished)} responses, first {self.unfinished[:5]}")
        if self.findings.unplanned:
            lines.append(f"input not as planned: {self.findings.unplanned} responses")
        lines += [str(found) for found in self.findings.examples[:30]]
        lines.append(f"guards ended: {dict(self.guard_ends)}")
        return "\n".join(lines)


async def run(plan: Plan, folder: Path, tell: Callable[[str], None] = lambda _: None) -> Result:
    """Carry out a plan. ``folder``, which exists, gets logs and, for the check, all that was read."""
    async with AsyncExitStack() as stack:
        networks = [
            [await stack.enter_async_context(FaultProxy(("127.0.0.1", 0))) for _ in range(plan.brokers)]
            for _ in range(plan.guards + 1)
        ]
        control: BrokerControl | ClusterControl
        if plan.brokers == 1:
            control = await _broker(plan, folder, stack, [proxy for (proxy,) in networks])
        else:
            control = await stack.enter_async_context(ClusterControl(networks, folder))
        topics = Topics()
        await create_topics(
            KafkaSettings(bootstrap_servers=control.bootstrap_servers, topics=topics),
            partitions=plan.partitions,
            replication_factor=plan.brokers,
        )
        slots = [
            await stack.enter_async_context(GuardSlot(n, ways, plan.kafka(), plan.pace(), plan.bug, folder))
            for n, ways in enumerate(networks)
        ]
        return await _Run(plan, folder, control, slots, topics, tell).go()


async def _broker(
    plan: Plan, folder: Path, stack: AsyncExitStack, proxies: Sequence[FaultProxy]
) -> BrokerControl:
    """One broker, with a listener for each of the proxies."""
    short = plan.responses <= _A_SHORT_RUN
    broker = ChaosBroker([proxy.port for proxy in proxies], short_lived=short)
    control = BrokerControl(broker)
    stack.callback(_keep_log, control, folder)
    await control.start()
    for proxy, port in zip(proxies, broker.listener_ports, strict=True):
        proxy.target = ("127.0.0.1", port)
    return control


def _keep_log(control: BrokerControl, folder: Path) -> None:
    broker = control.broker
    if broker.log.exists():
        shutil.copy(broker.log, folder / "kafka.log")
    control.close(keep_log=False)


class _Run:
    def __init__(
        self,
        plan: Plan,
        folder: Path,
        broker: BrokerControl | ClusterControl,
        slots: list[GuardSlot],
        topics: Topics,
        tell: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self.folder = folder
        self.broker = broker
        self.slots = slots
        self.guards = slots[: plan.guards]
        self.topics = topics
        self.tell = tell
        self.workload = Workload(plan.seed, plan.responses)
        self.reader = LiveReader(plan.responses)
        self.sender = Sender(self.workload, at_once=plan.at_once, rate=plan.rate)
        self.nemesis = Nemesis(
            plan.schedule(),
            self.guards,
            slots[plan.guards],
            broker,
            plan.session_timeout_ms / 1000,
            GROUP,
            topics.responses,
            plan.broker_anytime,
        )
        self.begun = 0
        self.began = time.monotonic()

    async def go(self) -> Result:
        bootstrap = self.broker.bootstrap_servers
        outputs = {role: getattr(self.topics, role) for role in OUTPUTS}
        verifier = Verifier(
            bootstrap,
            GROUP,
            {role: getattr(self.topics, role) for role in Topics.model_fields},
            self.plan.partitions,
            self.folder,
        )
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self.reader.run(bootstrap, outputs, self.plan.partitions))
            telling = group.create_task(self._tell())
            for slot in self.guards:
                slot.wanted.set()
            async with asyncio.TaskGroup() as work:
                work.create_task(self.sender.run(bootstrap, self.topics.responses, self._may_send))
                work.create_task(self.nemesis.run(self._share))
            finished = await self._all_done() and await verifier.settled()
            seconds = time.monotonic() - self.began
            # What the reader has not got by now it never gets.
            await self._reader_idle()
            for slot in self.slots:
                await slot.retire()
            reading.cancel()
            telling.cancel()
        (self.folder / "faults.jsonl").write_text(
            "".join(json.dumps(one.told()) + "\n" for one in self.nemesis.happened)
        )
        self.tell("reading everything back")
        findings = await verifier.check(self.workload, self.reader.logs)
        numbers = [case.number for case in self.workload if case.ending not in SILENT]
        return Result(
            plan=self.plan,
            findings=findings,
            happened=self.nemesis.happened,
            gaps=self.reader.gaps,
            guard_ends=Counter(f"status {status}" for slot in self.slots for status in slot.ends.elements()),
            seconds=seconds,
            finished=finished,
            unfinished=self.reader.unfinished(numbers),
            folder=self.folder,
        )

    def _may_send(self, begun: int) -> bool:
        """Not further than the faults have come, nor so far that the guards are left far behind."""
        self.begun = begun
        behind = self.sender.answered - self.reader.done
        return behind < 5 * self.plan.at_once and self.nemesis.may_send(begun / self.plan.responses)

    def _share(self) -> float:
        """How much of the workload has been sent; none before the guards are at work."""
        return self.begun / self.plan.responses if self.reader.done else 0.0

    async def _all_done(self) -> bool:
        """Wait until every response has its final events; False when nothing finishes any more."""
        self.reader.last_progress = time.monotonic()
        while self.reader.done < self.sender.answered:
            if time.monotonic() - self.reader.last_progress > self.plan.stall_s:
                return False
            await asyncio.sleep(0.1)
        return True

    async def _reader_idle(self) -> None:
        before = -1
        while before != self.reader.records:
            before = self.reader.records
            await asyncio.sleep(1.0)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(10.0)
            ends: Counter[int] = Counter()
            for slot in self.slots:
                ends += slot.ends
            self.tell(
                f"{time.monotonic() - self.began:5.0f} s  {self.begun:7,} begun  {self.reader.done:7,} done  "
                f"{self.sender.records:9,} records sent  {self.reader.records:9,} read  "
                f"{len(self.nemesis.finished):4} faults  guards ended {sum(ends.values())}"
            )
