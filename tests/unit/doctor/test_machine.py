"""Limits of the machine, against the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guardrail.config import Settings
from guardrail.doctor import Check, Machine, check_machine

GIBIBYTE = 1024**3
LARGE = Machine(open_files=65_536, memory=4 * GIBIBYTE, processors=4)


def found(machine: Machine = LARGE, settings: Settings | None = None, **known: Any) -> dict[str, Check]:
    return {check.about: check for check in check_machine(settings or Settings(), machine, **known)}


def test_a_large_machine_is_well() -> None:
    assert {check.state for check in found(partitions=60, brokers=3).values()} == {"ok"}


def test_a_producer_for_each_partition_needs_open_files() -> None:
    check = found(Machine(256, None, 2), partitions=60, brokers=3)["open files"]
    assert check.state == "fail"
    assert "256 may be open, and 60 partitions at 3 brokers take up to 368" in check.detail
    assert "512" in check.remedy


def test_memory_must_hold_what_limits_allow() -> None:
    check = found(Machine(None, GIBIBYTE // 2, 2))["memory"]
    assert check.state == "warn"
    assert "512 MiB" in check.detail
    assert "limits.max_bytes" in check.remedy
    smaller = Settings(limits={"max_bytes": 1024 * 1024})
    assert found(Machine(None, GIBIBYTE, 2), smaller)["memory"].state == "ok"


def test_less_than_one_processor_is_told() -> None:
    assert found(Machine(None, None, 1))["processors"].state == "ok"
    assert found(Machine(None, None, 0.5))["processors"].state == "warn"


def test_what_is_unknown_is_not_called_well() -> None:
    checks = found(Machine(None, None, 2))
    assert (checks["open files"].state, checks["memory"].state) == ("skip", "skip")


def test_the_shutdown_budget_is_told() -> None:
    assert "within 25 s of SIGTERM" in found()["shutdown"].detail


@pytest.mark.parametrize(
    ("files", "memory", "processors"),
    [
        ({"memory.max": "536870912\n", "cpu.max": "50000 100000\n"}, GIBIBYTE // 2, 0.5),
        ({"memory.max": "max\n", "cpu.max": "max 100000\n"}, None, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, None),
        ({"memory/memory.limit_in_bytes": "1073741824\n"}, GIBIBYTE, None),
        ({}, None, None),
    ],
)
def test_limits_of_control_groups_of_both_versions_are_read(
    tmp_path: Path, files: dict[str, str], memory: int | None, processors: float | None
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    machine = Machine.here(tmp_path)
    assert machine.memory == memory
    assert machine.processors == processors or (processors is None and machine.processors >= 1)
