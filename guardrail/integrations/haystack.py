"""The guard as an evaluator of Haystack pipelines, in the place of its ``FaithfulnessEvaluator``.

::

    evaluator = FaithfulnessEvaluator()
    result = evaluator.run(questions=questions, contexts=contexts, predicted_answers=answers)

Its name, arguments, inputs and outputs are that component's. 1 stands for SUPPORTED.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, Self

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.components.evaluators import faithfulness as theirs
from haystack.components.generators.chat.types import ChatGenerator
from haystack.core.serialization import component_to_dict, generate_qualified_class_name
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret, deserialize_chatgenerator_inplace
from tqdm import tqdm

from guardrail.errors import InputError, JudgeError
from guardrail.evals.results import ScoreValue
from guardrail.evals.scores import MEANING, score_value, statements
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    EvaluatingGuard,
    HasGuard,
    JudgeLike,
    with_own_ids,
)
from guardrail.leaves import mapped
from guardrail.log_events import EventLog

if TYPE_CHECKING:
    from guardrail.integrations.chat_models import ChatModel, Reply

_log = EventLog(__name__)
_INPUTS: Final = {"questions": list[str], "contexts": list[list[str]], "predicted_answers": list[str]}
_OUTPUTS: Final = component.output_types(
    individual_scores=list[float], score=float, results=list[dict[str, Any]], meta=list[dict[str, Any]]
)


@component
class FaithfulnessEvaluator(HasGuard):
    """Scores answers by how much of them their contexts support, each claim with its verdict and evidence.

    ``chat_generator`` is the model of the LLM judge; without one the local judge is asked, which needs no
    key. ``examples``, as Haystack's component takes them, stand in the LLM judge's prompt in place of ours.

    The other arguments are those of ``EvaluatingGuard``; in ``judge`` a ``Secret`` may stand. A score that is
    undefined is NaN, and never counts in the mean. Raises ConfigError if settings are wrong, and ValueError
    for examples in another form.
    """

    def __init__(
        self,
        examples: list[dict[str, Any]] | None = None,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        chat_generator: ChatGenerator | None = None,
        *,
        judge: JudgeLike | None = None,
        settings: str | Path | None = None,
        score: str = "haystack",
        concurrency: int = CONCURRENCY,
    ) -> None:
        self.examples = examples
        self.progress_bar = progress_bar
        self.raise_on_failure = raise_on_failure
        self._chat_generator = chat_generator
        if isinstance(judge, Mapping):
            judge = mapped(judge, lambda leaf: _plain(leaf.value))
        llm = None if chat_generator is None else _chat_model(chat_generator)
        self._made = self._guard = EvaluatingGuard(
            judge, settings, llm=llm, concurrency=concurrency, score=score
        )
        if examples and examples != theirs._DEFAULT_EXAMPLES:
            self._guard = self._made.with_prompts({"examples": _our_examples(examples)})
        component.set_input_types(self, **_INPUTS)

    def warm_up(self) -> None:
        """Open the judge, and the chat generator. ``run`` does so, too."""
        getattr(self._chat_generator, "warm_up", lambda: None)()
        self._guard.open()

    async def warm_up_async(self) -> None:
        """Like ``warm_up``."""
        getattr(self._chat_generator, "warm_up", lambda: None)()
        await self._guard.aopen()

    async def close_async(self) -> None:
        """Like ``close``."""
        await self.aclose()

    @_OUTPUTS
    def run(self, **inputs: Any) -> dict[str, Any]:
        """Evaluate answers, ``concurrency`` of them at a time: ``questions``, ``contexts``, a list for each
        answer, and ``predicted_answers``.

        A context is a text, a Haystack ``Document``, or a mapping with ``id`` and ``text``. Returns, in the
        order of the answers:

        - ``individual_scores``, and ``score``, the mean of those that are defined.
        - ``results``: the ``statements`` of each answer with their ``statement_scores`` (1 SUPPORTED, 0 any
          other verdict, None if the judge could not say), its ``score``, its ``status`` (evaluated, or
          error), the ``reason`` of a score that is undefined or is about a part of the claims, and
          ``verdict``: the ``verdict.response`` event with severity, evidence and more of every claim, as a
          dictionary.
        - ``meta``: judges, policy, usage, and duration in milliseconds.

        Raises ValueError for lists that are missing, or of different lengths. Unless ``raise_on_failure`` is
        False, raises ValueError for the first answer that can't be judged, with InputError, TypeError or
        JudgeUnavailable as its cause.
        """
        return self._guard.run(lambda: self.run_async(**inputs))

    @_OUTPUTS
    async def run_async(self, **inputs: Any) -> dict[str, Any]:
        """Like ``run``, without holding up the event loop."""
        answers = _answers(inputs)
        await self.warm_up_async()
        with tqdm(total=len(answers), disable=not self.progress_bar) as bar:
            step = partial(bar.update, 1)
            try:
                outcomes = await self._guard.acheck_all(answers, step, fail_fast=self.raise_on_failure)
            except (InputError, JudgeError, TypeError) as error:
                raise ValueError(str(error)) from error  # which is what theirs raises
        return self._output(outcomes)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values. Raises ConfigError if it has a Judge or a secret."""
        generator = self._chat_generator
        values: dict[str, Any] = default_to_dict(
            self,
            **self._made.parameters(),
            examples=self.examples,
            chat_generator=generator and component_to_dict(generator, "chat_generator"),
            progress_bar=self.progress_bar,
            raise_on_failure=self.raise_on_failure,
            score=self._guard.score,
        )
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The component that ``to_dict`` wrote, or that of Haystack's own component."""
        parameters = deepcopy(data.get("init_parameters", {}))  # what reads them may change them
        if parameters.get("chat_generator"):
            deserialize_chatgenerator_inplace(parameters, key="chat_generator")
        written_by_theirs = data.get("type") == generate_qualified_class_name(theirs.FaithfulnessEvaluator)
        kind = generate_qualified_class_name(cls) if written_by_theirs else data.get("type")
        made: Self = default_from_dict(cls, {**data, "type": kind, "init_parameters": parameters})
        return made

    def _output(self, outcomes: Sequence[ResponseVerdict | Exception]) -> dict[str, Any]:
        scored = [
            ScoreValue(value=None, reason=str(each))
            if isinstance(each, Exception)
            else score_value(self._guard.score, each)
            for each in outcomes
        ]
        failed = sum(isinstance(each, Exception) for each in outcomes)
        if failed:
            _log.warning("haystack.not_judged", failed=failed, of=len(outcomes))
        defined = [each.value for each in scored if each.value is not None]
        scores = [math.nan if each.value is None else each.value for each in scored]
        return {
            "individual_scores": scores,
            "score": fmean(defined) if defined else math.nan,
            "results": [
                {**_statements(outcome), "score": score, "reason": each.reason}
                for outcome, score, each in zip(outcomes, scores, scored, strict=True)
            ],
            "meta": [_meta(outcome) for outcome in outcomes],
        }


def _chat_model(generator: Any) -> ChatModel:
    if isinstance(generator, type) or not callable(getattr(generator, "run", None)):
        kind = generator.__name__ if isinstance(generator, type) else type(generator).__name__
        raise TypeError(f"chat_generator: give a chat generator of Haystack, not a {kind}; or give judge=…")
    from guardrail.integrations.chat_models import ChatModel  # loads the client, which others don't need

    def reply(result: Mapping[str, Any]) -> Reply:
        first = result["replies"][0]
        return first.text, first.meta.get("usage")

    of_role = {"system": ChatMessage.from_system, "user": ChatMessage.from_user}
    aask = (lambda given: generator.run_async(messages=given)) if hasattr(generator, "run_async") else None
    return ChatModel(
        generator,
        lambda given: [of_role[role](text) for role, text in given],
        lambda given: generator.run(messages=given),
        aask,
        reply,
    )


def _plain(value: object) -> object:
    """A Secret as settings have one; one that holds its token raises ValueError."""
    if not isinstance(value, Secret):
        return value
    names: list[str] = value.to_dict()["env_vars"]
    return {"env": next((name for name in names if name in os.environ), names[0])}  # as theirs chooses


def _our_examples(given: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Statements as claims. What a statement rests on is not said: the context with most of its words."""
    made = []
    for each in given:
        try:
            contexts = each["inputs"]["contexts"]
            said = each["outputs"]
            claims: list[dict[str, Any]] = []
            for text, score in zip(said["statements"], said["statement_scores"], strict=True):
                shared = [len({*text.split()} & {*context.split()}) for context in contexts]
                rests = {"verdict": "SUPPORTED", "evidence": [shared.index(max(shared)) + 1]}
                claims.append({"text": text, **(rests if score else {"verdict": "UNSUPPORTED"})})
            made.append({"sentences": contexts, "question": each["inputs"]["questions"], "claims": claims})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"examples: {error!r}; each has inputs with questions, contexts and predicted_answers, and "
                "outputs with statements and statement_scores"
            ) from error
    return made


def _answers(inputs: Mapping[str, Any]) -> list[tuple[str, Sequence[ContextLike], str]]:
    if unknown := sorted(inputs.keys() - _INPUTS.keys()):
        raise TypeError(f"{unknown[0]}: unknown input; there are {', '.join(_INPUTS)}")
    for name in _INPUTS:
        if not isinstance(each := inputs.get(name), list):
            raise ValueError(f"{name}: give a list, not a {type(each).__name__}")  # noqa: TRY004 - as theirs
    if len({len(each) for each in inputs.values()}) > 1:
        lengths = ", ".join(f"{len(each)} {name}" for name, each in inputs.items())
        raise ValueError(f"there are {lengths}; give as many of each")
    return [
        (question, _contexts(texts), answer)
        for question, texts, answer in zip(*(inputs[name] for name in _INPUTS), strict=True)
    ]


def _contexts(given: Sequence[Any]) -> Sequence[ContextLike]:
    if not isinstance(given, list | tuple):
        return given  # which the answer fails for
    if all(isinstance(each, Document) for each in given):
        return with_own_ids((each.id, each.content or "") for each in given)
    return [each.content or "" if isinstance(each, Document) else each for each in given]


def _statements(outcome: ResponseVerdict | Exception) -> dict[str, Any]:
    if isinstance(outcome, Exception):
        return {"statements": [], "statement_scores": [], "status": "error", "verdict": None}
    return {
        "statements": [each.text for each in statements(outcome)],
        "statement_scores": [MEANING[each.verdict].binary for each in statements(outcome)],
        "status": "evaluated",
        "verdict": outcome.model_dump(mode="json"),
    }


def _meta(outcome: ResponseVerdict | Exception) -> dict[str, Any]:
    if isinstance(outcome, Exception):
        return {"error": type(outcome).__name__}
    return {
        "judges": sorted({claim.judge for claim in outcome.claims}),
        "policy": outcome.policy.model_dump(mode="json"),
        "usage": {
            **outcome.usage.model_dump(mode="json"),
            "prompt_tokens": outcome.usage.input_tokens,
            "completion_tokens": outcome.usage.output_tokens,
        },
        "total_ms": outcome.timings.total_ms,
    }
