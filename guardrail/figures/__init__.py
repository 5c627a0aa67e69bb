"""Exact figures: what numbers, amounts, dates and times a text has, and whether the sources have them too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.figures.agreement import agrees
    from guardrail.figures.check import check_figures
    from guardrail.figures.model import Bound, Day, Figure, Kind
    from guardrail.figures.outcome import FigureCheck, State
    from guardrail.figures.reading import find_figures
    from guardrail.figures.source import FigureSource, SourceText

__all__ = [
    "Bound",
    "Day",
    "Figure",
    "FigureCheck",
    "FigureSource",
    "Kind",
    "SourceText",
    "State",
    "agrees",
    "check_figures",
    "find_figures",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.figures.agreement": ("agrees",),
            "guardrail.figures.check": ("check_figures",),
            "guardrail.figures.model": ("Bound", "Day", "Figure", "Kind"),
            "guardrail.figures.outcome": ("FigureCheck", "State"),
            "guardrail.figures.reading": ("find_figures",),
            "guardrail.figures.source": ("FigureSource", "SourceText"),
        },
    )
