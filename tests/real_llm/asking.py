"""Small questions for a small model, and what must hold of any reply whatever it judged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from guardrail.claims import Claim
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import JudgeRequest, Verdict
from guardrail.judges.llm import LlmJudge, LlmJudgeSettings
from tests.support.constants import made
from tests.support.judges import Reply
from tests.support.llama_server import LlamaServer

CONTEXTS: Final = (
    "The basic plan costs $50 a month. It includes three users.",
    "Support is open from 9 to 17 on weekdays. It is free of charge.",
)
CLAIMS: Final = ("The basic plan costs $50.", "Support is open on Sundays.", "The plan includes three users.")
GIVEN: Final = frozenset(Verdict) - {Verdict.UNVERIFIED}

# How long any of it may take on a machine that is busy with other things. Nothing waits for it to pass.
PATIENCE_S: Final = 240.0


def request(
    *claims: str,
    contexts: Sequence[str] = CONTEXTS,
    response_id: str = "r1",
    first: int = 0,
    seconds: float = PATIENCE_S,
) -> JudgeRequest:
    """Claims get the ids RESPONSE-k0, RESPONSE-k1, … from ``first`` on; contexts doc-0, doc-1, …"""
    return JudgeRequest(
        response_id,
        "What does the basic plan offer?",
        {
            f"{response_id}-k{n}": Claim(n, n, text, 0, len(text), Severity.NORMAL)
            for n, text in enumerate(claims or CLAIMS, first)
        },
        EvidenceIndex([Context(id=f"doc-{n}", text=text) for n, text in enumerate(contexts)]),
        time.monotonic() + seconds,
    )


def settings(url: str, **changes: Any) -> LlmJudgeSettings:
    """One call each, of few tokens. Silence has no bound, for reading a prompt takes seconds here."""
    values: dict[str, Any] = {
        "model": "gemma-3-270m",
        "base_url": url,
        "max_output_tokens": 400,
        "max_retries": 0,
        "ask_again": False,
        "reasoning": "none",
        "stall_s": 600.0,
    }
    return made(LlmJudgeSettings, **values | changes)


@asynccontextmanager
async def judging(url: str, **changes: Any) -> AsyncIterator[LlmJudge]:
    """A judge on the server at ``url``, closed at the end."""
    judge = LlmJudge(settings(url, **changes))
    try:
        yield judge
    finally:
        await judge.aclose()


def check(asked: JudgeRequest, reply: Reply, *, calls: int = 1) -> None:
    """Of asked claims only, of each once, with quotes out of the contexts; calls and tokens counted."""
    ids = [judgement.claim_id for judgement in reply.judgements]
    assert len(set(ids)) == len(ids)
    assert set(ids) <= asked.claims.keys()
    texts = {context.id: context.text for context in asked.evidence.contexts}
    for judgement in reply.judgements:
        assert (judgement.support is None) is (judgement.verdict is Verdict.UNVERIFIED)
        for quote in judgement.evidence:
            assert texts[quote.context_id][slice(*quote.span)] == quote.quote
    usage = reply.usage
    assert usage.judge_calls == calls
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert 0 <= usage.cached_input_tokens <= usage.input_tokens
    shares = [judgement.usage for judgement in reply.judgements if judgement.usage is not None]
    assert sum(share.input_tokens for share in shares) <= usage.input_tokens


async def until(condition: Callable[[], bool]) -> None:
    """Until a state outside of this process is reached; TimeoutError when it never is."""
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.05)


async def idle(server: LlamaServer) -> None:
    """Until the server works at no request."""
    await until(lambda: server.busy_slots() == 0)
