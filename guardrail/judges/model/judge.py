"""The classifier judge: every claim against every window of the contexts, in batches."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Evidence, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import STOP_TERMS, terms_of
from guardrail.judges.base import JudgeRequest, without_contexts
from guardrail.judges.model.classifier import BATCH_SIZE, PairReader, Scores, load_classifier, served_model
from guardrail.judges.model.settings import SECTION, ClassifierSettings, ServerSettings
from guardrail.judges.model.tokens import Pair, PairForm, TokenisedText
from guardrail.judges.recorder import Recorder, recorder
from guardrail.judges.streams import closing
from guardrail.verdicts import Judgement, unverified

if TYPE_CHECKING:
    from guardrail.judges.model.servers import RemoteScores

_MOST_QUEUED: Final = 20_000  # pairs that may wait for the model
_OVERLAP: Final = 64  # tokens that neighbouring windows of a context share
_LEAST_PREMISE: Final = 32  # tokens; fewer contain no sentence to judge by
_SLACK: Final = 4  # the number of tokens changes slightly where the window meets the template
_ROUNDED_TO: Final = 16  # tokens that premises have room for: claims of about one length share windows
_MOST_QUOTE_CHARS: Final = 600
_LATE: Final = "the model did not get to this claim before the deadline"
_TOO_LONG: Final = "the claim is too long for the model's window"
_NO_TOKENS: Final = "the tokenizer finds nothing in the contexts"


# ----------------------------------------------------------------------------------- one thread for one model

Score = Callable[[Sequence[Pair]], Sequence[Scores | JudgeError]]
"""Scores of pairs, in their order, or why a pair has none. Blocks; runs in the batcher's thread only."""


@dataclass(slots=True)
class _Job:
    """The pairs of one claim: those waiting, which the holder of the batcher's lock owns, and the scores of
    those that ran, which its thread owns.
    """

    waiting: deque[Pair]
    wanted: int
    deadline: float
    future: Future[list[Scores]] = field(default_factory=Future)
    scores: list[Scores] = field(default_factory=list)

    def settle(self, result: list[Scores] | JudgeError) -> None:
        """Tell who waits for it, in whichever thread or loop. What was withdrawn or told already stays so."""
        with suppress(InvalidStateError):
            if isinstance(result, JudgeError):
                self.future.set_exception(result)
            else:
                self.future.set_result(result)


class Batcher:
    """Runs a model in its own thread.

    Claims are taken by deadline, so that under load as many as possible are finished rather than all begun. A
    claim whose deadline has passed, or whose future was cancelled, is dropped before its next batch.
    """

    def __init__(self, score: Score, batch_size: int, max_queued: int, name: str) -> None:
        """``max_queued`` bounds the waiting pairs, except that one claim is always accepted."""
        self._score = score
        self._batch_size = batch_size
        self._max_queued = max_queued
        self._order = itertools.count()
        self._lock = threading.Condition()
        self._heap: list[tuple[float, int, _Job]] = []
        self._queued = 0  # waiting pairs
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self,
        pairs: Sequence[Pair],
        deadline: float,
        response_id: str = "",  # noqa: ARG002 (a server's takes turns by it)
    ) -> asyncio.Future[list[Scores]]:
        """A future of the scores of ``pairs``; cancelling it withdraws them.

        ``deadline`` is a reading of ``time.monotonic()``. Fails with JudgeUnavailable if the queue is full,
        the deadline has passed or the batcher was closed, and with JudgeError if the model failed.
        """
        job = _Job(deque(pairs), len(pairs), deadline)
        with self._lock:
            if self._closed:
                job.settle(JudgeUnavailable("the judge is closed"))
            elif self._queued and self._queued + len(pairs) > self._max_queued:
                job.settle(JudgeUnavailable(f"{self._queued} pairs wait for the model"))
            elif not pairs:
                job.settle([])
            else:
                heapq.heappush(self._heap, (deadline, next(self._order), job))
                self._queued += len(pairs)
                job.future.add_done_callback(lambda _: self._done(job))
                self._lock.notify()
        return asyncio.wrap_future(job.future)

    async def aclose(self) -> None:
        """Fail waiting claims and end the thread, after the current batch."""
        with self._lock:
            self._closed = True
            jobs = [job for _, _, job in self._heap]
            self._heap.clear()
            self._queued = 0
            self._lock.notify()
        for job in jobs:
            job.settle(JudgeUnavailable("the judge is closed"))
        await asyncio.to_thread(self._thread.join)

    def _done(self, job: _Job) -> None:
        if job.future.cancelled():
            with self._lock:
                self._drop(job)

    def _drop(self, job: _Job) -> None:
        """Stop processing ``job``, under the lock; it leaves the heap when its turn comes."""
        if not self._closed:
            self._queued -= len(job.waiting)
        job.waiting.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._heap and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                batch = self._take()
            if batch:
                self._run_batch(batch)

    def _take(self) -> list[tuple[_Job, Pair]]:
        """The next batch, under the lock."""
        batch: list[tuple[_Job, Pair]] = []
        now = time.monotonic()
        while self._heap and len(batch) < self._batch_size:
            job = self._heap[0][2]
            if job.waiting and job.deadline <= now:
                self._drop(job)
                job.settle(JudgeUnavailable("the deadline has passed"))
            count = min(len(job.waiting), self._batch_size - len(batch))
            batch += [(job, job.waiting.popleft()) for _ in range(count)]
            self._queued -= count
            if not job.waiting:
                heapq.heappop(self._heap)
        return batch

    def _run_batch(self, batch: list[tuple[_Job, Pair]]) -> None:
        error: JudgeError | None = None
        scores: Sequence[Scores | JudgeError] = ()
        try:
            scores = self._score([pair for _, pair in batch])
        except JudgeError as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 (a runtime's errors have no common root, and texts in them)
            error = JudgeUnavailable(f"the model failed ({type(caught).__name__})")
        if error is None and len(scores) != len(batch):
            error = JudgeUnavailable("the model gave another number of results than it was asked for")
        if error is not None:
            for job in {id(job): job for job, _ in batch}.values():
                self._fail(job, error)
            return
        for (job, _), score in zip(batch, scores, strict=True):
            if isinstance(score, JudgeError):
                self._fail(job, score)
                continue
            job.scores.append(score)
            if len(job.scores) == job.wanted:
                job.settle(job.scores)

    def _fail(self, job: _Job, error: JudgeError) -> None:
        with self._lock:
            self._drop(job)
        job.settle(error)


# -------------------------------------------------------------------------------------------------- the judge


class ClassifierJudge:
    """A Judge. One thread tokenises, one runs the model or waits for its server; ``aclose`` ends both."""

    def __init__(self, settings: ClassifierSettings) -> None:
        """Loads the model, which may take seconds, plus a download. Raises ConfigError."""
        self._settings = settings
        self._batcher: Batcher | RemoteScores
        # For a folder the last part: verdicts don't reveal this machine's paths.
        model = settings.model or ""
        kind = "hhem" if settings.preset == "hhem" else "classifier"
        self._name = f"{kind}:{Path(model).name if Path(model).is_dir() else model}"
        if settings.server is None:
            self._classifier = load_classifier(settings)
            self._reader, self._most_tokens = self._classifier.reader, self._classifier.max_tokens
            self._batcher = Batcher(self._classifier.score, BATCH_SIZE, _MOST_QUEUED, "classifier-model")
        else:
            self._reader, self._batcher = _served(settings, settings.server, self._name)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="classifier-tokens")

    @property
    def name(self) -> str:
        """``classifier:MODEL``, or ``hhem:MODEL``."""
        return self._name

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Judges what it can before the deadline; other claims are UNVERIFIED and say why.

        Raises JudgeUnavailable if it could judge nothing, for lack of time or of room in the queue.
        """
        if not request.has_contexts:
            for judgement in without_contexts(request, self._name, attempts=1):
                yield judgement
            return
        begun_at = time.monotonic()
        if not isinstance(self._batcher, Batcher):
            self._most_tokens = await self._batcher.max_tokens(request.deadline)
        prepared = await self._prepared(request) if request.claims else {}
        failed = dict.fromkeys(request.claims, _LATE)
        pending: dict[asyncio.Future[list[Scores]], str] = {}
        try:
            for claim_id, pairs in prepared.items():
                if pairs:
                    pending[self._batcher.submit(pairs, request.deadline, request.response_id)] = claim_id
                else:
                    del failed[claim_id]
                    yield unverified(claim_id, self._name, _TOO_LONG if pairs is None else _NO_TOKENS)
            async with closing(_as_done(pending, request.deadline)) as done:
                async for future in done:
                    claim_id = pending.pop(future)
                    error = _failure(future)
                    if error is not None:
                        failed[claim_id] = str(error)
                        continue
                    del failed[claim_id]
                    pairs, scores = prepared[claim_id] or [], future.result()
                    settled = await asyncio.to_thread(self._settled, request, claim_id, pairs, scores)
                    if (record := recorder()) is not None:
                        _record(record, settled, pairs, scores, begun_at)
                    yield settled
        finally:
            for future in pending:
                if not future.cancel():
                    _failure(future)  # retrieved, so that asyncio doesn't report it as never retrieved
        if failed and len(failed) == len(request.claims):
            raise JudgeUnavailable(next((why for why in failed.values() if why != _LATE), _LATE))
        for claim_id, why in failed.items():
            yield unverified(claim_id, self._name, why)

    async def aclose(self) -> None:
        """Fail what waits, let the current batch end, and free the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        await self._batcher.aclose()

    async def _prepared(self, request: JudgeRequest) -> dict[str, list[Pair] | None]:
        stopped = threading.Event()
        form, most = self._reader.form, self._most_tokens
        loop = asyncio.get_running_loop()
        try:
            job = loop.run_in_executor(self._pool, lambda: dict(pairs_of(request, form, most, stopped)))
            async with asyncio.timeout(max(0.0, request.deadline - time.monotonic())) as scope:
                return await job
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable("the contexts could not be prepared within the deadline") from None
        finally:
            stopped.set()

    def _settled(
        self, request: JudgeRequest, claim_id: str, pairs: Sequence[Pair], scores: Sequence[Scores]
    ) -> Judgement:
        claim = request.claims[claim_id].prose.text
        told = settle(claim_id, claim, pairs, scores, request.evidence, self._settings, self._name)
        return told if self._reader.labels.has_contradiction else replace(told, contradiction=None)


def _served(
    settings: ClassifierSettings, server: ServerSettings, name: str
) -> tuple[PairReader, RemoteScores]:
    """Imported only where a server runs the model: other judges need no HTTP client."""
    from guardrail.judges.model.servers import RemoteScores, ServerCalls, model_server

    served = served_model(settings)
    asked = model_server(settings, server, served)
    return served.reader, RemoteScores(ServerCalls(server, f"{SECTION}.server", name), asked, served)


def _record(
    record: Recorder, settled: Judgement, pairs: Sequence[Pair], scores: Sequence[Scores], begun_at: float
) -> None:
    """The windows that the model read for a claim, and what it made of each."""
    windows = [f"[{number}] {' '.join(pair.premise.split())}" for number, pair in enumerate(pairs, 1)]
    readings = [
        f"[{number}] support {score.support:.3f}, contradiction {score.contradiction:.3f}"
        for number, score in enumerate(scores, 1)
    ]
    record.add(
        "reading",
        (settled.claim_id,),
        begun_at,
        judge=settled.judge,
        prompt="\n".join(windows),
        reply="\n".join([*readings, f"{settled.verdict}, support {settled.support or 0.0:.3f}"]),
    )


async def _as_done(
    pending: Mapping[asyncio.Future[list[Scores]], str], deadline: float
) -> AsyncIterator[asyncio.Future[list[Scores]]]:
    """The futures as they finish, until ``deadline``; the caller removes each from ``pending``."""
    while pending:
        left = deadline - time.monotonic()
        done, _ = await asyncio.wait(
            tuple(pending), timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            return
        for future in done:
            yield future


def _failure(future: asyncio.Future[list[Scores]]) -> JudgeError | None:
    """Why a finished future has no scores; None if it has."""
    if future.cancelled():
        return JudgeUnavailable(_LATE)
    error = future.exception()
    if error is None or isinstance(error, JudgeError):
        return error
    return JudgeUnavailable(f"the model failed ({type(error).__name__})")


# ------------------------------------------------------------------------------ a request -> pairs to be read


def pairs_of(
    request: JudgeRequest, form: PairForm, max_tokens: int, stopped: threading.Event
) -> Iterator[tuple[str, list[Pair] | None]]:
    """The pairs of each claim, with every window of every context; None if the claim leaves no room.

    CPU work. Ends early when ``stopped`` is set or the deadline has passed.
    """

    def over() -> bool:
        return stopped.is_set() or time.monotonic() >= request.deadline

    texts: list[TokenisedText] = []
    for context in request.evidence.contexts:
        if over():
            return
        # The same length as the context's own text, so that spans are valid for both.
        texts.append(form.tokenised(context.text))
    windows: dict[int, list[tuple[int, int, int]]] = {}
    for claim_id, claim in request.claims.items():
        if over():
            return
        hypothesis = form.plain(statement(claim))
        room = max_tokens - form.overhead(hypothesis) - _SLACK
        if room < _LEAST_PREMISE:
            yield claim_id, None
            continue
        room = room // _ROUNDED_TO * _ROUNDED_TO
        if room not in windows:
            windows[room] = [
                (number, *span) for number, text in enumerate(texts) for span in text.windows(room, _OVERLAP)
            ]
        yield (
            claim_id,
            [
                Pair(texts[number].text, start, end, hypothesis, number)
                for number, start, end in windows[room]
            ],
        )


def statement(claim: Claim) -> str:
    """The hypothesis: the claim after the text that it needs to be understood."""
    lead_in = " ".join(claim.lead_in.split())
    text = " ".join(claim.prose.text.split())
    return f"{lead_in} {text}" if lead_in else text


# -------------------------------------------------------------------------------------- scores -> a judgement


def settle(
    claim_id: str,
    claim: str,
    pairs: Sequence[Pair],
    scores: Sequence[Scores],
    index: EvidenceIndex,
    settings: ClassifierSettings,
    judge: str,
) -> Judgement:
    """The judgement on one claim from all its windows.

    Support is that of the window with the most support: one source is enough for a claim. A contradiction
    counts if it reaches ``contradicted_at`` and no window supports the claim more; if one does, the contexts
    that contradict are reported as conflicting.
    """
    best = max(range(len(scores)), key=lambda number: scores[number].support)
    worst = max(range(len(scores)), key=lambda number: scores[number].contradiction)
    support, contradiction = round(scores[best].support, 6), round(scores[worst].contradiction, 6)
    conflicts: tuple[str, ...] = ()
    if contradiction >= settings.contradicted_at and contradiction > support:
        verdict, confidence, decisive = Verdict.CONTRADICTED, contradiction, worst
        support = min(support, round(1.0 - contradiction, 6))
    else:
        verdict = Verdict.SUPPORTED if support >= settings.supported_at else Verdict.UNSUPPORTED
        decisive = best
        confidence = support if verdict is Verdict.SUPPORTED else max(support, 1.0 - support)
        if verdict is not Verdict.UNSUPPORTED:
            conflicts = tuple(
                dict.fromkeys(
                    index.contexts[pair.context].id
                    for pair, score in zip(pairs, scores, strict=True)
                    if score.contradiction >= settings.contradicted_at and score.contradiction > score.support
                )
            )
    evidence = () if verdict is Verdict.UNSUPPORTED else (quote(pairs[decisive], claim, index),)
    return Judgement(
        claim_id, verdict, confidence, support, judge, evidence, conflicts, contradiction=contradiction
    )


def quote(pair: Pair, claim: str, index: EvidenceIndex) -> Evidence:
    """The sentence of a pair's window that shares most words with ``claim``; the first one if there are
    several.

    The model says which window, not which of its words: the quote is a pointer for people. A sentence longer
    than 600 characters is truncated there.
    """
    context = index.contexts[pair.context]
    text = context.text[pair.start : pair.end]
    wanted = terms_of(claim)
    wanted = wanted - STOP_TERMS or wanted
    found, most = (0, len(text)), -1
    for start, end in zip(*sentence_spans(text), strict=True):
        shared = len(wanted & terms_of(text[start:end]))
        if shared > most:
            found, most = (start, end), shared
    start, end = pair.start + found[0], pair.start + min(found[1], found[0] + _MOST_QUOTE_CHARS)
    return Evidence(context_id=context.id, quote=context.text[start:end], span=(start, end))
