"""Replies under a real grammar, streamed by a real server, in each of the forms that can be asked for."""

from __future__ import annotations

import pytest

from guardrail.judges import Judgement
from tests.real_llm.asking import CLAIMS, GIVEN, check, judging, request
from tests.support.judges import reply_of
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


@pytest.mark.parametrize("reasoning", ["none", "not_supported"])
async def test_each_claim_gets_a_verdict_under_the_schema(llama: LlamaServer, reasoning: str) -> None:
    asked = request()
    async with judging(llama.url, reasoning=reasoning) as judge:
        reply = await reply_of(judge, asked)
    check(asked, reply)
    assert {judgement.claim_id for judgement in reply.judgements} == asked.claims.keys()
    assert {judgement.verdict for judgement in reply.judgements} <= GIVEN


async def test_claims_are_taken_apart_under_the_schema(llama: LlamaServer) -> None:
    """How many of them is the model's affair: this one may end its list after the first."""
    asked = request()
    async with judging(llama.url, reasoning="not_supported", decompose=True, max_output_tokens=600) as judge:
        reply = await reply_of(judge, asked)
    check(asked, reply)
    assert reply.judgements
    assert any(judgement.parts for judgement in reply.judgements)


async def test_the_first_verdict_is_known_while_the_server_still_writes(llama: LlamaServer) -> None:
    busy: list[int] = []

    def announce(_: Judgement) -> None:
        busy.append(llama.busy_slots())

    asked = request()
    async with judging(llama.url) as judge:
        reply = await reply_of(judge, asked, announce)
    check(asked, reply)
    assert busy[0] == 1


async def test_a_reply_cut_off_by_the_bound_of_tokens_keeps_what_was_complete(llama: LlamaServer) -> None:
    # Of its own it ends its list after four: the server is told to stop before (its own word for max_tokens).
    asked = request(*CLAIMS * 5)
    async with judging(llama.url, extra_body={"n_predict": 30}) as judge:
        reply = await reply_of(judge, asked)
    check(asked, reply)
    assert reply.usage.output_tokens == 30
    assert 0 < len(reply.judgements) < len(asked.claims)
