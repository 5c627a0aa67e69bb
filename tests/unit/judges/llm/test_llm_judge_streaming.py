"""Verdicts are announced while the reply is written, and final then; what is missing is asked for again."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from guardrail.judges import Judgement, Usage, Verdict
from guardrail.judges.llm.judge import split
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Cut,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Wire,
    member,
    obliging,
    verdicts,
)
from tests.unit.judges.llm.asking import judge, judging, request

THREE = verdicts(member("c1", evidence=[1]), member("c2", "CONTRADICTED", evidence=[2]), member("c3"))


async def test_a_verdict_is_announced_when_its_text_closes_though_the_reply_goes_on() -> None:
    announced: asyncio.Queue[Judgement] = asyncio.Queue()
    go_on = asyncio.Event()
    after_two = 2 + THREE.index('"c3') // 4
    wire = Wire(chunk_chars=4, hold_after=after_two, until=go_on)
    async with judging(Reply(THREE, wire=wire)) as (made, server):
        asked = request("One.", "Two.", "Three.")
        task = asyncio.create_task(reply_of(made, asked, announced.put_nowait))
        first, second = await announced.get(), await announced.get()
        assert not task.done()
        assert server.calls[0].outcome is None
        assert [(j.claim_id, j.verdict) for j in (first, second)] == [
            ("k0", Verdict.SUPPORTED),
            ("k1", Verdict.CONTRADICTED),
        ]
        assert (first.judge, first.attempts, first.usage) == ("llm:test", 1, None)
        assert second.evidence[0].quote == "Support is open from 9 to 17 on weekdays."
        go_on.set()
        reply = await task
    assert announced.get_nowait().claim_id == "k2"
    assert announced.empty()
    assert [j.claim_id for j in reply.judgements] == ["k0", "k1", "k2"]


async def test_of_a_reply_that_breaks_off_the_complete_verdicts_stand_and_the_others_are_asked_again() -> (
    None
):
    cut = Cut(chunks=2 + THREE.index('"c3') // 4, reply=Reply(THREE, wire=Wire(chunk_chars=4)))
    async with LlmServer(cut, Reply(obliging)) as server:
        reply = await judge(server, request("One.", "Two.", "Three."), max_retries=0)
    assert [call.asked for call in server.calls] == [["c1", "c2", "c3"], ["c3"]]
    assert [(j.claim_id, j.verdict, j.attempts) for j in reply.judgements] == [
        ("k0", Verdict.SUPPORTED, 1),
        ("k1", Verdict.CONTRADICTED, 1),
        ("k2", Verdict.SUPPORTED, 2),
    ]
    assert reply.usage.judge_calls == 2


async def test_what_is_known_is_announced_before_the_rest_is_asked_for_again() -> None:
    announced: asyncio.Queue[Judgement] = asyncio.Queue()
    async with judging(Reply(f"So: {verdicts(member('c2'))}"), Hang()) as (made, server):
        task = asyncio.create_task(reply_of(made, request("One.", "Two."), announced.put_nowait))
        assert (await announced.get()).claim_id == "k1"
        assert not server.given_up.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_all_calls_of_a_response_are_alike_up_to_the_claims() -> None:
    """That is what a provider's prefix cache serves: instructions, examples, documents and question."""
    async with judging(Reply(obliging), Reply(verdicts(member("c1"))), Reply(obliging)) as (made, server):
        await reply_of(made, request("It costs $50."))
        await reply_of(made, request("Support opens at 9.", "It closes at 17."))
    assert [call.asked for call in server.calls] == [["c1"], ["c1", "c2"], ["c2"]]
    prompts = [json.dumps(call.body["messages"], ensure_ascii=False) for call in server.calls]
    shared = _common(prompts)
    assert shared.endswith(" claim c")
    assert "What does it cost?" in shared
    rest = [len(prompt) - len(shared) for prompt in prompts]
    assert max(rest) < 400 < len(shared)


def _common(texts: list[str]) -> str:
    length = 0
    while len({text[: length + 1] for text in texts}) == 1:
        length += 1
    return texts[0][:length]


async def test_shares_of_what_was_used_add_up_to_the_whole() -> None:
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 71,
        "prompt_tokens_details": {"cached_tokens": 640},
    }
    said = verdicts(member("c1", evidence=[1, 77]), member("c2"), member("c3", evidence=[88]))
    async with LlmServer(Reply(f"So: {said}", usage=usage)) as server:  # told at the end, all of them
        reply = await judge(server, request("One.", "Two.", "Three."))
    shares = [j.usage for j in reply.judgements if j.usage is not None]
    assert len(shares) == 3
    for name in Usage.model_fields:
        assert sum(getattr(share, name) for share in shares) == getattr(reply.usage, name)
    assert [share.dropped_quotes for share in shares] == [1, 0, 1]
    assert [share.output_tokens for share in shares] == [23, 24, 24]


def test_costs_are_shared_too() -> None:
    shares = split(Usage(cost_usd=0.1, judge_calls=2), 3)
    assert sum(share.cost_usd for share in shares) == pytest.approx(0.1)
    assert [share.judge_calls for share in shares] == [0, 1, 1]
    assert split(Usage(judge_calls=1), 0) == []


async def test_a_claim_is_taken_apart_and_its_verdict_is_that_of_its_parts() -> None:
    def apart(call: Recorded) -> str:
        pattern = call.body["response_format"]["json_schema"]["schema"]["properties"]["v"]["items"]["pattern"]
        marker = call.system.split()[-1]
        said = [
            f"c1a 1 supported: The basic plan costs $50. {marker}",
            f"c1b unsupported: The basic plan has \ud800 a trial. {marker}",
            "c1 1 supported",
            "c2 2 supported",
        ]
        assert all(re.fullmatch(pattern, text) for text in said)
        return verdicts(*said)

    async with LlmServer(Reply(apart)) as server:
        reply = await judge(server, request("It costs $50 and has a trial.", "B."), decompose=True)
    first, second = reply.judgements
    assert first.verdict is Verdict.PARTIALLY_SUPPORTED
    assert [(part.text, part.verdict) for part in first.parts] == [
        ("The basic plan costs $50. …", Verdict.SUPPORTED),
        ("The basic plan has ? a trial. …", Verdict.UNSUPPORTED),
    ]
    assert first.reasoning == "Of its parts, UNSUPPORTED: The basic plan has ? a trial. …"
    assert (second.verdict, second.parts) == (Verdict.SUPPORTED, ())
