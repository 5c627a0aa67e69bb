"""Whether the first judge's verdict on a claim stands, or the second has to see the claim."""

from __future__ import annotations

from guardrail.events import Severity, Verdict
from guardrail.judges.cascade.settings import CascadeSettings
from guardrail.verdicts import Judgement


def settled(judgement: Judgement, severity: Severity, settings: CascadeSettings) -> bool:
    """Whether ``judgement`` stands. What could not be checked, or only in part, or has no probability, never
    does: the bands were chosen on what the first judge says when it has looked at all it looks at."""
    support = judgement.support
    if judgement.verdict is Verdict.UNVERIFIED or support is None or judgement.degraded_from:
        return False
    if judgement.verdict is Verdict.CONTRADICTED and severity is Severity.CRITICAL:
        # The gravest case: a wrong dosage shown, or a right one withheld. Never left to a probability.
        return (
            settings.critical_contradictions == "block"
            and judgement.confidence >= settings.contradiction_confidence
        )
    band = settings.bands[severity]
    if judgement.verdict is Verdict.SUPPORTED:
        return support >= band.accept_support
    return support <= band.reject_support
