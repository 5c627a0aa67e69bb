"""Results with the fields that a report looks at, everything else at a plain value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from guardrail.evals.results import EvaluationResult, ScoreValue
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    Evidence,
    Label,
    PolicyRef,
    Response,
    ResponseVerdict,
    Severity,
    Timings,
    Usage,
    Verdict,
)
from guardrail.scoring import count_verdicts

POLICY = PolicyRef(name="careful", version="1")
CONTEXT = Context(
    id="leaflet", text="Take one tablet. Never take more than three tablets a day. Swallow it whole."
)


def claim(
    answer: str,
    text: str,
    verdict: Verdict = Verdict.SUPPORTED,
    *,
    severity: Severity = Severity.CRITICAL,
    quote: str | None = None,
    index: int = 0,
    reasoning: str = "",
    support: float | None = 0.9,
    named: str | None = None,
) -> ClaimVerdict:
    """A claim on the words ``text`` of ``answer``; ``quote`` is from ``CONTEXT``."""
    start = answer.index(text)
    at = CONTEXT.text.find(quote) if quote else 0
    words = () if named is None else ((answer.index(named), answer.index(named) + len(named)),)
    return ClaimVerdict(
        id=f"v{index}",
        response_id="r",
        claim_id=f"c{index}",
        index=index,
        text=text,
        span=(start, start + len(text)),
        segment=index,
        severity=severity,
        verdict=verdict,
        confidence=0.9,
        support=support,
        evidence=()
        if quote is None
        else (Evidence(context_id=CONTEXT.id, quote=quote, span=(at, at + len(quote))),),
        reasoning=reasoning,
        unsupported_spans=words,
        judge="local",
        latency_ms=1.0,
        policy=POLICY,
    )


def result(
    response_id: str = "r",
    decision: Decision = Decision.RELEASE,
    claims: Sequence[ClaimVerdict] = (),
    *,
    score: float | None = 0.9,
    answer: str = "Take five tablets a day.",
    rule: str = "a rule",
    route: str | None = None,
    model: str | None = None,
    truth: Verdict | None = None,
    total_ms: float = 10.0,
    cost_usd: float = 0.0,
    scores: Mapping[str, ScoreValue] | None = None,
) -> EvaluationResult:
    """One answer that was judged; ``truth`` is a label of all of it."""
    verdict = ResponseVerdict(
        id="rv",
        response_id=response_id,
        score=score,
        counts=count_verdicts(each.verdict for each in claims),
        decision=decision,
        rule=rule,
        mode="stream",
        complete=True,
        claims=tuple(claims),
        summary="",
        usage=Usage(cost_usd=cost_usd),
        timings=Timings(total_ms=total_ms),
        policy=POLICY,
    )
    return EvaluationResult(
        place=f"line of {response_id}",
        response=Response(
            response_id=response_id,
            question="How many?",
            contexts=(CONTEXT,),
            answer=answer,
            route=route,
            generator_model=model,
        ),
        verdict=verdict,
        scores=scores or {},
        labels=() if truth is None else (Label(response_id=response_id, verdict=truth),),
    )


def failed(error: str, place: str = "line 1") -> EvaluationResult:
    """A sample that could not be judged."""
    return EvaluationResult(place=place, error=error)
