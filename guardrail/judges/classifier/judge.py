"""The classifier judge: every claim against every window of the contexts, in batches."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.base import JudgeRequest
from guardrail.judges.classifier.batching import Batcher
from guardrail.judges.classifier.labels import Scores
from guardrail.judges.classifier.loading import load_classifier
from guardrail.judges.classifier.preparing import Prepared, Preparer
from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.classifier.verdicts import settle
from guardrail.judges.streams import closing
from guardrail.verdicts import Judgement, unverified

_NO_CONTEXTS = "There are no contexts to support it."
_LATE = "the model did not get to this claim before the deadline"


class ClassifierJudge:
    """A Judge. One thread tokenises, one runs the model; both end with ``aclose``."""

    def __init__(self, settings: ClassifierSettings, section: str = "judge.classifier") -> None:
        """Loads the model, which may take seconds, and a download before that. Raises ConfigError."""
        self._settings = settings
        classifier = load_classifier(settings, section)
        # Of a folder the last part: verdicts don't tell how this machine is laid out.
        model = settings.model or ""
        self._name = f"{section.rpartition('.')[2]}:{Path(model).name if Path(model).is_dir() else model}"
        self._tells_contradiction = classifier.labels.has_contradiction
        self._preparer = Preparer(classifier.form, settings, self._name)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="classifier-tokens")
        self._batcher = Batcher(
            classifier.score, settings.batch_size, settings.max_queued_pairs, "classifier-model"
        )

    @property
    def name(self) -> str:
        return self._name

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Judge what can be judged before the deadline; the rest is UNVERIFIED and says why.

        Raises JudgeUnavailable when nothing could be, for want of time or of room in the queue.
        """
        if not any(context.text.strip() for context in request.evidence.contexts):
            for claim_id in request.claims:
                yield Judgement(claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, self._name, reasoning=_NO_CONTEXTS)
            return
        prepared = await self._prepared(request) if request.claims else {}
        failed = dict.fromkeys(request.claims, _LATE)
        pending: dict[asyncio.Future[list[Scores]], str] = {}
        try:
            for claim_id, claim in prepared.items():
                if isinstance(claim, Prepared):
                    pending[self._batcher.submit(claim.pairs, request.deadline)] = claim_id
                else:
                    del failed[claim_id]
                    yield claim
            async with closing(_as_done(pending, request.deadline)) as done:
                async for future in done:
                    claim_id = pending.pop(future)
                    error = _failure(future)
                    if error is not None:
                        failed[claim_id] = str(error)
                        continue
                    del failed[claim_id]
                    yield await asyncio.to_thread(
                        self._settled, request, claim_id, prepared[claim_id], future.result()
                    )
        finally:
            for future in pending:
                if not future.cancel():
                    _failure(future)  # looked at, so that asyncio doesn't report it as forgotten
        if failed and len(failed) == len(request.claims):
            raise JudgeUnavailable(next((why for why in failed.values() if why != _LATE), _LATE))
        for claim_id, why in failed.items():
            yield unverified(claim_id, self._name, why)

    async def aclose(self) -> None:
        """Fail what waits, let the running batch end, and free the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        await self._batcher.aclose()

    async def _prepared(self, request: JudgeRequest) -> dict[str, Prepared | Judgement]:
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            job = loop.run_in_executor(self._pool, lambda: dict(self._preparer.prepare(request, stopped)))
            async with asyncio.timeout(max(0.0, request.deadline - time.monotonic())) as scope:
                return await job
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable("the contexts could not be prepared within the deadline") from None
        finally:
            stopped.set()

    def _settled(
        self, request: JudgeRequest, claim_id: str, claim: Prepared | Judgement, scores: list[Scores]
    ) -> Judgement:
        if not isinstance(claim, Prepared):
            return claim
        if not scores:
            return unverified(claim_id, self._name, "the tokenizer finds nothing in the contexts")
        text = request.claims[claim_id].prose.text
        return settle(
            claim_id,
            text,
            claim.windows,
            scores,
            request.evidence,
            self._settings,
            self._name,
            claim.note,
            tells_contradiction=self._tells_contradiction,
        )


async def _as_done(
    pending: Mapping[asyncio.Future[list[Scores]], str], deadline: float
) -> AsyncIterator[asyncio.Future[list[Scores]]]:
    """The futures as they are done, until ``deadline``; the caller takes each out of ``pending``."""
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
    """Why a future that is done has no scores; None where it has."""
    if future.cancelled():
        return JudgeUnavailable(_LATE)
    error = future.exception()
    if error is None or isinstance(error, JudgeError):
        return error
    return JudgeUnavailable(f"the model failed ({type(error).__name__})")
