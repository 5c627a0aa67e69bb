"""The report of ``benchmarks.offline_sets``: Markdown and a reliability plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from guardrail.evals.statistics import BINS

_COLUMNS: Final = (
    ("auroc", "AUROC"),
    ("balanced_accuracy", "balanced accuracy"),
    ("calibration_error", "calibration error"),
)
Judges = Mapping[str, Mapping[str, Any]]
"""By the judge's name what ``benchmarks.offline_sets.figures`` found."""


def markdown(judges: Judges, head: str) -> str:
    """The report for people, after a line of what was measured. All figures but times are percent."""
    first = next(iter(judges.values()))
    parts = [
        "# How well claims are told apart\n",
        f"{head}\n",
        "## Mean of the sets\n",
        "Each set counts alike; in brackets 95 % intervals. Pooled: over all claims together, each set and "
        "in it both classes counting alike, as the probabilities are meant.\n",
        table(
            ["judge", *(title for _, title in _COLUMNS), "calibration error, pooled"],
            (
                [
                    name,
                    *(_estimate(found["macro"][key]) for key, _ in _COLUMNS),
                    _share(found["calibration_error_pooled"]),
                ]
                for name, found in judges.items()
            ),
        ),
    ]
    for key, title in _COLUMNS:
        parts += [
            f"## {title[0].upper()}{title[1:]}, set by set\n",
            table(
                ["data set", "claims", *judges],
                (
                    [
                        name,
                        f"{entry['claims']:,}",
                        *(_share(found["sets"][name][key]) for found in judges.values()),
                    ]
                    for name, entry in first["sets"].items()
                ),
            ),
        ]
    parts += [
        "## Contradictions\n",
        "Of all claims together, how many are called CONTRADICTED though people call them supported. Scores "
        "alone contradict nothing.\n",
        table(
            ["judge", "of all that it calls CONTRADICTED", "of all that people call supported"],
            (
                [
                    name,
                    *(
                        _counted(found[key])
                        for key in ("contradictions_of_supported", "supported_called_contradicted")
                    ),
                ]
                for name, found in judges.items()
                if found["contradictions_of_supported"]["of"]
            ),
        ),
    ]
    if first["changed"]:
        parts += [
            "## Sentences of the validation documents with one detail changed\n",
            "The share that is not called SUPPORTED: for `verbatim`, `reworded` and `written, faithful` a "
            "false alarm. Made by the same rules as a part of the training data, from other documents; "
            "`written` are facts that were written for training, of those that nothing was fitted on.\n",
            table(
                ["kind", *judges],
                (
                    [kind, *(_share(found["changed"][kind]) for found in judges.values())]
                    for kind in first["changed"]
                ),
            ),
            "Critical are number, date, unit, name, negation and swap, each kind counting alike:\n",
            table(
                ["judge", "critical changes caught", "false alarms"],
                (
                    [name, _share(found["critical_caught"]), _share(found["false_alarms"])]
                    for name, found in judges.items()
                ),
            ),
        ]
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, with a blank line behind it."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def plot(path: Path, judges: Judges) -> None:
    """The reliability of each judge as a PNG: how often claims of a probability were supported.

    Raises ImportError where matplotlib is not installed.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 5.5))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    for name, found in judges.items():
        _, predicted, observed = zip(*found["reliability"], strict=True)
        axes.plot(predicted, observed, marker="o", markersize=4, label=name)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xlabel=f"probability of support ({BINS} bins)",
        ylabel="share that is supported",
    )
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:.1f}"


def _estimate(told: Mapping[str, float]) -> str:
    if "low" not in told:
        return _share(told["value"])
    return f"{_share(told['value'])} [{_share(told['low'])}, {_share(told['high'])}]"


def _counted(told: Mapping[str, float]) -> str:
    return f"{told['count']} of {told['of']:,}: {_estimate(told)}"
