"""Requests for the tests of the LLM judge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from guardrail.claims import Claim
from guardrail.judges import Judgement, JudgeRequest
from guardrail.judges.llm import LlmJudge, LlmJudgeSettings
from tests.support.constants import made
from tests.support.judges import Reply as Judged
from tests.support.judges import reply_of
from tests.support.llm_server import Behaviour, LlmServer
from tests.unit.judges import doubles
from tests.unit.judges.doubles import CONTEXTS as CONTEXTS
from tests.unit.judges.doubles import claim as claim


def request(*claims: str | Claim, **changes: Any) -> JudgeRequest:
    """Claims get the ids k0, k1, …; contexts the ids doc-0, doc-1, …"""
    return doubles.request(*claims or ("The basic plan costs $50.",), **changes)


def settings(server: LlmServer | None = None, **changes: Any) -> LlmJudgeSettings:
    values: dict[str, Any] = {"model": "test"}
    if "stall_s" in changes:  # else half of the test's time
        values["first_token_share"] = 0.0
    if server is not None:
        values["base_url"] = server.url
    return made(LlmJudgeSettings, **values | changes)


@asynccontextmanager
async def judging(*server: Behaviour, **changes: Any) -> AsyncIterator[tuple[LlmJudge, LlmServer]]:
    """A judge that asks a server with these behaviours."""
    async with LlmServer(*server) as listening:
        made = LlmJudge(settings(listening, **changes))
        try:
            yield made, listening
        finally:
            await made.aclose()


async def judge(
    server: LlmServer | None,
    asked: JudgeRequest | None = None,
    announce: Callable[[Judgement], object] | None = None,
    **changes: Any,
) -> Judged:
    made = LlmJudge(settings(server, **changes))
    try:
        return await reply_of(made, asked or request(), announce)
    finally:
        await made.aclose()
