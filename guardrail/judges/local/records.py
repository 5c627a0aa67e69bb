"""The tables of a response's contexts as records, the words of a claim that is compared with them, and what
it says of a whole column: who is at its end, who alone has it, that all, none or so many do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from guardrail.events import Span
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.shown import ShownTable
from guardrail.evidence.tokens import STOP_TERMS, term_of, terms_of, words
from guardrail.figures import Bound, Figure, Kind
from guardrail.figures.agreement import agrees, dimension, keeps
from guardrail.figures.comparing import MOST, measure_of, size_of, way_of, ways_of_most
from guardrail.figures.source import Sentence
from guardrail.figures.tables import CLOSED, COMPARATIVES, alternatives, find_unit
from guardrail.shipped import shipped_yaml
from guardrail.structure.tables import says_nothing, yes_or_no

_MOST_CELLS: Final = 2_000  # of all tables that claims are compared with
_MOST_TABLES: Final = 50
_LEAST_UNIT: Final = 2  # letters
_MOST_WORDS: Final = 12  # of a value that a claim may say
_YEAR: Final = re.compile(r"[12]\d{3}")
_BARE: Final = re.compile(r"\d+(?:[.,]\d+)*")
_BRACKETED: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_IN_OTHER_WORDS: Final = {
    term_of(header): frozenset(map(term_of, said.split()))
    for headers, said in shipped_yaml("guardrail.judges.local", "headers.yaml").items()
    for header in headers.split()
}
CODE: Final = re.compile(r"\b(?=[^\W\d_]*\d)(?=\d*[^\W\d_])\w+\b")
_AFTER: Final = re.compile(r"(?:after|within|in)\b", re.IGNORECASE)
_AMOUNTS: Final = (Kind.MONEY, Kind.QUANTITY, Kind.PERCENT, Kind.NUMBER)
NO_VALUE: Final = frozenset("none no nil free".split())  # noqa: SIM905


class Cell:
    """A field of a record, read when it is first compared."""

    def __init__(self, header: str, text: str, context: int, span: Span, *, numeric: bool = False) -> None:
        self.header = header
        self.text = text
        self.numeric = numeric  # its column has plain numbers
        self.context = context
        self.span = span
        self.flag = yes_or_no(text)

    @cached_property
    def terms(self) -> frozenset[int]:
        """The terms of the header."""
        return _telling_terms(self.header)

    @cached_property
    def words(self) -> tuple[int, ...]:
        """The terms of the value, in order."""
        return tuple(term for _, term, _ in words(self.text))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the value; in a column of numbers "2000" is no year."""
        found = Sentence(self.text).figures
        if self.numeric and _YEAR.fullmatch(self.text.strip()):
            return tuple(replace(each, kind=Kind.NUMBER, days=()) for each in found)
        return found

    @cached_property
    def open(self) -> bool | None:
        """Whether something is open, where the value says no more than that: hours, or "closed"."""
        if self.text.strip().casefold() in CLOSED or says_nothing(self.text):
            return False
        return True if self.figures and all(f.kind is Kind.TIME for f in self.figures) else None

    @cached_property
    def wordy(self) -> bool:
        """Whether the value has words beside its figures, and is not a bare yes or no."""
        told = (term for _, term in Sentence(self.text).words)
        return self.flag is None and any(term not in STOP_TERMS for term in told)

    def holds(self, figure: Figure) -> bool:
        """Whether it has a claim's figure, to the last digit; a bare number may be of any unit."""
        return any(
            agrees(_exactly(figure), _exactly(own)) or _same_bare(figure, own)
            for own in (*self.figures, *self._in_unit_of_header)
        )

    @cached_property
    def _in_unit_of_header(self) -> tuple[Figure, ...]:
        """What a bare number is in the unit that its header ends with: 36 below "warranty months"."""
        unit = self.header.rpartition(" ")[2]
        bare = [own for own in self.figures if is_bare(own)]
        if not bare or len(unit) < _LEAST_UNIT or find_unit(unit) is None:
            return ()
        return Sentence(f"{bare[0].text} {unit}").figures

    def meets(self, figure: Figure) -> bool:
        """Whether its amount is what a claim says of many: the same, or within its limit."""
        if not figure.bound.direction or figure.upper is not None:
            return self.holds(figure)
        inclusive = figure.bound in (Bound.AT_LEAST, Bound.AT_MOST)
        bound = replace(figure, bound=Bound.OVER if figure.bound.direction > 0 else Bound.UNDER)
        return any(keeps_limit(bound, own) for own in self.figures) or (inclusive and self.holds(figure))

    def has_unit_of(self, figure: Figure) -> bool:
        """Whether it has a figure of the same unit, not just a number that may be of any."""
        return any(_measure_the_same(figure, own) and not is_bare(own) for own in self.figures)

    def has_another(self, figure: Figure, like: Cell | None = None) -> bool:
        """Whether it has another figure than the claim's where it could have that, as ``like`` has."""
        if self.holds(figure):
            return False
        if self.text.strip().casefold() in NO_VALUE:
            return True
        if any(
            dimension(figure) == dimension(own) or (is_bare(own) and figure.kind in _AMOUNTS)
            for own in self.figures
        ):
            return True
        return like is not None and bool(self.figures)


@lru_cache(maxsize=8192)
def _exactly(figure: Figure) -> Figure:
    return replace(figure, bound=Bound.EXACT)


def _same_bare(figure: Figure, own: Figure) -> bool:
    """Whether a cell's number has the value of a claim's figure, and no unit that could differ."""
    return (
        is_bare(own) and figure.kind in _AMOUNTS and own.values[:1] == figure.values[:1] and not figure.upper
    )


def is_bare(own: Figure) -> bool:
    """Whether a figure is a number without a unit or a noun."""
    return own.kind is Kind.NUMBER and own.upper is None and own.noun is None


def _measure_the_same(figure: Figure, own: Figure) -> bool:
    """Whether two figures measure the same: times of day are no lengths of time."""
    clock = Kind.TIME in (figure.kind, own.kind)
    return dimension(figure) == dimension(own) and (not clock or figure.kind is own.kind)


def keeps_limit(figure: Figure, own: Figure) -> bool:
    """Whether a cell's amount keeps the limit that a claim says: $1,180 is "more than $1,000"."""
    limit = figure.bound in (Bound.OVER, Bound.UNDER) and not _AFTER.match(figure.text)
    if not limit or figure.upper is not None or own.upper is not None or not (own.values and figure.values):
        return False
    if is_bare(own):
        return figure.bound.direction * (own.values[0] - figure.values[0]) > 0
    return dimension(figure) == dimension(own) and keeps(figure, own)


@lru_cache(maxsize=4096)
def _telling_terms(header: str) -> frozenset[int]:
    return terms_of(header) - STOP_TERMS


@lru_cache(maxsize=1024)
def figures_of_header(header: str) -> tuple[Figure, ...]:
    return Sentence(header).figures


class TableRow(NamedTuple):
    """A record, read."""

    label: str
    terms: tuple[int, ...]
    numbers: frozenset[int]  # those of the terms that are numbers
    codes: frozenset[str]  # "k4", in lower case
    cells: tuple[Cell, ...]


class TableText:
    """One table, read once for all claims of a response."""

    def __init__(self, table: ShownTable, context: int, text: str) -> None:
        numeric = {
            field.header
            for record in table.records
            for field in record.fields
            if _BARE.fullmatch(bare := text[slice(*field.value)].strip()) and not _YEAR.fullmatch(bare)
        }
        self.rows = tuple(
            TableRow(
                record.label,
                *_label_terms(record.label),
                tuple(
                    Cell(
                        field.header,
                        text[slice(*field.value)],
                        context,
                        field.value,
                        numeric=field.header in numeric,
                    )
                    for field in record.fields
                ),
            )
            for record in table.records
        )
        self.kind = terms_of(table.kind)

    @cached_property
    def label_terms(self) -> Counter[int]:
        """In how many labels each term stands."""
        return Counter(term for row in self.rows for term in set(row.terms))

    @cached_property
    def value_terms(self) -> frozenset[int]:
        """The terms of values that are words."""
        return frozenset(t for row in self.rows for cell in row.cells if cell.wordy for t in cell.words)

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
    return tuple(term for _, term, _ in told), numbers, frozenset(CODE.findall(bare.casefold()))


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


class NamedRow(NamedTuple):
    """A record that a text names, with where."""

    row: TableRow
    at: int
    places: frozenset[int]  # the tokens that name it


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


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """A claim in tokens, beside one table."""

    text: str
    tokens: tuple[tuple[int, int], ...]
    terms: frozenset[int]
    asked: frozenset[int]
    figures: tuple[Figure, ...]
    denies: bool

    def share_of_header(self, table: TableText, cell: Cell) -> float:
        """How much of what tells a header from the others it names, 0..1; what is asked counts half."""
        weight = {term: 1.0 / table.header_terms[term] for term in cell.terms}
        whole = sum(weight.values())
        if not whole:
            return 0.0
        held = sum(w for t, w in weight.items() if _speaks_of(t, self.terms))
        asked = sum(w for t, w in weight.items() if t in self.asked and not _speaks_of(t, self.terms))
        return (held + 0.5 * asked) / whole

    def says(self, cell: Cell) -> bool:
        """Whether it says the cell's value."""
        if cell.figures:
            return any(cell.meets(figure) for figure in self.figures if is_value(figure))
        return (
            bool(cell.words)
            and self.terms.issuperset(cell.words)
            and not STOP_TERMS.issuperset(cell.words)
            and place_of(self.tokens, cell.words) is not None
        )

    @property
    def says_values(self) -> bool:
        """Whether any of its figures is a value."""
        return any(map(is_value, self.figures))

    def stretch(self, place: Span) -> Span:
        """Where the tokens of these numbers, half-open, stand in its text."""
        return self.tokens[place[0]][0], end_of_word(self.text, self.tokens[place[1] - 1][0])


def _speaks_of(header: int, terms: frozenset[int]) -> bool:
    """Whether a text has the word of a header, or one that is said in its place: "weighs" of "Weight"."""
    return header in terms or not terms.isdisjoint(_IN_OTHER_WORDS.get(header, frozenset()))


def is_value(figure: Figure) -> bool:
    """Whether a figure is a value rather than a count of records."""
    return figure.kind is not Kind.NUMBER or figure.bound is not Bound.EXACT


def place_of(tokens: Sequence[tuple[int, int]], phrase: Sequence[int]) -> Span | None:
    """The numbers of the tokens, half-open, where a phrase stands."""
    if not 0 < len(phrase) <= min(_MOST_WORDS, len(tokens)):
        return None
    for first in range(len(tokens) - len(phrase) + 1):
        if all(tokens[first + at][1] == term for at, term in enumerate(phrase)):
            return first, first + len(phrase)
    return None


def end_of_word(text: str, start: int) -> int:
    """Where the word that begins at ``start`` ends."""
    return next((at for at in range(start, len(text)) if not text[at].isalnum()), len(text))


# -------------------------------------------------------------------------------------------- whole columns

HEADED: Final = 0.5  # of what tells a header from the others, that names it
ANSWERING: Final = re.compile(r"\s*(?:yes|no|correct|right)[,.;:!]\s*", re.IGNORECASE)
_END: Final = re.compile(
    rf"{MOST.pattern}|(?<!\bat )\b(?P<more>{alternatives(COMPARATIVES)})\b"
    r"(?=[^.;]{0,60}\bthan\s(?:any|all|every|each)\b)",
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


class WorkedOut(NamedTuple):
    """What is so of a whole column, in words, and where the figures of the claim begin that it bears out."""

    told: str
    figures: frozenset[int]


def checks_of_columns(
    table: TableText, said: ClaimTerms, named: Sequence[NamedRow]
) -> Iterator[CellCheck | WorkedOut]:
    """What a claim says of a whole column: who is at its end, who alone, all, none or so many have it."""
    if len(table.rows) < 2:
        return
    rows = [one.row for one in named]
    if len(rows) == 1 and (ways := end_of(said.text)):
        yield from _other_at_end(table, said, rows[0], ways)
        return
    answering = ANSWERING.match(said.text)
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
    said: ClaimTerms,
    cell: Cell,
    holding: Sequence[TableRow],
    words_said: tuple[bool, bool, Figure | None],
) -> Iterator[CellCheck | WorkedOut]:
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


def _worked(said: ClaimTerms, told: str, counted: Figure | None = None) -> WorkedOut:
    values = (figure for figure in said.figures if is_value(figure) or figure is counted)
    return WorkedOut(told, frozenset(figure.start for figure in values))


def _below(row: TableRow, cell: Cell) -> Cell:
    """A record's own cell of a column; the column's first where it has none."""
    return next((each for each in row.cells if each.header == cell.header), cell)


def _one(text: str, said: ClaimTerms) -> Figure | None:
    """ "Only one of them", which is not a figure elsewhere."""
    match = _JUST_ONE.search(text)
    if match is None:
        return None
    start = len(said.text) - len(text) + match.start(1)
    return Figure(Kind.NUMBER, match[1], start, start + 3, values=(1.0,), noun="one")


def counts_all_records(table: TableText, said: ClaimTerms, count: Figure) -> bool:
    """Whether a number is of the records themselves: "the five machines", "all five"."""
    behind = [term for start, term in said.tokens if count.end <= start < count.end + 40][:3]
    before = tuple(term for start, term in said.tokens if start < count.start)[-2:]
    return bool(table.kind & set(behind)) or _ALL_TERM in before or before == _OF_THE


def _counted(table: TableText, said: ClaimTerms, count: Figure) -> bool:
    """Whether a number counts records: no more than there are, and "of", what they are called or another noun
    behind it."""
    if not count.values or not 0 < count.values[0] <= len(table.rows):
        return False
    behind = [term for start, term in said.tokens if count.end <= start < count.end + 40][:4]
    return bool(table.kind & set(behind)) or term_of("of") in behind[:1] or count.noun is not None


def end_of(text: str) -> Mapping[str, int]:
    """Which end of a column a text speaks of, by what is measured; empty where it speaks of none."""
    found = _END.search(text)
    if found is None:
        return {}
    return COMPARATIVES[found["more"].casefold()] if found["more"] else ways_of_most(found)


def _other_at_end(
    table: TableText, said: ClaimTerms, row: TableRow, ways: Mapping[str, int]
) -> Iterator[CellCheck | WorkedOut]:
    wrong: list[tuple[TableRow, Cell]] = []
    for amounts in ordered_columns(table, said, ways):
        best = max(amount for _, _, amount in amounts)
        held = next((cell for own, cell, amount in amounts if own is row and amount == best), None)
        if held is not None:
            word = _END.search(said.text)
            most = word[0] if word else "most"
            yield WorkedOut(f"{row.label} has the {most} {held.header} of all: {held.text}.", frozenset())
            return
        wrong.append(next((own, cell) for own, cell, amount in amounts if amount == best))
    if wrong:
        owner, cell = wrong[0]
        other = any(
            said.share_of_header(table, each) >= HEADED for each in row.cells if each.header != cell.header
        )
        yield CellCheck(0, len(said.text), owner.label, cell, owner.label, not other, False)


_Ordered = list[tuple[TableRow, Cell, float]]


def ordered_columns(table: TableText, said: ClaimTerms, ways: Mapping[str, int]) -> list[_Ordered]:
    """The columns that a superlative may mean: those whose header is named best. With each cell its amount,
    which is the largest at the end that is meant."""
    columns: list[tuple[float, _Ordered]] = []
    for cells in table.columns.values():
        amounts = [(own, cell, amount) for own, cell in cells if (amount := _amount(cell, ways)) is not None]
        if len(amounts) >= _MOST_PART * len(table.rows) and len(amounts) > 1:
            columns.append((said.share_of_header(table, cells[0][1]), amounts))
    told = max((share for share, _ in columns), default=0.0)
    if _ANY in ways and not told and len(columns) > 1:
        return []
    return [amounts for share, amounts in columns if share == told]


def _amount(cell: Cell, ways: Mapping[str, int]) -> float | None:
    """What orders a cell among those of its column; a bare number may be of anything."""
    for own in cell.figures:
        size, way = size_of(own), way_of(ways, measure_of(own))
        way = way or (next(iter(ways.values())) if is_bare(own) else 0)
        if size is not None and way:
            return way * size
    return None


def _having(table: TableText, said: ClaimTerms) -> tuple[Cell, list[TableRow]] | None:
    """The records that have what the claim says of some, and a cell of that column."""
    best: tuple[float, Cell, list[TableRow]] | None = None
    for cells in table.columns.values():
        share = said.share_of_header(table, cells[0][1])
        value = any(cell.flag is None and said.says(cell) for _, cell in cells)
        holding = [row for row, cell in cells if (said.says(cell) if value else _has(cell, said))]
        weight = 2 * share + (1.0 if value else 0.0)
        if (value or share >= HEADED) and (best is None or weight > best[0]):
            best = weight, cells[0][1], holding
    if best is None:
        return None
    return best[1], best[2]


def _has(cell: Cell, said: ClaimTerms) -> bool:
    if cell.flag is not None:
        return cell.flag
    if cell.figures and any(cell.meets(figure) for figure in said.figures):
        return True
    if said.says(cell):
        return True
    return (
        not said.says_values and not says_nothing(cell.text) and cell.text.strip().casefold() not in NO_VALUE
    )
