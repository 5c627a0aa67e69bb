"""Every word that says something of a claim's severity, in one dictionary: word -> marks.

A mark is a bit: of a reason, when the word is enough for it, or of what the word contributes. So rating a
claim takes one look-up for each of its words. The words themselves are those of ``severity_lexicon`` and of
``guardrail.values``, whose tables say how numbers, units, dates and currencies are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from guardrail.claims import severity_lexicon as lexicon
from guardrail.claims.severity_reasons import BIT, REASON_BITS
from guardrail.values.lexicon import MONTHS, NO_NAME, NO_NOUN, WEEKDAYS
from guardrail.values.numerals import ADVERBS, NUMBER_WORDS, ORDINALS, VULGAR

_NEXT: Final = 1 << REASON_BITS
CHATTER: Final = _NEXT
#: Medicine; with DIRECTION a clinical direction.
MEDICAL: Final = _NEXT << 1
DIRECTION: Final = _NEXT << 2
#: Makes the mention of a topic a direction.
MODAL: Final = _NEXT << 3
#: A time beside it is a deadline.
DUE: Final = _NEXT << 4
#: A phrase of ``PHRASES`` may stand around it.
PHRASE: Final = _NEXT << 5
#: A number, date or time may begin or end here.
SPOT: Final = _NEXT << 6
#: Together a permission, or a matter of safety: see the lexicon.
HANDLING: Final = _NEXT << 7
SURROUNDINGS: Final = _NEXT << 8
ADDRESSED: Final = _NEXT << 9
#: The topics: the bit of reason ``r`` is ``BIT[r] << TOPIC_SHIFT``.
TOPIC_SHIFT: Final = REASON_BITS + 10
#: The short names of weekdays in "Mon-Fri".
WEEKDAYS_SHORT: Final = frozenset({"mon", "tue", "wed", "thu", "fri", "sat", "sun"})
CLOCK_WORDS: Final = frozenset({"noon", "midday", "midnight"})
ARTICLES: Final = frozenset({"a", "an", "eine", "einer", "un", "une"})
#: Signs that say nothing; others may (a currency, a degree), but only beside a number.
_SIGNS: Final = ".,;:!?()[]{}\"'“”„«»‘’*_#|/\\-–—+=<>&…•~`@^$%€£¥°"

_Groups = dict[str, tuple[tuple[str, int], ...]]  # key -> what to look for, and its marks


def _split(phrases: str) -> list[str]:
    return [" ".join(phrase.split()) for phrase in phrases.split("|")]


def _marked() -> Iterable[tuple[str, int]]:
    """Every key phrase with its marks."""
    for reason, phrases in lexicon.KEYWORDS.items():
        for phrase in _split(phrases):
            yield phrase, BIT[reason]
    for reason, phrases in lexicon.TOPICS.items():
        for phrase in _split(phrases):
            yield phrase, BIT[reason] << TOPIC_SHIFT
    for phrase in _split(lexicon.CHATTER):
        yield phrase, CHATTER
    for marks, words in (
        (MEDICAL, lexicon.MEDICAL),
        (DIRECTION, lexicon.DIRECTIONS),
        (MODAL, lexicon.MODALS),
        (DUE, lexicon.DEADLINE_BEFORE),
        (HANDLING, lexicon.HANDLING),
        (SURROUNDINGS, lexicon.SURROUNDINGS),
        (ADDRESSED, lexicon.ADDRESSED),
        (SPOT, {*NUMBER_WORDS, *ADVERBS, *ORDINALS, *VULGAR, *ARTICLES}),
        (SPOT, {*MONTHS, *WEEKDAYS, *WEEKDAYS_SHORT, *CLOCK_WORDS}),
    ):
        for word in words:
            yield word, marks


def _key(words: list[str]) -> str:
    """The word by which a phrase is found: the longest, which is mostly the rarest."""
    return max((word for word in words if not word.endswith("*")), key=len)


def _build() -> tuple[dict[str, int], _Groups, _Groups]:
    """The dictionary; the stems by their first four letters; the phrases by their key word."""
    words: dict[str, int] = dict.fromkeys((*NO_NAME, *NO_NOUN, *_SIGNS), 0)
    stems: dict[str, list[tuple[str, int]]] = {}
    phrases: dict[str, list[tuple[str, int]]] = {}
    marked = list(_marked())
    for phrase, marks in marked:
        parts = phrase.split()
        if len(parts) > 1:
            key = _key(parts)
            text = f" {phrase[:-1]}" if phrase.endswith("*") else f" {phrase} "
            phrases.setdefault(key, []).append((text, marks))
            words[key] = words.get(key, 0) | PHRASE
        elif not phrase.endswith("*"):
            words[phrase] = words.get(phrase, 0) | marks
    for phrase, marks in marked:
        if phrase.endswith("*") and " " not in phrase:
            stem = phrase[:-1]
            stems.setdefault(stem[:4], []).append((stem, marks))
            for word in words:  # a word that is in the dictionary is not looked for among the stems
                if word.startswith(stem):
                    words[word] |= marks
    return (
        words,
        {head: tuple(group) for head, group in stems.items()},
        {key: tuple(group) for key, group in phrases.items()},
    )


WORDS, STEMS, PHRASES = _build()
