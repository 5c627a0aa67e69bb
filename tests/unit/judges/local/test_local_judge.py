"""The local judge as a Judge: off the event loop, stoppable, in time."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guardrail.awake import AwakeClock
from guardrail.claims.model import Claim
from guardrail.errors import JudgeUnavailable
from guardrail.events import Finding, Verdict
from guardrail.judges.base import Judge, JudgeRequest
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local import judge as judge_module
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.examination import Examination
from guardrail.judges.local.judge import TurnQueue
from guardrail.judges.local.settings import VerifierSettings
from tests.support.constants import made
from tests.support.guards import until
from tests.support.judges import reply_of
from tests.unit.judges.local.contexts import FILLER, PRICING, claim_of, index_of
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier


def request_of(*texts: str, deadline: float | None = None) -> JudgeRequest:
    claims = {f"c{n}": claim_of(text) for n, text in enumerate(texts)}
    return JudgeRequest("r", "", claims, index_of(PRICING), deadline or time.monotonic() + 60)


class Gated(ClaimChecker):
    """Waits at every claim until it is let on; says on which thread it worked."""

    def __init__(self) -> None:
        super().__init__(LocalJudgeSettings(), load_parameters())
        self.reached, self.go = threading.Event(), threading.Event()
        self.threads: list[threading.Thread] = []
        self.checked: list[str] = []

    def _examine(self, claim: Claim, *more: Any) -> Examination | None:
        self.threads.append(threading.current_thread())
        self.checked.append(claim.text)
        self.reached.set()
        assert self.go.wait(30)
        return super()._examine(claim, *more)


def keep_busy(judge: LocalJudge) -> threading.Event:
    """All threads of a judge wait for the event."""
    free = threading.Event()
    for _ in range(judge._pool._max_workers):
        judge._pool.submit(free.wait)
    return free


def gated_judge() -> tuple[LocalJudge, Gated]:
    judge, checker = LocalJudge(made(LocalJudgeSettings, workers=1)), Gated()
    judge._checker = checker
    return judge, checker


async def test_a_request_that_another_judge_can_answer_better_does_not_wait_for_long() -> None:
    """Without its turn nothing is read, but figures are compared."""
    judge = LocalJudge(made(LocalJudgeSettings, workers=1))
    wrong = request_of("Basic costs $30 per month.")

    async def told(within_s: float) -> list[tuple[bool, bool]]:
        reply = await reply_of(judge, replace(wrong, turn_within_s=within_s))
        return [(bool(each.findings), bool(each.degraded_from)) for each in reply.judgements]

    assert await told(60.0) == [(True, False)]
    assert await told(0.0) == [(True, True)]
    async with judge._turns_here().turn(None):
        assert await told(0.01) == [(True, True)]
    assert await told(60.0) == [(True, False)]
    await judge.aclose()


def test_loops_share_a_judge() -> None:
    judge = LocalJudge(made(LocalJudgeSettings, workers=1))
    found: list[int] = []

    async def ask() -> None:
        async with asyncio.timeout(30):
            asked = (reply_of(judge, request_of("Basic has 5 users.")) for _ in range(8))
            found.extend(len(reply.judgements) for reply in await asyncio.gather(*asked))

    threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 24
    asyncio.run(judge.aclose())


async def test_answers_each_claim_under_its_id() -> None:
    judge = LocalJudge()
    assert isinstance(judge, Judge)
    reply = await reply_of(
        judge, request_of("Basic has 5 users.", "Pro costs $79 per month and includes 20 users.")
    )
    assert [judgement.claim_id for judgement in reply.judgements] == ["c0", "c1"]
    assert reply.judgements[1].verdict is Verdict.CONTRADICTED
    assert {j.judge for j in reply.judgements} == {judge.name} == {"local"}
    await judge.aclose()


async def test_works_on_a_thread_of_its_own_while_the_loop_goes_on() -> None:
    judge, checker = gated_judge()
    task = asyncio.create_task(reply_of(judge, request_of("Pro costs $49.")))
    await asyncio.to_thread(checker.reached.wait, 30)
    assert not task.done()  # this line runs while the claim is being judged
    checker.go.set()
    assert len((await task).judgements) == 1
    assert checker.threads[0] is not threading.main_thread()
    await judge.aclose()


async def test_a_cancelled_request_stops_before_its_next_claim() -> None:
    judge, checker = gated_judge()
    task = asyncio.create_task(reply_of(judge, request_of("One thing.", "Another thing.", "A third.")))
    await asyncio.to_thread(checker.reached.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    checker.go.set()
    await reply_of(
        judge, request_of("A later request.")
    )  # one worker: it runs after the cancelled job has ended
    assert checker.checked == ["One thing.", "A later request."]
    await judge.aclose()


async def test_after_the_deadline_no_claim_is_begun() -> None:
    judge = LocalJudge()
    reply = await reply_of(judge, request_of("Pro costs $49.", deadline=time.monotonic() - 1))
    assert reply.judgements == ()
    await judge.aclose()


async def test_concurrent_requests_share_an_index_and_agree() -> None:
    judge = LocalJudge(made(LocalJudgeSettings, workers=4))
    shared = request_of("Pro costs $49 per month.", "Store above 25 °C.", "Alcohol is not reimbursed.")
    replies = await asyncio.gather(*(reply_of(judge, shared) for _ in range(8)))
    assert all(reply == replies[0] for reply in replies)
    await judge.aclose()


async def test_closing_ends_the_running_job_and_tells_those_that_wait() -> None:
    """None of those who asked was cancelled, and none may be told so."""
    judge, checker = gated_judge()
    running, waiting = (
        asyncio.create_task(reply_of(judge, request_of("One thing.", "Another thing."))) for _ in range(2)
    )
    await asyncio.to_thread(checker.reached.wait, 30)
    await judge.aclose()
    with pytest.raises(JudgeUnavailable, match="the judge is closed"):
        await waiting
    checker.go.set()
    assert (await running).judgements == ()
    assert checker.checked == ["One thing."]
    with pytest.raises(JudgeUnavailable, match="the judge is closed"):
        await reply_of(judge, request_of("A later request."))


async def test_closing_frees_the_threads() -> None:
    judge, checker = gated_judge()
    checker.go.set()
    await reply_of(judge, request_of("Pro costs $49."))
    await judge.aclose()
    await asyncio.to_thread(checker.threads[0].join, 30)
    assert not checker.threads[0].is_alive()


async def test_a_standstill_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    awake = AwakeClock()
    monkeypatch.setattr(judge_module, "awake", awake)
    folder = write_verifier(tmp_path / "v", max_tokens=256)
    write_parameters(folder, parameters_for(folder))
    judge = LocalJudge(LocalJudgeSettings(verifier=VerifierSettings(path=folder)))
    request = JudgeRequest(
        "r", "", {"c0": claim_of("Blue is sky.")}, index_of("Sky is blue."), time.monotonic() + 200
    )
    free = keep_busy(judge)
    awake.start()
    asked = asyncio.create_task(reply_of(judge, request))
    await asyncio.sleep(0)
    later = time.monotonic() + 400
    monkeypatch.setattr("guardrail.awake.time", SimpleNamespace(monotonic=lambda: later))
    free.set()
    (judgement,) = (await asked).judgements
    assert (judgement.degraded_from, judgement.hurried) == ((), False)
    awake.stop()
    assert awake.stood_s > 390
    await judge.aclose()


@pytest.mark.parametrize(
    ("waited_s", "degraded"), [(1.9, ()), (2.1, ("more than one window",)), (3.1, ("little time was left",))]
)
async def test_a_request_that_waited_is_judged_by_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited_s: float, degraded: tuple[str, ...]
) -> None:
    """From half of its time on by one window of several, from three quarters on by words; waiting counts."""
    now = 1_000.0
    monkeypatch.setattr(judge_module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(judge_module, "awake", lambda: now)
    folder = write_verifier(tmp_path / "v", max_tokens=256)
    write_parameters(folder, parameters_for(folder, sure=1.0, hopeless=0.0))  # no window settles anything
    judge = LocalJudge(LocalJudgeSettings(verifier=VerifierSettings(path=folder)))
    claims = {"c0": claim_of("Blue is sky.")}
    evidence = index_of(f"Sky is red. {FILLER} Sky is blue.")
    free = keep_busy(judge)
    asked = asyncio.create_task(reply_of(judge, JudgeRequest("r", "", claims, evidence, now + 4.0)))
    await asyncio.sleep(0)  # it has asked by now, and waits for a thread
    now += waited_s
    free.set()
    (judgement,) = (await asked).judgements
    assert [told.endswith(end) for told, end in zip(judgement.degraded_from, degraded, strict=True)] == [
        True for _ in degraded
    ]
    reply = await reply_of(judge, JudgeRequest("r", "", claims, evidence, now + 4.0))
    assert not reply.judgements[0].degraded_from
    await judge.aclose()


async def test_the_wait_before_the_judge_was_asked_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a burst requests wait for a turn elsewhere: late ones are compared only, and none is clean then."""
    monkeypatch.setattr(judge_module, "time", SimpleNamespace(monotonic=lambda: 1_000.0))
    monkeypatch.setattr(judge_module, "awake", lambda: 1_000.0)
    judge = LocalJudge()
    source = "The basic plan costs $49 a month."
    claims = {"c0": claim_of("The basic plan is $49 a month.")}
    found = []
    for since in None, 998.0, 991.5:
        asked = JudgeRequest("r", "", claims, index_of(source), (since or 1_000.0) + 10.0, since=since)
        found.append((await reply_of(judge, asked)).judgements[0])
    await judge.aclose()
    assert [each.verdict for each in found[:2]] == [Verdict.SUPPORTED] * 2
    assert [Finding.CHECKED_IN_PART in each.findings for each in found] == [False, False, True]
    assert found[2].verdict not in {Verdict.SUPPORTED, Verdict.UNVERIFIED}


async def test_it_tells_how_long_further_claims_would_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_module, "_FIRST_PACE_S", 1.0)
    judge = LocalJudge(made(LocalJudgeSettings, workers=2, verifier=VerifierSettings(enabled=False)))
    free = keep_busy(judge)
    claims = {f"c{number}": claim_of("Blue is sky.") for number in range(3)}
    request = JudgeRequest("r", "", claims, index_of("Sky is blue."), time.monotonic() + 60)
    asking = [asyncio.create_task(reply_of(judge, request)) for _ in range(2)]
    await asyncio.sleep(0)  # all have asked by now
    assert (judge.wait_s(), judge.wait_s(2)) == (3.0, 4.0)
    free.set()
    await asyncio.gather(*asking)
    assert judge.wait_s() == 0.0
    assert 0.0 < judge.wait_s(2) < 1.0, "the pace is the judge's own by now"
    await judge.aclose()


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The sky \ud800 is blue.", "The sky is blue."),
        ("The sky is blue.", "The sky \udc00 is blue."),
        ("a \ud800 b", "a b c"),
        ("\u200b", "The sky is blue."),
    ],
)
async def test_odd_texts_stop_no_judge(claim: str, source: str, enabled: bool) -> None:
    """The guard refuses halves of surrogate pairs; a judge that is used by itself has them to judge."""
    judge = LocalJudge(LocalJudgeSettings(verifier=VerifierSettings(enabled=enabled)))
    claims = {"c0": claim_of(claim), "c1": claim_of("The moon is made of cheese.")}
    reply = await reply_of(judge, JudgeRequest("r", "", claims, index_of(source), time.monotonic() + 60))
    assert [each.claim_id for each in reply.judgements] == ["c0", "c1"]
    assert reply.judgements[0].verdict is not Verdict.UNVERIFIED
    assert all(end <= len(claim) for _, end in reply.judgements[0].unsupported_spans)
    await judge.aclose()


class Asking(ClaimChecker):
    """Asks a few times for each claim whether to go on, and notes which claim that was."""

    def __init__(self) -> None:
        super().__init__(LocalJudgeSettings(), load_parameters())
        self.asked: list[str] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def _examine(self, claim: Claim, *more: Any) -> Examination | None:
        self.begun.set()
        assert self.go.wait(30)
        for _ in range(3):
            self.asked.append(claim.text)
            if more[1].stopped():
                return None
        return super()._examine(claim, *more)


def asking_judge(monkeypatch: pytest.MonkeyPatch, *, slice_s: float) -> tuple[LocalJudge, Asking]:
    monkeypatch.setattr(judge_module, "_SLICE_S", slice_s)
    judge, checker = LocalJudge(made(LocalJudgeSettings, workers=1)), Asking()
    judge._checker = checker
    return judge, checker


async def test_a_long_request_gives_way_to_others_whenever_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, checker = asking_judge(monkeypatch, slice_s=0.0)
    long = asyncio.create_task(reply_of(judge, request_of(*(f"Pro costs ${n}." for n in range(20)))))
    await asyncio.to_thread(checker.begun.wait, 30)
    short = asyncio.create_task(reply_of(judge, request_of("Basic has 5 users.")))
    await until(lambda: judge._turns_here().waited_for)
    checker.go.set()
    assert len((await short).judgements) == 1
    before = checker.asked.index("Basic has 5 users.")
    assert before <= 3, "at the first question"
    assert not long.done()
    assert len((await long).judgements) == 20
    await judge.aclose()


async def test_a_request_keeps_its_turn_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing over costs something, and most requests are done by then."""
    judge, checker = asking_judge(monkeypatch, slice_s=3600.0)
    first = asyncio.create_task(reply_of(judge, request_of("Pro costs $49.", "Pro costs $50.")))
    await asyncio.to_thread(checker.begun.wait, 30)
    second = asyncio.create_task(reply_of(judge, request_of("Basic has 5 users.")))
    await until(lambda: judge._turns_here().waited_for)
    checker.go.set()
    await asyncio.gather(first, second)
    assert checker.asked == ["Pro costs $49."] * 3 + ["Pro costs $50."] * 3 + ["Basic has 5 users."] * 3
    await judge.aclose()


@pytest.mark.parametrize("how", ["cancelled", "closed", "late"])
async def test_a_request_that_gave_way_ends_when_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """It leaves no thread behind that waits for a turn, and no turn that nobody has."""
    judge, checker = asking_judge(monkeypatch, slice_s=0.0)
    deadline = time.monotonic() + 1.0 if how == "late" else None
    away = asyncio.create_task(reply_of(judge, request_of(*["Pro costs $49."] * 9, deadline=deadline)))
    await asyncio.to_thread(checker.begun.wait, 30)
    turns = judge._turns_here()
    holder = asyncio.create_task(held(turns, release := asyncio.Event()))
    await until(lambda: turns.waited_for or away.done())
    checker.go.set()
    await until(lambda: bool(turns._gave_way) or away.done())  # on a busy machine it may be late
    if how == "cancelled":
        away.cancel()
        with pytest.raises(asyncio.CancelledError):
            await away
    elif how == "closed":
        await judge.aclose()
        assert len((await away).judgements) < 9
    else:
        assert len((await away).judgements) < 9
    assert not turns._gave_way
    release.set()
    await holder
    async with turns.turn(None) as came:
        assert came
    assert turns._free == 1
    judge._pool.shutdown(wait=True)


async def held(turns: TurnQueue, release: asyncio.Event) -> None:
    async with turns.turn(None):
        await release.wait()
