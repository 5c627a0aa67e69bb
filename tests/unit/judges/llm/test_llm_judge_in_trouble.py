"""The LLM judge and a server that is slow, busy, broken or choosy."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from contextlib import suppress
from typing import Any

import openai
import pytest

from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm import LlmJudge
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Behaviour,
    Cut,
    Drip,
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

NOW = {"retry-after-ms": "0"}
LATER = {"retry-after": "3600"}


@pytest.mark.parametrize(
    "trouble",
    [
        Status(429, headers=NOW),
        Status(429),
        Status(500),
        Status(503, headers={"retry-after": "0"}),
        Status(408),
        Status(409),
        Status(400, headers={"x-should-retry": "true"}),
        Cut(),
        Cut(after=0),
    ],
)
async def test_what_may_pass_is_tried_again(trouble: Behaviour) -> None:
    async with LlmServer(trouble, Reply(obliging)) as server:
        reply = await judge(server)
    assert len(reply.judgements) == 1
    assert reply.usage.judge_calls == 2
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (Status(429, headers=NOW), "answered 429"),
        (Status(500), "answered 500"),
        (Cut(), r"the connection to 127\.0\.0\.1:\d+ was cut"),
    ],
)
async def test_retries_end(trouble: Behaviour, message: str) -> None:
    async with LlmServer(trouble) as server:
        with pytest.raises(JudgeUnavailable, match=message):
            await judge(server, max_retries=2)
    assert len(server.calls) == 3


async def test_the_client_s_own_retries_are_off_whoever_made_it() -> None:
    async with LlmServer(Status(500)) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=5)
        with pytest.raises(JudgeUnavailable):
            await reply_of(LlmJudge(settings(max_retries=0), client), request())
        await client.close()
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (Status(401), "answered 401; check the API key"),
        (Status(403), "answered 403; check what the API key may do"),
        (Status(404), "answered 404; check judge.llm.base_url and judge.llm.model"),
        (Status(400), "answered 400"),
        (Status(413), "answered 413"),
    ],
)
async def test_what_will_not_pass_is_not_tried_again(trouble: Behaviour, message: str) -> None:
    async with LlmServer(trouble) as server:
        with pytest.raises(JudgeError, match=message) as caught:
            await judge(server)
    assert not isinstance(caught.value, JudgeUnavailable | JudgeReplyError)
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


async def test_an_exhausted_account_is_not_tried_again() -> None:
    async with LlmServer(Status(429, {"code": "insufficient_quota"})) as server:
        with pytest.raises(JudgeUnavailable, match=r"429 \(insufficient_quota\)"):
            await judge(server)
    assert len(server.calls) == 1


async def test_a_wait_that_the_deadline_does_not_allow_is_not_begun() -> None:
    """With an hour to wait and a minute left this ends at once; the test's own limit is below the minute."""
    async with LlmServer(Status(429, headers=LATER)) as server:
        async with asyncio.timeout(30):
            with pytest.raises(JudgeUnavailable, match="no time is left to try again"):
                await judge(server, request(seconds=60))
    assert len(server.calls) == 1


@pytest.mark.parametrize("trouble", [Hang(), Drip()], ids=["hang", "drip"])
async def test_a_server_that_never_ends_is_left_at_the_deadline(trouble: Behaviour) -> None:
    async with LlmServer(trouble) as server:
        with pytest.raises(JudgeUnavailable, match="no verdict within the deadline, 1 call made"):
            await judge(server, request(seconds=1.0))
        await server.given_up.wait()


async def test_one_call_that_hangs_need_not_cost_all_the_time() -> None:
    async with LlmServer(Hang(), Reply(obliging)) as server:
        reply = await judge(server, stall_s=1.0)
    assert reply.usage.judge_calls == 2


async def test_calls_that_hang_one_after_the_other_are_reported() -> None:
    async with LlmServer(Hang()) as server:
        with pytest.raises(JudgeUnavailable, match="the reply stalled for 500 ms"):
            await judge(server, stall_s=0.5, max_retries=1)
    assert len(server.calls) == 2


async def test_a_verdict_says_whose_it_is_and_whom_it_stands_in_for() -> None:
    async with LlmServer(Status(503)) as first, LlmServer(Reply(obliging)) as second:
        spare = [{"model": "spare", "base_url": second.url}]
        reply = await judge(first, max_retries=1, fallbacks=spare)
    (judgement,) = reply.judgements
    assert judgement.judge == "llm:spare"
    assert judgement.degraded_from == ("llm:test: the server answered 503",)
    assert judgement.attempts == reply.usage.judge_calls == 3


async def test_when_every_model_fails_each_is_named() -> None:
    async with LlmServer(Status(503)) as first, LlmServer(Status(401)) as second:
        spare = [{"model": "spare", "base_url": second.url}]
        with pytest.raises(
            JudgeUnavailable, match="llm:test: the server answered 503; llm:spare: the server"
        ):
            await judge(first, max_retries=0, fallbacks=spare)


async def test_after_the_deadline_nothing_is_asked() -> None:
    async with LlmServer() as server:
        with pytest.raises(JudgeUnavailable, match="before the first call"):
            await judge(server, request(seconds=-1))
    assert server.calls == []


async def test_no_server_at_all() -> None:
    async with LlmServer() as server:
        url = server.url
    judging = LlmJudge(settings(base_url=url, max_retries=0))
    with pytest.raises(JudgeUnavailable, match=r"no connection to 127\.0\.0\.1:"):
        await reply_of(judging, request())
    await judging.aclose()


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


async def test_errors_hold_neither_key_nor_text() -> None:
    """Servers repeat what they were sent; what we raise ends up in logs and verdicts."""
    echo = {"message": "bad key sk-secret for: It costs $50.", "code": "It costs $50.", "type": "sk-secret"}
    for status in (400, 401, 429, 500):
        async with LlmServer(Status(status, echo)) as server:
            with pytest.raises(JudgeError) as caught:
                await judge(server, api_key="sk-secret", max_retries=0)
        error = caught.value
        assert "sk-secret" not in repr(error)
        assert "$50" not in repr(error)
        assert error.__suppress_context__


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


async def test_fenced_json_of_a_server_that_knows_no_forms() -> None:
    fenced = Reply(lambda call: f"Here you are:\n```json\n{obliging(call)}\n```")
    async with LlmServer(refusing("json_schema", "json_object", then=fenced)) as server:
        reply = await judge(server)
    assert len(reply.judgements) == 1


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
