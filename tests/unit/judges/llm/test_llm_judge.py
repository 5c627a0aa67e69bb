"""The LLM judge against a server on a real socket: good replies and bad ones, a server in trouble, verdicts
that are announced while the reply is written, and second looks at long contexts.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import tracemalloc
from contextlib import suppress

import pytest

from guardrail import Guard
from guardrail.errors import ConfigError, JudgeError, JudgeUnavailable
from guardrail.events import Context, Decision
from guardrail.judges import Judgement, Usage, Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.llm.judge import split
from guardrail.judges.spending import ModelPrice, PriceTable
from guardrail.policy import Policy
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Behaviour,
    Cut,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    Wire,
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


# ----------------------------------------------------------------------- replies that are still being written

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


# --------------------------------------------------------------------------- contexts that are not sent whole

FILLER = " ".join(f"Item {number} of the minutes was read and nothing came of it." for number in range(400))
FACT = "The premium tariff costs 73 euros."
DECOYS = [f"The tariff for clubs of {number} members costs euros too." for number in range(8)]
ELSEWHERE = "Ninety a head is what associations owe from May on, in euros."
BETWEEN = ". ".join(FILLER.split(". ")[:20]) + "."
LONG = " ".join([f"{FILLER} {FACT}", *(f"{BETWEEN} {decoy}" for decoy in DECOYS), BETWEEN, ELSEWHERE, FILLER])
CLAIM = "Premium is 73 euros."
OTHER_WORDS = "The tariff for clubs costs 90 euros."
"""What ``ELSEWHERE`` says; the decoys have more of its words."""


UNSUPPORTED = Reply(verdicts(member("c1", "UNSUPPORTED")))
FOUND = Reply(verdicts(member("c1", evidence=[1])))


def by_what_is_shown(call: Recorded) -> str:
    """SUPPORTED with the sentence's number if what backs the claim is shown, else UNSUPPORTED."""
    found = {
        words: int(shown[1])
        for words in (FACT, ELSEWHERE)
        if (shown := re.search(rf"\[(\d+)\] {re.escape(words)}", call.user))
    }
    said = []
    for label in call.asked:
        asked = call.user.split(f"claim {label}]\n")[1].split("\n")[0]
        number = found.get(FACT if asked == CLAIM else ELSEWHERE)
        said.append(member(label, "UNSUPPORTED") if number is None else member(label, evidence=[number]))
    return verdicts(*said)


def chars(call: Recorded) -> int:
    return len(call.user)


async def test_contexts_that_are_not_long_are_sent_whole() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG[:20_000]]))
    assert len(server.calls) == 1
    assert chars(server.calls[0]) > 20_000
    assert "excerpts" not in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_support_is_judged_by_them() -> None:
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, contexts=[LONG]), whole_context_chars=0)
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED]
    assert len(server.calls) == 1
    assert chars(server.calls[0]) < 8_000
    assert "excerpts" in reply.judgements[0].reasoning


async def test_a_claim_that_its_passages_lack_is_judged_again_by_more() -> None:
    early: list[tuple[str, Verdict, int]] = []
    asked = request(CLAIM, OTHER_WORDS, contexts=[LONG])
    async with LlmServer(Reply(by_what_is_shown)) as server:
        reply = await judge(
            server,
            asked,
            lambda told: early.append((told.claim_id, told.verdict, len(server.calls))),
            whole_context_chars=0,
        )
    assert {told.claim_id: told.verdict for told in reply.judgements} == {
        "k0": Verdict.SUPPORTED,
        "k1": Verdict.SUPPORTED,
    }
    first, second = server.calls
    assert first.asked == ["c1", "c2"]
    assert second.asked == ["c2"]
    assert ELSEWHERE not in first.user
    assert ELSEWHERE in second.user
    assert chars(second) < len(LONG) / 2
    assert early[0] == ("k0", Verdict.SUPPORTED, 1)  # not held back by the other's second look
    assert asked.meter.usage.judge_calls == 2


@pytest.mark.parametrize(
    ("looks", "contexts", "verdict", "calls", "told"),
    [
        # The second look confirms it, or finds what seemed a contradiction; if it fails, the first stands.
        ((UNSUPPORTED,), [LONG], "UNSUPPORTED", 2, True),
        ((Reply(verdicts(member("c1", "CONTRADICTED", evidence=[1]))), FOUND), [LONG], "SUPPORTED", 2, True),
        ((UNSUPPORTED, Status(500)), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply("no verdicts here")), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply(verdicts())), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Reply(verdicts(member("c1", "MAYBE")))), [LONG], "UNSUPPORTED", 2, True),
        ((UNSUPPORTED, Hang()), [LONG], "UNSUPPORTED", 2, True),
        # Short contexts are seen whole also as passages.
        ((UNSUPPORTED,), [FACT], "UNSUPPORTED", 1, False),
    ],
)
async def test_what_becomes_of_a_second_look(
    looks: tuple[Behaviour, ...], contexts: list[str], verdict: str, calls: int, *, told: bool
) -> None:
    asked = request(CLAIM, contexts=contexts, seconds=3.0)
    async with LlmServer(*looks) as server:
        reply = await judge(server, asked, whole_context_chars=0, max_retries=0)
    (judgement,) = reply.judgements
    assert judgement.verdict == verdict
    assert ("excerpts" in judgement.reasoning) is told
    assert len(server.calls) == calls


async def test_claims_left_out_are_asked_for_with_those_that_need_a_second_look() -> None:
    async with LlmServer(UNSUPPORTED, Reply(by_what_is_shown)) as server:
        reply = await judge(server, request(CLAIM, OTHER_WORDS, contexts=[LONG]), whole_context_chars=0)
    assert server.calls[1].asked == ["c1", "c2"]
    assert [judgement.verdict for judgement in reply.judgements] == [Verdict.SUPPORTED] * 2


async def test_contexts_beyond_the_bound_get_a_second_look_at_more_of_them() -> None:
    async with LlmServer(UNSUPPORTED) as server:
        asked = request("The minutes of the item were read.", contexts=[LONG])
        await judge(server, asked, whole_context_chars=1_000_000, max_context_chars=20_000)
    first, second = server.calls
    assert chars(first) < chars(second) < 25_000
