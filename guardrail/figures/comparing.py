"""What two figures of the sources decide: "A costs more than B", "the fastest of the three".

A figure is of a thing where its part of a sentence has the thing's words and none of the other's. Where each
thing has one figure of what is compared, and no other, the two decide; else nothing is sure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS, term_of, terms_of, words
from guardrail.figures.agreement import agrees, base, dimension, same_rate
from guardrail.figures.model import Day, Figure, Kind
from guardrail.figures.source import MANY, FigureSource, Sentence
from guardrail.figures.tables import COMPARATIVES, PRICING, SUPERLATIVES, alternatives, same_currency

_WORDS: Final = re.compile(rf"\b(?:{alternatives(COMPARATIVES)})\b", re.IGNORECASE)
_OF_MOST: Final[Mapping[str, Mapping[str, int]]] = {
    "expensive": {"money": 1},
    "costly": {"money": 1},
    "affordable": {"money": -1},
    "recent": {"date": 1, "clock": 1},
}
"""What "most" means of what, by what is measured; "least" means the contrary."""
MOST: Final = re.compile(
    rf"(?<!\bat )\b(?:(?P<end>most|least)\s(?P<of>{alternatives(_OF_MOST)})|{alternatives(SUPERLATIVES)})\b",
    re.IGNORECASE,
)
_LESS_OR_MORE: Final = rf"(?P<more>more\s|less\s)?(?P<word>{alternatives(COMPARATIVES)})"
_OF_TWO: Final = (
    re.compile(rf"\bthe\s{_LESS_OR_MORE}\s(?:of (?:the two|both)|one|option|choice|offer)\b", re.IGNORECASE),
    re.compile(
        rf"\bof the two\b[^.;:]{{1,60}}?\b{_LESS_OR_MORE}\b(?!\s[\w\s]{{0,20}}\bthan\b)", re.IGNORECASE
    ),
)
_UNLIMITED: Final = re.compile(
    r"\b(?:unlimited|limitless|without (?:any )?limits?|any number of"
    r"|(?:no|isn't any|is not any) (?:upper )?(?:limit|cap|maximum)"
    r"|as (?:many|much|often)\b(?P<of>[\w ]{0,30}?) as (?:you|they|one) (?:like|want|wish|please))",
    re.IGNORECASE,
)
_ONE_OF: Final = re.compile(r"\b(?:one of|among|some of) (?:our |its |their |the )?$", re.IGNORECASE)
_ALONE: Final = re.compile(r"(?:most|least)$", re.IGNORECASE)
_GROUP_ENDS: Final = re.compile(r"\b(?:is|are|was|were|costs?|takes?|of|in|at|on|for|by|with)\b|[,.;:]")
_NO_LIMIT: Final = re.compile(
    rf"{_UNLIMITED.pattern}|\b(?:without (?:an? |any )?(?:limit|cap|restriction)|no (?:restrictions?|maximum)"
    r"|(?:not|n't|no longer|never) (?:restricted|limited|capped)|unrestricted|abolished|lifted|flat rate"
    r"|any number|however (?:many|much)|as (?:often|long|many|much) as|all (?:you|they) (?:like|want))\b",
    re.IGNORECASE,
)
"""What a source may say where there is no limit."""
_THAN: Final = re.compile(r"\bthan\b", re.IGNORECASE)
_ON_SIDE: Final = re.compile(r"\s(?:for|with|on|by|from)\s(?=[^.;:,]{1,50}\Z)", re.IGNORECASE)
_NONE: Final = re.compile(r"\b(?:none|no other|nothing|nobody|no one)\b", re.IGNORECASE)
_WITH: Final = re.compile(r"\b(?:compared (?:with|to)|unlike)\b([^,;]{1,80})[,;]", re.IGNORECASE)
_REACH: Final = 60  # characters from a comparative to "than"
_STOP: Final = re.compile(r"[;:]|,\s|\b(?:but|because|while|whereas|although|so|and|which)\b", re.IGNORECASE)
_AMOUNT: Final = frozenset(map(term_of, ("number", "amount", "quantity", "limit")))
_SAYING: Final = frozenset(map(term_of, (*PRICING, "take", "last", "weigh", "measure", "have", "include")))
_PRICED: Final = frozenset(map(term_of, PRICING))
_NEAR: Final = 6  # sentences
_CENTRES: Final = 2  # of them, beside which others are looked at
_BESIDE: Final = 3
_FIELDS: Final = 2  # semicolons of a line that tells a record
_ANY: Final = "any"
_CLOCK: Final = "clock"
_COUNTED: Final = 3  # words behind a figure that say what it counts
_NEXT: Final = 24  # characters behind "the most" that say of what
_FEWEST: Final = 2  # others, that one is the most of


class Contest(NamedTuple):
    """A comparison of a claim as the sources decide it: its words, the figures of the one and the other
    thing, in which sentence the first stands (None: both are the claim's own), whether the claim is so, and
    whether that is sure."""

    start: int
    end: int
    first: Figure
    second: Figure
    number: int | None
    so: bool
    sure: bool


class _Held(NamedTuple):
    """A figure of a sentence with the terms of its part, and all that the sentence has."""

    figure: Figure
    number: int
    scope: frozenset[int]
    said: frozenset[int]


_Share = tuple[float, int, int]
"""How much of a thing's words a figure's part has, and how many of the claim's its part and its sentence."""


def compares(text: str) -> bool:
    """Whether a text may compare: cheaper than to look."""
    return any(each.search(text) for each in (MOST, _WORDS, _UNLIMITED))


def compares_two(claim: Sentence) -> bool:
    """Whether a claim compares one thing with another."""
    return _sides(claim) is not None


def contest(claim: Sentence, source: FigureSource, near: Sequence[int]) -> Contest | None:
    """The comparison of a claim, if it makes one that figures of the sources decide."""
    said = _sides(claim)
    if said is None:
        of_two = _OF_TWO[0].search(claim.text) or _OF_TWO[1].search(claim.text)
        most = of_two or MOST.search(claim.text)
        if most is None or claim.denials % 2 or _ONE_OF.search(claim.text, 0, most.start()):
            return None
        first = _terms(claim, 0, most.start()) or _terms(claim, most.end(), len(claim.text))
        ways = _ways([*(of_two["more"] or "").split(), of_two["word"]]) if of_two else ways_of_most(most)
        if of_two and most.re is _OF_TWO[1]:
            first = _terms(claim, most.start(), most.start("word"))
        return _among_all(claim, most.span(), ways, first - _SAYING, source, near)
    start, end, ways, first, second, *_ = said
    if _NONE.search(claim.text, 0, start):  # "none is heavier than A": that is the heaviest
        return _among_all(claim, (start, end), ways, second, source, near)
    if claim.denials % 2:
        return None
    if (within := _within(claim, said)) is not None:
        return within
    held = list(_all_held(source, near))
    decided = [
        found
        for measure in dict.fromkeys(measure_of(each.figure) for each in held)
        if (way := way_of(ways, measure))
        and (found := _decided(held, measure, (first, second), way, claim.terms))
    ]
    measured = {measure_of(f) for f in claim.figures if claim.is_difference(f) and f.kind is not Kind.PERCENT}
    measured = measured or ({"money"} if _PRICED & claim.terms else set())
    decided = [each for each in decided if not measured or measure_of(each[0].figure) in measured]
    if _ANY in ways and not measured:  # what is more is told by a word that both have, or the one
        decided = [each for each in decided if _alike(*each[:2], said.of)]
    if not decided or len({so for _, _, so, _ in decided}) > 1:
        return None
    one, other, so, sure = decided[0]
    return Contest(start, end, one.figure, other.figure, one.number, so, sure and len(decided) == 1)


def _of_one_sort(mine: _Held, other: _Held, telling: frozenset[int]) -> bool:
    """Whether another thing has a word of the one's name ("plan"), or stands beside it in its sentence."""
    if mine.number == other.number:
        return not mine.scope.isdisjoint(other.scope)
    return not telling.isdisjoint(other.scope - _SAYING)


def limited(
    claim: Sentence, source: FigureSource, near: Sequence[int]
) -> tuple[int, int, int, Figure] | None:
    """Where a claim says that there is no limit to what the sources have a figure for, the sentence with it,
    and the figure; None where a sentence near says what the claim says."""
    said = _UNLIMITED.search(claim.text)
    if said is None or (claim.denials - Sentence(said[0]).denials) % 2:
        return None
    stop = _STOP.search(claim.text, said.end())
    behind = claim.text[said.end() : stop.start() if stop else None]
    begun = claim.text[_begun(claim, said.start()) : said.start()]
    # "as many books as you like", "unlimited storage", "storage is unlimited"
    of = _naming(said["of"] or "")[:2] or _naming(behind)[:2] or _naming(begun)[-2:]
    told = [number for number in near[:_NEAR] if not source.terms(number).isdisjoint(of)]
    freed = [n for n in told if _NO_LIMIT.search(source.texts[n].text)]
    for number in told:
        sentence = source.sentence(number)
        for figure in sentence.figures[:MANY]:
            behind = " ".join(sentence.text[figure.end : figure.end + _NEXT].split()[:_COUNTED])
            clause = behind.partition(",")[0] if figure.kind in (Kind.NUMBER, Kind.QUANTITY) else ""
            if figure.bound.direction < 0 and figure.kind not in (Kind.DATE, Kind.TIME):
                clause = sentence.text[: figure.end].rpartition(";")[2] + " " + clause
            if figure.name or terms_of(clause).isdisjoint(of):
                continue
            # Where one thing has a limit and another none, that counts which has more of the claim's words.
            shared = len(source.terms(number) & claim.terms)
            if all(len(source.terms(n) & claim.terms) < shared for n in freed):
                return said.start(), said.end(), number, figure
    return None


def _naming(text: str) -> list[int]:
    """The terms of the words that may name what there is no limit to."""
    return [term for _, term, _ in words(text) if term not in STOP_TERMS and term not in _AMOUNT]


def _all_held(source: FigureSource, near: Sequence[int]) -> Iterator[_Held]:
    """The figures of the sentences near a claim, and of those beside the nearest: what is compared mostly
    stands side by side, and a claim has the words of one of them only."""
    beside = (n + step for n in near[:_CENTRES] for step in range(-_BESIDE, _BESIDE + 1))
    ids = {source.texts[n].context_id for n in near[:_CENTRES]}
    around = (n for n in beside if 0 <= n < len(source.texts) and source.texts[n].context_id in ids)
    for number in dict.fromkeys((*near[:_NEAR], *around)):
        yield from _held(source, number)


def _within(claim: Sentence, said: _Sides) -> Contest | None:
    """The comparison where the claim has a figure of what is compared on either side."""
    ours, theirs = (
        [f for f in claim.figures if start <= f.start < end and not claim.is_difference(f) and not f.name]
        for start, end in said.spans
    )
    for one in ours if len(ours) == 1 else ():
        way = way_of(said.ways, measure_of(one))
        alike = [f for f in theirs if measure_of(f) == measure_of(one) and _comparable(one, f)]
        if way and len(alike) == 1 and not (one.bound.direction or alike[0].bound.direction):
            size, against = size_of(one), size_of(alike[0])
            if size is not None and against is not None:
                so = (size - against) * way > 0
                return Contest(said.start, said.end, one, alike[0], None, so, sure=True)
    return None


class _Sides(NamedTuple):
    """The words that compare, the direction by what is measured, the terms of either side alone, where both
    sides are, and of what there is more: "more storage than"."""

    start: int
    end: int
    ways: Mapping[str, int]
    first: frozenset[int]
    second: frozenset[int]
    spans: tuple[tuple[int, int], tuple[int, int]]
    of: frozenset[int]


_MOST_COMPARATIVES: Final = 16  # of a claim that are looked at, each in the length of the claim


def _sides(claim: Sentence) -> _Sides | None:
    """What a claim compares."""
    text = claim.text
    for found in islice(_WORDS.finditer(text), _MOST_COMPARATIVES):
        than = _THAN.search(text, found.end(), found.end() + _REACH)
        against = _WITH.search(text[: found.start()])
        if any(figure.start <= found.start() < figure.end for figure in claim.figures):
            continue  # the limit of a figure: "more than ten days"
        if than is not None:
            stop = _STOP.search(text, than.end())
            last = stop.start() if stop else len(text)
            spans = (_begun(claim, found.start()), found.start()), (than.end(), last)
        elif against is not None:
            spans = (against.end(), found.start()), (against.start(1), against.end(1))
        else:
            continue
        words = found, *(_WORDS.finditer(text, found.end(), than.start() if than else found.end() + _REACH))
        if than is not None and _ON_SIDE.match(text, found.end(), than.start()):
            spans = (found.end(), than.start()), spans[1]  # "you pay less for A than for B"
        first, second = (_terms(claim, *span) for span in spans)
        if first - second and second - first:
            end = than.end() if than else found.end()
            ways = _ways([word[0] for word in words])
            of = _terms(claim, found.end(), than.start()) if than else frozenset[int]()
            return _Sides(found.start(), end, ways, first - second, second - first, spans, of)
    return None


def _begun(claim: Sentence, end: int) -> int:
    """Where the clause begins that ends there and has a word."""
    stops = [0, *(match.end() for match in _STOP.finditer(claim.text, 0, end))]
    return next((start for start in reversed(stops) if _terms(claim, start, end)), 0)


def _ways(words: Sequence[str]) -> dict[str, int]:
    """The directions of comparatives, the last of which says most: "less expensive"."""
    *before, last = (COMPARATIVES[word.casefold()] for word in words)
    sign = 1
    for ways in before:
        sign *= ways.get(_ANY, 1)
    return {measure: sign * way for measure, way in last.items()}


def ways_of_most(found: re.Match[str]) -> Mapping[str, int]:
    """Which way a superlative that ``MOST`` finds points, by what is measured."""
    if not found["of"]:
        return SUPERLATIVES[found[0].casefold()]
    sign = 1 if found["end"].casefold() == "most" else -1
    return {measure: sign * way for measure, way in _OF_MOST[found["of"].casefold()].items()}


def way_of(ways: Mapping[str, int], measure: str) -> int:
    """+1 where more of what is measured is meant, -1 for less; 0 where it can't be, as of "more" of days."""
    return ways.get(measure, 0 if measure in ("date", _CLOCK) else ways.get(_ANY, 0))


def _terms(claim: Sentence, start: int, end: int) -> frozenset[int]:
    return frozenset(term for at, term in claim.words if start <= at < end) & claim.terms


def measure_of(figure: Figure) -> str:
    """What is compared: times of day apart from durations, counts by what they count."""
    if figure.kind is Kind.TIME:
        return _CLOCK
    measure = dimension(figure)
    return f"{measure} {figure.unit or figure.noun or ''}" if measure == "number" else measure


def _held(source: FigureSource, number: int) -> Iterator[_Held]:
    """The figures of a sentence that can be compared, each with what its part says."""
    sentence = source.sentence(number)
    figures = [f for f in sentence.figures[:MANY] if not f.name and f.upper is None and f.last is None]
    for measure in dict.fromkeys(map(measure_of, figures)):
        alike = [f for f in figures if measure_of(f) == measure]
        told = [source.terms(number)] if len(alike) == 1 else sentence.said_beside(alike)
        if sentence.text.count(";") >= _FIELDS:
            told = [_of_field(sentence, figure) for figure in alike]
        for figure, scope in zip(alike, told or (), strict=False):
            if size_of(figure) is not None:
                yield _Held(figure, number, scope, source.terms(number))


def _of_field(sentence: Sentence, figure: Figure) -> frozenset[int]:
    """What a record that is told in a line says of one of its figures: its label, and the field."""
    text = sentence.text
    start, end = text.rfind(";", 0, figure.start), text.find(";", figure.end)
    label = text.find(":")
    within = (t for at, t in sentence.words if at < label or (start <= at and (at < end or end < 0)))
    return frozenset(within) & sentence.terms


def size_of(figure: Figure) -> float | None:
    """The amount that is compared; None where a figure has none, or several."""
    if figure.kind is Kind.DATE:
        day = figure.days[0] if figure.days else Day()
        return None if day.year is None else day.year * 400.0 + (day.month or 0) * 32 + (day.day or 0)
    if figure.kind is Kind.TIME:
        return figure.values[0] if len(figure.values) == 1 else None
    return base(figure)[0][0] if figure.values else None


def _decided(
    held: Sequence[_Held],
    measure: str,
    things: tuple[frozenset[int], frozenset[int]],
    way: int,
    matter: frozenset[int],
) -> tuple[_Held, _Held, bool, bool] | None:
    """The figures of two things by one measure, whether the first is more (``way`` +1) or less (-1), and
    whether that is sure; None where either has none or several. Of several of a thing, the one beside which
    most of the claim's terms stand, its ``matter``."""
    held = [each for each in held if measure_of(each.figure) == measure]
    said = frozenset[int]().union(*(each.scope for each in held))
    first, second = (thing & said for thing in things)
    if not first or not second:
        return None
    # What is said of both tells neither: "the tram takes …, the bus takes …".
    first, second = (
        mine.difference(*(each.scope for each in held if other <= each.scope)) or mine
        for mine, other in ((first, second), (second, first))
    )
    ours: list[tuple[_Share, _Held]] = []
    theirs: list[tuple[_Share, _Held]] = []
    for each in held:
        share, other = len(each.scope & first) / len(first), len(each.scope & second) / len(second)
        if share != other:
            near = len(each.scope & matter), len(each.said & matter)
            (ours if share > other else theirs).append(((max(share, other), *near), each))
    our, their = _only(ours), _only(theirs)
    if our is None or their is None:
        return None
    (share, one), (other_share, other_one) = (our[0][0], our[1]), (their[0][0], their[1])
    if not _comparable(one.figure, other_one.figure):
        return None
    size, against = size_of(one.figure) or 0.0, size_of(other_one.figure) or 0.0
    limits = one.figure.bound.direction or other_one.figure.bound.direction
    sure = share == other_share == 1.0 and not limits
    return one, other_one, (size - against) * way > 0, sure


def _alike(one: _Held, other: _Held, of: frozenset[int]) -> bool:
    """Whether it is plain that both figures are of what there is more of."""
    if of:
        return not of.isdisjoint(one.scope | other.scope)
    return not one.scope.isdisjoint(other.scope) or one.number == other.number


def _only(found: Sequence[tuple[_Share, _Held]]) -> tuple[_Share, _Held] | None:
    """The one figure of a thing, of those whose part has most of its words."""
    most = max((share for share, _ in found), default=(0.0, 0, 0))
    best = [each for share, each in found if share == most]
    alike = best and all(size_of(each.figure) == size_of(best[0].figure) for each in best)
    return (most, best[0]) if alike else None


def _comparable(one: Figure, other: Figure) -> bool:
    same = one.kind is not Kind.MONEY or same_currency(one.unit or "", other.unit or "")
    return same and same_rate(one, other)


def _among_all(
    claim: Sentence,
    span: tuple[int, int],
    ways: Mapping[str, int],
    first: frozenset[int],
    source: FigureSource,
    near: Sequence[int],
) -> Contest | None:
    """ "A is the cheapest": against all figures of the sort that sentences say the same of. ``span`` is where
    the claim says so, ``first`` what it says it of. Against one other thing alone it is decided only where it
    is plain what is compared, and that A isn't so; there may be more of them."""
    held, word = list(_all_held(source, near)), claim.text[span[0] : span[1]].casefold()
    measures = dict.fromkeys(measure_of(each.figure) for each in held)
    plain = len([each for each in measures if way_of(ways, each)]) == 1 and (
        _ANY not in ways or (_PRICED & claim.terms and "money" in measures)
    )
    behind = _GROUP_ENDS.split(claim.text[span[1] : span[1] + _NEXT])[0]
    group = frozenset[int]() if word.endswith("than") else _terms(claim, span[1], span[1] + len(behind))
    for measure in measures:
        way = way_of(ways, measure)
        alike = [each for each in held if measure_of(each.figure) == measure] if way else []
        telling = first & frozenset[int]().union(*(each.scope for each in alike))
        own = _only([((1.0, 0, 0), e) for e in alike if telling <= e.scope]) if telling else None
        if own is None:
            continue
        mine = own[1]
        if _ALONE.search(word) and not group <= mine.said:
            continue  # "the most popular", whatever it costs
        others = [e for e in alike if not telling <= e.scope and _comparable(mine.figure, e.figure)]
        others = [e for e in others if group & mine.said <= e.said]
        # A row of a table has other things of the same one beside it.
        others = [e for e in others if e.number != mine.number] or others
        if not others:
            continue
        best = max(others, key=lambda e: way * (size_of(e.figure) or 0.0))
        so = way * ((size_of(mine.figure) or 0.0) - (size_of(best.figure) or 0.0)) >= 0
        stated = [n for n in near[:_NEAR] if word in source.texts[n].text.casefold()]
        if any(telling <= source.terms(n) and best.scope - mine.scope - source.terms(n) for n in stated):
            return None  # a source says so of the one, or says why not
        one_other = len(others) < _FEWEST
        if one_other and (so or not plain or not _of_one_sort(mine, best, telling)):
            continue
        of = _terms(claim, span[1], span[1] + _NEXT) if _ANY in ways else frozenset[int]()
        told = any(agrees(figure, mine.figure) for figure in claim.figures)
        if so or told or _alike(mine, best, of):
            sure = not one_other or mine.number == best.number
            return Contest(*span, mine.figure, best.figure, mine.number, so, sure=sure)
    return None
