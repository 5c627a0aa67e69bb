"""Judges are asked about a right and a wrong claim."""

from __future__ import annotations

import pytest

from guardrail.config import Settings
from guardrail.doctor import Check, check_judges
from guardrail.doctor.judges import ask
from guardrail.events import Verdict
from guardrail.judges.settings import JudgeSettings
from guardrail.testing import ScriptedJudge
from tests.support.llm_server import Behaviour, LlmServer, Recorded, Reply, Status, member, verdicts


async def found(**judge: object) -> list[Check]:
    return [check async for check in check_judges(Settings(judge=judge))]


async def test_the_local_judge_tells_right_from_wrong_and_its_model_is_whole() -> None:
    checks = await found()
    assert [(check.about, check.state) for check in checks] == [("local model", "ok"), ("local", "ok")]
    assert "checksums are right" in checks[0].detail
    assert "ms for three claims" in checks[1].detail


async def test_a_damaged_model_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    from shutil import copytree

    from guardrail.judges.local.combiner import packaged_folder

    packaged = packaged_folder()
    assert packaged is not None
    folder = tmp_path_factory.mktemp("verifier") / "verifier"
    copytree(packaged, folder)
    with (folder / "model.onnx").open("r+b") as model:
        model.seek(1000)
        model.write(b"damaged")
    [check] = await found(local={"verifier": {"path": str(folder)}})
    assert check.state == "fail"
    assert "sha256" in check.detail
    assert "copy the folder again" in check.remedy


async def test_both_judges_of_a_cascade_are_asked_and_an_endpoint_that_is_away_is_told() -> None:
    checks = await found(
        kind="cascade", llm={"model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}
    )
    by_name = {check.about: check for check in checks}
    assert (by_name["local"].state, by_name["llm"].state) == ("ok", "fail")
    assert "127.0.0.1:9" in by_name["llm"].detail


async def test_settings_that_do_not_suffice_are_told_with_their_remedy() -> None:
    [check] = await found(kind="http")
    assert (check.state, check.remedy) == ("fail", "give the address of the endpoint that judges")


SETTINGS = JudgeSettings()


@pytest.mark.parametrize("verdict", [Verdict.CONTRADICTED, Verdict.UNSUPPORTED])
async def test_a_judge_that_is_right_is_asked_once(verdict: Verdict) -> None:
    judge = ScriptedJudge({"$95": verdict, "Madrid": verdict})
    [check] = await ask(judge, SETTINGS, 60_000)
    assert check.state == "ok"
    assert len(judge.claims) == 3


async def test_a_judge_that_is_slower_than_a_policy_waits_is_told() -> None:
    late, check = await ask(ScriptedJudge({"$95": "CONTRADICTED", "Madrid": "UNSUPPORTED"}), SETTINGS, 0)
    assert (late.state, check.state) == ("warn", "ok")
    assert "claim_timeout_ms" in late.detail


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ({"Madrid": "UNSUPPORTED"}, "it calls a wrong claim SUPPORTED"),
        ({"$95": "CONTRADICTED"}, "it calls a wrong claim SUPPORTED"),
        ({"plan": "CONTRADICTED", "office": "UNSUPPORTED"}, "it calls a right claim UNSUPPORTED"),
        ({"office": "UNVERIFIED"}, "no verdict: as the script says"),
    ],
)
async def test_a_judge_that_is_wrong_fails(script: dict[str, str], detail: str) -> None:
    [check] = await ask(ScriptedJudge(script), SETTINGS, 60_000)
    assert check.state == "fail"
    assert detail in check.detail


def by_price(call: Recorded) -> str:
    """CONTRADICTED for the claims that name $95 or Madrid, SUPPORTED for the other."""
    said = []
    for label in call.asked:
        claim = call.user.partition(f" claim {label}]\n")[2].partition("\n[")[0]
        said.append(member(label, "SUPPORTED" if "Lisbon" in claim else "CONTRADICTED", evidence=[1]))
    return verdicts(*said)


async def asked(behaviour: Behaviour) -> tuple[Check, LlmServer]:
    async with LlmServer(behaviour) as server:
        [check] = await found(kind="llm", llm={"model": "m", "base_url": server.url})
    return check, server


async def test_a_language_model_is_asked_in_one_call() -> None:
    check, server = await asked(Reply(by_price))
    assert check.state == "ok", check
    assert "llm:m" in check.detail
    assert "tokens" in check.detail
    assert len(server.calls) == 1


@pytest.mark.parametrize("status", [401, 404, 503])
async def test_an_endpoint_that_refuses_is_told_with_what_to_do(status: int) -> None:
    check, _ = await asked(Status(status))
    assert check.state == "fail"
    assert str(status) in check.detail
