"""Models that a server runs, in the places of those that run here: classifiers, and the verifier."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from guardrail.errors import JudgeError, JudgeReplyError
from guardrail.judges.model.calls import ServerCalls
from guardrail.judges.model.classifier import Part, Scores, ServedModel
from guardrail.judges.model.servers import ModelServer, OipModel, ServerTakes
from guardrail.judges.model.settings import ServerSettings
from guardrail.judges.model.tokens import Pair, Tokens

VERIFIER_SECTION: Final = "judge.local.verifier.server"


class RemoteScores:
    """Scores of pairs by a model on a server. Servers batch what arrives together themselves, so that the
    pairs of a claim are sent at once, some in a call, and those of other claims beside them.
    """

    def __init__(self, calls: ServerCalls, server: ModelServer, served: ServedModel) -> None:
        self._calls = calls
        self._server = server
        self._served = served
        self._bounds: ServerTakes | None = None
        self._learning = asyncio.Lock()  # of the loop of the calls

    async def max_tokens(self, deadline: float) -> int:
        """The longest pair that the model reads; asks the server once. Raises JudgeError."""
        bounds = await asyncio.wrap_future(self._calls.start(lambda: self._known(deadline), deadline))
        return min(self._served.max_tokens, bounds.max_tokens or self._served.max_tokens)

    def submit(
        self, pairs: Sequence[Pair], deadline: float, response_id: str = ""
    ) -> asyncio.Future[list[Scores]]:
        """A future of the scores of ``pairs``; cancelling it withdraws their calls.

        ``deadline`` is a reading of ``time.monotonic()``. Fails with JudgeError.
        """
        return asyncio.wrap_future(
            self._calls.start(lambda: self._scored(pairs, deadline, response_id), deadline)
        )

    async def aclose(self) -> None:
        await self._calls.aclose()

    async def _known(self, deadline: float) -> ServerTakes:
        async with self._learning:
            if self._bounds is None:
                self._bounds = await self._server.learn(self._calls, deadline)
            return self._bounds

    async def _scored(self, pairs: Sequence[Pair], deadline: float, response_id: str) -> list[Scores]:
        bounds = await self._known(deadline)
        most = min(self._served.max_tokens, bounds.max_tokens or self._served.max_tokens)
        read = await asyncio.to_thread(self._served.reader.parts, pairs, most)
        flat = [part for parts in read if not isinstance(parts, JudgeError) for part in parts]
        batches = [flat[at : at + bounds.batch_size] for at in range(0, len(flat), bounds.batch_size)]
        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._asked(batch, deadline, response_id)) for batch in batches]
        except ExceptionGroup as error:  # the others are cancelled; the first says what was wrong
            raise error.exceptions[0] from None
        found = self._served.reader.joined(read, [row for task in asked for row in task.result()])
        wrong = next((score for score in found if isinstance(score, JudgeError)), None)
        if wrong is not None:
            raise wrong
        return [score for score in found if isinstance(score, Scores)]

    async def _asked(self, batch: Sequence[Part], deadline: float, response_id: str) -> list[list[float]]:
        path, body = self._server.asked(batch)
        reply = await self._calls.ask(path, body, deadline, response_id)
        return self._server.rows(reply, batch)


class RemoteGraph:
    """The verifier's graph on a server of the Open Inference Protocol. Thread-safe; threads wait for it."""

    outputs: Final = ("logits", "token_logits")

    def __init__(self, settings: ServerSettings) -> None:
        """Asks nothing yet. Raises ConfigError for a file that can't be used."""
        import numpy as np

        self._np: Any = np
        self._calls = ServerCalls(settings, VERIFIER_SECTION, "local:verifier")
        self._timeout_s = settings.timeout_ms / 1000
        self._model = OipModel(settings.model or "", VERIFIER_SECTION, self.outputs)
        self._known = False
        self._learning = asyncio.Lock()  # of the loop of the calls

    def run(self, outputs: Sequence[str], batch: Sequence[Tokens]) -> list[Any]:
        """These outputs for a batch, as arrays. Blocks. Raises JudgeError."""
        deadline = time.monotonic() + self._timeout_s
        reply = self._calls.start(lambda: self._asked(batch, deadline), deadline).result()
        found = []
        for name in outputs:
            shape, values = self._model.output(reply, name)
            found.append(self._np.array(values, dtype=self._np.float32).reshape(shape))
        return found

    def close(self) -> None:
        """End the calls and the thread. Blocks."""
        self._calls.close()

    async def _asked(self, batch: Sequence[Tokens], deadline: float) -> Any:
        async with self._learning:
            if not self._known:
                await self._model.learn(self._calls, deadline)
                self._known = True
        path, body = self._model.asked(batch)
        reply = await self._calls.ask(path, body, deadline)
        if reply is None:
            raise JudgeReplyError(
                f"the model server's reply is empty; {VERIFIER_SECTION}: check url and model"
            )
        return reply
