"""Evaluate many complete responses at once: verdicts, scores and errors, in the order of the samples; and,
if asked for, the steps to each verdict.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
import warnings
from collections import Counter
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from itertools import groupby
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from guardrail.errors import ConfigError, GuardrailError, InputError, JudgeUnavailable, only_cause
from guardrail.evals.explanation import Explainer, explained
from guardrail.evals.formats import Format, read_samples, samples_of, unread_messages
from guardrail.evals.formats.values import Row, Unread
from guardrail.evals.results import BadSample, Evaluation, EvaluationResult, Sample, TraceStep
from guardrail.evals.scores import OF_CLAIMS, SCORES, all_scores
from guardrail.events import Response, ResponseVerdict
from guardrail.guard import Guard
from guardrail.judges.base import Judge
from guardrail.judges.recorder import JudgeStep, recording
from guardrail.judges.statements import StatementsJudge
from guardrail.limits import Limits
from guardrail.policy import Mode, Policy
from guardrail.routing import PolicyRouter

OWN_SCORE: Final = "severity_weighted"
"""The score that a policy decides by, in its formula and weights."""
_HELD_BYTES: Final = 64 * 1024 * 1024
_SAMPLES_PER_SLOT: Final = 4
_REMOTE_CONCURRENCY: Final = 16
_CLAIM_TIMEOUT_MS: Final = 24 * 3_600_000
"""Ends a judge that hangs; no answer that can be read takes as long. Judges that call out have limits of
their own for a call."""


_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
Check = Callable[[Response], Awaitable[ResponseVerdict]]
SampleLike: TypeAlias = Sample | BadSample | Response | Mapping[str, Any]
"""What can be evaluated: a sample, a response, or a row of any format as a mapping."""
Samples: TypeAlias = Iterable[SampleLike] | AsyncIterable[SampleLike] | str | Path | Any
"""Samples, the name of a file with them, or a pandas DataFrame of rows."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of each answer beside its verdict."""

    scores: Sequence[str] = (OWN_SCORE,)
    explain: bool = False
    """The reason in words, by template or, of what is in doubt, by ``explainer``."""
    explainer: Explainer | None = None
    trace: bool = False
    """The steps to the verdict, with every prompt and reply."""


def judging_everything(policy: Policy) -> Policy:
    """The policy for offline use: same rules and thresholds, but no claim goes unjudged.

    A live answer ends at the first claim that blocks it; here nobody waits for the text, and the score is
    to speak of all claims, so that answers can be compared. For the same reason no verdict may depend on
    how fast the machine is: the live limit on the wait for one is lifted.
    """
    return policy.model_copy(update={"mode": "observe", "claim_timeout_ms": _CLAIM_TIMEOUT_MS})


def checker(
    judge: Judge,
    router: PolicyRouter,
    limits: Limits | None = None,
    judges: Mapping[str, Judge] | None = None,
    modes: Mapping[str, Mode] | None = None,
    *,
    parts: bool = False,
) -> Check:
    """A function that judges one response with a guard of its own.

    A shared guard takes an id once only, as a stream must; in a file the same id may stand twice, with two
    answers to compare, and both are judged. The judge, which is what costs, is shared. A response's
    ``deadline_ms`` is for the user who waited for it then, so it does not hold here.

    ``modes`` are those that the policies have live, by name: verdicts bear them, since that is what their
    readers know the policies by. ``parts``: claims of several statements are taken apart, as ``counts_parts``
    says that scores need.
    """
    if parts:
        judge = StatementsJudge(judge)
        judges = {kind: StatementsJudge(each) for kind, each in (judges or {}).items()}

    async def check(response: Response) -> ResponseVerdict:
        async with Guard(judge, router=router, judges=judges, limits=limits) as guard:
            verdict = await guard.check_event(response.model_copy(update={"deadline_ms": None}))
        live = (modes or {}).get(verdict.policy.name, verdict.mode)
        return verdict if live == verdict.mode else verdict.model_copy(update={"mode": live})

    return check


def counts_parts(scores: Iterable[str]) -> bool:
    """Whether any of these scores counts statements."""
    return not OF_CLAIMS.issuperset(scores)


def default_concurrency(judge_name: str) -> int:
    """Responses judged at a time: one a processor for the local judge, more for judges that wait."""
    return os.cpu_count() or 1 if judge_name == "local" else _REMOTE_CONCURRENCY


async def aevaluate(
    samples: Samples,
    *,
    judge: Judge | None = None,
    policy: Policy | None = None,
    scores: Sequence[str] = (OWN_SCORE,),
    concurrency: int | None = None,
    progress: bool = False,
    raise_on_failure: bool = False,
    explain: bool = False,
    explainer: Explainer | None = None,
    trace: bool = False,
    source_format: Format = "auto",
    name: str = "",
) -> Evaluation:
    """Judge every claim of every sample, and score the answers.

    ``judge`` defaults to the local judge; one that you pass stays open. ``concurrency`` answers are judged
    at a time. For scores that count statements, claims of several are taken apart. A sample that can't be
    read or judged is a result with ``error`` and never a score, or with
    ``raise_on_failure`` an error that ends everything: InputError or JudgeUnavailable. ``progress`` shows a
    bar on stderr if that is a terminal. ``explain`` adds the reason in words to each result, by template or
    by ``explainer``; ``trace`` the steps to its verdict, which hold texts of prompts and documents. Warns of
    values where labels should be that say nothing of right or wrong. Raises ConfigError for an unknown score.
    """
    check_scores(scores)
    policy = policy or Policy()
    own = judge is None
    if judge is None:
        from guardrail.judges.local import LocalJudge

        judge = await asyncio.to_thread(LocalJudge)
    router = PolicyRouter.single(judging_everything(policy))
    results: list[EvaluationResult] = []
    unread: Counter[Unread] = Counter()

    async def noted(found: AsyncIterator[Sample | BadSample]) -> AsyncIterator[Sample | BadSample]:
        async for sample in found:
            if isinstance(sample, Sample):
                unread.update(sample.unread)
            yield sample

    with ExitStack() as stack:
        length = len(samples) if isinstance(samples, Sized) and not isinstance(samples, str) else None
        told = stack.enter_context(_bar(length)) if progress else None

        def take(result: EvaluationResult) -> None:
            if raise_on_failure:
                raise_failure(result)
            results.append(result)
            if told is not None:
                told()

        try:
            await evaluate_each(
                noted(_arriving(samples, source_format)),
                checker(judge, router, modes={policy.name: policy.mode}, parts=counts_parts(scores)),
                take,
                concurrency=concurrency or default_concurrency(judge.name),
                asked=Asked(scores, explain or explainer is not None, explainer, trace),
            )
        finally:
            if own:
                await judge.aclose()
    for line in unread_messages(unread):
        warnings.warn(line, stacklevel=2)
    settings = {
        "judge": judge.name,
        "policy": f"{policy.name} {policy.version}".strip(),
        "scores": ", ".join(scores),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Evaluation(tuple(results), name, settings)


def _blocking(evaluating: Callable[_Given, Coroutine[Any, Any, _Found]]) -> Callable[_Given, _Found]:
    @wraps(evaluating)
    def evaluate(*args: _Given.args, **given: _Given.kwargs) -> _Found:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(evaluating(*args, **given))
        done = Future[_Found]()

        def work() -> None:
            try:
                done.set_result(asyncio.run(evaluating(*args, **given)))
            except BaseException as error:  # noqa: BLE001 - raised again by the caller
                done.set_exception(error)

        threading.Thread(target=work, name="evaluate", daemon=True).start()
        return done.result()

    return evaluate


evaluate = _blocking(aevaluate)
"""As ``aevaluate``, for code without an event loop. In a notebook, whose loop runs, it uses a thread; a judge
that was used on that loop can't be given then.
"""


def raise_failure(result: EvaluationResult) -> None:
    """Raises InputError for a sample that went wrong, JudgeUnavailable if no claim of it was judged."""
    if result.verdict is None:
        raise InputError("invalid_sample", f"{result.place}: {result.error}")
    claims = result.verdict.claims
    if claims and all(claim.unanswered for claim in claims):
        raise JudgeUnavailable(f"{result.place}: no claim could be judged: {claims[0].reasoning}")


def check_scores(names: Iterable[str]) -> None:
    """Raises ConfigError naming the scores that there are."""
    for name in names:
        if name not in [*SCORES]:  # a list in its place can't be looked up
            raise ConfigError(f"unknown score {name!r}; known scores: {', '.join(SCORES)}")


async def evaluate_each(
    samples: AsyncIterator[Sample | BadSample],
    check: Check,
    on_result: Callable[[EvaluationResult], None],
    *,
    concurrency: int,
    asked: Asked = Asked(),
    max_held_bytes: int = _HELD_BYTES,
    in_order: bool = True,
) -> None:
    """Evaluate every sample, ``concurrency`` at a time; ``on_result`` is called for each in order, as soon as
    all before it are done, or else as soon as it is done itself.

    Memory is bounded: no more than a few samples for each concurrent judgement, and about ``max_held_bytes``
    of them, are read ahead of the first that is not done. What ``on_result`` raises ends everything and is
    raised here.
    """
    slots = asyncio.Semaphore(concurrency)
    most = concurrency * _SAMPLES_PER_SLOT
    ahead = asyncio.Queue[asyncio.Task[tuple[int, EvaluationResult]] | None]()
    places = asyncio.Semaphore(most)
    held = _BytesHeld(max_held_bytes)

    async def evaluate_one(sample: Sample | BadSample, size: int) -> tuple[int, EvaluationResult]:
        async with slots:
            return size, await _result_of(sample, check, asked)

    async def read(group: asyncio.TaskGroup) -> None:
        async for sample in samples:
            size = _size(sample)
            await held.take(size)
            await places.acquire()
            task = group.create_task(evaluate_one(sample, size))
            if in_order:
                ahead.put_nowait(task)
            else:
                task.add_done_callback(ahead.put_nowait)
        for _ in range(most):  # until all are done
            await places.acquire()
        ahead.put_nowait(None)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(read(group))
            while (task := await ahead.get()) is not None:
                size, result = await task
                held.give_back(size)
                on_result(result)
                places.release()
    except BaseExceptionGroup as errors:
        # Callers handle causes (a closed pipe, a full disk), not groups.
        raise only_cause(errors) from None


async def _result_of(sample: Sample | BadSample, check: Check, asked: Asked) -> EvaluationResult:
    if isinstance(sample, BadSample):
        return EvaluationResult(place=sample.place, error=sample.error)
    told: dict[str, Any] = {"place": sample.place, "response": sample.response, "labels": sample.labels}
    try:
        if asked.trace:
            verdict, told["trace"] = await traced(check, sample.response)
        else:
            verdict = await check(sample.response)
    except GuardrailError as error:
        return EvaluationResult(**told, error=str(error) or type(error).__name__)
    if asked.explain:
        told["explanation"] = await explained(verdict, sample.response, asked.explainer)
    return EvaluationResult(**told, verdict=verdict, scores=all_scores(verdict, asked.scores))


def _size(sample: Sample | BadSample) -> int:
    """About how many bytes it holds."""
    if isinstance(sample, BadSample):
        return len(sample.error)
    response = sample.response
    return len(response.answer) + len(response.question) + sum(len(each.text) for each in response.contexts)


async def _arriving(samples: Samples, source_format: Format) -> AsyncIterator[Sample | BadSample]:
    """What the caller handed in, as samples; other tasks get a turn after each."""
    if isinstance(samples, AsyncIterable):
        number = 0
        async for each in samples:
            number += 1
            for found in _as_samples([each], source_format, number):
                yield found
        return
    if isinstance(samples, (str, Path)):
        found_in = read_samples(samples, source_format)
    else:
        frame: Any = samples
        if hasattr(frame, "to_dict") and hasattr(frame, "columns"):
            samples = frame.to_dict("records")
        found_in = _as_samples(samples, source_format, 1)
    for found in found_in:
        yield found
        await asyncio.sleep(0)


def _as_samples(
    given: Iterable[SampleLike], source_format: Format, first: int
) -> Iterator[Sample | BadSample]:
    for is_row, group in groupby(enumerate(given, start=first), lambda each: isinstance(each[1], Mapping)):
        if is_row:
            yield from samples_of(map(_row, group), source_format)
            continue
        for number, each in group:
            if isinstance(each, (Sample, BadSample)):
                yield each
            elif isinstance(each, Response):
                yield Sample(each, place=f"row {number}")
            else:
                raise TypeError(
                    f"samples: {type(each).__name__} is none; give Sample, Response or mappings with "
                    "question, contexts and answer"
                )


def _row(numbered: tuple[int, Any]) -> Row:
    number, given = numbered
    is_nan = {key for key, value in given.items() if isinstance(value, float) and math.isnan(value)}
    fields = {str(key): value for key, value in given.items() if key not in is_nan}
    return Row(f"row {number}", fields)


class _BytesHeld:
    """Bytes of samples between being read and being done. One taker."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bytes = 0
        self._room = asyncio.Event()

    async def take(self, size: int) -> None:
        # A sample above the limit is let through alone.
        while self._bytes and self._bytes + size > self._limit:
            self._room.clear()
            await self._room.wait()
        self._bytes += size

    def give_back(self, size: int) -> None:
        self._bytes = max(0, self._bytes - size)
        self._room.set()


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[], None]]:
    """A bar on stderr; nothing where that is no terminal. Call what this gives for each result."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


# ----------------------------------------------------------------- the steps to a verdict


async def traced(check: Check, response: Response) -> tuple[ResponseVerdict, tuple[TraceStep, ...]]:
    """``await check(response)``, and how it came about, in the order in which the steps began.

    ``check`` must judge with a guard of its own, as that of ``checker`` does: on a guard that several answers
    share, one answer's calls may be begun by another's. A verdict from a cache has no call. A trace holds
    texts of the answer and its contexts, and no keys or headers. Raises what ``check`` raises.
    """
    with recording() as recorded:
        verdict = await check(response)
    steps = sorted(recorded.steps, key=lambda step: step.begun_at)
    return verdict, (*map(_judge_step, steps), _verdicts_step(verdict))


def _judge_step(step: JudgeStep) -> TraceStep:
    told = {name: getattr(step, name) for name in TraceStep.model_fields if name not in {"step", "judge"}}
    return TraceStep(step=step.kind, judge=step.judge or None, **told)


def _verdicts_step(verdict: ResponseVerdict) -> TraceStep:
    """What the guard made of it, a claim a line: findings that don't depend on a judge are in it."""
    names = {
        "claim_id",
        "verdict",
        "support",
        "confidence",
        "judge",
        "attempts",
        "degraded_from",
        "reasoning",
    }
    lines = [
        json.dumps(claim.model_dump(mode="json", include=names), ensure_ascii=False)
        for claim in verdict.claims
    ]
    return TraceStep(
        step="verdicts",
        claim_ids=tuple(claim.claim_id for claim in verdict.claims),
        reply="\n".join(lines),
        latency_ms=verdict.timings.total_ms,
    )
