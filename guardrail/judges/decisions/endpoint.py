"""One decision model on one server: every call to it, within a deadline, and what it took."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import openai

from guardrail.awake import awake
from guardrail.calls import Call, Caller, Failure, cut_off, server_of
from guardrail.calls.http import read_body
from guardrail.errors import JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import JudgeRequest, Meter
from guardrail.judges.decisions.settings import DecisionsSettings
from guardrail.judges.decisions.transports import WIRES, Choice, QuestionState, Reply
from guardrail.judges.openai_client import OwnClients, describe, httpx
from guardrail.judges.recorder import recorder
from guardrail.judges.spending import PriceTable, reported_usage

_SECTION: Final = "judge.decisions"
_MOST_BYTES: Final = 1_000_000
_AS_STREAM: Final = "X-Stainless-Raw-Response"
"""Has the client return before the body is read. The header goes out, and says nothing to a server."""
_HINTS: Final = {
    re.compile("(?i)logprob"): (
        "it gives no logprobs (models that reason don't): name another model, or another {section}.transport"
    ),
    re.compile(r"(?i)\b(options|choices|criteria)\b"): (
        "it may take fewer options: set {section}.options to three or two"
    ),
}
"""Remedies, by what a server says of questions that it does not answer."""


class DecisionsEndpoint:
    """Calls to one model. Concurrent questions share all its state."""

    def __init__(
        self,
        settings: DecisionsSettings,
        prices: PriceTable | None = None,
        clock: Callable[[], float] = awake,
    ) -> None:
        """Raises ConfigError if there is no key."""
        self.settings = settings
        self.transport = WIRES[settings.transport]
        self._caller = Caller(f"decisions:{settings.model}", settings.model, settings.max_concurrency, clock)
        self.prices = prices
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}
        self._clients = OwnClients(settings.base_url, settings.resolve_api_key(_SECTION))

    async def ask(
        self,
        state: QuestionState,
        questions: Sequence[Choice],
        request: JudgeRequest,
        meter: Meter,
        until: float,
        claim_ids: Sequence[str],
    ) -> Reply:
        """The answers to these questions, which are about the claims ``claim_ids``; ``until`` is in the event
        loop's time. Raises JudgeError.
        """
        call = _DecisionCall(self, state, questions, meter, claim_ids)
        retries = self.settings.max_retries
        outcome = await self._caller.run(call, until, request.response_id, retries=retries)
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    async def aclose(self) -> None:
        """Close all connections. No question may follow."""
        await self._clients.aclose()

    async def send(self, body: dict[str, Any]) -> bytes | Failure:
        """One HTTP call."""
        with self._clients.client() as client:
            try:
                # The type that the client would make of it is never asked for: nothing in it is checked.
                reply: Any = await client.post(
                    self.transport.path,
                    body=body,
                    cast_to=object,
                    options={"headers": {**self._headers, _AS_STREAM: "stream"}},
                )
                try:
                    return await read_body(reply.iter_bytes(), _MOST_BYTES)
                finally:
                    await reply.close()
            except openai.APIError as error:
                return describe(error, server_of(str(client.base_url)), _SECTION, _HINTS)
            except httpx.HTTPError as error:
                told = cut_off(server_of(str(client.base_url)), error)
                return Failure(JudgeUnavailable(told), retry=True, fault=True)
            except JudgeReplyError as error:
                return Failure(error, retry=False, fault=True)


class _DecisionCall(Call[Reply]):
    """Questions in one call."""

    def __init__(
        self,
        endpoint: DecisionsEndpoint,
        state: QuestionState,
        questions: Sequence[Choice],
        meter: Meter,
        claim_ids: Sequence[str],
    ) -> None:
        self._endpoint = endpoint
        self._questions = questions
        self._meter = meter
        self._body = {"model": endpoint.settings.model, **endpoint.transport.body(state, questions)}
        self._recorder = recorder()
        self._asked = [state.instructions, state.documents, *(each.instructions for each in questions)]
        self._claim_ids = claim_ids
        self._begun_at, self._said = 0.0, ""

    def admit(self) -> None:
        self._meter.admit()

    async def run(self) -> Reply | Failure:
        self._meter.add(Usage(judge_calls=1), self._endpoint.settings.model)
        self._begun_at, self._said = time.monotonic(), ""
        said = await self._endpoint.send(self._body)
        if isinstance(said, Failure):
            return self.broke_off(said)
        self._said = said.decode("utf-8", "replace")
        try:
            reply = self._endpoint.transport.read(said, self._questions)
        except JudgeReplyError as error:
            return self.broke_off(Failure(error, retry=False, fault=True))
        # A server may name a model that has no price, or a cheap one's name.
        model = self._endpoint.settings.model
        used = reported_usage(model, reply.usage, self._endpoint.prices)
        if used is not None:
            self._meter.add(used, reply.model or model)
        return reply

    def ended(self) -> None:
        """Record what was asked and what came, if anybody wants to see it."""
        if self._recorder is not None:
            self._recorder.add(
                "call",
                self._claim_ids,
                self._begun_at,
                judge=f"decisions:{self._endpoint.settings.model}",
                prompt="\n\n".join(self._asked),
                reply=self._said,
                error=None if self.failure is None else str(self.failure.error),
            )
