"""Judged responses with what people said of them, read from files and joined by the response's id.

``truth_of`` makes one word of the labels of a response: faithful, wrong at some severity, or not known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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

_Model = TypeVar("_Model", bound=BaseModel)
_BESIDE_VERDICTS: Final = frozenset({"verdict.claim"})
"""What the verdicts topic holds besides; ``verdict.response`` repeats it."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One response: the verdicts on its claims in text order, and the labels that belong to it."""

    response_id: str
    claims: tuple[ClaimVerdict, ...]
    labels: tuple[Label, ...] = ()


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
    elif kind not in _BESIDE_VERDICTS:
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
    judged[verdict.response_id] = Judged(verdict.response_id, claims, labels)


def _latest(labels: Iterable[Label]) -> tuple[Label, ...]:
    by_id: dict[object, Label] = {}
    for number, label in enumerate(labels):
        by_id[label.id or number] = label
    return tuple(by_id.values())


ERRORS: Final[Mapping[Verdict, frozenset[Verdict]]] = {
    Verdict.PARTIALLY_SUPPORTED: frozenset(
        {Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
    ),
    Verdict.UNSUPPORTED: frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED}),
    Verdict.CONTRADICTED: frozenset({Verdict.CONTRADICTED}),
}
"""By the mildest verdict that counts as an error: all that do."""


@dataclass(frozen=True, slots=True)
class Truth:
    """What people say of a response. ``worst`` is the gravest error's severity.

    It is None without an error: the response is ``faithful``, or nothing is known. An error whose severity
    nobody gave has ``worst`` None and ``faithful`` False, and ``wrong`` True.
    """

    faithful: bool = False
    wrong: bool = False
    worst: Severity | None = None


def truth_of(judged: Judged, mildest: Verdict = Verdict.UNSUPPORTED) -> Truth:
    """The labels of a response as one truth. ``mildest`` is the mildest verdict that counts as an error.

    A response is wrong if people call any of its claims an error, or the whole of it; faithful if they rated
    it and found none. Where several people rate one claim, most of them decide, and a tie is an error. An
    error has the severity that a label gives, else that of the claim.
    """
    errors = ERRORS[mildest]
    claims = claim_labels(judged)
    whole = [label for label in judged.labels if label.claim_id is None and label.span is None]
    severities: list[Severity | None] = []
    rated = False
    for claim, labels in claims:
        wrong, known = _majority(labels, errors)
        rated |= known
        if wrong:
            given = [label.severity for label in labels if label.severity is not None]
            severities.append(max([*given] or [claim.severity], key=lambda severity: severity.rank))
    wrong, known = _majority(whole, errors)
    if wrong and not severities:
        severities.append(next((label.severity for label in whole if label.severity is not None), None))
    if not severities:
        return Truth(faithful=rated or known)
    graded = [severity for severity in severities if severity is not None]
    return Truth(wrong=True, worst=max(graded, key=lambda severity: severity.rank, default=None))


def claim_labels(judged: Judged) -> list[tuple[ClaimVerdict, list[Label]]]:
    """The claims that people rated, each with its labels: by its id, else by most of the words."""
    by_id = {claim.claim_id: number for number, claim in enumerate(judged.claims)}
    found: dict[int, list[Label]] = defaultdict(list)
    for label in judged.labels:
        if label.verdict is Verdict.UNVERIFIED:
            continue
        if label.claim_id is not None:
            if label.claim_id in by_id:
                found[by_id[label.claim_id]].append(label)
        elif label.span is not None:
            shared = [(_overlap(claim.span, label.span), -n) for n, claim in enumerate(judged.claims)]
            most, number = max(shared, default=(0, 0))
            if most > 0:
                found[-number].append(label)
    return [(judged.claims[number], found[number]) for number in sorted(found)]


def majority_verdict(labels: Sequence[Label]) -> Verdict | None:
    """The verdict that most labels give, of equals the worse; None without any that says something."""
    votes = Counter(label.verdict for label in labels if label.verdict is not Verdict.UNVERIFIED)
    order = list(Verdict)
    return max(votes, key=lambda verdict: (votes[verdict], order.index(verdict)), default=None)


def _majority(labels: Sequence[Label], errors: frozenset[Verdict]) -> tuple[bool, bool]:
    """Whether they call it an error, and whether they say anything."""
    votes = [label.verdict in errors for label in labels if label.verdict is not Verdict.UNVERIFIED]
    return bool(votes) and 2 * sum(votes) >= len(votes), bool(votes)


def _overlap(one: Sequence[int], other: Sequence[int]) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])
