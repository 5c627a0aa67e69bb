"""A server that is killed, and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from guardrail.calls import CircuitBreaker
from guardrail.errors import JudgeUnavailable
from guardrail.judges import Judgement, Verdict
from tests.real_llm.asking import GIVEN, PATIENCE_S, idle, judging, request, until
from tests.support.judges import joined, reply_of
from tests.support.llama_server import LlamaServer

pytestmark = pytest.mark.real_llm


async def test_killed_in_the_middle_of_a_reply_it_leaves_what_was_complete(own_llama: LlamaServer) -> None:
    early: dict[str, Judgement] = {}

    def announce(judgement: Judgement) -> None:
        if judgement.verdict in GIVEN:  # the others are told after it is dead
            early[judgement.claim_id] = judgement
            own_llama.kill()

    asked = request()
    async with judging(own_llama.url, max_output_tokens=2_000, ask_again=True) as judge:
        reply = await reply_of(judge, asked, announce)
    assert 0 < len(early) < len(asked.claims)
    told = joined(asked, reply, judge.name)
    for claim_id, judgement in told.items():
        if claim_id in early:
            assert judgement.verdict is early[claim_id].verdict
            assert judgement.verdict in GIVEN
        else:
            assert judgement.verdict is Verdict.UNVERIFIED
            assert judgement.support is None
            assert "connection" in judgement.reasoning


async def test_killed_before_a_verdict_it_is_unavailable(own_llama: LlamaServer) -> None:
    async with judging(own_llama.url) as judge:
        asking = asyncio.create_task(reply_of(judge, request()))
        await until(lambda: own_llama.busy_slots() == 1)
        own_llama.kill()
        with pytest.raises(JudgeUnavailable, match="connection"):
            await asking


async def test_the_breaker_opens_on_a_dead_server_and_closes_when_it_is_back(
    own_llama: LlamaServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"min_calls": 2, "open_s": 0.3, "probes": 1}.items():
        monkeypatch.setattr(CircuitBreaker, name, value)
    caplog.set_level(logging.INFO, "guardrail.calls")
    async with judging(own_llama.url) as judge:
        own_llama.kill()
        for _ in range(2):
            with pytest.raises(JudgeUnavailable, match="connection"):
                await reply_of(judge, request())
        with pytest.raises(JudgeUnavailable, match="not calling it again"):
            await reply_of(judge, request())
        await asyncio.to_thread(own_llama.start)
        async with asyncio.timeout(PATIENCE_S):
            reply = None
            while reply is None:
                with contextlib.suppress(JudgeUnavailable):  # until the probe is due
                    reply = await reply_of(judge, request())
                await asyncio.sleep(0.05)
        assert len(reply.judgements) == len(request().claims)
        await idle(own_llama)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert "judge.circuit_closed" in caplog.messages[-1]
