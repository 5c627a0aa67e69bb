"""Judges for tests: what they say is written in the claim, how they behave is up to the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace

from guardrail.errors import JudgeError
from guardrail.judges import Judge, Judgement, JudgeRequest, Meter, Usage, closing
from guardrail.verdicts import sound, unverified
from tests.support.sessions import judgement, verdict_by_word


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a judge said to one request, in the order of its claims, and what that took.

    ``error`` is what ended it after that.
    """

    judgements: tuple[Judgement, ...]
    usage: Usage
    error: JudgeError | None = None


def joined(request: JudgeRequest, reply: Reply, judge: str) -> dict[str, Judgement]:
    """One judgement for each claim: what was said first, if it makes sense, else UNVERIFIED."""
    found = {claim_id: unverified(claim_id, judge, "nothing was said") for claim_id in request.claims}
    for said in reversed(reply.judgements):
        claim = request.claims.get(said.claim_id)
        if claim is not None:
            unusable = unverified(said.claim_id, judge, "what was said makes no sense")
            found[said.claim_id] = sound(said, claim.prose.text) or unusable
    return found


async def reply_of(
    judge: Judge, request: JudgeRequest, heard: Callable[[Judgement], object] | None = None
) -> Reply:
    """Ask to the end; ``heard`` gets each judgement as it comes. Raises an error ahead of any judgement."""
    meter = Meter(request.meter)
    said: list[Judgement] = []
    error: JudgeError | None = None
    try:
        async with closing(judge.judge(replace(request, meter=meter))) as judgements:
            async for each in judgements:
                said.append(each)
                if heard is not None:
                    heard(each)
    except JudgeError as caught:
        if not said:
            raise
        error = caught
    places = {claim_id: place for place, claim_id in enumerate(request.claims)}
    said.sort(key=lambda each: places.get(each.claim_id, len(places)))
    return Reply(tuple(said), meter.usage, error)


class WordJudge:
    """Answers at once, by the words of the claim; remembers what it was asked."""

    name = "words"

    def __init__(self) -> None:
        self.requests: list[JudgeRequest] = []
        self.closed = False

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.requests.append(request)
        request.meter.add(Usage(judge_calls=1))
        for claim_id, claim in request.claims.items():
            yield judgement(claim_id, verdict_by_word(claim))

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

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
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
        async for each in super().judge(request):
            yield each


class FaultyJudge(WordJudge):
    """Does what the test says instead of judging."""

    def __init__(self, behave: Callable[[JudgeRequest], Iterable[Judgement]]) -> None:
        super().__init__()
        self.behave = behave

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.requests.append(request)
        for each in self.behave(request):
            yield each
