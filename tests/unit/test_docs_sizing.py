"""The examples of docs/sizing.md follow from its formulas; its figures are those of docs/benchmarks.md."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from guardrail.judges.llm import LlmJudgeSettings
from guardrail.limits import Limits

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "sizing.md").read_text("utf-8")
BENCHMARKS = " ".join((DOCS / "benchmarks.md").read_text("utf-8").split())

ROWS = {
    label.strip(): [float(cell) for cell in cells.split("|")]
    for label, cells in re.findall(r"^\| ([^|]+) \| ([0-9.]+ \| [0-9.]+ \| [0-9.]+) \|$", TEXT, re.MULTILINE)
}


@pytest.mark.parametrize("column", range(3))
def test_the_examples_follow_from_the_formulas(column: int) -> None:
    example = {label: cells[column] for label, cells in ROWS.items()}
    a, d, c, p = (next(v for label, v in example.items() if label.endswith(f"`{sign}`")) for sign in "Adcp")
    cores = a * c * p / 0.6
    guards = max(2, math.ceil(cores / 2)) + 1
    assert example["answers in flight, `S`"] == a * d
    assert example["cores"] == round(cores, 1)
    assert example["guards"] == guards
    assert example["partitions"] == 2 * guards


def test_the_example_with_an_llm_judge_follows_too() -> None:
    calls = 50 * (12 + 1.5)
    assert f"= {calls:.0f} calls at once, for {math.ceil(calls / 64)} guards and a spare" in TEXT
    an_answer = round(12 / (LlmJudgeSettings().max_wait_ms / 1000 + 1.5) + 2)
    assert f"= {an_answer} calls an answer" in TEXT
    assert f"= {round(50 * an_answer * (1730 + 26), -3):,} tokens a second" in TEXT
    assert round(12 / (2.5 + 1.5) + 2) == 5
    assert "`max_wait_ms: 2500`, a quarter of a claim's time: 5 calls" in TEXT


def test_its_limits_are_the_defaults() -> None:
    assert Limits().max_concurrent_judgements == LlmJudgeSettings().max_concurrency == 64
    assert Limits.max_sessions == 10_000
    assert round(Limits().max_bytes / 1e6) == 268


@pytest.mark.parametrize(
    "figure",
    [
        "41 · 56 ms of processor time",
        "their text plus 74 KB",
        "21,900 against",
        "p50 +26 ms, p99 +101 ms",
        "53 ms (182 ms) at 32, where 1.2 processors are busy",
        "some 2,000 answers",
    ],
)
def test_its_figures_are_measured_ones(figure: str) -> None:
    assert figure in BENCHMARKS


def test_its_metrics_exist() -> None:
    known = set(
        re.findall(r"^\| `(guardrail_[a-z_]+)`", (DOCS / "telemetry.md").read_text("utf-8"), re.MULTILINE)
    )
    named = set(re.findall(r"`(?:rate\()?(guardrail_[a-z_]+)", TEXT))
    assert len(named) > 8
    assert named <= known
