"""The simulated endpoint of ``benchmarks.peers`` over its socket, with no time to wait."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from benchmarks.peers_answers import Case, load, pieces
from benchmarks.peers_endpoint import Endpoint, Pace
from benchmarks.peers_replies import Replies
from benchmarks.peers_systems import Outcome, opened
from benchmarks.peers_tokens import PrefixCache, Usage


@asynccontextmanager
async def endpoint() -> AsyncIterator[tuple[Endpoint, str]]:
    made = Endpoint(
        Replies(load()), Pace(0.0, 0.0), tokenize=pieces, cache=lambda: PrefixCache(minimum=64, step=16)
    )
    async with made as address:
        yield made, address


async def post(address: str, body: dict[str, Any]) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.post(f"{address}/label/v1/chat/completions", json=body)


def user(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def haystack_prompt(case: Case) -> str:
    return (
        'Generate the response in JSON format with the following keys:\n["statements", "statement_scores"]\n'
        f'Inputs:\n{{"questions": {case.question}, "contexts": {list(case.contexts)}, '
        f'"predicted_answers": {case.answer}}}\nOutputs:\n'
    )


async def test_a_whole_reply_and_what_it_cost() -> None:
    case = load()[0].copy(1)
    async with endpoint() as (server, address):
        first = (await post(address, user(haystack_prompt(case)))).json()
        again = (await post(address, user(haystack_prompt(case)))).json()
        usage = server.usage("label")
    told = json.loads(first["choices"][0]["message"]["content"])
    assert told["statements"] == [claim.text for claim in case.claims]
    assert told["statement_scores"] == [int(not claim.bad) for claim in case.claims]
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 64
    prompt, output = first["usage"]["prompt_tokens"], first["usage"]["completion_tokens"]
    assert output == len(pieces(first["choices"][0]["message"]["content"]))
    assert usage == Usage(2, 2 * prompt, cached, 2 * output)


async def test_labels_share_neither_accounts_nor_caches() -> None:
    async with endpoint() as (server, address):
        await post(address, user(haystack_prompt(load()[0])))
        assert server.usage("other") == Usage()


async def test_a_stream_gives_the_same_text_token_by_token_and_its_usage() -> None:
    body = user(haystack_prompt(load()[0]))
    streamed = body | {"stream": True, "stream_options": {"include_usage": True}}
    async with endpoint() as (server, address):
        whole = (await post(address, body)).json()
        reply = await post(address, streamed)
        usage = server.usage("label")
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1])
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert usage.output_tokens == 2 * whole["usage"]["completion_tokens"]


async def test_a_tool_that_is_offered_is_called() -> None:
    case = load()[1]
    tool = {"type": "function", "function": {"name": "StatementGeneratorOutput", "parameters": {}}}
    prompt = f"Break it down into one or more fully understandable statements. {json.dumps(case.answer)}"
    async with endpoint() as (_, address):
        made = (await post(address, user(prompt) | {"tools": [tool]})).json()
    call = made["choices"][0]["message"]["tool_calls"][0]["function"]
    assert call["name"] == "StatementGeneratorOutput"
    assert json.loads(call["arguments"])["statements"] == [claim.text for claim in case.claims]


async def test_statements_are_judged_with_reasons() -> None:
    case = next(case for case in load() if any(claim.verdict == "UNSUPPORTED" for claim in case.claims))
    statements = json.dumps([claim.text for claim in case.claims])
    prompt = (
        "judge the faithfulness of a series of statements\n"
        f"Now perform the same with the following input\ninput: {statements}\nOutput: "
    )
    async with endpoint() as (_, address):
        made = (await post(address, user(prompt))).json()
    told = json.loads(made["choices"][0]["message"]["content"])["statements"]
    assert {item["statement"]: item["verdict"] for item in told} == {
        claim.text: int(not claim.bad) for claim in case.claims
    }
    assert all(item["reason"] for item in told)


async def test_a_yes_or_no() -> None:
    prompt = f"You need to answer with either YES or NO.\nInformation: {load()[0].answer}\nContext: …"
    async with endpoint() as (_, address):
        made = (await post(address, user(prompt))).json()
    assert made["choices"][0]["message"]["content"] == "NO"


async def test_a_prompt_of_no_known_form_is_refused_and_counted() -> None:
    async with endpoint() as (server, address):
        reply = await post(address, user("What is the capital of France?"))
        assert reply.status_code == 400
        assert server.usage("label") == Usage(unknown=1)


@pytest.mark.parametrize("number", [0, 2, 15])
async def test_the_guard_gets_the_truth_from_it(number: int) -> None:
    """Our own prompt is understood as it is now, and every claim comes back with its verdict."""
    case = load()[number].copy(1)
    async with endpoint() as (server, address):
        async with opened("guardrail-llm", f"{address}/label/v1", None) as system:
            written_already = time.monotonic() - 60.0  # so that nothing waits for the next token
            outcome: Outcome = await system.judge(case, written_already)
        usage = server.usage("label")
    assert outcome.error == ""
    assert outcome.right
    assert outcome.first_bad_s is not None
    assert usage.calls >= 1
    assert usage.unknown == 0
