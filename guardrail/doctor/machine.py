"""What the process may use here, against what the settings will have it use; and the clock beside others."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, Self

from guardrail.config import Settings
from guardrail.doctor.checks import Area, Check

_MACHINE: Final = Area("machine")
_MEBIBYTE: Final = 1024 * 1024
_BASE_BYTES: Final = 512 * _MEBIBYTE
"""Interpreter, libraries and the local judge's model; what was measured, rounded up."""
_CGROUPS: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = 2**60
"""Version 1 says a number near 2**63 where there is no limit."""
_FILES_BASE: Final = 128
_CLOCK: Final = Area("clock")
_WARN_S: Final = 5.0
_FAIL_S: Final = 3_600.0
"""From here on brokers refuse records as too far in the future (message.timestamp.after.max.ms)."""
_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Machine:
    """What the process may use; None is unknown or unlimited. Sizes in bytes."""

    open_files: int | None
    memory: int | None
    processors: float

    @classmethod
    def here(cls, cgroups: Path = _CGROUPS) -> Self:
        """This machine, by the limits of the process and of its control group."""
        return cls(_open_files(), _memory(cgroups), _processors(cgroups))


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _memory(cgroups: Path) -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        words = _words(cgroups / name)
        if words and words[0].isdigit():
            limit = int(words[0])
            return limit if limit < _NO_LIMIT else None
    return None


def _processors(cgroups: Path) -> float:
    usable = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    quota = _words(cgroups / "cpu.max")
    if len(quota) == 2 and all(word.isdigit() for word in quota) and int(quota[1]):
        usable = min(usable, int(quota[0]) / int(quota[1]))
    return usable


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return []


def check_machine(
    settings: Settings, machine: Machine, *, partitions: int | None = None, brokers: int = 1
) -> list[Check]:
    """Limits of the machine against the settings; ``partitions`` of the input, where they are known."""
    return [
        *_files(machine, partitions, brokers),
        *_bytes(settings, machine),
        *_cores(settings, machine),
        *_time(settings),
    ]


def _files(machine: Machine, partitions: int | None, brokers: int) -> Iterator[Check]:
    if machine.open_files is None:
        yield _MACHINE.skip("open files", "the limit is unknown here, or there is none")
        return
    # Each partition has a producer of its own, with a connection to every broker and to its coordinator.
    needed = _FILES_BASE + (partitions or 1) * (brokers + 1)
    held = f"{machine.open_files:,} may be open"
    if machine.open_files < needed:
        yield _MACHINE.fail(
            "open files",
            f"{held}, and {partitions or 1} partitions at {brokers} brokers take up to {needed:,}",
            f"raise the limit (ulimit -n, LimitNOFILE) to {2 ** math.ceil(math.log2(needed)):,}",
        )
    else:
        yield _MACHINE.ok("open files", f"{held}; up to {needed:,} are needed")


def _bytes(settings: Settings, machine: Machine) -> Iterator[Check]:
    if machine.memory is None:
        yield _MACHINE.skip("memory", "no control group limits it here")
        return
    # A character takes one byte, or two with most other alphabets; work on it takes copies.
    needed = _BASE_BYTES + 2 * settings.limits.max_bytes
    told = f"{_mib(machine.memory)}, and limits.max_bytes {settings.limits.max_bytes:,} may take"
    if machine.memory < needed:
        room = max(_MEBIBYTE, (machine.memory - _BASE_BYTES) // 2)
        yield _MACHINE.warn(
            "memory",
            f"{told} {_mib(needed)} with everything else: it may be killed under load",
            f"give it {_mib(needed)}, or set limits.max_bytes to {room // _MEBIBYTE * _MEBIBYTE}",
        )
    else:
        yield _MACHINE.ok("memory", f"{told} {_mib(needed)} of it")


def _mib(size: int) -> str:
    return f"{size / _MEBIBYTE:,.0f} MiB"


def _cores(settings: Settings, machine: Machine) -> Iterator[Check]:
    from guardrail.judges.factory import all_kinds, uses_local

    usable = f"{machine.processors:g} may be used"
    local = any(uses_local(each) for each in all_kinds(settings.judge, settings.policies.values()))
    if local and machine.processors < 1:
        yield _MACHINE.warn(
            "processors",
            f"{usable}: the local judge is throttled, and verdicts come late",
            "give it at least 1",
        )
    else:
        yield _MACHINE.ok("processors", usable)


def _time(settings: Settings) -> Iterator[Check]:
    budget = settings.shutdown.budget_ms / 1000
    yield _MACHINE.ok(
        "shutdown", f"ends within {budget:g} s of SIGTERM; keep terminationGracePeriodSeconds above that"
    )


async def endpoint_time_s(url: str) -> float | None:
    """What the server at ``url`` says is the time, in seconds since 1970; None where it doesn't answer, or
    doesn't say. Nothing secret is sent: no key, no query."""
    import httpx2

    from guardrail.judges.http import split_base_url

    base_url, _query = split_base_url(url)
    try:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_S) as client:
            answer = await client.get(base_url)
        return parsedate_to_datetime(answer.headers["date"]).timestamp()
    except (httpx2.HTTPError, httpx2.InvalidURL, KeyError, ValueError):
        return None


def check_clock(
    told_s: float | None, begun_s: float, now_s: float, against: str, exact_to_s: float = 0.0
) -> Check:
    """``told_s`` is the time of ``against`` at a moment between ``begun_s`` and ``now_s`` here, all in
    seconds since 1970, and rounded down to ``exact_to_s``; None is unknown."""
    if told_s is None:
        why = "the responses topic keeps its producers' time (no LogAppendTime), and no endpoint tells it"
        return _CLOCK.skip("this machine", why)
    ahead = max(0.0, begun_s - told_s - exact_to_s) or min(0.0, now_s - told_s)
    if abs(ahead) < _WARN_S:
        return _CLOCK.ok("this machine", f"within {_WARN_S:g} s of {against}")
    bad = _CLOCK.warn if abs(ahead) < _FAIL_S else _CLOCK.fail
    where = "ahead of" if ahead > 0 else "behind"
    return bad("this machine", f"{abs(ahead):,.0f} s {where} {against}", "set both clocks by NTP")
