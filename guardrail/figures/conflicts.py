"""Which figure a sentence has in the place of a claim's, where it speaks of the same.

What a claim says around a figure is its *frame*: terms, the nearer the heavier, and the figures beside it. A
sentence is at odds with the claim's figure where

- it says nearly all of the frame, as often denied as the claim;
- it has a figure of the same sort, or the same one as the opposite limit; of several, the words that tell
  the parts of the sentence from each other tell which it has for the claim's thing;
- the claim says most of what the sentence says around its figure, too.

Where one of these isn't plain there is no conflict: two figures that differ are mostly of two things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from guardrail.evidence.tokens import term_of
from guardrail.figures.agreement import agrees, compatible, complements, dimension, of_a_sort, opposed
from guardrail.figures.model import Figure, Kind
from guardrail.figures.source import MANY, FigureSource, Sentence
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
    spans, told = claim.parts(rivals), claim.told(rivals)
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
    if unfit or (claim.denials - sentence.denials) % 2:
        return None
    if own is not None and (sides := opposite_limits(claim, figure, sentence, own)) is not None:
        least = _SAID_BACK_OF_COMPLEMENT if complements(*sides) else _SAID_BACK
        told_back = _share_said_back(claim, sentence, own, sentence.terms) >= least
        return sentence.limited(own) if told_back else None
    sort = [other for other in sentence.figures if other is own or are_of_one_sort(figure, other)]
    told = sentence.told(sort) if any(of_a_sort(figure, other) for other in sort) else None
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
