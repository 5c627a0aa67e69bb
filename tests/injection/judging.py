"""The judge under attack: requests with a text in one place, and what is made of a reply."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from guardrail.claims import Claim
from guardrail.errors import JudgeError
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judge, Judgement, JudgeRequest, Usage, Verdict
from guardrail.judges.llm import LlmJudge, LlmJudgeSettings
from tests.support.constants import made
from tests.support.judges import Reply as Judged
from tests.support.judges import joined, reply_of
from tests.support.llm_server import LlmServer, Reply, Wire, obliging

CONTEXTS: Final = ("The basic plan costs $50 a month. It has no trial.", "Support is open from 9 to 17.")
KEY: Final = "sk-key-of-the-test"

AT_ONCE: Final = Wire(chunk_chars=100_000, events_per_write=None)
"""A reply in a single piece, for tests that are not about how it comes."""
NOTHING: Final = Judged((), Usage())
OBLIGING: Final = Reply(obliging, wire=AT_ONCE)

_numbers = itertools.count(1)


def request(
    *claims: str | Claim,
    contexts: tuple[str, ...] = CONTEXTS,
    question: str = "What does it cost?",
    response_id: str = "r1",
) -> JudgeRequest:
    """Claims get the ids k0, k1, …; the model knows them as c1, c2, …"""
    asked = {
        f"k{number}": item if isinstance(item, Claim) else claim(item, number)
        for number, item in enumerate(claims)
    }
    documents = [Context(id=f"doc-{number}", text=text) for number, text in enumerate(contexts)]
    return JudgeRequest(
        response_id,
        question,
        asked,
        EvidenceIndex(documents),
        time.monotonic() + 60.0,
    )


def claim(text: str, index: int = 0, lead_in: str = "") -> Claim:
    return Claim(index, index, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)


def attacked(place: str, text: str = "Harmless words.", response_id: str = "r1") -> JudgeRequest:
    """A request with ``text`` in one place: context, question or answer (a claim and its lead-in).

    The other claims are new each time, so that no verdict on them can be known from before.
    """
    number = next(_numbers)
    first = claim(text, lead_in=text) if place == "answer" else claim(f"It costs ${number}.", lead_in="So:")
    return request(
        first,
        claim(f"It opens at 9, or {number}.", 1),
        contexts=(text, CONTEXTS[1]) if place == "context" else CONTEXTS,
        question=text if place == "question" else "What does it cost?",
        response_id=response_id,
    )


@asynccontextmanager
async def judging(server: LlmServer, **changes: Any) -> AsyncIterator[Judge]:
    """A judge that asks ``server``."""
    values = {"model": "test", "base_url": server.url, "api_key": KEY}
    values |= {"max_retries": 0, "whole_context_chars": 1_000_000} | changes
    judge = LlmJudge(made(LlmJudgeSettings, **values))
    try:
        yield judge
    finally:
        await judge.aclose()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request: ``verdicts`` by the short id of the claim, as the engine would join them."""

    verdicts: dict[str, Judgement]
    reply: Judged = field(default_factory=lambda: NOTHING)
    error: JudgeError | None = None


async def outcome(judge: Judge, asked: JudgeRequest) -> Outcome:
    """A judge that can't answer raises, and the engine makes UNVERIFIED of that."""
    reply, error = NOTHING, None
    try:
        reply = await reply_of(judge, asked)
    except JudgeError as raised:
        error = raised
    found = joined(asked, reply, judge.name)
    return Outcome({f"c{number}": found[id_] for number, id_ in enumerate(found, 1)}, reply, error)


def check(asked: JudgeRequest, result: Outcome, marker: str) -> None:
    """What holds of every reply that is accepted, whatever the model wrote."""
    texts = {context.id: context.text for context in asked.evidence.contexts}
    for judgement in result.reply.judgements:
        assert judgement.claim_id in asked.claims
        assert 0.0 <= judgement.confidence <= 1.0
        assert (judgement.support is None) == (judgement.verdict is Verdict.UNVERIFIED)
        assert judgement.support is None or math.isfinite(judgement.support)
        assert set(judgement.conflicting_contexts) <= texts.keys()
        for quote in judgement.evidence:
            assert quote.quote == texts[quote.context_id][slice(*quote.span)] != ""
    told = repr((result.reply, result.error)).lower()
    assert marker.lower() not in told
    said = [judgement.claim_id for judgement in result.reply.judgements]
    assert len(said) == len(set(said)), "what was said did not stand"
