"""One call of a judge for a session's claims, whatever the judge does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError
from guardrail.events import Usage
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judge, Judgement, JudgeReply, JudgeRequest, reconcile, unverified
from guardrail.session import Session

# The library logs by the standard means, which are silent about warnings' details until configured; never
# with a traceback of an unknown judge's error, whose message may hold texts.
_log = logging.getLogger(__name__)


async def ask(
    judge: Judge,
    session: Session,
    evidence: EvidenceIndex,
    batch: dict[str, Claim],
    now: float,
    heard: Callable[[Judgement], None],
) -> tuple[list[Judgement], Usage]:
    """One judgement for each claim of ``batch``, which the session awaits, and what the call consumed.

    ``heard`` is called with those that come before the judge's reply is whole, which are final. ``now`` is a
    reading of the session's clock. Claims that the judge has no verdict for in time, or at all,
    are UNVERIFIED; nothing but cancellation is raised.
    """
    deadline = session.due(batch)
    name = judge.name
    request = JudgeRequest(
        response_id=session.head.response_id,
        question=session.head.question,
        claims=batch,
        evidence=evidence,
        deadline=deadline,
        generator_model=session.head.generator_model,
        tenant=session.head.tenant,
        spent=session.usage,
        on_judgement=lambda judgement: _hear(judgement, batch, name, heard),
    )
    try:
        async with asyncio.timeout(deadline - now):
            reply = await judge.judge(request)
        return list(reconcile(list(batch), reply, name).values()), reply.usage
    except TimeoutError:
        reason = "no verdict in time"
    except JudgeError as error:
        reason = f"{type(error).__name__}: {error}"
        _log.warning("judge failed: %s", reason)
    except Exception as error:  # noqa: BLE001 - a faulty judge must not take others down
        reason = f"{type(error).__name__} in the judge"
        _log.error("faulty judge %r: %s", name, type(error).__name__)
    return [unverified(claim_id, name, reason) for claim_id in batch], Usage()


def _hear(
    judgement: Judgement, batch: dict[str, Claim], name: str, heard: Callable[[Judgement], None]
) -> None:
    """Pass on what can stand by itself. What can't is left to the whole reply, and to ``reconcile``."""
    claim_id = judgement.claim_id
    if claim_id in batch:
        sound = reconcile([claim_id], JudgeReply((judgement,)), name)[claim_id]
        if sound.verdict is judgement.verdict:
            heard(sound)


def add_usage(total: Usage, more: Usage) -> Usage:
    """What both consumed together."""
    return Usage(**{name: getattr(total, name) + getattr(more, name) for name in Usage.model_fields})
