"""Draws docs/report.png, report-answers.png and tuning-report.png, and writes examples/results.jsonl.

.venv/bin/python -m scripts.report_picture
.venv/bin/python -m scripts.report_picture --keep FOLDER  # also the two results files and the report

For the pictures the local judge judges the answers of ``tests/chat_answers/development``, and two policies
decide on its verdicts. Routes and names of models are made up; which of two twins is wrong is their label.
For the example it judges the answers of the demo under the demo's policies. The report of tuning is that of
``docs/tune.md``: the answers of ``examples/tuning``.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from playwright.async_api import async_playwright

from consumers.settings import load_settings
from guardrail import JudgeSettings, Policy
from guardrail.decisions import by_segment, claims_decided_by, redecide
from guardrail.evals.evaluation import checker, judging_everything
from guardrail.evals.report import write_report
from guardrail.evals.results import Evaluation, EvaluationResult, Sample
from guardrail.evals.scores import score_value
from guardrail.events import (
    Label,
    LabelSource,
    PolicyRef,
    Response,
    ResponseVerdict,
    Verdict,
    parse_input,
)
from guardrail.judges.factory import JudgeSet
from guardrail.policy import Mode
from guardrail.routing import PolicyRouter
from tests.chat_answers import load

ROOT: Final = Path(__file__).parents[1]
ROUTES: Final = ("support", "sales", "legal")
MODELS: Final = ("small-model", "large-model")
SHOWN_SCORES: Final = ("severity_weighted", "strict", "ragas", "llama_index")
PICTURES: Final = (("report", ".top", "#scores svg.chart"), ("report-answers", "#worst", "#r2"))
"""Their names, and the first and the last thing on them."""
TUNING_PICTURES: Final = (("tuning-report", ".top", "#scores svg.chart"),)
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
                source=LabelSource.DATASET,
            )
            labels = [label]
            if kind == "wrong":
                words = {"span": changed(case.answer.right, text), "category": case.answer.wrong_kind}
                labels.append(label.model_copy(update=words))
            yield Sample(response, tuple(labels), f"pair {number + 1}")


def changed(right: str, wrong: str) -> tuple[int, int]:
    """The words of the wrong twin from the first that differs to the last."""
    edits = [each for each in SequenceMatcher(None, right, wrong).get_opcodes() if each[0] != "equal"]
    start, end = edits[0][3], edits[-1][4]
    return (start, end) if start < end else (max(0, start - 1), start + 1)


def demo_samples() -> Iterator[Sample]:
    """The answers of the demo; one that it expects to be acted on is labelled as wrong."""
    lines = (ROOT / "guardrail" / "demo" / "answers.jsonl").read_text("utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        response = parse_input(line)
        assert isinstance(response, Response)  # noqa: S101 - the file holds nothing else
        bad = response.metadata["expected"]["bad_claim"]
        label = Label(
            response_id=response.response_id,
            verdict=Verdict.SUPPORTED if bad is None else Verdict.CONTRADICTED,
            source=LabelSource.DATASET,
        )
        yield Sample(response, (label,), f"line {number}")


async def judged(
    every: Iterable[Sample], router: PolicyRouter, modes: Mapping[str, Mode]
) -> list[EvaluationResult]:
    """What the local judge says, and what the policies decide."""
    judges = JudgeSet(JudgeSettings(), router.policies)
    check = checker(judges.default, router, modes=modes)
    try:
        return [result(sample, await check(sample.response)) for sample in every]
    finally:
        await judges.aclose()


async def demo_results() -> list[EvaluationResult]:
    """Under the demo's policies."""
    settings = load_settings(ROOT / "guardrail" / "demo" / "guardrail.yaml", {})
    policies = {name: judging_everything(each) for name, each in settings.policies.items()}
    router = PolicyRouter(policies, settings.routes, settings.default_policy)
    return await judged(demo_samples(), router, {name: each.mode for name, each in settings.policies.items()})


def result(sample: Sample, verdict: ResponseVerdict) -> EvaluationResult:
    """With some of the published scores."""
    return EvaluationResult(
        place=sample.place,
        response=sample.response,
        verdict=verdict,
        scores={name: score_value(name, verdict) for name in SHOWN_SCORES},
        labels=sample.labels,
    )


def decided_again(results: list[EvaluationResult], policy: Policy) -> list[EvaluationResult]:
    """The same verdicts under another policy."""
    again = []
    for each in results:
        assert each.verdict is not None  # noqa: S101 - the example has no errors
        found = redecide(judging_everything(policy), by_segment(each.verdict.claims))
        about = claims_decided_by(found.decision, found.rule, each.verdict.claims, policy)
        verdict = each.verdict.model_copy(
            update={
                "decision": found.decision,
                "rule": found.rule,
                "deciding_claim": about[0].claim_id if about else None,
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


async def draw(page_file: Path, pictures: Iterable[tuple[str, str, str]]) -> None:
    """Parts of a page, each from the first to the last thing that is named."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(viewport={"width": 1120, "height": 900}, device_scale_factor=1.2)
        await page.goto(page_file.as_uri())
        for name, first, last in pictures:
            start = await page.locator(first).first.bounding_box()
            end = await page.locator(last).first.bounding_box()
            assert start is not None  # noqa: S101 - the page has both
            assert end is not None  # noqa: S101
            top, bottom = start["y"] - 12, end["y"] + end["height"] + 28
            await page.screenshot(
                path=ROOT / "docs" / f"{name}.png",
                full_page=True,
                clip={"x": 0, "y": max(0, top), "width": 1120, "height": bottom - max(0, top)},
            )
        await browser.close()


def tuned(folder: Path) -> Path:
    """The report of the second example of ``docs/tune.md``, by its commands."""
    guardrail = Path(sys.executable).with_name("guardrail")
    for arguments in (
        "evaluate answers.jsonl --out results.jsonl --force",
        "tune results.jsonl -l labels.jsonl --catch 0.9 --by withhold --report tuning.html",
    ):
        for name in ("answers.jsonl", "labels.jsonl"):
            shutil.copy(ROOT / "examples" / "tuning" / name, folder)
        command = [str(guardrail), *arguments.split()]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - our own
    return folder / "tuning.html"


async def main() -> None:
    """Judge, write, draw."""
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/report.md, write the example.")
    parser.add_argument("--keep", type=Path, help="folder for the results files and the report")
    arguments = parser.parse_args()
    write(ROOT / "examples" / "results.jsonl", await demo_results())
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        careful = await judged(
            samples(), PolicyRouter.single(judging_everything(CAREFUL)), {CAREFUL.name: CAREFUL.mode}
        )
        strict = decided_again(careful, STRICT)
        for policy, results in ((CAREFUL, careful), (STRICT, strict)):
            write(folder / f"{policy.name}.jsonl", results)
        run = Evaluation(
            tuple(strict),
            "chat answers, strict policy",
            {"judge": "local", "policy": "strict", "source": "tests/chat_answers/development"},
        )
        write_report(run, folder / "report.html", title="Faithfulness of our assistant")
        await draw(folder / "report.html", PICTURES)
        await draw(tuned(folder), TUNING_PICTURES)


if __name__ == "__main__":
    asyncio.run(main())
