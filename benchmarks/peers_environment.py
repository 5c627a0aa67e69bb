"""The environment that the peers of ``benchmarks.peers`` live in, made when it is first needed.

They can't be installed beside the guard: it builds on openai 3, which none of them takes yet.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = Path(__file__).with_name("peers-requirements.txt")
CACHE: Final = ROOT / ".cache"
_DONE: Final = ".installed"


def peers_python(cache: Path = CACHE, requirements: Path = REQUIREMENTS) -> Path:
    """The Python of the environment for these requirements, which takes minutes and 900 MB when it is new.

    Raises subprocess.CalledProcessError when a package can't be had; what was made till then is removed.
    """
    if (ready := installed(cache, requirements)) is not None:
        return ready
    folder = _folder(cache, requirements)
    python = _python(folder)
    print(f"installing the peers into {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        # --no-deps: the file pins everything, and a resolver would trip over bounds tighter than needed.
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", requirements]
        subprocess.run([*_gently(), *map(str, install)], check=True)
    except (subprocess.CalledProcessError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / _DONE).touch()
    return python


def installed(cache: Path = CACHE, requirements: Path = REQUIREMENTS) -> Path | None:
    """The Python of the environment if it has been made before."""
    folder = _folder(cache, requirements)
    return _python(folder) if (folder / _DONE).exists() else None


def _folder(cache: Path, requirements: Path) -> Path:
    name = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return cache / f"peers-{name}"


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _gently() -> list[str]:
    """In front of a command: other work goes first."""
    nice = shutil.which("nice")
    return [nice, "-n", "10"] if nice else []
