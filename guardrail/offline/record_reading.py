"""Reads records of verdicts: lines of files, or values of Kafka's records, whole or in batches.

What can't be used is counted with its reason, and never guessed at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from guardrail.doctor import PROOF_ROUTE, is_proof
from guardrail.errors import DecodeError, InputError
from guardrail.events import Label, ResponseVerdict, decode_error
from guardrail.offline.lines import lines_of, open_unpacked
from guardrail.offline.records import RecordFields, Records, RecordsBuilder

BATCH: Final = 20_000
"""Claims in a batch, about: some 30 MB of records."""
_MOST_PROBLEMS: Final = 20
_RECORD: Final = b'"verdict.response"'
_RESULT: Final = b'"evaluation.result"'
_ENDS: Final = (b'"evaluation.started"', b'"evaluation.completed"')
"""The first and the last line of a results file."""
Problem = tuple[str, str]
"""Where it stands, and what is wrong with it."""


class _ResultFields(TypedDict):
    """Of a line of a results file."""

    schema: NotRequired[Literal[1]]
    type: Literal["evaluation.result"]
    labels: NotRequired[tuple[Label, ...]]
    verdict: NotRequired[RecordFields | None]


# One of two is twice as fast as a union of both.
_record: Final[TypeAdapter[RecordFields]] = TypeAdapter(RecordFields)
_result: Final[TypeAdapter[_ResultFields]] = TypeAdapter(_ResultFields)


@dataclass(slots=True)
class Passed:
    """What was read and is no record: how much of it, and why."""

    others: int = 0
    """Events of other types, such as the verdicts on single claims, which the records repeat."""
    proofs: int = 0
    """Records of answers that ``guardrail doctor`` sent as its proof: they say nothing of what users read."""
    repeated: int = 0
    """Records with an id that was read before, as deliveries at least once leave them."""
    failed: int = 0
    """Results without a verdict, because of an error."""
    unreadable: int = 0
    problems: list[Problem] = field(default_factory=list)
    """The first of the unreadable."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records, and what each was read from: the value in JSON, and its place."""

    records: Records
    values: list[bytes]
    places: list[str]


class RecordReader:
    """Takes values one by one, and gives records in batches."""

    def __init__(self) -> None:
        self.passed = Passed()
        self.labels: list[Label] = []
        """Those that came with results."""
        self._seen: set[str] = set()
        self._start()

    def _start(self) -> None:
        self._builder = RecordsBuilder()
        self._values: list[bytes] = []
        self._places: list[str] = []
        self._claims = 0

    @property
    def full(self) -> bool:
        """Time to take a batch."""
        return self._claims >= BATCH

    def read(self, value: bytes, place: str) -> None:
        """Take one value; what it says of itself decides whether it is a record."""
        # Within a text the quotes would be escaped. Looking is faster than parsing, and most events of the
        # verdicts' topic are verdicts on claims.
        try:
            if _RESULT in value:
                self._read_result(_result.validate_json(value), value, place)
            elif _RECORD in value or not value.startswith(b"{"):
                record = _record.validate_json(value)
                if record.get("route") == PROOF_ROUTE and is_proof(
                    ResponseVerdict.model_validate_json(value)
                ):
                    self.passed.proofs += 1
                else:
                    self._read_record(record, value, place)
            elif not any(each in value for each in _ENDS):
                self.passed.others += 1
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["loc"] == ("type",):
                self.passed.others += 1
            else:
                self.refuse(place, decode_error(error))

    def _read_result(self, result: _ResultFields, value: bytes, place: str) -> None:
        self.labels += result.get("labels", ())
        verdict = result.get("verdict")
        if verdict is None:
            self.passed.failed += 1
        else:
            self._add(verdict, value, place)

    def _read_record(self, record: RecordFields, value: bytes, place: str) -> None:
        name = record.get("id")
        if name is not None:
            if name in self._seen:
                self.passed.repeated += 1
                return
            self._seen.add(name)
        self._add(record, value, place)

    def refuse(self, place: str, error: InputError) -> None:
        """Count what can't be read."""
        self.passed.unreadable += 1
        if len(self.passed.problems) < _MOST_PROBLEMS:
            self.passed.problems.append((place, str(error)))

    def _add(self, record: RecordFields, value: bytes, place: str) -> None:
        self._builder.add(record)
        self._values.append(value)
        self._places.append(place)
        self._claims += 1 + len(record.get("claims", ()))

    def take(self) -> Batch:
        """What was read since the last time."""
        batch = Batch(self._builder.build(), self._values, self._places)
        self._start()
        return batch


def values_of(stream: BinaryIO, name: str, reader: RecordReader) -> Iterator[tuple[bytes, str]]:
    """The lines of a file, each with its place; ``reader`` hears of those that are too long.

    Raises DecodeError for a compressed file that is cut short or damaged.
    """
    for line, place in lines_of(stream, name):
        try:
            yield line.whole, place
        except DecodeError as error:
            reader.refuse(place, error)


def record_batches(stream: BinaryIO, reader: RecordReader, name: str = "") -> Iterator[Batch]:
    """The records of a file of JSON lines: ``verdict.response`` events or the results of an evaluation."""
    for value, place in values_of(stream, name, reader):
        reader.read(value, place)
        if reader.full:
            yield reader.take()
    yield reader.take()


def read_records(path: Path, reader: RecordReader | None = None) -> Records:
    """All records of a file, without their texts. Give a ``reader`` to learn what was passed over.

    Raises OSError, DecodeError.
    """
    reader = reader or RecordReader()
    with open_unpacked(path) as stream:
        return Records.joined([batch.records for batch in record_batches(stream, reader, path.name)])


def incomplete(records: Records) -> Counter[str]:
    """How many records tell less than a policy may need, by what they lack."""
    found: dict[str, Any] = {
        "claims omitted": ~records.tells_claims,
        "judging ended by a block": ~records.judged_to_end,
        "kinds of segments unknown": ~records.tells_kinds,
        "route, tenant and model unknown": ~records.tells_head,
    }
    return Counter({what: int(which.sum()) for what, which in found.items() if which.any()})
