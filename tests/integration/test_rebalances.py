"""Guards come and go, freeze and are killed while answers stream: every answer comes out whole, and once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from guardrail.errors import TransportUnavailable
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.chaos.verify import Findings
from tests.support.guard_groups import PARTITIONS, guard_group, until
from tests.support.guards import events_of
from tests.support.judges import WordJudge
from tests.support.kafka_guards import kafka_guard, kafka_side

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
