"""Results with the fields that a report looks at, everything else at a plain value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail.evals.results import EvaluationResult
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    Evidence,
    Label,
    PolicyRef,
    Response,
    Severity,
    Timings,
    Usage,
    Verdict,
)
from tests.support.records import claim_verdict, response_verdict

POLICY = PolicyRef(name="careful", version="1")
CONTEXT = Context(
    id="leaflet", text="Take one tablet. Never take more than three tablets a day. Swallow it whole."
)


def claim(
    answer: str,
    text: str,
    verdict: Verdict = Verdict.SUPPORTED,
    *,
    quote: str | None = None,
    index: int = 0,
    named: str | None = None,
    **fields: Any,
) -> ClaimVerdict:
    """A claim on the words ``text`` of ``answer``; ``quote`` is from ``CONTEXT``."""

    def span(source: str, part: str) -> tuple[int, int]:
        return source.index(part), source.index(part) + len(part)

    made = {
        "id": f"v{index}",
        "claim_id": f"c{index}",
        "text": text,
        "span": span(answer, text),
        "severity": Severity.CRITICAL,
        "evidence": ()
        if quote is None
        else (Evidence(context_id=CONTEXT.id, quote=quote, span=span(CONTEXT.text, quote)),),
        "unsupported_spans": () if named is None else (span(answer, named),),
        "judge": "local",
        "policy": POLICY,
    }
    return claim_verdict("r", index, verdict=verdict, **made | fields)


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
    cost_usd: float = 0.0,
    **fields: Any,
) -> EvaluationResult:
    """One answer that was judged; ``truth`` is a label of all of it."""
    verdict = response_verdict(
        response_id,
        claims,
        score=score,
        decision=decision,
        rule=rule,
        usage=Usage(cost_usd=cost_usd),
        timings=Timings(total_ms=10.0),
        policy=POLICY,
    )
    response = Response(
        response_id=response_id,
        question="How many?",
        contexts=(CONTEXT,),
        answer=answer,
        route=route,
        generator_model=model,
    )
    labels = () if truth is None else (Label(response_id=response_id, verdict=truth),)
    place = f"line of {response_id}"
    return EvaluationResult(place=place, response=response, verdict=verdict, labels=labels, **fields)


def failed(error: str, place: str = "line 1") -> EvaluationResult:
    """A sample that could not be judged."""
    return EvaluationResult(place=place, error=error)
