"""The LLM judge against a server on a real socket: what it makes of good replies and bad ones."""

from __future__ import annotations

import json

import openai
import pytest

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.events import Context
from guardrail.judges import Judge, Verdict
from guardrail.judges.llm import LlmJudge
from tests.support.judges import joined, reply_of
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


@pytest.mark.parametrize("contexts", [(), ("", " \n")])
async def test_without_contexts_nothing_is_supported_and_nothing_asked(contexts: tuple[str, ...]) -> None:
    async with LlmServer() as server:
        reply = await judge(server, request("One.", "Two.", contexts=contexts))
    assert server.calls == []
    assert [(j.claim_id, j.verdict, j.support) for j in reply.judgements] == [
        ("k0", Verdict.UNSUPPORTED, 0.0),
        ("k1", Verdict.UNSUPPORTED, 0.0),
    ]
    assert reply.usage.judge_calls == 0


async def test_all_claims_go_in_one_call_and_verdicts_are_joined_by_id() -> None:
    """The order of a reply means nothing."""
    swapped = verdicts(member("c3", "CONTRADICTED"), member("c1"), member("c2", "UNSUPPORTED"))
    async with LlmServer(Reply(swapped)) as server:
        reply = await judge(server, request("One.", "Two.", "Three."))
    assert len(server.calls) == 1
    assert server.calls[0].asked == ["c1", "c2", "c3"]
    assert {j.claim_id: j.verdict for j in reply.judgements} == {
        "k0": Verdict.SUPPORTED,
        "k1": Verdict.UNSUPPORTED,
        "k2": Verdict.CONTRADICTED,
    }


async def test_no_claims_no_call() -> None:
    async with LlmServer() as server:
        asked = request()
        asked.claims.clear()
        assert (await judge(server, asked)).judgements == ()
    assert server.calls == []


async def test_a_claim_that_is_missing_is_left_out_and_becomes_unverified() -> None:
    async with LlmServer(Reply(verdicts(member("c2")))) as server:
        asked = request("One.", "Two.")
        reply = await judge(server, asked)
    found = joined(asked, reply, "llm:test")
    assert found["k0"].verdict is Verdict.UNVERIFIED
    assert found["k0"].support is None
    assert found["k1"].verdict is Verdict.SUPPORTED


async def test_ids_that_were_not_asked_for_are_dropped() -> None:
    extra = verdicts(member("c1"), member("c2"), member("k0", "CONTRADICTED"), member(""))
    async with LlmServer(Reply(extra)) as server:
        reply = await judge(server)
    assert [j.claim_id for j in reply.judgements] == ["k0"]


async def test_of_two_verdicts_for_a_claim_neither_is_believed() -> None:
    twice = verdicts(member("c1"), member("c1", "CONTRADICTED"), member("c2"), member("c2"))
    async with LlmServer(Reply(f"So: {twice}")) as server:  # which nothing is believed of before its end
        asked = request("One.", "Two.")
        reply = await judge(server, asked)
    found = joined(asked, reply, "llm:test")
    assert found["k0"].verdict is Verdict.UNVERIFIED
    assert found["k1"].verdict is Verdict.SUPPORTED


async def test_a_wrong_verdict_spoils_its_claim_only() -> None:
    async with LlmServer(Reply(verdicts(member("c1", "MAYBE"), member("c2")))) as server:
        reply = await judge(server, request("One.", "Two."))
    first, second = reply.judgements
    assert (first.verdict, first.reasoning) == (
        Verdict.UNVERIFIED,
        "the judge's verdict 'MAYBE' is none of the four",
    )
    assert second.verdict is Verdict.SUPPORTED
    assert len(server.calls) == 1


async def test_a_reply_that_was_cut_off_by_its_length_keeps_what_was_complete() -> None:
    text = verdicts(member("c1", "CONTRADICTED"), member("c2"))
    async with LlmServer(Reply(text[:-30], finish_reason="length")) as server:
        reply = await judge(server, request("One.", "Two."))
    assert [(j.claim_id, j.verdict) for j in reply.judgements] == [
        ("k0", Verdict.CONTRADICTED),
        ("k1", Verdict.UNVERIFIED),
    ]
    assert reply.judgements[1].reasoning.startswith("left out of the first reply, and asked again")


async def test_sentences_that_were_not_shown_are_dropped_and_counted() -> None:
    numbers = [PRICE, 3, "the price"]
    async with LlmServer(Reply(verdicts(member("c1", evidence=numbers)))) as server:
        reply = await judge(server)
    assert [e.quote for e in reply.judgements[0].evidence] == ["The basic plan costs $50 a month."]
    assert reply.usage.dropped_quotes == 2


async def test_neighbouring_sentences_make_one_quote_that_is_verbatim() -> None:
    text = "It costs\n$50 a month.  Tax is included. Support is free."
    said = member("c1", evidence=[3, 2, "[1]", 1, 4, 5])
    async with LlmServer(Reply(verdicts(said))) as server:
        reply = await judge(server, request(contexts=[text, "Beta."]))
    first, second = reply.judgements[0].evidence
    assert (first.quote, first.span) == (text, (0, len(text)))
    assert (second.context_id, second.quote) == ("doc-1", "Beta.")
    assert reply.usage.dropped_quotes == 0


async def test_support_without_one_real_sentence_counts_half() -> None:
    async with LlmServer(Reply(verdicts(member("c1", evidence=[99], confidence=1.0)))) as server:
        (judgement,) = (await judge(server)).judgements
    assert (judgement.verdict, judgement.confidence, judgement.support) == (Verdict.SUPPORTED, 0.5, 0.75)
    assert judgement.reasoning == "No sentence that was named for it stands in the contexts."


async def test_support_without_one_real_sentence_can_be_refused() -> None:
    async with LlmServer(Reply(verdicts(member("c1"), member("c2", "UNSUPPORTED")))) as server:
        reply = await judge(server, request("One.", "Two."), require_quotes=True)
    assert [j.verdict for j in reply.judgements] == [Verdict.UNVERIFIED, Verdict.UNSUPPORTED]


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
async def test_support_comes_from_verdict_and_confidence(
    verdict: str, confidence: float, support: float
) -> None:
    said = member("c1", verdict, confidence=confidence, evidence=[PRICE])
    async with LlmServer(Reply(verdicts(said))) as server:
        (judgement,) = (await judge(server)).judgements
    assert judgement.support == support


async def test_contexts_that_contradict_a_supported_claim_are_named() -> None:
    said = member("c1", evidence=[PRICE], against=[2, 2, 7, "doc-0"])
    wrong = member("c2", "CONTRADICTED", against=[1])
    async with LlmServer(Reply(verdicts(said, wrong))) as server:
        reply = await judge(server, request("One.", "Two."))
    assert [j.conflicting_contexts for j in reply.judgements] == [("doc-1",), ()]


async def test_tokens_are_counted_and_cached_ones_apart() -> None:
    async with LlmServer() as server:
        usage = (await judge(server)).usage
    assert (usage.judge_calls, usage.input_tokens, usage.cached_input_tokens) == (1, 100, 64)
    assert usage.output_tokens == 20


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many", "completion_tokens": -1}])
async def test_a_server_that_counts_nothing_or_nonsense(usage: dict[str, object] | None) -> None:
    async with LlmServer(Reply(obliging, usage=usage)) as server:
        reply = await judge(server)
    assert (reply.usage.judge_calls, reply.usage.input_tokens, reply.usage.output_tokens) == (1, 0, 0)
    assert len(reply.judgements) == 1


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (Reply("I think all is well."), "no verdicts in JSON"),
        (Reply(verdicts(member("c9"))), "no verdict for any claim"),
        (Reply(""), "the reply is empty"),
        (Reply(None, finish_reason="length"), "raise judge.llm.max_output_tokens"),
        (Reply(None, choices=[]), "no choices"),
        (Reply(None, choices=[{"index": 0}]), "no choices"),
        (Reply(None, choices=["?"]), "no choices"),
        (Status(200, raw='{"id": "x"}'), "no choices"),
        (Status(200, raw='{"choices": ['), "not JSON"),
        (Status(200, raw="[]"), "no choices|no chat completion"),
        (Status(200, raw="<html>"), "not JSON"),
    ],
)
async def test_a_reply_that_can_not_be_used_is_asked_for_again_then_reported(
    behaviour: Reply | Status, message: str
) -> None:
    async with LlmServer(behaviour) as server:
        with pytest.raises(JudgeReplyError, match=message):
            await judge(server, max_retries=1)
    assert len(server.calls) == 2


async def test_a_page_that_is_no_api_is_named_as_such() -> None:
    page = Status(200, raw="<html>Welcome</html>", headers={"Content-Type": "text/html"})
    async with LlmServer(page) as server:
        with pytest.raises(JudgeReplyError, match=r"no chat completion; check judge.llm.base_url"):
            await judge(server, max_retries=0)


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (Reply(None, refusal="I can't help with hunter2."), "the model refused to judge"),
        (Reply("", finish_reason="content_filter"), "content filter"),
    ],
)
async def test_a_refusal_is_final(behaviour: Reply, message: str) -> None:
    async with LlmServer(behaviour) as server:
        with pytest.raises(JudgeReplyError, match=message) as caught:
            await judge(server, max_retries=3)
    assert len(server.calls) == 1
    assert "hunter2" not in str(caught.value)


async def test_a_bad_reply_followed_by_a_good_one_is_a_success() -> None:
    async with LlmServer(Reply("no"), Reply(obliging)) as server:
        reply = await judge(server)
    assert (len(reply.judgements), reply.usage.judge_calls, reply.usage.input_tokens) == (1, 2, 200)


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
