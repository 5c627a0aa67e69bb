"""Whether a judge would judge its own model's answer, and what is done about it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict
from guardrail.judges.streams import SelfJudged, SelfJudgingGuard, SelfJudgingSettings, same_model
from tests.support.judges import reply_of
from tests.unit.judges import doubles

REFUSE = SelfJudgingSettings(policy="refuse")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("openai/GPT-4o ", "gpt-4o", True),
        ("openrouter/openai/gpt-4o", "azure/gpt-4o", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-2024-08-06", "gpt-4o", False),
        ("qwen3:8b", "qwen3:14b", False),
        ("openai", "openai/gpt-4o", False),
        (None, "gpt-4o", False),
        ("", "", False),
        ("x/", "y/", False),
    ],
)
def test_names_are_the_same_but_for_case_and_provider(one: str | None, other: str, same: bool) -> None:
    assert same_model(one, other) is same


class Answering:
    """Stands in for an LLM judge: all claims SUPPORTED by the given models."""

    def __init__(self, *models: str) -> None:
        self.models = models
        self.asked: list[JudgeRequest] = []

    @property
    def name(self) -> str:
        return f"llm:{self.models[0]}"

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.asked.append(request)
        request.meter.add(Usage(judge_calls=1, output_tokens=5))
        for claim_id, model in zip(request.claims, self.models * len(request.claims), strict=False):
            yield Judgement(claim_id, Verdict.SUPPORTED, 0.9, 0.9, f"llm:{model}")

    async def aclose(self) -> None:
        """Nothing is held."""


def request(generator: str | None, claims: int = 1) -> JudgeRequest:
    return replace(doubles.request(*["A claim."] * claims), generator_model=generator)


@pytest.mark.parametrize("generator", ["gpt-4o", None])
async def test_another_model_is_asked_as_ever(
    generator: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    judge = Answering("gpt-4o-mini")
    asked = request(generator, claims=3)
    judgements = [each async for each in SelfJudgingGuard(judge, "gpt-4o-mini", REFUSE).judge(asked)]
    assert [each.verdict for each in judgements] == [Verdict.SUPPORTED] * 3
    assert judge.asked == [asked]
    assert not caplog.records


async def test_warn_judges_all_the_same_and_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    guard = SelfJudgingGuard(Answering("gpt-4o"), "gpt-4o", SelfJudgingSettings())
    with caplog.at_level(logging.WARNING):
        for generator in ("forged=line\n/gpt-4o", "openai/gpt-4o"):
            assert (await reply_of(guard, request(generator))).judgements
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith("judge.self_judging generator_model=")
    assert "\n" not in message


async def test_refuse_asks_nobody() -> None:
    judge = Answering("gpt-4o")
    asked = request("openai/gpt-4o")
    with pytest.raises(SelfJudged, match="not asked: its model wrote the answer"):
        await reply_of(SelfJudgingGuard(judge, "gpt-4o", REFUSE), asked)
    assert (judge.asked, asked.meter.attempts) == ([], 0)


async def test_a_fallback_that_wrote_the_answer_is_not_believed() -> None:
    guard = SelfJudgingGuard(Answering("a-1b", "gpt-4o"), "a-1b", REFUSE)
    reply = await reply_of(guard, request("gpt-4o", claims=2))
    assert [j.judge for j in reply.judgements] == ["llm:a-1b"]


async def test_where_only_such_a_fallback_answered_its_usage_is_not_lost() -> None:
    asked = request("gpt-4o")
    with pytest.raises(SelfJudged, match="the only model that answered"):
        await reply_of(SelfJudgingGuard(Answering("gpt-4o"), "a-1b", REFUSE), asked)
    assert asked.meter.usage == Usage(judge_calls=1, output_tokens=5)
