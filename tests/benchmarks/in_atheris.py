"""What ``benchmarks.fuzz_guided`` takes of atheris (extra benchmark): pytest collects this only by name.

On one small module: to instrument all of guardrail, as it does, takes half a minute.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FUZZING = """
import sys
import atheris
with atheris.instrument_imports(include=["guardrail.printable"]):
    from guardrail.printable import shorten
def one(data):
    shorten(data.decode("latin-1"), 9)
atheris.Setup([sys.argv[0], "-seed=1", "-runs=2000"], one)
atheris.Fuzz()
"""


def test_coverage_leads_the_fuzzing_to_new_branches() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FUZZING],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "NEW" in done.stderr  # libFuzzer's word for an input that reached something new
