"""Runs a command as on an older processor: what the verifier says there, and how long it takes.

    python -m benchmarks.instruction_sets haswell|nehalem COMMAND …

``haswell`` has AVX2 and no AVX-512 or VNNI, ``nehalem`` SSE4.2 and no AVX. The command and its children
believe that; they run at this machine's speed, and onnxruntime and numpy take the kernels of such a one.
Whether the golden files come out alike, and how often verdicts differ:

    python -m benchmarks.instruction_sets nehalem .venv/bin/pytest tests/golden
    python -m benchmarks.offline_sets --data DIR --json here.json
    python -m benchmarks.instruction_sets nehalem .venv/bin/python -m benchmarks.offline_sets --data DIR \\
        --against here.json

It needs Linux on x86-64, a C compiler, and a processor and kernel that can have CPUID fault (``cpuid_fault``
in /proc/cpuinfo). Elsewhere qemu does it, many times slower, for one process:

    qemu-x86_64 -cpu Nehalem .venv/bin/python -m tests.golden.replay demo >demo.jsonl
    .venv/bin/python -m tests.golden.record --compare demo <demo.jsonl
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_suffix(".c")
_WANTED: Final = "INSTRUCTION_SETS"


def main() -> int:
    """Command line; returns the command's exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("processor", choices=("haswell", "nehalem"))
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run, with its arguments")
    options = parser.parse_args()
    if not options.command:
        parser.error("give a command to run")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "instruction_sets.so"
        try:
            subprocess.run(
                [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"],
                check=True,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            parser.error(f"{SOURCE.name} can't be compiled: {error}")
        environment = os.environ | {"LD_PRELOAD": str(library), _WANTED: options.processor}
        return subprocess.run(options.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
