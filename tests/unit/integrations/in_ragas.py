"""The guard in Ragas itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.outputs import Generation, LLMResult
from ragas import EvaluationDataset, SingleTurnSample, evaluate
from ragas.llms import BaseRagasLLM, LangchainLLMWrapper
from ragas.metrics.collections import Faithfulness as TheirFaithfulness
from ragas.run_config import RunConfig

from guardrail.errors import ConfigError, InputError, JudgeUnavailable
from guardrail.integrations.ragas import Faithfulness, FaithfulnesswithHHEM, faithfulness
from tests.support.judges import FaultyJudge
from tests.unit.integrations.conformance.langchain_model import ChatOpenAI
from tests.unit.integrations.conformance.ragas_models import Instructed
from tests.unit.integrations.conformance.script import Script
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
def metric() -> Iterator[Faithfulness]:
    made = Faithfulness()
    yield made
    made.close()


# ------------------------------------------------------------------------------------ collections


def test_the_example_of_their_documentation_runs_with_our_class(capsys: pytest.CaptureFixture[str]) -> None:
    doc = str(TheirFaithfulness.__doc__)
    lines = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", doc, re.MULTILINE)
    code = "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith("metric =")) :])
    assert code.count("Faithfulness(llm=llm)") == 1
    ours = code.replace("Faithfulness(llm=llm)", "Faithfulness()")
    scope: dict[str, Any] = {"Faithfulness": Faithfulness}
    exec(f"async def main():\n{textwrap.indent(ours, '    ')}\n    metric.close()", scope)  # noqa: S102 - what is tested
    asyncio.run(scope["main"]())
    assert re.fullmatch(r"Faithfulness Score: [01]\.0\n", capsys.readouterr().out)


def test_a_score_comes_with_its_reason_and_all_of_the_verdict(metric: Faithfulness) -> None:
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


def test_the_statements_of_a_sentence_count_and_are_in_the_traces(metric: Faithfulness) -> None:
    found = metric.score(**given("The basic plan costs $49 a month and includes 90 seats."))
    assert found.value == 0.5
    assert [(each["statement"], each["verdict"]) for each in found.traces["output"]["statements"]] == [
        ("The basic plan costs $49 a month.", 1),
        ("The basic plan includes 90 seats.", 0),
    ]


async def test_batches_are_scored_at_once_and_an_answer_that_states_nothing_has_no_score() -> None:
    judge = MeetingJudge(together=2)
    metric = Faithfulness(judge=judge)
    found = await metric.abatch_score([given(RIGHT), given(UNKNOWN), given(RIGHT)])
    await metric.aclose()
    assert (found[0].value, found[2].value) == (1.0, 1.0)
    assert math.isnan(found[1].value)
    assert found[1].reason.startswith("the answer states nothing that can be checked")
    assert judge.most == 2


def test_documents_with_ids_are_taken(metric: Faithfulness) -> None:
    found = metric.score(**given(RIGHT) | {"retrieved_contexts": [{"id": "terms", "text": PRICES}]})
    assert found.traces["output"]["claims"][0]["evidence"][0]["context_id"] == "terms"


def test_what_is_wrong_is_told(metric: Faithfulness) -> None:
    with pytest.raises(TypeError, match="answer"):
        metric.score(**given(RIGHT), answer=RIGHT)
    with pytest.raises(InputError, match="answer"):
        metric.score(**given(RIGHT) | {"response": 5})
    with pytest.raises(ConfigError, match="unknown score 'mean'"):
        Faithfulness(score="mean")
    with pytest.raises(TypeError, match="nli_statements_prompt"):
        Faithfulness(nli_statements_prompt=None)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="llm: give a model of Ragas or LangChain, not a dict; or judge="):
        Faithfulness({"kind": "llm"})
    with pytest.raises(JudgeUnavailable, match="no connection"):
        Faithfulness(judge=FaultyJudge(failing)).score(**given(RIGHT))


# --------------------------------------------------------------------------------------- evaluate


def test_a_dataset_is_evaluated_and_its_traces_have_the_verdicts(metric: Faithfulness) -> None:
    samples = dataset(RIGHT, WRONG, UNKNOWN, retrieved_context_ids=["terms"])
    found = evaluate(samples, metrics=[metric], show_progress=False)
    first, second, third = found["faithfulness"]
    assert (first, second) == (1.0, 0.0)
    assert math.isnan(third)
    assert str(found) == "{'faithfulness': 0.5000}"
    assert list(found.to_pandas().columns)[-1] == "faithfulness"
    told = [trace["faithfulness"]["verdicts"]["output"] for trace in found.traces]
    assert [each["value"] for each in told] == [1.0, 0.0, None]
    assert told[2]["reason"].startswith("the answer states nothing that can be checked")
    assert told[0]["verdict"]["claims"][0]["evidence"][0]["context_id"] == "terms"


def test_the_metric_that_is_there_already_may_be_imported() -> None:
    found = evaluate(dataset(RIGHT, WRONG), metrics=[faithfulness], show_progress=False)
    faithfulness.close()
    assert found["faithfulness"] == [1.0, 0.0]


def test_samples_are_scored_one_by_one(metric: Faithfulness) -> None:
    assert metric.single_turn_score(SingleTurnSample(**given(RIGHT))) == 1.0
    assert asyncio.run(metric.single_turn_ascore(SingleTurnSample(**given(WRONG)), timeout=60)) == 0.0
    with pytest.raises(ValueError, match=r"^response: missing"):
        metric.single_turn_score(SingleTurnSample(retrieved_contexts=[PRICES]))
    with pytest.raises(ValueError, match=r"^retrieved_contexts: missing"):
        metric.single_turn_score(SingleTurnSample(response=RIGHT))


def test_answers_of_a_dataset_are_judged_at_once_as_many_as_configured() -> None:
    judge = MeetingJudge(together=3)
    metric = Faithfulness(judge=judge, concurrency=3)
    found = evaluate(dataset(*[RIGHT] * 6), metrics=[metric], show_progress=False)
    metric.close()
    assert found["faithfulness"] == [1.0] * 6
    assert judge.most == 3


# --------------------------------------------------------------------------- the LLM of their users


class TextModel(BaseRagasLLM):
    """One of the older interface."""

    def generate_text(self, prompt: Any, *_: Any, **__: Any) -> LLMResult:
        text = Script().reply("\n".join(each.content for each in prompt.to_messages()))
        used = {"token_usage": {"prompt_tokens": 50, "completion_tokens": 5}}
        return LLMResult(generations=[[Generation(text=text)]], llm_output=used)

    async def agenerate_text(self, prompt: Any, *_: Any, **__: Any) -> LLMResult:
        return self.generate_text(prompt)

    def is_finished(self, response: LLMResult) -> bool:
        return True


@pytest.mark.parametrize(
    ("llm", "name"),
    [
        (Instructed(), "their-model"),
        (Instructed(is_async=False), "their-model"),
        (TextModel(), "TextModel"),
        (LangchainLLMWrapper(ChatOpenAI()), "ChatOpenAI"),
        (ChatOpenAI(), "ChatOpenAI"),
    ],
)
async def test_a_model_of_theirs_is_the_judges(llm: Any, name: str) -> None:
    metric = Faithfulness(llm)
    found = await metric.ascore(**given(f"{RIGHT} The trial is free."))
    again = await metric.single_turn_ascore(SingleTurnSample(**given("It is new.")))
    await metric.aclose()
    assert (found.value, again) == (0.5, 0.0)
    output = found.traces["output"]
    assert {claim["judge"] for claim in output["claims"]} == {f"llm:{name}"}
    assert (output["usage"]["input_tokens"], output["usage"]["output_tokens"]) == (50, 5)
    if isinstance(llm, Instructed):
        assert (llm.threads[0] == threading.get_ident()) is llm.is_async


def test_a_runs_configuration_reaches_its_model() -> None:
    llm = TextModel()
    metric = Faithfulness(llm=llm)
    config = RunConfig(timeout=7)
    found = evaluate(dataset(RIGHT), metrics=[metric], run_config=config, show_progress=False)
    metric.close()
    assert found["faithfulness"] == [1.0]
    assert llm.run_config is config


async def test_prompts_of_the_llm_judge_are_shown_and_changed() -> None:
    assert Faithfulness().get_prompts() == {}
    llm = Instructed()
    metric = Faithfulness(llm=llm)
    assert metric.get_prompts().keys() == {"system", "user"}
    metric.set_prompts(system="Be strict.\n$reply_form\nThe marker is $marker")
    assert metric.get_prompts()["system"].startswith("Be strict.")
    assert (await metric.ascore(**given(RIGHT))).value == 1.0
    await metric.aclose()
    with pytest.raises(ConfigError, match="'n_l_i_statement_prompt' is unknown: there are system and user"):
        metric.set_prompts(n_l_i_statement_prompt="x")
    with pytest.raises(ConfigError, match="system: give a text, as get_prompts"):
        metric.set_prompts(system=TheirFaithfulness)


def test_the_variant_with_hhem_has_that_judge(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "guardrail")
    metric = FaithfulnesswithHHEM(llm=Instructed(), device="cpu", batch_size=10)
    assert metric.name == "faithfulness_with_hhem"
    assert metric._guard.parameters()["judge"]["kind"] == "hhem"
    assert "ragas.llm_not_asked metric='faithfulness_with_hhem'" in caplog.text
    with pytest.raises(ConfigError, match="device: the judge finds it by itself"):
        FaithfulnesswithHHEM(device="cuda:1")


NOTEBOOK = """
import asyncio, warnings
warnings.simplefilter("ignore")
from ragas import EvaluationDataset, evaluate
from guardrail.integrations.ragas import Faithfulness

sample = {"user_input": "?", "response": "It costs $5.", "retrieved_contexts": ["It costs $5."]}
before, after = Faithfulness(), Faithfulness()

async def cell():
    for metric in (before, before, after):
        found = evaluate(EvaluationDataset.from_list([sample]), metrics=[metric], show_progress=False)
        assert found["faithfulness"] == [1.0], found
    assert (await Faithfulness().ascore(**sample)).value == 1.0

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
