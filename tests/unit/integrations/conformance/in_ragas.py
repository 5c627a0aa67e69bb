"""Ragas' ``Faithfulness``, which it has twice, and ours (run by scripts/extras.py)."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

from datasets import Dataset
from ragas import EvaluationDataset, SingleTurnSample, aevaluate, evaluate
from ragas import metrics as theirs
from ragas.llms import LangchainLLMWrapper
from ragas.metrics import collections
from ragas.metrics.base import SingleTurnMetric
from ragas.metrics.result import MetricResult
from ragas.run_config import RunConfig

from guardrail.integrations import ragas as ours
from tests.unit.integrations.conformance.checks import Conformance, raised
from tests.unit.integrations.conformance.langchain_model import ChatOpenAI
from tests.unit.integrations.conformance.ragas_models import Instructed
from tests.unit.integrations.conformance.ragas_tests import NAMES, their_test
from tests.unit.integrations.conformance.script import (
    BORN,
    BORN_LATER,
    EINSTEIN,
    GAME,
    HALF,
    PLANT,
    PLANTS,
    PRICES,
    RIGHT,
    SUPER_BOWL,
    UNKNOWN,
    WRONG,
)


def sample(answer: str, *contexts: str, **other: Any) -> dict[str, Any]:
    return {"user_input": "?", "response": answer, "retrieved_contexts": list(contexts or [PRICES]), **other}


CASES = {
    "supported": sample(RIGHT),
    "not supported": sample(WRONG),
    "half supported": sample(HALF),
    "two sentences": sample(f"{RIGHT} {WRONG}"),
    "the documented birth": sample(BORN, EINSTEIN),
    "the documented birth on another day": sample(BORN_LATER, EINSTEIN),
    "the documented game": sample(GAME, SUPER_BOWL),
    "two contexts": sample(PLANT, *PLANTS),
}

# ------------------------------------------------------------------------- ragas.metrics.collections


def new(module: Any, **script: Any) -> Any:
    return module.new.Faithfulness(llm=Instructed(**script))


def ascore(module: Any, case: dict[str, Any]) -> Any:
    return asyncio.run(new(module).ascore(**case)).value


def score(module: Any, answer: str = HALF, **other: Any) -> Any:
    return new(module).score(**sample(answer, **other)).value


async def score_on_event_loop(module: Any) -> Any:
    return raised(lambda: score(module))


def batch_score(module: Any) -> Any:
    return [each.value for each in new(module).batch_score([*CASES.values()])]


async def abatch_score(module: Any) -> Any:
    return [each.value for each in await new(module).abatch_score([*CASES.values()])]


def result_as_number(module: Any) -> Any:
    result = new(module).score(**sample(HALF))
    return [isinstance(result, MetricResult), float(result), result + 1, result == 0.5]


def by_position(module: Any) -> Any:
    metric = module.new.Faithfulness(Instructed(), "mine")
    return [metric.name, metric.allowed_values, metric.score(**sample(HALF)).value]


def asked(module: Any) -> Any:
    metric = new(module)
    metric.score(**sample(RIGHT))
    return len(metric.llm.script.asked) > 0


# --------------------------------------------------------------------------------------- ragas.metrics


def old(module: Any, **script: Any) -> Any:
    return module.old.Faithfulness(llm=LangchainLLMWrapper(ChatOpenAI(**script)))


def single(module: Any, case: dict[str, Any], **options: Any) -> Any:
    return asyncio.run(old(module).single_turn_ascore(SingleTurnSample(**case), **options))


def with_instructed(module: Any) -> Any:
    return module.old.Faithfulness(llm=Instructed()).single_turn_score(SingleTurnSample(**sample(HALF)))


async def without_callbacks(module: Any) -> Any:
    return await old(module)._single_turn_ascore(SingleTurnSample(**sample(HALF)), None)


def parts(module: Any) -> Any:
    metric = module.old.Faithfulness(name="mine", llm=LangchainLLMWrapper(ChatOpenAI()))
    columns = {name: sorted(each) for name, each in metric.required_columns.items()}
    return [metric.name, metric.output_type, isinstance(metric, SingleTurnMetric), columns]


COLUMN_MISSING = EvaluationDataset.from_list([{"user_input": "?", "response": RIGHT}])


def of(*answers: str) -> EvaluationDataset:
    return EvaluationDataset.from_list([sample(each) for each in answers])


def evaluated(module: Any, samples: Any, *metrics: Any, **options: Any) -> Any:
    return evaluate(samples, [*metrics] or [old(module)], show_progress=False, **options)


def with_all_of_it(module: Any) -> Any:
    result = evaluated(module, of(RIGHT, WRONG, HALF))
    return [str(result), result.scores, [*result.to_pandas().columns]]


async def on_event_loop(module: Any) -> Any:
    return (await aevaluate(of(RIGHT, HALF), [old(module)], show_progress=False)).scores


def two_metrics(module: Any) -> Any:
    other = old(module)
    other.name = "other"
    return evaluated(module, of(HALF), old(module), other).scores


def mapped(module: Any) -> Any:
    names = {"user_input": "q", "response": "a", "retrieved_contexts": "c"}
    rows = Dataset.from_list([{names[name]: each for name, each in sample(HALF).items()}])
    return evaluated(module, rows, column_map=names).scores


def older_names(module: Any) -> Any:
    rows = Dataset.from_list([{"question": "?", "answer": HALF, "contexts": [PRICES]}])
    return evaluated(module, rows).scores


def failing(module: Any, **options: Any) -> Any:
    config = RunConfig(max_retries=1, max_wait=1)
    return evaluated(module, of(RIGHT), old(module, away_for=PRICES), run_config=config, **options).scores


def llm_of_evaluation(module: Any) -> Any:
    llm = ChatOpenAI()
    found = evaluated(module, of(WRONG), module.old.Faithfulness(), llm=LangchainLLMWrapper(llm)).scores
    return [found, len(llm.script.asked) > 0]


CONFORMANCE = Conformance(
    "ragas",
    33,
    SimpleNamespace(old=theirs, new=collections),
    SimpleNamespace(old=ours, new=ours),
    {
        **{f"their test: {name}": partial(their_test, name=name) for name in NAMES},
        **{f"ascore, {name}": partial(ascore, case=case) for name, case in CASES.items()},
        "score": score,
        "score on an event loop": score_on_event_loop,
        "batch_score": batch_score,
        "abatch_score": abatch_score,
        "a result as a number": result_as_number,
        "an answer without statements": lambda m: score(m, UNKNOWN),
        "no question": lambda m: raised(lambda: score(m, user_input="")),
        "no answer": lambda m: raised(lambda: score(m, "")),
        "no contexts": lambda m: raised(lambda: score(m, retrieved_contexts=[])),
        "a name as the llm": lambda m: bool(raised(lambda: m.new.Faithfulness(llm="gpt-4o"))),
        "parameters by position": by_position,
        "a model that is away": lambda m: bool(
            raised(lambda: new(m, away_for=PRICES).score(**sample(RIGHT)))
        ),
        "the llm is asked": asked,
        **{f"single_turn_ascore, {name}": partial(single, case=case) for name, case in CASES.items()},
        "single_turn_score": lambda m: old(m).single_turn_score(SingleTurnSample(**sample(HALF))),
        "single_turn_ascore, timeout": lambda m: single(m, sample(HALF), timeout=60),
        "_single_turn_ascore": without_callbacks,
        "single_turn_score, a model of llm_factory": with_instructed,
        "a sample without contexts": lambda m: single(m, sample(RIGHT, retrieved_contexts=[])),
        "name, columns, type": parts,
        "evaluate": with_all_of_it,
        "aevaluate": on_event_loop,
        "evaluate, an answer without statements": lambda m: evaluated(m, of(UNKNOWN, RIGHT)).scores,
        "evaluate, two metrics": two_metrics,
        "evaluate, column_map": mapped,
        "evaluate, the older names of columns": older_names,
        "evaluate, a missing column": lambda m: raised(lambda: evaluated(m, COLUMN_MISSING)),
        "evaluate, a failure": failing,
        "evaluate, raise_exceptions": lambda m: bool(raised(lambda: failing(m, raise_exceptions=True))),
        "evaluate, batch_size": lambda m: evaluated(m, of(RIGHT, WRONG, HALF), batch_size=2).scores,
        "evaluate, return_executor": lambda m: evaluated(m, of(RIGHT, WRONG), return_executor=True).results(),
        "evaluate, its llm": llm_of_evaluation,
        "names of prompts": lambda m: sorted(old(m).get_prompts()),
    },
    {
        f"their test: {NAMES[-1]}": "it wants an error for no `llm`; ours asks the local judge then.",
        "evaluate, its llm": "`evaluate` gives it only to metrics that must have one; give it to the metric.",
        "names of prompts": "Ragas asks twice, to cut and to judge; ours once, with `system` and `user`.",
    },
)

test_what_passes_with_theirs_passes_with_ours, test_the_page_says_so = CONFORMANCE.tests()
