"""Text for people: numbers in words, styles and marks, cards and tables. What a person reads is made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.render.cards import DECISION_STYLES as DECISION_STYLES
    from guardrail.render.cards import DECISION_WORDS as DECISION_WORDS
    from guardrail.render.cards import MOST_CHARS as MOST_CHARS
    from guardrail.render.cards import VERDICT_STYLES as VERDICT_STYLES
    from guardrail.render.cards import Card as Card
    from guardrail.render.cards import Symbols as Symbols
    from guardrail.render.cards import answer_text as answer_text
    from guardrail.render.cards import case_card as case_card
    from guardrail.render.cards import decided as decided
    from guardrail.render.cards import finished_card as finished_card
    from guardrail.render.cards import print_table as print_table
    from guardrail.render.cards import symbols_for as symbols_for
    from guardrail.render.cards import table as table
    from guardrail.render.cards import verdict_words as verdict_words
    from guardrail.render.words import counted as counted
    from guardrail.render.words import duration as duration
    from guardrail.render.words import one_line as one_line
    from guardrail.render.words import percent as percent
    from guardrail.render.words import score as score
    from guardrail.render.words import when as when

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
