"""What the local judge makes of the self-written cases of ``tests/verifier_cases``: ``python -m
benchmarks.local_judge_cases``.

Prints the rates that ``tests/unit/judges/local/test_verifier_cases.py`` has floors of, here of all cases.
Without options it is the judge as shipped; ``--words`` leaves the verifier out, and ``--verifier FOLDER
--parameters FILE`` takes another one with what ``training.calibrate`` fitted with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from benchmarks.frame import command_line
from guardrail.errors import GuardrailError
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.settings import VerifierSettings
from tests.verifier_cases.cases import load
from tests.verifier_cases.judging import Judged, judged, rates


def report(found: Sequence[Judged]) -> list[str]:
    """A line for each of the rates that the judge is measured by."""
    return [
        f"{name:24} {right:4} of {of:4} {right / of:6.1%}" if of else f"{name:24}  no case"
        for name, (right, of) in rates(found).items()
    ]


def misjudged(found: Sequence[Judged]) -> list[str]:
    """A line for each case judged wrongly: kind, label, the judge's verdict and confidence, claim."""
    return [
        f"{case.kind:19} {case.label:20} {judgement.verdict.value} {judgement.confidence:.2f}  {case.claim}"
        for (_, _, case), judgement in (one for one in found if not one.right)
    ]


async def _run(settings: LocalJudgeSettings) -> list[Judged]:
    judge = LocalJudge(settings)
    try:
        return await judged(judge, load())
    finally:
        await judge.aclose()


def main() -> None:
    parser = command_line(__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--verifier", type=Path, help="folder of another verifier")
    which.add_argument("--words", action="store_true", help="without a verifier")
    parser.add_argument("--misjudged", action="store_true", help="list the cases that are judged wrongly too")
    options = parser.parse_args()
    try:
        verifier = VerifierSettings(enabled=not options.words, path=options.verifier)
        settings = LocalJudgeSettings(verifier=verifier)
        found = asyncio.run(_run(settings))
    except (GuardrailError, ValidationError) as error:
        parser.error(str(error))
    lines = report(found)
    if options.misjudged:
        lines += ["", *misjudged(found)]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
