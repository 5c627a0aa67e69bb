"""The model card that lies beside an exported verifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from training.parity import Difference

UNSHIPPABLE: Final = "not stated"
"""The licence of data sets that no shipped model may be trained on."""

BASES: Final[Mapping[str, str]] = {
    "all-MiniLM-L6-v2": "Apache-2.0",
    "bge-small-en-v1.5": "MIT, copyright (c) 2022 staoxiao",
}
"""The licences of base models, by how their names begin. Weights that were trained on keep to them."""

_USE: Final = """\
Reads one claim beside one premise and says how likely it is that the premise wholly supports the
claim, that it contradicts it, and for each token of the claim that the premise doesn't support it.
Made for the local judge of streaming-guardrail, whose fitted combiner takes these figures together
with those of its rules; alone they are not calibrated.
"""

_FIGURES: Final = """\
## Figures

How well it tells claims apart, by itself and in the judge that ships with it, on data sets that nothing
was fitted on: docs/benchmarks/local-judge.md of streaming-guardrail, made by
`python -m benchmarks.offline_sets --data DIR --baselines --report FOLDER`.
"""

_LIMITS: Final = """\
- English. Nothing else was trained or tested on.
- {max_tokens} tokens for claim and premise together; the caller cuts longer texts into passages.
  Facts that follow only from several passages together are not seen.
- A claim is read without the conversation: who "it" is must be in the claim or the premise.
- It compares texts. It does not know the world, does not calculate, and reads numbers as words:
  differing values are the business of the rules beside it.
- Trained on encyclopedic, news and dialogue text and on sentences changed by rule. Not tested on
  source code, tables, legal or medical text in quantity, on transcribed speech, nor against texts
  written to deceive it.
- Sentences that people wrote to mislead (irony, quotation, hypothesis) were not looked at apart.
"""


def unshippable(training: Mapping[str, Any]) -> list[str]:
    """The data sets of a training.json that no shipped model may be trained on."""
    return sorted(name for name, entry in datasets_of(training).items() if UNSHIPPABLE in entry["licence"])


def card(
    *, name: str, max_tokens: int, sizes: Mapping[str, int], training: Mapping[str, Any],
    exported: Mapping[str, Any],
) -> str:  # fmt: skip
    """The text of MODEL_CARD.md.

    ``training`` is the checkpoint's training.json: ``datasets`` is a map of names to ``licence`` and
    ``pairs``; ``before`` is the training.json of the checkpoint that it started from; whatever else it
    holds is listed as a setting.
    """
    parts = [f"# {name}", _USE]
    if bad := unshippable(training):
        parts.append(
            f"**An experiment, not to be shipped**: the licence of {', '.join(bad)} is not stated.\n"
        )
    datasets = datasets_of(training)
    megabytes = sum(sizes.values()) / 1e6
    parts += [
        f"{megabytes:.1f} MB: "
        + ", ".join(f"`{file}` {size:,} bytes" for file, size in sorted(sizes.items())),
        "",
        "## Data\n",
        *_table(
            ("data set", "licence", "pairs read"),
            [(k, v["licence"], _count(v["pairs"])) for k, v in sorted(datasets.items())],
        ),
        "",
        "Rows whose names end in `-changed` or begin with `synthetic` were made by rule from texts of",
        "others; those whose names begin with `written` are facts that language models wrote for this. Texts",
        "of the data sets are not part of the model.",
        "",
        "## Training\n",
        *_settings(training),
        "",
        "## Export\n",
        *_exported(exported),
        "",
        _FIGURES,
        "## Limits\n",
        _LIMITS.format(max_tokens=max_tokens),
    ]
    return "\n".join(parts)


def difference_row(name: str, difference: Difference) -> tuple[str, ...]:
    """A row of the table of differences."""
    d = asdict(difference)
    lost = "–" if d["auroc_lost"] is None else f"{d['auroc_lost']:+.2f}"
    return (
        name, f"{d['logits_max']:.2g}", f"{d['probability_mean']:.4f}", f"{d['probability_p99']:.3f}",
        f"{d['tokens_mean']:.4f}", lost,
    )  # fmt: skip


def datasets_of(training: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The data sets of a training.json and of all that it started from: all ``pairs``, every ``licence``."""
    found: dict[str, dict[str, Any]] = {}
    for course in _courses(training):
        datasets = course.get("datasets")
        for name, entry in (datasets if isinstance(datasets, Mapping) else {}).items():
            known = found.setdefault(name, {"licence": "", "pairs": 0})
            licences = {*known["licence"].split(", "), *entry.get("licence", "").split(", ")} - {""}
            known["licence"] = ", ".join(sorted(licences))
            known["pairs"] += entry.get("pairs", 0)
    return found


def _courses(training: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A training.json and those of the checkpoints that it started from, the first one first."""
    before = training.get("before")
    return [*(_courses(before) if isinstance(before, Mapping) else []), training]


def _settings(training: Mapping[str, Any]) -> list[str]:
    courses = _courses(training)
    lines: list[str] = []
    for number, course in enumerate(courses, 1):
        if len(courses) > 1:
            lines += [*([""] if lines else []), f"Course {number}:", ""]
        for key, value in course.items():
            if key in ("datasets", "before"):
                continue
            if isinstance(value, Mapping):
                value = ", ".join(f"{k} {v}" for k, v in value.items())
            if key == "base":
                value = "; ".join([str(value), *_licence_of(str(value))])
            lines.append(f"- {key.replace('_', ' ')}: {value}")
    return lines or ["Not recorded: the checkpoint has no training.json."]


def _licence_of(base: str) -> list[str]:
    return [f"licence: {licence}" for name, licence in BASES.items() if base.startswith(name)]


def _exported(exported: Mapping[str, Any]) -> list[str]:
    rows = [difference_row(row["name"], Difference(**row["difference"])) for row in exported["differences"]]
    times = exported["milliseconds"]
    return [
        f"ONNX, weights of the encoder in {exported['bits']} bits, on {exported['pairs']} pairs of texts "
        "that were not trained on:",
        "",
        *_table(("", "logit, most", "probability, mean", "99 %", "tokens, mean", "AUROC points lost"), rows),
        "",
        "One pair of 128 tokens on two threads of the machine that exported, best of several: float32 "
        f"{times['float32']:.1f} ms, int8 {times['int8']:.1f} ms.",
    ]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"
