"""Text for people: numbers in words, styles and marks, cards and tables. What a person reads is made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.render.cards import Card, answer_text, claim_rows, finished_card, told_first, verdict_words
    from guardrail.render.cases import MOST_CHARS, case_card
    from guardrail.render.styles import (
        DECISION_STYLES,
        DECISION_WORDS,
        VERDICT_STYLES,
        Symbols,
        decided,
        symbols_for,
    )
    from guardrail.render.tables import print_table, table
    from guardrail.render.words import counted, duration, one_line, percent, score, visible, when

__all__ = [
    "DECISION_STYLES",
    "DECISION_WORDS",
    "MOST_CHARS",
    "VERDICT_STYLES",
    "Card",
    "Symbols",
    "answer_text",
    "case_card",
    "claim_rows",
    "counted",
    "decided",
    "duration",
    "finished_card",
    "one_line",
    "percent",
    "print_table",
    "score",
    "symbols_for",
    "table",
    "told_first",
    "verdict_words",
    "visible",
    "when",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.render.cards": (
                "Card",
                "answer_text",
                "claim_rows",
                "finished_card",
                "told_first",
                "verdict_words",
            ),
            "guardrail.render.cases": ("MOST_CHARS", "case_card"),
            "guardrail.render.styles": (
                "DECISION_STYLES",
                "DECISION_WORDS",
                "VERDICT_STYLES",
                "Symbols",
                "decided",
                "symbols_for",
            ),
            "guardrail.render.tables": ("print_table", "table"),
            "guardrail.render.words": (
                "counted",
                "duration",
                "one_line",
                "percent",
                "score",
                "visible",
                "when",
            ),
        },
    )
