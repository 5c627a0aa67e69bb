"""The guard in Ragas itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.metrics import Faithfulness as TheirSingleTurnFaithfulness
from ragas.metrics.collections import Faithfulness as TheirFaithfulness
from ragas.run_config import RunConfig

from guardrail.errors import ConfigError, InputError, JudgeUnavailable
from guardrail.integrations.ragas import RagasFaithfulness, RagasSingleTurnFaithfulness
from tests.support.judges import FaultyJudge, WordJudge
from tests.unit.integrations.judges import MeetingJudge
from tests.unit.integrations.page import examples, printed_by

ROOT = Path(__file__).parents[3]
PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."
UNKNOWN = "I don't know."


def given(answer: str) -> dict[str, Any]:
    return {"user_input": "How much?", "response": answer, "retrieved_contexts": [PRICES]}


def dataset(*answers: str, **more: Any) -> EvaluationDataset:
    return EvaluationDataset.from_list([{**given(answer), **more} for answer in answers])


def failing(_: Any) -> Any:
    raise JudgeUnavailable("no connection")


@pytest.fixture
def metric() -> Iterator[RagasFaithfulness]:
    made = RagasFaithfulness()
    yield made
    made.close()


@pytest.fixture
def single() -> Iterator[RagasSingleTurnFaithfulness]:
    made = RagasSingleTurnFaithfulness()
    yield made
    made.close()


# ------------------------------------------------------------------------------------ collections


def test_the_example_of_their_documentation_runs_with_our_class(capsys: pytest.CaptureFixture[str]) -> None:
    doc = str(TheirFaithfulness.__doc__)
    lines = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", doc, re.MULTILINE)
    code = "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith("metric =")) :])
    assert code.count("Faithfulness(llm=llm)") == 1
    ours = code.replace("Faithfulness(llm=llm)", "RagasFaithfulness()")
    scope: dict[str, Any] = {"RagasFaithfulness": RagasFaithfulness}
    exec(f"async def main():\n{textwrap.indent(ours, '    ')}\n    metric.close()", scope)  # noqa: S102 - what is tested
    asyncio.run(scope["main"]())
    assert re.fullmatch(r"Faithfulness Score: [01]\.0\n", capsys.readouterr().out)


def test_a_score_comes_with_its_reason_and_all_of_the_verdict(metric: RagasFaithfulness) -> None:
    found = metric.score(**given(f"{RIGHT} {WRONG}"))
    assert found.value == 0.5
    assert f"Contradicted (major: price): “{WRONG}”" in found.reason
    assert found.traces["input"] == given(f"{RIGHT} {WRONG}")
    right, wrong = found.traces["output"]["claims"]
    assert (right["verdict"], wrong["verdict"], wrong["severity"]) == (
        "SUPPORTED",
        "CONTRADICTED",
        "major",
    )
    assert right["evidence"][0]["quote"] == PRICES


def test_the_statements_of_a_sentence_count_and_are_in_the_traces(metric: RagasFaithfulness) -> None:
    found = metric.score(**given("The basic plan costs $49 a month and includes 90 seats."))
    assert found.value == 0.5
    assert [(each["statement"], each["verdict"]) for each in found.traces["output"]["statements"]] == [
        ("The basic plan costs $49 a month.", 1),
        ("The basic plan includes 90 seats.", 0),
    ]


async def test_batches_are_scored_at_once_and_an_answer_that_states_nothing_has_no_score() -> None:
    judge = MeetingJudge(together=2)
    metric = RagasFaithfulness(judge)
    found = await metric.abatch_score([given(RIGHT), given(UNKNOWN), given(RIGHT)])
    await metric.aclose()
    assert [each.value for each in found] == [1.0, None, 1.0]
    assert found[1].reason.startswith("the answer states nothing that can be checked")
    assert judge.most == 2


def test_plain_batches_keep_their_order(metric: RagasFaithfulness) -> None:
    assert [each.value for each in metric.batch_score([given(RIGHT), given(WRONG)])] == [1.0, 0.0]


def test_documents_with_ids_and_no_question_are_taken(metric: RagasFaithfulness) -> None:
    found = metric.score(response=RIGHT, retrieved_contexts=[{"id": "terms", "text": PRICES}])
    assert found.traces["output"]["claims"][0]["evidence"][0]["context_id"] == "terms"
    assert metric.score(response=RIGHT, retrieved_contexts=[]).value == 0.0


def test_what_is_wrong_is_told(metric: RagasFaithfulness) -> None:
    with pytest.raises(TypeError, match="answer"):
        metric.score(answer=RIGHT, retrieved_contexts=[PRICES])
    with pytest.raises(InputError, match="answer"):
        metric.score(response=None, retrieved_contexts=[PRICES])
    with pytest.raises(ConfigError, match="score: 'mean' is unknown"):
        RagasFaithfulness(score="mean")
    with pytest.raises(ConfigError, match="score: 'mean' is unknown"):
        RagasSingleTurnFaithfulness(score="mean")
    with pytest.raises(JudgeUnavailable, match="no connection"):
        RagasFaithfulness(FaultyJudge(failing)).score(**given(RIGHT))


def test_another_published_score_can_be_chosen() -> None:
    metric = RagasFaithfulness(WordJudge(), score="llama_index")
    assert metric.score(**given(f"{RIGHT} The pro plan costs a wrong $9.")).value == 0.0
    metric.close()


# --------------------------------------------------------------------------------------- evaluate


def test_a_dataset_is_evaluated_and_its_traces_have_the_verdicts(single: RagasSingleTurnFaithfulness) -> None:
    samples = dataset(RIGHT, WRONG, UNKNOWN, retrieved_context_ids=["terms"])
    found = evaluate(samples, metrics=[single], show_progress=False)
    first, second, third = found["faithfulness"]
    assert (first, second) == (1.0, 0.0)
    assert math.isnan(third)
    assert str(found) == "{'faithfulness': 0.5000}"
    assert list(found.to_pandas().columns)[-1] == "faithfulness"
    told = [trace["faithfulness"]["verdicts"]["output"] for trace in found.traces]
    assert [each["value"] for each in told] == [1.0, 0.0, None]
    assert told[2]["reason"].startswith("the answer states nothing that can be checked")
    assert told[0]["verdict"]["claims"][0]["evidence"][0]["context_id"] == "terms"


def test_samples_are_scored_one_by_one(single: RagasSingleTurnFaithfulness) -> None:
    assert single.single_turn_score(SingleTurnSample(**given(RIGHT))) == 1.0
    assert asyncio.run(single.single_turn_ascore(SingleTurnSample(**given(WRONG)), timeout=60)) == 0.0
    with pytest.raises(ValueError, match=r"^response: missing"):
        single.single_turn_score(SingleTurnSample(retrieved_contexts=[PRICES]))
    with pytest.raises(ValueError, match=r"^retrieved_contexts: missing"):
        single.single_turn_score(SingleTurnSample(response=RIGHT))


def test_it_asks_for_what_theirs_asks_for_or_less(single: RagasSingleTurnFaithfulness) -> None:
    theirs = TheirSingleTurnFaithfulness().required_columns["SINGLE_TURN"]
    assert single.required_columns["SINGLE_TURN"] == theirs - {"user_input"}
    assert single.name == TheirSingleTurnFaithfulness().name
    with pytest.raises(ValueError, match="retrieved_contexts"):
        evaluate(EvaluationDataset.from_list([{"response": RIGHT}]), metrics=[single], show_progress=False)


def test_answers_of_a_dataset_are_judged_at_once_as_many_as_configured() -> None:
    judge = MeetingJudge(together=3)
    single = RagasSingleTurnFaithfulness(judge, concurrency=3)
    found = evaluate(dataset(*[RIGHT] * 6), metrics=[single], show_progress=False)
    single.close()
    assert found["faithfulness"] == [1.0] * 6
    assert judge.most == 3


async def test_callbacks_are_optional_as_in_theirs(single: RagasSingleTurnFaithfulness) -> None:
    sample = SingleTurnSample(user_input="?", response=RIGHT, retrieved_contexts=[PRICES])
    assert await single._single_turn_ascore(sample, None) == 1.0


def test_a_failure_is_nan_or_raises_as_ragas_is_told() -> None:
    single = RagasSingleTurnFaithfulness(judge=FaultyJudge(failing))
    config = RunConfig(max_retries=1)
    found = evaluate(dataset(RIGHT), metrics=[single], run_config=config, show_progress=False)
    assert math.isnan(found["faithfulness"][0])
    with pytest.raises(JudgeUnavailable, match="no connection"):
        evaluate(
            dataset(RIGHT), metrics=[single], run_config=config, show_progress=False, raise_exceptions=True
        )
    single.close()


NOTEBOOK = """
import asyncio, warnings
warnings.simplefilter("ignore")
from ragas import EvaluationDataset, evaluate
from guardrail.integrations.ragas import RagasFaithfulness, RagasSingleTurnFaithfulness

sample = {"user_input": "?", "response": "It costs $5.", "retrieved_contexts": ["It costs $5."]}
before, after = RagasSingleTurnFaithfulness(), RagasSingleTurnFaithfulness()

async def cell():
    for metric in (before, before, after):
        found = evaluate(EvaluationDataset.from_list([sample]), metrics=[metric], show_progress=False)
        assert found["faithfulness"] == [1.0], found
    assert (await RagasFaithfulness().ascore(**sample)).value == 1.0

asyncio.run(cell())
"""


def test_it_works_where_ragas_patches_the_event_loop_as_in_a_notebook() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("code", "said"), examples("Ragas"))
def test_the_examples_of_the_page_print_what_it_says(code: str, said: str) -> None:
    assert printed_by(code) == said
