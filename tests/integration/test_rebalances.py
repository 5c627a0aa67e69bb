"""Guards come and go, freeze and are killed while answers stream: every answer comes out whole, and once."""

from __future__ import annotations

import asyncio
import json
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from consumers.settings import KafkaSettings, Topics
from consumers.topics import create_topics
from guardrail.errors import TransportUnavailable
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.chaos.harness import Plan
from tests.chaos.processes import GuardSlot
from tests.chaos.proxy import FaultProxy
from tests.chaos.readers import OUTPUTS, LiveReader
from tests.chaos.sender import Sender
from tests.chaos.verify import Findings, Verifier
from tests.chaos.workload import SILENT, Workload
from tests.support.constants import made
from tests.support.guards import events_of, until
from tests.support.judges import WordJudge
from tests.support.kafka_guards import kafka_guard, kafka_side
from tests.support.kafka_settings import sorted_out

PARTITIONS: Final = 4
SEED: Final = 7
AT_ONCE: Final = 8
"""Responses that are streamed side by side; these stand still between two portions."""
UNANSWERED: Final = 10
"""More than those of a run that get no answer, or get it late."""


class Group:
    """Guards in slots, each with its log, and a load that comes in portions."""

    def __init__(
        self, slots: Sequence[GuardSlot], folder: Path, workload: Workload, reader: LiveReader, sender: Sender
    ) -> None:
        self.slots = slots
        self._folder = folder
        self._workload = workload
        self._reader = reader
        self._sender = sender
        self._allowed = 0

    async def load(self, responses: int) -> None:
        """Have so many more responses streamed; returns with some of them in the middle of their text."""
        self._allowed += responses
        await until(lambda: self._reader.done >= self._allowed - AT_ONCE - UNANSWERED)

    def may_send(self, begun: int) -> bool:
        return begun < self._allowed

    async def finished(self) -> None:
        """Stream what is left, and wait for every answer."""
        self._allowed = self._workload.cases
        numbers = [case.number for case in self._workload if case.ending not in SILENT]
        await until(lambda: self._reader.done == len(numbers))

    def logged(self, number: int, event: str) -> list[dict[str, Any]]:
        """What the guards in a slot have logged of one kind."""
        path = self._folder / f"guard-{number}.log"
        if not path.exists():
            return []
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if f'"{event}"' in line]
        return [json.loads(line) for line in lines if line.endswith("}")]

    def held(self, number: int) -> int:
        """How many partitions the guard in a slot has, by the last that it logged."""
        assigned = self.logged(number, "guard.assigned")
        return len(assigned[-1]["partitions"]) if assigned else 0

    async def shared(self, *numbers: int) -> None:
        """Wait until the guards in these slots share the partitions."""
        await until(lambda: all(map(self.held, numbers)) and sum(map(self.held, numbers)) == PARTITIONS)

    async def restarted(self, number: int) -> None:
        """End the guard in a slot by SIGTERM and wait until the next one there has its partitions."""
        slot, before = self.slots[number], len(self.logged(number, "guard.assigned"))
        pid = slot.pid
        slot.signal(signal.SIGTERM)
        assert await slot.ended(pid, 30.0)
        await until(lambda: len(self.logged(number, "guard.assigned")) > before)


@asynccontextmanager
async def guard_group(
    bootstrap: str,
    folder: Path,
    *,
    guards: int,
    responses: int,
    each: Callable[[int], Mapping[str, Any]] = lambda _: {},
    **changes: Any,
) -> AsyncIterator[tuple[Group, Findings]]:
    """A group of ``guards`` slots, none wanted yet. ``each`` has settings of one, ``changes`` those of all.

    On leaving the workload is finished, all guards have ended, and the findings are filled.
    """
    tag = uuid.uuid4().hex[:12]
    topics = Topics(**{role: f"{role}-{tag}" for role in Topics.model_fields})
    plan = Plan(seed=SEED, responses=responses, faults=0)
    kafka = plan.kafka() | {"group_id": f"group-{tag}", "topics": topics.model_dump()}
    kafka = sorted_out(kafka | changes)
    settings = made(KafkaSettings, **kafka, bootstrap_servers=bootstrap)
    await create_topics(settings, partitions=PARTITIONS, replication_factor=1)
    workload, reader = Workload(SEED, responses), LiveReader(responses)
    sender = Sender(workload, at_once=AT_ONCE, rate=60)
    names = {role: getattr(topics, role) for role in Topics.model_fields}
    verifier = Verifier(bootstrap, settings.group_id, names, PARTITIONS, folder)
    findings = Findings()
    async with AsyncExitStack() as stack:
        direct = FaultProxy(("127.0.0.1", int(bootstrap.rpartition(":")[2])))
        direct.port = direct.target[1]  # never started: guards go to the broker itself
        slots = [
            await stack.enter_async_context(
                GuardSlot(number, direct, {**kafka, **each(number)}, plan.pace(), "", folder)
            )
            for number in range(guards)
        ]
        group = Group(slots, folder, workload, reader, sender)
        async with asyncio.TaskGroup() as tasks:
            outputs = {role: names[role] for role in OUTPUTS}
            reading = tasks.create_task(reader.run(bootstrap, outputs, PARTITIONS))
            sending = tasks.create_task(sender.run(bootstrap, topics.responses, group.may_send))
            yield group, findings
            await group.finished()
            await sending
            assert await verifier.settled()
            for slot in slots:
                await slot.retire()
            wanted = await verifier.check(workload, reader.logs)
            reading.cancel()
        findings.counts, findings.examples = wanted.counts, wanted.examples
        findings.unplanned, findings.records = wanted.unplanned, wanted.records


pytestmark = pytest.mark.kafka


def nothing_wrong(findings: Findings) -> None:
    """No answer was lost, doubled, reordered or changed, and no session was left behind."""
    assert not findings.counts, [str(found) for found in findings.examples]
    assert findings.unplanned == 0
    assert findings.records["deliveries"] > 0


async def test_scaling_rolling_restarts_and_a_kill_under_load(kafka_bootstrap: str, tmp_path: Path) -> None:
    async with guard_group(kafka_bootstrap, tmp_path, guards=3, responses=200) as (group, findings):
        one, two, three = group.slots
        one.wanted.set()
        await group.load(30)
        assert group.held(0) == PARTITIONS
        two.wanted.set()
        three.wanted.set()
        await group.load(30)
        await group.shared(0, 1, 2)
        await group.load(30)
        await three.retire()
        await group.load(30)
        await group.shared(0, 1)
        await group.restarted(0)
        await group.load(20)
        await group.restarted(1)
        await group.load(30)
        two.signal(signal.SIGKILL)
    nothing_wrong(findings)
    assert one.ends == {0: 2}, "one of them did not leave in order"
    assert three.ends == {0: 1}
    assert two.ends == {0: 2, -signal.SIGKILL: 1}


async def test_one_that_was_frozen_for_too_long_joins_again_and_works(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    async with guard_group(kafka_bootstrap, tmp_path, guards=2, responses=100) as (group, findings):
        frozen, other = group.slots
        for slot in group.slots:
            slot.wanted.set()
        await group.shared(0, 1)
        await group.load(30)
        frozen.signal(signal.SIGSTOP)
        await group.load(20)
        await until(lambda: group.held(1) == PARTITIONS)
        await group.load(10)
        before, pid = len(group.logged(0, "guard.assigned")), frozen.pid
        frozen.signal(signal.SIGCONT)
        await until(lambda: len(group.logged(0, "guard.assigned")) > before)
        await group.shared(0, 1)
        await group.load(40)
        assert frozen.pid == pid
    nothing_wrong(findings)
    assert frozen.ends == other.ends == {0: 1}


async def test_a_static_member_that_is_killed_and_comes_back_moves_nothing_of_the_others(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    async with guard_group(
        kafka_bootstrap,
        tmp_path,
        guards=2,
        responses=100,
        each=lambda number: {"group_instance_id": f"guard-{number}"},
        session_timeout_ms=30_000,
    ) as (group, findings):
        for slot in group.slots:
            slot.wanted.set()
        await group.shared(0, 1)
        await group.load(40)
        before = len(group.logged(1, "guard.assigned")), len(group.logged(1, "guard.revoked"))
        pid = group.slots[0].pid
        group.slots[0].signal(signal.SIGKILL)
        assert await group.slots[0].ended(pid, 30.0)
        await group.load(20)
        await group.finished()
        assert (len(group.logged(1, "guard.assigned")), len(group.logged(1, "guard.revoked"))) == before
    nothing_wrong(findings)


async def test_of_two_guards_with_one_instance_id_the_first_ends_and_says_why(kafka_bootstrap: str) -> None:
    router = PolicyRouter.single(Policy())
    async with kafka_side(kafka_bootstrap) as side:
        settings = side.settings.model_copy(update={"group_instance_id": "guard-0"})
        await side.send(events_of("first", "Paris is in France. "))

        async def replaced() -> None:
            async with kafka_guard(settings, WordJudge(), router):
                await asyncio.Event().wait()

        first = asyncio.create_task(replaced())
        while not await side.read(side.settings.topics.deliveries):
            assert not first.done()
        async with kafka_guard(settings, WordJudge(), router):
            with pytest.raises(BaseExceptionGroup) as caught:
                await first
            await side.send(events_of("second", "Rome is in Italy. "))
            while "second" not in {e.response_id for e in await side.read(side.settings.topics.verdicts)}:
                continue
    found = caught.value.subgroup(TransportUnavailable)
    assert found is not None
    assert "group_instance_id guard-0" in str(found.exceptions[0])
