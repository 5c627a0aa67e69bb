"""Whose figure is it: claims that give one thing what the sources give another.

"The Pro plan is $12" has every word and figure of "Basic costs $12. Pro costs $29.", and is wrong. A figure
belongs to what its sentence names, or else the heading, the list item or the sentences before it. Where a
claim names what stands with none of the sentences that have its figure, but with another figure of the
sort, the claim is doubted; it is at odds with the source only where both sentences name their things.

Names are what tells things apart best. Words without a capital do so if they stand in one part of the
sources only, and at its beginning.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS, term_of, terms_of, words
from guardrail.figures.agreement import agrees, of_a_sort
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.tables import FILLERS

if TYPE_CHECKING:
    from guardrail.figures.source import FigureSource, Sentence

_SILENT: Final = STOP_TERMS | frozenset(
    map(term_of, FILLERS | frozenset(("yes", "no", "please", "thanks", "sure", "which", "whose")))
)
_PLACING: Final = frozenset(  # before a name that is not a subject
    map(term_of, ("from", "in", "on", "at", "to", "by", "near", "after", "before", "since", "until"))
)
_MOST_SENTENCES: Final = 2_000  # of sources whose things are told apart
_MOST_FIGURES: Final = 6_000  # of them, a tenth of a millisecond each
_BACK: Final = 12  # sentences before one that may name what it speaks of
_RECORD: Final = 6  # sentences of a paragraph that are all of what its first one names
_AHEAD: Final = 2  # words before a name that may be the subject
_HEADING: Final = 10  # words
_LEAD: Final = 5  # words of a line or of the first sentence of an item that names what follows
_MOST: Final = 200  # sentences with other figures of the sort
_MOST_HOLDING: Final = 32
_FEW: Final = 12  # up to which a number that counts nothing says little
_CODE: Final = 6  # characters of an identifier that is a value, such as an order number,
_CODE_DIGITS: Final = 4  # or digits
_MISREAD: Final = 2  # characters in which a code differs from one that it is taken for
_MOST_VALUES: Final = 3  # of a claim that says the like of one or two things,
_OF_UNNAMED: Final = 2  # and of one that names nothing
_BRIEF: Final = 12  # words of a claim that says one thing of one thing
_PLAIN: Final = 7  # level of a heading without marks; Markdown has six
_LEADING: Final = 8  # of a line that ends with a colon
_KEYED: Final = frozenset((Kind.IDENTIFIER, Kind.PHONE, Kind.EMAIL, Kind.URL, Kind.VERSION))
_PLURAL: Final = re.compile(r"\w+[^\Wsui]s|\w*(?:children|people|men)")
_SINGULAR: Final = re.compile(r"\s(?:\w+ly\s)?(?:is|was|has|\w+[^\Wsui]s)\b")
_ITEM: Final = re.compile(r"\s*(?:[-*•·–|>]|\(?\d{1,3}[.)]\s)")
_BOLD: Final = re.compile(r"\*\*[^*]+\*\*:?\Z")
_MARKED: Final = ("#", "**", "- **", "* **")
_ENDS: Final = (".", "!", "?", "…", "。")
_BEGINS: Final = re.compile(r"[.!?\"“#*|•]")
_WITHIN: Final = re.compile(r"[  \-–]{0,2}|['’]s |\s(?:of the|of|the|and|&|de|van|von)\s|\. ?")

Name = frozenset[int]
"""The terms of a name; those of things that are named alike are shared."""
Scope = frozenset[int]
"""The terms of what a sentence may speak of."""


class Owned(NamedTuple):
    """That a claim's figure is another thing's. ``thing`` is how the claim or the question names its own,
    beside which the sentence ``number`` has another ``figure``; None for a name, which only stands elsewhere.
    ``owner`` names whose it is, if that is sure."""

    thing: str
    number: int
    figure: Figure | None
    owner: str = ""


class _Named(NamedTuple):
    """A name in a text."""

    start: int
    end: int
    terms: Name


class _Rival(NamedTuple):
    number: int
    figure: Figure
    scope: Scope
    said: Scope
    """What the sentence itself speaks of, and what stands above it."""


class _Places(NamedTuple):
    """The sentences ``holding`` a claim's figure, what each of them may speak of, and the rivals."""

    holding: Sequence[int]
    scopes: Sequence[Scope]
    rivals: Sequence[_Rival]


class Things:
    """What the sentences of a source speak of. Read-only once built, so threads may share it."""

    def __init__(self, source: FigureSource) -> None:
        self._source = source
        few = len(source.texts) <= _MOST_SENTENCES and not source.has_more_figures_than(_MOST_FIGURES)
        count = len(source.texts) if few else 0
        self._tokens = [source.sentence(n).spelled for n in range(count)]
        self._lower: Counter[int] = Counter()
        self._capital = self._find_capitals()
        self._names = [
            self._names_in(source.texts[n].text, self._tokens[n], source.sentence(n).figures)
            for n in range(count)
        ]
        self._subject = [self._has_subject(n) for n in range(count)]
        self._surely = [
            led and not self._names[n][0].terms <= self._openings for n, led in enumerate(self._subject)
        ]
        self._first: list[int] = []
        self._item: list[bool] = []
        self._heads: list[Scope] = []
        self._find_parts()
        self._scopes: dict[int, Scope] = {}
        self._naming: dict[int, list[Name]] = defaultdict(list)
        self._parts: dict[int, set[int]] = defaultdict(set)
        self._figures: dict[Kind, list[tuple[int, Figure, Figure]]] = defaultdict(list)
        for n in range(count):
            for name in {named.terms for named in self._names[n]}:
                for term in name:
                    self._naming[term].append(name)
            for term in self._said(n):
                self._parts[term].add(self._first[n])
            for figure in source.sentence(n).figures:
                self._figures[figure.kind].append((n, figure, _plain(figure)))

    # ------------------------------------------------------------------------------- names and parts

    def _find_capitals(self) -> frozenset[int]:
        """The terms that are written with a capital where not every word is; fills ``_lower``."""
        capital: Counter[int] = Counter()
        openings: set[int] = set()
        for n, tokens in enumerate(self._tokens):
            text = self._source.texts[n].text
            leads = "\n" in self._source.texts[n].before and (
                len(tokens) <= _LEAD or text.startswith(_MARKED)
            )
            end = 0
            for at, (start, term, word) in enumerate(tokens):
                begins = at == 0 or _BEGINS.search(text, end, start) is not None
                end = start + len(word)
                if term in _SILENT or word[0].isdigit():
                    continue
                if word[0].islower():
                    self._lower[term] += 1
                elif leads or not begins or (word.isupper() and len(word) > 1):
                    capital[term] += 1
                else:
                    openings.add(term)
        self._openings = frozenset(t for t in openings if not self._lower[t] and not capital[t])
        return frozenset(term for term, times in capital.items() if 2 * times >= self._lower[term])

    def _names_in(
        self, text: str, tokens: Sequence[tuple[int, int, str]], figures: Sequence[Figure]
    ) -> list[_Named]:
        """The names of a text: capitals in a row, with numbers that name ("Line 7") and identifiers."""
        found: list[_Named] = []
        at = 0
        for start, term, word in tokens:
            while at < len(figures) and figures[at].end <= start:
                at += 1
            within = at < len(figures) and figures[at].start <= start
            known = word[0].isupper() and (term in self._capital or term in self._openings)
            if not (figures[at].name if within else known):
                continue
            end = start + len(word)
            if found and _WITHIN.fullmatch(text, found[-1].end, start):
                found[-1] = _Named(found[-1].start, end, found[-1].terms | {term})
            else:
                found.append(_Named(start, end, frozenset((term,))))
        return found

    def _has_subject(self, n: int) -> bool:
        """Whether a sentence begins with a name: what follows is of that."""
        if not self._names[n] or self._source.sentence(n).opens_with_pronoun:
            return False
        ahead = [term for start, term, _ in self._tokens[n] if start < self._names[n][0].start]
        return len(ahead) <= _AHEAD and _PLACING.isdisjoint(ahead)

    def _find_parts(self) -> None:
        """Where the part of each sentence begins, a paragraph or a list item, and what stands above it."""
        texts = self._source.texts
        above: list[tuple[int, Scope, int]] = []
        first, is_item = 0, False
        for n, tokens in enumerate(self._tokens):
            text, line = texts[n].text.strip(), "\n" in texts[n].before
            starts = n == 0 or texts[n - 1].context_id != texts[n].context_id
            item = _ITEM.match(text) is not None and not text.startswith("**")
            ended = n > 0 and texts[n - 1].text.rstrip("*_ ").endswith(_ENDS)
            if starts or texts[n].before.count("\n") > 1 or (line and (item or not ended)):
                first, is_item = n, item
            ends = n + 1 == len(self._tokens) or "\n" in texts[n + 1].before
            level = _level(text, len(tokens), item=item) if (line or starts) and ends else 0
            if not level and ends and text.endswith(":"):
                level = _LEADING
            if starts:
                above = []
            elif not level and first == n and not item and above and above[-1][0] == _LEADING:
                above = above if above[-1][2] == n - 1 else above[:-1]
            while level and above and above[-1][0] >= level:
                above.pop()
            self._first.append(first)
            self._item.append(is_item)
            self._heads.append(frozenset[int]().union(*(terms for _, terms, _ in above)))
            if level:
                above.append((level, self._source.sentence(n).terms, n))

    def _before(self, n: int, led: Sequence[bool], stops: Callable[[int], bool]) -> Scope:
        """What a sentence may speak of: its own words, those above it and those of the sentences before it
        in its part, back to the one before which it ``stops()``; ``led`` are those that have a subject."""
        found = self._said(n)
        if self._item[n] or (n - self._first[n] < _RECORD and not led[n]):
            found |= self._source.sentence(self._first[n]).terms
        for at in range(n, max(0, n - _BACK), -1):
            texts = self._source.texts
            leans = self._source.sentence(at).opens_with_pronoun
            if at == self._first[at] and not (leans and texts[at - 1].context_id == texts[at].context_id):
                break
            if stops(at):
                break
            found |= self._source.sentence(at - 1).terms
        return found

    def _said(self, n: int) -> Scope:
        return self._source.sentence(n).terms | self._heads[n]

    def _strictly(self, n: int) -> Scope:
        """The same back to the nearest sentence that has a subject."""
        found = self._scopes.get(n)
        if found is None:
            found = self._scopes[n] = self._before(n, self._surely, self._surely.__getitem__)
        return found

    def _loosely(self, n: int, others: frozenset[int]) -> Scope:
        """The same back to a sentence of ``others`` before one that has a name."""
        passed = False

        def stops(at: int) -> bool:
            nonlocal passed
            passed = passed or (bool(self._names[at]) and not self._source.sentence(at).opens_with_pronoun)
            return passed and at - 1 in others

        return self._before(n, self._subject, stops)

    # ------------------------------------------------------------------------------ what names stand with

    def _telling(self, name: Name) -> Name:
        """The terms of a name that no other thing's name has: of "Maritime Museum" the first."""
        shared = {
            term
            for term in name
            if any(not name <= other and other - name for other in self._naming.get(term, ()))
        }
        return name - shared

    def _stands(self, name: Name, scope: Scope) -> bool:
        telling = self._telling(name)
        return not telling.isdisjoint(scope) if telling else name <= scope

    @cached_property
    def _all(self) -> Scope:
        return frozenset(self._parts)

    def names_of(self, text: str, figures: Sequence[Figure]) -> list[_Named]:
        """The names of a claim or question that the sources have, too. A number alone is none."""
        tokens = words(text)
        numbers = {term for _, term, word in tokens if word[0].isdigit()}
        first = tokens[0][1] if tokens else 0
        common = bool(self._lower[first]) or not (first in self._capital or first in self._openings)
        return [
            named
            for named in self._names_in(text, tokens, figures)
            if not named.terms <= numbers
            and not (common and named.terms == {first})
            and self._stands(named.terms, self._all)
        ]

    def owned(self, claim: Sentence, figure: Figure, holding: Iterable[int], asked: str) -> Owned | None:
        """Whether a claim's figure, which the sentences ``holding`` have, is another thing's there. What a
        claim does not name is ``asked`` of, or goes before it."""
        count = len(self._tokens)
        if not count or not _is_value(figure):
            return None
        holding = [n for n in holding if n < count][:_MOST_HOLDING]
        exactly = [n for n in holding if self._source.sentence(n).exactly(figure) is not None]
        holding = exactly or holding
        plain = _plain(figure)
        alternatives = ((n, f) for n, f, bare in self._figures[figure.kind] if _is_alternative(plain, bare))
        others = list(islice(alternatives, _MOST))
        if not holding or not others:
            return None
        apart = frozenset(n for n, _ in others)
        rivals = [_Rival(n, other, self._strictly(n), self._said(n)) for n, other in others]
        places = _Places(holding, [self._loosely(n, apart) for n in holding], rivals)
        start, end = _part_of(claim, figure)
        values = [f for f in claim.figures if f is figure or not f.name]
        if len(values) > _MOST_VALUES:
            return None
        named = [
            each
            for each in self.names_of(claim.text, claim.figures)
            if not any(f.start <= each.end and each.start <= f.end for f in values)
        ]
        first, last = claim.clause(figure)
        mine = [each for each in named if max(start, first) <= each.start < min(end, last)]
        mine = mine or [each for each in named if start <= each.start < end]
        if mine:
            return self._by_name(claim, figure, mine, places, claim.text)
        if len(values) > _OF_UNNAMED:
            return None
        told = frozenset(term for at, term in claim.words if start <= at < end) - _SILENT
        found = self._by_word(told, places, claim.text)
        if found is None and (names := self.names_of(asked, ())):
            # Another document may well say of everything what this one says of the thing that is asked about.
            of = self._source.texts
            ids = {of[n].context_id for n in holding if not any(t in self._naming for t in self._said(n))}
            rivals = [rival for rival in rivals if ids <= {of[rival.number].context_id}]
            return self._by_name(claim, figure, names, places._replace(rivals=rivals), asked)
        if found is None and claim.opens_with_pronoun:
            about = terms_of(asked) - _SILENT
            found = self._by_word(about, places, asked)
        return found

    def _by_name(
        self, claim: Sentence, figure: Figure, named: Sequence[_Named], places: _Places, text: str
    ) -> Owned | None:
        """Whether a name stands with a rival that has all names which stand with the figure, too."""
        holding, scopes, rivals = places
        present = [each for each in named if any(self._stands(each.terms, scope) for scope in scopes)]
        absent = [each for each in named if each not in present]
        for rival in rivals if absent else ():
            given = next((each for each in absent if self._stands(each.terms, rival.scope)), None)
            if (
                given is not None
                and not given.terms.issuperset(term for _, term, _ in words(rival.figure.text))
                and all(self._stands(each.terms, rival.scope) for each in present)
                and all(
                    self._names_another(scope, rival, given, claim) or self._alike(n, rival, given, claim)
                    for n, scope in zip(holding, scopes, strict=True)
                )
            ):
                owner = "" if text is not claim.text else self._owner(claim, figure, given, rival, holding)
                return Owned(_shown(text, given), rival.number, rival.figure, owner)
        return None

    def _names_another(self, scope: Scope, rival: _Rival, given: _Named, claim: Sentence) -> bool:
        """Whether what has the claim's figure names something that neither claim nor rival does."""
        left = scope - claim.terms - (rival.said if self._stands(given.terms, rival.said) else rival.scope)
        return any(term in self._naming and term not in self._openings for term in left)

    def _alike(self, n: int, rival: _Rival, given: _Named, claim: Sentence) -> bool:
        """Whether a sentence begins with another name where the rival's begins with the claim's."""
        if not (self._subject[n] and self._subject[rival.number]):
            return False
        own, theirs = self._names[n][0].terms, self._names[rival.number][0].terms
        return self._telling(own).isdisjoint(claim.terms) and not theirs.isdisjoint(given.terms)

    def _owner(
        self, claim: Sentence, figure: Figure, given: _Named, rival: _Rival, holding: Sequence[int]
    ) -> str:
        """Whose the claim's figure is, if that is sure: the rival's own sentence names the claim's thing and
        says as much of the claim as each sentence with the claim's figure, which begins with another name.
        Those for whom a thing has a figure of its own ("Seniors pay 9 euros") are no other thing: claims may
        call them anything."""
        sentence = self._source.sentence(rival.number)
        vague = figure.kind is Kind.NUMBER and not figure.noun
        if vague or not self._stands(given.terms, rival.said) or not of_a_sort(figure, rival.figure):
            return ""
        if claim.denies_unlike(sentence):
            return ""
        taken, owner = rival.said | claim.terms, ""
        for n in holding:
            own = (each for each in self._names[n] if not self._stands(each.terms, taken))
            first = next(own, None) if self._subject[n] else None
            backing = self._source.backing(figure, n)
            if first is None or backing is None or first.start > backing.start:
                return ""
            if _is_group(self._source.texts[n].text, first, self._openings) and not _is_group(
                claim.text, given, self._openings
            ):
                return ""
            if not claim.terms & self._source.sentence(n).terms <= rival.said:
                return ""
            owner = owner or _shown(self._source.texts[n].text, first)
        return owner

    def _by_word(self, told: Scope, places: _Places, text: str) -> Owned | None:
        """The same by words that stand in one part only, at its beginning or above it."""
        alone = frozenset(term for term in told if len(self._parts.get(term, ())) == 1)
        lacking = alone.difference(*places.scopes)
        if not lacking or any(not alone.isdisjoint(self._top(n)) for n in places.holding):
            return None
        for rival in places.rivals:
            if found := lacking & rival.scope & self._top(rival.number):
                return Owned(_written(text, found), rival.number, rival.figure)
        return None

    def _top(self, n: int) -> Scope:
        """What stands above a sentence's part, and in its first sentence ahead of any figure."""
        first = self._source.sentence(self._first[n])
        ahead = next((f.start for f in first.figures if not f.name), len(first.text))
        return self._heads[n].union(term for at, term in first.words if at < ahead)

    # ----------------------------------------------------------------------------- names and codes as values

    def parted(self, claim: Sentence) -> Owned | None:
        """Whether the two names of a brief claim stand together nowhere, but each with another one: "X is
        managed by Ann", who manages Y."""
        named = {each.terms: each for each in self.names_of(claim.text, claim.figures)}
        told = any(not figure.name for figure in claim.figures)
        if len(named) != 2 or told or len(claim.tokens) > _BRIEF or claim.denials:
            return None
        one, other = named.values()
        places = [
            [n for n in range(len(self._tokens)) if self._stands(each.terms, self._source.sentence(n).terms)]
            for each in (one, other)
        ]
        both = one.terms | other.terms
        others = frozenset(
            n for n, names in enumerate(self._names) if any(not each.terms <= both for each in names)
        )
        for each, numbers in ((other, places[0]), (one, places[1])):
            if not numbers or len(numbers) > _MOST_HOLDING:
                return None
            if any(self._stands(each.terms, self._loosely(n, others)) for n in numbers):
                return None
        return Owned(_shown(claim.text, one), places[1][0], None)

    def misread(self, figure: Figure) -> tuple[int, Figure] | None:
        """The code of the sources that one which they lack is nearly: with other characters, or exchanged."""
        for number, other, _ in self._figures[figure.kind] if _is_code(figure) else ():
            if len(other.key) == len(figure.key) and _shape(other) == _shape(figure):
                wrong = sum(a != b for a, b in zip(figure.key, other.key, strict=True))
                if 0 < wrong <= _MISREAD:
                    return number, other
        return None


def _level(text: str, count: int, *, item: bool) -> int:
    """The level of a heading, from 1; 0 for any other line."""
    if text.startswith("#"):
        return min(len(text) - len(text.lstrip("#")), _PLAIN)
    if item:
        return 0
    if text.endswith(":"):
        return _LEADING
    plain = count <= _HEADING and not text.endswith(_ENDS) and ";" not in text and "|" not in text
    return _PLAIN if plain or _BOLD.match(text) else 0


def _part_of(claim: Sentence, figure: Figure) -> tuple[int, int]:
    """The stretch of a claim that is of a figure, where it has several of a kind."""
    alike = [f for f in claim.figures if f.kind is figure.kind and f.name == figure.name]
    spans = claim.parts(alike) if len(alike) > 1 else None
    return spans[alike.index(figure)] if spans else (0, len(claim.text))


def _is_value(figure: Figure) -> bool:
    """Whether a figure says something of a thing, rather than name one or say little."""
    if figure.kind in _KEYED:
        return figure.kind is not Kind.IDENTIFIER or _is_code(figure)
    if figure.name:
        return False
    if figure.kind is Kind.NUMBER:
        return figure.values[0] > (1 if figure.noun else _FEW) and figure.text[0] != "."
    return True


def _is_code(figure: Figure) -> bool:
    """Whether a figure is an order number or the like: "AMX-2750", rather than "AX18"."""
    digits = sum(map(str.isdecimal, figure.key))
    return figure.kind is Kind.IDENTIFIER and (len(figure.key) >= _CODE or digits >= _CODE_DIGITS)


def _shape(figure: Figure) -> str:
    """How letters and digits take turns in a code: "a-9" for "AMX-2750"."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", figure.text))


def _is_alternative(figure: Figure, other: Figure) -> bool:
    """Whether a thing that has one figure, of two ``_plain`` ones, lacks the other."""
    if figure.kind in _KEYED:
        alike = figure.kind is not Kind.IDENTIFIER or (_is_code(other) and _shape(figure) == _shape(other))
        return alike and not agrees(figure, other)
    if (figure.noun or other.noun) and not (figure.noun and other.noun) and not (figure.unit or other.unit):
        figure, other = replace(figure, noun=None), replace(other, noun=None)
    return of_a_sort(figure, other) and not agrees(figure, other)


def _plain(figure: Figure) -> Figure:
    """A figure without limits, and without its end. "Second floor" names nothing."""
    if figure.bound is Bound.EXACT and figure.upper is None and figure.kind is not Kind.ORDINAL:
        return figure
    named = figure.name and figure.kind is not Kind.ORDINAL
    return replace(figure, bound=Bound.EXACT, upper=None, name=named)


def _is_group(text: str, name: _Named, openings: Name) -> bool:
    """Whether a name is a plural that only ever opens sentences, as words for people do. "Siemens pays" is
    one thing's."""
    plural = name.terms <= openings and _PLURAL.fullmatch(_shown(text, name).lower())
    return bool(plural) and not _SINGULAR.match(text, name.end)


def _shown(text: str, name: _Named) -> str:
    return text[name.start : name.end].removesuffix("'s").removesuffix("’s")


def _written(text: str, terms: Scope) -> str:
    """The first word of ``terms`` as the text writes it."""
    return next(word for _, term, word in words(text) if term in terms)
