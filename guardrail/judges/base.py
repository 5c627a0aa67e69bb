"""The Judge protocol: claims with their passages in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, runtime_checkable

from guardrail.claims.model import Claim
from guardrail.events import ClaimPart, Evidence, Finding, Span, Usage, Verdict
from guardrail.evidence.index import EvidenceIndex


def _span(item: object) -> Span | None:
    if not isinstance(item, list | tuple) or len(item) != 2 or not all(type(at) is int for at in item):
        return None
    start, end = item
    return (start, end) if 0 <= start < end else None


_WITHOUT_SPANS: Final = (Verdict.SUPPORTED, Verdict.UNVERIFIED)


@dataclass(frozen=True, slots=True, eq=False)
class Gathering:
    """That a judge may put claims off: leave them to the next request, to be judged with those that come till
    then.

    ``known`` is what the judge said when it put claims of this request off before. ``may_put_off(urgent)``
    tells whether claims may be put off now; ``urgent`` ones only for the sake of claims that wait already.
    A judge calls ``going`` when it begins what takes long: until then no other request is made for the
    response, so that its claims can go together.
    """

    known: Mapping[str, Judgement]
    may_put_off: Callable[[bool], bool]
    going: Callable[[], None]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Claims of *one* response, to be judged in one go.

    ``claims`` maps claim ids to claims, in the order of the text. ``evidence`` is the response's prepared
    contexts: passages, search, and the check of quotes; it may be shared between concurrent requests.
    ``deadline`` is a reading of ``time.monotonic()``: nobody waits for an answer after it. ``spent`` is what
    the response has consumed so far. A judge may say what it knows before its reply is whole: it calls
    ``on_judgement``, on the event loop, with a judgement that is final; the reply repeats it or not. A judge
    that makes several calls for a request (again, to another model) calls ``admit`` ahead of each of them,
    the first too; it raises JudgeUnavailable where no more may be made. A call may be cancelled before its
    reply tells what it took: a judge calls ``on_usage``, on the event loop, with all that the request has
    consumed so far as far as it knows, as each call is sent and whenever it knows more. Without ``gathering``
    no claim may be put off. Where ``turn_within_s`` is set, another judge can answer better: one at which
    requests queue takes those first that have none, and after that many seconds says what it can tell at once
    (and in ``degraded_from`` that it did); with 0 it does so even when it is free.
    """

    response_id: str
    question: str
    claims: dict[str, Claim]
    evidence: EvidenceIndex
    deadline: float
    generator_model: str | None = None
    tenant: str | None = None
    spent: Usage = field(default_factory=Usage)
    on_judgement: Callable[[Judgement], None] | None = None
    admit: Callable[[], None] | None = None
    on_usage: Callable[[Usage], None] | None = None
    gathering: Gathering | None = None
    turn_within_s: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of one claim. Quotes in ``evidence`` have been located in their context.

    ``unsupported_spans`` are the words of the claim that it finds no support for: code points of the claim's
    prose, ascending and apart, until ``take_in`` leads them back to its raw text. Empty is *not told*, never
    that all words have support. ``contradiction`` is None for a judge that gives no such probability. It,
    ``findings``, ``attempts``, ``degraded_from`` and ``usage`` are told of in ``ClaimVerdict``.
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
    attempts: int = 1
    degraded_from: tuple[str, ...] = ()
    usage: Usage | None = None
    unsupported_spans: tuple[Span, ...] = ()
    contradiction: float | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """The judgements of one request, joined by claim id, and what they cost.

    ``put_off`` are claims that the judge would rather judge with later ones, each with what it knows by now.
    That is no verdict: it comes back with the claim (``Gathering.known``).
    """

    judgements: tuple[Judgement, ...]
    usage: Usage = field(default_factory=Usage)
    put_off: tuple[Judgement, ...] = ()


@runtime_checkable
class Judge(Protocol):
    """Anything that gives verdicts.

    ``judge`` answers one request. It may be called concurrently, may be cancelled at any await, must not
    block the event loop, and raises JudgeError when it can't answer at all. It answers for asked ids only;
    an id that is missing from the reply becomes UNVERIFIED (see ``reconcile``). ``aclose`` releases what
    the judge holds; no call follows it.
    """

    @property
    def name(self) -> str: ...

    async def judge(self, request: JudgeRequest) -> JudgeReply: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class GatheringJudge(Judge, Protocol):
    """A judge that puts claims off while more text comes, for ``max_wait_s`` seconds each at most."""

    @property
    def max_wait_s(self) -> float: ...


def unverified(
    claim_id: str, judge: str, reason: str, *, attempts: int = 1, degraded_from: tuple[str, ...] = ()
) -> Judgement:
    """The judgement of a claim that could not be checked."""
    return Judgement(
        claim_id,
        Verdict.UNVERIFIED,
        0.0,
        None,
        judge,
        reasoning=reason,
        attempts=attempts,
        degraded_from=degraded_from,
    )


def reconcile(asked: Mapping[str, Claim], reply: JudgeReply, judge: str) -> dict[str, Judgement]:
    """Join judgements to the asked claims by id: exactly one each.

    Unasked ids are dropped; a missing one is UNVERIFIED; of duplicates that disagree neither is believed.
    Spans that don't fit the claim are dropped as ``spans_within`` says, and all of a claim that is SUPPORTED
    or UNVERIFIED.
    """
    found: dict[str, Judgement] = {}
    for offered in reply.judgements:
        claim_id = offered.claim_id
        if claim_id not in asked:
            continue
        judgement = _sound(offered, asked[claim_id].prose.text) or unverified(
            claim_id, judge, "the judge's verdict on this claim is unusable"
        )
        other = found.get(claim_id)
        if other is not None and other.verdict is not judgement.verdict:
            found[claim_id] = unverified(
                claim_id, judge, "the judge gave two different verdicts for this claim"
            )
        elif other is None:
            found[claim_id] = judgement
    return {
        claim_id: found.get(claim_id)
        or unverified(claim_id, judge, "the judge's reply has no verdict for this claim")
        for claim_id in asked
    }


def _sound(judgement: Judgement, text: str) -> Judgement | None:
    """The judgement of the claim that reads ``text`` with numbers within 0..1, texts that UTF-8 can hold,
    each finding once and spans within ``text``; None when it makes no sense."""
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
        return _sound(replace(judgement, reasoning=reasoning, evidence=()), text)
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


def total(*parts: Usage) -> Usage:
    """What all of them consumed together."""
    return Usage(**{name: sum(getattr(part, name) for part in parts) for name in Usage.model_fields})


def less(usage: Usage, other: Usage) -> Usage:
    """``usage`` without ``other``; no count falls below 0."""
    return Usage(**{name: max(0, getattr(usage, name) - getattr(other, name)) for name in Usage.model_fields})


class ToldUsage:
    """What a request is known to have consumed while it is under way: an ``on_usage`` that remembers.

    It passes on what it is told, with what had been consumed ``before``.
    """

    def __init__(self, on_usage: Callable[[Usage], None] | None, before: Usage | None = None) -> None:
        self._on_usage = on_usage
        self._before = before or Usage()
        self.last = Usage()

    def __call__(self, usage: Usage) -> None:
        self.last = usage
        if self._on_usage is not None:
            self._on_usage(total(self._before, usage))


def usage_of(error: BaseException) -> Usage:
    """What a failed request consumed, where its error tells (as ``usage``), else nothing."""
    return told_usage(error) or Usage()


def told_usage(error: BaseException) -> Usage | None:
    """What a failed request consumed: no calls where none was sent, None where its error doesn't tell."""
    usage = getattr(error, "usage", None)
    return usage if isinstance(usage, Usage) else None


def tell_usage(error: BaseException, usage: Usage) -> None:
    """Have ``error`` tell what the request consumed that it ends: for ``usage_of`` and ``attempts_of``."""
    error.usage = usage  # type: ignore[attr-defined]  # errors of any kind can end a request


def attempts_of(error: BaseException) -> int:
    """Calls made for a request that failed, where its error tells (``attempts`` or ``usage``), else 1."""
    attempts = getattr(error, "attempts", None)
    if isinstance(attempts, int) and attempts >= 0:
        return attempts
    told = told_usage(error)
    return 1 if told is None else told.judge_calls


def spans_within(text: str, offered: object) -> tuple[Span, ...]:
    """The spans ``[start, end)`` of ``offered`` that lie in ``text``, in code points: ascending, and apart.

    One that is no pair of whole numbers, is empty, or reaches out of the text is left out. Those that overlap
    or touch are one. ``offered`` may be anything; what is no list or tuple has none.
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
