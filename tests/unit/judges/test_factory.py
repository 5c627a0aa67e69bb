"""Judges as the settings put them together: local model, budgets, cache and a real client over a socket."""

from __future__ import annotations

import builtins
import os
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import guardrail
from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.judges import Judge, JudgeRequest, Verdict
from guardrail.judges.cache import fingerprint
from guardrail.judges.cascade import Band
from guardrail.judges.factory import build_judge
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.local.combiner import Combiner, load_parameters
from guardrail.judges.local.judge import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import UsageLedger
from tests.support.constants import made
from tests.support.decisions_server import MODEL, DecisionsServer
from tests.support.judges import reply_of
from tests.support.llm_server import LlmServer, Recorded, Reply, member, obliging, verdicts
from tests.unit.judges.doubles import request

TRUE, FALSE, OPEN = (
    "The basic plan costs $50 a month.",
    "The basic plan costs $70 a month.",
    "Prices for smaller teams begin at about fifty dollars monthly.",
)
PRICE = {"input": 1.0, "output": 2.0}
BANDS = {
    "minor": made(Band, accept_support=0.5, reject_support=0.5),
    "normal": made(Band, accept_support=0.6, reject_support=0.2),
}


@pytest.fixture(autouse=True)
def fixed_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """By words TRUE is surely supported, FALSE surely not, and OPEN open, whatever is fitted some day."""
    packaged = load_parameters()
    weights = {"share": (4.0, 0.0, 0.0, 0.0), "figures_conflicting": (-10.0, 0.0, 0.0, 0.0)}
    words = packaged.words.model_copy(
        update={"combiner": Combiner(biases=(-1.8, -9.0, 0.0, -9.0), weights=weights)}
    )
    fixed = packaged.model_copy(update={"words": words})
    monkeypatch.setattr("guardrail.judges.local.check.load_parameters", lambda path: fixed)


def refuting(call: Recorded) -> str:
    return verdicts(*(member(label, "UNSUPPORTED") for label in call.asked))


def settings(server: LlmServer, kind: str, **changes: Any) -> JudgeSettings:
    llm = {"model": "judge-1b", "base_url": server.url} | changes.pop("llm", {})
    by_words = {"verifier": {"enabled": False}}
    return JudgeSettings.model_validate(
        {"kind": kind, "llm": llm, "local": by_words, "cascade": {"bands": BANDS}, **changes}
    )


async def once(judge: Judge, asked: JudgeRequest) -> list[tuple[Verdict, str, tuple[str, ...]]]:
    reply = await reply_of(judge, asked)
    return [(j.verdict, j.judge, j.degraded_from) for j in reply.judgements]


async def test_by_default_the_judge_is_the_local_one_alone() -> None:
    judge = build_judge(JudgeSettings())
    assert isinstance(judge, LocalJudge)
    await judge.aclose()


async def test_a_cascade_asks_the_model_for_the_open_claim_only_and_never_twice() -> None:
    ledger = UsageLedger()
    async with LlmServer(Reply(refuting)) as server:
        judge = build_judge(settings(server, "cascade", prices={"judge-1b": PRICE}), ledger=ledger)
        first = await reply_of(judge, request(TRUE, OPEN, FALSE, tenant="acme"))
        again = await reply_of(judge, request(OPEN, tenant="acme", response_id="r2"))
        await judge.aclose()
    assert [(j.verdict, j.judge) for j in first.judgements] == [
        (Verdict.SUPPORTED, "local"),
        (Verdict.UNSUPPORTED, "llm:judge-1b"),
        (Verdict.CONTRADICTED, "local"),
    ]
    assert [len(call.asked) for call in server.calls] == [1]
    assert [(j.verdict, j.attempts) for j in again.judgements] == [(Verdict.UNSUPPORTED, 0)]
    booked = ledger.total(tenant="acme", model="judge-1b")
    assert booked == first.usage
    assert booked.cost_usd == pytest.approx((booked.input_tokens + 2 * booked.output_tokens) / 1e6)
    assert booked.cost_usd > 0


async def test_a_used_up_budget_leaves_the_local_verdict_in_a_cascade_and_says_so() -> None:
    async with LlmServer(Reply(refuting)) as server:
        judge = build_judge(settings(server, "cascade", budgets={"per_minute": {"calls": 1}}))
        assert (await once(judge, request(OPEN)))[0][1] == "llm:judge-1b"
        (left,) = (await reply_of(judge, request(OPEN, question="Any other question?"))).judgements
        await judge.aclose()
    (why,) = left.degraded_from
    assert (left.judge, left.attempts) == ("local", 1)  # the model was not asked
    assert why.startswith("llm:judge-1b: budget per minute used up: 1 of 1 calls")
    assert len(server.calls) == 1


async def test_with_kind_llm_a_used_up_budget_is_answered_by_the_local_judge_and_not_remembered() -> None:
    async with LlmServer(Reply(obliging)) as server:
        judge = build_judge(settings(server, "llm", budgets={"per_minute": {"calls": 1}}))
        await once(judge, request(TRUE))
        for _ in range(2):
            ((verdict, name, (why,)),) = await once(judge, request(FALSE))
            assert (verdict, name) == (Verdict.CONTRADICTED, "local")
            assert why.startswith("llm:judge-1b: budget per minute")
        assert (await reply_of(judge, request(TRUE))).judgements[0].judge == "llm:judge-1b"  # remembered
        await judge.aclose()


async def test_with_kind_llm_it_can_be_unverified_instead() -> None:
    budgets = {"per_minute": {"tokens": 10}, "on_budget": "unverified"}
    async with LlmServer() as server:
        judge = build_judge(settings(server, "llm", budgets=budgets))
        with pytest.raises(JudgeUnavailable, match="budget per minute"):
            await reply_of(judge, request(TRUE))
        await judge.aclose()
    assert server.calls == []


async def test_a_budget_in_dollars_needs_the_price_of_every_model() -> None:
    async with LlmServer() as server:
        budgets = {"per_minute": {"usd": 0.01}}
        with pytest.raises(ConfigError, match=r"judge-1b.*judge\.prices"):
            build_judge(settings(server, "llm", budgets=budgets))
        llm = {"fallbacks": [{"model": "spare-3b"}]}
        with pytest.raises(ConfigError, match="spare-3b"):
            build_judge(settings(server, "llm", budgets=budgets, llm=llm, prices={"judge-1b": PRICE}))
        judge = build_judge(
            settings(server, "llm", budgets=budgets, prices={"judge-1b": {"input": 1e6, "output": 0}})
        )
        assert (await once(judge, request(TRUE)))[0][1] == "local"
        await judge.aclose()
    assert server.calls == []


@pytest.mark.parametrize(("kind", "asked"), [("cascade", 0), ("llm", 0)])
async def test_refused_self_judging_asks_nobody(kind: str, asked: int) -> None:
    async with LlmServer() as server:
        judge = build_judge(settings(server, kind, self_judging={"policy": "refuse"}))
        sent = replace(request(OPEN), generator_model="openrouter/some/judge-1b")
        if kind == "cascade":
            (left,) = (await reply_of(judge, sent)).judgements
            assert (left.judge, left.attempts) == ("local", 1)
            assert left.degraded_from == ("llm:judge-1b: not asked: its model wrote the answer",)
        else:
            with pytest.raises(JudgeUnavailable, match="wrote the answer"):
                await reply_of(judge, sent)
        await judge.aclose()
    assert len(server.calls) == asked


def deciding(server: DecisionsServer, **changes: Any) -> JudgeSettings:
    decisions = {"base_url": server.url, "model": "judge-1b", "transport": "logprobs", "fallback": "local"}
    by_words = {"verifier": {"enabled": False}}
    return JudgeSettings.model_validate(
        {"kind": "decisions", "decisions": decisions, "local": by_words, **changes}
    )


async def test_the_local_judge_answers_the_claim_on_which_a_decision_model_gives_none() -> None:
    async with DecisionsServer() as server:
        server.before = lambda _, __, body: (400, {}) if "fifty" in str(body["messages"][-1]) else None
        judge = build_judge(deciding(server))
        other = "People on the basic plan may write to support (contradicted)."
        found = {each.claim_id: each for each in (await reply_of(judge, request(other, OPEN))).judgements}
        await judge.aclose()
    assert (found["k0"].judge, found["k0"].degraded_from) == (f"decisions:{MODEL}", ())
    assert found["k0"].verdict is Verdict.CONTRADICTED
    assert found["k1"].judge == "local"
    assert found["k1"].verdict is not Verdict.UNVERIFIED
    (why,) = found["k1"].degraded_from
    assert why.startswith("decisions:judge-1b: ")
    assert "400" in why


async def test_the_fallback_answers_where_a_decision_model_wrote_the_answer() -> None:
    async with DecisionsServer() as server:
        judge = build_judge(deciding(server, self_judging={"policy": "refuse"}))
        sent = replace(request(TRUE, OPEN), generator_model="openai/judge-1b")
        found = (await reply_of(judge, sent)).judgements
        await judge.aclose()
        assert server.asked == []
    why = "decisions:judge-1b: not asked: its model wrote the answer"
    assert [(each.judge, each.degraded_from) for each in found] == [("local", (why,))] * 2


async def test_the_cache_can_be_switched_off() -> None:
    async with LlmServer() as server:
        judge = build_judge(settings(server, "llm", cache={"ttl_seconds": 0}))
        for _ in range(2):
            await reply_of(judge, request(TRUE))
        await judge.aclose()
    assert len(server.calls) == 2


async def test_redis_without_its_client_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "guardrail.judges.redis_cache", raising=False)
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "redis":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    async with LlmServer() as server:
        with pytest.raises(ConfigError, match=r"pip install '\.\[redis\]'"):
            build_judge(settings(server, "llm", cache={"redis_url": "redis://localhost"}))


class TestFingerprint:
    def test_it_changes_with_model_and_prompt_file_and_not_with_the_key(self, tmp_path: Path) -> None:
        prompt = tmp_path / "system.md"
        shipped = files("guardrail.judges.llm").joinpath("prompts", "system.md").read_text(encoding="utf-8")
        prompt.write_text(shipped, encoding="utf-8")

        def of(**changes: Any) -> str:
            return fingerprint("llm", LlmJudgeSettings(model="m").model_copy(update=changes))

        base = of()
        assert of() == base
        assert of(model="n") != base
        assert of(extra_body={"temperature": 0.7}) != base
        prompts = LlmJudgeSettings.model_validate({"prompts": {"system": prompt}}).prompts
        with_file = of(prompts=prompts)
        assert with_file != base
        prompt.write_text(shipped + "Be strict.", encoding="utf-8")
        assert of(prompts=prompts) != with_file

    def test_bodies_count_though_they_are_shown_masked(self) -> None:
        low, high = (
            LlmJudgeSettings.model_validate({"fallbacks": [{"model": "b", "extra_body": {"effort": effort}}]})
            for effort in ("low", "high")
        )
        assert fingerprint("llm", low) != fingerprint("llm", high)

    def test_a_model_s_folder_counts_as_it_is_at_start(self, tmp_path: Path) -> None:
        weights = tmp_path / "model" / "onnx" / "model.onnx"
        weights.parent.mkdir(parents=True)

        def of() -> str:
            return fingerprint("classifier", ClassifierSettings(model=str(tmp_path / "model")))

        weights.write_bytes(b"old")
        before = of()
        assert of() == before
        weights.write_bytes(b"newer")
        after = of()
        assert after != before
        os.utime(weights, ns=(1, 1))  # of the same size
        assert of() != after

    def test_the_parameters_beside_a_verifier_count(self, tmp_path: Path) -> None:
        def of() -> str:
            return fingerprint("local", LocalJudgeSettings.model_validate({"verifier": {"path": tmp_path}}))

        before = of()
        (tmp_path / "parameters.json").write_text("{}", encoding="utf-8")
        assert of() != before

    @pytest.mark.parametrize("text", ["a/" * 5_000, "a\0b"])
    def test_a_model_may_be_any_text(self, text: str) -> None:
        """Most are no name of a folder, and some can be none."""
        assert fingerprint("classifier", ClassifierSettings(model=text))

    def test_two_secrets_make_no_two_fingerprints(self) -> None:
        one, two = (LlmJudgeSettings.model_validate({"api_key": key}) for key in ("one", "two"))
        assert fingerprint("llm", one) == fingerprint("llm", two)


def test_whole_settings_instead_of_the_judges_are_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"load_settings\(FILE\)\.judge is, not a Settings"):
        guardrail.build_judge(guardrail.load_settings())  # type: ignore[arg-type]


async def test_what_building_a_judge_takes_is_had_from_the_package() -> None:
    judge = guardrail.build_judge(guardrail.load_settings().judge, ledger=guardrail.UsageLedger())
    assert judge.name == "local"
    await judge.aclose()
    assert {"JudgeSettings", "Settings", "UsageLedger", "build_judge", "load_settings"} <= set(dir(guardrail))
