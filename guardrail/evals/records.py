"""Stored verdicts: read one at a time, from lines of files or from values of Kafka's records, or files of
them whole, joined by the response's id with what people said.

What can't be used is counted with its reason, and never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import ValidationError
from pydantic_core import from_json

from guardrail.doctor import PROOF_ROUTE, is_proof
from guardrail.errors import DecodeError, InputError
from guardrail.evals.lines import lines_of, name_of, open_unpacked
from guardrail.evals.results import EvaluationResult
from guardrail.evals.truths import LabelsByResponse, answer_truth
from guardrail.events import ClaimVerdict, Label, ResponseVerdict, decode_error

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
    """What was read and is not a record: how much of it, and why."""

    others: int = 0
    """Events of other types, such as the verdicts on single claims, which the records repeat."""
    proofs: int = 0
    """Records of answers that ``guardrail doctor`` sent as its proof: they say nothing of what users read."""
    repeated: int = 0
    """Records with an id that was read before, as deliveries at least once leave them."""
    failed: int = 0
    """Results without a verdict, because of an error."""
    unreadable: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    """Of the first of the unreadable where they stand, and what is wrong with them."""


class RecordReader:
    """Takes values one by one, and gives the verdicts in them."""

    def __init__(self) -> None:
        self.passed = Passed()
        self.labels: list[Label] = []
        """Those that came with results."""
        self._seen: set[str] = set()

    def read(self, value: bytes, place: str) -> ResponseVerdict | None:
        """The verdict in a value. None if it is not a record, which is counted; ``place`` is for messages."""
        try:
            found = parse_record(value)
            other = found is None and not is_end(value)
        except DecodeError as error:
            self.refuse(place, error)
            return None
        if isinstance(found, EvaluationResult):
            self.labels += found.labels
            self.passed.failed += found.verdict is None
            return found.verdict
        if not isinstance(found, ResponseVerdict):
            self.passed.others += other
        elif found.route == PROOF_ROUTE and is_proof(found):
            self.passed.proofs += 1
        elif found.id in self._seen:
            self.passed.repeated += 1
        else:
            self._seen.add(found.id)
            return found
        return None

    def refuse(self, place: str, error: InputError) -> None:
        """Count what can't be read."""
        self.passed.unreadable += 1
        if len(self.passed.problems) < _MOST_PROBLEMS:
            self.passed.problems.append((place, str(error)))


def values_of(stream: BinaryIO, name: str, reader: RecordReader) -> Iterator[tuple[bytes, str]]:
    """As ``lines_of``, the lines alone; ``reader`` hears of those that are too long."""
    for line, place in lines_of(stream, name):
        try:
            yield line.whole, place
        except DecodeError as error:
            reader.refuse(place, error)


def to_its_end(verdict: ResponseVerdict) -> bool:
    """Whether all of the text that arrived was judged; of a record that doesn't tell, if all arrived."""
    return verdict.complete if verdict.judged_to_end is None else verdict.judged_to_end


# ----------------------------------------------------------- whole files, with what people said beside

_BESIDE: Final = ENDS | {"verdict.claim"}
"""What stands beside: a results file's ends, and verdicts on claims, which ``verdict.response`` repeats."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One response: its verdict, with claims in text order, and the labels that belong to it."""

    verdict: ResponseVerdict
    labels: tuple[Label, ...] = ()

    @property
    def claims(self) -> tuple[ClaimVerdict, ...]:
        """Those of the verdict."""
        return self.verdict.claims


@dataclass(slots=True)
class LabelledAnswers:
    """What files gave: judged responses in their order, and what could not be used, by count.

    ``cut_short`` responses were not judged to their end (a block ended the judging), so that another policy
    could not be told from them; ``failed`` ones are results without a verdict. ``stray`` labels belong
    to no response that was read; ``ambiguous`` ones to an id that was read several times. ``proofs`` are
    verdicts on what ``guardrail doctor`` sent, which says nothing of what users read.
    """

    responses: list[Judged] = field(default_factory=list)
    cut_short: int = 0
    failed: int = 0
    repeated: int = 0
    stray: int = 0
    ambiguous: int = 0
    proofs: int = 0
    repeated_ids: set[str] = field(default_factory=set)

    def claims(self) -> int:
        """The number of claims of all responses."""
        return sum(len(each.claims) for each in self.responses)

    def labels(self) -> int:
        """The number of labels that belong to a response."""
        return sum(len(each.labels) for each in self.responses)

    def unknown(self) -> int:
        """The number of labels that name claims which the responses don't have, and no words."""
        return sum(answer_truth(each.claims, each.labels).unknown for each in self.responses if each.labels)


def read_labelled(records: Sequence[Path], labels: Sequence[Path] = ()) -> LabelledAnswers:
    """Results (``evaluation.result``) or verdicts (``verdict.response``), with labels inside or beside.

    Files may be gzip's; ``-`` is stdin. Of a response that stands there twice the later verdict counts, of
    labels with one id the later label; a file that is given twice is read once. Raises OSError, and
    DecodeError that names file and line and quotes nothing of it.
    """
    found = LabelledAnswers()
    judged: dict[str, Judged] = {}
    said = LabelsByResponse()
    for path in dict.fromkeys((*records, *labels)):  # labels without an id would count twice
        with open_unpacked(path) as stream:
            for line, place in lines_of(stream, name_of(path)):
                try:
                    _read(line.whole, found, judged, said)
                except DecodeError as error:
                    raise DecodeError(error.reason, f"{place}: {error}") from None
    found.responses = [
        replace(each, labels=said.of(response_id, each.labels)) for response_id, each in judged.items()
    ]
    found.stray = said.stray(judged)
    found.ambiguous = sum(
        len(each.labels) for each in found.responses if each.verdict.response_id in found.repeated_ids
    )
    return found


def _read(data: bytes, found: LabelledAnswers, judged: dict[str, Judged], said: LabelsByResponse) -> None:
    record = parse_record(data)
    if isinstance(record, Label):
        said.add([record])
    elif isinstance(record, EvaluationResult):
        if record.verdict is None:
            found.failed += 1
        else:
            _add(record.verdict, record.labels, found, judged)
    elif record is None:
        if type_of(data) not in _BESIDE:
            raise DecodeError(
                "unknown_type",
                "neither a result, a verdict nor a label: give lines of the type evaluation.result, "
                "verdict.response or label",
            )
    elif is_proof(record):
        found.proofs += 1
    else:
        _add(record, (), found, judged)


def _add(
    verdict: ResponseVerdict, labels: tuple[Label, ...], found: LabelledAnswers, judged: dict[str, Judged]
) -> None:
    if not to_its_end(verdict) or verdict.omitted:
        found.cut_short += 1
        return
    if verdict.response_id in judged:
        found.repeated += 1
        found.repeated_ids.add(verdict.response_id)
    claims = tuple(sorted(verdict.claims, key=lambda claim: (claim.segment, claim.index)))
    judged[verdict.response_id] = Judged(verdict.model_copy(update={"claims": claims}), labels)
