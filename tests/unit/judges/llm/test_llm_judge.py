"""The LLM judge against a server on a real socket: good replies and bad ones, and a server in trouble."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from contextlib import suppress

import pytest

from guardrail import Guard
from guardrail.errors import ConfigError, JudgeError, JudgeUnavailable
from guardrail.events import Context, Decision
from guardrail.judges import Usage, Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.spending import ModelPrice, PriceTable
from guardrail.policy import Policy
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Behaviour,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    member,
    missing,
    obliging,
    refusing,
    verdicts,
)
from tests.unit.judges.llm.asking import CONTEXTS, claim, judge, judging, request, settings

PRICE = 1  # the number of the sentence that has it


async def test_without_a_key_for_openai_the_judge_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        LlmJudge(settings())


async def test_no_claims_no_call() -> None:
    async with LlmServer() as server:
        asked = request()
        asked.claims.clear()
        assert (await judge(server, asked)).judgements == ()
    assert server.calls == []


async def test_neighbouring_sentences_make_one_quote_that_is_verbatim() -> None:
    text = "It costs\n$50 a month.  Tax is included. Support is free."
    said = member("c1", evidence=[3, 2, "[1]", 1, 4, 5])
    async with LlmServer(Reply(verdicts(said))) as server:
        reply = await judge(server, request(contexts=[text, "Beta."]))
    first, second = reply.judgements[0].evidence
    assert (first.quote, first.span) == (text, (0, len(text)))
    assert (second.context_id, second.quote) == ("doc-1", "Beta.")
    assert reply.usage.dropped_quotes == 0


async def test_contexts_that_contradict_a_supported_claim_are_named() -> None:
    said = member("c1", evidence=[PRICE], against=[2, 2, 7])
    wrong = member("c2", "CONTRADICTED", against=[1])
    async with LlmServer(Reply(verdicts(said, wrong))) as server:
        reply = await judge(server, request("One.", "Two."))
    assert [j.conflicting_contexts for j in reply.judgements] == [("doc-1",), ()]


async def test_the_marker_does_not_leave_with_the_reasoning() -> None:
    def telling(call: Recorded) -> str:
        return verdicts(member("c1", "UNSUPPORTED", reasoning=f"marker {call.system.split()[-1]}."))

    async with LlmServer(Reply(telling)) as server:
        (judgement,) = (await judge(server)).judgements
    assert judgement.reasoning == "marker …."


async def test_options_reach_the_server() -> None:
    async with LlmServer() as server:
        await judge(
            server,
            max_output_tokens=500,
            api_key="sk-1",
            extra_headers={"x-route": "blue"},
            extra_body={"reasoning_effort": "low", "seed": 7, "temperature": 0.3},
        )
    (call,) = server.calls
    wanted = {"model": "test", "seed": 7, "temperature": 0.3, "max_completion_tokens": 500}
    wanted |= {"reasoning_effort": "low"}
    assert {name: call.body[name] for name in wanted} == wanted
    assert call.headers["authorization"] == "Bearer sk-1"
    assert call.headers["x-route"] == "blue"
    assert [message["role"] for message in call.body["messages"]] == ["system", "user"]
    assert call.body["response_format"]["json_schema"]["strict"] is True


async def test_any_language_arrives_as_it_is() -> None:
    text = "该计划每月费用为50美元。योजना की लागत 50 डॉलर है। 𝄞"
    async with LlmServer() as server:
        await judge(server, request(claim(text), contexts=[Context(id="a", text=text)], question=text))
    shown = server.calls[0].user.replace("\n[2] ", "").replace("\n[3] ", " ")
    assert shown.count(text) == 3
    assert json.dumps(server.calls[0].body)


SAID = '{"v":["c1 1 supported !2","c2 2 contradicted 70%: From 9, not 8."]}'


@pytest.mark.parametrize("refused", [(), ("json_schema",), ("json_schema", "json_object")])
async def test_a_text_makes_a_judgement_with_quotes_reason_and_confidence(refused: tuple[str, ...]) -> None:
    async with LlmServer(refusing(*refused, then=Reply(SAID)) if refused else Reply(SAID)) as server:
        reply = await judge(server, request("It costs $50.", "It opens at 8."))
    first, second = reply.judgements
    assert (first.claim_id, first.verdict, first.judge) == ("k0", Verdict.SUPPORTED, "llm:test")
    assert (first.confidence, first.support) == (0.9, 0.95)
    (quote,) = first.evidence
    assert (quote.context_id, quote.quote, quote.span) == (
        "doc-0",
        "The basic plan costs $50 a month.",
        (0, 33),
    )
    assert first.conflicting_contexts == ("doc-1",)
    assert (second.verdict, second.support) == (Verdict.CONTRADICTED, 0.15)
    assert second.reasoning == "From 9, not 8."
    assert all('{"v":["ID NUMBERS VERDICT' in call.system for call in server.calls), (
        "the form stands in the prompt in every mode"
    )


async def test_what_a_stream_used_is_counted_and_priced() -> None:
    prices = PriceTable({"test": ModelPrice(input=1_000.0, cached_input=500.0, output=100.0)})
    async with LlmServer() as server:
        judging = LlmJudge(settings(server), prices=prices)
        usage = (await reply_of(judging, request())).usage
        await judging.aclose()
    (call,) = server.calls
    assert call.streamed
    assert call.wants_usage
    assert usage == Usage(
        judge_calls=1, input_tokens=100, cached_input_tokens=64, output_tokens=20, cost_usd=0.07
    )


@pytest.mark.parametrize(
    "trouble",
    [Status(401), Hang(), Reply("{"), Reply('{"v": []}'), Reply(missing)],
    ids=["error", "silence", "half a reply", "none", "one left out"],
)
async def test_neither_an_error_nor_a_missing_verdict_opens_the_gate(trouble: Behaviour) -> None:
    """Elsewhere it is a skipped row, a NaN that the mean leaves out, or a pass."""
    async with (
        judging(trouble, max_retries=0) as (made, _),
        Guard(made, Policy(claim_timeout_ms=500)) as guard,
    ):
        verdict = await guard.check("What does it cost?", list(CONTEXTS), "It costs $50. It opens at 9.")
    assert verdict.counts.unverified > 0
    assert verdict.decision is not Decision.RELEASE


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
