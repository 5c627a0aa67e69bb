"""The report of ``benchmarks.offline_sets``: Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.answer_figures import counted
from benchmarks.frame import markdown
from guardrail.evals.statistics import Estimate, percent
from training.rows import SUPPORTED_SHARE

_COLUMNS: Final = {
    "auroc": "AUROC",
    "balanced_accuracy": "balanced accuracy",
    "calibration_error": "calibration error",
}
Judges = Mapping[str, Mapping[str, Any]]
"""By the judge's name what ``benchmarks.offline_sets.figures`` found."""


def report(judges: Judges, head: str) -> str:
    """The report for people, after a line of what was measured. All figures but times are percent."""
    first = next(iter(judges.values()))

    def of_each(key: str, name: str) -> list[str]:
        return [_cell(found[key][name]) for found in judges.values()]

    parts = [
        "# How well claims are told apart",
        head,
        "## Mean of the sets",
        "Each set counts alike; in brackets 95 % intervals. Pooled: over all claims together, each set "
        f"counting alike, and in it supported claims {100 * SUPPORTED_SHARE:.0f} %, as the probabilities are "
        "meant.",
        markdown(
            ["judge", *_COLUMNS.values(), "calibration error, pooled"],
            [
                [
                    name,
                    *(_cell(found["macro"][key]) for key in _COLUMNS),
                    _cell(found["calibration_error_pooled"]),
                ]
                for name, found in judges.items()
            ],
        ),
    ]
    for key, title in _COLUMNS.items():
        parts += [
            f"## {title[0].upper()}{title[1:]}, set by set",
            markdown(
                ["data set", "claims", *judges],
                [
                    [
                        name,
                        f"{entry['claims']:,}",
                        *(_cell(found["sets"][name][key]) for found in judges.values()),
                    ]
                    for name, entry in first["sets"].items()
                ],
            ),
        ]
    contradicting = {n: found for n, found in judges.items() if found["contradictions_of_supported"].total}
    parts += [
        "## Contradictions",
        "Of all claims together, how many are called CONTRADICTED though people call them supported. Scores "
        "alone contradict nothing.",
        markdown(
            ["judge", "of all that it calls CONTRADICTED", "of all that people call supported"],
            [
                [
                    name,
                    counted(found["contradictions_of_supported"]),
                    counted(found["supported_called_contradicted"]),
                ]
                for name, found in contradicting.items()
            ],
        ),
    ]
    if first["changed"]:
        parts += [
            "## Sentences of the validation documents with one detail changed",
            "The share that is not called SUPPORTED: for `verbatim`, `reworded` and `written, faithful` a "
            "false alarm. Made by the same rules as a part of the training data, from other documents; "
            "`written` are facts that were written for training, of those that nothing was fitted on.",
            markdown(["kind", *judges], [[kind, *of_each("changed", kind)] for kind in first["changed"]]),
            "Critical are number, date, unit, name, negation and swap, each kind counting alike:",
            markdown(
                ["judge", "critical changes caught", "false alarms"],
                [
                    [name, _cell(found["critical_caught"]), _cell(found["false_alarms"])]
                    for name, found in judges.items()
                ],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _cell(value: float | Estimate) -> str:
    if isinstance(value, Estimate):
        return percent(value)
    return "–" if math.isnan(value) else f"{100 * value:.1f}"
