"""Files of published data sets, row by row: tab-separated tables, JSON lines, JSON arrays; plain or gzip.

Whatever is not as published ends in a ``DataError`` that names the file, the line and the field. Texts are
untrusted: of a wrong name or label a message shows at most 40 characters, escaped, and of other fields none.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from training.examples import DataError

AS_PUBLISHED: Final = "download the file again as it was published (docs/training.md, The data)"
_SHOWN: Final = 40  # characters of a wrong value in a message

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one row, and where it stands ("file, line 3")."""

    where: str
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """The field's text without blanks around it; may be empty. Raises DataError where it is not text."""
        return self._text(self._field(name), f"field {name!r}")

    def texts(self, name: str) -> tuple[str, ...]:
        """The texts of a list, each stripped. Raises DataError."""
        return tuple(self._text(text, f"an item of field {name!r}") for text in self.items(name))

    def items(self, name: str) -> list[Any]:
        """The items of a list. Raises DataError."""
        found = self._field(name)
        if not isinstance(found, list):
            raise self.wrong(f"field {name!r} is {_kind(found)}, expected a list")
        return found

    def inside(self, name: str) -> Record:
        """The fields of an object. Raises DataError."""
        return self._record(self._field(name), f"field {name!r}")

    def records(self, name: str) -> list[Record]:
        """The objects of a list. Raises DataError."""
        return [self._record(item, f"an item of field {name!r}") for item in self.items(name)]

    def one_of(self, name: str, known: Mapping[str, _Value]) -> _Value:
        """What ``known`` has for the field, numbers compared by their digits. Raises DataError."""
        found = self._field(name)
        key = str(found) if isinstance(found, int) and not isinstance(found, bool) else found
        if not isinstance(key, str) or key.strip() not in known:
            raise self.wrong(f"{name!r} is {_shown(found)}, expected one of {', '.join(known)}")
        return known[key.strip()]

    def wrong(self, what: str) -> DataError:
        """The error that this row is not as published."""
        return DataError(f"{self.where}: {what}; {AS_PUBLISHED}")

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise self.wrong(f"no field {name!r}, found {_names(self.fields)}")
        return self.fields[name]

    def _record(self, value: object, what: str) -> Record:
        if not isinstance(value, dict):
            raise self.wrong(f"{what} is {_kind(value)}, expected an object")
        return Record(self.where, value)

    def _text(self, value: object, what: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(f"{what} is {_kind(value)}, expected a text")
        return value.strip()


def table(path: Path, columns: Sequence[str], *, quoted: bool, delimiter: str = "\t") -> Iterator[Record]:
    """The rows of a file of separated fields (by tabs, unless told otherwise) whose first line names at least
    ``columns``.

    ``quoted``: fields may stand in double quotes, doubled within (as pandas writes them); else a quote is a
    character like others. Raises DataError.
    """
    with _opened(path) as file:
        rows = _rows(path, file, quoted=quoted, delimiter=delimiter)
        line, header = next(rows, (1, []))
        if not set(columns) <= set(header):
            raise DataError(
                f"{path}, line {line}: columns {_names(header)}, expected {', '.join(columns)};"
                f" {AS_PUBLISHED}"
            )
        for line, row in rows:
            if len(row) != len(header):
                raise DataError(
                    f"{path}, line {line}: {len(row)} columns, expected {len(header)}; {AS_PUBLISHED}"
                )
            yield Record(f"{path}, line {line}", dict(zip(header, row, strict=True)))


def bare_table(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    """The rows of a tab-separated file without a line of names, which has exactly ``columns``; quotes are
    characters like others. Raises DataError."""
    with _opened(path) as file:
        for line, row in _rows(path, file, quoted=False):
            if len(row) != len(columns):
                raise DataError(
                    f"{path}, line {line}: {len(row)} columns, expected {len(columns)}"
                    f" ({', '.join(columns)}); {AS_PUBLISHED}"
                )
            yield Record(f"{path}, line {line}", dict(zip(columns, row, strict=True)))


def json_lines(path: Path) -> Iterator[Record]:
    """The objects of a file with one on each line. Raises DataError."""
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _object(_parsed(line, f"{path}, line {number}"), f"{path}, line {number}")


def json_array(path: Path) -> Iterator[Record]:
    """The objects of a file that is one array of them. Raises DataError."""
    with _opened(path) as file:
        found = _parsed(file.read(), str(path))
    if not isinstance(found, list):
        raise DataError(f"{path}: holds {_kind(found)}, expected a list of objects; {AS_PUBLISHED}")
    for number, item in enumerate(found, 1):
        yield _object(item, f"{path}, item {number}")


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The text of a file, plain or gzip by its name."""
    try:
        # The byte order mark that some files begin with is not part of the first column's name.
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                yield file
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise DataError(f"{path}: can't be read ({why}); {AS_PUBLISHED}") from error


def _rows(
    path: Path, file: Iterable[str], *, quoted: bool, delimiter: str = "\t"
) -> Iterator[tuple[int, list[str]]]:
    """The rows that aren't empty, each with the number of its last line."""
    rows = csv.reader(
        file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE, strict=True
    )
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}, line {rows.line_num}: no row ({error}); {AS_PUBLISHED}") from error
        if row:
            yield rows.line_num, row


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise DataError(f"{where}: no JSON{at}; {AS_PUBLISHED}") from error


def _object(value: object, where: str) -> Record:
    if not isinstance(value, dict):
        raise DataError(f"{where}: holds {_kind(value)}, expected an object; {AS_PUBLISHED}")
    return Record(where, value)


def _kind(value: object) -> str:
    """What a wrong value is, without showing what it says."""
    names = {str: "a text", list: "a list", dict: "an object", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _names(names: Iterable[str]) -> str:
    return ", ".join(_shown(name) for name in list(names)[:12]) or "none"


def _shown(value: object) -> str:
    return ascii(value)[:_SHOWN] if isinstance(value, str | int | float) else _kind(value)
