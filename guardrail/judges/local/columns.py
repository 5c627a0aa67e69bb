"""What a claim says of a whole column: who is at its end, who alone has it, that all, none or so many do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from guardrail.evidence.tokens import term_of
from guardrail.figures import Figure, Kind
from guardrail.figures.comparing import OF_MOST, measure_of, size_of, way_of
from guardrail.figures.tables import COMPARATIVES, SUPERLATIVES, alternatives
from guardrail.judges.local.records import (
    NO_VALUE,
    Cell,
    CellCheck,
    ClaimTerms,
    NamedRow,
    TableRow,
    TableText,
    is_bare,
    is_value,
)
from guardrail.structure.tables import says_nothing

HEADED: Final = 0.5  # of what tells a header from the others, that names it
ANSWERING: Final = re.compile(r"\s*(?:yes|no|correct|right)[,.;:!]\s*", re.IGNORECASE)
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
    if found[1]:
        sign = 1 if found[1].casefold() == "most" else -1
        return {measure: sign * way for measure, way in OF_MOST[found[2].casefold()].items()}
    return SUPERLATIVES[found[3].casefold()] if found[3] else COMPARATIVES[found[4].casefold()]


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
