"""The guard in LlamaIndex itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, Response, Settings, SummaryIndex
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.evaluation import EvaluationResult as TheirResult
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode

from guardrail.errors import ConfigError, InputError, JudgeUnavailable
from guardrail.integrations.llama_index import EvaluationResult, FaithfulnessEvaluator
from tests.support.judges import FaultyJudge, WordJudge
from tests.support.llm_server import LlmServer
from tests.unit.integrations.conformance.in_llama_index import Scripted
from tests.unit.integrations.judges import MeetingJudge
from tests.unit.integrations.page import examples, printed_by

PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."


def answered(answer: str | None, *nodes: tuple[str, str]) -> Response:
    sources = [NodeWithScore(node=TextNode(id_=id_, text=text)) for id_, text in nodes]
    return Response(answer, source_nodes=sources)


@pytest.fixture
def evaluator() -> Iterator[FaithfulnessEvaluator]:
    made = FaithfulnessEvaluator()
    yield made
    made.close()


def test_a_supported_answer_passes_and_another_fails_with_the_reason(
    evaluator: FaithfulnessEvaluator,
) -> None:
    right = evaluator.evaluate(query="How much?", response=RIGHT, contexts=[PRICES])
    assert isinstance(right, TheirResult)
    assert (right.passing, right.score, right.invalid_result) == (True, 1.0, False)
    assert (right.query, right.response, right.contexts) == ("How much?", RIGHT, [PRICES])
    wrong = evaluator.evaluate(response=f"{RIGHT} {WRONG}", contexts=[PRICES])
    assert (wrong.passing, wrong.score, wrong.invalid_result) == (False, 0.0, False)
    assert str(wrong.feedback).startswith("Of 2 claims, 1 is supported, 1 contradicted;")
    assert f"Contradicted (major: price): “{WRONG}”" in str(wrong.feedback)


def test_what_a_query_engine_answered_is_evaluated_against_its_nodes(
    evaluator: FaithfulnessEvaluator,
) -> None:
    index = SummaryIndex.from_documents(
        [Document(text=PRICES, id_="prices"), Document(text="We are open daily.", id_="hours")],
        embed_model=MockEmbedding(embed_dim=2),
    )
    response = index.as_query_engine(llm=MockLLM()).query("How much?")
    response.response = RIGHT  # the mock echoes its prompt
    found = evaluator.evaluate_response(query="How much?", response=response)
    assert found.passing
    assert found.verdict is not None
    (claim,) = found.verdict.claims
    (node,) = (each.node for each in response.source_nodes if each.node.get_content() == PRICES)
    assert [each.context_id for each in claim.evidence] == [node.node_id]


def test_an_answer_that_states_nothing_neither_passes_nor_fails(
    evaluator: FaithfulnessEvaluator,
) -> None:
    for answer in ("I don't know.", ""):
        found = evaluator.evaluate(response=answer, contexts=[PRICES])
        assert (found.passing, found.score, found.invalid_result) == (None, None, True)
        assert str(found.invalid_reason).startswith("the answer states nothing that can be checked")


async def test_an_argument_that_would_be_ignored_is_told(evaluator: FaithfulnessEvaluator) -> None:
    assert evaluator.evaluate("?", RIGHT, [PRICES], reference=WRONG).passing is True
    response = Response(RIGHT, source_nodes=[])
    other: Any = {"response_field": "sql_query"}
    with pytest.raises(TypeError, match="keyword argument 'response_field'"):
        await evaluator.aevaluate("?", RIGHT, [PRICES], **other)
    with pytest.raises(TypeError, match="keyword argument 'response_field'"):
        evaluator.evaluate_response("?", response, **other)


def test_a_failure_of_the_judge_is_no_verdict() -> None:
    def fail(_: Any) -> Any:
        raise JudgeUnavailable("no connection")

    with pytest.raises(JudgeUnavailable, match="no connection"):
        FaithfulnessEvaluator(judge=FaultyJudge(fail)).evaluate("?", RIGHT, [PRICES])


async def test_results_are_equal_if_what_theirs_has_is(evaluator: FaithfulnessEvaluator) -> None:
    first = evaluator.evaluate("?", WRONG, [PRICES])
    assert await evaluator.aevaluate("?", WRONG, [PRICES]) == first
    theirs = TheirResult(**first.model_dump(exclude={"verdict"}))
    assert theirs == first
    assert first != theirs.model_copy(update={"score": 1.0})
    assert first != WRONG
    read = EvaluationResult.model_validate_json(first.model_dump_json())
    assert read == first
    assert read.verdict == first.verdict


def test_another_published_score_stands_beside_the_same_passing() -> None:
    made = FaithfulnessEvaluator(judge=WordJudge(), score="strict")
    found = made.evaluate("?", f"{RIGHT} The pro plan costs a wrong $9.", [PRICES])
    assert (found.passing, found.score) == (False, 0.5)
    with pytest.raises(ConfigError, match="unknown score 'mean'"):
        FaithfulnessEvaluator(score="mean")


def test_a_batch_is_evaluated_as_concurrently_as_its_runner() -> None:
    judge = MeetingJudge(together=4)
    runner = BatchEvalRunner({"faithfulness": FaithfulnessEvaluator(judge=judge)}, workers=4)
    found = runner.evaluate_responses(queries=["?"] * 8, responses=[answered(RIGHT, ("terms", PRICES))] * 8)
    assert [each.passing for each in found["faithfulness"]] == [True] * 8
    assert judge.most == 4


def test_the_local_judge_has_no_prompts(evaluator: FaithfulnessEvaluator) -> None:
    assert evaluator.get_prompts() == {}
    template = PromptTemplate("{query_str} {context_str}")
    with pytest.raises(ConfigError, match=r"^eval_template: this judge asks no LLM"):
        evaluator.update_prompts({"eval_template": template})
    with pytest.raises(ConfigError, match=r"^eval_template: this judge asks no LLM"):
        FaithfulnessEvaluator(eval_template=template)


@pytest.mark.parametrize("in_file", [False, True])
async def test_the_prompts_of_an_llm_judge_are_shown_and_changed(tmp_path: Path, in_file: bool) -> None:
    async with LlmServer() as server:
        llm = {"base_url": server.url, "model": "m"}
        file = tmp_path / "guardrail.yaml"
        file.write_text(f"judge: {{kind: llm, llm: {{base_url: '{server.url}', model: m}}}}\n")
        made = (
            FaithfulnessEvaluator(settings=file)
            if in_file
            else FaithfulnessEvaluator(judge={"kind": "llm", "llm": llm})
        )
        before = made.get_prompts()
        assert before.keys() == {"eval_template", "user_template"}
        assert "$claims" in before["user_template"].get_template()
        assert (await made.aevaluate("?", RIGHT, [PRICES])).passing
        strict = PromptTemplate("Be strict. " + before["eval_template"].get_template())
        made.update_prompts({"eval_template": strict})
        assert (await made.aevaluate("?", WRONG, [PRICES])).passing, "the stand-in finds everything supported"
        await made.aclose()
    first, second = (str(call.body["messages"][0]["content"]) for call in server.calls)
    assert second.startswith(f"Be strict. {first[:1000]}"), "what is behind has a marker, anew in each call"
    assert made.get_prompts()["user_template"].get_template() == before["user_template"].get_template()


def test_a_prompt_that_lacks_a_variable_is_refused_and_changes_nothing() -> None:
    made = FaithfulnessEvaluator(judge={"kind": "llm", "llm": {"base_url": "http://127.0.0.1:9/v1"}})
    before = made.get_prompts()
    with pytest.raises(ConfigError, match=r"missing variables? \$marker"):
        made.update_prompts({"eval_template": PromptTemplate("Say YES or NO.")})
    with pytest.raises(ConfigError, match=r"^refine_template: there are eval_template and user_template"):
        made.update_prompts({"refine_template": PromptTemplate("x")})
    assert made.get_prompts() == before
    with pytest.raises(
        ConfigError, match=r"^prompt system: missing variables \$marker, \$reply_form in the system prompt; "
    ):
        FaithfulnessEvaluator(Scripted(), eval_template="Say YES or NO.")
    with pytest.raises(ConfigError, match=r"^refine_template: one call sees all"):
        FaithfulnessEvaluator(Scripted(), refine_template="Say YES or NO.")


# --------------------------------------------------------------------------- the LLM of their users


async def test_an_llm_is_the_judges_model() -> None:
    llm = Scripted()
    made = FaithfulnessEvaluator(llm)
    right = await made.aevaluate("?", RIGHT, [PRICES])
    wrong = await made.aevaluate("?", f"{RIGHT} The trial is free.", [PRICES])
    plain = made.evaluate("?", "It is new.", [PRICES])  # though a loop runs here
    await made.aclose()
    assert (right.passing, wrong.passing, plain.passing) == (True, False, False)
    assert right.verdict is not None
    assert right.verdict.claims[0].judge == "llm:their-model"
    assert right.verdict.usage.input_tokens == 60
    assert len(llm.script.asked) == 3
    assert llm.script.asked[0].startswith("system: You check whether the claims")


async def test_a_template_with_our_variables_is_the_llms_system_prompt() -> None:
    llm = Scripted()
    text = "Be strict.\n$reply_form\nThe marker is $marker"
    assert (await FaithfulnessEvaluator(llm, eval_template=text).aevaluate("?", RIGHT, [PRICES])).passing
    assert llm.script.asked[0].startswith("system: Be strict.\n")


@pytest.mark.parametrize("given", [None, MockLLM(), Scripted()])
def test_the_llm_of_settings_counts_if_the_application_has_set_it(
    given: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Settings, "_llm", given)
    caplog.set_level("INFO", "guardrail")
    made = FaithfulnessEvaluator()
    found = made.evaluate("?", RIGHT, [PRICES])
    made.close()
    assert found.verdict is not None
    if isinstance(given, Scripted):
        assert found.verdict.claims[0].judge == "llm:their-model"
        assert "llama_index.settings_llm llm='Scripted'" in caplog.text
    else:
        assert found.verdict.claims[0].judge == "local"
        assert "settings_llm" not in caplog.text
    local = FaithfulnessEvaluator(judge={"kind": "local"})
    found = local.evaluate("?", RIGHT, [PRICES])
    assert found.verdict is not None
    assert found.verdict.claims[0].judge == "local"
    local.close()


def test_contexts_that_are_no_texts_are_told(evaluator: FaithfulnessEvaluator) -> None:
    with pytest.raises(InputError, match=r"^contexts\.1"):
        evaluator.evaluate("?", RIGHT, [PRICES, None])
    with pytest.raises(TypeError, match="contexts: give a list of contexts, not one text"):
        evaluator.evaluate("?", RIGHT, PRICES)


def test_what_is_no_llm_is_told() -> None:
    with pytest.raises(TypeError, match=r"llm: give an LLM of llama_index.core, not a dict; or give judge="):
        FaithfulnessEvaluator({"kind": "llm"})
    with pytest.raises(TypeError, match="llms"):
        FaithfulnessEvaluator(llms=Scripted())  # type: ignore[call-arg]


@pytest.mark.parametrize(("code", "said"), examples("LlamaIndex"))
def test_the_examples_of_the_page_print_what_it_says(code: str, said: str) -> None:
    assert printed_by(code) == said
