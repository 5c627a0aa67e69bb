"""Negation, antonyms and strength: small words that turn a sentence round."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from guardrail.evidence.tokens import stem, term_of, term_of_stem
from guardrail.judges.local.antonyms import ANTONYMS

NEGATORS: Final = frozenset(
    term_of(word)
    for word in """
    not no non never without neither nor none nobody nothing nowhere cannot except hardly barely scarcely fail
    lack refuse deny unable exclude instead unless avoid forbid forbidden prohibit banned
    """.split()  # noqa: SIM905
)
LIMITS: Final = frozenset(
    term_of(word)
    for word in "later more less fewer sooner earlier greater only just doubt matter".split()  # noqa: SIM905
)
_DENYING_SIGN: Final = re.compile("≠|=\u0338|!=|≢|∉")
_STRONG: Final = frozenset(
    term_of(word)
    for word in """
    all every always only never must entirely completely solely guarantee none any exclusively
    """.split()  # noqa: SIM905
)
_NO, _NOT, _OR, _WHETHER = (term_of(word) for word in ("no", "not", "or", "whether"))
_FIRST: Final = term_of("1")
_GOES_ON: Final = frozenset(
    term_of(word)
    for word in "but and i you he she it we they there this that these those".split()  # noqa: SIM905
)
_OWNERS: Final = frozenset(
    term_of(word)
    for word in "my your his her its our their the a".split()  # noqa: SIM905
)
_NEGATIVE_PREFIXES: Final = ("un", "in", "im", "il", "ir", "non", "dis")


def negates(term: int) -> bool:
    """Whether a word negates."""
    return term in NEGATORS


def denies_at(terms: Sequence[int], i: int) -> bool:
    """Whether a text's word negates where it stands: not in "no later than", "not only", "my no. 1", and
    not where it answers a question: "no but it has"."""
    term, after = terms[i], terms[i + 1] if i + 1 < len(terms) else None
    if term not in NEGATORS or after in LIMITS or (i == 0 and term == _NO and after in _GOES_ON):
        return False
    return not (term == _NO and after == _FIRST and i > 0 and terms[i - 1] in _OWNERS)


def left_open(terms: Sequence[int]) -> int | None:
    """The word by which a text leaves open whether something is so: "whether or not", "may or may not"."""
    for i in range(2, len(terms)):
        if terms[i] == _NOT and terms[i - 1] == _OR and terms[i - 2] == _WHETHER:
            return _WHETHER
        if terms[i] == _NOT and i > 2 and terms[i - 2] == _OR and terms[i - 1] == terms[i - 3]:
            return terms[i - 1]
    return None


def negations(terms: Sequence[int]) -> int:
    """How many words of a text negate where they stand."""
    return sum(denies_at(terms, i) for i in range(len(terms)))


def denying_signs(text: str, start: int = 0, end: int | None = None) -> int:
    """How many signs of ``text[start:end]`` deny: "≠" is no word."""
    return len(_DENYING_SIGN.findall(text, start, len(text) if end is None else end))


def absolutes(claim: frozenset[int], source: frozenset[int]) -> int:
    """How many words of the claim leave no exception where the source does not say so ("all", "only")."""
    return len((claim & _STRONG) - source)


def opposition(
    claim_words: Sequence[str], claim: Sequence[int], source: Sequence[int], skipped: frozenset[int]
) -> tuple[int, int] | None:
    """``(claim token, source token)`` that say the opposite, or None.

    A word counts as opposed where its antonym stands in the source, and not itself, and where the claim
    does not have the antonym too. ``claim_words`` are the surfaces of ``claim``; ``skipped`` are tokens
    of it that others judge.
    """
    said, claimed = frozenset(source), frozenset(claim)
    for i, word in enumerate(claim_words):
        if i in skipped or claim[i] in said:
            continue
        for other in opposites(word):
            if other in said and other not in claimed:
                return i, source.index(other)
    return None


@lru_cache(maxsize=16_384)
def opposites(word: str) -> tuple[int, ...]:
    """The terms of the words that exclude ``word``: from the list, and by negative prefixes ("safe",
    "unsafe")."""
    stemmed = stem(word)
    found = sorted(ANTONYMS.get(stemmed, ()))
    if len(stemmed) > 3 and stemmed.isalpha():
        found += [prefix + stemmed for prefix in _NEGATIVE_PREFIXES]
        found += [
            stemmed.removeprefix(prefix)
            for prefix in _NEGATIVE_PREFIXES
            if stemmed.startswith(prefix) and len(stemmed) > len(prefix) + 3
        ]
    return tuple(term_of_stem(other) for other in found)
