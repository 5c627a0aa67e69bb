"""One judge in another's place, where that can't answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from guardrail.errors import JudgeError
from guardrail.judges.base import Around, Judge, JudgeRequest, Meter
from guardrail.judges.streams import closing
from guardrail.verdicts import Judgement

KEPT_SHARE: Final = 0.4
"""Of the time left, for a second judge that could answer."""


class FallbackJudge(Around):
    """A Judge. Judgements of the second judge name the first, and why, in ``degraded_from``."""

    def __init__(self, judge: Judge, other: Judge, on: type[JudgeError], kept_share: float = 0.0) -> None:
        """Takes over both judges, and closes them. ``other`` answers where ``judge`` raises ``on``, and a
        ``kept_share`` of the time is kept for it.
        """
        super().__init__(judge)
        self._other = other
        self._on = on
        self._kept_share = kept_share

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """The first judge's judgements, and the second's on the remaining claims where that fails."""
        meter = Meter(request.meter)
        left = dict(request.claims)
        now = time.monotonic()
        until = request.deadline - self._kept_share * max(0.0, request.deadline - now)
        try:
            async with closing(
                self._judge.judge(replace(request, meter=meter, deadline=until))
            ) as judgements:
                async for judgement in judgements:
                    left.pop(judgement.claim_id, None)
                    yield judgement
                return
        except self._on as error:
            why = f"{self._judge.name}: {error}"
        async with closing(self._other.judge(replace(request, claims=left))) as judgements:
            async for judgement in judgements:
                yield replace(
                    judgement,
                    # Calls may have failed until there was no room for another.
                    attempts=judgement.attempts + meter.usage.judge_calls,
                    degraded_from=(why, *judgement.degraded_from),
                )

    async def aclose(self) -> None:
        """Close both."""
        try:
            await super().aclose()
        finally:
            await self._other.aclose()
