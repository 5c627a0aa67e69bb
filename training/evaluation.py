"""Judges on labelled claims -> the figures of the report, as ``training.evaluate`` writes them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from training.evaluation_data import CRITICAL, FAITHFUL
from training.measuring import RULES, WHOLE, Judges, Scored, caught, figures
from training.metrics import Bin, calibration_error, contradictions, mean, reliability
from training.rows import Row


def evaluate(
    judges: Judges, sets: Mapping[str, Sequence[Row]], pairs: Mapping[str, Sequence[Row]],
    timed: Sequence[Row] = (), written: Sequence[Row] = (),
) -> tuple[dict[str, Any], dict[str, list[Bin]]]:  # fmt: skip
    """The report but for what it was made with, and the reliability of each judge."""
    scored: dict[str, list[Scored]] = {}
    for name, rows in sets.items():
        scored[name] = [judges.scored(row) for row in rows]
        print(f"  {name}: {len(rows):,} claims", flush=True)
    changed = {kind: [judges.scored(row) for row in rows] for kind, rows in pairs.items()}
    everything = [claim for claims in scored.values() for claim in claims]
    by_severity: dict[str, list[Scored]] = defaultdict(list)
    for claim in everything:
        by_severity[claim.severity].append(claim)
    table: dict[str, dict[str, Any]] = {
        name: {"claims": len(claims)} | {judge: figures(claims, judge) for judge in judges.names}
        for name, claims in scored.items()
    }
    weights = _even(scored)
    truths = [claim.supported for claim in everything]
    spread = {j: [claim.answers[j].probability for claim in everything] for j in judges.names}
    report: dict[str, Any] = {
        "judges": judges.names,
        "claims": len(everything),
        "sets": table,
        "macro": {
            judge: {key: mean([row[judge][key] for row in table.values()]) for key in _keys(table, judge)}
            for judge in judges.names
        },
        "pooled": {j: calibration_error(truths, p, weights=weights) for j, p in spread.items()},
        "contradictions": {
            j: contradictions(truths, [claim.answers[j].contradicted for claim in everything])
            for j in (RULES, WHOLE)
            if j in judges.names
        },
        "severity": {
            name: {"claims": len(claims)} | {judge: figures(claims, judge) for judge in judges.names}
            for name, claims in sorted(by_severity.items())
        },
        "pairs": {
            kind: {"claims": len(claims)} | {judge: caught(claims, judge) for judge in judges.names}
            for kind, claims in changed.items()
        },
        "critical": {judge: _critical(changed, judge) for judge in judges.names} if changed else {},
        "written": _written([judges.scored(row) for row in written], judges.names),
        "milliseconds": _milliseconds([judges.scored(row) for row in timed], judges.names),
    }
    return report, {j: reliability(truths, p, weights=weights) for j, p in spread.items()}


def _keys(table: Mapping[str, Any], judge: str) -> list[str]:
    return list(next(iter(table.values()))[judge])


def _even(scored: Mapping[str, Sequence[Scored]]) -> list[float]:
    """What each claim counts where sets count alike, and in each both classes."""
    weights: list[float] = []
    for claims in scored.values():
        count = Counter(claim.supported for claim in claims)
        weights.extend(1.0 / count[claim.supported] for claim in claims)
    return weights


def _critical(changed: Mapping[str, Sequence[Scored]], judge: str) -> dict[str, float]:
    def shares(kinds: Sequence[str]) -> list[float]:
        return [caught(changed[k], judge)["not_supported"] for k in kinds if changed.get(k)]

    return {"caught": mean(shares(sorted(CRITICAL))), "false_alarms": mean(shares(FAITHFUL))}


def _written(claims: Sequence[Scored], judges: Sequence[str]) -> dict[str, Any]:
    """Claims of facts that were written for training and that nothing was fitted on."""
    if not claims:
        return {}
    right = [claim for claim in claims if claim.supported]
    wrong = [claim for claim in claims if not claim.supported]
    return {"claims": len(claims), "supported": len(right)} | {
        judge: figures(claims, judge)
        | {
            "upheld": 1.0 - caught(right, judge)["not_supported"],
            "caught": caught(wrong, judge)["not_supported"],
        }
        for judge in judges
    }


def _milliseconds(claims: Sequence[Scored], judges: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"claims": len(claims)} if claims else {}
    for judge in (RULES, WHOLE):
        if claims and judge in judges:
            times = sorted(1000 * claim.answers[judge].seconds for claim in claims)
            found[judge] = {"p50": times[len(times) // 2], "p95": times[int(0.95 * len(times))]}
    return found
