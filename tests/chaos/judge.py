"""The judge of the chaos runs: a function of the claim's text, with latency, and with trouble on order."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from typing import Final, Literal

from guardrail.errors import JudgeUnavailable
from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict
from tests.chaos.outcomes import scripted_verdict
from tests.chaos.workload import DELICATE

Trouble = Literal["", "hang", "error"]
SLOWEST_S: Final = 0.03
_SUPPORT: Final = {"SUPPORTED": 0.95, "CONTRADICTED": 0.02}


class ScriptedJudge:
    """Answers by the text after up to 30 ms. While in trouble it fails requests with delicate claims."""

    name = "scripted"

    def __init__(self) -> None:
        self.trouble: Trouble = ""

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        texts = [claim.text for claim in request.claims.values()]
        await asyncio.sleep(SLOWEST_S * (zlib.crc32(texts[0].encode()) % 100) / 100)
        if any(DELICATE in text for text in texts):
            if self.trouble == "hang":
                await asyncio.Event().wait()
            if self.trouble == "error":
                raise JudgeUnavailable("in trouble, on order")
        request.meter.add(Usage(judge_calls=1))
        for claim_id, verdict in zip(request.claims, map(scripted_verdict, texts), strict=True):
            yield Judgement(claim_id, Verdict(verdict), 0.9, _SUPPORT[verdict], self.name)

    async def aclose(self) -> None:
        return
