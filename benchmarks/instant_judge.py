"""A judge that answers at once, so that what is left is the cost of everything else."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from guardrail.judges import Judgement, JudgeRequest, Verdict

INSTANT = {
    "judge.kind": "custom",
    "judge.factory": "benchmarks.instant_judge:noting",
    "judge.cache.ttl_seconds": "0",
}
"""The settings of a guard in a process of its own."""


class InstantJudge:
    """Supports every claim. With a path it notes when: claim id to seconds on the monotonic clock, which all
    processes of a machine share."""

    name = "instant"

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._times: dict[str, float] = {}

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        for claim_id in request.claims:
            self._times[claim_id] = time.monotonic()
            yield Judgement(claim_id, Verdict.SUPPORTED, 1.0, 1.0, self.name)

    async def aclose(self) -> None:
        """Write down what was noted."""
        if self._path is not None:
            self._path.write_text(json.dumps(self._times))


def times_of(group: str) -> Path:
    """Where a guard of this group leaves the times of its verdicts when it has stopped."""
    return Path(tempfile.gettempdir(), f"{group}.times")


def noting() -> InstantJudge:
    """The judge of this process, a guard that is configured by its environment."""
    return InstantJudge(times_of(os.environ["GUARDRAIL_KAFKA__GROUP_ID"]))
