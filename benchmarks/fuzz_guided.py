"""The same as ``benchmarks.fuzz``, led by coverage: inputs that reach new branches of guardrail live on.

    python -m benchmarks.fuzz_guided EVENTS SEED

Needs atheris (``pip install atheris``; CPython on Linux). Ends at the first fault, with its traceback; the
bytes that show it are kept in a temporary folder, whose name is printed.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import tempfile
import time

import atheris

with atheris.instrument_imports(include=["guardrail"]):
    from tests.support.fuzzing.run import Tally, run_bytes

BUDGET_S = 30
MAX_BYTES = 4_096


def main() -> None:
    """Command line."""
    events, seed = int(sys.argv[1]), int(sys.argv[2])
    tally = Tally()
    logging.getLogger("guardrail").setLevel(logging.CRITICAL)
    started = time.perf_counter()

    def one(data: bytes) -> None:
        faulthandler.dump_traceback_later(BUDGET_S, exit=True)
        tally.note(run_bytes(data, tally.counts))
        if tally.mutated >= events:
            from benchmarks.fuzz import report

            report(tally, time.perf_counter() - started)
            sys.stdout.flush()
            # libFuzzer has no other way to end in peace.
            os._exit(0 if tally.accounted == tally.records else 1)

    folder = tempfile.mkdtemp(prefix="guardrail-fuzz-")
    print(f"inputs that show a fault go to {folder}", flush=True)
    atheris.Setup(
        [
            sys.argv[0],
            f"-seed={seed}",
            f"-max_len={MAX_BYTES}",
            "-len_control=0",
            f"-artifact_prefix={folder}/",
        ],
        one,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
