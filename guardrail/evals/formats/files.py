"""Files of any kind as rows: JSON lines, JSON documents, CSV, Parquet, each of them gzipped or not.

Lines, tables and Parquet are read as they go; a JSON document is one value, so it is read whole.
"""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic_core import from_json

from guardrail.errors import ConfigError, install_hint
from guardrail.evals.formats.values import Row, kind_of, named, read_json
from guardrail.evals.lines import BOM, BROKEN_GZIP, MAX_LINE_BYTES, InputLine, read_lines, unpacked

MAX_DOCUMENT_BYTES: Final = 1024 * 1024 * 1024
_PARQUET: Final = b"PAR1"
_HEAD_BYTES: Final = 4096
_BATCH: Final = 64
_FEWEST_COLUMNS: Final = 2
_NOTHING: Final = frozenset({"", "nan", "NaN", "None", "<NA>"})
"""How cells without a value are written, pandas' and Python's words among them."""
_ROWS_UNDER: Final = (
    "data",
    "samples",
    "rows",
    "items",
    "observations",
    "spans",
    "traces",
    "goldens",
    "examples",
    "testCases",
    "test_results",
)


def read_rows(stream: BinaryIO, path: Path | None) -> Iterator[Row]:
    """The rows of a file, None for stdin. Its name tells a table from lines.

    Rows that can't be read have a problem. Raises ConfigError, which names the file, where it can't be read
    as a whole.
    """
    try:
        yield from _rows(unpacked(stream), "" if path is None else path.name.lower().removesuffix(".gz"))
    except BROKEN_GZIP as error:
        raise ConfigError(f"{path or 'stdin'}: broken gzip ({error}); write the file anew") from None
    except ConfigError as error:
        raise ConfigError(f"{path or 'stdin'}: {error}") from None


def _rows(stream: Any, name: str) -> Iterator[Row]:
    head: bytes = stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return iter([Row("line 1", problem="UTF-16 and not UTF-8; convert the file to UTF-8")])
    if head.startswith(_PARQUET):
        return _parquet(stream)
    if b"\0" in head and not _is_text(head):
        raise ConfigError("a binary file; give answers as JSON lines, JSON, CSV or Parquet, gzipped or not")
    return _table(stream) if name.endswith((".csv", ".tsv")) else _json(stream)


def _is_text(head: bytes) -> bool:
    """Whether a file that begins so is UTF-8; its last character may be cut."""
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _json(stream: BinaryIO) -> Iterator[Row]:
    """JSON lines if the first line is an object of its own, else one document."""
    lines = read_lines(stream)
    first = next(lines, None)
    if first is None:
        return
    if first.data is None or isinstance(found := read_json(first.data), dict):
        # A document of one line is not a stream of lines: it holds all answers in one object.
        if first.data is not None and isinstance(rows := _rows_in(found), list):
            yield from _items(rows)
            return
        yield from map(_line_row, chain([first], lines))
    elif found is None and first.data != b"{" and not first.data.startswith(b"["):
        yield from map(_line_row, chain([first], lines))  # a bad line, and no document over many lines
    else:
        yield from _document(first.data + b"\n", stream)


def _line_row(line: InputLine) -> Row:
    def bad(problem: str) -> Row:
        return Row(f"line {line.number}", problem=problem)

    if line.data is None:
        limit = f"{line.size:,} bytes; a line may have {MAX_LINE_BYTES:,}"
        return bad(f"{limit}: give fewer or shorter contexts")
    try:
        line.data.decode()
    except UnicodeDecodeError as error:
        return bad(f"not UTF-8 (byte {error.start + 1} of the line); convert the file to UTF-8")
    try:
        found = from_json(line.data)
    except ValueError as error:
        # The parser counts lines within the event, which is one line; that number would mislead.
        return bad(
            f"not valid JSON: {error}; give one object a line".replace(" at line 1 column ", " at column ")
        )
    if not isinstance(found, dict):
        return bad("no JSON object; give one answer a line")
    return Row(f"line {line.number}", found)


def _document(begun: bytes, stream: BinaryIO) -> Iterator[Row]:
    rest = stream.read(MAX_DOCUMENT_BYTES)
    if len(rest) == MAX_DOCUMENT_BYTES:
        raise ConfigError(
            f"a JSON document of more than {MAX_DOCUMENT_BYTES:,} bytes; give JSON lines, one object a line, "
            "which are read as they go (jq -c '.[]')"
        )
    data = begun.removeprefix(BOM) + rest
    try:
        found = from_json(data)
    except ValueError as error:
        raise ConfigError(
            f"neither JSON lines nor a JSON document: {error}; give one of them, CSV or Parquet"
        ) from None
    rows = _rows_in(found)
    yield from _items(rows if rows is not None else [found])


def _rows_in(found: Any) -> list[Any] | None:
    """The rows that a document holds: a list, also under a known name, or columns; None of a row itself."""
    if isinstance(found, list):
        return found
    if not isinstance(found, Mapping):
        return None
    if isinstance(found.get("testRunData"), Mapping):  # DeepEval's latest run
        found = found["testRunData"]
    results = found.get("results")
    if isinstance(results, Mapping) and isinstance(results.get("results"), list):  # promptfoo
        return list(results["results"])
    if isinstance(results, list) and results and isinstance(results[0], Mapping) and "vars" in results[0]:
        return results
    if isinstance(found.get("inputs"), Mapping):  # Haystack's run, whose inputs are columns
        return _columns(found["inputs"])
    for name in _ROWS_UNDER:
        inner = found.get(name)
        is_a_trace = name == "observations" and "id" in found
        if isinstance(inner, list) and not is_a_trace and all(isinstance(each, Mapping) for each in inner):
            return inner
    return _columns(found)


def _columns(columns: Mapping[str, Any]) -> list[Any] | None:
    """Rows of columns of one length: lists, or mappings by the index, as pandas writes; None of all else."""
    values = list(columns.values())
    if all(isinstance(each, Mapping) and [*each] == [*values[0]] for each in values):
        values = [list(each.values()) for each in values]
    if (
        len(values) < _FEWEST_COLUMNS
        or not all(isinstance(each, list) for each in values)
        or len({len(v) for v in values}) != 1
    ):
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def _items(rows: Sequence[Any]) -> Iterator[Row]:
    for number, found in enumerate(rows, start=1):
        if isinstance(found, Mapping):
            yield Row(f"row {number}", found)
        else:
            yield Row(f"row {number}", problem=f"{kind_of(found)}; give an object for each answer")


def _table(stream: BinaryIO) -> Iterator[Row]:
    """Rows of a table. The delimiter is the one of comma, semicolon and tab that its head has most of."""
    csv.field_size_limit(MAX_LINE_BYTES)
    # Bytes that are no UTF-8 are kept apart, so that they spoil their own row only.
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield from _table_rows(text)
    finally:
        text.detach()  # the stream is its owner's to close


def _table_rows(text: io.TextIOWrapper) -> Iterator[Row]:
    head = text.readline(MAX_LINE_BYTES)
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(chain([head], text), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    number = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            problem = f"not valid CSV: {error}; quote cells with line breaks or quotes"
            yield Row(f"row {number}", problem=problem)
            if names is None:
                return
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            if twice := [each for each in names if each and names.count(each) > 1]:
                problem = f"two columns are called {named(twice[0])}; give each a name of its own"
                yield Row("head", problem=problem)
                return
            continue
        if not cells:
            continue
        number += 1
        yield _table_row(names, cells, number)


def _table_row(names: Sequence[str], cells: Sequence[str], number: int) -> Row:
    place = f"row {number}"
    if len(cells) != len(names):
        problem = f"{len(cells)} cells under {len(names)} names; quote cells that hold the delimiter"
        return Row(place, problem=problem)
    if any("\udc80" <= char <= "\udcff" for cell in cells if not cell.isascii() for char in cell):
        return Row(place, problem="not UTF-8; convert the file to UTF-8")
    return Row(place, {key: cell for key, cell in zip(names, cells, strict=True) if cell not in _NOTHING})


def _parquet(stream: BinaryIO) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        message = f"Parquet needs pyarrow, which is not installed; {install_hint('parquet')}"
        raise ConfigError(message) from None
    if not stream.seekable():
        stream = io.BytesIO(stream.read(MAX_DOCUMENT_BYTES))
    number = 0
    try:
        with ParquetFile(stream) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                for fields in batch.to_pylist():
                    number += 1
                    yield Row(f"row {number}", fields)
    except ArrowException as error:
        raise ConfigError(f"not a Parquet file that can be read: {error}; write it anew") from None
