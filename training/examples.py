"""Labelled pairs of a claim and its contexts, as the steps of the pipeline hand them on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

Label: TypeAlias = Literal[
    "supported", "partially_supported", "unsupported", "contradicted", "not_supported"
]  # not_supported: the source doesn't say which of the three before it
_LABELS: Final = frozenset(get_args(Label))


class DataError(ValueError):
    """A file of the pipeline, or of the data given to it, that can't be used; says where and why."""


@dataclass(frozen=True, slots=True)
class Example:
    """A claim, where it is to be found, and what is true of it.

    ``kind`` says how a claim was made wrong (number, date, name, ...), or None. ``spans`` are the code points
    of the claim that the contexts don't support: None where nobody marked them. ``held_out``: no model is
    trained on it; thresholds and calibration are, but for what ``source`` says is measured only
    (``training.written.MEASURED``).
    """

    dataset: str
    licence: str
    claim: str
    contexts: tuple[str, ...]
    label: Label
    kind: str | None = None
    spans: tuple[tuple[int, int], ...] | None = None
    held_out: bool = False
    question: str = ""
    lead_in: str = ""
    source: str = ""  # the data set that a made example's text is from
    made: str = ""  # how it was made
    twin: int | None = None  # the number that a right claim and its wrong twin share

    @property
    def supported(self) -> bool:
        """Whether the contexts say all of the claim."""
        return self.label == "supported"

    @property
    def contradicted(self) -> bool | None:
        """Whether the contexts deny the claim; None where the label doesn't tell."""
        return None if self.label == "not_supported" else self.label == "contradicted"


def write_examples(path: Path, examples: Iterable[Example]) -> int:
    """A row each, compressed, the same bytes for the same examples; returns their number."""
    count = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    # Neither a name nor a time in the header: the file is compared by its checksum.
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        for example in examples:
            packed.write((json.dumps(asdict(example), ensure_ascii=False) + "\n").encode())
            count += 1
    return count


def read_examples(path: Path) -> Iterator[Example]:
    """The rows of a file that ``write_examples`` wrote. Raises DataError."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield _example(line, f"{path}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: can't be read ({error}); make it again with its step") from error


def _example(line: str, where: str) -> Example:
    try:
        raw: dict[str, Any] = json.loads(line)
        raw["contexts"] = tuple(raw["contexts"])
        if raw.get("spans") is not None:
            raw["spans"] = tuple((int(start), int(end)) for start, end in raw["spans"])
        example = Example(**raw)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{where}: no example ({error})") from error
    if example.label not in _LABELS:
        raise DataError(f"{where}: label {example.label!r} is none of {', '.join(sorted(_LABELS))}")
    return example
