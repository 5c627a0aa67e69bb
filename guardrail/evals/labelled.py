"""Judged responses with what people said of them, read from files and joined by the response's id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from guardrail.doctor import is_proof
from guardrail.errors import DecodeError
from guardrail.evals.lines import lines_of, name_of, open_unpacked
from guardrail.evals.records import ENDS, parse_record, to_its_end, type_of
from guardrail.evals.results import EvaluationResult
from guardrail.evals.truths import LabelsByResponse, answer_truth
from guardrail.events import ClaimVerdict, Label, ResponseVerdict

_PASSED_OVER: Final = ENDS | {"verdict.claim"}
"""What stands beside: a results file's ends, and verdicts on claims, which ``verdict.response`` repeats."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One response: its verdict, with claims in text order, and the labels that belong to it."""

    verdict: ResponseVerdict
    labels: tuple[Label, ...] = ()

    @property
    def response_id(self) -> str:
        """That of the verdict."""
        return self.verdict.response_id

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
        len(each.labels) for each in found.responses if each.response_id in found.repeated_ids
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
        if type_of(data) not in _PASSED_OVER:
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
