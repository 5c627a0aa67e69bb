"""Output events with the fields that the demo looks at, everything else at a plain value."""

from __future__ import annotations

from guardrail.demo import Board
from guardrail.events import (
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    PolicyRef,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    Severity,
)
from guardrail.judges import Evidence, Verdict
from guardrail.render import Card
from tests.support.records import claim_verdict, response_verdict

POLICY = PolicyRef(name="careful", version="1")


def claim(
    text: str,
    span: tuple[int, int],
    verdict: Verdict = Verdict.SUPPORTED,
    *,
    response_id: str = "r",
    index: int = 0,
    quote: str | None = "the source says so",
    reasoning: str = "",
) -> ClaimVerdict:
    made = claim_verdict(
        response_id,
        index,
        claim_id=f"c{index}",
        text=text,
        span=span,
        severity=Severity.CRITICAL,
        severity_reasons=("dosage",),
        verdict=verdict,
        support=0.5,
        reasoning=reasoning,
        policy=POLICY,
    )
    if quote is None:
        return made
    evidence = Evidence(context_id="leaflet", quote=quote, span=(0, len(quote)))
    return made.model_copy(update={"evidence": (evidence,)})


def segment(
    text: str,
    span: tuple[int, int],
    decision: Decision = Decision.RELEASE,
    *,
    response_id: str = "r",
    index: int | None = 0,
) -> DeliverySegment:
    return DeliverySegment(
        id="s", response_id=response_id, seq=0, text=text, segment=index, span=span, decision=decision
    )


def completed(decision: Decision = Decision.RELEASE, *, response_id: str = "r") -> DeliveryCompleted:
    return DeliveryCompleted(
        id="e", response_id=response_id, seq=1, decision=decision, rule="passed", score=1.0
    )


def blocked(message: str, released_chars: int, *, response_id: str = "r") -> DeliveryBlocked:
    return DeliveryBlocked(
        id="e",
        response_id=response_id,
        seq=1,
        message=message,
        rule="contradicted",
        released_chars=released_chars,
    )


def verdict(
    decision: Decision = Decision.RELEASE,
    claims: tuple[ClaimVerdict, ...] = (),
    *,
    response_id: str = "r",
    score: float | None = 1.0,
) -> ResponseVerdict:
    wrong = {Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
    return response_verdict(
        response_id,
        claims,
        score=score,
        decision=decision,
        rule="contradicted fact" if decision is not Decision.RELEASE else "score and rules passed",
        hallucinated_claims=tuple(each.text for each in claims if each.verdict in wrong),
        policy=POLICY,
    )


def card_of(text: str, *, response_id: str = "r", question: str = "How much?") -> tuple[Board, Card]:
    """A board with one response, of which all the text has come at time 0."""
    board = Board()
    board.apply(ResponseStarted(response_id=response_id, question=question, route="health"), 0.0)
    card = board.apply(ResponseDelta(response_id=response_id, seq=0, text=text), 0.0)
    assert card is not None
    return board, card
