"""The guard as an evaluator of Haystack pipelines, in the place of its ``FaithfulnessEvaluator``.

::

    evaluator = HaystackFaithfulnessEvaluator()
    result = evaluator.run(questions=questions, contexts=contexts, predicted_answers=answers)

Its inputs and outputs are that component's. 1 stands for SUPPORTED.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict
from tqdm import tqdm

from guardrail.errors import InputError, JudgeError
from guardrail.evals.results import ScoreValue
from guardrail.evals.scores import MEANING, score_value, statements
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    AnswerToCheck,
    EvaluatingGuard,
    JudgeLike,
    with_own_ids,
)
from guardrail.log_events import EventLog

_log = EventLog(__name__)


@component
class HaystackFaithfulnessEvaluator:
    """Scores answers by how much of them their contexts support, each claim with its verdict and evidence.

    ``judge`` is a ``guardrail.Judge``, or the section ``judge`` of the settings as a dictionary; the local
    judge by default, which needs no key. ``settings`` is the path of a settings file. ``score`` names a
    published score (``guardrail.evals.scores.SCORES``). ``concurrency`` answers are judged at a time.

    A score that is undefined, because the answer states nothing or could not be judged, is
    ``undefined_score``, NaN by default, and never counts in the mean. Raises ConfigError if settings are
    wrong.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        *,
        progress_bar: bool = True,
        raise_on_failure: bool = True,
        settings: str | Path | None = None,
        score: str = "strict",
        concurrency: int = CONCURRENCY,
        undefined_score: float = math.nan,
    ) -> None:
        self.progress_bar = progress_bar
        self.raise_on_failure = raise_on_failure
        # One NaN is the same as itself only as the same object, and equal components have equal parameters.
        self.undefined_score = math.nan if math.isnan(undefined_score) else float(undefined_score)
        self._guard = EvaluatingGuard(judge, settings, concurrency=concurrency, score=score)

    def warm_up(self) -> None:
        """Open the judge. ``run`` does so, too."""
        self._guard.open()

    async def warm_up_async(self) -> None:
        """Like ``warm_up``."""
        await self._guard.aopen()

    def close(self) -> None:
        """Close the judge that was opened here; ``run`` opens it again."""
        self._guard.close()

    async def close_async(self) -> None:
        """Like ``close``."""
        await self._guard.aclose()

    @component.output_types(
        individual_scores=list[float],
        score=float,
        results=list[dict[str, Any]],
        meta=list[dict[str, Any]],
    )
    def run(
        self,
        questions: list[str],
        contexts: list[list[str]],
        predicted_answers: list[str],
    ) -> dict[str, Any]:
        """Evaluate answers, ``concurrency`` of them at a time.

        A context is a text, a Haystack ``Document``, or a mapping with ``id`` and ``text``. Returns, in the
        order of the answers:

        - ``individual_scores``, and ``score``, the mean of those that are defined.
        - ``results``: the ``statements`` of each answer with their ``statement_scores`` (1 SUPPORTED, 0 any
          other verdict, None if the judge could not say), its ``score``, its ``status`` (evaluated, or
          error), the ``reason`` of a score that is undefined or is about a part of the claims, and
          ``verdict``: the ``verdict.response`` event with severity, evidence and more of every claim, as a
          dictionary.
        - ``meta``: judges, policy, usage, and duration in milliseconds.

        Raises ValueError for lists of different lengths. Unless ``raise_on_failure`` is False, raises
        ValueError for the first answer that can't be judged, with InputError, TypeError or JudgeUnavailable
        as its cause.
        """
        answers = _answers(questions, contexts, predicted_answers)
        with _value_errors(), tqdm(total=len(answers), disable=not self.progress_bar) as bar:
            judge = self._guard.check_all
            outcomes = judge(answers, partial(bar.update, 1), fail_fast=self.raise_on_failure)
        return self._output(outcomes)

    @component.output_types(
        individual_scores=list[float],
        score=float,
        results=list[dict[str, Any]],
        meta=list[dict[str, Any]],
    )
    async def run_async(
        self,
        questions: list[str],
        contexts: list[list[str]],
        predicted_answers: list[str],
    ) -> dict[str, Any]:
        """Like ``run``, without holding up the event loop."""
        answers = _answers(questions, contexts, predicted_answers)
        with _value_errors(), tqdm(total=len(answers), disable=not self.progress_bar) as bar:
            judge = self._guard.acheck_all
            outcomes = await judge(answers, partial(bar.update, 1), fail_fast=self.raise_on_failure)
        return self._output(outcomes)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values. Raises ConfigError if it has a Judge or a secret."""
        values: dict[str, Any] = default_to_dict(
            self,
            **self._guard.parameters(),
            progress_bar=self.progress_bar,
            raise_on_failure=self.raise_on_failure,
            score=self._guard.score,
            **({} if math.isnan(self.undefined_score) else {"undefined_score": self.undefined_score}),
        )
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The component that ``to_dict`` wrote."""
        made: Self = default_from_dict(cls, data)
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
        scores = [self.undefined_score if each.value is None else each.value for each in scored]
        return {
            "individual_scores": scores,
            "score": fmean(defined) if defined else self.undefined_score,
            "results": [
                {**_statements(outcome), "score": score, "reason": each.reason}
                for outcome, score, each in zip(outcomes, scores, scored, strict=True)
            ],
            "meta": [_meta(outcome) for outcome in outcomes],
        }


@contextmanager
def _value_errors() -> Iterator[None]:
    """An answer that can't be judged raises what theirs raises."""
    try:
        yield
    except (InputError, JudgeError, TypeError) as error:
        raise ValueError(str(error)) from error


def _answers(
    questions: list[str], contexts: list[list[str]], predicted_answers: list[str]
) -> list[AnswerToCheck]:
    given: dict[str, Sized] = {
        "questions": questions,
        "contexts": contexts,
        "predicted_answers": predicted_answers,
    }
    for name, each in given.items():
        if not isinstance(each, list):
            raise TypeError(f"{name}: give a list, not a {type(each).__name__}")
    if len({len(each) for each in given.values()}) > 1:
        lengths = ", ".join(f"{len(each)} {name}" for name, each in given.items())
        raise ValueError(f"there are {lengths}; give as many of each")
    return [
        AnswerToCheck(question, _contexts(texts), answer)
        for question, texts, answer in zip(questions, contexts, predicted_answers, strict=True)
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
