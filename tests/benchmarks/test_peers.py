"""The simulated model of ``benchmarks.peers`` over its socket, and the protocol of the peers' worker."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from benchmarks.peers_answers import Case, load, pieces
from benchmarks.peers_endpoint import Endpoint, Pace
from benchmarks.peers_replies import Replies
from benchmarks.peers_systems import OURS, PEERS, REQUIREMENTS, Outcome, Peer, opened
from benchmarks.peers_tokens import PrefixCache, Usage
from benchmarks.peers_worker import PEERS as WORKERS
from benchmarks.peers_worker import serve


@asynccontextmanager
async def endpoint() -> AsyncIterator[tuple[Endpoint, str]]:
    def cache() -> PrefixCache:
        return PrefixCache(minimum=64, step=16)

    made = Endpoint(Replies(load()), Pace(0.0, 0.0), tokenize=pieces, cache=cache)
    async with made as address:
        yield made, address


async def post(address: str, prompt: str, **more: Any) -> httpx2.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": prompt}], **more}
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.post(f"{address}/label/v1/chat/completions", json=body)


def haystack_prompt(case: Case) -> str:
    return f'["statements", "statement_scores"]\nInputs:\n{{"predicted_answers": {case.answer}}}\n' * 3


async def test_a_whole_reply_and_what_it_cost() -> None:
    case = load()[0].copy(1)
    async with endpoint() as (server, address):
        first = (await post(address, haystack_prompt(case))).json()
        again = (await post(address, haystack_prompt(case))).json()
        usage = server.usage("label")
        assert server.usage("other") == Usage()
    content = first["choices"][0]["message"]["content"]
    assert json.loads(content) == {
        "statements": [claim.text for claim in case.claims],
        "statement_scores": [int(not claim.bad) for claim in case.claims],
    }
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 64
    prompt, output = first["usage"]["prompt_tokens"], first["usage"]["completion_tokens"]
    assert output == len(pieces(content))
    assert usage == Usage(2, 2 * prompt, cached, 2 * output)


async def test_a_stream_gives_the_same_text_token_by_token_and_its_usage() -> None:
    prompt = haystack_prompt(load()[0])
    async with endpoint() as (_, address):
        whole = (await post(address, prompt)).json()
        reply = await post(address, prompt, stream=True, stream_options={"include_usage": True})
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1])
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


async def test_the_forms_of_the_other_peers() -> None:
    case = next(case for case in load() if any(claim.verdict == "UNSUPPORTED" for claim in case.claims))
    statements = [claim.text for claim in case.claims]
    tool = {"type": "function", "function": {"name": "StatementGeneratorOutput", "parameters": {}}}
    judging = (
        "judge the faithfulness of a series of statements\n"
        f"Now perform the same with the following input\ninput: {json.dumps(statements)}\nOutput: "
    )
    async with endpoint() as (server, address):
        yes_or_no = await post(address, f"You need to answer with either YES or NO.\n{case.answer}")
        broken = await post(address, f"fully understandable statements. {case.answer!r}", tools=[tool])
        judged = await post(address, judging)
        unknown = await post(address, "What is the capital of France?")
        assert server.usage("label").unknown == 1
    assert yes_or_no.json()["choices"][0]["message"]["content"] == "NO"
    call = broken.json()["choices"][0]["message"]["tool_calls"][0]["function"]
    assert call["name"] == "StatementGeneratorOutput"
    assert json.loads(call["arguments"]) == {"statements": statements}
    told = json.loads(judged.json()["choices"][0]["message"]["content"])["statements"]
    assert {item["statement"]: item["verdict"] for item in told} == {
        claim.text: int(not claim.bad) for claim in case.claims
    }
    assert unknown.status_code == 400


# Answers whose right sentences no comparison of ours objects to.
@pytest.mark.parametrize("number", [0, 2, 7])
@pytest.mark.parametrize("name", OURS)
async def test_the_guard_gets_the_truth_from_it(name: str, number: int) -> None:
    """What we ask is understood as it is now, and every claim comes back with its verdict."""
    case = load()[number].copy(1)
    async with endpoint() as (server, address):
        async with opened(name, f"{address}/label/v1", None) as system:
            written_already = time.monotonic() - 60.0  # so that nothing waits for the next token
            outcome: Outcome = await system.judge(case, written_already)
        usage = server.usage("label")
    assert (outcome.error, outcome.right, usage.unknown) == ("", True, 0)
    assert outcome.first_bad_s is not None


def test_only_full_steps_of_a_common_prefix_are_cached() -> None:
    cache = PrefixCache(minimum=8, step=4)
    prompt = [str(number) for number in range(20)]
    assert cache.cached(prompt) == 0
    cache.add(prompt)
    assert cache.cached(prompt) == 20
    assert cache.cached([*prompt[:13], "other", *prompt[14:]]) == 12
    assert cache.cached(prompt[:7]) == 0, "shorter than the minimum"
    assert cache.cached(["other", *prompt[1:]]) == 0, "the same later on is no prefix"
    assert cache.cached(["0", "12", *prompt[3:]]) == 0, "other tokens of the same text"


def test_tokens_come_out_at_their_time() -> None:
    pace = Pace(ttft_s=0.35, token_s=0.008)
    assert [pace.ready(at, 10) for at in (0.349, pace.due(0), pace.due(4), 99.0)] == [0, 1, 5, 10]
    assert pace.due(10) == pytest.approx(0.43), "the end: time to first token, and that of all tokens"
    assert Pace(ttft_s=0.1, token_s=0.0).ready(0.1, 7) == 7


def test_every_answer_has_eight_claims_and_an_error_and_evidence() -> None:
    assert len(load()) == 20
    for case in load():
        assert len(case.claims) == 8
        assert 1 <= sum(claim.bad for claim in case.claims) <= 2
        for claim in case.claims:
            assert (claim.verdict == "UNSUPPORTED") == (not claim.evidence)
            assert any(claim.evidence in context for context in case.contexts)


# ---------------------------------------------------------------------------------------------------- worker


async def test_the_worker_judges_side_by_side_and_tells_errors() -> None:
    second = asyncio.Event()

    async def evaluate(item: Mapping[str, Any]) -> float:
        if item["id"] == "slow":
            await second.wait()
            return 0.5
        second.set()
        if item["id"] == "bad":
            raise ValueError("no JSON")
        return 1.0

    source = io.StringIO("".join(json.dumps({"id": name}) + "\n" for name in ("slow", "fast", "bad")))
    sink = io.StringIO()
    await serve(evaluate, source, sink)
    told = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert {item["id"]: item.get("score", item.get("error")) for item in told} == {
        "slow": 0.5, "fast": 1.0, "bad": "ValueError: no JSON",
    }  # fmt: skip
    assert told[0]["id"] != "slow"


class Sink:
    """Takes what is written to a worker."""

    def __init__(self) -> None:
        self.written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def write(self, line: bytes) -> None:
        self.written.put_nowait(json.loads(line))

    async def drain(self) -> None:
        return


@pytest.mark.parametrize(
    ("peer", "score", "right"),
    [
        ("haystack", 0.75, True),
        ("haystack", 1.0, False),
        ("llama_index", 0.0, True),
        ("ragas", None, False),
    ],
)
async def test_a_score_is_compared_with_the_truth(peer: str, score: float | None, right: bool) -> None:
    """None: the worker ends."""
    case = load()[0]  # two of its eight claims are wrong
    sink: Any = Sink()
    source = asyncio.StreamReader()
    system = Peer(peer, sink)
    judging = asyncio.create_task(system.judge(case, start=-1_000.0))
    told = {"id": (await sink.written.get())["id"], "score": score, "at": 0.0, "processor_s": 0.5}
    if score is not None:
        source.feed_data(json.dumps(told).encode() + b"\n")
    source.feed_eof()
    await system.read(source)
    outcome = await judging
    assert outcome.right is right
    assert (outcome.error == "the worker ended") is (score is None)


def test_every_peer_has_a_worker_and_pinned_requirements() -> None:
    assert set(PEERS.values()) == set(WORKERS)
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert all(line.count("==") == 1 for line in lines)
