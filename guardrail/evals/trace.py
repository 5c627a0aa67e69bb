"""The steps to a verdict: the statements, every prompt with its raw reply, what was read, the verdicts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from guardrail.evals.results import TraceStep
from guardrail.events import Response, ResponseVerdict
from guardrail.judges.recorder import JudgeStep, recording


async def traced(
    check: Callable[[Response], Awaitable[ResponseVerdict]], response: Response
) -> tuple[ResponseVerdict, tuple[TraceStep, ...]]:
    """``await check(response)``, and how it came about, in the order in which the steps began.

    ``check`` must judge with a guard of its own, as that of ``checker`` does: on a guard that several answers
    share, one answer's calls may be begun by another's. A verdict from a cache has no call. A trace holds
    texts of the answer and its contexts, and no keys or headers. Raises what ``check`` raises.
    """
    with recording() as recorded:
        verdict = await check(response)
    steps = sorted(recorded.steps, key=lambda step: step.begun_at)
    return verdict, (*map(_step, steps), _verdicts(verdict))


def _step(step: JudgeStep) -> TraceStep:
    return TraceStep(
        step=step.kind,
        claim_ids=step.claim_ids,
        prompt=step.prompt,
        reply=step.reply,
        latency_ms=step.latency_ms,
        judge=step.judge or None,
        error=step.error,
    )


def _verdicts(verdict: ResponseVerdict) -> TraceStep:
    """What the guard made of it, a claim a line: findings that don't depend on a judge are in it."""
    names = {
        "claim_id",
        "verdict",
        "support",
        "confidence",
        "judge",
        "attempts",
        "degraded_from",
        "reasoning",
    }
    lines = [
        json.dumps(claim.model_dump(mode="json", include=names), ensure_ascii=False)
        for claim in verdict.claims
    ]
    return TraceStep(
        step="verdicts",
        claim_ids=tuple(claim.claim_id for claim in verdict.claims),
        reply="\n".join(lines),
        latency_ms=verdict.timings.total_ms,
    )
