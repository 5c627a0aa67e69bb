"""The frameworks whose evaluators the guard takes the place of, each in a virtual environment of its own.

Their tests, ``tests/unit/integrations/in_*.py``, run in there: pytest collects such names only when it is
given them.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Final

from tests.support.environments import CACHE, ROOT, environment

VERSIONS: Final = {
    "haystack": ["haystack-ai==3.4.1"],
    "llama_index": ["llama-index-core==0.14.25"],
    "ragas": ["ragas==0.4.3"],
}
"""By the name of our module. What else they need is in the extra of that name."""
_PYTEST: Final = ["pytest>=9", "pytest-asyncio>=1.3", "pytest-timeout>=2.4"]


def framework_environment(name: str) -> Path:
    """The virtual environment with the framework and pytest. Raises EnvironmentMissing."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    return environment(CACHE / name, [*extras[name.replace("_", "-")], *VERSIONS[name], *_PYTEST])


def run_in(venv: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Python of that environment with the guard of this checkout, but without this process's settings."""
    kept = {name: each for name, each in os.environ.items() if not name.startswith(("GUARDRAIL_", "PYTEST"))}
    quiet = {"RAGAS_DO_NOT_TRACK": "true", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    return subprocess.run(
        [venv / "bin" / "python", *arguments],
        cwd=ROOT,
        env=kept | quiet | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
