from __future__ import annotations

import math

from benchmarks.peers_report import Result, Run, aims, percentile, table
from benchmarks.peers_systems import Outcome
from benchmarks.peers_tokens import Usage


def result(system: str, delays: list[float], first: float | None, prompt: int, cached: int = 0) -> Result:
    outcomes = tuple(Outcome(delay, first, right=True) for delay in delays)
    return Result(system, 20, outcomes, Usage(len(delays), prompt, cached, 10))


def run(*results: Result) -> Run:
    return Run(results, 350, 8, 1024, 128, "an estimate")


def test_percentile_is_of_nearest_rank() -> None:
    values = [float(value) for value in range(1, 21)]
    assert percentile(values, 0.5) == 10
    assert percentile(values, 0.95) == 19
    assert math.isnan(percentile([], 0.5))


def test_failed_answers_count_in_the_cost_and_not_in_the_delay() -> None:
    failed = Outcome(0.0, None, right=False, error="ValueError: no JSON")
    made = Result("ragas", 1, (Outcome(2.0, 2.0, right=True), failed), Usage(4, 2_000, 1_000, 100))
    assert made.delays_ms() == [2_000.0]
    assert made.uncached() == 500
    assert made.right() == 0.5
    assert made.errors() == {"ValueError: no JSON"}


def test_claims_that_the_model_did_not_know_are_reported() -> None:
    made = Result("guardrail-llm", 1, (Outcome(1.0, None, right=True),), Usage(unknown=3))
    assert made.errors() == {"3 claims or prompts unknown to the model"}


def test_aims_are_met_or_missed() -> None:
    haystack = result("haystack", [1.5, 1.5], 1.5, 2_000)
    cheap = result("guardrail-cascade", [0.4, 0.4], -1.0, 3_000, cached=2_000)
    slow = result("guardrail-llm", [0.5, 0.5], 0.2, 8_200)
    lines = aims(run(haystack, cheap, slow)).splitlines()[2:]
    told = [(line.split(" | ")[1], line.split(" | ")[-1].strip(" |")) for line in lines]
    assert told == [
        ("guardrail-llm", "missed"),
        ("guardrail-llm", "missed"),
        ("guardrail-llm", "missed"),
        ("guardrail-llm", "missed"),
        ("guardrail-cascade", "met"),
        ("guardrail-cascade", "met"),
        ("guardrail-cascade", "met"),
        ("guardrail-cascade", "met"),
    ]


def test_a_system_that_was_skipped_leaves_the_others_in_the_table() -> None:
    text = table(run(result("haystack", [1.5], 1.5, 900)))
    assert text.count("\n") == 2
    assert "| 20 | haystack | 1 | 1,500 | 1,500 | +1,500 | 0% | 1.0 | 900 | 0 | 900 | 10 | 100% |  |" in text
