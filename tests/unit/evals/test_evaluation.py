"""Evaluating many samples: order, bounds, errors, and what comes out of it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from guardrail.errors import ConfigError, InputError, JudgeUnavailable, ProtocolError
from guardrail.evals import aevaluate, evaluate, read_results
from guardrail.evals.evaluation import Check, checker, evaluate_each, judging_everything
from guardrail.evals.results import BadSample, EvaluationResult, Sample
from guardrail.events import ClaimVerdict, Label, Response, ResponseVerdict, Usage, Verdict
from guardrail.judges import Judgement, JudgeRequest
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.guards import until
from tests.support.judges import FaultyJudge, GatedJudge, WordJudge
from tests.unit.demo.events import verdict


def sample(number: int, answer: str = "Yes.", **changes: Any) -> Sample:
    return Sample(Response(response_id=f"r{number}", answer=answer, **changes), place=f"line {number}")


async def arriving(*samples: Sample | BadSample) -> AsyncIterator[Sample | BadSample]:
    for each in samples:
        yield each


async def judged_at_once(response: Response) -> ResponseVerdict:
    return verdict(response_id=response.response_id)


async def results_of(
    check: Check, *samples: Sample | BadSample, concurrency: int = 4
) -> list[EvaluationResult]:
    results: list[EvaluationResult] = []
    await evaluate_each(arriving(*samples), check, results.append, concurrency=concurrency)
    return results


def ids(results: list[EvaluationResult]) -> list[str | None]:
    return [result.verdict.response_id if result.verdict else None for result in results]


async def test_outcomes_come_as_they_are_done_if_no_order_is_asked_for() -> None:
    others_done = asyncio.Event()
    found: list[EvaluationResult] = []

    def take(result: EvaluationResult) -> None:
        found.append(result)
        if len(found) == 20:
            others_done.set()

    async def check(response: Response) -> ResponseVerdict:
        if response.response_id == "r1":
            await others_done.wait()
        return verdict(response_id=response.response_id)

    source = arriving(*(sample(n) for n in range(1, 22)))
    await evaluate_each(source, check, take, concurrency=2, in_order=False)
    assert ids(found) == [f"r{n}" for n in [*range(2, 22), 1]]


async def test_outcomes_come_in_the_order_of_the_lines_whatever_is_judged_first() -> None:
    second_done = asyncio.Event()

    async def check(response: Response) -> ResponseVerdict:
        if response.response_id == "r1":
            await second_done.wait()
        second_done.set()
        return verdict(response_id=response.response_id)

    assert ids(await results_of(check, sample(1), sample(2), sample(3))) == ["r1", "r2", "r3"]


async def test_what_the_guard_refuses_is_told_like_a_line_that_cannot_be_read() -> None:
    async def check(response: Response) -> ResponseVerdict:
        raise ProtocolError("contexts_too_large", "contexts: too many characters")

    (outcome,) = await results_of(check, sample(1))
    assert outcome.error == "contexts: too many characters"


async def test_reading_waits_while_the_first_line_is_not_done() -> None:
    """Memory is bounded however long one judgement takes: by the number of lines, and by their bytes."""
    for size, held in ((10, 10**9), (1000, 2500)):
        read = 0
        release = asyncio.Event()

        async def check(response: Response, release: asyncio.Event = release) -> ResponseVerdict:
            await release.wait()
            return verdict(response_id=response.response_id)

        async def many(size: int = size) -> AsyncIterator[Sample]:
            nonlocal read
            for number in range(1, 201):
                read = number
                yield sample(number, answer="x" * size)

        done: list[EvaluationResult] = []
        scoring = asyncio.create_task(
            evaluate_each(many(), check, done.append, concurrency=2, max_held_bytes=held)
        )
        for _ in range(500):
            await asyncio.sleep(0)
        assert read <= (2 * 4 + 3 if held == 10**9 else 4)
        release.set()
        await scoring
        assert len(done) == 200


async def test_a_verdict_bears_the_mode_that_its_policy_has_live() -> None:
    policy = Policy(name="strict", mode="hold")
    check = checker(WordJudge(), PolicyRouter.single(judging_everything(policy)), modes={"strict": "hold"})
    assert (await check(Response(response_id="r", answer="Yes."))).mode == "hold"


async def test_offline_no_claim_is_lost_to_the_clock() -> None:
    """Neither the live limit on a claim nor the response's own deadline leaves a claim unjudged."""

    class DeadlineJudge(WordJudge):
        """Judges as a slow machine would: nothing that is due within the hour."""

        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            if request.deadline - time.monotonic() < 3600:
                raise JudgeUnavailable("too late")
            async for each in super().judge(request):
                yield each

    router = PolicyRouter.single(judging_everything(Policy(claim_timeout_ms=1)))
    check = checker(DeadlineJudge(), router)
    judged = await check(sample(1, "The fee is 49 euros. It is paid monthly.", deadline_ms=1).response)
    assert len(judged.claims) == 2
    assert judged.counts.unverified == 0


# ------------------------------------------------------------------------------------ the Python API

GOOD = {"question": "How much?", "contexts": ["It costs 49 euros."], "answer": "It costs 49 euros."}
WRONG = {**GOOD, "id": "wrong", "answer": "It costs 99 euros, wrong."}
BAD = {"answer": "No documents."}


async def test_rows_samples_and_responses_are_judged_in_their_order_and_errors_are_no_scores() -> None:
    judge = WordJudge()
    run = await aevaluate([GOOD, BAD, sample(3, "It costs 49 euros."), sample(4).response], judge=judge)
    assert [each.error is None for each in run.results] == [True, False, True, True]
    assert [each.place for each in run.results] == ["row 1", "row 2", "line 3", "row 4"]
    assert run.results[1].scores == {}
    assert "contexts: missing" in (run.results[1].error or "")
    assert [each.place for each in run.errors] == ["row 2"]
    assert not judge.closed
    assert run.settings["judge"] == "words"


async def test_a_mean_is_over_what_is_defined_and_says_what_is_not() -> None:
    nothing = {**GOOD, "answer": "I don't know."}
    run = await aevaluate([GOOD, WRONG, nothing, BAD], judge=WordJudge())
    own = run.summary()["severity_weighted"]
    values = [each.scores["severity_weighted"].value for each in run.results[:2]]
    assert own.mean == pytest.approx(math.fsum(value or 0.0 for value in values) / 2)
    assert (own.defined, own.undefined, own.errors) == (2, 1, 1)
    assert (
        run.results[2].scores["severity_weighted"].reason == "the answer states nothing that can be checked"
    )


async def test_a_failure_can_end_everything() -> None:
    with pytest.raises(InputError, match="row 1: contexts: missing"):
        await aevaluate([BAD, GOOD], judge=WordJudge(), raise_on_failure=True)

    def behave(_: JudgeRequest) -> Iterator[Judgement]:
        raise JudgeUnavailable("nobody answers")

    with pytest.raises(JudgeUnavailable, match=r"row 1: no claim could be judged: .*nobody answers"):
        await aevaluate([GOOD], judge=FaultyJudge(behave), raise_on_failure=True)
    run = await aevaluate([GOOD], judge=FaultyJudge(behave))
    assert run.results[0].scores["severity_weighted"].value is None
    assert run.results[0].scores["severity_weighted"].reason == "no claim could be checked"


async def test_no_more_answers_are_judged_at_once_than_asked_for() -> None:
    judge = GatedJudge()
    running = asyncio.create_task(aevaluate([GOOD] * 20, judge=judge, concurrency=3))
    await until(lambda: judge.at_once == 3)
    for _ in range(500):  # others would be asked by now
        await asyncio.sleep(0)
    assert judge.most_at_once == 3
    judge.gate.set()
    assert len((await running).results) == 20
    assert judge.most_at_once == 3


def test_it_works_without_an_event_loop() -> None:
    assert len(evaluate([GOOD], judge=WordJudge()).results) == 1


async def test_it_works_where_a_loop_runs_as_in_a_notebook() -> None:
    assert len(evaluate([GOOD], judge=WordJudge()).results) == 1
    with pytest.raises(InputError):
        evaluate([BAD], judge=WordJudge(), raise_on_failure=True)


TWO = {**GOOD, "answer": "It costs 49 euros and includes the wrong breakfast."}


@pytest.mark.parametrize(("scores", "again"), [(["severity_weighted", "llama_index"], 0), (["haystack"], 1)])
async def test_parts_are_judged_for_scores_that_count_them(scores: list[str], again: int) -> None:
    judge = WordJudge()
    (result,) = (await aevaluate([TWO], judge=judge, scores=scores)).results
    assert len(judge.requests) == 1 + again
    assert result.verdict is not None
    assert [part.verdict for part in result.verdict.claims[0].parts] == ["SUPPORTED", "CONTRADICTED"][
        : 2 * again
    ]
    assert result.scores[scores[-1]].value == 0.5 * again
    assert (result.verdict.decision, result.verdict.counts.contradicted) == ("block", 1)


async def test_an_unknown_score_is_refused_before_anything_is_judged() -> None:
    judge = WordJudge()
    with pytest.raises(ConfigError, match="unknown score 'nope'; known scores: severity_weighted, strict"):
        await aevaluate([GOOD], judge=judge, scores=("nope",))
    assert judge.requests == []


async def test_what_is_no_sample_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="int is none"):
        await aevaluate([3], judge=WordJudge())


async def test_a_data_frame_goes_in_and_one_comes_out() -> None:
    rows = pd.DataFrame(
        [
            {
                "user_input": "How much?",
                "retrieved_contexts": ["49 euros."],
                "response": "It costs 49 euros.",
            },
            {"user_input": "How much?", "retrieved_contexts": ["49 euros."], "response": None},
        ]
    )
    frame = (await aevaluate(rows, judge=WordJudge())).to_pandas()
    assert list(frame["response_id"])[:1] == ["row-1"]
    assert frame["severity_weighted"][0] == pytest.approx(0.95)
    assert pd.isna(frame["severity_weighted"][1])
    assert "response: " in frame["error"][1]


async def test_a_data_frame_without_pandas_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    run = await aevaluate([GOOD], judge=WordJudge())
    with pytest.raises(ConfigError, match="pip install pandas"):
        run.to_pandas()


async def test_the_table_is_harmless_and_ends_with_the_means() -> None:
    run = await aevaluate([{**GOOD, "id": "a\x1b[2J"}, BAD], judge=WordJudge())
    lines = run.table().splitlines()
    assert "\x1b" not in run.table()
    assert lines[0].split() == ["response", "decision", "claims", "severity_weighted"]
    assert lines[2].startswith("row 2 ")
    assert lines[3] == "severity_weighted: mean 0.950 over 1 answer, 1 without a verdict"
    assert run.table(rows=1).splitlines()[2] == "1 more are left out"


@pytest.mark.parametrize("name", ["results.jsonl", "results.jsonl.gz"])
async def test_a_results_file_gives_the_same_back(tmp_path: Path, name: str) -> None:
    label = Label(response_id="r3", verdict=Verdict.SUPPORTED)
    given = Sample(sample(3, "It costs 49 euros.").response, (label,), "line 3")
    run = await aevaluate([GOOD, BAD, given], judge=WordJudge(), name="tuesday")
    run.write(tmp_path / name)
    read = read_results(tmp_path / name)
    assert (read.results, read.name, dict(read.settings)) == (run.results, "tuesday", dict(run.settings))


class Speaker:
    """Puts results into words; remembers for which answers it was asked."""

    name = "speaker"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def explain(
        self, response_id: str, question: str, result: str, claims: Sequence[ClaimVerdict]
    ) -> tuple[str, Usage]:
        self.asked.append(response_id)
        return f"{len(claims)} wrong", Usage()


async def test_reasons_and_steps_come_with_the_results_if_asked_for() -> None:
    speaker = Speaker()
    plain = await aevaluate([WRONG], judge=WordJudge())
    told = await aevaluate([GOOD, WRONG], judge=WordJudge(), explainer=speaker, trace=True)
    assert (plain.results[0].explanation, plain.results[0].trace) == (None, ())
    assert [each.explanation for each in told.results][1:] == ["1 wrong"]
    assert speaker.asked == ["wrong"]
    assert [[step.step for step in each.trace][-1] for each in told.results] == ["verdicts", "verdicts"]
    by_template = await aevaluate([WRONG], judge=WordJudge(), explain=True, scores=("strict", "ragas"))
    assert "99 euros" in (by_template.results[0].explanation or "")
    assert by_template.summary().keys() == {"strict", "ragas"}


async def test_values_where_labels_should_be_are_warned_of() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "r1", "contexts": [], "answer": "Yes.", "label": each} for each in ("wrong", "meh")
    ]
    with pytest.warns(UserWarning, match=r"'label': 1 value not read.*'meh' \(1\); known are right, wrong"):
        found = await aevaluate(rows, judge=WordJudge())
    assert [len(result.labels) for result in found.results] == [1, 0]
