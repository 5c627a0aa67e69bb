"""Exact figures: what numbers, amounts, dates and times a text has, and whether the sources have them too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.figures.agreement import agrees as agrees
    from guardrail.figures.check import check_figures as check_figures
    from guardrail.figures.model import Bound as Bound
    from guardrail.figures.model import Day as Day
    from guardrail.figures.model import Figure as Figure
    from guardrail.figures.model import FigureCheck as FigureCheck
    from guardrail.figures.model import Kind as Kind
    from guardrail.figures.model import State as State
    from guardrail.figures.reading import find_figures as find_figures
    from guardrail.figures.source import FigureSource as FigureSource
    from guardrail.figures.source import SourceText as SourceText

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
