"""A table as records, whichever way it lies: each field beside its header, each record with its label.

Forms of tables (``guardrail.structure.forms``) give a grid of cells. What follows from a grid is told here:
which cells are headers, whether the records are its rows or its columns, and what labels a record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final, NamedTuple

Cell = tuple[int, int]
"""The span of a cell's text, white space around it left out: code points."""

MOST_CELLS: Final = 20_000  # of a table, the places of missing ones included; a larger one stays text
_MOST_LABELS: Final = 3  # leading columns that label a record between them
_CLEARLY: Final = 0.15  # by which the kinds of cells must agree more along columns than along rows
_DIGIT: Final = re.compile(r"\d")
_FIGURE: Final = re.compile(r"([$€£¥₹])?\s?\d[\d.,:/–-]*\s?([%°a-zA-Zµ€£]{0,8})")
_YES: Final = frozenset("✓ ✔ ☑ ✅ √ ● • yes y true x included".split())  # noqa: SIM905
_NO: Final = frozenset("✗ ✘ ☒ ❌ ✖ × ○ no n false none".split())  # noqa: SIM905
_NOTHING: Final = frozenset(("", "-", "–", "—", "n/a", "na", "…", "null"))


class Field(NamedTuple):
    """A value and the headers above it, outermost first."""

    header: tuple[Cell, ...]
    value: Cell


class TableRecord(NamedTuple):
    """What the table says of one thing: the label names it, in one cell or several."""

    label: tuple[Cell, ...]
    fields: tuple[Field, ...]


class Table(NamedTuple):
    """Records of one kind that fill ``text[start:end]``, in the order of the text.

    ``kind`` says what labels them ("District"), where the table does; a cell of several rows or columns is
    in each of the records that it is of.
    """

    start: int
    end: int
    kind: tuple[Cell, ...]
    records: tuple[TableRecord, ...]


class Grid(NamedTuple):
    """Cells by row and column, None where there is none; a spanning cell stands in every place it spans.

    ``headers`` and ``labels`` count the rows and columns that are headers for certain; 0 where that is open.
    """

    start: int
    end: int
    rows: Sequence[Sequence[Cell | None]]
    headers: int = 0
    labels: int = 0


def yes_or_no(text: str) -> bool | None:
    """What a cell that only says yes or no says; None for any other."""
    word = text.strip().strip("*_").casefold().removesuffix("\ufe0f")
    return True if word in _YES else False if word in _NO else None


def says_nothing(text: str) -> bool:
    """Whether a cell is as good as empty."""
    return text.strip().casefold() in _NOTHING


def table_of(grid: Grid, text: str) -> Table | None:
    """The records of a grid; None where it has none: no second column, or no row beside its headers."""
    width = max(map(len, grid.rows), default=0)
    if width * len(grid.rows) > MOST_CELLS:
        return None
    rows = [[*row, *[None] * (width - len(row))] for row in grid.rows]
    rows, sections = _without_sections(rows, width)
    headers = grid.headers or _header_rows(rows, text)
    if width < 2 or len(rows) <= headers:
        return None
    turned = not grid.labels and headers <= 1 and _lies(rows, headers, text)
    if turned:
        rows = [list(column) for column in zip(*rows, strict=True)]
        sections, width, headers = {}, len(rows[0]), 1
    labels = max(grid.labels, _label_columns(rows[headers:], text))
    heads = [_path(rows[:headers], column, text) for column in range(width)]
    records = []
    for number, row in enumerate(rows[headers:], headers):
        label = _distinct([*sections.get(number, ()), *(cell for cell in row[:labels] if cell)])
        fields = [
            Field(heads[column], cell)
            for column, cell in enumerate(row)
            if column >= labels and cell is not None
        ]
        if fields:
            records.append(TableRecord(label, tuple(fields)))
    # What stands in the corner of a table that was turned says what its headers are.
    kind = () if turned else _distinct([cell for head in heads[:labels] for cell in head])
    return Table(grid.start, grid.end, kind, tuple(records)) if records else None


def _without_sections(
    rows: list[list[Cell | None]], width: int
) -> tuple[list[list[Cell | None]], dict[int, list[Cell]]]:
    """The rows but for those that one cell fills, which head the rows below them."""
    kept: list[list[Cell | None]] = []
    sections: dict[int, list[Cell]] = {}
    section: list[Cell] = []
    for number, row in enumerate(rows):
        cells = {cell for cell in row if cell is not None}
        if (
            width > 2
            and number
            and len(cells) == 1
            and (len(row) - row.count(None) > 1 or row[0] is not None)
        ):
            section = list(cells) if row[0] is not None else section
            continue
        if section:
            sections[len(kept)] = section
        kept.append(row)
    return kept, sections


def _header_rows(rows: Sequence[Sequence[Cell | None]], text: str) -> int:
    """1 where the first row says what stands below it: it has no figures, or none such as those have."""
    if len(rows) < 2:
        return 0
    first = [_sort(cell, text) for cell in rows[0]]
    if all(sort in ("word", "") for sort in first):
        return 1
    below = [[_sort(row[column], text) for row in rows[1:]] for column in range(len(first))]
    alike = sum(sort in sorts for sort, sorts in zip(first, below, strict=True) if sort)
    return int(2 * alike < len(first))


def _sort(cell: Cell | None, text: str) -> str:
    """What sort of value a cell has, roughly: figures of the same unit are of one sort."""
    said = "" if cell is None else text[slice(*cell)].strip()
    if says_nothing(said):
        return ""
    if yes_or_no(said) is not None:
        return "yes"
    if not _DIGIT.search(said):
        return "word"
    figure = _FIGURE.search(said)
    return "figure" if figure is None else f"figure {figure[1] or ''}{figure[2].lower().rstrip('s')}"


def _lies(rows: Sequence[Sequence[Cell | None]], headers: int, text: str) -> bool:
    """Whether the records are the columns: the values of a row are of one sort, those of a column are not."""
    if not headers:
        return False
    body = [[_sort(cell, text) for cell in row[1:]] for row in rows[headers:]]
    along_columns = _agreement([list(column) for column in zip(*body, strict=True)])
    return _agreement(body) > along_columns + _CLEARLY


def _agreement(lines: Sequence[Sequence[str]]) -> float:
    """How much the values of each line are of one sort, 0..1."""
    shares = []
    for line in lines:
        sorts = Counter(sort for sort in line if sort)
        if sorts.total() > 1:
            shares.append(max(sorts.values()) / sorts.total())
    return sum(shares) / len(shares) if shares else 0.0


def _label_columns(body: Sequence[Sequence[Cell | None]], text: str) -> int:
    """How many columns at the front it takes to tell the records apart; 1 where no few do."""
    width = max(map(len, body))
    for count in range(1, min(_MOST_LABELS, width - 1) + 1):
        told = [
            tuple("" if cell is None else text[slice(*cell)].casefold() for cell in row[:count])
            for row in body
        ]
        if len(set(told)) == len(told):
            return count
        column = ["" if (cell := row[count]) is None else text[slice(*cell)].casefold() for row in body]
        figures = any(_sort(row[count], text).startswith("figure") for row in body)
        if figures and 2 * len(set(column)) > len(column):
            break  # values; those that come again beside other labels are one: "22 mm" of each wood
    return 1


def _path(headers: Sequence[Sequence[Cell | None]], column: int, text: str) -> tuple[Cell, ...]:
    cells = [row[column] for row in headers if column < len(row)]
    told = [cell for cell in cells if cell is not None and not says_nothing(text[slice(*cell)])]
    return _distinct(told)


def _distinct(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    return tuple(cell for cell, _ in groupby(cells))
