"""The guard in LlamaIndex itself and in docs/frameworks.md (run by scripts/extras.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document, MockEmbedding, Response, SummaryIndex
from llama_index.core.evaluation import BatchEvalRunner, EvaluationResult, FaithfulnessEvaluator
from llama_index.core.llms import MockLLM
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode

from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.integrations.llama_index import LlamaIndexFaithfulnessEvaluator
from tests.support.judges import FaultyJudge, WordJudge
from tests.support.llm_server import LlmServer
from tests.unit.integrations.judges import MeetingJudge
from tests.unit.integrations.page import examples, printed_by

PRICES = "The basic plan costs $49 a month."
RIGHT, WRONG = "The basic plan costs $49 a month.", "The basic plan costs $79 a month."


def answered(answer: str | None, *nodes: tuple[str, str]) -> Response:
    sources = [NodeWithScore(node=TextNode(id_=id_, text=text)) for id_, text in nodes]
    return Response(answer, source_nodes=sources)


@pytest.fixture
def evaluator() -> Iterator[LlamaIndexFaithfulnessEvaluator]:
    made = LlamaIndexFaithfulnessEvaluator()
    yield made
    made.close()


def test_a_supported_answer_passes_and_another_fails_with_the_reason(
    evaluator: LlamaIndexFaithfulnessEvaluator,
) -> None:
    right = evaluator.evaluate(query="How much?", response=RIGHT, contexts=[PRICES])
    assert isinstance(right, EvaluationResult)
    assert (right.passing, right.score, right.invalid_result) == (True, 1.0, False)
    assert (right.query, right.response, right.contexts) == ("How much?", RIGHT, [PRICES])
    wrong = evaluator.evaluate(response=f"{RIGHT} {WRONG}", contexts=[PRICES])
    assert (wrong.passing, wrong.score, wrong.invalid_result) == (False, 0.0, False)
    assert str(wrong.feedback).startswith("Of 2 claims, 1 is supported, 1 contradicted;")
    assert f"Contradicted (major: price): “{WRONG}”" in str(wrong.feedback)


def test_the_result_has_the_fields_of_theirs() -> None:
    theirs = FaithfulnessEvaluator(llm=MockLLM()).evaluate("?", RIGHT, [PRICES])
    ours = LlamaIndexFaithfulnessEvaluator(WordJudge()).evaluate("?", RIGHT, [PRICES])
    assert theirs.model_dump().keys() == ours.model_dump().keys() - {"verdict"}


def test_what_a_query_engine_answered_is_evaluated_against_its_nodes(
    evaluator: LlamaIndexFaithfulnessEvaluator,
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


async def test_the_asynchronous_calls_say_the_same(evaluator: LlamaIndexFaithfulnessEvaluator) -> None:
    response = answered(WRONG, ("terms", PRICES))
    found = await evaluator.aevaluate_response("?", response)
    again = await evaluator.aevaluate("?", WRONG, [PRICES], sleep_time_in_seconds=0)
    plain = evaluator.evaluate_response("?", response)  # though a loop runs here
    assert found.passing is again.passing is plain.passing is False
    assert found.feedback == plain.feedback


def test_an_answer_that_states_nothing_neither_passes_nor_fails(
    evaluator: LlamaIndexFaithfulnessEvaluator,
) -> None:
    for answer in ("I don't know.", ""):
        found = evaluator.evaluate(response=answer, contexts=[PRICES])
        assert (found.passing, found.score, found.invalid_result) == (None, None, True)
        assert str(found.invalid_reason).startswith("the answer states nothing that can be checked")


def test_without_contexts_nothing_is_supported(evaluator: LlamaIndexFaithfulnessEvaluator) -> None:
    assert evaluator.evaluate(response=RIGHT, contexts=[]).passing is False


@pytest.mark.parametrize("missing", ["response", "contexts"])
def test_what_is_missing_is_told(evaluator: LlamaIndexFaithfulnessEvaluator, missing: str) -> None:
    given: dict[str, Any] = {"response": RIGHT, "contexts": [PRICES], missing: None}
    with pytest.raises(ValueError, match=f"^{missing}: missing"):
        evaluator.evaluate("?", **given)
    with pytest.raises(ValueError, match="response: missing"):
        evaluator.evaluate_response("?", None)


async def test_an_argument_that_would_be_ignored_is_told(evaluator: LlamaIndexFaithfulnessEvaluator) -> None:
    assert evaluator.evaluate("?", RIGHT, [PRICES], reference=WRONG).passing is True
    response = Response(RIGHT, source_nodes=[])
    with pytest.raises(TypeError, match="context: unknown argument"):
        evaluator.evaluate("?", RIGHT, [PRICES], context=[PRICES])
    with pytest.raises(TypeError, match="context: unknown argument"):
        await evaluator.aevaluate("?", RIGHT, [PRICES], context=[PRICES])
    with pytest.raises(TypeError, match="response_field: unknown argument"):
        evaluator.evaluate_response("?", response, response_field="sql_query")
    with pytest.raises(TypeError, match="response_field: unknown argument"):
        await evaluator.aevaluate_response("?", response, response_field="sql_query")


def test_a_failure_of_the_judge_is_no_verdict() -> None:
    def fail(_: Any) -> Any:
        raise JudgeUnavailable("no connection")

    found = LlamaIndexFaithfulnessEvaluator(FaultyJudge(fail)).evaluate("?", RIGHT, [PRICES])
    assert (found.passing, found.score, found.invalid_result) == (None, None, True)
    assert "no connection" in str(found.invalid_reason)
    raising = LlamaIndexFaithfulnessEvaluator(FaultyJudge(fail), raise_error=True)
    with pytest.raises(JudgeUnavailable, match="no connection"):
        raising.evaluate("?", RIGHT, [PRICES])
    assert LlamaIndexFaithfulnessEvaluator(raise_error=True).evaluate("?", WRONG, [PRICES]).passing is False


def test_another_published_score_stands_beside_the_same_passing() -> None:
    made = LlamaIndexFaithfulnessEvaluator(WordJudge(), score="strict")
    found = made.evaluate("?", f"{RIGHT} The pro plan costs a wrong $9.", [PRICES])
    assert (found.passing, found.score) == (False, 0.5)
    with pytest.raises(ConfigError, match="score: 'mean' is unknown"):
        LlamaIndexFaithfulnessEvaluator(score="mean")


def test_a_batch_is_evaluated_as_concurrently_as_its_runner() -> None:
    judge = MeetingJudge(together=4)
    runner = BatchEvalRunner({"faithfulness": LlamaIndexFaithfulnessEvaluator(judge)}, workers=4)
    found = runner.evaluate_responses(queries=["?"] * 8, responses=[answered(RIGHT, ("terms", PRICES))] * 8)
    assert [each.passing for each in found["faithfulness"]] == [True] * 8
    assert judge.most == 4


async def test_a_batch_of_texts_runs_beside_their_evaluator(
    evaluator: LlamaIndexFaithfulnessEvaluator,
) -> None:
    both = {"ours": evaluator, "theirs": FaithfulnessEvaluator(llm=MockLLM())}
    found = await BatchEvalRunner(both).aevaluate_response_strs(
        queries=["?", "?"], response_strs=[RIGHT, WRONG], contexts_list=[[PRICES], [PRICES]]
    )
    assert [each.passing for each in found["ours"]] == [True, False]
    assert len(found["theirs"]) == 2


def test_the_local_judge_has_no_prompts(evaluator: LlamaIndexFaithfulnessEvaluator) -> None:
    assert evaluator.get_prompts() == {}
    with pytest.raises(ConfigError, match="'eval_template' is unknown: this judge asks no LLM"):
        evaluator.update_prompts({"eval_template": PromptTemplate("{query_str} {context_str}")})


@pytest.mark.parametrize("in_file", [False, True])
async def test_the_prompts_of_an_llm_judge_are_shown_and_changed(tmp_path: Path, in_file: bool) -> None:
    async with LlmServer() as server:
        llm = {"base_url": server.url, "model": "m"}
        file = tmp_path / "guardrail.yaml"
        file.write_text(f"judge: {{kind: llm, llm: {{base_url: '{server.url}', model: m}}}}\n")
        made = (
            LlamaIndexFaithfulnessEvaluator(settings=file)
            if in_file
            else LlamaIndexFaithfulnessEvaluator({"kind": "llm", "llm": llm})
        )
        before = made.get_prompts()
        assert before.keys() == {"system", "user"}
        assert "$claims" in before["user"].get_template()
        assert (await made.aevaluate("?", RIGHT, [PRICES])).passing
        made.update_prompts({"system": PromptTemplate("Be strict. " + before["system"].get_template())})
        assert (await made.aevaluate("?", WRONG, [PRICES])).passing, "the stand-in finds everything supported"
        await made.aclose()
    first, second = (str(call.body["messages"][0]["content"]) for call in server.calls)
    assert second.startswith(f"Be strict. {first[:1000]}"), "what is behind has a marker, anew in each call"
    assert made.get_prompts()["user"].get_template() == before["user"].get_template()


def test_a_prompt_that_lacks_a_variable_is_refused_and_changes_nothing() -> None:
    made = LlamaIndexFaithfulnessEvaluator({"kind": "llm", "llm": {"base_url": "http://127.0.0.1:9/v1"}})
    before = made.get_prompts()
    with pytest.raises(ConfigError, match=r"missing variables? \$marker"):
        made.update_prompts({"system": PromptTemplate("Say YES or NO.")})
    with pytest.raises(ConfigError, match="'eval_template' is unknown: there are system and user"):
        made.update_prompts({"eval_template": PromptTemplate("x")})
    assert made.get_prompts() == before


@pytest.mark.parametrize(("code", "said"), examples("LlamaIndex"))
def test_the_examples_of_the_page_print_what_it_says(code: str, said: str) -> None:
    assert printed_by(code) == said
