"""``guardrail`` in everything but the judge, which answers at once: what is left is the guard's own cost.

    python -m benchmarks.guard_process TIMES run --config guardrail.yaml

When the guard has stopped, TIMES holds when each verdict was given, as JSON: claim id to seconds on the
monotonic clock, which all processes of a machine share. ``-`` keeps no times.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from benchmarks.instant_judge import InstantJudge
from guardrail.cli import main as guardrail
from guardrail.judges import Judge, Judgement, JudgeRequest, factory


class TimedJudge(InstantJudge):
    """Notes when it answered, and writes that down at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._times: dict[str, float] = {}

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for judgement in super().judge(request):
            self._times[judgement.claim_id] = time.monotonic()
            yield judgement

    async def aclose(self) -> None:
        self._path.write_text(json.dumps(self._times))


def main() -> None:
    """Command line. Exits with an error if the guard judged with a judge of its own."""
    path = sys.argv.pop(1)
    built = []

    def build(_judges: object, kind: str) -> Judge:
        built.append(kind)
        return InstantJudge() if path == "-" else TimedJudge(Path(path))

    factory.JudgeSet._build = build  # type: ignore[method-assign, assignment]
    try:
        guardrail()
    finally:
        if not built:
            sys.exit("guard_process: the instant judge was not asked for; has the factory changed?")


if __name__ == "__main__":
    main()
