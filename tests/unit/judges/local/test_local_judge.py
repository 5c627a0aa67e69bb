"""The local judge as a Judge: off the event loop, stoppable, in time."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from guardrail.claims.model import Claim
from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judge, Judgement, JudgeRequest
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters, load_rules_parameters
from tests.unit.judges.local.contexts import CONTEXTS, claim_of, index_of


def request_of(*texts: str, deadline: float | None = None) -> JudgeRequest:
    claims = {f"c{n}": claim_of(text) for n, text in enumerate(texts)}
    return JudgeRequest("r", "", claims, index_of(CONTEXTS), deadline or time.monotonic() + 60)


class Gated(ClaimChecker):
    """Waits at every claim until it is let on; says on which thread it worked."""

    def __init__(self) -> None:
        super().__init__(LocalJudgeSettings(), load_rules_parameters())
        self.reached, self.go = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.checked: list[str] = []

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        self.threads.append(threading.current_thread())
        self.checked.append(claim_id)
        self.reached.set()
        assert self.go.wait(30)
        return super().check(claim_id, claim, question, evidence)


def gated_judge() -> tuple[LocalJudge, Gated]:
    judge, checker = LocalJudge(), Gated()
    judge._checker = checker
    return judge, checker


async def test_answers_each_claim_under_its_id() -> None:
    judge = LocalJudge()
    assert isinstance(judge, Judge)
    reply = await judge.judge(request_of("Pro costs $49 per month.", "Pro costs $79 per month."))
    assert {j.claim_id: j.verdict for j in reply.judgements} == {
        "c0": Verdict.SUPPORTED,
        "c1": Verdict.CONTRADICTED,
    }
    assert {j.judge for j in reply.judgements} == {judge.name} == {"local"}
    await judge.aclose()


async def test_works_on_a_thread_of_its_own_while_the_loop_goes_on() -> None:
    judge, checker = gated_judge()
    task = asyncio.create_task(judge.judge(request_of("Pro costs $49.")))
    await asyncio.to_thread(checker.reached.wait, 30)
    assert not task.done()  # this line runs while the claim is being judged
    checker.go.set()
    assert len((await task).judgements) == 1
    assert checker.threads[0] is not threading.main_thread()
    await judge.aclose()


async def test_a_cancelled_request_stops_before_its_next_claim() -> None:
    judge, checker = gated_judge()
    task = asyncio.create_task(judge.judge(request_of("One thing.", "Another thing.", "A third.")))
    await asyncio.to_thread(checker.reached.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    checker.go.set()
    await judge.judge(request_of("A later request."))  # one worker: it runs after the cancelled job has ended
    assert checker.checked == ["c0", "c0"]
    await judge.aclose()


async def test_after_the_deadline_no_claim_is_begun() -> None:
    judge = LocalJudge()
    reply = await judge.judge(request_of("Pro costs $49.", deadline=time.monotonic() - 1))
    assert reply.judgements == ()
    await judge.aclose()


async def test_concurrent_requests_share_an_index_and_agree() -> None:
    judge = LocalJudge(LocalJudgeSettings(workers=4))
    shared = request_of("Pro costs $49 per month.", "Store above 25 °C.", "Alcohol is not reimbursed.")
    replies = await asyncio.gather(*(judge.judge(shared) for _ in range(8)))
    assert all(reply == replies[0] for reply in replies)
    await judge.aclose()


async def test_closing_ends_the_running_job_and_tells_those_that_wait() -> None:
    """None of those who asked was cancelled, and none may be told so."""
    judge, checker = gated_judge()
    running, waiting = (
        asyncio.create_task(judge.judge(request_of("One thing.", "Another thing."))) for _ in range(2)
    )
    await asyncio.to_thread(checker.reached.wait, 30)
    await judge.aclose()
    with pytest.raises(JudgeUnavailable, match="the judge is closed"):
        await waiting
    checker.go.set()
    assert len((await running).judgements) == 1
    assert checker.checked == ["c0"]
    with pytest.raises(JudgeUnavailable, match="the judge is closed"):
        await judge.judge(request_of("A later request."))


async def test_closing_frees_the_threads() -> None:
    judge, checker = gated_judge()
    checker.go.set()
    await judge.judge(request_of("Pro costs $49."))
    await judge.aclose()
    await asyncio.to_thread(checker.threads[0].join, 30)
    assert not checker.threads[0].is_alive()


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="must not be above supported_at"):
        LocalJudgeSettings(supported_at=0.4, partially_supported_at=0.5)
    with pytest.raises(ValidationError, match="Extra inputs"):
        LocalJudgeSettings.model_validate({"threads": 3})


def test_every_setting_is_described() -> None:
    assert all(field.description for field in LocalJudgeSettings.model_fields.values())


@pytest.mark.parametrize("content", [None, "{", "{}", '{"version": 1}'])
def test_a_parameters_file_that_cannot_be_used_is_a_config_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "parameters.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match="parameters_path"):
        LocalJudge(LocalJudgeSettings(parameters_path=path))


def test_the_lines_between_verdicts_can_be_set() -> None:
    claim, index = claim_of("Pro costs $49 per month."), index_of(CONTEXTS)
    strict = ClaimChecker(
        LocalJudgeSettings(supported_at=1.0, partially_supported_at=0.5), load_rules_parameters()
    )
    strictest = ClaimChecker(
        LocalJudgeSettings(supported_at=1.0, partially_supported_at=1.0), load_rules_parameters()
    )
    assert strict.check("c", claim, "", index).verdict is Verdict.PARTIALLY_SUPPORTED
    assert strictest.check("c", claim, "", index).verdict is Verdict.UNSUPPORTED


def test_the_packaged_parameters_say_where_they_come_from() -> None:
    parameters = load_parameters()
    licences = parameters.provenance["licences"]
    assert isinstance(licences, dict)
    assert licences
    assert not {"lingnli", "climate-fever", "nli4ct", "mpe", "rte", "healthver"} & set(licences)
    assert parameters.partially_supported_at <= parameters.supported_at


def test_parameters_with_a_broken_tree_are_refused(tmp_path: Path) -> None:
    raw = json.loads(load_rules_parameters().model_dump_json())
    tree = raw["combiner"]["trees"][0]
    for child, said in ((0, "must come after it"), (tree["upper"][0], "the child of two ways")):
        tree["lower"][0] = child
        path = tmp_path / "broken.json"
        path.write_text(json.dumps(raw))
        with pytest.raises(ConfigError, match=said):
            load_parameters(path)


def test_parameters_that_look_at_what_is_not_found_out_are_refused(tmp_path: Path) -> None:
    """Those of another release: at the first claim it would be too late."""
    raw = json.loads(load_rules_parameters().model_dump_json())
    raw["combiner"] = {"kind": "logistic", "bias": 0.0, "weights": {"of_another_release": 1.0}}
    (tmp_path / "p.json").write_text(json.dumps(raw), "utf-8")
    with pytest.raises(ConfigError, match="look at of_another_release, which this release does not find out"):
        LocalJudge(LocalJudgeSettings(parameters_path=tmp_path / "p.json"))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_parameters_that_are_no_numbers_are_refused(tmp_path: Path, number: float) -> None:
    raw = json.loads(load_rules_parameters().model_dump_json())
    raw["combiner"] = {"kind": "logistic", "bias": number, "weights": {}}
    (tmp_path / "p.json").write_text(json.dumps(raw), "utf-8")
    with pytest.raises(ConfigError, match="is no parameters file of this version"):
        LocalJudge(LocalJudgeSettings(parameters_path=tmp_path / "p.json"))
