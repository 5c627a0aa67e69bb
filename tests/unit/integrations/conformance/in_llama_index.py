"""LlamaIndex' ``FaithfulnessEvaluator`` and ours (run by scripts/extras.py)."""

from __future__ import annotations

from typing import Any

from llama_index.core import Document, MockEmbedding, Response, Settings, SummaryIndex
from llama_index.core import evaluation as theirs
from llama_index.core.evaluation import BaseEvaluator, BatchEvalRunner, EvaluationResult
from llama_index.core.evaluation.notebook_utils import get_eval_results_df
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import ToolMetadata
from llama_index.core.tools.eval_query_engine import EvalQueryEngineTool
from pydantic import Field

from guardrail.integrations import llama_index as ours
from tests.unit.integrations.conformance.checks import Conformance, done, raised
from tests.unit.integrations.conformance.script import HALF, PRICES, RIGHT, UNKNOWN, WRONG, Script

MANY = [f"Number {number} of many is not of any interest. " * 20 for number in range(8)]


class Scripted(CustomLLM):
    """Replies by a script, or always the same."""

    script: Any = Field(default_factory=Script)
    says: str | None = None
    window: int = 8000
    model: str = "their-model"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(context_window=self.window, num_output=64)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        text = self.script.reply(prompt) if self.says is None else self.says
        used = {"prompt_tokens": 60, "completion_tokens": 6}
        return CompletionResponse(text=text, additional_kwargs=used)

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError


class Other(BaseEvaluator):
    """An evaluator beside it, which takes arguments of its own."""

    async def aevaluate(
        self, query: Any = None, response: Any = None, contexts: Any = None, **own: Any
    ) -> Any:
        return EvaluationResult(feedback=str(sorted(own.items())))

    def _get_prompts(self) -> Any:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        pass


def made(module: Any, **more: Any) -> Any:
    return module.FaithfulnessEvaluator(**{"llm": Scripted(), **more})


def told(result: Any) -> Any:
    """All but the feedback: the model's one word there, the reasons here."""
    assert isinstance(result, EvaluationResult)
    return {name: each for name, each in result.model_dump().items() if name != "feedback"}


def evaluated(module: Any, answer: Any = RIGHT, *contexts: str, call: str = "evaluate", **more: Any) -> Any:
    given = {"query": "?", "response": answer, "contexts": list(contexts or [PRICES]), **more}
    return told(done(getattr(made(module), call)(**given)))


def answered(answer: str, *texts: str) -> Any:
    return Response(answer, source_nodes=[NodeWithScore(node=TextNode(text=text)) for text in texts])


def of_response(module: Any, answer: str, *texts: str, call: str = "evaluate_response", **more: Any) -> Any:
    return told(done(getattr(made(module), call)(query="?", response=answered(answer, *texts), **more)))


def of_long(module: Any) -> Any:
    evaluator = made(module, llm=Scripted(window=1200))
    return told(evaluator.evaluate("?", RIGHT, [*MANY, PRICES]))


def equal(module: Any) -> Any:
    first = made(module).evaluate("?", RIGHT, [PRICES])
    return first == made(module).evaluate_response("?", answered(RIGHT, PRICES))


def raising(module: Any, answer: str, *positional: Any, **more: Any) -> Any:
    evaluator = module.FaithfulnessEvaluator(*positional) if positional else made(module, **more)
    return raised(lambda: evaluator.evaluate("?", answer, [PRICES]))


def by_settings(module: Any) -> Any:
    before, Settings._llm = Settings._llm, Scripted()
    try:
        found = told(module.FaithfulnessEvaluator().evaluate("?", RIGHT, [PRICES]))
        return [found, len(Settings._llm.script.asked)]
    finally:
        Settings._llm = before


def to_json_and_back(module: Any) -> Any:
    result = made(module).evaluate("?", WRONG, [PRICES])
    return told(type(result).model_validate_json(result.model_dump_json()))


def stricter(module: Any) -> PromptTemplate:
    return PromptTemplate("Be strict.\n" + made(module).get_prompts()["eval_template"].get_template())


def prompt_changed(module: Any, **by_argument: Any) -> Any:
    llm = Scripted()
    evaluator = made(module, llm=llm, **by_argument)
    if not by_argument:
        evaluator.update_prompts({"eval_template": stricter(module)})
    shown = evaluator.get_prompts()["eval_template"].get_template().startswith("Be strict.")
    return [told(evaluator.evaluate("?", WRONG, [PRICES])), shown, "Be strict." in llm.script.asked[-1]]


def prompts_of_theirs(module: Any) -> Any:
    names = sorted(made(module).get_prompts())
    asking = PromptTemplate("Is it there, YES or NO?\nInformation: {query_str}\nContext: {context_str}\n")
    return [names, raising(module, RIGHT, eval_template=asking, refine_template=asking, raise_error=True)]


STRINGS = {"queries": ["?"] * 3, "response_strs": [RIGHT, WRONG, HALF], "contexts_list": [[PRICES]] * 3}
RESPONSES = {"queries": ["?"] * 2, "responses": [answered(RIGHT, PRICES), answered(WRONG, PRICES)]}


def batch(module: Any, call: str, given: dict[str, Any], **options: Any) -> Any:
    runner = BatchEvalRunner({"faithful": made(module), "other": Other()}, **options)
    found = done(getattr(runner, call)(**given))
    return [[told(each) for each in found["faithful"]], [each.feedback for each in found["other"]]]


def query_engine(answer: str) -> Any:
    index = SummaryIndex.from_documents([Document(text=PRICES)], embed_model=MockEmbedding(embed_dim=2))
    return index.as_query_engine(llm=Scripted(says=answer))


def queries(answer: str) -> dict[str, Any]:
    return {"query_engine": query_engine(answer), "queries": ["?", "?"]}


def of_tool(module: Any, answer: str, call: str = "call") -> Any:
    metadata = ToolMetadata(description="Prices.", name="prices")
    tool = EvalQueryEngineTool(made(module), query_engine=query_engine(answer), metadata=metadata)
    return done(getattr(tool, call)(input="?")).content.partition("\n")[0]


def frame(module: Any) -> Any:
    results = [made(module).evaluate("?", each, [PRICES]) for each in (RIGHT, WRONG, RIGHT, RIGHT)]
    deep, means = get_eval_results_df(["a", "a", "b", "b"], results, metric="faithfulness")
    return [list(deep.columns), list(deep["scores"]), means.to_dict()]


CONFORMANCE = Conformance(
    "llama-index-core",
    24,
    theirs,
    ours,
    {
        "evaluate, supported": evaluated,
        "evaluate, not supported": lambda m: evaluated(m, WRONG),
        "evaluate, half supported": lambda m: evaluated(m, HALF),
        "evaluate, two sentences": lambda m: evaluated(m, f"{RIGHT} {WRONG}"),
        "evaluate, nothing stated doesn't pass": lambda m: bool(evaluated(m, UNKNOWN)["passing"]),
        "evaluate, several contexts": lambda m: evaluated(m, RIGHT, MANY[0], PRICES, MANY[1]),
        "evaluate, contexts for several calls": of_long,
        "evaluate, contexts that don't say it": lambda m: evaluated(m, RIGHT, MANY[0]),
        "evaluate, no contexts": lambda m: evaluated(m, contexts=[]),
        "evaluate, response missing": lambda m: raised(lambda: evaluated(m, None)),
        "evaluate, contexts missing": lambda m: raised(lambda: evaluated(m, contexts=None)),
        "evaluate, sleep_time_in_seconds": lambda m: evaluated(m, sleep_time_in_seconds=0),
        "evaluate, a reference": lambda m: evaluated(m, reference=WRONG),
        "evaluate, another evaluator's argument": lambda m: evaluated(m, kwarg1="?"),
        "aevaluate": lambda m: evaluated(m, WRONG, call="aevaluate"),
        "aevaluate, sleep_time_in_seconds": lambda m: evaluated(m, call="aevaluate", sleep_time_in_seconds=0),
        "evaluate_response": lambda m: of_response(m, RIGHT, PRICES),
        "evaluate_response, without nodes": lambda m: of_response(m, RIGHT),
        "evaluate_response, missing": lambda m: raised(lambda: made(m).evaluate_response("?", None)),
        "evaluate_response equals evaluate": equal,
        "aevaluate_response": lambda m: of_response(m, HALF, PRICES, call="aevaluate_response"),
        "aevaluate_response, sleep_time_in_seconds": lambda m: of_response(
            m, RIGHT, PRICES, call="aevaluate_response", sleep_time_in_seconds=0
        ),
        "raise_error, supported": lambda m: raising(m, RIGHT, raise_error=True),
        "raise_error, not supported": lambda m: raising(m, WRONG, raise_error=True),
        "parameters by position": lambda m: raising(m, WRONG, Scripted(), True),
        "a model that is away": lambda m: bool(raising(m, RIGHT, llm=Scripted(script=Script(PRICES)))),
        "results in JSON": to_json_and_back,
        "Settings.llm": by_settings,
        "update_prompts": prompt_changed,
        "eval_template": lambda m: prompt_changed(m, eval_template=stricter(m)),
        "prompts with their names and variables": prompts_of_theirs,
        "BatchEvalRunner, texts": lambda m: batch(m, "evaluate_response_strs", STRINGS),
        "BatchEvalRunner, workers": lambda m: batch(m, "evaluate_response_strs", STRINGS, workers=8),
        "BatchEvalRunner, progress": lambda m: batch(m, "evaluate_responses", RESPONSES, show_progress=True),
        "BatchEvalRunner, asynchronous": lambda m: batch(m, "aevaluate_response_strs", STRINGS),
        "BatchEvalRunner, responses": lambda m: batch(m, "evaluate_responses", RESPONSES),
        "BatchEvalRunner, responses, asynchronous": lambda m: batch(m, "aevaluate_responses", RESPONSES),
        "BatchEvalRunner, queries": lambda m: batch(m, "evaluate_queries", queries(RIGHT)),
        "BatchEvalRunner, queries, asynchronous": lambda m: batch(m, "aevaluate_queries", queries(WRONG)),
        "BatchEvalRunner, arguments for another": lambda m: batch(
            m, "evaluate_response_strs", {**STRINGS, "other": {"kwarg1": [1, 2, 3]}}
        ),
        "BatchEvalRunner, a reference for all": lambda m: batch(
            m, "evaluate_response_strs", {**STRINGS, "reference": ["a", "b", "c"]}
        ),
        "EvalQueryEngineTool, supported": lambda m: of_tool(m, RIGHT),
        "EvalQueryEngineTool, not supported": lambda m: of_tool(m, WRONG),
        "EvalQueryEngineTool, asynchronous": lambda m: of_tool(m, WRONG, "acall"),
        "get_eval_results_df": frame,
    },
    {
        "evaluate, another evaluator's argument": "a TypeError names it, since what it asks for would not be "
        "done; a `BatchEvalRunner` can give it to the other evaluator alone.",
        "prompts with their names and variables": "our LLM judge asks for a verdict on every claim, not for "
        "YES or NO: `eval_template` is its system prompt, with our variables, and nothing is refined.",
    },
)

test_what_passes_with_theirs_passes_with_ours, test_the_page_says_so = CONFORMANCE.tests()
