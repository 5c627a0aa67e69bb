"""Pictures of what tuning found, as PNG. They need the extra ``tune`` (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from guardrail.errors import ConfigError
from guardrail.offline.aims import FAITHFUL, LEAST_RANK, WRONG, Aim
from guardrail.offline.calibration import Fitted
from guardrail.offline.deciding import Deciding
from guardrail.offline.labelled import Judged
from guardrail.offline.records import Array, Records
from guardrail.offline.tuning import Tuned, classes_of

if TYPE_CHECKING:
    from guardrail.events import Verdict

_BINS: Final = 20
_CUTS: Final = 101
_SIZE: Final = (6.0, 4.5)
_DPI: Final = 120
_BASELINE, _TUNED, _WRONG_COLOUR, _FAITHFUL_COLOUR = "#666666", "#1b6ca8", "#b3362c", "#3a7d44"


def require_matplotlib() -> None:
    """Raises ConfigError where the extra is missing, before anything is computed."""
    try:
        import matplotlib.figure  # noqa: F401 - only asked whether it is there
    except ImportError:
        raise ConfigError(
            "--plots needs matplotlib: pip install 'streaming-guardrail[tune]', or leave --plots out"
        ) from None


def draw(folder: Path, tuned: Tuned, responses: Sequence[Judged], mildest: Verdict) -> list[Path]:
    """``scores.png``, ``precision-recall.png`` and ``costs.png`` in ``folder``, which is made if missing.

    ``responses`` are those that the tuned policy is for, calibrated where it is to be. Raises OSError, and
    ConfigError without matplotlib.
    """
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    aim = tuned.aim
    classes = classes_of(responses, aim, mildest)
    deciding = Deciding(Records.of(each.verdict for each in responses), tuned.policy)
    scores = deciding.scores(tuned.policy.weights)[0]
    return [
        _scores(folder / "scores.png", scores, classes, tuned),
        _precision_recall(folder / "precision-recall.png", scores, classes, tuned),
        _costs(folder / "costs.png", deciding, classes, tuned),
    ]


def draw_calibration(path: Path, fitted: Fitted) -> Path:
    """A reliability diagram: what the judge says against the share that is so, before and after, held out."""
    require_matplotlib()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = _figure(f"Calibration of {fitted.probability}", "probability", "share of claims")
    axes.plot([0, 1], [0, 1], color="#bbbbbb", linewidth=1)
    for name, bins, colour in (
        ("as the judge says", fitted.before, _BASELINE),
        ("calibrated, held out", fitted.after, _TUNED),
    ):
        axes.plot([b.predicted for b in bins], [b.observed for b in bins], "o-", color=colour, label=name)
    return _saved(figure, path)


def _scores(path: Path, scores: Array, classes: Array, tuned: Tuned) -> Path:
    figure, axes = _figure("Scores by what people say", "score", "answers")
    edges = np.linspace(0, 1, _BINS + 1)
    for cls, name, colour in (
        (FAITHFUL, "faithful", _FAITHFUL_COLOUR),
        (WRONG, f"with {tuned.aim.error}", _WRONG_COLOUR),
    ):
        found = scores[(classes == cls) & ~np.isnan(scores)]
        axes.hist(found, bins=edges, alpha=0.6, color=colour, label=name)
    for policy, name, colour in ((tuned.baseline, "now", _BASELINE), (tuned.policy, "tuned", _TUNED)):
        cut = policy.flag_below if tuned.aim.by == "flag" else policy.block_below
        axes.axvline(cut, color=colour, linestyle="--", label=f"threshold {name}: {cut:g}")
    return _saved(figure, path)


def _precision_recall(path: Path, scores: Array, classes: Array, tuned: Tuned) -> Path:
    figure, axes = _figure("Precision and recall", "recall: wrong answers caught", "precision")
    known = (classes >= 0) & (classes <= FAITHFUL)
    risk = np.where(np.isnan(scores), -1.0, 1.0 - scores)[known]
    wrong = classes[known] == WRONG
    order = np.argsort(-risk, kind="stable")
    last = np.append(risk[order][1:] != risk[order][:-1], True)  # answers with one score come together
    hits, caught = np.cumsum(wrong[order])[last], (np.arange(len(order)) + 1)[last]
    if wrong.any():
        axes.plot(hits / wrong.sum(), hits / caught, color="#999999", label="by the score alone")
    for counts, name, colour in (
        (tuned.baseline_counts, "now", _BASELINE),
        (tuned.held_out, "tuned, held out", _TUNED),
    ):
        found, false = counts.caught(tuned.aim.by), counts.false_alarms(tuned.aim.by)
        if found + false and counts.wrong:
            axes.plot([found / counts.wrong], [found / (found + false)], "o", color=colour, label=name)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    return _saved(figure, path)


def _costs(path: Path, deciding: Deciding, classes: Array, tuned: Tuned) -> Path:
    aim, policy = tuned.aim, tuned.policy
    by_flag = aim.by == "flag"
    name = "flag_below" if by_flag else "block_below"
    figure, axes = _figure(_cost_title(aim), f"{name}, all else as tuned", "cost of an answer")
    cuts = np.linspace(policy.block_below if by_flag else 0.0, 1.0, _CUTS)
    bounds, costs = deciding.bounds(), []
    wrong, faithful = classes == WRONG, classes == FAITHFUL
    total = max(1, int(wrong.sum() + faithful.sum()))
    for cut in cuts:
        flag, block = (cut, policy.block_below) if by_flag else (max(cut, policy.flag_below), cut)
        acts = deciding.ranks(bounds, flag, block, policy.weights) >= LEAST_RANK[aim.by]
        missed, false = int((wrong & ~acts).sum()), int((faithful & acts).sum())
        costs.append(((aim.cost_miss or 1.0) * missed + (aim.cost_false or 1.0) * false) / total)
    axes.plot(cuts, costs, color="#999999")
    for given, label, colour in ((tuned.baseline, "now", _BASELINE), (policy, "tuned", _TUNED)):
        cut = given.flag_below if by_flag else given.block_below
        axes.axvline(cut, color=colour, linestyle="--", label=f"{label}: {cut:g}")
    axes.set_ylim(bottom=0)
    return _saved(figure, path)


def _cost_title(aim: Aim) -> str:
    return f"Cost: {aim.cost_miss or 1:g} a miss, {aim.cost_false or 1:g} a false alarm"


def _figure(title: str, x: str, y: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _saved(figure: Any, path: Path) -> Path:
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, metadata={"Software": None})
    return path
