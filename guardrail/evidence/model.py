"""Passages: the windows of contexts that evidence search returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a context: ``context.text[start:end] == text`` (code points)."""

    context_id: str
    start: int
    end: int
    text: str
    score: float = 0.0
