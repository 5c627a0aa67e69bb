"""Does a claim name somebody or something? Capitals tell, save in headlines and, singly, in German.

The rules are those of ``guardrail.values.names``, cut down to yes or no: within a name of several words there
is nearly always one that is capitalised without standing at the beginning of a sentence.
"""

from __future__ import annotations

from typing import Final

from guardrail.claims.severity_words import WEEKDAYS_SHORT
from guardrail.values.lexicon import MONTHS, NO_NAME, SUFFIXES, TITLES, WEEKDAYS, words
from guardrail.values.units import CURRENCY_WORDS, SIGNS, UNITS

_SENTENCE_ENDS: Final = frozenset('.!?:;…"“”„«»(*•-–—|#>[。！？')
_NOT_NAMES: Final = (
    NO_NAME | MONTHS.keys() | WEEKDAYS.keys() | WEEKDAYS_SHORT | CURRENCY_WORDS.keys() | TITLES | SUFFIXES
)
_NOT_EXACTLY: Final = SIGNS.keys() | UNITS.keys()
_GERMAN: Final = words("""
    der die das und ist nicht mit für ein eine wird sie werden ab vor nach zum zur den dem des bei auf von zu
    sind kann muss innerhalb mindestens höchstens pro beträgt
""")
_ROMAN: Final = words("II III IV VI VII VIII IX XI XII XIII XIV XV XVI")
_MIN_HEADLINE: Final = 5  # words
_MAX_HEADLINE: Final = 60


def names_something(tokens: list[str], lows: list[str], capitals: list[int]) -> bool:
    """Is there a proper name among the tokens? Acronyms alone are none.

    ``lows`` are the tokens in lower case, ``capitals`` the indices of those that are not so already. Both
    lists end in an empty token.
    """
    nouns: bool | None = None  # not looked yet
    for i in capitals:
        token = tokens[i]
        if not token[0].isupper():
            continue
        if (i == 0 or tokens[i - 1] in _SENTENCE_ENDS) and not _abbreviated(tokens, lows, i):
            if not _named_at_the_beginning(tokens, lows, i):
                continue
        elif not _proper(token, lows[i]):
            continue
        elif nouns is not False:
            if nouns is None:
                nouns = not _GERMAN.isdisjoint(lows) and _capitalises_nouns(lows)
            if nouns and not (_capitalised(tokens, lows, i + 1) or _capitalised(tokens, lows, i - 1)):
                continue
        return len(capitals) * 4 < len(tokens) or not _is_headline(tokens)
    return False


def _capitalised(tokens: list[str], lows: list[str], i: int) -> bool:
    return tokens[i][:1].isupper() and _proper(tokens[i], lows[i])


def _proper(token: str, low: str) -> bool:
    """May this capitalised word be a name wherever it stands?"""
    if low in _NOT_NAMES or token in _NOT_EXACTLY or len(token) < 2:
        return False
    if not low.isalpha():
        token, low = _head(token, low)
        if low in _NOT_NAMES or len(token) < 2 or not token.isalpha():
            return False
    return not token.isupper()


def _head(token: str, low: str) -> tuple[str, str]:
    """The word that counts in "Paris's", "Don't", "Swiss-based", "Jean-Luc"."""
    word, mark, tail = low.partition("'")
    if mark:
        if len(word) == 1 and len(tail) > 2:
            return token[2:], tail  # O'Neal
        return ("", "") if tail == "t" else (token[: len(word)], word)
    head, _, tail = low.partition("-")
    if len(head) == 1 and token[2:3].isupper():
        return token.replace("-", "", 1), head + tail  # X-Men; but C-H is an acronym
    return token[: len(head)], head


def _abbreviated(tokens: list[str], lows: list[str], i: int) -> bool:
    """The full stop before token ``i`` ends a title or an initial: "Dr. Smith", "J. Smith"."""
    if i < 2 or tokens[i - 1] != ".":
        return False
    before = tokens[i - 2]
    return lows[i - 2] in TITLES or (len(before) == 1 and before.isupper())


def _named_at_the_beginning(tokens: list[str], lows: list[str], i: int) -> bool:
    """A sentence's first word is a name when it is written like one: "McDonald", "Jean-Luc", "Vitamin C"."""
    token, following = tokens[i], tokens[i + 1]
    if not _proper(token, lows[i]):
        return False
    word, mark, tail = token.replace("’", "'").partition("'")
    if mark and tail == "s" and not word.isupper():
        return True
    if not word[1:].islower() and word[1:] and not word.isupper():
        head, hyphen, rest = word.partition("-")
        return head[1:] != head[1:].lower() or (bool(hyphen) and rest[:1].isupper())
    return following.partition("'")[0] in _ROMAN or (
        len(following) == 1 and following.isupper() and following not in {"I", "A"}
    )


def _capitalises_nouns(lows: list[str]) -> bool:
    """German writes every noun with a capital: single capitalised words say nothing there."""
    counted = lows[:400]
    return sum(low in _GERMAN for low in counted) * 12 > len(counted)


def _is_headline(tokens: list[str]) -> bool:
    """Nearly every longer word with a capital: a headline, in which capitals name nothing."""
    if len(tokens) > _MAX_HEADLINE:
        return False
    long = [token for token in tokens if len(token) > 3 and token[0].isalpha()]
    return len(long) >= _MIN_HEADLINE and sum(token[0].isupper() for token in long) * 4 > len(long) * 3
