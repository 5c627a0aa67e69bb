"""Pictures of what tuning found, as PNG. They need the extra ``tune`` (matplotlib)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from guardrail.errors import ConfigError
from guardrail.offline.aims import Aim
from guardrail.offline.calibration import Fitted
from guardrail.offline.curves import BINS, TuningCurves

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


def draw(folder: Path, curves: TuningCurves, aim: Aim) -> list[Path]:
    """``scores.png``, ``precision-recall.png`` and ``costs.png`` in ``folder``, which is made if missing.

    Raises OSError, and ConfigError without matplotlib.
    """
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _scores(folder / "scores.png", curves),
        _precision_recall(folder / "precision-recall.png", curves),
        _costs(folder / "costs.png", curves, aim),
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


def _scores(path: Path, curves: TuningCurves) -> Path:
    figure, axes = _figure("Scores by what people say", "score", "answers")
    left = [at / BINS for at in range(BINS)]
    for (name, counts), colour in zip(curves.scores.items(), (_FAITHFUL_COLOUR, _WRONG_COLOUR), strict=True):
        axes.bar(left, counts, width=1 / BINS, align="edge", alpha=0.6, color=colour, label=name)
    for name, cut, colour in (("now", curves.now, _BASELINE), ("tuned", curves.tuned, _TUNED)):
        axes.axvline(cut, color=colour, linestyle="--", label=f"threshold {name}: {cut:g}")
    return _saved(figure, path)


def _precision_recall(path: Path, curves: TuningCurves) -> Path:
    figure, axes = _figure("Precision and recall", "recall: wrong answers caught", "precision")
    if curves.precision_recall:
        axes.plot(*zip(*curves.precision_recall, strict=True), color="#999999", label="by the score alone")
    for name, point in curves.operating.items():
        colour = _BASELINE if name == "now" else _TUNED
        axes.plot([point.x], [point.y], "o", color=colour, label=name)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    return _saved(figure, path)


def _costs(path: Path, curves: TuningCurves, aim: Aim) -> Path:
    title = f"Cost: {aim.cost_miss or 1:g} a miss, {aim.cost_false or 1:g} a false alarm"
    figure, axes = _figure(title, f"{curves.threshold}, all else as tuned", "cost of an answer")
    axes.plot(*zip(*curves.costs, strict=True), color="#999999")
    for name, cut, colour in (("now", curves.now, _BASELINE), ("tuned", curves.tuned, _TUNED)):
        axes.axvline(cut, color=colour, linestyle="--", label=f"{name}: {cut:g}")
    axes.set_ylim(bottom=0)
    return _saved(figure, path)


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
