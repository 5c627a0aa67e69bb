"""The vocabulary that the core and the judges share: judgements, evidence and usage.

What a verdict says stands in one record, ``Judgement``. The event about it has the same fields, and what the
session and the cache store of it is its packed form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, Self

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from guardrail.events import LEFT_OPEN, ClaimPart, Context, Evidence, Finding, Span, Usage, Verdict

TWO_VERDICTS: Final = "the judge gave two different verdicts for this claim"
"""Why neither is believed."""

HALF_CHECKED: Final = 0.49
"""The most support of a claim that was checked in part."""
_WITHOUT_SPANS: Final = (Verdict.SUPPORTED, Verdict.UNVERIFIED)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says about one claim. Quotes in ``evidence`` have been located in their context.

    ``unsupported_spans`` are the words of the claim for which it finds no support: code points of the claim's
    prose, ascending and apart, until ``take_in`` maps them to its raw text. Empty means *not reported*, never
    that all words have support. ``contradiction`` is None for a judge that gives no such probability.
    ``ClaimVerdict`` describes it, ``findings``, ``attempts``, ``degraded_from`` and ``usage``.
    """

    claim_id: str
    verdict: Verdict
    confidence: float
    support: float | None
    judge: str
    evidence: tuple[Evidence, ...] = ()
    conflicting_contexts: tuple[str, ...] = ()
    reasoning: str = ""
    parts: tuple[ClaimPart, ...] = ()
    attempts: Annotated[int, Field(ge=0, le=2**30)] = 1
    degraded_from: tuple[str, ...] = ()
    usage: Usage | None = None
    unsupported_spans: tuple[Span, ...] = ()
    contradiction: float | None = None
    findings: tuple[Finding, ...] = ()
    hurried: bool = False
    """The judge would have read more of the contexts, had there been time."""
    explain: Callable[[Judgement], Awaitable[str]] | None = field(default=None, compare=False, repr=False)
    """Puts the reason for the final judgement of the claim into words. Raises JudgeError if it can't."""

    @property
    def unanswered(self) -> bool:
        """Whether it says nothing: UNVERIFIED without a finding that leaves the claim open."""
        return self.verdict is Verdict.UNVERIFIED and LEFT_OPEN.isdisjoint(self.findings)

    def pack(self, contexts: Sequence[Context], at: int = 0) -> dict[str, Any]:
        """Its JSON-able form, without the fields that have their defaults.

        Quotes and names of ``contexts`` are given as places in them, so that no text is repeated; what they
        don't hold is written out. ``at`` is added to spans of the claim: where it begins in a text.
        """
        packed = _ADAPTER.dump_python(self, mode="json", exclude=_NOT_PACKED, exclude_defaults=True)
        if self.evidence:
            packed["evidence"] = [_place(evidence, contexts) for evidence in self.evidence]
        if self.conflicting_contexts:
            numbers = {context.id: number for number, context in reversed(list(enumerate(contexts)))}
            packed["conflicting_contexts"] = [numbers.get(name, name) for name in self.conflicting_contexts]
        if self.parts:
            packed["parts"] = [[part.text, part.verdict.value] for part in self.parts]
        if self.unsupported_spans:
            packed["unsupported_spans"] = [[start + at, end + at] for start, end in self.unsupported_spans]
        return {_KEYS.get(name, name): value for name, value in packed.items()}

    @classmethod
    def unpack(
        cls, claim_id: str, packed: Mapping[str, Any], contexts: Sequence[Context], at: int = 0
    ) -> Self:
        """The judgement of ``claim_id`` that ``pack`` made this of; other keys are ignored.

        Raises ValueError if it can't have, or not with these contexts.
        """
        told = {name: packed[key] for name in _PACKED if (key := _KEYS.get(name, name)) in packed}
        try:
            told["evidence"] = [_quoted(place, contexts) for place in told.get("evidence", ())]
            told["conflicting_contexts"] = [
                name if isinstance(name, str) else _at(name, contexts).id
                for name in told.get("conflicting_contexts", ())
            ]
            told["parts"] = [{"text": text, "verdict": verdict} for text, verdict in told.get("parts", ())]
        except (TypeError, LookupError):
            raise ValueError("a place that is not in the contexts") from None
        # As JSON, where strict means that no value is converted and lists are tuples all the same.
        judgement: Self = _ADAPTER.validate_json(
            to_json({"support": None, "judge": "", **told, "claim_id": claim_id}), strict=True
        )
        spans = tuple((start - at, end - at) for start, end in judgement.unsupported_spans)
        return replace(judgement, unsupported_spans=spans) if at else judgement


_ADAPTER: Final[TypeAdapter[Any]] = TypeAdapter(Judgement)
_NOT_PACKED: Final = {"claim_id", "hurried", "explain"}
"""What says of which claim it is, and whether to ask again or more, belongs to the moment."""
_PACKED: Final = tuple(each.name for each in fields(Judgement) if each.name not in _NOT_PACKED)
_KEYS: Final = {"conflicting_contexts": "conflicts", "unsupported_spans": "unsupported"}
"""Shorter names of the packed form."""
SAID: Final = tuple(name for name in _PACKED if name != "unsupported_spans")
"""The fields that the event about a verdict has too, with the same values."""


def _place(evidence: Evidence, contexts: Sequence[Context]) -> Any:
    """The quote's position in the contexts; the quote itself if that doesn't reproduce it."""
    start, end = evidence.span
    for number, context in enumerate(contexts):
        if context.id == evidence.context_id and context.text[start:end] == evidence.quote:
            return [number, start, end]
    return evidence.model_dump(mode="json")


def _quoted(place: Any, contexts: Sequence[Context]) -> Any:
    if isinstance(place, Mapping):
        return place
    number, start, end = place
    context = _at(number, contexts)
    if not 0 <= start <= end <= len(context.text):
        raise LookupError
    return {"context_id": context.id, "quote": context.text[start:end], "span": [start, end]}


def _at(number: object, contexts: Sequence[Context]) -> Context:
    if type(number) is not int or number < 0:  # True is an int too
        raise LookupError
    return contexts[number]


def unverified(
    claim_id: str,
    judge: str,
    reason: str,
    *,
    attempts: int = 1,
    degraded_from: tuple[str, ...] = (),
    refused: bool = False,
) -> Judgement:
    """The judgement of a claim that could not be checked; ``refused``: because the judge refuses to."""
    return Judgement(
        claim_id,
        Verdict.UNVERIFIED,
        0.0,
        None,
        judge,
        reasoning=reason,
        attempts=attempts,
        degraded_from=degraded_from,
        findings=(Finding.JUDGE_REFUSED,) if refused else (),
    )


def beyond_most(claim_id: str, most: int) -> Judgement:
    """The judgement of a claim that stands behind the first ``most`` of its response, which are judged."""
    reason = f"Of one answer {most:,} claims are checked; this stands behind them."
    open_ = unverified(claim_id, "guardrail", reason)
    return replace(open_, findings=(Finding.TOO_MANY_CLAIMS,))


def checked_in_part(judgement: Judgement) -> Judgement:
    """``judgement`` of a claim for which the judge did not read everything: marked as such, and never
    SUPPORTED, so that a claim that nobody has fully checked does not pass as if somebody had.
    """
    findings = tuple(dict.fromkeys((*judgement.findings, Finding.CHECKED_IN_PART)))
    if judgement.verdict is not Verdict.SUPPORTED:
        return replace(judgement, findings=findings)
    return replace(
        judgement,
        verdict=Verdict.PARTIALLY_SUPPORTED,
        confidence=HALF_CHECKED,
        support=min(judgement.support or 0.0, HALF_CHECKED),
        reasoning=f"It was checked in part only. {judgement.reasoning}",
        findings=findings,
    )


def better_of(first: Judgement | None, again: Judgement) -> Judgement:
    """Of the judgement ``first`` given in a hurry, if there is one, and that on asking again: the second,
    unless it says nothing, or was given in a greater hurry.
    """
    if first is None:
        return again
    read_less = again.hurried and Finding.CHECKED_IN_PART in again.findings
    return first if again.verdict is Verdict.UNVERIFIED or read_less else again


def sound(judgement: Judgement, text: str) -> Judgement | None:
    """The judgement of the claim that reads ``text``, normalised: numbers within 0..1, texts that UTF-8 can
    encode, each finding once and spans within ``text``; None if it is invalid.
    """
    support, contradiction, verdict = judgement.support, judgement.contradiction, judgement.verdict
    try:
        if not isinstance(verdict, Verdict) or (support is None and verdict is not Verdict.UNVERIFIED):
            return None
        numbers = [n for n in (judgement.confidence, support, contradiction) if n is not None]
        if not all(-0.01 <= number <= 1.01 for number in numbers):
            return None
        if not all(isinstance(finding, Finding) for finding in judgement.findings):
            return None
        judgement.reasoning.encode()
        for evidence in judgement.evidence:
            evidence.quote.encode()
    except UnicodeEncodeError:
        reasoning = judgement.reasoning.encode("utf-8", "replace").decode()
        return sound(replace(judgement, reasoning=reasoning, evidence=()), text)
    except (TypeError, ValueError, AttributeError):
        return None
    if judgement.findings:
        judgement = replace(judgement, findings=tuple(dict.fromkeys(judgement.findings)))
    offered = judgement.unsupported_spans
    if offered or not isinstance(offered, tuple):
        spans = () if verdict in _WITHOUT_SPANS else spans_within(text, offered)
        judgement = replace(judgement, unsupported_spans=spans)
    if all(0.0 <= number <= 1.0 for number in numbers):
        return judgement
    return replace(
        judgement,
        confidence=_within(judgement.confidence),
        support=None if support is None else _within(support),
        contradiction=None if contradiction is None else _within(contradiction),
    )


def _within(probability: float) -> float:
    return min(1.0, max(0.0, probability))


def spans_within(text: str, offered: object) -> tuple[Span, ...]:
    """The spans ``[start, end)`` of ``offered`` that lie in ``text``, in code points, ascending and apart.

    Drops spans that are not a pair of whole numbers, are empty, or reach outside the text, and merges spans
    that overlap or touch. ``offered`` may be anything; if it is not a list or tuple, the result is empty.
    """
    if not isinstance(offered, list | tuple):
        return ()
    found: list[Span] = []
    for start, end in sorted(span for item in offered if (span := _span(item)) and span[1] <= len(text)):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def _span(item: object) -> Span | None:
    if not isinstance(item, list | tuple) or len(item) != 2 or not all(type(at) is int for at in item):
        return None
    start, end = item
    return (start, end) if 0 <= start < end else None


def total(*parts: Usage) -> Usage:
    """The sum of all usages."""
    return Usage(**{name: sum(getattr(part, name) for part in parts) for name in Usage.model_fields})


def less(usage: Usage, other: Usage) -> Usage:
    """``usage`` minus ``other``; no count goes below 0."""
    return Usage(**{name: max(0, getattr(usage, name) - getattr(other, name)) for name in Usage.model_fields})
