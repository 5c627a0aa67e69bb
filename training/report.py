"""The report of an evaluation: Markdown and a reliability plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from training.metrics import BINS, Bin

_COLUMNS: Final = (
    ("auroc", "AUROC"),
    ("balanced_accuracy", "balanced accuracy"),
    ("f1", "F1"),
    ("precision_at_recall", "precision at 80 % recall"),
    ("calibration_error", "calibration error"),
)


def markdown(report: Mapping[str, Any]) -> str:
    """The report for people. All figures but times are percent."""
    judges: list[str] = report["judges"]
    parts = [
        "# How well claims are told apart\n",
        f"{report['date']}, {report['claims']:,} claims of {len(report['sets'])} sets labelled by people. "
        "Positive for AUROC are claims that are wholly supported; F1 and precision are those of finding the "
        f"others. Thresholds come from held-out training data ({report['held_out']:,} rows), never from "
        f"these sets. Verifier: {report['verifier'] or 'none'}.\n",
        "## Mean of the sets\n",
        table(
            ["judge", *(title for _, title in _COLUMNS), "calibration error, pooled"],
            (
                [judge, *_percents(report["macro"][judge], _COLUMNS), percent(report["pooled"][judge])]
                for judge in judges
            ),
        ),
        "Pooled: over all claims together, each set and in it both classes counting alike, as the "
        "probabilities are meant (`reliability.png`).\n",
    ]
    for key, title in _COLUMNS:
        parts += [
            f"## {title[0].upper() + title[1:]}, set by set\n",
            table(
                ["data set", "claims", *judges],
                (
                    [name, f"{entry['claims']:,}", *(percent(entry[judge][key]) for judge in judges)]
                    for name, entry in report["sets"].items()
                ),
            ),
        ]
    parts += [
        "## Contradictions\n",
        "Of all claims together: how many are called CONTRADICTED though people call them supported. Word "
        "overlap and models alone contradict nothing.\n",
        table(
            [
                "judge",
                "called CONTRADICTED",
                "of them supported",
                "share of them",
                "share of the supported claims",
            ],
            (
                [
                    judge,
                    f"{entry['contradicted']:,}",
                    f"{entry['wrong']:,}",
                    percent(entry["wrong_of_contradicted"]),
                    percent(entry["wrong_of_supported"]),
                ]
                for judge, entry in report["contradictions"].items()
            ),
        ),
        "## By severity\n",
        "Of all claims together: larger sets count for more.\n",
        table(
            ["severity", "claims", "judge", *(title for _, title in _COLUMNS)],
            (
                [name, f"{entry['claims']:,}", judge, *_percents(entry[judge], _COLUMNS)]
                for name, entry in report["severity"].items()
                for judge in judges
            ),
        ),
        *_made(report, judges),
        *_written(report, judges),
        *_times(report),
    ]
    return "\n".join(parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown, with a blank line behind it."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def percent(value: float | None) -> str:
    """One decimal, or a dash for what could not be measured."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.1f}"


def plot(path: Path, bins: Mapping[str, Sequence[Bin]]) -> None:
    """The reliability of each judge as a PNG: how often claims of a probability were supported.

    Where matplotlib is not installed nothing is drawn, and that is said.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        print(f"{path.name} is not drawn: matplotlib is not installed (extra: training)")
        return

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 5.5))
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    for name, found in bins.items():
        axes.plot(
            [b.predicted for b in found], [b.observed for b in found], marker="o", markersize=4, label=name
        )
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


def _percents(entry: Mapping[str, float], columns: Iterable[tuple[str, str]]) -> list[str]:
    return [percent(entry[key]) for key, _ in columns]


def _caught(entry: Mapping[str, float]) -> str:
    return f"{percent(entry['not_supported'])} / {percent(entry['contradicted'])}"


def _made(report: Mapping[str, Any], judges: Sequence[str]) -> list[str]:
    pairs: Mapping[str, Any] = report["pairs"]
    if not pairs:
        return []
    return [
        "## Sentences of the validation documents with one detail changed\n",
        "The share that is not called supported (for `verbatim` and `reworded` a false alarm), and after the "
        "stroke the share called contradicted. Made by the same rules as a part of the training data, from "
        "other documents.\n",
        table(
            ["kind", "claims", *judges],
            (
                [kind, f"{entry['claims']:,}", *(_caught(entry[judge]) for judge in judges)]
                for kind, entry in pairs.items()
            ),
        ),
        "Critical are number, date, unit, name, negation and swap, each kind counting alike:\n",
        table(
            ["judge", "critical changes caught", "false alarms"],
            (
                [judge, percent(entry["caught"]), percent(entry["false_alarms"])]
                for judge, entry in report["critical"].items()
            ),
        ),
    ]


def _written(report: Mapping[str, Any], judges: Sequence[str]) -> list[str]:
    found: Mapping[str, Any] = report["written"]
    if not found:
        return []
    columns = (
        ("auroc", "AUROC"), ("balanced_accuracy", "balanced accuracy"), ("upheld", "faithful claims upheld"),
        ("caught", "others caught"),
    )  # fmt: skip
    return [
        "## Facts written for training, of those that nothing was fitted on\n",
        f"{found['claims']:,} claims in the words of chat assistants or of their sources, "
        f"{found['supported']:,} faithful. By the same writers as a part of the training data, about other "
        "facts.\n",
        table(
            ["judge", *(title for _, title in columns)],
            ([judge, *_percents(found[judge], columns)] for judge in judges),
        ),
    ]


def _times(report: Mapping[str, Any]) -> list[str]:
    found: Mapping[str, Any] = report["milliseconds"]
    if not found:
        return []
    judges = [judge for judge in found if judge != "claims"]
    return [
        f"## Milliseconds a claim, three passages of 150 words ({found['claims']} claims)\n",
        table(
            ["judge", "p50", "p95"],
            ([judge, f"{found[judge]['p50']:.1f}", f"{found[judge]['p95']:.1f}"] for judge in judges),
        ),
    ]
