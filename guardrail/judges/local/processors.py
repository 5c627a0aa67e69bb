"""How many processors this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GROUPS: Final = Path("/sys/fs/cgroup")
_OWN: Final = Path("/proc/self/cgroup")
_MOST_THREADS: Final = 2


def default_threads() -> int:
    """Two, or one where only one processor may be used, by affinity or a container's quota."""
    return min(_MOST_THREADS, usable_processors())


def usable_processors(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """By its affinity and, in a container, its quota of processor time, rounded up; at least 1.

    Threads beyond a quota are made to wait, all of them, until the next period. ``groups`` is where control
    groups are mounted, ``own`` the file that names those of this process; both may be absent. Reads files.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *(math.ceil(share) for share in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The quotas of the process's control groups and of those that hold them, in processors."""
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            mounted = groups  # version 2
        elif "cpu" in controllers.split(","):
            mounted = next(
                (groups / name for name in (controllers, "cpu") if (groups / name).is_dir()), groups
            )
        else:
            continue
        # A container may see itself by its host's path, which isn't there: the mount is then its own group.
        parts = [part for part in path.split("/") if part]
        for length in range(0 if ".." in parts else len(parts), -1, -1):
            yield from _quota(mounted.joinpath(*parts[:length]))


def _quota(folder: Path) -> Iterator[float]:
    quota, _, period = _text(folder / "cpu.max").strip().partition(" ")
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    try:
        found = int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return  # "max", or no such file
    if found > 0:  # version 1 has -1 for no quota
        yield found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
