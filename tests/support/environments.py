"""Virtual environments for what can't be, or need not be, in the one that runs the tests.

They are kept in ``~/.cache/guardrail``: the first run makes one, in a minute or two, and later runs find it.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = Path.home() / ".cache/guardrail"


class EnvironmentMissing(Exception):
    """It can't be installed here."""


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """A virtual environment below ``folder`` with ``packages`` and what the guard needs, made where it is not
    there yet. The checkout itself is not in it: it comes in by ``PYTHONPATH``. Raises EnvironmentMissing.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needs = [*project["dependencies"], *packages]
    key = hashlib.sha256("\n".join([sys.version, *needs]).encode()).hexdigest()[:12]
    return installed(folder / key, needs, ", ".join(packages))


def installed(made: Path, requirements: Sequence[str], wanted: str) -> Path:
    """A virtual environment with these requirements, in the words of ``uv pip install``, made where it is not
    there yet. Raises EnvironmentMissing, which names what was ``wanted``.
    """
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        return _made(made, requirements)
    except OSError as error:  # a home that can't be written to, or a full disk
        raise EnvironmentMissing(f"{wanted} can't be installed: {error}") from None
    except subprocess.TimeoutExpired as error:
        raise EnvironmentMissing(f"{wanted} can't be installed within {error.timeout:.0f} s") from None
    except subprocess.CalledProcessError as error:
        raise EnvironmentMissing(f"{wanted} can't be installed: {error.stderr.strip()[-500:]}") from None


def is_installed(made: Path) -> bool:
    """Whether it is there."""
    return (made / ".complete").exists()


def _made(made: Path, requirements: Sequence[str]) -> Path:
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes of pytest may come at once
        if is_installed(made):
            return made
        shutil.rmtree(made, ignore_errors=True)
        uv = Path(sys.executable).with_name("uv")
        commands: tuple[list[str | Path], ...] = (
            [uv, "venv", "--quiet", "--python", sys.executable, made],
            [uv, "pip", "install", "--quiet", "--python", made / "bin" / "python", *requirements],
        )
        for command in commands:
            subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
        (made / ".complete").touch()
    return made
