"""A claim about a table, compared with the very cells that its words name.

A value that stands in some row supports no claim about another one, and verifier and search can hardly tell
the rows of a table apart. So the records that a claim names by their labels are looked up, and what it says
of them is compared with their own fields: a value of another record or column is in conflict with them.
"Cheapest", "only", "all", "none" and "three of them" are worked out over the column.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS, term_of, terms_of, words
from guardrail.figures import Figure, FigureCheck, Kind, State
from guardrail.figures.agreement import agrees
from guardrail.figures.calculation import is_given
from guardrail.figures.source import MEETING, OPENING, Sentence
from guardrail.figures.tables import CLOSED
from guardrail.judges.local.records import (
    ANSWERING,
    CODE,
    HEADED,
    Cell,
    CellCheck,
    ClaimTerms,
    NamedRow,
    TableRow,
    Tables,
    TableText,
    WorkedOut,
    checks_of_columns,
    counts_all_records,
    end_of,
    figures_of_header,
    is_bare,
    keeps_limit,
    ordered_columns,
    place_of,
)
from guardrail.structure.tables import says_nothing

_MOST_FIGURES: Final = 12  # of a claim
_MOST_HOLDERS: Final = 24  # of a value, beside which others of their columns are looked at
_FEW: Final = 2.0  # what is counted in passing: "one pet", "both days"
_HINTED: Final = 0.3  # of what tells a header, where the claim names nothing of the value's own
_SHUT: Final = frozenset(map(term_of, (*CLOSED, "off", "away", "absent", "unavailable")))
_NO_STATEMENT: Final = re.compile(r"\b(?:if|whether|when|once|were|until)\b", re.IGNORECASE)
_OUT_OF: Final = re.compile(r"\bout of\b", re.IGNORECASE)  # stock, order
_OTHERS: Final = re.compile(r"\b(?:other|remaining)\s\Z", re.IGNORECASE)
_OTHERS_REACH: Final = 12
_LINKS: Final = frozenset(map(term_of, ("the", "and", "but", "while", "whereas")))
_BESIDE: Final = 1  # words of a clause beside the record and those: "and the Brio €55"
_PRESENT: Final = OPENING | frozenset(
    map(term_of, ("there", "available", "unavailable", "present", "absent"))
)


class CellFindings(NamedTuple):
    """What the tables say of a claim: what it says ``otherwise``, what is surest first; the cells that have
    its figures for the very records that it names, by where the figures begin (None: a count of records); and
    in words, for the verifier, what was worked out and is so. ``several``: a table has all things named."""

    otherwise: Sequence[CellCheck]
    agreed: Mapping[int, Cell | None]
    told: str
    several: bool = False


def check_cells(text: str, tables: Tables, lead_in: str = "", question: str = "") -> CellFindings:
    """A claim against the tables; linear in their cells."""
    if not tables.tables:
        return CellFindings((), {}, "")
    answering = ANSWERING.match(text)
    sentence = Sentence(text)
    tokens = tuple((start, term) for start, term, _ in words(text))
    asked = terms_of(f"{lead_in} {question}")
    said = ClaimTerms(
        text,
        tokens,
        frozenset(term for _, term in tokens),
        asked,
        tuple(f for f in sentence.figures[:_MOST_FIGURES] if not _counts_others(text, f)),
        (sentence.denials - (answering is not None and "no" in answering[0].lower())) % 2 == 1,
    )
    found: list[tuple[int, CellCheck]] = []
    agreed: dict[int, dict[int, Cell | None]] = {}  # by table
    worked: list[WorkedOut] = []
    several = False
    for number, table in enumerate(tables.tables):
        named, sure = records_named(table, said, f"{lead_in} {question} {text}")
        several = several or (sure and len(named) > 1)
        checks: list[CellCheck] = []
        for each in checks_of_columns(table, said, named):
            if isinstance(each, CellCheck):
                checks.append(each if sure or not named else replace(each, sure=False))
            else:
                worked.append(each)
        if not named and len(table.rows) == 1 and said.terms.issuperset(table.rows[0].terms):
            checks += _flag_otherwise(table, said, table.rows[0])
        checks += _of_named(table, said, named, sure=sure) if named else _of_no_record(table, said)
        if question and any(each.sure and each.figure and not each.owner for each in checks):
            given = _given(sentence, Sentence(question))
            checks = [replace(c, sure=False) if c.start in given and not c.owner else c for c in checks]
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
        if cell is not None and cell.header and any(map(is_bare, cell.figures))
    ]
    return CellFindings(
        sorted(kept, key=lambda each: (not each.sure, each.start)), backed, " ".join(told), several
    )


def _given(claim: Sentence, question: Sentence) -> set[int]:
    """Where the figures of a claim begin that the user has or wants, "with your $700": no record's value, or
    one wrongly."""
    return {f.start for f in claim.figures[:_MOST_FIGURES] if is_given(claim, f) and question.backing(f)}


def _counts_others(text: str, figure: Figure) -> bool:
    """Whether a number counts the records that the claim leaves out: "the other two have four"."""
    before = text[max(0, figure.start - _OTHERS_REACH) : figure.start]
    return figure.kind is Kind.NUMBER and _OTHERS.search(before) is not None


def _agreed(table: TableText, said: ClaimTerms, rows: Sequence[TableRow]) -> dict[int, Cell | None]:
    """The cells that have figures of the claim, by where these begin; None for what counts the records."""
    own = float(len(rows)) if len(rows) > 1 else 0.0
    found: dict[int, Cell | None] = {
        figure.start: None
        for figure in said.figures
        if _counting(figure)
        and (
            figure.values[0] == own
            or (figure.values[0] == len(table.rows) and counts_all_records(table, said, figure))
        )
    }
    for row in rows:
        for cell in row.cells:
            found |= {figure.start: cell for figure in said.figures if cell.holds(figure)}
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


def _of_named(
    table: TableText, said: ClaimTerms, named: Sequence[NamedRow], *, sure: bool
) -> Iterator[CellCheck]:
    taken = {said.tokens[place][0] for one in named for place in one.places}
    rows = [one.row for one in named]
    for figure in said.figures:
        inside = any(figure.start <= start < figure.end for start in taken) and (
            figure.kind not in (Kind.MONEY, Kind.QUANTITY)
            or any(agrees(figure, own) for row in rows for own in figures_of_header(row.label))
        )
        counts = figure.kind is Kind.NUMBER and figure.values[:1] == (len(rows),) and len(rows) > 1
        if not inside and not counts:
            mine, told = _beside(said, figure, named)
            yield from _figure_otherwise(table, told, mine, figure, sure=sure)
    yield from _words_otherwise(table, said, rows, taken, sure=sure)
    if len(rows) == 1:
        yield from _words_of_other_column(table, said, rows[0], taken)
        yield from _flag_otherwise(table, said, rows[0]) if sure else ()


def _beside(said: ClaimTerms, figure: Figure, named: Sequence[NamedRow]) -> tuple[list[TableRow], ClaimTerms]:
    """The records that a figure may be of, and the claim with the figures beside it: those of its own clause,
    if each clause names one record, has one figure and says little else: "the Alba is €40, the Brio €55"."""
    borders = [match.end() for match in MEETING.finditer(said.text)]
    own = bisect_right(borders, figure.start)
    clauses = [bisect_right(borders, said.tokens[min(one.places, default=0)][0]) for one in named]
    places = [bisect_right(borders, each.start) for each in said.figures]
    valued = sorted(at for each, at in zip(said.figures, places, strict=True) if not each.name)
    said_in = Counter(bisect_right(borders, start) for start, term in said.tokens if term not in _LINKS)
    brief = all(
        at == 0 or said_in[at] <= len(one.row.terms) + _BESIDE for one, at in zip(named, clauses, strict=True)
    )
    apart = len(set(clauses)) == len(named) and valued == sorted(clauses) and brief
    if not apart or own not in clauses or not all(one.places for one in named):
        return [one.row for one in named], said
    beside = tuple(each for each, at in zip(said.figures, places, strict=True) if at == own)
    return [named[clauses.index(own)].row], replace(said, figures=beside)


def _figure_otherwise(
    table: TableText, said: ClaimTerms, rows: Sequence[TableRow], figure: Figure, *, sure: bool
) -> Iterator[CellCheck]:
    if any(
        agrees(figure, own) for row in rows for cell in row.cells for own in figures_of_header(cell.header)
    ):
        return
    own = [(row, cell) for row in rows for cell in row.cells if cell.holds(figure)]
    loose = own and figure.kind is not Kind.NUMBER and not any(cell.has_unit_of(figure) for _, cell in own)
    if loose and any(cell.has_unit_of(figure) for row in rows for cell in row.cells):
        own = []
    if own:
        yield from _in_other_column(table, said, rows, figure, own, sure=sure)
        return
    holding = (
        (row, cell) for row in table.rows if row not in rows for cell in row.cells if cell.holds(figure)
    )
    holders = list(islice(holding, _MOST_HOLDERS))
    if any(cell.has_unit_of(figure) for row in rows for cell in row.cells):  # "$60" is not 60 requests
        holders = [(row, cell) for row, cell in holders if cell.has_unit_of(figure)]
    if figure.name and not holders and figure.kind is not Kind.IDENTIFIER:
        return
    if not holders and any(
        keeps_limit(figure, own) for row in rows for cell in row.cells for own in cell.figures
    ):
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
            and (mine.has_another(figure, like=cell) or says_nothing(mine.text))
            and not any(mine.holds(other) for other in said.figures)
            and (
                not is_bare(figure)
                or any(map(is_bare, cell.figures))
                or said.share_of_header(table, mine) >= HEADED
            )
            and (
                not _in_passing(figure)
                or cell.has_unit_of(figure)
                or said.share_of_header(table, mine) >= _HINTED
            )
        ]
        if pairs:
            row, mine, owner, _ = max(pairs, key=lambda pair: said.share_of_header(table, pair[1]))
            certain = sure and not says_nothing(mine.text)
            yield CellCheck(figure.start, figure.end, row.label, mine, owner.label, certain, True)
        return
    named = [
        (row, cell)
        for row in rows
        for cell in row.cells
        if said.share_of_header(table, cell) >= HEADED and cell.has_another(figure)
    ]
    if not named and figure.kind is not Kind.NUMBER and len(rows) == 1:
        alike = [(rows[0], cell) for cell in rows[0].cells if cell.has_unit_of(figure)]
        named = alike if len(alike) == 1 else []
    if named:
        row, mine = max(named, key=lambda pair: said.share_of_header(table, pair[1]))
        yield CellCheck(figure.start, figure.end, row.label, mine, "", sure, True)


def _in_passing(figure: Figure) -> bool:
    """Whether it may be said of anything, so that a bare number in a table is not meant unless its header is
    named: "from the first day on", "one pet", "within one hour"."""
    few = figure.kind is Kind.NUMBER and figure.values != () and figure.values[0] <= _FEW
    return few or figure.kind in (Kind.ORDINAL, Kind.QUANTITY)


def _in_other_column(
    table: TableText,
    said: ClaimTerms,
    rows: Sequence[TableRow],
    figure: Figure,
    own: Sequence[tuple[TableRow, Cell]],
    *,
    sure: bool,
) -> Iterator[CellCheck]:
    """The named record has the value, but below another header than the claim names."""
    if said.denies or any(not cell.terms.isdisjoint(OPENING) for _, cell in own):
        return
    united = any(cell.has_unit_of(figure) for _, cell in own)
    best = max(said.share_of_header(table, cell) for _, cell in own)
    meant = [
        (row, cell)
        for row in rows
        for cell in row.cells
        if (share := said.share_of_header(table, cell)) > best
        and share >= (HEADED if best else _HINTED)
        and cell.has_another(figure)
        and (not united or cell.has_unit_of(figure) or figure.kind is Kind.NUMBER)
        and not any(cell.holds(other) for other in said.figures)
    ]
    if meant:
        row, cell = max(meant, key=lambda pair: said.share_of_header(table, pair[1]))
        certain = sure and said.share_of_header(table, cell) >= 1.0 > 2 * best
        yield CellCheck(figure.start, figure.end, row.label, cell, own[0][1].header, certain, True)


def _words_otherwise(
    table: TableText, said: ClaimTerms, rows: Sequence[TableRow], taken: set[int], *, sure: bool
) -> Iterator[CellCheck]:
    """Words that are another record's value where the named one has others."""
    labels = {term for row in rows for term in row.terms}
    for row in rows:
        for mine in row.cells:
            if not mine.wordy:
                continue
            if set(mine.words) - STOP_TERMS <= said.terms:
                continue
            for owner, cell in table.columns[mine.header]:
                other = set(cell.words) - STOP_TERMS
                if owner in rows or not cell.wordy or not other <= said.terms or not other:
                    continue
                if other <= set(mine.words) | labels | mine.terms | table.kind:
                    continue
                place = place_of(said.tokens, cell.words)
                if place is None or said.tokens[place[0]][0] in taken:
                    continue
                if any(
                    place_of(list(enumerate(each.words)), cell.words)
                    for each in row.cells
                    if each is not mine
                ):
                    continue
                start, end = said.stretch(place)
                certain = sure and len(rows) == 1 and not said.denies
                yield CellCheck(start, end, row.label, mine, owner.label, certain, False)
                break


def _words_of_other_column(
    table: TableText, said: ClaimTerms, row: TableRow, taken: set[int]
) -> Iterator[CellCheck]:
    """Words that are another value of the named record than the one below the header that the claim names. It
    may say something else of both, so that is never sure."""
    if said.denies:
        return
    headed = [(said.share_of_header(table, cell), cell) for cell in row.cells]
    best, mine = max(headed, key=lambda each: each[0], default=(0.0, None))
    told = mine is not None and (
        place_of(said.tokens, mine.words) or any(mine.holds(f) for f in said.figures)
    )
    if mine is None or best < 1.0 or told or mine.flag is not None or says_nothing(mine.text):
        return
    for share, cell in headed:
        place = place_of(said.tokens, cell.words) if cell.wordy and share < best else None
        if place is None or STOP_TERMS.issuperset(cell.words) or said.tokens[place[0]][0] in taken:
            continue
        if not set(cell.words) <= set(row.terms) | mine.terms | table.kind:
            start, end = said.stretch(place)
            yield CellCheck(start, end, row.label, mine, cell.header, False, False)
            return


def _flag_otherwise(table: TableText, said: ClaimTerms, row: TableRow) -> Iterator[CellCheck]:
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
    if len(named) != 1:
        return
    if _NO_STATEMENT.search(said.text):
        return
    clause, denied = _clause_of(said, _telling(table, named[0][0]))
    shut = not terms_of(clause).isdisjoint(_SHUT) or _OUT_OF.search(clause) is not None
    if named[0][1] is (denied is not shut):
        yield CellCheck(0, len(said.text), row.label, named[0][0], "", True, False)


def _clause_of(said: ClaimTerms, terms: Sequence[int]) -> tuple[str, bool]:
    """The clause of a claim that has one of these words, and whether it denies: "it is in stock, but comes
    without a stand" does not deny that it is in stock."""
    borders = [0, *(match.end() for match in MEETING.finditer(said.text)), len(said.text)]
    at = next((start for start, term in said.tokens if term in terms), 0)
    end = next(border for border in borders[1:] if border > at)
    clause = said.text[borders[borders.index(end) - 1] : end]
    return (clause, Sentence(clause).denials % 2 == 1) if len(borders) > 2 else (said.text, said.denies)


def _telling(table: TableText, cell: Cell) -> list[int]:
    """The terms of a header that tell it from others; all of them where none does."""
    alone = [term for term in cell.terms if table.header_terms[term] == 1]
    return alone or list(cell.terms)


def _of_no_record(table: TableText, said: ClaimTerms) -> Iterator[CellCheck]:
    """Values of a claim that stand in no record together, though each stands in one."""
    held = []
    for figure in said.figures:
        if not _counting(figure):
            rows = [
                (row, cell)
                for row in table.rows
                for cell in row.cells
                if cell.holds(figure) and cell.has_unit_of(figure)
            ]
            held += [(figure.start, figure.end, rows)] if rows else []
    for cells in table.columns.values():
        for _, cell in cells:
            place = place_of(said.tokens, cell.words) if cell.wordy and cell.words[0] in said.terms else None
            if place is not None and not STOP_TERMS.issuperset(cell.words):
                rows = [(row, each) for row, each in cells if each.words == cell.words]
                start, end = said.stretch(place)
                if not any(begin == start for begin, _, _ in held):
                    held.append((start, end, rows))
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


# ------------------------------------------------------------------------- which records a claim speaks of

_MOST_PLACES: Final = 8  # of a word in a claim
_MOST_NAMED: Final = 8  # records of a claim
_NAMED: Final = 0.6  # of what tells a label from the others, that names it
_WEAK: Final = 0.4  # what a number or the word of a value counts in a label, beside other words


def records_named(table: TableText, said: ClaimTerms, with_question: str) -> tuple[list[NamedRow], bool]:
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


def _named(table: TableText, tokens: Sequence[tuple[int, int]], text: str) -> list[NamedRow]:
    """The records that a text names, each by most of what tells its label from the others, side by side."""
    codes = frozenset(CODE.findall(text.casefold()))
    where: dict[int, list[int]] = {}
    for number, (_, term) in enumerate(tokens):
        places = where.setdefault(term, [])
        if len(places) < _MOST_PLACES:
            places.append(number)
    found: list[NamedRow] = []
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
            found.append(NamedRow(row, min(near), frozenset(near)))
    kept = [one for one in found if not any(one.places < other.places for other in found)]
    kept.sort(key=lambda one: one.at)
    return kept if len(kept) <= _MOST_NAMED else []


def _named_in_part(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[NamedRow]:
    """The record whose label has words of a text that no other label, header or value has."""
    others = table.value_terms | table.kind | table.header_terms.keys() | STOP_TERMS
    found: list[NamedRow] = []
    for row in table.alike:
        telling = {t for t in row.terms if table.label_terms[t] == 1 and t not in others} - row.numbers
        places = frozenset(number for number, (_, term) in enumerate(tokens) if term in telling)
        if places:
            found.append(NamedRow(row, min(places), places))
    most = max((len(one.places) for one in found), default=0)
    best = [one for one in found if len(one.places) == most]
    return best if len(best) == 1 else []


def _named_by_values(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[NamedRow]:
    """The one record that a text names by words that only it has: "the school nurse" of a list of staff."""
    found: list[NamedRow] = []
    said = {term for _, term in tokens}
    for cells in table.columns.values():
        told = Counter(cell.words for _, cell in cells)
        for row, cell in cells:
            if told[cell.words] > 1 or not said.issuperset(cell.words) or not cell.wordy:
                continue
            if STOP_TERMS.issuperset(cell.words):
                continue
            place = place_of(tokens, cell.words)
            if place is not None:
                found.append(NamedRow(row, place[0], frozenset(range(*place))))
    return found if len({one.row.label for one in found}) == 1 else []


def _at_the_end(table: TableText, said: ClaimTerms, text: str) -> list[NamedRow]:
    """The record that is said to be the cheapest, heaviest and so on, where one column tells."""
    ways = end_of(text)
    columns = ordered_columns(table, said, ways) if ways and len(table.rows) > 1 else []
    if len(columns) != 1:
        return []
    best = max(amount for _, _, amount in columns[0])
    rows = [row for row, _, amount in columns[0] if amount == best]
    return [NamedRow(rows[0], 0, frozenset())] if len(rows) == 1 else []


def _closest(places: Sequence[Sequence[int]], most: int) -> list[int] | None:
    """A place of each term, all within ``most`` tokens; None where they stand further apart."""
    for first in places[0]:
        chosen = [min(each, key=lambda at: abs(at - first)) for each in places]
        if max(chosen) - min(chosen) < most:
            return chosen
    return None
