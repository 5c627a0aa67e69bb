"""More calls at once than the server has slots."""

from __future__ import annotations

import asyncio

import pytest

from tests.real_llm.asking import check, judging, request
from tests.support.judges import reply_of
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


async def test_eight_at_once_each_get_the_verdicts_on_their_own_claims(llama: LlamaServer) -> None:
    asked = [
        request(
            f"Plan {n} costs ${n}0 a month.",
            f"Plan {n} includes {n} users.",
            contexts=[f"Plan {n} costs ${n}0 a month. It includes {n} users."],
            response_id=f"response-{n}",
        )
        for n in range(1, 9)
    ]
    async with judging(llama.url) as judge:
        replies = await asyncio.gather(*(reply_of(judge, one) for one in asked))
    for one, reply in zip(asked, replies, strict=True):
        check(one, reply)
        assert reply.judgements  # a small model may leave a claim out
