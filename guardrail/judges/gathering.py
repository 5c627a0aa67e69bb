"""Letting claims of one response gather while its text is being written, so that they share a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from guardrail.judges.base import Judge, JudgeRequest
from guardrail.judges.streams import closing
from guardrail.verdicts import Judgement, unverified

ENOUGH: Final = 4
"""Claims that are asked about without waiting for more: models write verdicts one after the other, and the
last one should not take too long."""
_WAITS: Final = "waits for other claims"


def put_off(request: JudgeRequest, claim_ids: Iterable[str], judge: str) -> bool:
    """Leave these claims, of which nothing is known yet, to the next request, if that may be and helps."""
    if request.gathering is None:
        return False
    waiting = [unverified(claim_id, judge, _WAITS, attempts=0) for claim_id in claim_ids]
    return request.gathering.put_off(waiting, urgent=len(waiting) >= ENOUGH)


class GatheringAround:
    """A Judge around another that lets claims gather before it asks it."""

    def __init__(self, judge: Judge, max_wait_s: float) -> None:
        """Takes over ``judge``. ``max_wait_s``: how long a claim may wait for others."""
        self._judge = judge
        self.max_wait_s = max_wait_s

    @property
    def name(self) -> str:
        return self._judge.name

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields what the judge yields, or nothing if the claims were put off."""
        if put_off(request, request.claims, self.name):
            return
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                yield judgement

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()
