"""Exact figures: what numbers, amounts, dates and times a text has, and whether the sources have them too."""

from guardrail.figures.check import FigureCheck, State, check_figures
from guardrail.figures.model import Bound, Day, Figure, Kind
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
    "check_figures",
    "find_figures",
]
