"""The environment that the peers of ``benchmarks.peers`` live in, made when it is first needed.

They can't be installed beside the guard: it builds on openai 3, which none of them takes yet.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

from tests.support import environments

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = Path(__file__).with_name("peers-requirements.txt")
CACHE: Final = ROOT / ".cache"


def peers_python() -> Path:
    """The Python of the environment, which takes minutes and 900 MB when it is new.

    Raises EnvironmentMissing when a package can't be had.
    """
    if not environments.is_installed(_folder()):
        print(f"installing the peers into {_folder()}", file=sys.stderr, flush=True)
    # --no-deps: the file pins everything, and a resolver would trip over bounds tighter than needed.
    environments.installed(_folder(), ["--no-deps", "--requirement", str(REQUIREMENTS)], "the peers")
    return _folder() / "bin" / "python"


def installed() -> Path | None:
    """The Python of the environment if it has been made before."""
    return peers_python() if environments.is_installed(_folder()) else None


def _folder() -> Path:
    name = hashlib.sha256(REQUIREMENTS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return CACHE / f"peers-{name}"
