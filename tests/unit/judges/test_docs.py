"""What the pages of docs/ about judges say is so: names of settings, numbers, tables, examples.

That their settings load, tests/unit/test_code_blocks.py shows.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from guardrail.calls import RETRIES, AdaptiveLimit, CircuitBreaker
from guardrail.calls.caller import MAX_QUEUE
from guardrail.engine.judging import LAST_HELD_S
from guardrail.errors import JudgeUnavailable
from guardrail.judges import Verdict
from guardrail.judges.base import support_of
from guardrail.judges.cascade import DEFAULT_BANDS, CascadeSettings
from guardrail.judges.factory import build_judge
from guardrail.judges.http import HttpJudgeSettings
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.llm.chat import Chat
from guardrail.judges.model import PRESETS, ClassifierSettings, ServerSettings
from guardrail.judges.own import HttpJudge
from guardrail.judges.redis_cache import TIMEOUT_MS
from guardrail.judges.settings import JudgeSettings
from tests.support.docs import printed_with
from tests.support.judges import reply_of
from tests.support.llm_server import LlmServer, Reply, member, verdicts
from tests.unit.judges.endpoint_server import EndpointServer, http
from tests.unit.judges.llm.test_connection import answered
from tests.unit.judges.model.asking import claim, request

DOCS = Path(__file__).parents[3] / "docs"
UNPATCHED_WAITS = (RETRIES.first_s, RETRIES.longest_s)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page(name), re.DOTALL)


LLM, ROBUSTNESS, CASCADE, OTHERS = "llm-judge.md", "llm-robustness.md", "cascade.md", "other-judges.md"


@pytest.mark.parametrize(
    ("name", "models", "outside"),
    [
        (
            LLM,
            (LlmJudgeSettings,),
            "claim_timeout_ms max_wait_ms on_unverified self_judging response_format json_schema "
            "max_completion_tokens max_tokens cached_input_tokens dropped_quotes",
        ),
        (
            ROBUSTNESS,
            (LlmJudgeSettings,),
            "claim_timeout_ms degraded_from on_unverified insufficient_quota judge_refused",
        ),
        (
            OTHERS,
            (ClassifierSettings, ServerSettings, HttpJudgeSettings),
            "unsupported_spans lead_in deadline_ms model_max_length max_position_embeddings input_ids "
            "attention_mask token_type_ids raw_scores",
        ),
    ],
)
def test_every_name_in_backticks_that_looks_like_a_setting_is_one(
    name: str, models: tuple[type[BaseModel], ...], outside: str
) -> None:
    named = set(re.findall(r"`(?:usage\.)?([a-z]+(?:_[a-z]+)+)`", page(name))) - set(outside.split())
    assert named
    assert named <= {field for model in models for field in model.model_fields}


def test_the_mapping_to_support_is_the_one_described() -> None:
    described = {"SUPPORTED": 0.5, "PARTIALLY_SUPPORTED": -0.1, "UNSUPPORTED": -0.4, "CONTRADICTED": -0.5}
    words = " ".join(page(LLM).split())
    for name, swing in described.items():
        assert f"{swing} for {name}" in words
        for confidence in (0.0, 0.3, 1.0):
            assert support_of(Verdict(name), confidence) == pytest.approx(0.5 + swing * confidence)


def test_the_numbers_are_those_of_the_code() -> None:
    numbers = [
        CircuitBreaker.window_s,
        CircuitBreaker.min_calls,
        CircuitBreaker.failure_rate,
        CircuitBreaker.hangs,
        CircuitBreaker.open_s,
        CircuitBreaker.probes,
        AdaptiveLimit.decrease,
        AdaptiveLimit.latency_tolerance,
        MAX_QUEUE,
        LlmJudgeSettings.stall_s,
        LlmJudgeSettings.first_token_share,
        LlmJudgeSettings.max_retries,
        *UNPATCHED_WAITS,
        Chat.reserve,
    ]
    table = page(ROBUSTNESS).partition("## The numbers")[2]
    told = re.findall(r"\| ([\d.,]+)(?: s)? \|$", table, re.MULTILINE)
    assert [float(number.replace(",", "")) for number in told] == numbers


STATUSES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in page(ROBUSTNESS).splitlines()
    if re.match(r"\| \d.*\| (yes|no)", line)
]


@pytest.mark.parametrize("row", STATUSES, ids=lambda row: row[0])
def test_the_table_of_statuses_is_what_is_done(row: list[str]) -> None:
    code = "insufficient_quota" if "quota" in row[0] else None
    for status in re.findall(r"\d{3}", row[0]):
        failure = answered(int(status), code)
        done = ["yes" if flag else "no" for flag in (failure.retry, failure.fault, failure.overload)]
        assert done == row[1:]
        assert isinstance(failure.error, JudgeUnavailable) is (failure.retry or code is not None)


def test_the_table_has_the_default_bands() -> None:
    rows = dict(re.findall(r"^\| (minor|normal|major|critical) (\| [0-9.]+) \|", page(CASCADE), re.MULTILINE))
    assert rows == {severity.value: f"| {band.accept_support}" for severity, band in DEFAULT_BANDS.items()}


def test_the_defaults_that_it_names_are_the_defaults() -> None:
    text = page(CASCADE)
    assert f"has waited for `judge.max_wait_ms` ({CascadeSettings.max_wait_ms:,})" in text
    assert f"longer than {TIMEOUT_MS} ms" in text
    assert f"last verdict waits {LAST_HELD_S * 1000:.0f} ms" in text
    assert JudgeSettings().self_judging.policy == "warn"


async def test_the_example_in_python_asks_the_model_for_what_the_local_judge_can_not_settle(
    tmp_path: Path,
) -> None:
    (tmp_path / "guardrail.yaml").write_text(blocks(CASCADE, "yaml")[0], encoding="utf-8")
    [code] = blocks(CASCADE, "python")
    quoting = Reply(lambda call: verdicts(*(member(label, evidence=[2]) for label in call.asked)))
    async with LlmServer(quoting) as server:
        printed = (await printed_with(server, code, tmp_path)).splitlines()
    assert [line.split()[1:] for line in printed[1:-1]] == [["llm:gpt-4.1-mini", "()"]]
    assert printed[-1] == "1 1"
    assert len(server.calls) == 1


async def test_the_python_judge_runs_as_a_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module,) = blocks(OTHERS, "python")
    (tmp_path / "checker").mkdir()
    (tmp_path / "checker" / "judge.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    given = (JudgeSettings.model_validate(yaml.safe_load(each)["judge"]) for each in blocks(OTHERS, "yaml"))
    (settings,) = (each for each in given if each.kind == "custom")
    judge = build_judge(settings)
    reply = await reply_of(judge, request(["The sky is blue.", "It is red."], ["The sky is blue. So it is."]))
    await judge.aclose()
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert [e.quote for e in reply.judgements[0].evidence] == ["The sky is blue."]


async def test_the_endpoint_is_asked_and_may_answer_as_the_page_shows() -> None:
    shown, given = blocks(OTHERS, "json")
    async with EndpointServer(lambda _: http(given.encode())) as server:
        judge = HttpJudge(HttpJudgeSettings(url=server.url))
        asked = request([], ["The basic plan costs $49 a month."])
        asked = replace(asked, claims={"c1": claim("It costs $49.")})
        (judgement,) = (await reply_of(judge, asked)).judgements
        await judge.aclose()
    (sent,) = server.requests
    assert sent.keys() == json.loads(shown).keys()
    for name in ("contexts", "claims"):
        assert sent[name][0].keys() == json.loads(shown)[name][0].keys()
    assert (judgement.verdict, judgement.support) == (Verdict.SUPPORTED, 0.95)
    assert [e.quote for e in judgement.evidence] == ["costs $49 a month"]


def test_every_preset_is_named() -> None:
    assert all(name in page(OTHERS) for name in PRESETS)
