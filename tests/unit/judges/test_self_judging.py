"""Whether a judge would judge its own model's answer, and what is done about it."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError

from guardrail.claims import Claim
from guardrail.errors import JudgeUnavailable
from guardrail.events import Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict
from guardrail.judges.self_judging import ModelIdentity, SelfJudged, SelfJudgingGuard, SelfJudgingSettings
from tests.support.judges import reply_of

SAME = """
gpt-4o                               | gpt-4o
gpt-4o                               | GPT-4o
gpt-4o                               | gpt-4o-2024-08-06
gpt-4o-2024-05-13                    | gpt-4o-2024-11-20
openai/gpt-4o                        | gpt-4o
azure/gpt-4o                         | openai/gpt-4o-2024-08-06
openrouter/openai/gpt-4o             | gpt-4o
openai/gpt-4o:free                   | gpt-4o
chatgpt-4o-latest                    | gpt-4o
azure/gpt-35-turbo                   | gpt-3.5-turbo-0125
gpt-4-0613                           | gpt-4
gpt-4-1106-preview                   | gpt-4-turbo-2024-04-09
gpt-4.1-mini-2025-04-14              | openai/gpt-4.1-mini
o3-mini-2025-01-31                   | o3-mini
claude-3-5-sonnet-20241022           | claude-3-5-sonnet-latest
anthropic/claude-3.5-sonnet          | claude-3-5-sonnet-20240620
claude-3-5-sonnet@20241022           | claude-3-5-sonnet-20241022
us.anthropic.claude-3-5-haiku-20241022-v1:0 | claude-3-5-haiku-latest
bedrock/anthropic.claude-3-haiku-20240307-v1:0 | claude-3-haiku
models/gemini-1.5-pro                | gemini-1.5-pro-002
vertex_ai/gemini-2.0-flash-001       | google/gemini-2.0-flash
gemini-2.5-pro-preview-05-06         | gemini-2.5-pro
gemini-2.5-flash-preview-09-2025     | gemini-2.5-flash
mistral/mistral-large-2411           | mistral-large-latest
xai/grok-2-1212                      | grok-2
cohere/command-r-08-2024             | command-r
llama3.1:8b                          | llama3.1:8b
llama3.1:latest                      | llama3.1
qwen3:8b                             | Qwen/Qwen3-8B
Qwen/Qwen3-8B-AWQ                    | qwen3:8b-q4_K_M
/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf | Qwen/Qwen2.5-7B-Instruct
unsloth/Llama-3.1-8B-Instruct-bnb-4bit | meta-llama/Llama-3.1-8B-Instruct
deepseek-ai/DeepSeek-V3-0324         | deepseek/deepseek-v3
our-deployment                       | gpt-4o
gateway/our-deployment               | openai/gpt-4o-2024-08-06
OUR-DEPLOYMENT                       | our-other-name
"""

DIFFERENT = """
gpt-4o                               | gpt-4o-mini
gpt-4o-2024-08-06                    | gpt-4o-mini-2024-07-18
gpt-4                                | gpt-4o
gpt-4                                | gpt-4-turbo
gpt-4                                | gpt-4.1
gpt-4.1                              | gpt-4.1-mini
gpt-4.1-mini                         | gpt-4.1-nano
gpt-3.5-turbo                        | gpt-3.5-turbo-instruct
o1                                   | o1-mini
o1                                   | o1-preview
o1                                   | o3
gpt-5                                | gpt-5-mini
claude-3-5-sonnet-20241022           | claude-3-5-haiku-20241022
claude-3-sonnet                      | claude-3-5-sonnet
claude-3-opus@20240229               | claude-3-5-sonnet@20241022
gemini-1.5-pro                       | gemini-1.5-flash
gemini-1.5-pro-002                   | gemini-2.5-pro
gemini-2.0-flash                     | gemini-2.0-flash-lite
qwen3:8b                             | qwen3:14b
qwen2.5:1.5b                         | qwen2.5:15b
Qwen/Qwen3-8B                        | Qwen/Qwen2.5-8B
llama3.1:8b                          | llama3.1:70b
meta-llama/Llama-3.1-8B-Instruct     | meta-llama/Llama-3.2-8B-Instruct
mistral-large-2411                   | mistral-small-2411
deepseek-v3                          | deepseek-r1
deepseek-v3                          | deepseek-v2
openai/gpt-oss-20b                   | openai/gpt-oss-120b
grok-2                               | grok-3
command-r                            | command-r-plus
our-deployment                       | gpt-4o-mini
openai                               | gpt-4o
-                                    | gpt-4o
"""

ALIASES = {"our-deployment": "gpt-4o", "our-other-name": "our-deployment", "a-circle": "a-circle-2"} | {
    "a-circle-2": "a-circle"
}


def pairs(table: str) -> list[tuple[str, str]]:
    lines = [line.split("|") for line in table.strip().splitlines()]
    return [(one.strip(), other.strip()) for one, other in lines]


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
def test_these_are_one_model(one: str, other: str) -> None:
    identity = ModelIdentity(ALIASES)
    assert identity.same(one, other)
    assert identity.same(other, one)


@pytest.mark.parametrize(("one", "other"), pairs(DIFFERENT))
def test_these_are_two_models(one: str, other: str) -> None:
    identity = ModelIdentity(ALIASES)
    assert not identity.same(one, other)
    assert not identity.same(other, one)


@pytest.mark.parametrize("name", [None, "", " ", "///", "::", "-" * 100_000, "2024-08-06", "\x00"])
def test_a_name_that_says_nothing_is_no_model(name: str | None) -> None:
    identity = ModelIdentity()
    assert not identity.same(name, name) or name == "2024-08-06"
    assert not identity.same(name, "gpt-4o")


def test_aliases_in_a_circle_come_to_an_end() -> None:
    assert not ModelIdentity(ALIASES).same("a-circle", "gpt-4o")


class Answering:
    """Stands in for an LLM judge: all claims SUPPORTED by the given models."""

    def __init__(self, *models: str) -> None:
        self.models = models
        self.asked = 0
        self.closed = False

    @property
    def name(self) -> str:
        return f"llm:{self.models[0]}"

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.asked += 1
        request.meter.add(Usage(judge_calls=1, output_tokens=5))
        for claim_id, model in zip(request.claims, self.models * len(request.claims), strict=False):
            yield Judgement(claim_id, Verdict.SUPPORTED, 0.9, 0.9, f"llm:{model}")

    async def aclose(self) -> None:
        self.closed = True


def request(generator: str | None, claims: int = 1) -> JudgeRequest:
    return JudgeRequest(
        "r",
        "?",
        {f"k{n}": Claim(n, n, f"Claim {n}.", 0, 8, Severity.NORMAL) for n in range(claims)},
        EvidenceIndex([]),
        time.monotonic() + 60,
        generator_model=generator,
    )


async def test_another_model_is_asked_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    judge = Answering("gpt-4o-mini")
    guard = SelfJudgingGuard(judge, "gpt-4o-mini", SelfJudgingSettings(policy="refuse"))
    for generator in ("gpt-4o", None):
        assert (await reply_of(guard, request(generator))).judgements[0].verdict is Verdict.SUPPORTED
    assert judge.asked == 2
    assert not caplog.records


async def test_warn_judges_all_the_same_and_warns_once_for_each_pair(
    caplog: pytest.LogCaptureFixture,
) -> None:
    guard = SelfJudgingGuard(Answering("gpt-4o"), "gpt-4o", SelfJudgingSettings())
    with caplog.at_level(logging.WARNING):
        for generator in ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "azure/gpt-4o\nforged=line"):
            await reply_of(guard, request(generator))
        assert (await reply_of(guard, request("openai/gpt-4o"))).judgements
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert not any("\n" in message for message in messages)


async def test_refuse_asks_nobody() -> None:
    judge = Answering("gpt-4o")
    guard = SelfJudgingGuard(judge, "gpt-4o", SelfJudgingSettings(policy="refuse"))
    asked = request("openai/gpt-4o-2024-08-06")
    with pytest.raises(SelfJudged, match="wrote the answer"):
        await reply_of(guard, asked)
    assert (judge.asked, asked.meter.attempts) == (0, 0)


async def test_the_alternative_answers_in_its_stead_and_is_closed_too() -> None:
    judge, other = Answering("gpt-4o"), Answering("claude-3-5-haiku")
    guard = SelfJudgingGuard(
        judge,
        "gpt-4o",
        SelfJudgingSettings(policy="alternative", alternative={"model": "claude-3-5-haiku"}),
        alternative=(other, "claude-3-5-haiku"),
    )
    reply = await reply_of(guard, request("gpt-4o"))
    assert (reply.judgements[0].judge, judge.asked) == ("llm:claude-3-5-haiku", 0)
    assert (await reply_of(guard, request("claude-3-5-haiku"))).judgements[0].judge == "llm:gpt-4o"
    await guard.aclose()
    assert (judge.closed, other.closed) == (True, True)


async def test_an_alternative_that_fails_is_named_in_the_verdict_and_so_is_who_was_not_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Answering):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            request.meter.add(Usage(judge_calls=3, input_tokens=70))
            if request.claims:
                raise JudgeUnavailable("the server answered 500")
            async for each in super().judge(request):
                yield each

    judge, other = Answering("gpt-4o"), Failing("claude-3-5-haiku")
    guard = SelfJudgingGuard(
        judge,
        "gpt-4o",
        SelfJudgingSettings(policy="alternative", alternative={"model": "claude-3-5-haiku"}),
        alternative=(other, "claude-3-5-haiku"),
    )
    reply = await reply_of(guard, request("gpt-4o", claims=2))
    assert judge.asked == 0
    assert reply.usage == Usage(judge_calls=3, input_tokens=70)
    assert [judgement.claim_id for judgement in reply.judgements] == ["k0", "k1"]
    for judgement in reply.judgements:
        assert (judgement.verdict, judgement.judge) == (Verdict.UNVERIFIED, "llm:claude-3-5-haiku")
        assert (judgement.attempts, judgement.reasoning) == (3, "JudgeUnavailable: the server answered 500")
        assert judgement.degraded_from == ("llm:gpt-4o: not asked: its model wrote the answer",)
    assert "judge.failed judge='llm:claude-3-5-haiku'" in caplog.text


async def test_an_alternative_that_is_the_generator_as_well_is_not_asked() -> None:
    judge, other = Answering("gpt-4o"), Answering("gpt-4o-2024-08-06")
    guard = SelfJudgingGuard(
        judge,
        "gpt-4o",
        SelfJudgingSettings(policy="alternative", alternative={"model": "gpt-4o-2024-08-06"}),
        alternative=(other, "gpt-4o-2024-08-06"),
    )
    with pytest.raises(SelfJudged):
        await reply_of(guard, request("gpt-4o"))
    assert judge.asked == other.asked == 0


async def test_a_fallback_model_that_wrote_the_answer_is_not_believed() -> None:
    guard = SelfJudgingGuard(Answering("a-1b", "gpt-4o"), "a-1b", SelfJudgingSettings(policy="refuse"))
    reply = await reply_of(guard, request("gpt-4o", claims=2))
    assert [j.judge for j in reply.judgements] == ["llm:a-1b"]


async def test_where_only_such_a_fallback_answered_its_usage_is_not_lost() -> None:
    guard = SelfJudgingGuard(Answering("gpt-4o"), "a-1b", SelfJudgingSettings(policy="refuse"))
    asked = request("gpt-4o")
    with pytest.raises(SelfJudged):
        await reply_of(guard, asked)
    assert asked.meter.usage == Usage(judge_calls=1, output_tokens=5)


async def test_the_same_request_is_passed_on() -> None:
    asked: list[JudgeRequest] = []

    class Noting(Answering):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            asked.append(request)
            async for each in super().judge(request):
                yield each

    sent = request("gpt-4o", claims=3)
    async for _ in SelfJudgingGuard(Noting("m"), "m", SelfJudgingSettings()).judge(sent):
        pass
    assert asked == [sent]


def test_an_alternative_must_name_its_model() -> None:
    with pytest.raises(ValidationError, match="add model: NAME"):
        SelfJudgingSettings(policy="alternative", alternative={"max_output_tokens": 100})
    with pytest.raises(ValidationError, match="alternative needs the settings"):
        SelfJudgingSettings(policy="alternative")
