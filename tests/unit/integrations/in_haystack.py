"""The guard in Haystack itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

import asyncio
import json
import math
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.evaluators import FaithfulnessEvaluator
from haystack.dataclasses import ChatMessage
from haystack.evaluation import EvaluationRunResult

from guardrail.errors import InputError, JudgeUnavailable
from guardrail.evals.scores import SCORES
from guardrail.integrations.haystack import HaystackFaithfulnessEvaluator
from tests.support.judges import FaultyJudge, WordJudge
from tests.support.llm_server import LlmServer
from tests.unit.integrations.judges import MeetingJudge
from tests.unit.integrations.page import examples, printed_by

PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."
UNKNOWN = "I don't know."


@component
class FixedGenerator:
    """The chat generator of their evaluator: says what it was made with."""

    def __init__(self, reply: str) -> None:
        self.reply = reply

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(self.reply)]}


def inputs(*answers: str) -> dict[str, Any]:
    many = len(answers)
    return {
        "questions": ["How much?"] * many,
        "contexts": [[PRICES]] * many,
        "predicted_answers": list(answers),
    }


@pytest.fixture
def evaluator() -> Iterator[HaystackFaithfulnessEvaluator]:
    made = HaystackFaithfulnessEvaluator(progress_bar=False)
    made.warm_up()
    yield made
    made.close()


def test_the_example_of_their_documentation_runs_with_our_class(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", FaithfulnessEvaluator.__doc__, re.DOTALL)
    ours = textwrap.dedent(example).replace(
        "from haystack.components.evaluators import FaithfulnessEvaluator",
        "from guardrail.integrations.haystack import HaystackFaithfulnessEvaluator as FaithfulnessEvaluator",
    )
    assert ours.count("guardrail") == 1
    exec(ours, {})  # noqa: S102 - it is what is tested
    scores, score, results = capsys.readouterr().out.splitlines()
    assert (scores, score) == ("[0.5]", "0.5")
    assert "Python was created by George Lucas." in results


def test_inputs_and_outputs_are_theirs_and_more() -> None:
    reply = json.dumps({"statements": [RIGHT], "statement_scores": [1]})
    theirs = FaithfulnessEvaluator(chat_generator=FixedGenerator(reply), progress_bar=False)
    ours = HaystackFaithfulnessEvaluator(WordJudge(), progress_bar=False)
    expected, found = theirs.run(**inputs(RIGHT)), ours.run(**inputs(RIGHT))
    ours.close()
    assert found.keys() == expected.keys()
    assert {name: found[name] for name in ("score", "individual_scores")} == {
        "score": expected["score"],
        "individual_scores": expected["individual_scores"],
    }
    (one,), (other,) = expected["results"], found["results"]
    assert {name: other[name] for name in one} == one
    sockets = [Pipeline(), Pipeline()]
    for pipeline, each in zip(sockets, (theirs, ours), strict=True):
        pipeline.add_component("evaluator", each)
    first, second = (
        {name: socket["type"] for name, socket in pipeline.inputs()["evaluator"].items()}
        for pipeline in sockets
    )
    assert first == second


def test_verdicts_are_reachable_with_evidence_and_severity(evaluator: HaystackFaithfulnessEvaluator) -> None:
    documents = [[Document(id="terms", content=PRICES), Document(id="other", content="We are open daily.")]]
    found = evaluator.run(questions=["?"], contexts=documents, predicted_answers=[f"{RIGHT} {WRONG}"])
    (result,) = found["results"]
    assert result["statements"] == [RIGHT, WRONG]
    assert result["statement_scores"] == [1, 0]
    right, wrong = result["verdict"]["claims"]
    assert (right["verdict"], wrong["verdict"]) == ("SUPPORTED", "CONTRADICTED")
    assert wrong["severity"] == "major"
    assert right["evidence"][0]["context_id"] == "terms"
    json.dumps(found)  # plain values throughout
    assert found["meta"][0]["judges"] == ["local"]


def test_an_answer_that_states_nothing_has_no_score_and_is_not_in_the_mean(
    evaluator: HaystackFaithfulnessEvaluator,
) -> None:
    found = evaluator.run(**inputs(UNKNOWN, RIGHT, f"{RIGHT} {WRONG}"))
    assert found["individual_scores"] == [math.nan, 1.0, 0.5]
    assert found["score"] == 0.75
    assert found["results"][0]["reason"] == "the answer states nothing that can be checked"
    assert math.isnan(evaluator.run(**inputs(UNKNOWN))["score"])
    assert math.isnan(evaluator.run(**inputs())["score"])


def test_their_report_takes_undefined_scores(evaluator: HaystackFaithfulnessEvaluator) -> None:
    given = inputs(UNKNOWN, RIGHT)
    result = EvaluationRunResult("run", given, {"faithfulness": evaluator.run(**given)})
    scores = result.detailed_report()["faithfulness"]
    assert math.isnan(scores[0])
    assert scores[1] == 1.0
    assert result.aggregated_report()["score"] == [1.0]


@pytest.mark.parametrize("name", sorted(SCORES))
def test_every_published_score_can_be_chosen(name: str) -> None:
    made = HaystackFaithfulnessEvaluator(WordJudge(), score=name, progress_bar=False)
    found = made.run(**inputs(f"{RIGHT} The pro plan costs a wrong $9 a month.", UNKNOWN))
    made.close()
    of_nothing = 0.0 if name in {"haystack", "mastra"} else math.nan
    assert found["individual_scores"] == [0.0 if name == "llama_index" else 0.5, of_nothing]


async def test_answers_are_judged_concurrently_in_an_asynchronous_pipeline() -> None:
    judge = MeetingJudge(together=4)
    pipeline = Pipeline()
    pipeline.add_component(
        "faithfulness", HaystackFaithfulnessEvaluator(judge, concurrency=4, progress_bar=False)
    )
    found = await pipeline.run_async({"faithfulness": inputs(*[RIGHT] * 8)})
    assert found["faithfulness"]["individual_scores"] == [1.0] * 8
    assert judge.most == 4


def test_a_pipeline_runs_is_written_and_read_again() -> None:
    pipeline = Pipeline()
    made = HaystackFaithfulnessEvaluator({"kind": "local"}, progress_bar=False, score="mastra", concurrency=2)
    pipeline.add_component("faithfulness", made)
    read = Pipeline.loads(pipeline.dumps(), allowed_modules=["guardrail.integrations.haystack"])
    assert read.to_dict() == pipeline.to_dict()
    found = read.run({"faithfulness": inputs(RIGHT, WRONG)})["faithfulness"]
    assert found["individual_scores"] == [1.0, 0.0]


def test_texts_of_another_component_come_in_by_a_connection() -> None:
    @component
    class Source:
        @component.output_types(questions=list[str], contexts=list[list[str]], answers=list[str])
        def run(self) -> dict[str, Any]:
            return {"questions": ["?"], "contexts": [[PRICES]], "answers": [WRONG]}

    pipeline = Pipeline()
    pipeline.add_component("source", Source())
    pipeline.add_component("faithfulness", HaystackFaithfulnessEvaluator(progress_bar=False))
    pipeline.connect("source.questions", "faithfulness.questions")
    pipeline.connect("source.contexts", "faithfulness.contexts")
    pipeline.connect("source.answers", "faithfulness.predicted_answers")
    assert pipeline.run({})["faithfulness"]["score"] == 0.0


@pytest.mark.parametrize("name", ["questions", "contexts", "predicted_answers"])
def test_lists_of_different_lengths_are_told(evaluator: HaystackFaithfulnessEvaluator, name: str) -> None:
    given = inputs(RIGHT, RIGHT)
    given[name] = given[name][:1]
    with pytest.raises(ValueError, match=f"1 {name}"):
        evaluator.run(**given)


def test_a_failure_raises_or_is_a_row_without_score() -> None:
    def fail(request: Any) -> Any:
        raise JudgeUnavailable("no connection")

    failing = HaystackFaithfulnessEvaluator(FaultyJudge(fail), progress_bar=False)
    with pytest.raises(ValueError, match="no connection"):
        failing.run(**inputs(RIGHT))
    with pytest.raises(ValueError, match="no connection"):
        asyncio.run(failing.run_async(**inputs(RIGHT)))
    failing.close()


def test_one_answer_that_fails_leaves_the_others_their_scores(
    evaluator: HaystackFaithfulnessEvaluator,
) -> None:
    given = inputs(RIGHT, "half a pair: \ud800", WRONG)
    with pytest.raises(ValueError, match="surrogate") as caught:
        evaluator.run(**given)
    assert isinstance(caught.value.__cause__, InputError)
    evaluator.raise_on_failure = False
    found = evaluator.run(**given)
    assert found["individual_scores"] == [1.0, math.nan, 0.0]
    assert found["score"] == 0.5
    assert [result["status"] for result in found["results"]] == ["evaluated", "error", "evaluated"]
    assert "surrogate" in found["results"][1]["reason"]
    assert found["meta"][1] == {"error": "InputError"}


@pytest.mark.parametrize("contexts", [PRICES, None, 5])
def test_contexts_that_are_no_list_fail_only_their_answer(
    evaluator: HaystackFaithfulnessEvaluator, contexts: Any
) -> None:
    given = inputs(RIGHT, RIGHT) | {"contexts": [contexts, [PRICES]]}
    with pytest.raises(ValueError, match="contexts: give a list"):
        evaluator.run(**given)
    evaluator.raise_on_failure = False
    found = evaluator.run(**given)
    assert found["individual_scores"] == [math.nan, 1.0]
    assert "contexts: give a list" in found["results"][0]["reason"]


def test_a_component_that_takes_numbers_connects_behind_it() -> None:
    @component
    class Threshold:
        @component.output_types(passed=bool)
        def run(self, score: float, scores: list[float]) -> dict[str, Any]:
            return {"passed": score >= 0.5 and len(scores) == 1}

    pipeline = Pipeline()
    pipeline.add_component("faithfulness", HaystackFaithfulnessEvaluator(WordJudge(), progress_bar=False))
    pipeline.add_component("threshold", Threshold())
    pipeline.connect("faithfulness.score", "threshold.score")
    pipeline.connect("faithfulness.individual_scores", "threshold.scores")
    assert pipeline.run({"faithfulness": inputs(RIGHT)})["threshold"] == {"passed": True}


@pytest.mark.parametrize("undefined", [float("nan"), 0.0])
def test_a_pipeline_that_is_read_again_is_equal(undefined: float) -> None:
    pipeline = Pipeline()
    made = HaystackFaithfulnessEvaluator(progress_bar=False, undefined_score=undefined)
    pipeline.add_component("faithfulness", made)
    assert Pipeline.loads(pipeline.dumps(), allowed_modules=["guardrail.integrations.haystack"]) == pipeline


def test_progress_is_shown_unless_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    made = HaystackFaithfulnessEvaluator(WordJudge())
    made.run(**inputs(RIGHT, RIGHT, RIGHT))
    assert "3/3" in capsys.readouterr().err
    made.progress_bar = False
    made.run(**inputs(RIGHT))
    made.close()
    assert capsys.readouterr().err == ""


async def test_an_llm_judges_as_its_settings_say() -> None:
    async with LlmServer() as server:
        llm = {"base_url": server.url, "model": "judge-1"}
        made = HaystackFaithfulnessEvaluator({"kind": "llm", "llm": llm}, progress_bar=False)
        await made.warm_up_async()
        found = await made.run_async(**inputs(RIGHT, WRONG))
        await made.close_async()
    assert found["individual_scores"] == [1.0, 1.0], "the stand-in finds everything supported"
    assert len(server.calls) == 2
    assert found["meta"][0]["usage"]["judge_calls"] == 1


@pytest.mark.parametrize(("code", "said"), examples("Haystack"))
def test_the_examples_of_the_page_print_what_it_says(code: str, said: str) -> None:
    assert printed_by(code) == said
