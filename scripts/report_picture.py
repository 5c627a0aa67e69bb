"""Draws docs/report.png: judges examples of this repository, writes the report and takes a picture of it.

.venv/bin/python -m scripts.report_picture
.venv/bin/python -m scripts.report_picture --results FOLDER  # keeps the two results files

The local judge judges the answers of ``tests/chat_answers/development`` once and two policies decide on its
verdicts. Routes and names of models are made up; which of two twins is wrong is their label.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from guardrail import JudgeSettings, Policy
from guardrail.decisions import by_segment, redecide
from guardrail.events import (
    Label,
    LabelSource,
    PolicyRef,
    Response,
    ResponseVerdict,
    Verdict,
)
from guardrail.judges.factory import JudgeSet
from guardrail.offline.results import EvaluationResult, Sample, ScoreValue
from guardrail.offline.scorer import checker, judging_everything
from guardrail.routing import PolicyRouter
from tests.chat_answers import load

ROOT: Final = Path(__file__).parents[1]
ROUTES: Final = ("support", "sales", "legal")
MODELS: Final = ("small-model", "large-model")
CAREFUL: Final = Policy.model_validate(
    {
        "name": "careful",
        "mode": "stream",
        "rules": [
            {"name": "contradicted fact", "verdict": ["CONTRADICTED"], "action": "block"},
            {"name": "another figure", "finding": ["figure_conflict"], "action": "redact"},
            {
                "name": "unbacked fact",
                "verdict": ["UNSUPPORTED"],
                "min_severity": "normal",
                "action": "flag",
            },
        ],
    }
)
STRICT: Final = Policy.model_validate(
    {
        "name": "strict",
        "mode": "hold",
        "rules": [
            {"name": "contradicted fact", "verdict": ["CONTRADICTED"], "action": "block"},
            {"name": "wrong figure", "finding": ["figure_conflict", "figure_absent"], "action": "block"},
            {
                "name": "unbacked critical fact",
                "verdict": ["UNSUPPORTED"],
                "min_severity": "critical",
                "action": "block",
            },
            {
                "name": "unbacked fact",
                "verdict": ["UNSUPPORTED"],
                "min_severity": "normal",
                "action": "flag",
            },
        ],
    }
)


def samples() -> Iterator[Sample]:
    """Both answers of each pair, with what is known about them; the small model has more of the wrong."""
    for number, case in enumerate(load("development")):
        for kind, text in (("right", case.answer.right), ("wrong", case.answer.wrong)):
            small = (kind == "wrong") != (number % 4 == 0)
            response = Response(
                response_id=f"{case.id}-{kind}",
                question=case.question,
                contexts=tuple(case.contexts),
                answer=text,
                route=ROUTES[number % 3],
                tenant="acme",
                generator_model=MODELS[0 if small else 1],
            )
            label = Label(
                response_id=response.response_id,
                verdict=Verdict.SUPPORTED if kind == "right" else Verdict.CONTRADICTED,
                category=case.answer.wrong_kind if kind == "wrong" else None,
                source=LabelSource.DATASET,
            )
            yield Sample(response, (label,), f"pair {number + 1}")


async def judged(every: list[Sample]) -> list[EvaluationResult]:
    """What the local judge and the first policy say."""
    policy = judging_everything(CAREFUL)
    judges = JudgeSet(JudgeSettings(), [policy])
    check = checker(judges.default, PolicyRouter.single(policy), modes={"careful": "stream"})
    try:
        return [result(sample, await check(sample.response)) for sample in every]
    finally:
        await judges.aclose()


def result(sample: Sample, verdict: ResponseVerdict) -> EvaluationResult:
    """With two of the published scores."""
    return EvaluationResult(
        place=sample.place,
        response=sample.response,
        verdict=verdict,
        scores={"severity_weighted": weighted(verdict), "strict": strict(verdict)},
        labels=sample.labels,
    )


def weighted(verdict: ResponseVerdict) -> ScoreValue:
    """The guard's own."""
    return ScoreValue(value=verdict.score, reason=None if verdict.score is not None else "nothing to check")


def strict(verdict: ResponseVerdict) -> ScoreValue:
    """SUPPORTED of all claims."""
    if not verdict.claims:
        return ScoreValue(value=None, reason="nothing to check")
    return ScoreValue(value=verdict.counts.supported / len(verdict.claims))


def decided_again(results: list[EvaluationResult], policy: Policy) -> list[EvaluationResult]:
    """The same verdicts under another policy."""
    again = []
    for each in results:
        assert each.verdict is not None  # noqa: S101 - the example has no errors
        found = redecide(judging_everything(policy), by_segment(each.verdict.claims))
        verdict = each.verdict.model_copy(
            update={
                "decision": found.decision,
                "rule": found.rule,
                "score": found.score,
                "mode": policy.mode,
                "policy": PolicyRef(name=policy.name, version=policy.version),
            }
        )
        again.append(each.model_copy(update={"verdict": verdict}))
    return again


def write(path: Path, results: list[EvaluationResult]) -> None:
    """As a results file."""
    path.write_bytes(b"".join(each.to_json() + b"\n" for each in results))


async def main() -> None:
    """Judge, write, draw."""
    parser = argparse.ArgumentParser(description="Draw docs/report.png.")
    parser.add_argument("--results", type=Path, help="folder for the results files and the reports")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.results or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        first = await judged(list(samples()))
        write(folder / "careful.jsonl", first)
        write(folder / "strict.jsonl", decided_again(first, STRICT))


if __name__ == "__main__":
    asyncio.run(main())
