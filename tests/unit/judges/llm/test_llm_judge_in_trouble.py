"""The LLM judge and a server that is slow, busy, broken or choosy."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from contextlib import suppress
from typing import Any

import openai
import pytest

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.judges.llm import LlmJudge
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    member,
    obliging,
    refusing,
    verdicts,
)
from tests.unit.judges.llm.asking import judge, request, settings


async def test_the_client_s_own_retries_are_off_whoever_made_it() -> None:
    async with LlmServer(Status(500)) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=5)
        with pytest.raises(JudgeUnavailable):
            await reply_of(LlmJudge(settings(max_retries=0), client), request())
        await client.close()
    assert len(server.calls) == 1


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
    async with LlmServer(Hang(), Reply(obliging)) as server:
        judging = LlmJudge(settings(server, max_concurrency=1))
        task = asyncio.create_task(reply_of(judging, request()))
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.given_up.wait()
        assert len((await reply_of(judging, request())).judgements) == 1
        await judging.aclose()


async def test_no_more_calls_are_in_flight_than_allowed() -> None:
    """The one call in flight hangs, so the other requests reach their deadline without having been sent."""
    async with LlmServer(Hang()) as server:
        judging = LlmJudge(settings(server, max_concurrency=1))
        first = asyncio.create_task(reply_of(judging, request()))
        await server.arrived.wait()
        with pytest.raises(JudgeUnavailable, match="0 calls made"):
            await reply_of(judging, request(seconds=1.0))
        assert len(server.calls) == 1
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await judging.aclose()


def _formats(server: LlmServer) -> list[str | None]:
    return [call.body.get("response_format", {}).get("type") for call in server.calls]


@pytest.mark.parametrize(
    ("refused", "status", "used"),
    [
        (("json_schema",), 400, ["json_schema", "json_object"]),
        (("json_schema", "json_object"), 400, ["json_schema", "json_object", None]),
        (("json_schema",), 422, ["json_schema", "json_object"]),
        (("json_schema",), 500, ["json_schema", "json_object"]),
    ],
)
async def test_a_form_that_is_refused_is_left_and_not_tried_again(
    refused: tuple[str, ...], status: int, used: list[str | None]
) -> None:
    """A refusal is no retry, and costs later requests nothing."""
    async with LlmServer(refusing(*refused, status=status)) as server:
        judging = LlmJudge(settings(server, max_retries=0))
        await reply_of(judging, request())
        assert _formats(server) == used
        await reply_of(judging, request())
        assert _formats(server) == [*used, used[-1]]
        await judging.aclose()


async def test_requests_refused_together_leave_the_form_once() -> None:
    """Both were refused json_schema; only one of them takes the step to json_object."""
    async with LlmServer(refusing("json_schema")) as server:
        judging = LlmJudge(settings(server, max_retries=0))
        await asyncio.gather(*(reply_of(judging, request(response_id=str(n))) for n in range(8)))
        await judging.aclose()
    assert None not in _formats(server)
    assert _formats(server).count("json_object") == 8


@pytest.mark.parametrize(
    ("error", "gone", "instead"),
    [
        ({"message": "Unsupported value: 'temperature' does not support 0"}, "temperature", None),
        ({"message": "x is not supported", "param": "temperature"}, "temperature", None),
        (
            {"message": "Unrecognized request argument supplied: max_completion_tokens"},
            "max_completion_tokens",
            "max_tokens",
        ),
    ],
)
async def test_an_option_that_is_refused_is_left_out_from_then_on(
    error: dict[str, Any], gone: str, instead: str | None
) -> None:
    def choosy(call: Recorded) -> Reply | Status:
        return Status(400, error) if gone in call.body else Reply(obliging)

    async with LlmServer(choosy) as server:
        judging = LlmJudge(settings(server, max_retries=0))
        await reply_of(judging, request())
        await reply_of(judging, request())
        await judging.aclose()
    first, second, third = server.calls
    assert gone in first.body
    assert gone not in second.body
    assert gone not in third.body
    if instead:
        assert third.body[instead] == first.body[gone]


async def test_a_bad_request_for_another_reason_changes_nothing() -> None:
    error = {"message": "maximum context length is 8192 tokens, and max_completion_tokens is 4096"}
    async with LlmServer(Status(400, error), Reply(verdicts(member("c1")))) as server:
        judging = LlmJudge(settings(server))
        with pytest.raises(JudgeError, match="answered 400"):
            await reply_of(judging, request())
        await reply_of(judging, request())
        await judging.aclose()
    assert server.calls[1].body["max_completion_tokens"] == 4096
