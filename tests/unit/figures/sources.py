"""Sources that the figures of claims are checked against."""

from __future__ import annotations

from guardrail.figures import FigureSource, SourceText


def source_of(*sentences: str, context: str = "") -> FigureSource:
    """Sentences of one ``context``; unset: each of one of its own."""
    texts = enumerate(sentences)
    return FigureSource([SourceText(context or f"c{n}", 0, len(text), text) for n, text in texts])
