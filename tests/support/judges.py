"""Judges for tests: what they say is written in the claim, how they behave is up to the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from guardrail.events import Usage
from guardrail.judges.base import Judgement, JudgeReply, JudgeRequest
from tests.support.sessions import judgement, verdict_by_word


class WordJudge:
    """Answers at once, by the words of the claim; remembers what it was asked."""

    name = "words"

    def __init__(self) -> None:
        self.requests: list[JudgeRequest] = []
        self.closed = False

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        found = tuple(
            judgement(claim_id, verdict_by_word(claim)) for claim_id, claim in request.claims.items()
        )
        return JudgeReply(found, Usage(judge_calls=1))

    async def aclose(self) -> None:
        self.closed = True


class GatedJudge(WordJudge):
    """Answers when the test opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.cancelled = 0
        self.at_once = 0
        self.most_at_once = 0

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.asked.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1
        return await super().judge(request)


class FaultyJudge(WordJudge):
    """Does what the test says instead of judging."""

    def __init__(self, behave: Callable[[JudgeRequest], tuple[Judgement, ...]]) -> None:
        super().__init__()
        self.behave = behave

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        return JudgeReply(self.behave(request))
