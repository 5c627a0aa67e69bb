"""Requests for the tests of the LLM judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from guardrail.claims import Claim
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judgement, JudgeRequest
from guardrail.judges.llm import LlmJudge, LlmJudgeSettings
from tests.support.constants import made
from tests.support.judges import Reply as Judged
from tests.support.judges import reply_of
from tests.support.llm_server import LlmServer

CONTEXTS = ("The basic plan costs $50 a month.", "Support is open from 9 to 17 on weekdays.")


def claim(text: str, index: int = 0, lead_in: str = "") -> Claim:
    return Claim(index, index, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)


def request(
    *claims: str | Claim,
    contexts: Sequence[str | Context] = CONTEXTS,
    question: str = "What does it cost?",
    response_id: str = "r1",
    seconds: float = 60.0,
) -> JudgeRequest:
    """Claims get the ids k0, k1, …; contexts the ids doc-0, doc-1, …"""
    return JudgeRequest(
        response_id,
        question,
        {
            f"k{number}": item if isinstance(item, Claim) else claim(item, number)
            for number, item in enumerate(claims or ("The basic plan costs $50.",))
        },
        EvidenceIndex(
            [
                item if isinstance(item, Context) else Context(id=f"doc-{number}", text=item)
                for number, item in enumerate(contexts)
            ]
        ),
        time.monotonic() + seconds,
    )


def settings(server: LlmServer | None = None, **changes: Any) -> LlmJudgeSettings:
    values: dict[str, Any] = {"model": "test"}
    if "stall_s" in changes:  # else half of the test's time
        values["first_token_share"] = 0.0
    if server is not None:
        values["base_url"] = server.url
    return made(LlmJudgeSettings, **values | changes)


async def judge(
    server: LlmServer | None,
    asked: JudgeRequest | None = None,
    announce: Callable[[Judgement], object] | None = None,
    **changes: Any,
) -> Judged:
    judging = LlmJudge(settings(server, **changes))
    try:
        return await reply_of(judging, asked or request(), announce)
    finally:
        await judging.aclose()
