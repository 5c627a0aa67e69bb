"""Figures that a sentence has too, but of each other's things: "188 offices and 52 bedrooms" of "52 offices
and 188 bedrooms".

The words around a figure tell what it is of, the nearer the more. A single figure is not looked at: in other
words it may stand nearer to another one's thing. That two of them do so at once says that they are exchanged.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from operator import itemgetter
from typing import Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS
from guardrail.figures.agreement import agrees, dimension
from guardrail.figures.model import Figure
from guardrail.figures.source import MEETING, FigureSource, Sentence

_REACH: Final = 6  # words on either side that tell what a figure is of
_REACH_CHARS: Final = 80
_NEARNESS: Final = 0.8  # what a word counts less for each word between it and the figure
_BEYOND: Final = 0.3  # of a word behind a comma or "and"
_OTHER_SIDE: Final = 0.5  # of a word that stands on the figure's other side
_STOP: Final = 0.3  # of "at", "the"
_LEAST: Final = 0.1  # of what stands around a figure, that it must share more with the other's place
_MOST_OWN: Final = 8  # figures of a claim
_MOST_OTHERS: Final = 24  # figures of a sentence

_START: Final = itemgetter(0)
_Around = tuple[Mapping[int, float], Mapping[int, float]]
"""The terms before a figure and behind it, each with what it counts."""


class _Place(NamedTuple):
    """A figure where a sentence has it."""

    number: int
    figure: Figure
    around: _Around


def exchanged(
    claim: Sentence, found: Sequence[Figure], source: FigureSource, numbers: Sequence[int]
) -> dict[Figure, tuple[int, Figure]]:
    """Those of the claim's ``found`` figures that sentences say of another one's thing and the other way
    round, each with the sentence and its figure for that thing. ``numbers`` are those of the sentences."""
    mine = [figure for figure in found if not figure.name][:_MOST_OWN]
    pairs = [pair for pair in combinations(mine, 2) if _of_one_sort(*pair)]
    wrong: dict[Figure, tuple[int, Figure]] = {}
    if not pairs:
        return wrong
    around = {figure: _around(claim, figure) for pair in pairs for figure in pair}
    places = {
        figure: [
            _Place(number, other, _around(source.sentence(number), other))
            for number in numbers
            for other in islice(source.sentence(number).figures, _MOST_OTHERS)
            if agrees(figure, other)
        ]
        for figure in around
    }
    own = {f: max((_likeness(around[f], p.around) for p in places[f]), default=0.0) for f in around}

    def gained(figure: Figure, place: _Place) -> float:
        """How much more of what stands around a figure stands around another one's place."""
        whole = sum(sum(side.values()) for side in around[figure])
        return (_likeness(around[figure], place.around) - own[figure]) / whole if whole else 0.0

    for one, other in pairs:
        swapped = [
            (a, b)
            for a in places[one]
            for b in places[other]
            if _beside(a, b) and not (claim.denials - source.sentence(a.number).denials) % 2
        ]
        if not swapped:
            continue

        # Both must gain: one alone may, where the other's noun is left out or a subject stands near one only.
        gain, first, second = max(
            ((min(gained(one, b), gained(other, a)), a, b) for a, b in swapped), key=lambda found: found[0]
        )
        if gain >= _LEAST:
            wrong.setdefault(one, (second.number, second.figure))
            wrong.setdefault(other, (first.number, first.figure))
    return wrong


def _of_one_sort(one: Figure, other: Figure) -> bool:
    return dimension(one) == dimension(other) and not agrees(one, other) and not agrees(other, one)


def _beside(one: _Place, other: _Place) -> bool:
    """Whether two figures are of one sentence."""
    return one.number == other.number and one.figure is not other.figure


def _around(sentence: Sentence, figure: Figure) -> _Around:
    """The nearest terms on both sides, those within other figures aside, with what they count."""
    tokens, words = sentence.tokens, sentence.words
    first = bisect_left(tokens, figure.start, key=_START)
    after = bisect_left(tokens, figure.end, first, key=_START)
    before = reversed(tokens[max(0, first - _REACH) : first])
    behind = tokens[after : after + _REACH]
    sides: list[dict[int, float]] = []
    for side in (before, behind):
        counted: dict[int, float] = {}
        for distance, (start, term) in enumerate(side):
            between = sentence.text[start : figure.start] or sentence.text[figure.end : start]
            if len(between) > _REACH_CHARS:
                break
            weight = _NEARNESS**distance * (_STOP if term in STOP_TERMS else 1.0)
            weight *= _BEYOND if MEETING.search(between) else 1.0
            at = bisect_left(words, start, key=_START)
            if at < len(words) and words[at][0] == start:  # not of a figure
                counted[term] = max(weight, counted.get(term, 0.0))
        sides.append(counted)
    return sides[0], sides[1]


def _likeness(one: _Around, other: _Around) -> float:
    """How much of what stands around one figure stands around the other, too."""
    return sum(
        min(weight, max(other[side].get(term, 0.0), _OTHER_SIDE * other[1 - side].get(term, 0.0)))
        for side in (0, 1)
        for term, weight in one[side].items()
    )
