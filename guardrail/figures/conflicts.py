"""Which figure a sentence has in the place of a claim's, where it speaks of the same.

What a claim says around a figure is its *frame*: terms, the nearer the heavier, and the figures beside it. A
sentence is at odds with the claim's figure where

- it says nearly all of the frame, as often denied as the claim;
- it has a figure of the same sort, or the same one as the opposite limit; of several, the words that tell
  the parts of the sentence from each other tell which it has for the claim's thing;
- the claim says most of what the sentence says around its figure, too.

Where one of these isn't plain there is no conflict: two figures that differ are mostly of two things. Two
that a sentence has too, but of each other's things, are *exchanged*.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from operator import itemgetter
from typing import Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS, term_of
from guardrail.figures.agreement import agrees, compatible, complements, dimension, of_a_sort, opposed
from guardrail.figures.model import Figure, Kind
from guardrail.figures.source import MANY, MEETING, FigureSource, Sentence
from guardrail.figures.tables import PRICING

FRAME_SAID: Final = 0.9
"""How much of its frame a sentence must say to be at odds with a claim's figure."""
_NEARNESS: Final = 0.93  # what a word counts less for each word between it and the figure
_ELSEWHERE: Final = 0.3  # of a word that stands by another figure of the same sort
_BESIDE: Final = 4  # other figures of a claim that tell what one is of
_FEWEST_WORDS: Final = 2  # around a figure, that tell what it is of
_SAID_BACK: Final = 0.7  # of what the sentence says around its own figure, that the claim must say
_FEW_WORDS: Final = 3  # of a claim, that must say more of it
_SAID_BACK_OF_FEW: Final = 0.85
_SAID_BACK_OF_COMPLEMENT: Final = 0.95  # where two limits part all there is
_LOCALITY: Final = 0.7  # what a word counts less there for each word between
_VAGUE: Final = ("up to", "until", "within")
_PRICING: Final = frozenset(map(term_of, PRICING))


@dataclass(frozen=True, slots=True)
class Frame:
    """What a claim says around a figure: terms and other figures, with weights that sum to 1. ``told`` are
    the terms of the figure's part of the claim, those of other figures included."""

    terms: dict[int, float]
    figures: tuple[tuple[Figure, float], ...]
    told: frozenset[int]

    def share_said(self, source: FigureSource, number: int) -> float:
        """How much of the frame a sentence says, 0..1."""
        terms = source.terms(number)
        share = sum(weight for term, weight in self.terms.items() if term in terms)
        if self.figures:
            sentence = source.sentence(number)
            share += sum(w for figure, w in self.figures if sentence.backing(figure) is not None)
        return share


def frame_of(claim: Sentence, figure: Figure) -> Frame:
    """The frame of a claim's figure."""
    rivals = [other for other in claim.figures if are_of_one_sort(figure, other)]
    spans, told = claim.parts(rivals), claim.said_beside(rivals)
    mine = rivals.index(figure)
    start, end = spans[mine] if spans else (0, len(claim.text))
    at = sum(begin < figure.start for begin, _ in claim.words)
    terms: dict[int, float] = {}
    for i, (begin, term) in enumerate(claim.words):
        if term in claim.terms and not figure.start <= begin < figure.end and _tells(figure, term):
            distance = at - 1 - i if i < at else i - at
            weight = _NEARNESS**distance * (1.0 if start <= begin < end else _ELSEWHERE)
            terms[term] = max(terms.get(term, 0.0), weight)
    beside = [
        (max(other.start - figure.end, figure.start - other.end, 0), other)
        for other in claim.figures
        if other is not figure and not other.name and start <= other.start < end
    ]
    beside.sort(key=lambda item: item[0])
    others = [
        (_without_own_rate(other), _NEARNESS ** (distance**0.5)) for distance, other in beside[:_BESIDE]
    ]
    total = sum(terms.values()) + sum(weight for _, weight in others) or 1.0
    return Frame(
        {term: weight / total for term, weight in terms.items()},
        tuple((other, weight / total) for other, weight in others),
        told[mine] if told else claim.terms,
    )


def are_of_one_sort(figure: Figure, other: Figure) -> bool:
    """Whether two figures of a text part it: each is said of something else."""
    return figure.kind is other.kind and dimension(figure) == dimension(other) and figure.name == other.name


def conflicting_figure(
    claim: Sentence, figure: Figure, frame: Frame, sentence: Sentence, own: Figure | None
) -> Figure | None:
    """The other figure that a sentence has for the same thing; None where it isn't plain that it has one.
    ``own`` is the sentence's figure that backs the claim's, if one does."""
    unfit = figure.name or len(frame.told) < _FEWEST_WORDS or len(sentence.figures) > MANY
    if unfit or claim.denies_unlike(sentence):
        return None
    if own is not None and (sides := opposite_limits(claim, figure, sentence, own)) is not None:
        least = _SAID_BACK_OF_COMPLEMENT if complements(*sides) else _SAID_BACK
        told_back = _share_said_back(claim, sentence, own, sentence.terms) >= least
        return sentence.limited(own) if told_back else None
    sort = [other for other in sentence.figures if other is own or are_of_one_sort(figure, other)]
    told = sentence.said_beside(sort) if any(of_a_sort(figure, other) for other in sort) else None
    if told is None or any(compatible(figure, other) for other in sentence.figures if other is not own):
        return None
    telling = [part.difference(*(t for t in told if t is not part)) for part in told]
    chosen = _part_of_the_thing(
        telling, frame.told, claim.around(figure), None if own is None else sort.index(own)
    )
    if chosen is None or not of_a_sort(figure, rival := sort[chosen]) or sentence.one_of_two(rival):
        return None
    if claim.is_difference(figure) and not sentence.may_be_difference(rival):
        return None
    if any(agrees(mine, rival) for mine in claim.figures):
        return None
    least = _SAID_BACK if len(frame.told) > _FEW_WORDS else _SAID_BACK_OF_FEW
    return rival if _share_said_back(claim, sentence, rival, told[chosen]) >= least else None


def opposite_limits(
    claim: Sentence, figure: Figure, sentence: Sentence, own: Figure
) -> tuple[Figure, Figure] | None:
    """Both figures with their limits, where these are opposite. "Up to" so long before something is no less
    than at least."""
    if claim.open is not None and sentence.open is not None and claim.open is not sentence.open:
        return None  # closed until then, and open from then on
    mine = replace(figure, bound=claim.limit(figure))
    theirs = replace(own, bound=sentence.limit(own, figure))
    before = claim.ahead(figure) or sentence.ahead(own)
    vague = before and any(f.text.casefold().startswith(_VAGUE) for f in (figure, own))
    return (mine, theirs) if opposed(mine, theirs) and not vague else None


def _part_of_the_thing(
    telling: Sequence[frozenset[int]], told: frozenset[int], clause: frozenset[int], own: int | None
) -> int | None:
    """Which of several figures a sentence says of what a claim says its own of, if it is another and plain.

    ``telling`` are the words that tell each figure's part from the others, ``told`` the claim's, ``clause``
    those of the figure's own clause. A sentence that has the claim's figure (``own``) must say it of
    something else: "adults pay 12 euros, children 5" against "children pay 12", where the clause has no less
    of the other's part. What stands in the first part may be said of all.
    """
    if own is None:
        shared = [len(terms & told) for terms in telling]
        most = max(shared)
        plain = len(telling) == 1 or (most and shared.count(most) == 1)
        return shared.index(most) if plain else None
    least = max(1, len(telling[own] & clause))
    others = [i for i, t in enumerate(telling) if i != own and t and t <= told and len(t & clause) >= least]
    elsewhere = telling[own] and (not telling[own] <= told if own == 0 else telling[own].isdisjoint(told))
    return others[0] if elsewhere and len(others) == 1 else None


def _share_said_back(claim: Sentence, sentence: Sentence, rival: Figure, part: frozenset[int]) -> float:
    """How much of what the sentence says around its figure, in its part, the claim says too, 0..1; the
    nearest words count most."""
    at = sum(begin < rival.start for begin, _ in sentence.words)
    first, last = sentence.clause(rival)
    whole = said = 0.0
    for i, (begin, term) in enumerate(sentence.words):
        if first <= begin < last and term in part and term in sentence.terms and _tells(rival, term):
            weight = _LOCALITY ** (at - 1 - i if i < at else i - at)
            whole += weight
            said += weight * (term in claim.terms)
    return said / whole if whole else 1.0


def _without_own_rate(figure: Figure) -> Figure:
    """A figure without its rate where that is a figure of its own: "500 mg every 6 hours"."""
    return replace(figure, per=None) if figure.per and " " in figure.per else figure


def _tells(figure: Figure, term: int) -> bool:
    """Whether a word says something beside a figure: "cost" says nothing of a price."""
    return figure.kind is not Kind.MONEY or term not in _PRICING


# ---------------------------------------------------------------------------------------- exchanged figures
#
# "188 offices and 52 bedrooms" of "52 offices and 188 bedrooms". The words around a figure tell what it is
# of, the nearer the more. A single figure is not looked at: in other words it may stand nearer to another
# one's thing. That two of them do so at once says that they are exchanged.

_REACH: Final = 6  # words on either side that tell what a figure is of
_REACH_CHARS: Final = 80
_NEXT_TO_IT: Final = 0.8  # what a word counts less for each word between it and the figure
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
            if a.number == b.number
            and a.figure is not b.figure
            and not claim.denies_unlike(source.sentence(a.number))
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
            weight = _NEXT_TO_IT**distance * (_STOP if term in STOP_TERMS else 1.0)
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
