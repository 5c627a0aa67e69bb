"""The classifier judge: every claim against every window of the contexts, in batches."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.base import Judgement, JudgeReply, JudgeRequest, unverified
from guardrail.judges.classifier.batching import Batcher
from guardrail.judges.classifier.labels import Scores
from guardrail.judges.classifier.loading import load_classifier
from guardrail.judges.classifier.preparing import Prepared, Preparer
from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.classifier.verdicts import settle

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
        self._preparer = Preparer(classifier.form, settings, self._name)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="classifier-tokens")
        self._batcher = Batcher(
            classifier.score, settings.batch_size, settings.max_queued_pairs, "classifier-model"
        )

    @property
    def name(self) -> str:
        return self._name

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """Judge what can be judged before the deadline; the rest is UNVERIFIED and says why.

        Raises JudgeUnavailable when nothing could be, for want of time or of room in the queue.
        """
        if not request.claims:
            return JudgeReply(())
        if not any(context.text.strip() for context in request.evidence.contexts):
            return JudgeReply(
                tuple(
                    Judgement(claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, self._name, reasoning=_NO_CONTEXTS)
                    for claim_id in request.claims
                )
            )
        prepared = await self._prepared(request)
        futures: dict[str, asyncio.Future[list[Scores]]] = {}
        try:
            for claim_id, claim in prepared.items():
                if isinstance(claim, Prepared):
                    futures[claim_id] = self._batcher.submit(claim.pairs, request.deadline)
            if futures:
                await asyncio.wait(futures.values(), timeout=max(0.0, request.deadline - time.monotonic()))
        finally:
            failures = {claim_id: _failure(future) for claim_id, future in futures.items()}
        judgements: list[Judgement] = []
        reasons: list[JudgeError] = []
        for claim_id in request.claims:
            found = prepared.get(claim_id)
            failure = failures.get(claim_id) if found is not None else JudgeUnavailable(_LATE)
            if failure is not None:
                reasons.append(failure)
                judgements.append(unverified(claim_id, self._name, str(failure)))
            elif isinstance(found, Prepared):
                scores = futures[claim_id].result()
                judgements.append(await asyncio.to_thread(self._settled, request, claim_id, found, scores))
            elif found is not None:
                judgements.append(found)
        if len(reasons) == len(request.claims):
            raise JudgeUnavailable(str(reasons[0]))
        return JudgeReply(tuple(judgements))

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
        self, request: JudgeRequest, claim_id: str, claim: Prepared, scores: list[Scores]
    ) -> Judgement:
        if not scores:
            return unverified(claim_id, self._name, "the tokenizer finds nothing in the contexts")
        text = request.claims[claim_id].text
        return settle(
            claim_id, text, claim.windows, scores, request.evidence, self._settings, self._name, claim.note
        )


def _failure(future: asyncio.Future[list[Scores]]) -> JudgeError | None:
    """Why there are no scores, None where there are; one that is still to come is taken back."""
    if not future.done():
        future.cancel()
        return JudgeUnavailable(_LATE)
    if future.cancelled():
        return JudgeUnavailable(_LATE)
    error = future.exception()
    if error is None or isinstance(error, JudgeError):
        return error
    return JudgeUnavailable(f"the model failed ({type(error).__name__})")
