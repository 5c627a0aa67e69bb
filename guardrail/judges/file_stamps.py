"""Which version of a file or folder stands on this machine, told without reading gigabytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# More than any model or program has; an argument may name a folder of data, or the root.
_MOST_FILES: Final = 2_000


def stamps(path: Path) -> list[str]:
    """A line for each file at or below ``path``: its name there, size and time of change.

    Empty where there is nothing that can be looked at: whoever needs it says so.
    """
    if path.is_dir():
        return [_stamp(path / name, name) for name in _names(path)]
    return [_stamp(path, path.name)] if path.is_file() else []


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
