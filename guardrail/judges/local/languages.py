"""Which texts are in a language that the verifier does not read.

Frequent words of English decide first: where there are enough of them, nothing else is asked. Other texts go
to ``py3langid``, which compares the likelihood of their letters in each language. Names, figures and texts of
a word or two tell no language; what stands beside them may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from guardrail.claims import phrases
from guardrail.evidence.index import EvidenceIndex

ENGLISH: Final = "en"
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ENGLISH_WORDS: Final = phrases.words("frequent_english")
_ENOUGH: Final = 0.1  # of the words
_FEWEST_WORDS: Final = 2
_MOST_CHARS: Final = 600  # of a text that are looked at
_DIFFERENCE: Final = 1.5
"""Log likelihood by which another language must lead, per square root of the text's bytes. With it and
``_OF_FEW`` none of 5,000 English sentences is called another language, and 87 % of 4,000 sentences from
manual pages in fifteen others, of which many are names, commands and English. English that is full of
foreign names ("Café Zürich serves brunch") may be."""
_OF_FEW: Final = 1.5  # what is added to it over the number of words
TOLD_APART: Final = frozenset(
    "ar bg bn ca cs da de el en es et eu fa fi fr gl he hi hr hu id it ja ko lt lv mk ms nb nl nn no pl "  # noqa: SIM905
    "pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur vi zh".split()
)
"""The languages that are told apart, by ISO 639 code. Small ones that resemble large ones would win too
easily over short texts."""
_MOST_CONTEXTS: Final = 20  # that are looked at


class Languages:
    """The languages that are read."""

    def __init__(self, read: Sequence[str] | None) -> None:
        """``read`` by ISO 639 code; None: texts are not told apart."""
        self._read = None if read is None else frozenset(read)

    def other(self, *texts: str) -> bool:
        """Whether the first of the texts that tells a language is in one that is not read; False where none
        tells.

        Linear in the first 600 characters of each; some tenths of a millisecond.
        """
        if self._read is None:
            return False
        told = (_is_other(text[:_MOST_CHARS], self._read) for text in texts)
        return next((other for other in told if other is not None), False)

    def other_contexts(self, evidence: EvidenceIndex) -> bool:
        """Whether most contexts, of the first twenty, are in languages that are not read, as far as their
        first passages tell."""
        told = [self.other(text) for text in _openings(evidence)]
        return sum(told) * 2 > len(told)


def _openings(evidence: EvidenceIndex) -> Iterator[str]:
    """The first passages of the first contexts."""
    passages = evidence.layout.passages
    starts = [n for n in range(len(passages)) if n == 0 or passages.context[n] != passages.context[n - 1]]
    for number in starts[:_MOST_CONTEXTS]:
        yield evidence.shown(passages.context[number])[passages.start[number] : passages.end[number]]


@lru_cache(maxsize=1024)
def _is_other(text: str, read: frozenset[str]) -> bool | None:
    """Whether a text is in a language that is not read; None where it doesn't tell."""
    words = _WORD.findall(text)
    if len(words) < _FEWEST_WORDS and text.isascii():
        return None
    if ENGLISH in read:
        english = sum(word.lower() in _ENGLISH_WORDS for word in words)
        if english and english >= _ENOUGH * len(words):
            return False
    said = " ".join(words)
    if said.isascii() and all(word[0].isupper() for word in words):  # names
        return None
    import py3langid  # its model is loaded where the first text is not plain English

    likelihood = dict(py3langid.rank(said))
    best = max(TOLD_APART & likelihood.keys(), key=lambda code: (likelihood[code], code))
    if best in read:
        return False
    lead = likelihood[best] - max(likelihood[code] for code in read if code in likelihood)
    return True if lead > (_DIFFERENCE + _OF_FEW / len(words)) * len(said.encode()) ** 0.5 else None
