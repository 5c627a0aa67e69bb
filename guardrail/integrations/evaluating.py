"""A guard for evaluation frameworks, which ask from any thread and any event loop.

Some frameworks call from plain code, some from an event loop that lasts as long as one call
(``asyncio.run``), and mostly both. A judge is expensive to open and lives on one event loop, so the guard has
a loop of its own, in a thread of its own. Whoever asks waits for it, in whatever way they can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from copy import copy
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import ValidationError

from guardrail.config import Settings, SettingsError, load_settings
from guardrail.config.problems import explain
from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.evals.evaluation import (
    OWN_SCORE,
    Check,
    check_scores,
    checker,
    counts_parts,
    judging_everything,
)
from guardrail.events import Response, ResponseVerdict
from guardrail.inputs import ContextLike, as_json, event_of, named_contexts
from guardrail.integrations.background import FAILURES, LoopThread, OnOwnLoop
from guardrail.judges.base import Judge
from guardrail.judges.factory import JudgeSet
from guardrail.judges.llm.settings import PromptName
from guardrail.leaves import leaves
from guardrail.routing import PolicyRouter
from guardrail.secrets import MASK

if TYPE_CHECKING:
    from guardrail.integrations.chat_models import ChatModel

CONCURRENCY: Final = 8
"""Answers judged at a time; within an answer the judge has its own bounds."""
_CLOSED: Final = "the evaluator was closed while it judged an answer"

_UNNAMED: Final = "answer"

JudgeLike = Judge | Mapping[str, Any]
"""A judge, or the settings of one: those of the section ``judge`` in the settings file."""
_T = TypeVar("_T")
_WITHIN: Final[ContextVar[tuple[EvaluatingGuard, LoopThread[_Checks]] | None]] = ContextVar(
    "WITHIN", default=None
)
"""The guard whose ``run`` is at work, and its thread."""


class EvaluatingGuard(OnOwnLoop["_Checks"]):
    """Judges whole answers: every claim of them, whatever the policy would do with the text.

    ``judge`` is a Judge, which stays open, or the settings of one; the local judge by default. ``settings``
    is the path of a file as ``guardrail run`` takes it, for the policies and, where ``judge`` is not given,
    the judge; the environment counts then, too. ``llm`` is the LLM judge's model, which makes it the judge
    unless settings name a cascade. ``concurrency`` answers are judged at a time. ``score`` names the
    published score that is wanted (``guardrail.evals.scores.SCORES``): claims are taken apart if it counts
    their parts.

    It opens on first use, and may be used again after it was closed. Plain code asks by ``run``. Raises
    ConfigError if settings are wrong.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        settings: str | Path | None = None,
        *,
        llm: ChatModel | None = None,
        concurrency: int = CONCURRENCY,
        score: str = OWN_SCORE,
    ) -> None:
        super().__init__("evaluating-guard", _CLOSED)
        if isinstance(judge, Judge) and llm is not None:
            raise ConfigError(f"judge: give a {type(judge).__name__}, or {llm.name}, not both")
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigError(
                f"concurrency: {concurrency!r} is no whole number from 1; give the answers judged at a time"
            )
        self._concurrency = concurrency
        self._llm = llm
        check_scores([score])
        self.score = score
        self._path = None if settings is None else str(settings)
        given: object = judge
        if not isinstance(given, Judge | Mapping | None):
            what = "settings ({'kind': 'llm', …})"
            raise TypeError(f"judge: give a guardrail.Judge or {what}, not a {type(judge).__name__}")
        self._judge = judge if isinstance(judge, Judge) else None
        self._values = dict(judge) if isinstance(judge, Mapping) else None
        self._prompts: dict[str, Any] = {}
        self._settings()  # wrong ones are told where they are written, not where they are first used

    def __deepcopy__(self, _: object) -> EvaluatingGuard:
        return copy(self)  # what it asks is an application's, and shared

    # ------------------------------------------------------------------------------- open and close

    def open(self) -> None:
        """Open the judge, which takes tenths of a second for the local one, now instead of on first use."""
        self._running().ready.result()

    async def aopen(self) -> None:
        """Like ``open``."""
        await asyncio.wrap_future(self._running().ready)

    # ---------------------------------------------------------------------------------------- judge

    async def acheck(self, question: str, contexts: Sequence[ContextLike], answer: str) -> ResponseVerdict:
        """Judge an answer. Raises InputError, which names the invalid field, and JudgeUnavailable if the
        judge could not say anything of any claim. What the caller cancels is cancelled.
        """
        return await self._asked().await_(lambda checks: checks.check(question, contexts, answer))

    async def acheck_all(
        self,
        answers: Iterable[tuple[str, Sequence[ContextLike], str]],
        on_done: Callable[[], object],
        *,
        fail_fast: bool,
    ) -> list[ResponseVerdict | Exception]:
        """Judge answers as ``acheck`` does, concurrently. In their order: the verdict, or the error.

        ``on_done`` is called after each. With ``fail_fast`` the first error ends the rest and is raised.
        """

        async def one(answer: tuple[str, Sequence[ContextLike], str]) -> ResponseVerdict | Exception:
            try:
                return await self.acheck(*answer)
            except Exception as error:
                if fail_fast:
                    raise
                return error
            finally:
                on_done()

        tasks = [asyncio.create_task(one(answer)) for answer in answers]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def run(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The result of work that asks this guard, for plain code. An event loop there stands still."""
        thread = self._running()

        async def within() -> _T:
            _WITHIN.set((self, thread))
            return await work()

        return thread.wait(thread.begin(lambda _: within()))

    def _asked(self) -> LoopThread[_Checks]:
        """For the work of ``run`` the thread that it is on, even while that closes: it opens no other."""
        within = _WITHIN.get()
        return within[1] if within is not None and within[0] is self else self._running()

    # ------------------------------------------------------------------------------------- settings

    def prompts(self) -> dict[str, str]:
        """The texts of the prompts by name, with our variables ($claims, …); none if no LLM is asked."""
        if self._judge is not None:
            return {}
        judge = self._settings().judge
        if "llm" not in judge.kinds():
            return {}
        from guardrail.judges.llm.prompt import template

        names: tuple[PromptName, ...] = ("system", "user")
        return {name: template(name, judge.llm.prompts).template for name in names}

    def with_prompts(self, texts: Mapping[str, Any]) -> EvaluatingGuard:
        """A guard whose LLM judge has these prompts, or ``examples``, a list of mappings. Raises ConfigError,
        which names a missing variable.
        """
        known = self.prompts()
        unknown = sorted(texts.keys() - known.keys() - ({"examples"} if known else set()))
        if unknown:
            there_are = f"there are {' and '.join(known)}" if known else "this judge asks no LLM"
            raise ConfigError(f"prompt {unknown[0]!r} is unknown: {there_are}")
        changed = copy(self)
        changed._prompts = {**self._prompts, **texts}
        changed._settings()
        return changed

    def parameters(self) -> dict[str, Any]:
        """What an equal guard is made with, as plain values.

        Raises ConfigError where that can't be: a Judge is an object, and a secret may not be written down.
        """
        if self._judge is not None:
            raise ConfigError(
                f"judge: a {type(self._judge).__name__} can't be written down; give the settings of a judge"
            )
        judge = None
        if self._values is not None:
            settings = Settings.model_validate({"judge": self._values})
            secret = _masked(settings.masked()["judge"])
            if secret is not None:
                raise ConfigError(
                    f"judge.{secret}: it may be a secret, which must not be written down; give "
                    "{env: VARIABLE} or {file: PATH}, or give a settings file by its path (settings=…)"
                )
            judge = settings.judge.model_dump(mode="json", exclude_unset=True)
        values = {"judge": judge, "settings": self._path, "concurrency": self._concurrency}
        return {name: value for name, value in values.items() if value is not None}

    # --------------------------------------------------------------------------------------- inside

    def _settings(self) -> Settings:
        judge = self._values if self._llm is None else self._llm.settings(self._values or {})
        given = {} if judge is None else {"judge": judge}
        try:
            # Without a file the environment has no say, as for Guard.
            settings = load_settings(self._path, given) if self._path else Settings.model_validate(given)
        except ValidationError as error:
            raise SettingsError(explain(Settings, error, lambda _: None)) from None
        if self._prompts:
            llm = settings.judge.llm
            try:
                llm = llm.model_copy(update={"prompts": llm.prompts.given(self._prompts)})
            except ValueError as error:
                raise ConfigError(f"prompt {error}") from None
            settings = settings.model_copy(update={"judge": settings.judge.model_copy(update={"llm": llm})})
        return settings if self._llm is None else self._llm.asked_by(settings)

    def _opening(self) -> Callable[[AsyncExitStack], Awaitable[_Checks]]:
        parts = counts_parts([self.score])
        return partial(_opened, self._judge, self._settings(), self._concurrency, parts)


class HasGuard:
    """What every evaluator and metric does with its guard."""

    _guard: EvaluatingGuard

    def close(self) -> None:
        """Close the judge that was opened here; the next answer opens it again."""
        self._guard.close()

    async def aclose(self) -> None:
        """Like ``close``."""
        await self._guard.aclose()


def with_own_ids(contexts: Iterable[tuple[str, str]]) -> list[ContextLike]:
    """Ids and texts as contexts, under our own names if an id is empty or there twice."""
    pairs = list(contexts)
    ids = {id_ for id_, _ in pairs if id_}
    if len(ids) < len(pairs):
        return [text for _, text in pairs]
    return [{"id": id_, "text": text} for id_, text in pairs]


def _masked(shown: Mapping[str, Any]) -> str | None:
    """The path of a value that settings don't show, or only in part; None if there is none."""
    hidden = (leaf.dotted for leaf in leaves(shown) if isinstance(leaf.value, str) and MASK in leaf.value)
    return next(hidden, None)


# ------------------------------------------------------------------------------------- in the thread


def _why(verdict: ResponseVerdict) -> str:
    """What the judge's failures said; no text of the answer is in them."""
    reasons = dict.fromkeys(claim.reasoning for claim in verdict.claims if claim.reasoning)
    return f": {'; '.join(list(reasons)[:3])}" if reasons else ""


class _Checks:
    """What judges, on the loop of the thread."""

    def __init__(self, check: Check, concurrency: int) -> None:
        self._check = check
        self._slots = asyncio.Semaphore(concurrency)

    async def check(self, question: str, contexts: Sequence[ContextLike], answer: str) -> ResponseVerdict:
        fields = {"question": question, "contexts": named_contexts(contexts), "answer": answer}
        response = event_of(Response, _UNNAMED, fields)
        content = as_json(response)
        # The same answer has the same ids in every run.
        response = response.model_copy(update={"response_id": blake2b(content, digest_size=16).hexdigest()})
        failures: list[BaseException] = []
        FAILURES.set(failures)
        async with self._slots:
            verdict = await self._check(response)
        if verdict.claims and all(claim.unanswered for claim in verdict.claims):
            cause = failures[-1] if failures else None
            raise JudgeUnavailable(f"no claim of the answer could be judged{_why(verdict)}") from cause
        return verdict


async def _opened(
    judge: Judge | None, settings: Settings, concurrency: int, parts: bool, stack: AsyncExitStack
) -> _Checks:
    live = settings.policies
    policies = {name: judging_everything(policy) for name, policy in live.items()}
    router = PolicyRouter(policies, settings.routes, settings.default_policy, settings.challengers)
    modes = {name: policy.mode for name, policy in live.items()}
    if judge is not None:
        return _Checks(checker(judge, router, settings.limits, modes=modes, parts=parts), concurrency)
    judges = await asyncio.to_thread(JudgeSet, settings.judge, router.policies)
    stack.push_async_callback(judges.aclose)
    check = checker(judges.default, router, settings.limits, judges.by_kind, modes, parts=parts)
    return _Checks(check, concurrency)
