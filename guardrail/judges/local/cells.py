"""A claim about a table, compared with the very cells that its words name.

A value that stands in some row supports no claim about another one, and verifier and search can hardly tell
the rows of a table apart. So the records that a claim names by their labels are looked up, and what it says
of them is compared with their own fields: a value of another record or column is in conflict with them.
"Cheapest", "only", "all", "none" and "three of them" are worked out over the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Final, NamedTuple

from guardrail.events import Span
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.shown import ShownTable
from guardrail.evidence.tokens import STOP_TERMS, term_of, words
from guardrail.figures import Bound, Figure, FigureCheck, Kind, State
from guardrail.figures.agreement import agrees, base, dimension
from guardrail.figures.comparing import OF_MOST, measure_of, size_of, way_of
from guardrail.figures.source import Sentence
from guardrail.figures.tables import CLOSED, COMPARATIVES, OPEN, SUPERLATIVES, alternatives
from guardrail.structure.tables import says_nothing, yes_or_no

_MOST_CELLS: Final = 2_000  # of all tables that claims are compared with
_MOST_TABLES: Final = 50
_MOST_FIGURES: Final = 12  # of a claim
_MOST_WORDS: Final = 12  # of a value that a claim may say
_MOST_PLACES: Final = 8  # of a word in a claim
_MOST_NAMED: Final = 8  # records of a claim
_MOST_HOLDERS: Final = 24  # of a value, beside which others of their columns are looked at
_NAMED: Final = 0.6  # of what tells a label from the others, that names it
_WEAK: Final = 0.4  # what a number or the word of a value counts in a label, beside other words
_HEADED: Final = 0.5  # the same of a header
_HINTED: Final = 0.3  # the same of a header, where nothing of the value's own header is named
_BRACKETED: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_OPENING: Final = frozenset(map(term_of, OPEN | CLOSED))
_IN_OTHER_WORDS: Final = {
    term_of(header): frozenset(map(term_of, said.split()))
    for headers, said in {
        "weight mass": "weigh heavy heavier heaviest light lighter lightest",
        "height": "tall taller tallest high",
        "length": "long longer longest short shorter shortest",
        "depth": "deep deeper deepest shallow shallower shallowest",
        "width": "wide wider widest broad narrow narrower narrowest",
        "thickness": "thick thicker thickest thin thinner thinnest",
        "size area": "large larger largest big bigger biggest small smaller smallest",
        "spacing distance": "apart wide wider widest",
        "price cost fee rate fare charge premium": "cost price pay charge cheap cheaper cheapest dearest",
        "duration": "last take long longer longest short shorter shortest",
        "departs departure departures dep": "leave depart",
        "arrives arrival arrivals arr": "arrive reach",
        "capacity seats places": "seat place hold fit large largest big biggest small smallest",
        "speed": "fast faster fastest slow slower slowest",
        "upper maximum max": "above exceed over most",
        "lower minimum min": "below under least",
        "founded built opened joined": "old older oldest new newer newest recent",
    }.items()
    for header in headers.split()
}
_SHUT: Final = frozenset(map(term_of, (*CLOSED, "off", "away", "absent", "unavailable")))
_PRESENT: Final = _OPENING | frozenset(
    map(term_of, ("there", "available", "unavailable", "present", "absent"))
)
_CODE: Final = re.compile(r"\b(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w+\b")
_ANSWERING: Final = re.compile(r"\s*(?:yes|no|correct|right)[,.;:!]\s*", re.IGNORECASE)
_AFTER: Final = re.compile(r"(?:after|within|in)\b", re.IGNORECASE)
_AMOUNTS: Final = (Kind.MONEY, Kind.QUANTITY, Kind.PERCENT, Kind.NUMBER)
_NO_VALUE: Final = frozenset("none no nil free".split())  # noqa: SIM905


class Cell:
    """A field of a record, read when it is first compared."""

    def __init__(self, header: str, text: str, context: int, span: Span) -> None:
        self.header = header
        self.text = text
        self.context = context
        self.span = span
        self.flag = yes_or_no(text)

    @cached_property
    def terms(self) -> frozenset[int]:
        """The terms of the header."""
        return _telling_terms(self.header)

    @cached_property
    def told(self) -> tuple[int, ...]:
        """The terms of the value, in order."""
        return tuple(term for _, term, _ in words(self.text))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the value."""
        return Sentence(self.text).figures

    @cached_property
    def open(self) -> bool | None:
        """Whether something is open, where the value says no more than that: hours, or "closed"."""
        if self.text.strip().casefold() in CLOSED or says_nothing(self.text):
            return False
        return True if self.figures and all(f.kind is Kind.TIME for f in self.figures) else None

    @cached_property
    def wordy(self) -> bool:
        """Whether the value has words beside its figures, and is no bare yes or no."""
        told = (term for _, term in Sentence(self.text).words)
        return self.flag is None and any(term not in STOP_TERMS for term in told)


@lru_cache(maxsize=4096)
def _telling_terms(header: str) -> frozenset[int]:
    return frozenset(term for _, term, _ in words(header)) - STOP_TERMS


@lru_cache(maxsize=1024)
def _figures_of_header(header: str) -> tuple[Figure, ...]:
    return Sentence(header).figures


class TableRow(NamedTuple):
    """A record, read."""

    label: str
    terms: tuple[int, ...]
    numbers: frozenset[int]  # those of the terms that are numbers
    codes: frozenset[str]  # "k4", in lower case
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class CellCheck:
    """What a claim says otherwise than the cell that it names.

    ``start`` and ``end`` are of what it says, code points of the claim; ``row`` and ``cell`` are the ones
    named; ``owner`` is the label of the record, or the header of the column, whose value the claim gives, if
    it is one's. ``sure`` is False where the claim may mean another cell.
    """

    start: int
    end: int
    row: str
    cell: Cell
    owner: str
    sure: bool
    figure: bool


class CellFindings(NamedTuple):
    """What the tables say of a claim: what it says ``otherwise``, what is surest first; the cells that have
    its figures for the very records that it names, by where the figures begin (None: a count of records); and
    in words, for the verifier, what was worked out and is so. ``several``: a table has all things named."""

    otherwise: Sequence[CellCheck]
    agreed: Mapping[int, Cell | None]
    told: str
    several: bool = False


class _WorkedOut(NamedTuple):
    """What is so of a whole column, in words, and where the figures of the claim begin that it bears out."""

    told: str
    figures: frozenset[int]


class TableText:
    """One table, read once for all claims of a response."""

    def __init__(self, table: ShownTable, context: int, text: str) -> None:
        self.rows = tuple(
            TableRow(
                record.label,
                *_label_terms(record.label),
                tuple(
                    Cell(field.header, text[slice(*field.value)], context, field.value)
                    for field in record.fields
                ),
            )
            for record in table.records
        )
        self.kind = frozenset(term for _, term, _ in words(table.kind))

    @cached_property
    def label_terms(self) -> Counter[int]:
        """In how many labels each term stands."""
        return Counter(term for row in self.rows for term in set(row.terms))

    @cached_property
    def value_terms(self) -> frozenset[int]:
        """The terms of values that are words."""
        return frozenset(t for row in self.rows for cell in row.cells if cell.wordy for t in cell.told)

    @cached_property
    def alike(self) -> tuple[TableRow, ...]:
        """The records that have a header in common with another one."""
        shared = {header for header, cells in self.columns.items() if len(cells) > 1}
        return tuple(row for row in self.rows if any(cell.header in shared for cell in row.cells))

    @cached_property
    def numbered(self) -> frozenset[TableRow]:
        """The records that only numbers tell from another one: "Tarka 3" and "Tarka 5"."""
        words_of = {row: frozenset(row.terms) - row.numbers for row in self.rows}
        times = Counter(words_of.values())
        return frozenset(row for row in self.rows if not words_of[row] or times[words_of[row]] > 1)

    @cached_property
    def columns(self) -> dict[str, list[tuple[TableRow, Cell]]]:
        """The cells below each header."""
        found: dict[str, list[tuple[TableRow, Cell]]] = {}
        for row in self.rows:
            for cell in row.cells:
                found.setdefault(cell.header, []).append((row, cell))
        return found

    @cached_property
    def header_terms(self) -> Counter[int]:
        """In how many headers each term stands."""
        return Counter(term for cells in self.columns.values() for term in cells[0][1].terms)


def _label_terms(label: str) -> tuple[tuple[int, ...], frozenset[int], frozenset[str]]:
    """The terms that name a record, the numbers among them, and codes; brackets name nothing."""
    bare = _BRACKETED.sub(" ", label)
    told = words(bare) or words(label)
    numbers = frozenset(term for _, term, word in told if word[0].isdigit())
    return tuple(term for _, term, _ in told), numbers, frozenset(_CODE.findall(bare.casefold()))


class Tables:
    """The tables of a response's contexts, kept beside its evidence."""

    def __init__(self, evidence: EvidenceIndex) -> None:
        self.tables: list[TableText] = []
        cells = 0
        for context, table in evidence.tables():
            cells += sum(len(record.fields) for record in table.records)
            if cells > _MOST_CELLS or len(self.tables) == _MOST_TABLES:
                break
            self.tables.append(TableText(table, context, evidence.shown(context)))


class _NamedRow(NamedTuple):
    """A record that a text names, with where."""

    row: TableRow
    at: int
    places: frozenset[int]  # the tokens that name it


@dataclass(frozen=True, slots=True)
class _ClaimTerms:
    """A claim in tokens, beside one table."""

    text: str
    tokens: tuple[tuple[int, int], ...]
    terms: frozenset[int]
    asked: frozenset[int]
    figures: tuple[Figure, ...]
    denies: bool


def check_cells(text: str, tables: Tables, lead_in: str = "", question: str = "") -> CellFindings:
    """A claim against the tables; linear in their cells."""
    if not tables.tables:
        return CellFindings((), {}, "")
    answering = _ANSWERING.match(text)
    sentence = Sentence(text)
    tokens = tuple((start, term) for start, term, _ in words(text))
    asked = frozenset(term for _, term, _ in words(f"{lead_in} {question}"))
    said = _ClaimTerms(
        text,
        tokens,
        frozenset(term for _, term in tokens),
        asked,
        sentence.figures[:_MOST_FIGURES],
        (sentence.denials - (answering is not None and "no" in answering[0].lower())) % 2 == 1,
    )
    found: list[tuple[int, CellCheck]] = []
    agreed: dict[int, dict[int, Cell | None]] = {}  # by table
    worked: list[_WorkedOut] = []
    several = False
    for number, table in enumerate(tables.tables):
        named, sure = _records_named(table, said, f"{lead_in} {question} {text}")
        several = several or (sure and len(named) > 1)
        checks: list[CellCheck] = []
        for each in _over_columns(table, said, named):
            if isinstance(each, CellCheck):
                checks.append(each if sure or not named else replace(each, sure=False))
            else:
                worked.append(each)
        checks += _of_named(table, said, named, sure=sure) if named else _of_no_record(table, said)
        odd = {each.start for each in checks}
        found += [(number, each) for each in checks]
        own = _agreed(table, said, [one.row for one in named])
        agreed[number] = {start: cell for start, cell in own.items() if start not in odd}
    # What one table has as the claim says it, another may have had otherwise: last year's prices.
    kept = [each for n, each in found if not any(each.start in agreed[m] for m in agreed if m != n)]
    backed = {start: cell for each in agreed.values() for start, cell in each.items()}
    backed |= {start: None for each in worked for start in each.figures}
    told = [each.told for each in worked]
    told += [
        f"{cell.header} {text[start:end]}."
        for start, end, cell in ((f.start, f.end, backed.get(f.start)) for f in said.figures)
        if cell is not None and cell.header and any(map(_bare, cell.figures))
    ]
    return CellFindings(
        sorted(kept, key=lambda each: (not each.sure, each.start)), backed, " ".join(told), several
    )


def _records_named(table: TableText, said: _ClaimTerms, with_question: str) -> tuple[list[_NamedRow], bool]:
    """The records that a claim speaks of, and whether that is sure: by their labels, by a word that only one
    label has, by what the question asks about, by being the cheapest, or by a value that only one has."""
    if named := _named(table, said.tokens, said.text):
        return named, True
    if named := _named_in_part(table, said.tokens):
        return named, False
    tokens = [(start, term) for start, term, _ in words(with_question)]
    if named := _named(table, tokens, with_question) or _named_in_part(table, tokens):
        return [one._replace(places=frozenset()) for one in named], False
    if named := _at_the_end(table, said, with_question):
        return named, False
    named = _named_by_values(table, said.tokens)
    return named, bool(named) and all(len(one.places) > 1 for one in named)


def _named_in_part(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[_NamedRow]:
    """The record whose label has words of a text that no other label, header or value has."""
    others = table.value_terms | table.kind | table.header_terms.keys() | STOP_TERMS
    found: list[_NamedRow] = []
    for row in table.alike:
        telling = {t for t in row.terms if table.label_terms[t] == 1 and t not in others} - row.numbers
        places = frozenset(number for number, (_, term) in enumerate(tokens) if term in telling)
        if places:
            found.append(_NamedRow(row, min(places), places))
    most = max((len(one.places) for one in found), default=0)
    best = [one for one in found if len(one.places) == most]
    return best if len(best) == 1 else []


def _at_the_end(table: TableText, said: _ClaimTerms, text: str) -> list[_NamedRow]:
    """The record that is said to be the cheapest, heaviest and so on, where one column tells."""
    ways = _end_of(text)
    columns = _ordered(table, said, ways) if ways and len(table.rows) > 1 else []
    if len(columns) != 1:
        return []
    best = max(amount for _, _, amount in columns[0])
    rows = [row for row, _, amount in columns[0] if amount == best]
    return [_NamedRow(rows[0], 0, frozenset())] if len(rows) == 1 else []


def _of_no_record(table: TableText, said: _ClaimTerms) -> Iterator[CellCheck]:
    """Values of a claim that stand in no record together, though each stands in one."""
    held = []
    for figure in said.figures:
        if not _counting(figure):
            rows = [
                (row, cell)
                for row in table.rows
                for cell in row.cells
                if _holds(cell, figure) and _of_its_unit(cell, figure)
            ]
            held += [(figure.start, figure.end, rows)] if rows else []
    for cells in table.columns.values():
        for _, cell in cells:
            place = _phrase(said.tokens, cell.told) if cell.wordy and cell.told[0] in said.terms else None
            if place is not None and not STOP_TERMS.issuperset(cell.told):
                rows = [(row, each) for row, each in cells if each.told == cell.told]
                start = said.tokens[place[0]][0]
                if not any(begin == start for begin, _, _ in held):
                    held.append((start, _end_of_word(said.text, said.tokens[place[1] - 1][0]), rows))
    if len(held) < 2 or len(held) > _MOST_NAMED:
        return
    sets = [{row.label for row, _ in rows} for _, _, rows in held]
    if set.intersection(*sets) or len({rows[0][1].header for _, _, rows in held}) < len(held):
        return
    fewest = min(range(len(held)), key=lambda at: len(sets[at]))
    row = held[fewest][2][0][0]
    for at, (start, end, rows) in enumerate(held):
        header = rows[0][1].header
        mine = next((cell for cell in row.cells if cell.header == header), None)
        if at != fewest and row.label not in sets[at] and mine is not None:
            yield CellCheck(start, end, row.label, mine, rows[0][0].label, False, False)


def _end_of_word(text: str, start: int) -> int:
    return next((at for at in range(start, len(text)) if not text[at].isalnum()), len(text))


def _agreed(table: TableText, said: _ClaimTerms, rows: Sequence[TableRow]) -> dict[int, Cell | None]:
    """The cells that have figures of the claim, by where these begin; None for what counts the records."""
    own = float(len(rows)) if len(rows) > 1 else 0.0
    found: dict[int, Cell | None] = {
        figure.start: None
        for figure in said.figures
        if _counting(figure)
        and (
            figure.values[0] == own
            or (figure.values[0] == len(table.rows) and _of_records(table, said, figure))
        )
    }
    for row in rows:
        for cell in row.cells:
            found |= {figure.start: cell for figure in said.figures if _holds(cell, figure)}
    return found


def _counting(figure: Figure) -> bool:
    return figure.kind is Kind.NUMBER and bool(figure.values) and figure.upper is None


def with_cells(checks: Sequence[FigureCheck], cells: CellFindings) -> tuple[FigureCheck, ...]:
    """The checks, where figures that the cells of the records named have are no longer absent, in conflict,
    left open or another thing's: a bare "112" below "Rate" is "€112". What was worked out over a column, as
    that a price is the lowest, is no longer left open either.
    """
    kept = [
        c
        for c in checks
        if not (cells.told and c.operands and c.figure.kind is Kind.NUMBER and not c.figure.values)
        and not (cells.several and c.owned is not None and c.owned.figure is None)
    ]
    for at, check in enumerate(kept):
        of_its_own = check.state is State.DERIVED or (
            check.state is State.CONFLICT and check.sentence is None
        )
        if check.figure.start in cells.agreed and not of_its_own:
            found = check if check.state is State.FOUND else replace(check, source=None, sentence=None)
            kept[at] = replace(found, state=State.FOUND, operands=(), owned=None)
    return tuple(kept)


def _named(table: TableText, tokens: Sequence[tuple[int, int]], text: str) -> list[_NamedRow]:
    """The records that a text names, each by most of what tells its label from the others, side by side."""
    codes = frozenset(_CODE.findall(text.casefold()))
    where: dict[int, list[int]] = {}
    for number, (_, term) in enumerate(tokens):
        places = where.setdefault(term, [])
        if len(places) < _MOST_PLACES:
            places.append(number)
    found: list[_NamedRow] = []
    for row in table.alike:
        if not row.codes <= codes:
            continue
        own = [term for term in dict.fromkeys(row.terms) if term not in STOP_TERMS] or list(row.terms)
        weak = row.numbers | table.value_terms
        weight = {term: (_WEAK if term in weak else 1.0) / table.label_terms[term] for term in own}
        held = [term for term in own if term in where]
        if row in table.numbered and not row.numbers.issubset(where):
            continue
        whole = sum(weight.values())
        telling = any(2 * table.label_terms[term] <= len(table.rows) or len(table.rows) == 1 for term in held)
        if not held or not telling or sum(weight[term] for term in held) < _NAMED * whole:
            continue
        near = _closest([where[term] for term in held], len(row.terms) + 2)
        if near:
            found.append(_NamedRow(row, min(near), frozenset(near)))
    kept = [one for one in found if not any(one.places < other.places for other in found)]
    kept.sort(key=lambda one: one.at)
    return kept if len(kept) <= _MOST_NAMED else []


def _named_by_values(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[_NamedRow]:
    """The one record that a text names by words that only it has: "the school nurse" of a list of staff."""
    found: list[_NamedRow] = []
    said = {term for _, term in tokens}
    for cells in table.columns.values():
        told = Counter(cell.told for _, cell in cells)
        for row, cell in cells:
            if told[cell.told] > 1 or not said.issuperset(cell.told) or not cell.wordy:
                continue
            if STOP_TERMS.issuperset(cell.told):
                continue
            place = _phrase(tokens, cell.told)
            if place is not None:
                found.append(_NamedRow(row, place[0], frozenset(range(*place))))
    return found if len({one.row.label for one in found}) == 1 else []


def _closest(places: Sequence[Sequence[int]], most: int) -> list[int] | None:
    """A place of each term, all within ``most`` tokens; None where they stand further apart."""
    for first in places[0]:
        chosen = [min(each, key=lambda at: abs(at - first)) for each in places]
        if max(chosen) - min(chosen) < most:
            return chosen
    return None


def _of_named(
    table: TableText, said: _ClaimTerms, named: Sequence[_NamedRow], *, sure: bool
) -> Iterator[CellCheck]:
    taken = {said.tokens[place][0] for one in named for place in one.places}
    rows = [one.row for one in named]
    for figure in said.figures:
        inside = any(figure.start <= start < figure.end for start in taken) and (
            figure.kind not in (Kind.MONEY, Kind.QUANTITY)
            or any(agrees(figure, own) for row in rows for own in _figures_of_header(row.label))
        )
        counts = figure.kind is Kind.NUMBER and figure.values[:1] == (len(rows),) and len(rows) > 1
        if not inside and not counts:
            yield from _figure_otherwise(table, said, rows, figure, sure=sure)
    yield from _words_otherwise(table, said, rows, taken, sure=sure)
    if len(rows) == 1:
        yield from _words_of_other_column(table, said, rows[0], taken)
        yield from _flag_otherwise(table, said, rows[0]) if sure else ()


def _headed(table: TableText, said: _ClaimTerms, cell: Cell) -> float:
    """How much of what tells a header from the others the claim names, 0..1; what is asked counts half."""
    weight = {term: 1.0 / table.header_terms[term] for term in cell.terms}
    whole = sum(weight.values())
    if not whole:
        return 0.0
    held = sum(w for t, w in weight.items() if _speaks_of(t, said.terms))
    return (
        held + 0.5 * sum(w for t, w in weight.items() if t in said.asked and not _speaks_of(t, said.terms))
    ) / whole


def _speaks_of(header: int, terms: frozenset[int]) -> bool:
    """Whether a text has the word of a header, or one that is said in its place: "weighs" of "Weight"."""
    return header in terms or not terms.isdisjoint(_IN_OTHER_WORDS.get(header, frozenset()))


def _holds(cell: Cell, figure: Figure) -> bool:
    """Whether a cell has a claim's figure, to the last digit; a bare number may be of any unit."""
    return any(agrees(_exactly(figure), _exactly(own)) or _same_bare(figure, own) for own in cell.figures)


@lru_cache(maxsize=8192)
def _exactly(figure: Figure) -> Figure:
    return replace(figure, bound=Bound.EXACT)


def _keeps(figure: Figure, own: Figure) -> bool:
    """Whether a cell's amount keeps the limit that a claim says: $1,180 is "more than $1,000"."""
    way = figure.bound.direction
    limit = figure.bound in (Bound.OVER, Bound.UNDER) and not _AFTER.match(figure.text)
    if not limit or figure.upper is not None or own.upper is not None:
        return False
    if not own.values or not figure.values or not (dimension(figure) == dimension(own) or _bare(own)):
        return False
    mine, theirs = (figure.values[0], own.values[0]) if _bare(own) else (base(figure)[0][0], base(own)[0][0])
    return way * (theirs - mine) > 0


def _meets(cell: Cell, figure: Figure) -> bool:
    """Whether a cell's amount is what a claim says of many: the same, or within its limit."""
    if not figure.bound.direction or figure.upper is not None:
        return _holds(cell, figure)
    inclusive = figure.bound in (Bound.AT_LEAST, Bound.AT_MOST)
    bound = replace(figure, bound=Bound.OVER if figure.bound.direction > 0 else Bound.UNDER)
    return any(_keeps(bound, own) for own in cell.figures) or (inclusive and _holds(cell, figure))


def _same_bare(figure: Figure, own: Figure) -> bool:
    """Whether a cell's number has the value of a claim's figure, and no unit that could differ."""
    return _bare(own) and figure.kind in _AMOUNTS and own.values[:1] == figure.values[:1] and not figure.upper


def _bare(own: Figure) -> bool:
    return own.kind is Kind.NUMBER and own.upper is None and own.noun is None


def _of_its_unit(cell: Cell, figure: Figure) -> bool:
    """Whether a cell has a figure of the same unit, not just a number that may be of any."""
    return any(_like(figure, own) and not _bare(own) for own in cell.figures)


def _like(figure: Figure, own: Figure) -> bool:
    """Whether two figures measure the same: times of day are no lengths of time."""
    clock = Kind.TIME in (figure.kind, own.kind)
    return dimension(figure) == dimension(own) and (not clock or figure.kind is own.kind)


def _rivals(cell: Cell, figure: Figure, like: Cell | None = None) -> bool:
    """Whether a cell has another figure than the claim's where it could have that."""
    if _holds(cell, figure):
        return False
    if cell.text.strip().casefold() in _NO_VALUE:
        return True
    if any(
        dimension(figure) == dimension(own) or (_bare(own) and figure.kind in _AMOUNTS)
        for own in cell.figures
    ):
        return True
    return like is not None and bool(cell.figures)


def _figure_otherwise(
    table: TableText, said: _ClaimTerms, rows: Sequence[TableRow], figure: Figure, *, sure: bool
) -> Iterator[CellCheck]:
    if any(
        agrees(figure, own) for row in rows for cell in row.cells for own in _figures_of_header(cell.header)
    ):
        return
    own = [(row, cell) for row in rows for cell in row.cells if _holds(cell, figure)]
    loose = own and figure.kind is not Kind.NUMBER and not any(_of_its_unit(cell, figure) for _, cell in own)
    if loose and any(_of_its_unit(cell, figure) for row in rows for cell in row.cells):
        own = []
    if own:
        yield from _in_other_column(table, said, rows, figure, own, sure=sure)
        return
    holding = (
        (row, cell) for row in table.rows if row not in rows for cell in row.cells if _holds(cell, figure)
    )
    holders = list(islice(holding, _MOST_HOLDERS))
    if figure.name and not holders and figure.kind is not Kind.IDENTIFIER:
        return
    if not holders and any(_keeps(figure, own) for row in rows for cell in row.cells for own in cell.figures):
        return
    if not holders and figure.upper is not None and figure.kind is not Kind.TIME:
        for value in (figure.values[0], figure.upper):
            end = replace(figure, values=(value,), upper=None)
            yield from _figure_otherwise(table, said, rows, end, sure=sure)
        return
    if holders:
        pairs = [
            (row, mine, owner, cell)
            for owner, cell in holders
            for row in rows
            for mine in row.cells
            if mine.header == cell.header
            and (_rivals(mine, figure, cell) or says_nothing(mine.text))
            and not any(_holds(mine, other) for other in said.figures)
            and (not _bare(figure) or any(map(_bare, cell.figures)) or _headed(table, said, mine) >= _HEADED)
        ]
        if pairs:
            row, mine, owner, _ = max(pairs, key=lambda pair: _headed(table, said, pair[1]))
            certain = sure and not says_nothing(mine.text)
            yield CellCheck(figure.start, figure.end, row.label, mine, owner.label, certain, True)
        return
    named = [
        (row, cell)
        for row in rows
        for cell in row.cells
        if _headed(table, said, cell) >= _HEADED and _rivals(cell, figure)
    ]
    if not named and figure.kind is not Kind.NUMBER and len(rows) == 1:
        alike = [(rows[0], cell) for cell in rows[0].cells if _of_its_unit(cell, figure)]
        named = alike if len(alike) == 1 else []
    if named:
        row, mine = max(named, key=lambda pair: _headed(table, said, pair[1]))
        yield CellCheck(figure.start, figure.end, row.label, mine, "", sure, True)


def _in_other_column(
    table: TableText,
    said: _ClaimTerms,
    rows: Sequence[TableRow],
    figure: Figure,
    own: Sequence[tuple[TableRow, Cell]],
    *,
    sure: bool,
) -> Iterator[CellCheck]:
    """The named record has the value, but below another header than the claim names."""
    if said.denies or any(not cell.terms.isdisjoint(_OPENING) for _, cell in own):
        return
    united = any(_of_its_unit(cell, figure) for _, cell in own)
    best = max(_headed(table, said, cell) for _, cell in own)
    meant = [
        (row, cell)
        for row in rows
        for cell in row.cells
        if (share := _headed(table, said, cell)) > best
        and share >= (_HEADED if best else _HINTED)
        and _rivals(cell, figure)
        and (not united or _of_its_unit(cell, figure) or figure.kind is Kind.NUMBER)
        and not any(_holds(cell, other) for other in said.figures)
    ]
    if meant:
        row, cell = max(meant, key=lambda pair: _headed(table, said, pair[1]))
        certain = sure and _headed(table, said, cell) >= 1.0 > 2 * best
        yield CellCheck(figure.start, figure.end, row.label, cell, own[0][1].header, certain, True)


def _words_otherwise(
    table: TableText, said: _ClaimTerms, rows: Sequence[TableRow], taken: set[int], *, sure: bool
) -> Iterator[CellCheck]:
    """Words that are another record's value where the named one has others."""
    labels = {term for row in rows for term in row.terms}
    for row in rows:
        for mine in row.cells:
            if not mine.wordy:
                continue
            if set(mine.told) - STOP_TERMS <= said.terms:
                continue
            for owner, cell in table.columns[mine.header]:
                other = set(cell.told) - STOP_TERMS
                if owner in rows or not cell.wordy or not other <= said.terms or not other:
                    continue
                if other <= set(mine.told) | labels | mine.terms | table.kind:
                    continue
                place = _phrase(said.tokens, cell.told)
                if place is None or said.tokens[place[0]][0] in taken:
                    continue
                if any(_phrase(_numbered(each.told), cell.told) for each in row.cells if each is not mine):
                    continue
                start = said.tokens[place[0]][0]
                end = _end_of_word(said.text, said.tokens[place[1] - 1][0])
                certain = sure and len(rows) == 1 and not said.denies
                yield CellCheck(start, end, row.label, mine, owner.label, certain, False)
                break


def _words_of_other_column(
    table: TableText, said: _ClaimTerms, row: TableRow, taken: set[int]
) -> Iterator[CellCheck]:
    """Words that are another value of the named record than the one below the header that the claim names. It
    may say something else of both, so that is never sure."""
    if said.denies:
        return
    headed = [(_headed(table, said, cell), cell) for cell in row.cells]
    best, mine = max(headed, key=lambda each: each[0], default=(0.0, None))
    told = mine is not None and (
        _phrase(said.tokens, mine.told) or any(_holds(mine, f) for f in said.figures)
    )
    if mine is None or best < 1.0 or told or mine.flag is not None or says_nothing(mine.text):
        return
    for share, cell in headed:
        place = _phrase(said.tokens, cell.told) if cell.wordy and share < best else None
        if place is None or STOP_TERMS.issuperset(cell.told) or said.tokens[place[0]][0] in taken:
            continue
        if not set(cell.told) <= set(row.terms) | mine.terms | table.kind:
            start = said.tokens[place[0]][0]
            end = _end_of_word(said.text, said.tokens[place[1] - 1][0])
            yield CellCheck(start, end, row.label, mine, cell.header, False, False)
            return


def _numbered(terms: Sequence[int]) -> list[tuple[int, int]]:
    return list(enumerate(terms))


def _phrase(tokens: Sequence[tuple[int, int]], phrase: Sequence[int]) -> tuple[int, int] | None:
    """The numbers of the tokens, half-open, where a phrase stands."""
    if not 0 < len(phrase) <= min(_MOST_WORDS, len(tokens)):
        return None
    for first in range(len(tokens) - len(phrase) + 1):
        if all(tokens[first + at][1] == term for at, term in enumerate(phrase)):
            return first, first + len(phrase)
    return None


def _flag_otherwise(table: TableText, said: _ClaimTerms, row: TableRow) -> Iterator[CellCheck]:
    """The claim says of a feature that the named record has it where it has not, or the other way round; so
    of times: "closed" and hours say whether somebody is there."""
    present = not said.terms.isdisjoint(_PRESENT) and all(figure.kind is Kind.DATE for figure in said.figures)
    named = [
        (cell, has)
        for cell in row.cells
        if (has := cell.flag if cell.flag is not None or not present else cell.open) is not None
        and cell.terms
        and all(term in said.terms for term in _telling(table, cell))
    ]
    denies = said.denies is said.terms.isdisjoint(_SHUT)
    if len(named) == 1 and named[0][1] is denies:
        yield CellCheck(0, len(said.text), row.label, named[0][0], "", True, False)


def _telling(table: TableText, cell: Cell) -> list[int]:
    """The terms of a header that tell it from others; all of them where none does."""
    alone = [term for term in cell.terms if table.header_terms[term] == 1]
    return alone or list(cell.terms)


# ---------------------------------------------------------------------------------------------- whole columns

_END: Final = re.compile(
    rf"(?<!\bat )\b(?:(most|least)\s({alternatives(OF_MOST)})|({alternatives(SUPERLATIVES)})"
    rf"|({alternatives(COMPARATIVES)})(?=[^.;]{{0,60}}\bthan\s(?:any|all|every|each)\b))\b",
    re.IGNORECASE,
)
_ONLY: Final = re.compile(
    r"\b(?:the only|only the|only)\b(?!\s+(?:\d|one|two|three|four|five|six|a|an)\b)", re.IGNORECASE
)
_JUST_ONE: Final = re.compile(r"\b(?:only|just|exactly)\s(one)\b", re.IGNORECASE)
_ALL: Final = re.compile(
    r"(?<!\bof )(?<!\bat )\b(?:all(?!\s(?:day|year|week|the way))|every|each|everyone|everybody|any)\b",
    re.IGNORECASE,
)
_NONE: Final = re.compile(r"\b(?:none|no|nobody|neither)\b", re.IGNORECASE)
_ALL_TERM: Final = term_of("all")
_OF_THE: Final = (term_of("of"), term_of("the"))
_ANY: Final = "any"
_MOST_PART: Final = 0.6  # of the records, that have a value to be compared


def _over_columns(
    table: TableText, said: _ClaimTerms, named: Sequence[_NamedRow]
) -> Iterator[CellCheck | _WorkedOut]:
    """What a claim says of a whole column: who is at its end, who alone, all, none or so many have it."""
    if len(table.rows) < 2:
        return
    rows = [one.row for one in named]
    if len(rows) == 1 and (ways := _end_of(said.text)):
        yield from _other_at_end(table, said, rows[0], ways)
        return
    answering = _ANSWERING.match(said.text)
    text = said.text[answering.end() if answering else 0 :]
    alone = len(rows) == 1 and _ONLY.search(text)
    count = next((f for f in said.figures if f.kind is Kind.NUMBER and not f.name), None) or _one(text, said)
    every, none = _ALL.search(text), _NONE.search(text)
    if not alone and (rows or not (count or every or none)):
        return
    has = _having(table, said)
    if has is None:
        return
    cell, holding = has
    place = (0, len(said.text))
    if not alone:
        yield from _of_all(table, said, cell, holding, (every is not None, none is not None, count))
    elif others := [row for row in holding if row is not rows[0]] if rows[0] in holding else []:
        yield CellCheck(*place, others[0].label, _below(others[0], cell), others[0].label, True, False)
    elif rows[0] in holding:
        yield _worked(said, f"{rows[0].label} is the only one of {len(table.rows)}: {cell.header}.")


def _of_all(
    table: TableText,
    said: _ClaimTerms,
    cell: Cell,
    holding: Sequence[TableRow],
    words_said: tuple[bool, bool, Figure | None],
) -> Iterator[CellCheck | _WorkedOut]:
    """What a claim says of all records, of none, or of so many, of which some have what it says."""
    every, none, count = words_said
    if none and not every and count is not None and _counted(table, said, count):
        holding, none = [row for row in table.rows if row not in holding], False  # "two need no key"
        said = replace(said, denies=False)
    # Whether "all" and "none" are of the records, only what these are called tells.
    sure = bool(table.kind & said.terms)
    odd = next((row for row in table.rows if (row in holding) is none), None)
    if (none or (every and not said.denies)) and odd is not None:
        owner = odd.label if none else ""
        yield CellCheck(0, len(said.text), odd.label, _below(odd, cell), owner, sure, False)
    elif none or (every and not said.denies):
        if sure:
            yield _worked(said, f"{'None' if none else 'All'} of {len(table.rows)}: {cell.header}.")
    elif said.denies or count is None:
        return
    elif count.values[0] == len(holding):
        those = ", ".join(row.label for row in holding)
        told = f"{count.text} of {len(table.rows)}, {cell.header}: {those}."
        yield _worked(said, told, counted=count)
    elif _counted(table, said, count):
        told = f"{len(holding)} of {len(table.rows)}"
        held = _below(holding[0], cell) if holding else cell
        yield CellCheck(count.start, count.end, told, held, "", sure, False)


def _worked(said: _ClaimTerms, told: str, counted: Figure | None = None) -> _WorkedOut:
    values = (figure for figure in said.figures if _limits(figure) or figure is counted)
    return _WorkedOut(told, frozenset(figure.start for figure in values))


def _below(row: TableRow, cell: Cell) -> Cell:
    """A record's own cell of a column; the column's first where it has none."""
    return next((each for each in row.cells if each.header == cell.header), cell)


def _one(text: str, said: _ClaimTerms) -> Figure | None:
    """ "Only one of them", which is no figure elsewhere."""
    match = _JUST_ONE.search(text)
    if match is None:
        return None
    start = len(said.text) - len(text) + match.start(1)
    return Figure(Kind.NUMBER, match[1], start, start + 3, values=(1.0,), noun="one")


def _of_records(table: TableText, said: _ClaimTerms, count: Figure) -> bool:
    """Whether a number is of the records themselves: "the five machines", "all five"."""
    behind = [term for start, term in said.tokens if count.end <= start < count.end + 40][:3]
    before = tuple(term for start, term in said.tokens if start < count.start)[-2:]
    return bool(table.kind & set(behind)) or _ALL_TERM in before or before == _OF_THE


def _counted(table: TableText, said: _ClaimTerms, count: Figure) -> bool:
    """Whether a number counts records: no more than there are, "of the", or of what they are called."""
    if not count.values or not 0 < count.values[0] <= len(table.rows):
        return False
    behind = [term for start, term in said.tokens if count.end <= start < count.end + 40][:4]
    return bool(table.kind & set(behind)) or term_of("of") in behind[:1] or count.noun is not None


def _end_of(text: str) -> Mapping[str, int]:
    """Which end of a column a text speaks of, by what is measured; empty where it speaks of none."""
    found = _END.search(text)
    if found is None:
        return {}
    if found[1]:
        sign = 1 if found[1].casefold() == "most" else -1
        return {measure: sign * way for measure, way in OF_MOST[found[2].casefold()].items()}
    return SUPERLATIVES[found[3].casefold()] if found[3] else COMPARATIVES[found[4].casefold()]


def _other_at_end(
    table: TableText, said: _ClaimTerms, row: TableRow, ways: Mapping[str, int]
) -> Iterator[CellCheck | _WorkedOut]:
    wrong: list[tuple[TableRow, Cell]] = []
    for amounts in _ordered(table, said, ways):
        best = max(amount for _, _, amount in amounts)
        held = next((cell for own, cell, amount in amounts if own is row and amount == best), None)
        if held is not None:
            word = _END.search(said.text)
            most = word[0] if word else "most"
            yield _WorkedOut(f"{row.label} has the {most} {held.header} of all: {held.text}.", frozenset())
            return
        wrong.append(next((own, cell) for own, cell, amount in amounts if amount == best))
    if wrong:
        owner, cell = wrong[0]
        other = any(_headed(table, said, each) >= _HEADED for each in row.cells if each.header != cell.header)
        yield CellCheck(0, len(said.text), owner.label, cell, owner.label, not other, False)


_Ordered = list[tuple[TableRow, Cell, float]]


def _ordered(table: TableText, said: _ClaimTerms, ways: Mapping[str, int]) -> list[_Ordered]:
    """The columns that a superlative may mean: those whose header is named best. With each cell what orders
    it, the largest first."""
    columns: list[tuple[float, _Ordered]] = []
    for cells in table.columns.values():
        amounts = [(own, cell, amount) for own, cell in cells if (amount := _amount(cell, ways)) is not None]
        if len(amounts) >= _MOST_PART * len(table.rows) and len(amounts) > 1:
            columns.append((_headed(table, said, cells[0][1]), amounts))
    told = max((share for share, _ in columns), default=0.0)
    if _ANY in ways and not told and len(columns) > 1:
        return []
    return [amounts for share, amounts in columns if share == told]


def _amount(cell: Cell, ways: Mapping[str, int]) -> float | None:
    """What orders a cell among those of its column; a bare number may be of anything."""
    for own in cell.figures:
        size, way = size_of(own), way_of(ways, measure_of(own))
        way = way or (next(iter(ways.values())) if _bare(own) else 0)
        if size is not None and way:
            return way * size
    return None


def _having(table: TableText, said: _ClaimTerms) -> tuple[Cell, list[TableRow]] | None:
    """The records that have what the claim says of some, and a cell of that column."""
    best: tuple[float, Cell, list[TableRow]] | None = None
    for cells in table.columns.values():
        share = _headed(table, said, cells[0][1])
        value = any(cell.flag is None and _said_value(cell, said) for _, cell in cells)
        holding = [row for row, cell in cells if (_said_value if value else _has)(cell, said)]
        weight = 2 * share + (1.0 if value else 0.0)
        if (value or share >= _HEADED) and (best is None or weight > best[0]):
            best = weight, cells[0][1], holding
    if best is None:
        return None
    return best[1], best[2]


def _has(cell: Cell, said: _ClaimTerms) -> bool:
    if cell.flag is not None:
        return cell.flag
    if cell.figures and any(_meets(cell, figure) for figure in said.figures):
        return True
    if _said_value(cell, said):
        return True
    return not _valued(said) and not says_nothing(cell.text) and cell.text.strip().casefold() not in _NO_VALUE


def _said_value(cell: Cell, said: _ClaimTerms) -> bool:
    """Whether the claim says the cell's value."""
    if cell.figures:
        return any(_meets(cell, figure) for figure in said.figures if _limits(figure))
    return (
        bool(cell.told)
        and said.terms.issuperset(cell.told)
        and not STOP_TERMS.issuperset(cell.told)
        and _phrase(said.tokens, cell.told) is not None
    )


def _valued(said: _ClaimTerms) -> bool:
    return any(_limits(figure) for figure in said.figures)


def _limits(figure: Figure) -> bool:
    """Whether a figure is a value rather than a count of records."""
    return figure.kind is not Kind.NUMBER or figure.bound is not Bound.EXACT
