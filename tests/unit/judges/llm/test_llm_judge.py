"""The LLM judge against a server on a real socket: what it makes of good replies and bad ones."""

from __future__ import annotations

import json

import openai
import pytest

from guardrail.errors import ConfigError
from guardrail.events import Context
from guardrail.judges import Judge, Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.llm.verdicts import support_of
from tests.support.judges import reply_of
from tests.support.llm_server import Act, LlmServer, Recorded, Reply, Status, member, obliging, verdicts
from tests.unit.judges.llm.asking import claim, judge, request, settings

PRICE = 1  # the number of the sentence that has it


async def test_a_verdict_with_its_evidence() -> None:
    async with LlmServer(Reply(verdicts(member("c1", evidence=[PRICE], confidence=0.8)))) as server:
        (judgement,) = (await judge(server)).judgements
    assert (judgement.claim_id, judgement.verdict, judgement.judge) == ("k0", Verdict.SUPPORTED, "llm:test")
    assert (judgement.confidence, judgement.support) == (0.8, 0.9)
    (evidence,) = judgement.evidence
    assert (evidence.context_id, evidence.quote, evidence.span) == (
        "doc-0",
        "The basic plan costs $50 a month.",
        (0, 33),
    )


async def test_it_is_a_judge_and_keeps_a_client_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LlmServer() as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="theirs")
        judging = LlmJudge(settings(), client)
        assert isinstance(judging, Judge)
        assert len((await reply_of(judging, request())).judgements) == 1
        await judging.aclose()
        assert not client.is_closed()
        await client.close()
    assert server.calls[0].headers["authorization"] == "Bearer theirs"


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


@pytest.mark.parametrize(
    ("verdict", "confidence", "support"),
    [
        ("SUPPORTED", 1.0, 1.0),
        ("SUPPORTED", 0.0, 0.5),
        ("PARTIALLY_SUPPORTED", 1.0, 0.4),
        ("UNSUPPORTED", 1.0, 0.1),
        ("UNSUPPORTED", 0.5, 0.3),
        ("CONTRADICTED", 1.0, 0.0),
        ("CONTRADICTED", 0.0, 0.5),
    ],
)
def test_support_comes_from_verdict_and_confidence(verdict: str, confidence: float, support: float) -> None:
    assert support_of(Verdict(verdict), confidence) == support


async def test_contexts_that_contradict_a_supported_claim_are_named() -> None:
    said = member("c1", evidence=[PRICE], against=[2, 2, 7, "doc-0"])
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


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "System role not supported"),  # Gemma's chat template
        (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "Developer instruction is not enabled for models/gemma"),
    ],
)
async def test_a_model_that_refuses_the_system_role_gets_one_message_from_then_on(
    status: int, message: str
) -> None:
    def choosy(call: Recorded) -> Act:
        known = [each["role"] for each in call.body["messages"]] == ["user"]
        return Reply(obliging) if known else Status(status, {"message": message})

    async with LlmServer(choosy) as server:
        judging = LlmJudge(settings(server, max_retries=0))
        for _ in range(2):
            (judgement,) = (await reply_of(judging, request())).judgements
            assert judgement.verdict is not Verdict.UNVERIFIED
        await judging.aclose()
    assert [len(call.body["messages"]) for call in server.calls] == [2, 1, 1]
    assert server.calls[1].body["messages"][0]["content"].startswith("You check whether")


async def test_any_language_arrives_as_it_is() -> None:
    text = "该计划每月费用为50美元。योजना की लागत 50 डॉलर है। 𝄞"
    async with LlmServer() as server:
        await judge(server, request(claim(text), contexts=[Context(id="a", text=text)], question=text))
    shown = server.calls[0].user.replace("\n[2] ", "").replace("\n[3] ", " ")
    assert shown.count(text) == 3
    assert json.dumps(server.calls[0].body)
