"""Deadlines on a real server: the judge gives up in time, and the server stops working for nobody."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.judges import Judgement
from tests.real_llm.asking import PATIENCE_S, check, idle, judging, request, until
from tests.support.judges import reply_of
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


@pytest.mark.parametrize("seconds", [0.001, 0.2], ids=["before the call", "within the prompt"])
async def test_what_can_not_be_judged_in_time_is_given_up_and_the_slot_is_free_again(
    llama: LlamaServer, seconds: float
) -> None:
    # A prompt that no slot has read before, and long enough to be read for longer than there is time.
    contexts = [f"Note {seconds} {n}: the tariff of zone {n} is {n * 7} cents." for n in range(50)]
    async with judging(llama.url) as judge:
        with pytest.raises(JudgeUnavailable):
            async with asyncio.timeout(PATIENCE_S / 2):  # far beyond the deadline, far below the reply
                await reply_of(judge, request(contexts=contexts, response_id="late", seconds=seconds))
        await idle(llama)
        asked = request(response_id="next")
        reply = await reply_of(judge, asked)
    check(asked, reply)
    assert {judgement.claim_id for judgement in reply.judgements} == asked.claims.keys()


async def test_a_caller_who_leaves_in_the_middle_of_a_reply_frees_the_slot(llama: LlamaServer) -> None:
    spoken = asyncio.Event()

    def announce(_: Judgement) -> None:
        spoken.set()

    claims = [f"The basic plan costs ${n}." for n in range(40, 60)]
    async with judging(llama.url, max_output_tokens=2_000) as judge:
        left = asyncio.create_task(reply_of(judge, request(*claims), announce))
        async with asyncio.timeout(PATIENCE_S):
            await spoken.wait()
        await until(lambda: llama.busy_slots() == 1)
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        await idle(llama)
