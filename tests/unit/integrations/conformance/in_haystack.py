"""Haystack's ``FaithfulnessEvaluator`` and ours (run by scripts/extras.py)."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from haystack import Pipeline, component, default_from_dict, default_to_dict
from haystack.components import evaluators as theirs
from haystack.dataclasses import ChatMessage
from haystack.evaluation import EvaluationRunResult

from guardrail.integrations import haystack as ours
from tests.unit.integrations.conformance.checks import Conformance, done, raised
from tests.unit.integrations.conformance.script import (
    HALF,
    LUCAS,
    PRICES,
    PYTHON,
    RIGHT,
    UNKNOWN,
    WRONG,
    Script,
)


@component
class Scripted:
    """A chat generator."""

    def __init__(self, away_for: str | None = None, mumbles_for: str | None = None) -> None:
        self.script = Script(away_for, mumbles_for)
        self.warm = False

    def warm_up(self) -> None:
        self.warm = True

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        text = self.script.reply("\n".join(str(each.text) for each in messages))
        return {"replies": [ChatMessage.from_assistant(text, meta={"usage": {"prompt_tokens": 70}})]}

    def to_dict(self) -> dict[str, Any]:
        written: dict[str, Any] = default_to_dict(
            self, away_for=self.script.away_for, mumbles_for=self.script.mumbles_for
        )
        return written

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        return default_from_dict(cls, data)


@component
class Source:
    @component.output_types(contexts=list[list[str]], answers=list[str])
    def run(self) -> dict[str, Any]:
        return {"contexts": [[PRICES]], "answers": [HALF]}


@component
class Threshold:
    @component.output_types(passed=bool)
    def run(self, score: float, scores: list[float]) -> dict[str, Any]:
        return {"passed": score >= 0.5 and len(scores) == 1}


EXAMPLE: Any = {
    "inputs": {
        "questions": "What is the capital of Italy?",
        "contexts": ["Berlin is in Germany.", "Rome is the capital of Italy."],
        "predicted_answers": "Rome, with 4 million inhabitants.",
    },
    "outputs": {
        "statements": ["Rome is the capital.", "It has 4 million inhabitants."],
        "statement_scores": [1, 0],
    },
}


def made(module: Any, generator: Any = None, **more: Any) -> Any:
    given = {"chat_generator": generator or Scripted(), "progress_bar": False, **more}
    return module.FaithfulnessEvaluator(**given)


def inputs(*answers: str, **other: Any) -> dict[str, Any]:
    many = len(answers)
    given = {"questions": ["?"] * many, "contexts": [[PRICES]] * many, "predicted_answers": list(answers)}
    return {name: each for name, each in {**given, **other}.items() if each is not None}


def scores(found: dict[str, Any]) -> Any:
    return {name: found[name] for name in ("score", "individual_scores", "results")}


def run(module: Any, *answers: str, generator: Any = None, call: str = "run", **other: Any) -> Any:
    evaluator = made(module, generator, raise_on_failure=False)
    return scores(done(getattr(evaluator, call)(**inputs(*answers, **other))))


def raising(module: Any, generator: Any = None, **other: Any) -> Any:
    return raised(lambda: made(module, generator).run(**inputs(RIGHT, WRONG, **other)))


def shown_examples(module: Any) -> Any:
    generator = Scripted()
    made(module, generator, examples=[EXAMPLE]).run(**inputs(RIGHT))
    return ["It has 4 million inhabitants." in asked for asked in generator.script.asked]


def by_position(module: Any) -> Any:
    evaluator = module.FaithfulnessEvaluator([EXAMPLE], False, False, Scripted())
    return [evaluator.examples, evaluator.progress_bar, evaluator.raise_on_failure]


def shown_progress(module: Any, wanted: bool) -> Any:
    with contextlib.redirect_stderr(io.StringIO()) as err:
        made(module, progress_bar=wanted).run(**inputs(RIGHT, RIGHT))
    return "2/2" in err.getvalue()


def pipeline(evaluator: Any) -> Any:
    built = Pipeline()
    built.add_component("faithfulness", evaluator)
    return built


def types(sockets: dict[str, Any]) -> Any:
    """But for the usage, which Haystack may leave out."""
    return {name: str(each["type"]) for name, each in sockets["faithfulness"].items() if name != "meta"}


def connected(module: Any) -> Any:
    built = pipeline(made(module))
    built.add_component("source", Source())
    built.add_component("threshold", Threshold())
    built.connect("source.contexts", "faithfulness.contexts")
    built.connect("source.answers", "faithfulness.predicted_answers")
    built.connect("faithfulness.score", "threshold.score")
    built.connect("faithfulness.individual_scores", "threshold.scores")
    return built.run({"faithfulness": {"questions": ["?"]}})["threshold"]


def read(text: str) -> Any:
    return Pipeline.loads(text, allowed_modules=["haystack", "guardrail", "tests"])


def read_again(module: Any) -> Any:
    built = pipeline(made(module, examples=[EXAMPLE]))
    again = read(built.dumps())
    return [again == built, scores(again.run({"faithfulness": inputs(HALF)})["faithfulness"])]


def theirs_read(module: Any) -> Any:
    modules = (each.FaithfulnessEvaluator.__module__ for each in (theirs, module))
    found = read(pipeline(made(theirs)).dumps().replace(*modules)).run({"faithfulness": inputs(HALF)})
    return scores(found["faithfulness"])


def reports(module: Any) -> Any:
    given = inputs(RIGHT, HALF, WRONG)
    found = made(module, Scripted(WRONG), raise_on_failure=False).run(**given)
    result = EvaluationRunResult("run", given, {"faithfulness": found})
    return [result.aggregated_report(), result.detailed_report()["faithfulness"]]


OTHER = ["We are open daily."]
CONFORMANCE = Conformance(
    "haystack-ai",
    21,
    theirs,
    ours,
    {
        "the documented example": lambda m: run(m, LUCAS, contexts=[[PYTHON]]),
        "scores, statements and mean": lambda m: run(m, RIGHT, WRONG, HALF, f"{RIGHT} {WRONG}"),
        "run_async": lambda m: run(m, RIGHT, WRONG, HALF, call="run_async"),
        "an answer without statements": lambda m: run(m, UNKNOWN, RIGHT),
        "several contexts": lambda m: run(m, RIGHT, contexts=[[*OTHER, PRICES]]),
        "contexts that don't say it": lambda m: run(m, RIGHT, HALF, contexts=[OTHER, [PRICES]]),
        "no contexts": lambda m: run(m, RIGHT, contexts=[[]]),
        "no answers": run,
        "a model that is away": lambda m: run(m, RIGHT, WRONG, HALF, generator=Scripted(WRONG)),
        "a model that is away, run_async": lambda m: run(
            m, RIGHT, WRONG, generator=Scripted(WRONG), call="run_async"
        ),
        "a model that is away for all": lambda m: run(m, RIGHT, generator=Scripted(PRICES)),
        "a model that is away, raising": lambda m: raising(m, Scripted(WRONG)),
        "a reply without form": lambda m: run(m, RIGHT, WRONG, generator=Scripted(None, WRONG)),
        "a reply without form, raising": lambda m: raising(m, Scripted(None, WRONG)),
        "a missing input": lambda m: raising(m, contexts=None),
        "inputs of different lengths": lambda m: raising(m, contexts=[OTHER]),
        "an input that is no list": lambda m: raising(m, questions="?"),
        "parameters by position": by_position,
        "examples for the model": shown_examples,
        "examples of another form": lambda m: raised(lambda: made(m, examples=[{"in": {}, "out": {}}])),
        "a progress bar": lambda m: shown_progress(m, True),
        "no progress bar": lambda m: shown_progress(m, False),
        "the usage of each call": lambda m: made(m).run(**inputs(RIGHT, WRONG))["meta"],
        "types of inputs": lambda m: types(pipeline(made(m)).inputs()),
        "types of outputs": lambda m: types(pipeline(made(m)).outputs()),
        "components before and behind it": connected,
        "to_dict": lambda m: made(m, examples=[EXAMPLE]).to_dict()["init_parameters"],
        "to_dict, default examples": lambda m: len(made(m).to_dict()["init_parameters"]["examples"]),
        "a pipeline in YAML": read_again,
        "a pipeline with theirs in YAML": theirs_read,
        "reports of a run": reports,
        "instructions, inputs, outputs": lambda m: [
            made(m).inputs,
            made(m).outputs,
            len(made(m).instructions) > 9,
        ],
    },
    {
        "to_dict, default examples": "Haystack's are not shown to our LLM judge, which has its own.",
        "instructions, inputs, outputs": "attributes for Haystack's prompt; ours is another.",
    },
)

test_what_passes_with_theirs_passes_with_ours, test_the_page_says_so = CONFORMANCE.tests()
