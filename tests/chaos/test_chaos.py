"""Guards, broker and connections are killed, frozen and cut; readers see every answer once, whole, in order.

And four guards with a bug, of which the checker must say so: a proof that could not fail would prove nothing.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvloop

from tests.chaos.harness import Plan, Result, run
from tests.chaos.history import Anomaly
from tests.chaos.nemesis import WEIGHTS, schedule
from tests.conftest import own_broker

SEED = 20


@pytest.fixture
def kafka_machine(request: pytest.FixtureRequest) -> None:
    """Skips, or in CI fails, where no broker can be run."""
    own_broker(request.config).close()


def carried_out(plan: Plan, folder: Path) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(plan, folder))


@pytest.mark.kafka
@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_no_reader_notices_any_fault(kafka_machine: None, tmp_path: Path) -> None:
    faults = len(WEIGHTS)  # each kind once
    result = carried_out(Plan(seed=SEED, responses=800, faults=faults, at_once=60), tmp_path)
    assert result.ok, str(result)
    assert set(WEIGHTS) == {one.fault.kind for one in result.happened}
    assert result.findings.aborted > 0, "no fault met a transaction"


@pytest.mark.kafka
@pytest.mark.chaos
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("bug", "kinds", "anomalies"),
    [
        ("hasty", ("sends fail",), {Anomaly.LOST}),
        ("unfenced", ("freeze before_commit",), {Anomaly.DUPLICATE}),
        ("forgetful", ("kill",), {Anomaly.LOST, Anomaly.DEAD_LETTER_UNDUE}),
        ("detached", ("kill before_offsets",), {Anomaly.DUPLICATE}),
    ],
)
def test_the_checker_finds_the_bug(
    bug: str, kinds: tuple[str, ...], anomalies: set[Anomaly], kafka_machine: None, tmp_path: Path
) -> None:
    """A fault that meets a guard between two steps shows no bug: one run of three must."""
    told = []
    for seed in range(SEED, SEED + 3):
        plan = Plan(
            seed=seed, responses=150, faults=2, at_once=40, rate=60, bug=bug, kinds=kinds, stall_s=12.0
        )
        folder = tmp_path / str(seed)
        folder.mkdir()
        result = carried_out(plan, folder)
        if anomalies <= result.findings.counts.keys():
            return
        told.append(str(result))
    pytest.fail("\n".join(told))


def test_a_schedule_follows_from_its_seed_and_has_every_kind() -> None:
    faults = schedule(5, 200, 3)
    assert faults == schedule(5, 200, 3)
    assert faults != schedule(6, 200, 3)
    assert {fault.kind for fault in faults} == set(WEIGHTS)
    assert [fault.after for fault in faults] == sorted(fault.after for fault in faults)
