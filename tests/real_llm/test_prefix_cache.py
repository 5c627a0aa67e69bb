"""Calls of one response share their prefix: the server says how much of each prompt it did not read again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guardrail.errors import JudgeReplyError
from guardrail.judges import JudgeRequest, Usage
from guardrail.judges.llm import LlmJudge
from tests.real_llm.asking import check, judging, request
from tests.support.judges import reply_of
from tests.support.llama_server import Installation, LlamaServer

pytestmark = pytest.mark.real_llm

_LEAST = 0.80
_CALLS = 4
_DOCUMENT = (
    "The tariff of zone {n} was set by the council on {n} March 2024 and holds for all parcels of up to {n}0 "
    "kilograms. Parcels that are heavier are weighed at the counter, and cost a further {n} euros for each "
    "kilogram begun. Deliveries to zone {n} leave the depot at {n} o'clock on weekdays and take two days; on "
    "public holidays there are none. Whoever wants to complain must do so in writing within {n} weeks, with "
    "the number of the parcel and a copy of the receipt. Lost ones are paid for up to a value of {n}00 euros."
)


@pytest.fixture(scope="module")
def one_slot(installation: Installation) -> Iterator[LlamaServer]:
    """One slot, so that each call meets the prompt of the one before; the model attends to a sliding window,
    of which the server by itself keeps the end only.
    """
    server = LlamaServer(installation, "--swa-full", slots=1)
    try:
        server.start()
        yield server
    finally:
        server.close()


async def _usage(judge: LlmJudge, asked: JudgeRequest) -> Usage:
    """What a call took, also where a small model's reply can't be used."""
    try:
        reply = await reply_of(judge, asked)
    except JudgeReplyError as error:
        usage: Usage = error.usage  # type: ignore[attr-defined]
        return usage
    check(asked, reply)
    return reply.usage


async def test_later_calls_of_a_response_read_little_of_their_prompt_again(
    one_slot: LlamaServer, figures: list[str]
) -> None:
    contexts = [_DOCUMENT.format(n=n) for n in range(2, 9)]
    assert sum(len(text.split()) for text in contexts) >= 600
    ratios, prompts = [], []
    async with judging(one_slot.url, max_output_tokens=64) as judge:
        for call in range(_CALLS):
            claims = [f"Zone {2 * call + n} is served within {n + 2} days at most." for n in range(2)]
            asked = request(*claims, contexts=contexts, response_id="growing", first=2 * call)
            usage = await _usage(judge, asked)
            prompts.append(usage.input_tokens)
            ratios.append(usage.cached_input_tokens / usage.input_tokens)
    shown = ", ".join(f"{ratio:.1%} of {tokens}" for ratio, tokens in zip(ratios, prompts, strict=True))
    figures.append(f"prompt tokens from the cache, call by call: {shown}")
    assert min(ratios[1:]) >= _LEAST
