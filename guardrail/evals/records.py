"""Stored verdicts, read one at a time: from lines of files, or from values of Kafka's records.

What can't be used is counted with its reason, and never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from pydantic import ValidationError
from pydantic_core import from_json

from guardrail.doctor import PROOF_ROUTE, is_proof
from guardrail.errors import DecodeError, InputError
from guardrail.evals.lines import lines_of
from guardrail.evals.results import EvaluationResult
from guardrail.events import Label, ResponseVerdict, decode_error

_MOST_PROBLEMS: Final = 20
_MODELS: Final[Mapping[bytes, type[EvaluationResult | ResponseVerdict | Label]]] = {
    b'"evaluation.result"': EvaluationResult,  # before what it holds
    b'"verdict.response"': ResponseVerdict,
    b'"label"': Label,
}
"""By its type, as it stands in JSON: within a text the quotes would be escaped."""
ENDS: Final = frozenset({"evaluation.started", "evaluation.completed"})
"""The types of the first and the last line of a results file."""
_MARKS_OF_ENDS: Final = tuple(f'"{each}"'.encode() for each in ENDS)
Problem = tuple[str, str]
"""Where it stands, and what is wrong with it."""


def parse_record(value: bytes) -> EvaluationResult | ResponseVerdict | Label | None:
    """What a line of a file or a value of a topic holds; None for an event of another type.

    Looking for a type is faster than parsing, and most events of the verdicts' topic are verdicts on claims.
    Raises DecodeError.
    """
    for mark, model in _MODELS.items():
        if mark in value:
            try:
                return model.model_validate_json(value)
            except ValidationError as error:
                given = error.errors(include_url=False, include_input=False)
                if all(each["loc"] != ("type",) for each in given):
                    raise decode_error(error) from None
    if not value.startswith(b"{"):
        type_of(value)  # raises for what is not JSON
    return None


def type_of(value: bytes) -> str | None:
    """The type of an event, None if it has none. Raises DecodeError for what is not JSON."""
    try:
        found = from_json(value)
    except ValueError as error:
        raise DecodeError("invalid_json", f"not valid JSON: {error}") from None
    kind = found.get("type") if isinstance(found, dict) else None
    return kind if isinstance(kind, str) else None


def is_end(value: bytes) -> bool:
    """Whether this is the first or the last line of a results file. Raises DecodeError."""
    return any(each in value for each in _MARKS_OF_ENDS) and type_of(value) in ENDS


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


class RecordReader:
    """Takes values one by one, and gives the verdicts in them."""

    def __init__(self) -> None:
        self.passed = Passed()
        self.labels: list[Label] = []
        """Those that came with results."""
        self._seen: set[str] = set()

    def read(self, value: bytes, place: str) -> ResponseVerdict | None:
        """The verdict in a value. None if it is no record, which is counted; ``place`` is for messages."""
        try:
            found = parse_record(value)
            other = found is None and not is_end(value)
        except DecodeError as error:
            self.refuse(place, error)
            return None
        if isinstance(found, EvaluationResult):
            return self._of_result(found)
        if isinstance(found, ResponseVerdict):
            return self._of_record(found)
        self.passed.others += other
        return None

    def _of_result(self, result: EvaluationResult) -> ResponseVerdict | None:
        self.labels += result.labels
        self.passed.failed += result.verdict is None
        return result.verdict

    def _of_record(self, verdict: ResponseVerdict) -> ResponseVerdict | None:
        if verdict.route == PROOF_ROUTE and is_proof(verdict):
            self.passed.proofs += 1
        elif verdict.id in self._seen:
            self.passed.repeated += 1
        else:
            self._seen.add(verdict.id)
            return verdict
        return None

    def refuse(self, place: str, error: InputError) -> None:
        """Count what can't be read."""
        self.passed.unreadable += 1
        if len(self.passed.problems) < _MOST_PROBLEMS:
            self.passed.problems.append((place, str(error)))


def values_of(stream: BinaryIO, name: str, reader: RecordReader) -> Iterator[tuple[bytes, str]]:
    """The lines of a file, each with its place; ``reader`` hears of those that are too long.

    Raises DecodeError for a compressed file that is cut short or damaged.
    """
    for line, place in lines_of(stream, name):
        try:
            yield line.whole, place
        except DecodeError as error:
            reader.refuse(place, error)


def to_its_end(verdict: ResponseVerdict) -> bool:
    """Whether all of the text that arrived was judged; of a record that doesn't tell, if all arrived."""
    return verdict.complete if verdict.judged_to_end is None else verdict.judged_to_end
