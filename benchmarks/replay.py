"""How fast stored verdicts are decided again under another policy.

    python -m benchmarks.replay [--claims 1000000]

A file of records is written first, from verdicts of the local judge on right answers, and is read as
``guardrail replay`` reads any file. Prints seconds of processor time, and claims a second of it, for reading,
and for reading and deciding.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.frame import command_line
from benchmarks.workload import right_answer
from guardrail import Guard
from guardrail.evals.records import RecordReader, values_of
from guardrail.evals.replay import Replay, Side
from guardrail.events import ResponseVerdict
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

_ANSWERS: Final = 200


async def _verdicts() -> list[ResponseVerdict]:
    draw = random.Random(1)
    async with Guard() as guard:
        return [await guard.check_event(right_answer(draw, f"r{number}")) for number in range(_ANSWERS)]


def _write(path: Path, verdicts: list[ResponseVerdict], claims: int) -> int:
    written = round_ = 0
    with path.open("wb") as file:
        while written < claims:
            for verdict in verdicts:
                own = {"id": f"{verdict.id}-{round_}", "response_id": f"{verdict.response_id}-{round_}"}
                file.write(verdict.model_copy(update=own).to_json() + b"\n")
                written += len(verdict.claims)
            round_ += 1
    return written


def _seconds(path: Path, replay: Replay | None) -> float:
    began, reader = time.process_time(), RecordReader()
    with path.open("rb") as file:
        for value, place in values_of(file, path.name, reader):
            verdict = reader.read(value, place)
            if replay is not None and verdict is not None:
                replay.add(verdict, place)
    return time.process_time() - began


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--claims", type=int, default=1_000_000, help="at least so many (default: 1000000)")
    wanted = parser.parse_args().claims
    policy = Policy(name="new", mode="stream", flag_below=0.7, block_below=0.2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "verdicts.jsonl"
        claims = _write(path, asyncio.run(_verdicts()), wanted)
        replay = Replay(Side(policy.name, PolicyRouter.single(policy)))
        read, both = _seconds(path, None), _seconds(path, replay)
        size = path.stat().st_size / 1e6
    print(f"{claims:,} claims of {replay.responses:,} responses, {size:,.0f} MB of JSON lines")
    print(f"reading      {read:6.2f} s  {claims / read:12,.0f} claims/s")
    print(f"and deciding {both:6.2f} s  {claims / both:12,.0f} claims/s")


if __name__ == "__main__":
    main()
