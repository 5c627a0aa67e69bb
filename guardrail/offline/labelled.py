"""Judged responses with what people said of them, read from files and joined by the response's id.

``truth_of`` makes one word of the labels of a response: faithful, wrong at some severity, or not known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from guardrail.errors import DecodeError
from guardrail.events import (
    ClaimVerdict,
    Label,
    ResponseVerdict,
    Severity,
    Verdict,
    decode_error,
    parse_label,
)
from guardrail.offline.lines import InputLine, read_lines
from guardrail.offline.results import EvaluationResult
from guardrail.offline.truths import ERRORS, answer_truth

_Model = TypeVar("_Model", bound=BaseModel)
_PASSED_OVER: Final = frozenset({"verdict.claim", "evaluation.started", "evaluation.completed"})
"""What stands beside: verdicts on claims, which ``verdict.response`` repeats, and a results file's ends."""


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
class Records:
    """What files gave: judged responses in their order, and what could not be used, by count.

    ``cut_short`` responses were not judged to their end (a block ended them, or their text), so that another
    policy could not be told from them; ``failed`` ones are results without a verdict. ``stray`` labels belong
    to no response that was read.
    """

    responses: list[Judged] = field(default_factory=list)
    cut_short: int = 0
    failed: int = 0
    repeated: int = 0
    stray: int = 0

    def claims(self) -> int:
        """The number of claims of all responses."""
        return sum(len(each.claims) for each in self.responses)


def read_labelled(records: Sequence[Path], labels: Sequence[Path] = ()) -> Records:
    """Results (``evaluation.result``) or verdicts (``verdict.response``), with labels inside or beside.

    Of a response that stands there twice the later verdict counts, of labels with one id the later label.
    Raises OSError, and DecodeError that names file and line and quotes nothing of it.
    """
    found = Records()
    judged: dict[str, Judged] = {}
    said: dict[str, list[Label]] = defaultdict(list)
    for path in (*records, *labels):
        with path.open("rb") as stream:
            for line in read_lines(stream):
                try:
                    _read(line, found, judged, said)
                except DecodeError as error:
                    message = f"{path}, line {line.number}: {error}"
                    raise DecodeError(error.reason, message) from None
    found.responses = [
        replace(each, labels=_latest((*each.labels, *said.get(response_id, ()))))
        for response_id, each in judged.items()
    ]
    found.stray = sum(len(each) for response_id, each in said.items() if response_id not in judged)
    return found


def _read(line: InputLine, found: Records, judged: dict[str, Judged], said: dict[str, list[Label]]) -> None:
    if line.data is None:
        raise DecodeError("line_too_long", f"{line.size:,} bytes are more than a line may have")
    try:
        raw: Any = from_json(line.data)
    except ValueError as error:
        raise DecodeError("invalid_json", f"not valid JSON: {error}") from None
    kind = raw.get("type") if isinstance(raw, dict) else None
    if kind == "label":
        label = parse_label(line.data)
        said[label.response_id].append(label)
    elif kind == "evaluation.result":
        result = _as(EvaluationResult, raw)
        if result.verdict is None:
            found.failed += 1
        else:
            _add(result.verdict, result.labels, found, judged)
    elif kind == "verdict.response":
        _add(_as(ResponseVerdict, raw), (), found, judged)
    elif kind not in _PASSED_OVER:
        raise DecodeError(
            "unknown_type",
            "neither a result, a verdict nor a label: give lines of the type evaluation.result, "
            "verdict.response or label",
        )


def _as(model: type[_Model], raw: object) -> _Model:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise decode_error(error) from None


def _add(
    verdict: ResponseVerdict, labels: tuple[Label, ...], found: Records, judged: dict[str, Judged]
) -> None:
    if not verdict.complete or verdict.omitted:
        found.cut_short += 1
        return
    found.repeated += verdict.response_id in judged
    claims = tuple(sorted(verdict.claims, key=lambda claim: (claim.segment, claim.index)))
    judged[verdict.response_id] = Judged(verdict.model_copy(update={"claims": claims}), labels)


def _latest(labels: Iterable[Label]) -> tuple[Label, ...]:
    by_id: dict[object, Label] = {}
    for number, label in enumerate(labels):
        by_id[label.id or number] = label
    return tuple(by_id.values())


@dataclass(frozen=True, slots=True)
class Truth:
    """What people say of a response: it is ``faithful``, or ``wrong``, or neither is known.

    ``worst`` is the gravest error's severity, None where nobody gave one.
    """

    faithful: bool = False
    wrong: bool = False
    worst: Severity | None = None


def truth_of(judged: Judged, mildest: Verdict = Verdict.PARTIALLY_SUPPORTED) -> Truth:
    """The labels of a response as one truth, as ``truths.answer_truth`` has it.

    A label on the whole response may give the severity of an error that no claim is labelled with.
    """
    found = answer_truth(judged.verdict, judged.labels, mildest)
    if found.right is None:
        return Truth()
    if found.right:
        return Truth(faithful=True)
    worst = found.worst
    if worst is None:
        whole = (each for each in judged.labels if each.claim_id is None and each.span is None)
        given = [
            each.severity for each in whole if each.severity is not None and each.verdict in ERRORS[mildest]
        ]
        worst = max(given, key=lambda severity: severity.rank, default=None)
    return Truth(wrong=True, worst=worst)
