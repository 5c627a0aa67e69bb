"""Calibrations are applied to judgements in one place, for every judge, and change nothing else."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from guardrail import Guard, JudgeSettings, Policy, build_judge
from guardrail.errors import ConfigError
from guardrail.events import Context, Finding, Response, Verdict
from guardrail.judges import GatheringJudge, Judge, Judgement, JudgeRequest
from guardrail.judges.calibrated import (
    CalibratedJudge,
    Calibrations,
    Isotonic,
    JudgeCalibration,
    Temperature,
    read_calibrations,
)
from guardrail.judges.cascade import CascadeJudge
from guardrail.judges.factory import JudgeSet, check_files
from guardrail.policy import Rule
from guardrail.routing import PolicyRouter
from tests.support.sessions import judgement

HALF = Isotonic(points=((0.0, 0.0), (1.0, 0.5)))
LOCAL = {"version": 1, "judges": {"local": {"support": HALF.model_dump(), "contradiction": None}}}


def file_of(folder: Path, content: Any) -> Path:
    path = folder / "calibration.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


class Saying:
    """Says a fixed judgement of every claim."""

    name = "local"

    def __init__(self, **fields: Any) -> None:
        self.fields: dict[str, Any] = {
            "verdict": Verdict.SUPPORTED,
            "confidence": 0.8,
            "support": 0.8,
            "judge": "local",
        }
        self.fields |= fields
        self.closed = False

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        for claim_id in request.claims:
            yield Judgement(claim_id=claim_id, **self.fields)

    async def aclose(self) -> None:
        self.closed = True


ANSWER = Response(
    response_id="r",
    question="What does the basic plan cost?",
    contexts=(Context(id="c", text="The basic plan costs $49 a month."),),
    answer="The basic plan costs $49 a month.",
)


async def claim_of(judge: Judge, policy: Policy | None = None) -> Any:
    async with Guard(judge, router=PolicyRouter.single(policy or Policy())) as guard:
        verdict = await guard.check_event(ANSWER)
    [claim] = verdict.claims
    return verdict, claim


# ------------------------------------------------------------------------------------ end to end


async def test_the_file_that_judge_calibration_names_changes_support_and_score(tmp_path: Path) -> None:
    plain = build_judge(JudgeSettings())
    settings = JudgeSettings(calibration=file_of(tmp_path, LOCAL))
    calibrated = build_judge(settings)
    try:
        _, before = await claim_of(plain)
        verdict, after = await claim_of(calibrated)
    finally:
        await plain.aclose()
        await calibrated.aclose()
    assert after.judge == before.judge == "local"
    assert (after.verdict, after.confidence) == (before.verdict, before.confidence)
    assert after.contradiction == before.contradiction
    assert after.support == pytest.approx(before.support / 2)
    assert verdict.score == pytest.approx(after.support, abs=1e-6)


async def test_rules_see_calibrated_probabilities() -> None:
    policy = Policy(rules=(Rule.model_validate("support < 0.5: block"),))
    calibrations = Calibrations(judges={"local": JudgeCalibration(support=HALF)})
    verdict, _ = await claim_of(Saying(), policy)
    assert verdict.decision == "release"
    verdict, _ = await claim_of(CalibratedJudge(Saying(), calibrations), policy)
    assert verdict.decision == "block"


async def test_a_model_that_the_file_does_not_name_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    file = {"decisions:m-1": JudgeCalibration(support=HALF), "local": JudgeCalibration(support=HALF)}
    for name, told in (("decisions:m-1", 0), ("decisions:m-2", 1), ("llm:m-2", 0)):
        judge = CalibratedJudge(Saying(judge=name), Calibrations(judges=file))
        caplog.clear()
        async with Guard(judge) as guard:
            await guard.check_event(ANSWER)
            await guard.check_event(ANSWER.model_copy(update={"response_id": "again"}))
        messages = [each.getMessage() for each in caplog.records if "not_calibrated" in each.getMessage()]
        assert len(messages) == told
        assert all("decisions:m-2" in each and "decisions:m-1" in each for each in messages)


def test_every_judge_of_a_process_is_calibrated(tmp_path: Path) -> None:
    settings = JudgeSettings(calibration=file_of(tmp_path, LOCAL))
    judges = JudgeSet(settings)
    assert [type(judge) for judge in judges.by_kind.values()] == [CalibratedJudge]
    other = settings.model_copy(update={"calibration": None})
    assert judges.fixed(other, ()) == ["judge.calibration"]  # it needs a restart


# ------------------------------------------------------------------------------------ one judgement


def test_what_a_judge_does_not_give_stays_none_and_other_judges_are_left_alone() -> None:
    calibrations = Calibrations(judges={"local": JudgeCalibration(support=HALF, contradiction=HALF)})
    without = judgement("c", Verdict.UNSUPPORTED)
    assert calibrations.judgement(without) == without  # of another judge
    unverified = Judgement("c", Verdict.UNVERIFIED, 0.0, None, "local")
    assert calibrations.judgement(unverified) == unverified
    given_both = Judgement("c", Verdict.CONTRADICTED, 0.9, 0.2, "local", contradiction=0.9)
    found = calibrations.judgement(given_both)
    assert (found.support, found.contradiction, found.confidence) == (0.1, 0.45, 0.9)
    assert (
        calibrations.judgement(Judgement("c", Verdict.CONTRADICTED, 0.9, 0.2, "local")).contradiction is None
    )


def test_a_claim_that_was_checked_in_part_gets_no_more_support_than_such_a_claim_may_have() -> None:
    more = Isotonic(points=((0.0, 0.9),))
    calibrations = Calibrations(judges={"local": JudgeCalibration(support=more)})
    part = Judgement(
        "c", Verdict.PARTIALLY_SUPPORTED, 0.49, 0.4, "local", findings=(Finding.CHECKED_IN_PART,)
    )
    assert calibrations.judgement(part).support == 0.49


async def test_a_number_that_is_none_does_not_become_a_probability() -> None:
    calibrations = Calibrations(judges={"local": JudgeCalibration(support=Temperature(temperature=2.0))})
    _, claim = await claim_of(CalibratedJudge(Saying(support=math.nan), calibrations))
    assert (claim.verdict, claim.support) == (Verdict.UNVERIFIED, None)


async def test_a_judge_that_gathers_claims_still_does() -> None:
    first, second = Saying(), Saying()
    cascade = CascadeJudge(first, second)
    assert CalibratedJudge(cascade, Calibrations()).max_wait_s == cascade.max_wait_s > 0
    calibrated = CalibratedJudge(Saying(), Calibrations())
    assert (calibrated.max_wait_s, calibrated.name) == (0.0, "local")
    assert isinstance(calibrated, GatheringJudge)
    await CalibratedJudge(cascade, Calibrations()).aclose()
    assert first.closed
    assert second.closed


@given(
    calibration=st.builds(Temperature, temperature=st.floats(0.01, 100))
    | st.lists(st.floats(0, 1), min_size=1, max_size=6, unique=True).map(
        lambda xs: Isotonic(points=tuple((x, x * 0.9) for x in sorted(xs)))
    ),
    probabilities=st.lists(st.floats(0, 1), min_size=2, max_size=10),
)
def test_a_calibration_keeps_the_order_and_the_scale(
    calibration: Temperature | Isotonic, probabilities: list[float]
) -> None:
    found = [calibration.apply(p) for p in sorted(probabilities)]
    assert all(0 <= p <= 1 for p in found)
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(found))


# ------------------------------------------------------------------------------------ the file


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([], "the file: Input should be"),
        ({"judges": {"local": {"support": {"method": "platt"}}}}, "judges.local.support"),
        ({"judges": {"local": {"support": {"method": "temperature", "temperature": 0}}}}, "greater than 0"),
        (
            {"judges": {"local": {"support": {"method": "isotonic", "points": [[0.5, 0.5], [0.4, 0.6]]}}}},
            r"judges\.local\.support\.isotonic: points: after \(0\.5, 0\.5\) comes .* must ascend",
        ),
        ({"version": 2}, "version"),
    ],
)
def test_a_wrong_file_is_named_with_the_place_and_the_remedy(tmp_path: Path, content: Any, told: str) -> None:
    path = file_of(tmp_path, content)
    with pytest.raises(ConfigError, match=told) as caught:
        read_calibrations(path)
    assert str(path) in str(caught.value)
    assert "guardrail tune --calibration" in str(caught.value)
    with pytest.raises(ConfigError):
        check_files(JudgeSettings(calibration=path))


def test_a_missing_file_and_one_that_is_no_yaml_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        build_judge(JudgeSettings(calibration=tmp_path / "missing.yaml"))
    (tmp_path / "broken.yaml").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not YAML"):
        read_calibrations(tmp_path / "broken.yaml")


@pytest.mark.parametrize(
    ("said", "probabilities", "findings", "verdict"),
    [
        ("SUPPORTED", (0.7, 0.1), (), "SUPPORTED"),
        ("PARTIALLY_SUPPORTED", (0.7, 0.1), (), "SUPPORTED"),
        ("SUPPORTED", (0.5, 0.1), (), "PARTIALLY_SUPPORTED"),
        ("UNSUPPORTED", (0.1, 0.5), (), "CONTRADICTED"),
        ("CONTRADICTED", (0.7, 0.1), (), "CONTRADICTED"),  # by the cell of a table
        ("SUPPORTED", (0.9, 0.1), (Finding.CONTEXTS_DISAGREE,), "SUPPORTED"),
        ("UNSUPPORTED", (0.1, 0.3), (), "UNSUPPORTED"),
        ("CONTRADICTED", (0.9, 0.1), (Finding.FIGURE_CONFLICT,), "CONTRADICTED"),
        ("UNSUPPORTED", (0.9, 0.1), (Finding.FIGURE_ABSENT,), "UNSUPPORTED"),
        ("UNVERIFIED", (None, None), (Finding.JUDGE_UNCLEAR,), "UNVERIFIED"),
    ],
)
def test_lines_move_verdicts_but_none_over_what_figures_say(
    said: str, probabilities: tuple[float, float], findings: tuple[Finding, ...], verdict: str
) -> None:
    support, contradiction = probabilities
    judged = Judgement(
        "c", Verdict(said), 0.5, support, "decisions:m", contradiction=contradiction, findings=findings
    )
    lines = {"decisions:m": {"lines": {"supported": 0.6, "contradicted": 0.4}}}
    assert Calibrations.model_validate({"judges": lines}).judgement(judged).verdict is Verdict(verdict)
