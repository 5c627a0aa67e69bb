"""The guard in Haystack itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

import inspect
import json
import math
import re
import textwrap
import threading
from collections.abc import Iterator
from typing import Any

import haystack
import pytest
from haystack import Document, Pipeline, component
from haystack.components.evaluators import FaithfulnessEvaluator as TheirEvaluator
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from guardrail.errors import ConfigError, InputError
from guardrail.evals.scores import SCORES
from guardrail.integrations.haystack import FaithfulnessEvaluator
from tests.support.judges import WordJudge
from tests.support.llm_server import LlmServer
from tests.unit.integrations.conformance.in_haystack import EXAMPLE, Scripted
from tests.unit.integrations.judges import MeetingJudge
from tests.unit.integrations.page import examples, printed_by

PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."
UNKNOWN = "I don't know."
NEEDS_TRUST = "allowed_modules" in inspect.signature(Pipeline.loads).parameters  # from Haystack 3 on
AsyncPipeline = Pipeline if hasattr(Pipeline, "run_async") else getattr(haystack, "AsyncPipeline")  # noqa: B009


@component
class AsyncGenerator:
    def __init__(self) -> None:
        self.threads: list[int] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        raise AssertionError(messages)

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, Any]:
        self.threads.append(threading.get_ident())
        replied: dict[str, Any] = Scripted().run(messages)
        return replied


def read_again(pipeline: Pipeline) -> Pipeline:
    trusted = {"allowed_modules": ["guardrail.integrations.haystack", __name__]}
    return Pipeline.loads(pipeline.dumps(), **trusted if NEEDS_TRUST else {})


def inputs(*answers: str) -> dict[str, Any]:
    many = len(answers)
    return {
        "questions": ["How much?"] * many,
        "contexts": [[PRICES]] * many,
        "predicted_answers": list(answers),
    }


@pytest.fixture
def evaluator() -> Iterator[FaithfulnessEvaluator]:
    made = FaithfulnessEvaluator(progress_bar=False)
    made.warm_up()
    yield made
    made.close()


def test_the_example_of_their_documentation_runs_with_our_class(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TheirEvaluator.__doc__, re.DOTALL)
    code, shown, _ = textwrap.dedent(example).partition('print(result["score"])\n')
    code += f'{shown}print(result["results"])'  # what it prints stands behind each
    ours = code.replace(
        "from haystack.components.evaluators import FaithfulnessEvaluator",
        "from guardrail.integrations.haystack import FaithfulnessEvaluator",
    )
    assert ours.count("guardrail") == 1
    exec(ours, {})  # noqa: S102 - it is what is tested
    scores, score, results = capsys.readouterr().out.splitlines()
    assert (scores, score) == ("[0.5]", "0.5")
    assert "Python was created by George Lucas." in results


def test_verdicts_are_reachable_with_evidence_and_severity(evaluator: FaithfulnessEvaluator) -> None:
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


def test_an_answer_that_states_nothing_counts_as_in_theirs_or_not_at_all(
    evaluator: FaithfulnessEvaluator,
) -> None:
    found = evaluator.run(**inputs(UNKNOWN, RIGHT, f"{RIGHT} {WRONG}", ""))
    assert found["individual_scores"] == [0.0, 1.0, 0.5, 0.0]
    assert found["score"] == 0.375
    assert "states nothing that can be checked, which counts as 0" in found["results"][0]["reason"]
    strict = FaithfulnessEvaluator(progress_bar=False, score="strict")
    found = strict.run(**inputs(UNKNOWN, RIGHT, f"{RIGHT} {WRONG}"))
    assert found["individual_scores"] == [math.nan, 1.0, 0.5]
    assert found["score"] == 0.75
    assert math.isnan(strict.run(**inputs())["score"])
    strict.close()


@pytest.mark.parametrize("name", sorted(SCORES))
def test_every_published_score_can_be_chosen(name: str) -> None:
    made = FaithfulnessEvaluator(judge=WordJudge(), score=name, progress_bar=False)
    found = made.run(**inputs(f"{RIGHT} The pro plan costs a wrong $9 a month.", UNKNOWN))
    made.close()
    of_nothing = 0.0 if name in {"haystack", "mastra"} else math.nan
    assert found["individual_scores"] == [0.0 if name == "llama_index" else 0.5, of_nothing]


async def test_answers_are_judged_concurrently_in_an_asynchronous_pipeline() -> None:
    judge = MeetingJudge(together=4)
    pipeline = AsyncPipeline()
    pipeline.add_component(
        "faithfulness", FaithfulnessEvaluator(judge=judge, concurrency=4, progress_bar=False)
    )
    found = await pipeline.run_async({"faithfulness": inputs(*[RIGHT] * 8)})
    assert found["faithfulness"]["individual_scores"] == [1.0] * 8
    assert judge.most == 4


def test_a_pipeline_runs_is_written_and_read_again() -> None:
    pipeline = Pipeline()
    made = FaithfulnessEvaluator(judge={"kind": "local"}, progress_bar=False, score="mastra", concurrency=2)
    pipeline.add_component("faithfulness", made)
    read = read_again(pipeline)
    assert read.to_dict() == pipeline.to_dict()
    found = read.run({"faithfulness": inputs(RIGHT, WRONG)})["faithfulness"]
    assert found["individual_scores"] == [1.0, 0.0]


def test_one_answer_that_fails_leaves_the_others_their_scores(
    evaluator: FaithfulnessEvaluator,
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
    evaluator: FaithfulnessEvaluator, contexts: Any
) -> None:
    given = inputs(RIGHT, RIGHT) | {"contexts": [contexts, [PRICES]]}
    with pytest.raises(ValueError, match="contexts: give a list"):
        evaluator.run(**given)
    evaluator.raise_on_failure = False
    found = evaluator.run(**given)
    assert found["individual_scores"] == [math.nan, 1.0]
    assert "contexts: give a list" in found["results"][0]["reason"]


# --------------------------------------------------------------------------- the LLM of their users


def test_a_chat_generator_is_the_judges_model() -> None:
    model = Scripted()
    made = FaithfulnessEvaluator(chat_generator=model, progress_bar=False)
    found = made.run(**inputs(RIGHT, f"{RIGHT} The trial is free."))
    made.close()
    assert found["individual_scores"] == [1.0, 0.5]
    assert found["meta"][0]["judges"] == ["llm:Scripted"]
    assert found["meta"][0]["usage"]["prompt_tokens"] == 70
    assert model.warm
    for wrong, named in (("gpt-4o", "a str"), (Scripted, "a Scripted")):
        with pytest.raises(
            TypeError, match=f"chat_generator: give a chat generator of Haystack, not {named}"
        ):
            FaithfulnessEvaluator(chat_generator=wrong)


async def test_an_asynchronous_one_is_asked_on_the_callers_loop() -> None:
    model = AsyncGenerator()
    made = FaithfulnessEvaluator(chat_generator=model, progress_bar=False)
    found = await made.run_async(**inputs(RIGHT))
    await made.close_async()
    assert found["score"] == 1.0
    assert model.threads == [threading.get_ident()]


def test_examples_stand_in_the_llms_prompt() -> None:
    model = Scripted()
    made = FaithfulnessEvaluator([EXAMPLE], False, True, model)
    assert made.run(**inputs(RIGHT))["score"] == 1.0
    made.close()
    shown = model.script.asked[0].partition("# Examples")[2].partition("The marker is")[0]
    assert "[2] Rome is the capital of Italy." in shown
    assert "c1: Rome is the capital.\nc2: It has 4 million inhabitants." in shown
    assert '{"v":["c1 2 supported","c2 unsupported"]}' in shown
    assert "The basic plan" not in shown


def test_examples_that_nobody_would_read_are_told() -> None:
    with pytest.raises(ConfigError, match="'examples' is unknown: this judge asks no LLM"):
        FaithfulnessEvaluator([EXAMPLE])
    wrong: Any
    for wrong in (
        {"inputs": {}},
        {**EXAMPLE, "outputs": {"statements": ["a", "b"], "statement_scores": [1]}},
        5,
    ):
        with pytest.raises(ValueError, match=r"examples: .* each has inputs with questions"):
            FaithfulnessEvaluator([wrong], chat_generator=Scripted())


def test_what_theirs_has_written_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    written = TheirEvaluator(chat_generator=OpenAIChatGenerator(), progress_bar=False).to_dict()
    read = FaithfulnessEvaluator.from_dict(written)
    assert isinstance(read._chat_generator, OpenAIChatGenerator)
    assert read.progress_bar is False
    assert read.to_dict()["init_parameters"]["examples"] == written["init_parameters"]["examples"]
    moved = {**written, "type": "guardrail.integrations.haystack.FaithfulnessEvaluator"}
    assert FaithfulnessEvaluator.from_dict(moved).to_dict() == read.to_dict()
    written["init_parameters"]["api"] = "openai"
    with pytest.raises(TypeError, match="'api'"):
        FaithfulnessEvaluator.from_dict(written)


def test_a_secret_of_theirs_may_stand_in_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-secret")
    llm = {"api_key": Secret.from_env_var(["NOT_SET_KEY", "JUDGE_KEY"]), "base_url": "http://127.0.0.1:9/v1"}
    made = FaithfulnessEvaluator(judge={"kind": "llm", "llm": llm})
    assert made.to_dict()["init_parameters"]["judge"]["llm"]["api_key"] == {"env": "JUDGE_KEY"}
    with pytest.raises(ValueError, match="token-based secret"):
        FaithfulnessEvaluator(judge={"llm": {"api_key": Secret.from_token("sk-secret")}})


@pytest.mark.parametrize("name", ["questions", "contexts", "predicted_answers"])
def test_inputs_are_checked_as_theirs_are(evaluator: FaithfulnessEvaluator, name: str) -> None:
    given = inputs(RIGHT)
    with pytest.raises(ValueError, match=f"^{name}: give a list, not a str"):
        evaluator.run(**given | {name: "text"})
    del given[name]
    with pytest.raises(ValueError, match=f"^{name}: give a list"):
        evaluator.run(**given)
    with pytest.raises(TypeError, match=r"^answers: unknown input"):
        evaluator.run(**inputs(RIGHT), answers=[RIGHT])
    with pytest.raises(TypeError, match="judges"):
        FaithfulnessEvaluator(judges=WordJudge())  # type: ignore[call-arg]


async def test_an_llm_judges_as_its_settings_say() -> None:
    async with LlmServer() as server:
        llm = {"base_url": server.url, "model": "judge-1"}
        made = FaithfulnessEvaluator(judge={"kind": "llm", "llm": llm}, progress_bar=False)
        await made.warm_up_async()
        found = await made.run_async(**inputs(RIGHT, WRONG))
        await made.close_async()
    assert found["individual_scores"] == [1.0, 1.0], "the stand-in finds everything supported"
    assert len(server.calls) == 2
    assert found["meta"][0]["usage"]["judge_calls"] == 1


@pytest.mark.parametrize(("code", "said"), examples("Haystack"))
def test_the_examples_of_the_page_print_what_it_says(code: str, said: str) -> None:
    assert printed_by(code) == said
