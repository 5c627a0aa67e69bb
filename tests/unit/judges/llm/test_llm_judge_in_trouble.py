"""The LLM judge and a server that is slow, busy, broken or choosy."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from contextlib import suppress

import pytest

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.judges.llm import LlmJudge
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Hang,
    LlmServer,
    Reply,
    Status,
    obliging,
)
from tests.unit.judges.llm.asking import judge, judging, request, settings


@pytest.mark.parametrize("packed", [False, True])
async def test_of_an_error_without_end_only_the_beginning_is_read(packed: bool) -> None:
    sent = gzip.compress(b"x" * 60_000_000, 9) if packed else b"x" * 60_000_000
    head = f"HTTP/1.1 400 Bad\r\nContent-Type: text/plain\r\nContent-Length: {len(sent)}\r\n"
    encoding = "Content-Encoding: gzip\r\n" if packed else ""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}{encoding}\r\n".encode())
        with suppress(ConnectionError):
            for at in range(0, len(sent), 4_096):
                writer.write(sent[at : at + 4_096])
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        judging = LlmJudge(settings(base_url=f"http://127.0.0.1:{port}/v1"))
        tracemalloc.start()
        try:
            with pytest.raises(JudgeError, match="400"):
                await reply_of(judging, request())
            assert tracemalloc.get_traced_memory()[1] < 40_000_000
        finally:
            tracemalloc.stop()
        await judging.aclose()


async def test_a_verdict_says_whose_it_is_and_whom_it_stands_in_for() -> None:
    async with LlmServer(Status(503)) as first, LlmServer(Reply(obliging)) as second:
        spare = [{"model": "spare", "base_url": second.url}]
        reply = await judge(first, max_retries=1, fallbacks=spare)
    (judgement,) = reply.judgements
    assert judgement.judge == "llm:spare"
    assert judgement.degraded_from == ("llm:test: the server answered 503",)
    assert judgement.attempts == reply.usage.judge_calls == 3


async def test_cancelling_ends_the_call_and_leaves_the_judge_usable() -> None:
    async with judging(Hang(), Reply(obliging), max_concurrency=1) as (made, server):
        task = asyncio.create_task(reply_of(made, request()))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.given_up.wait()
        assert len((await reply_of(made, request())).judgements) == 1


async def test_no_more_calls_are_in_flight_than_allowed() -> None:
    """The one call in flight hangs, so the other requests reach their deadline without having been sent."""
    async with judging(Hang(), max_concurrency=1) as (made, server):
        first = asyncio.create_task(reply_of(made, request()))
        await server.arrived.wait()
        with pytest.raises(JudgeUnavailable, match="0 calls made"):
            await reply_of(made, request(seconds=1.0))
        assert len(server.calls) == 1
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
