"""Which version of a file or folder stands on this machine, told without reading gigabytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# More than any model or program has; an argument may name a folder of data, or the root.
_MOST_FILES: Final = 2_000


def stamps(path: Path) -> list[str]:
    """A line for each file at or below ``path``: its name there, size and time of change.

    Empty where there is nothing that can be looked at: whoever needs it says so. ``path`` may be any text: an
    argument of a program, as long as it likes.
    """
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError):  # none there, no right to look, a name that is too long or none at all
        return []
    names = _names(path) if is_folder else [""]
    return [_stamp(path / name, name or path.name) for name in names]


def _names(folder: Path) -> Iterator[str]:
    left = _MOST_FILES
    for where, below, files in os.walk(folder, onerror=None):
        below.sort()
        for name in sorted(files)[:left]:
            yield os.path.relpath(Path(where, name), folder)
            left -= 1
        if left <= 0:
            return


def _stamp(path: Path, name: str) -> str:
    try:
        found = path.stat()
    except OSError:
        return f"{name} gone"
    return f"{name} {found.st_size} {found.st_mtime_ns}"
