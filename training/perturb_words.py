"""One word of a sentence replaced by another one that stands in such places elsewhere.

"The premium plan costs $49" for "The basic plan costs $49": no value, name or negation gives it away. What
may stand in a place is learnt from sentences: two words beside it, at least one of which carries meaning. The
other word may by chance say nearly the same; known synonyms and words of one stem are left out.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from guardrail.evidence.tokens import STOP_TERMS, stem, term_of
from training.changes import Change, replaced
from training.lexicon import SYNONYMS

KIND: Final = "word"
_WORD: Final = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)*|\d[\d.,]*|[^\w\s]")
_PLAIN: Final = re.compile(r"[a-z]{4,}\Z")
_ENDINGS: Final = ("ing", "ed", "ly", "s")
_LEAST: Final = 2  # times that a word is seen in a place
_MOST_FILLERS: Final = 40  # of a place, the most frequent ones
_BEGIN, _END = "^", "$"
_VAGUE: Final = frozenset(
    """
    able about actual already alternative also another best better certain common current different entire
    especially even existing extra famous final following former full further general good great high
    important just largely later like main major many mainly modern more most mostly much nearly new next
    notable often only other overall particular popular possible present previous primary quite rather real
    recent said same second several significant similar simple simply single small some specific still such
    then total true typical usual usually various very well whole
    """.split()  # noqa: SIM905
)
_ALIKE: Final = frozenset(
    frozenset((one, other)) for one, others in SYNONYMS.items() for other in others
)  # "film" and "movie"

_Place = tuple[str, str, str]


class Substitutes:
    """Which words stand in the same places, learnt from sentences."""

    def __init__(self, sentences: Iterable[str]) -> None:
        seen: dict[_Place, Counter[str]] = defaultdict(Counter)
        for sentence in sentences:
            words = _words(sentence)
            for at, (word, _) in enumerate(words):
                if _exchangeable(word):
                    for place in _places(words, at):
                        seen[place][word] += 1
        self._fillers: dict[_Place, tuple[str, ...]] = {}
        for place, counts in seen.items():
            often = [w for w, n in sorted(counts.items(), key=lambda c: (-c[1], c[0])) if n >= _LEAST]
            if len(often) > 1:
                self._fillers[place] = tuple(often[:_MOST_FILLERS])

    def replaced(self, sentence: str, random_: random.Random) -> Change | None:
        """``sentence`` with one of its words replaced, or None where no place of its is known."""
        words = _words(sentence)
        own = {stem(word) for word, _ in words}
        places = list(range(len(words)))
        random_.shuffle(places)
        for at in places:
            word, start = words[at]
            if not _exchangeable(word):
                continue
            found = [
                other
                for place in _places(words, at)
                for other in self._fillers.get(place, ())
                if stem(other) not in own and _ending(other) == _ending(word) and not _same(word, other)
            ]
            if found:
                other = random_.choice(found)
                return replaced(KIND, sentence, (start, start + len(word)), other)
        return None


def _words(sentence: str) -> list[tuple[str, int]]:
    return [(match.group(), match.start()) for match in _WORD.finditer(sentence)]


def _exchangeable(word: str) -> bool:
    return bool(_PLAIN.match(word)) and word not in _VAGUE and term_of(word) not in STOP_TERMS


def _places(words: Sequence[tuple[str, int]], at: int) -> Iterator[_Place]:
    """The two words around it, behind it, and before it, unless both carry no meaning."""

    def word(number: int) -> str:
        return words[number][0].lower() if 0 <= number < len(words) else _BEGIN if number < 0 else _END

    for side, one, other in (
        ("around", word(at - 1), word(at + 1)),
        ("behind", word(at + 1), word(at + 2)),
        ("before", word(at - 2), word(at - 1)),
    ):
        if _telling(one) or _telling(other):
            yield side, one, other


def _telling(word: str) -> bool:
    return word.isalpha() and len(word) > 2 and term_of(word) not in STOP_TERMS


def _ending(word: str) -> str:
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


def _same(word: str, other: str) -> bool:
    return frozenset((word, other)) in _ALIKE
