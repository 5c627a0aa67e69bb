"""A judge that answers at once, so that what is left is the cost of everything else; and a guard with it.

    python -m benchmarks.instant_judge TIMES run --config guardrail.yaml

is ``guardrail`` in everything but the judge. When the guard has stopped, TIMES holds when each verdict was
given, as JSON: claim id to seconds on the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict


class InstantJudge:
    """Supports every claim, and notes when in ``times``, by claim id."""

    name = "instant"

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        for claim_id in request.claims:
            self.times[claim_id] = time.monotonic()
            yield Judgement(claim_id, Verdict.SUPPORTED, 1.0, 1.0, self.name)

    async def aclose(self) -> None:
        return


def main() -> None:
    """Command line. Exits with an error if the guard judged with a judge of its own."""
    from guardrail.cli import main as guardrail
    from guardrail.judges import factory

    path, built = Path(sys.argv.pop(1)), list[InstantJudge]()

    def build(_judges: object, _kind: str) -> Judge:
        built.append(InstantJudge())
        return built[-1]

    factory.JudgeSet._build = build  # type: ignore[method-assign, assignment]
    try:
        guardrail()
    finally:
        path.write_text(json.dumps({claim: at for judge in built for claim, at in judge.times.items()}))
        if not built:
            sys.exit("instant_judge: the judge was not asked for; has the factory changed?")


if __name__ == "__main__":
    main()
