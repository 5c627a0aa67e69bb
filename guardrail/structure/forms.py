"""The forms in which texts write tables: HTML, Markdown, CSV and TSV, aligned columns, JSON, blocks of
``key: value`` lines, and nested lists.

Each form is found in time linear in the text. What merely looks like one of them and is none stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from guardrail.structure.tables import MOST_CELLS, Cell, Field, Grid, Table, TableRecord, table_of

_MOST_COLUMNS: Final = 60  # that stand below each other
_MOST_CHARS: Final = 500_000  # of a text whose layout is read
_LEAST_ROWS: Final = 2
_LEAST_LINES: Final = 3  # of a table without a rule that says it is one


class _Line(NamedTuple):
    """A line without the white space behind it. ``indent`` counts what stands before its text."""

    start: int
    end: int
    indent: int
    text: str


def read_tables(text: str) -> tuple[Table, ...]:
    """The tables of a text, ascending and apart."""
    if len(text) > _MOST_CHARS:
        return ()
    found: list[Table] = []
    for reader in (_html_tables, _json_tables, _line_tables):
        taken = sorted((table.start, table.end) for table in found)
        for start, end in _gaps(taken, len(text)):
            found += reader(text, start, end)
    return tuple(sorted(found, key=lambda table: table.start))


def _gaps(taken: Sequence[tuple[int, int]], end: int) -> Iterator[tuple[int, int]]:
    at = 0
    for start, stop in taken:
        if at < start:
            yield at, start
        at = stop
    if at < end:
        yield at, end


# ------------------------------------------------------------------------------------------------------- HTML

_TABLE_TAG: Final = re.compile(r"<(/?)table\b[^<>]{0,500}>", re.IGNORECASE)
_TAG_END: Final = re.compile(r">(?=[^<])")
_PLACE: Final = re.compile("\ue000(\\d+)\ue001")
_MOST_SPAN: Final = 100


def _html_tables(text: str, begin: int, stop: int) -> list[Table]:
    if "<table" not in text[begin:stop].lower():
        return []
    tables, depth, start = [], 0, 0
    for tag in _TABLE_TAG.finditer(text, begin, stop):
        if not tag[1]:
            start = tag.start() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                tables.append((start, tag.end()))
    if depth:
        tables.append((start, stop))
    found = (_html_table(text, start, end) for start, end in tables)
    return [table for table in found if table is not None]


def _html_table(text: str, start: int, end: int) -> Table | None:
    """The first table of ``text[start:end]``; tables within it are text of their cells.

    The parser tells no offsets, so each run of text is given to it behind a mark with its own.
    """
    from selectolax.lexbor import LexborHTMLParser

    if "\ue000" in text[start:end]:
        return None
    marked = _TAG_END.sub(lambda tag: f">\ue000{tag.end()}\ue001", text[start:end])
    table = LexborHTMLParser(marked).css_first("table")
    if table is None:
        return None
    rows: list[dict[int, Cell | None]] = []
    reaching: dict[int, tuple[int, Cell | None]] = {}  # by column: how many rows on, and what
    headers = labels = cells = 0
    for row in table.css("tr"):
        if (owner := _closest(row, "table")) is None or owner.mem_id != table.mem_id:
            continue
        line, heads, leading = _html_row(row, reaching, text, start)
        cells += len(line)
        if cells > MOST_CELLS:
            return None
        if line:
            if (heads or _closest(row, "thead") is not None) and headers == len(rows):
                headers += 1
            elif len(rows) == headers and leading < len(line):
                labels = leading
            rows.append(line)
    width = max(map(len, rows), default=0)
    if width * len(rows) > MOST_CELLS:
        return None
    grid = [[row.get(column) for column in range(width)] for row in rows]
    return table_of(Grid(start, end, grid, headers, labels), text)


def _html_row(
    row: Any, reaching: dict[int, tuple[int, Cell | None]], text: str, start: int
) -> tuple[dict[int, Cell | None], bool, int]:
    """The cells of a row by column, those that reach into it included; whether all of its own are headers,
    and how many at its front."""
    line: dict[int, Cell | None] = {}
    heads, leading = True, 0
    for cell in row.iter():
        if cell.tag not in ("td", "th") or len(line) > MOST_CELLS:
            continue
        while (column := len(line)) in reaching:
            line[column] = _reached(reaching, column)
        wide, high = _spanned(cell, "colspan"), _spanned(cell, "rowspan")
        said = _html_text(cell, text, start)
        for at in range(column, column + wide):
            line[at] = said
            if high > 1:
                reaching[at] = high - 1, said
        leading += wide if cell.tag == "th" and leading == column else 0
        heads = heads and cell.tag == "th"
    while (column := len(line)) in reaching:
        line[column] = _reached(reaching, column)
    return line, heads, leading


def _closest(node: Any, tag: str) -> Any:
    """The nearest element of this name around a node, at no great distance."""
    for _ in range(_DEEPEST):
        node = node.parent
        if node is None or node.tag == tag:
            return node
    return None


def _spanned(cell: Any, name: str) -> int:
    said = (cell.attributes.get(name) or "").strip()
    return min(int(said[:4]), _MOST_SPAN) or 1 if said.isdecimal() else 1


def _reached(reaching: dict[int, tuple[int, Cell | None]], column: int) -> Cell | None:
    left, cell = reaching.pop(column)
    if left > 1:
        reaching[column] = left - 1, cell
    return cell


def _html_text(cell: Any, text: str, start: int) -> Cell | None:
    """The span of a cell's text, tags within it included."""
    places = [int(place[1]) + start for place in _PLACE.finditer(cell.text(deep=True) or "")]
    if not places:
        return None
    last = places[-1]
    end = text.find("<", last)
    return _stripped(text, places[0], len(text) if end < 0 else end)


def _stripped(text: str, start: int, end: int) -> Cell | None:
    piece = text[start:end]
    said = piece.strip()
    first = start + len(piece) - len(piece.lstrip())
    return (first, first + len(said)) if said else None


# ------------------------------------------------------------------------------------------------------- JSON

_JSON_BEGINS: Final = re.compile(r"^[ \t]*([\[{])", re.MULTILINE)
_SCALAR: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"|([^\s{}\[\],:"]++)')
_MOST_TRIES: Final = 20
_DEEPEST: Final = 20
_NAMES: Final = ("name", "title", "label")
_IDS: Final = ("id", "key", "code", "plan", "product", "model", "type")


def _json_tables(text: str, begin: int, stop: int) -> list[Table]:
    found: list[tuple[int, int, list[TableRecord]]] = []
    at, tries, cells = begin, 0, 0
    while tries < _MOST_TRIES and cells <= MOST_CELLS and (opening := _JSON_BEGINS.search(text, at, stop)):
        start = opening.start(1)
        parsed = _parse_json(text, start, stop)
        tries += parsed is None
        at = opening.end() if parsed is None else parsed[1]
        if parsed is None:
            continue
        records: list[TableRecord] = []
        _json_records(text, parsed[0], (), records)
        cells += sum(len(record.fields) for record in records)
        if not records:
            tries += 1
        elif found and not text[found[-1][1] : start].strip(" \t\r\n,"):  # one object a line
            found[-1][2].extend(records)
            found[-1] = found[-1][0], at, found[-1][2]
        else:
            found.append((start, at, records))
    tables = [Table(start, end, (), tuple(records)) for start, end, records in found]
    return tables if cells <= MOST_CELLS else []


_Node = Cell | list[Any] | dict[Cell, Any]


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, in order."""


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Pairs)


def _parse_json(text: str, start: int, stop: int) -> tuple[_Node, int] | None:
    """The JSON at ``start`` as nodes (a scalar is its span), and where it ends; None where it is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        if end > stop:
            return None
        scalars = _SCALAR.finditer(text, start, end)
        return _placed_node(value, (match.span(match.lastindex or 0) for match in scalars)), end
    except (ValueError, RecursionError):
        return None


def _placed_node(value: Any, spans: Iterator[Cell]) -> _Node:
    """A parsed value with the spans of its scalars, which come in the order of the text."""
    if isinstance(value, _Pairs):
        return {next(spans): _placed_node(inner, spans) for _, inner in value}
    if isinstance(value, list):
        return [_placed_node(inner, spans) for inner in value]
    return next(spans)


def _json_records(text: str, node: _Node, path: tuple[Cell, ...], records: list[TableRecord]) -> None:
    """Add the records of a node: objects that have values; ``path`` are the names of those around it."""
    if isinstance(node, list):
        for each in node:
            if isinstance(each, (list, dict)):
                _json_records(text, each, path, records)
        return
    if not isinstance(node, dict):
        return
    groups = [value for value in node.values() if isinstance(value, dict)]
    of_objects = (
        len(groups) > 1
        and all(not isinstance(inner, (dict, list)) for group in groups for inner in group.values())
        and _shared_keys(text, groups)
    )
    fields: list[Field] = []
    named = _naming(text, node, listed=not path or _is_plural(text, path))
    for key, value in node.items():
        if isinstance(value, dict):
            if of_objects or any(isinstance(inner, (dict, list)) for inner in value.values()):
                _json_records(text, value, (*path, key), records)
            else:
                fields += [Field((key, inner), said) for inner, said in value.items() if said[0] < said[1]]
        elif isinstance(value, list):
            scalars = [each for each in value if isinstance(each, tuple)]
            if scalars:
                fields.append(Field((key,), (scalars[0][0], scalars[-1][1])))
            _json_records(
                text, [each for each in value if not isinstance(each, tuple)], (*path, key), records
            )
        elif value is not named and value[0] < value[1]:
            fields.append(Field((key,), value))
    if fields and (named is not None or path or len(fields) > 1):
        label = path if named is None else (*path[:-1], named) if _is_plural(text, path) else (*path, named)
        records.append(TableRecord(label, tuple(fields)))


def _naming(text: str, node: dict[Cell, Any], *, listed: bool) -> Cell | None:
    """The value that names an object: by its key, else, if nothing around it does, its first string."""
    scalars = [
        (text[slice(*key)].casefold(), value) for key, value in node.items() if isinstance(value, tuple)
    ]
    strings = [value for _, value in scalars if text[value[0] - 1] == '"']
    named = next((value for key, value in scalars if key in _NAMES), None)
    if named is None and listed:
        named = next(iter(strings), None) or next((v for key, v in scalars if key in _IDS), None)
    return named


def _is_plural(text: str, path: tuple[Cell, ...]) -> bool:
    """Whether the innermost name is that of a list ("plans"), which names none of its elements."""
    return bool(path) and text[slice(*path[-1])].endswith("s")


def _shared_keys(text: str, groups: Sequence[dict[Cell, Any]]) -> bool:
    names = [{text[slice(*key)].casefold() for key in group} for group in groups]
    return all(2 * len(names[0] & other) >= len(other) for other in names[1:])


# ------------------------------------------------------------------------------------------------------ lines

_RULED: Final = frozenset(" \t|:+=_-—─━│┼")
_PIPE: Final = re.compile(r"(?<!\\)\|")
_GAP: Final = re.compile(r"[ ]*+\t[ \t]*+|[ ]{2,}+")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*+"|[^"]')
_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_MOST_PROSE: Final = 60  # characters in the mean of the fields of lines that are a table
_MOST_KEY: Final = 40
_MOST_VALUE: Final = 160
_PAIR: Final = re.compile(
    r"[ \t]*+(?:[-*•][ \t]++)?([^\s:=|{}\[\]<>][^:=|\n]{0,60}?)[ \t]{0,8}(?::(?=[\s*_]|\Z)|=)"
    r"[ \t]*+[*_]*+[ \t]*+(\S.*)?\Z"
)
_ITEM: Final = re.compile(r"([ \t]*)(?:[-*•‣◦▪–+]|\d{1,3}[.)])[ \t]+(?=\S)")
_SEPARATES: Final = re.compile(r"[ \t]*(?:[-*_=][ \t]?){3,}\Z")
_HEADING: Final = re.compile(r"[ \t]*(?:#{1,6}[ \t]+|\*\*|__)?(\S.*?)[ \t]*(?:\*\*|__|#+)?:?[ \t]*\Z")


def _is_rule(line: _Line) -> bool:
    """Whether a line is drawn rather than written: ``|---|:--|``, ``=====``."""
    return _RULED.issuperset(line.text) and len(line.text.replace(" ", "")) > 1


def _lines(text: str, begin: int, stop: int) -> list[_Line]:
    lines, at = [], begin
    while at < stop:
        end = text.find("\n", at, stop)
        end = stop if end < 0 else end
        said = text[at:end].rstrip()
        lines.append(_Line(at, at + len(said), len(said) - len(said.lstrip()), said))
        at = end + 1
    return lines


def _line_tables(text: str, begin: int, stop: int) -> list[Table]:
    """The tables that lines make up, one form after the other; a line is of one table."""
    lines = _lines(text, begin, stop)
    found: list[Table] = []
    taken = [False] * len(lines)
    for form in (_pipe_rows, _delimited_rows, _nested_items, _field_blocks, _aligned_rows):
        at = 0
        while at < len(lines):
            first = at
            while at < len(lines) and not taken[at]:
                at += 1
            if first < at:
                for low, high, table in form(text, lines[first:at]):
                    found.append(table)
                    taken[first + low : first + high] = [True] * (high - low)
            at += 1
    return found


_Found = Iterator[tuple[int, int, Table]]
"""Tables with the numbers of their lines, half-open."""


def _runs(lines: Sequence[_Line], within: Callable[[_Line], bool], least: int) -> Iterator[tuple[int, int]]:
    """Stretches of at least so many lines that follow each other."""
    first = 0
    for at in range(len(lines) + 1):
        if at == len(lines) or not within(lines[at]):
            if at - first >= least:
                yield first, at
            first = at + 1


def _gridded(text: str, lines: Sequence[_Line], rows: list[list[Cell | None]], headers: int) -> Table | None:
    speakers = sum(bool(row) and row[0] is not None and text[row[0][1] - 1] == ":" for row in rows)
    if max(map(len, rows)) * len(rows) > MOST_CELLS or 2 * speakers > len(rows):
        return None
    return table_of(Grid(lines[0].start, lines[-1].end, rows, headers), text)


def _pipe_rows(text: str, lines: Sequence[_Line]) -> _Found:
    """Markdown, with or without outer pipes, and what is drawn with ``+---+``."""
    for first, after in _runs(lines, lambda line: "|" in line.text or _is_rule(line), 2):
        block = lines[first:after]
        while block and "|" not in block[-1].text:
            block = block[:-1]
        rows = [_pipe_cells(text, line) for line in block if not _is_rule(line)]
        ruled = any(_is_rule(line) for line in block[1:3])
        if len(rows) < _LEAST_ROWS or not (
            ruled or (len(rows) >= _LEAST_LINES and len({*map(len, rows)}) == 1)
        ):
            continue
        table = _gridded(text, block, rows, int(ruled))
        if table is not None:
            yield first, first + len(block), table


def _pipe_cells(text: str, line: _Line) -> list[Cell | None]:
    start, end = line.start + line.indent, line.end
    if text.startswith("|", start):
        start += 1
    if end > start and text[end - 1] == "|" and text[end - 2 : end - 1] != "\\":
        end -= 1
    cells, at = [], start
    for pipe in _PIPE.finditer(text, start, end):
        cells.append(_stripped(text, at, pipe.start()))
        at = pipe.end()
    return [*cells, _stripped(text, at, end)]


def _delimited_rows(text: str, lines: Sequence[_Line]) -> _Found:
    """CSV and the like: the same number of fields in each line, none of them prose."""
    split: list[tuple[str, list[Cell | None]]] = [_delimited(text, line) for line in lines]
    for first, after in _runs(lines, lambda line: bool(line.text), _LEAST_LINES):
        at = first
        while at < after:
            sign, cells = split[at]
            high = at
            while high < after and split[high][0] == sign and len(split[high][1]) == len(cells):
                high += 1
            if sign and high - at >= _LEAST_LINES and _fields(text, sign, [row for _, row in split[at:high]]):
                table = _gridded(text, lines[at:high], [row for _, row in split[at:high]], 0)
                if table is not None:
                    yield at, high, table
            at = max(high, at + 1)


def _delimited(text: str, line: _Line) -> tuple[str, list[Cell | None]]:
    """The fields of a line by its commonest delimiter, ``""`` where it has none."""
    signs = {"\t": 0, ";": 0, ",": 0}
    pieces = list(_QUOTED.finditer(text, line.start, line.end)) if '"' in line.text else None
    for sign in signs:
        signs[sign] = line.text.count(sign) if pieces is None else sum(p[0] == sign for p in pieces)
    sign = next((sign for sign, count in signs.items() if count), "")
    if not sign:
        return "", []
    if pieces is None:
        cuts = [at for at in range(line.start, line.end) if text[at] == sign]
    else:
        cuts = [piece.start() for piece in pieces if piece[0] == sign]
    cells = [_unquoted(text, a + 1, b) for a, b in pairwise([line.start - 1, *cuts, line.end])]
    return sign, cells


def _unquoted(text: str, start: int, end: int) -> Cell | None:
    cell = _stripped(text, start, end)
    if cell and cell[1] - cell[0] >= 2 and text[cell[0]] == text[cell[1] - 1] == '"':
        return _stripped(text, cell[0] + 1, cell[1] - 1)
    return cell


def _fields(text: str, sign: str, rows: Sequence[Sequence[Cell | None]]) -> bool:
    """Whether what a delimiter parts are fields rather than prose or figures."""
    cells = [cell for row in rows for cell in row if cell is not None]
    if len(rows[0]) < 2 or not cells or sum(end - start for start, end in cells) > _MOST_PROSE * len(cells):
        return False
    if sign == "\t":
        return True
    spaced = sum(text[start - 1] == " " for row in rows for cell in row[1:] if cell for start in cell[:1])
    stops = sum(text[row[-1][1] - 1] in ".!?:" for row in rows if row[-1])
    if 2 * stops > len(rows):
        return False
    parted = sum(len(row) - 1 for row in rows)
    return (len(rows[0]) > 2 and 2 * spaced < parted) or 4 * spaced < parted


def _aligned_rows(text: str, lines: Sequence[_Line]) -> _Found:
    """Columns that stand below each other, parted by several spaces."""

    def columnar(line: _Line) -> bool:
        return bool(_GAP.search(line.text, line.indent)) or bool(_SEPARATES.match(line.text) and line.text)

    for first, after in _runs(lines, columnar, _LEAST_LINES):
        block = [line for line in lines[first:after] if not _is_rule(line)]
        if len(block) < _LEAST_LINES:
            continue
        rows = [_gapped(text, line) for line in block]
        width = max(map(len, rows))
        head = rows[0]
        if width > _MOST_COLUMNS or width * len(rows) > MOST_CELLS:
            continue
        if len(head) < width - 1 or width < 2 or sum(len(row) > 1 for row in rows) < len(rows):
            continue
        starts = [cell[0] - block[0].start for cell in head]
        if len(head) == width - 1:  # nothing stands above the labels
            starts.insert(0, 0)
        placed = [_placed(row, line, starts, head, block[0]) for row, line in zip(rows, block, strict=True)]
        if any(row is None for row in placed):
            continue
        table = _gridded(text, block, [row for row in placed if row is not None], 0)
        if table is not None:
            yield first, after, table


def _gapped(text: str, line: _Line) -> list[Cell]:
    cells, at = [], line.start + line.indent
    for gap in _GAP.finditer(text, at, line.end):
        cells.append((at, gap.start()))
        at = gap.end()
    return [*cells, (at, line.end)]


def _placed(
    row: Sequence[Cell], line: _Line, starts: Sequence[int], head: Sequence[Cell], first: _Line
) -> list[Cell | None] | None:
    """The cells of a line by the column that they stand in; None where two stand in one."""
    if len(row) == len(starts):
        return list(row)
    if len(row) > len(starts):
        return None
    ends = [*starts[1:], 1 << 30]
    heads = {cell[0] - first.start: cell[1] - first.start for cell in head}
    placed: list[Cell | None] = [None] * len(starts)
    for cell in row:
        low, high = cell[0] - line.start, cell[1] - line.start
        overlap = [
            max(0, min(high, max(heads.get(start, start + 1), start + 1)) - max(low, start)) * 1000
            + max(0, min(high, end) - max(low, start))
            for start, end in zip(starts, ends, strict=True)
        ]
        column = max(range(len(starts)), key=overlap.__getitem__)
        if placed[column] is not None:
            return None
        placed[column] = cell
    return placed


class _Item(NamedTuple):
    line: int
    depth: int
    cell: Cell


def _nested_items(text: str, lines: Sequence[_Line]) -> _Found:
    """Lists whose items have items of their own, or a name and a value each ("- Northgate: Tuesday")."""
    for first, after in _runs(lines, lambda line: bool(_ITEM.match(line.text)), _LEAST_ROWS):
        items = []
        for number in range(first, after):
            line = lines[number]
            mark = _ITEM.match(line.text)
            cell = mark and _stripped(text, line.start + mark.end(), line.end)
            if cell:
                items.append(_Item(number, line.indent, cell))
        records = _item_records(text, items)
        if len(records) >= _LEAST_ROWS:
            table = Table(lines[first].start, lines[after - 1].end, (), tuple(records))
            yield first, after, table


def _item_records(text: str, items: Sequence[_Item]) -> list[TableRecord]:
    """One record for each item that has items, with those of them that have none; of a flat list one for
    each item that is a name with a value. Nothing where some of the items would be in no record."""
    if not items:
        return []
    nested = any(after.depth > item.depth for item, after in pairwise(items))
    if not nested:
        pairs = [_parted(text, item.cell) for item in items]
        if len(items) < _LEAST_LINES or any(pair is None or pair[1] is None for pair in pairs):
            return []
        if sum(text[item.cell[1] - 1] in ".!?" for item in items) > 1:  # those are sentences
            return []
        return [TableRecord((pair[0],), (Field((), pair[1]),)) for pair in pairs if pair and pair[1]]
    path: list[tuple[int, Cell]] = []
    open_: dict[tuple[Cell, ...], list[Field]] = {}
    for number, item in enumerate(items):
        while path and path[-1][0] >= item.depth:
            path.pop()
        parent = number + 1 < len(items) and items[number + 1].depth > item.depth
        pair = _parted(text, item.cell)
        label = tuple(cell for _, cell in path)
        if parent:
            name = pair[0] if pair else item.cell
            path.append((item.depth, name))
            if pair and pair[1]:
                open_.setdefault((*label, name), []).append(Field((), pair[1]))
        else:
            field = Field((pair[0],), pair[1]) if pair and pair[1] else Field((), item.cell)
            open_.setdefault(label, []).append(field)
    if len({label[0] for label in open_ if label}) < _LEAST_ROWS:
        return []
    found: dict[tuple[Cell, ...], list[Field]] = {}
    for label, fields in open_.items():
        # What stands below an item that has values of its own is of that; else the inner item is the record.
        own = next((label[:depth] for depth in range(1, len(label)) if label[:depth] in open_), label)
        inner = label[len(own) :]
        found.setdefault(own, []).extend(Field((*inner, *f.header), f.value) for f in fields)
    return [TableRecord(label, tuple(fields)) for label, fields in found.items()]


def _parted(text: str, cell: Cell) -> tuple[Cell, Cell | None] | None:
    """``key: value``; None for a text that is not so."""
    said = text[slice(*cell)]
    pair = _PAIR.match(said)
    if pair is None or len(pair[1]) > _MOST_KEY or len(pair[2] or "") > _MOST_VALUE:
        return None
    key = _stripped(text, cell[0] + pair.start(1), cell[0] + pair.end(1))
    value = _stripped(text, cell[0] + pair.start(2), cell[0] + pair.end(2)) if pair[2] else None
    return (key, value) if key else None


class _Block(NamedTuple):
    """``key: value`` lines that follow each other: the numbers of the line of its heading, if it has one, of
    its first line and of the line behind it."""

    top: int
    first: int
    after: int
    heading: Cell | None
    fields: list[Field]

    def keys(self, text: str) -> list[str]:
        return [text[slice(*field.header[0])].casefold() for field in self.fields]


def _field_blocks(text: str, lines: Sequence[_Line]) -> _Found:
    """Blocks of ``key: value`` lines of the same keys, one for each record."""
    blocks: list[_Block] = []
    heading: tuple[int, Cell] | None = None
    fresh = True
    for number, line in enumerate(lines):
        pair = _parted(text, (line.start, line.end)) if line.text else None
        if pair is not None and pair[1] is None and not fresh and blocks:  # "Extension:", and no value
            blocks[-1] = blocks[-1]._replace(after=number + 1)
            continue
        if pair is None or pair[1] is None:
            if line.text and not _SEPARATES.match(line.text) and not _FENCE.match(line.text):
                heading = _heading(text, line, pair and pair[0], number)
            fresh = True
            continue
        field = Field((pair[0],), pair[1])
        key = text[slice(*pair[0])].casefold()
        if not blocks or fresh or key == text[slice(*blocks[-1].fields[0].header[0])].casefold():
            top, of = heading or (number, None)
            blocks.append(_Block(top, number, number + 1, of, [field]))
        else:
            blocks[-1].fields.append(field)
            blocks[-1] = blocks[-1]._replace(after=number + 1)
        fresh, heading = False, None
    yield from _alike_blocks(text, lines, blocks)


def _heading(text: str, line: _Line, key: Cell | None, number: int) -> tuple[int, Cell] | None:
    """What a short line that is no field names, with its number."""
    if key is None and len(line.text) <= 2 * _MOST_PROSE and (named := _HEADING.match(line.text)):
        key = _stripped(text, line.start + named.start(1), line.start + named.end(1))
    return (number, key) if key is not None and key[1] - key[0] <= _MOST_PROSE else None


def _alike_blocks(text: str, lines: Sequence[_Line], blocks: Sequence[_Block]) -> _Found:
    """Tables of neighbouring blocks that share most of their keys."""
    at = 0
    while at < len(blocks):
        names = set(blocks[at].keys(text))
        high = at
        while high < len(blocks):
            own = blocks[high].keys(text)
            if len(own) < 2 or len(set(own)) < len(own) or 2 * len(names & set(own)) < len(own):
                break
            high += 1
        table = _table_of_blocks(text, lines, blocks[at:high])
        if table is not None:
            yield table
        at = max(high, at + 1)


def _table_of_blocks(
    text: str, lines: Sequence[_Line], blocks: Sequence[_Block]
) -> tuple[int, int, Table] | None:
    values = [field.value for block in blocks for field in block.fields]
    sentences = sum(text[end - 1] in ".!?" for _, end in values)
    if len(blocks) < _LEAST_ROWS or len(values) > MOST_CELLS or 2 * sentences > len(values):
        return None
    headed = all(block.heading is not None for block in blocks)
    records = [
        TableRecord((block.heading,), tuple(block.fields))
        if headed and block.heading is not None
        else TableRecord((block.fields[0].value,), tuple(block.fields[1:]))
        for block in blocks
    ]
    first, after = blocks[0].top if headed else blocks[0].first, blocks[-1].after
    kind = () if headed else blocks[0].fields[0].header
    return first, after, Table(lines[first].start, lines[after - 1].end, kind, tuple(records))
