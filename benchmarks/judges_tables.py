"""The tables of ``benchmarks.judges``: how well each system judges, and what that costs."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.frame import markdown
from benchmarks.peers_systems import PEERS
from guardrail.evals.statistics import Estimate, auroc, balanced_accuracy, bootstrap, percent

OURS: Final = {"guardrail-decisions": "decisions", "guardrail-llm": "llm", "guardrail-local": "local"}
SYSTEMS: Final = (*OURS, *PEERS)
PLAIN: Final = "plain"
"""The variant of a case of injection in which nothing is injected."""
Scored = tuple[bool, float | None, bool]
"""Truth, score (None: unreadable) and pass or fail of one answer or claim."""


def _scored(row: Mapping[str, Any]) -> Scored:
    return row["truth"], row["score"], row["passed"]


def _quality(groups: Sequence[Sequence[Scored]]) -> list[str]:
    """What was judged, in groups that belong together: how many (supported), AUROC, balanced accuracy of pass
    or fail, that with a line fitted on all other groups, and how many got no score.

    What has no score does not pass, and ranks below all that has one.
    """
    every = [each for group in groups for each in group]
    scored = [[(t, -1.0 if s is None else s) for t, s, _ in group] for group in groups]
    passed = [[(t, float(p)) for t, _, p in group] for group in groups]
    fitted = []
    for at, group in enumerate(scored):
        line = _best_line([pair for other in scored[:at] + scored[at + 1 :] for pair in other])
        fitted.append([(truth, float(score > line)) for truth, score in group])
    found: list[Estimate] = [
        bootstrap(scored, auroc, by_rank=True),
        bootstrap(passed, balanced_accuracy),
        bootstrap(fitted, balanced_accuracy),
    ]
    return [
        f"{len(every)} ({sum(truth for truth, _, _ in every)})",
        *map(percent, found),
        f"{sum(score is None for _, score, _ in every)}",
    ]


def _best_line(pairs: Sequence[tuple[bool, float]]) -> float:
    """The line between two scores above which to pass, so that balanced accuracy is highest."""
    scores = sorted({score for _, score in pairs})

    def accuracy(line: float) -> float:
        found = balanced_accuracy([t for t, _ in pairs], [float(score > line) for _, score in pairs])
        return 0.0 if math.isnan(found) else found

    return max(((a + b) / 2 for a, b in itertools.pairwise(scores)), key=accuracy, default=0.5)


def _costs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Calls, tokens and seconds, each per answer or claim, and seconds per call."""
    calls = [second for row in rows for second in row["seconds_of_calls"]]
    mean = {name: sum(row[name] for row in rows) / len(rows) for name in
            ("calls", "tokens_in", "cached", "tokens_out", "seconds")}  # fmt: skip
    per_call = f"{sum(calls) / len(calls):.1f}" if calls else "–"
    return [
        f"{mean['calls']:.1f}",
        *(f"{mean[name]:,.0f}" for name in ("tokens_in", "cached", "tokens_out")),
        per_call,
        f"{mean['seconds']:.1f}",
    ]


QUALITY: Final = ("AUROC", "balanced accuracy", "the same, line fitted")
COSTS: Final = ("calls", "tokens in", "of them cached", "tokens out", "s a call", "s")


def tables(lines: Sequence[str]) -> Iterator[str]:
    """The tables of a run, in Markdown, each with its caption."""
    run, *rows = map(json.loads, lines)
    by: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["part"], row["system"]].append(row)
    yield (
        f"{run['model']}, {run['machine']}; documents cut to {run['most_chars']:,} characters an answer, "
        f"{run['limit_s']:g} s at most for an answer, {run['at_once']} call(s) at a time."
    )
    found = {name: by["answers", name] for name in SYSTEMS if by["answers", name]}
    if found:
        yield "**Whole answers**: wholly supported or not; costs are per answer."
        head = ("system", "answers (supported)", *QUALITY, "without a score", *COSTS)
        cells: list[list[Any]] = []
        for name, told in found.items():
            cells.append([name, *_quality([[_scored(row)] for row in told]), *_costs(told)])
        yield markdown(head, cells)
    cells = [cell for name in OURS for cell in _claims(name, by)]
    if cells:
        yield "**Claims**, supported or not: of those answers, and single ones; costs are per single claim."
        yield markdown(("judge", "of", "claims (supported)", *QUALITY, "without a verdict", *COSTS), cells)
    cells = [_injection(name, by["injection", name]) for name in OURS if by["injection", name]]
    if cells:
        yield "**Injection**: claims that no document supports, called SUPPORTED nevertheless."
        variants = sorted(
            {row["id"].partition(" ")[2] for row in rows if row["part"] == "injection"} - {PLAIN}
        )
        head = ("judge", PLAIN, *variants, "moved to SUPPORTED", "without a verdict")
        yield markdown(head, cells)


def _claims(name: str, by: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> Iterator[list[str]]:
    judged = by.get(("answers", name), ())
    of_answers = [[_scored(claim) for claim in row["claims"] if claim["truth"] is not None] for row in judged]
    if any(of_answers):
        yield [name, "answers", *_quality(of_answers), *["–"] * len(COSTS)]
    if single := by.get(("claims", name), ()):
        yield [name, "single claims", *_quality([[_scored(row)] for row in single]), *_costs(single)]


def _injection(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many of each variant are called SUPPORTED, with the mean of their support."""
    by: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        case, _, variant = row["id"].partition(" ")
        by[variant][case] = row
    cells = []
    for _, found in sorted(by.items(), key=lambda pair: (pair[0] != PLAIN, pair[0])):
        scores = [row["score"] for row in found.values() if row["score"] is not None]
        mean = f"{sum(scores) / len(scores):.2f}" if scores else "–"
        cells.append(f"{sum(row['passed'] for row in found.values())} of {len(found)} ({mean})")
    still = {case for case, row in by[PLAIN].items() if not row["passed"]}
    moved = [
        row["passed"]
        for variant in by
        if variant != PLAIN
        for case, row in by[variant].items()
        if case in still
    ]
    return [name, *cells, f"{sum(moved)} of {len(moved)}", f"{sum(row['score'] is None for row in rows)}"]
