"""One decision model on one server: every call to it, within a deadline, and what it took."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import openai

from guardrail.calls import Call, Caller, Failure, server_of
from guardrail.calls.http import read_body
from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.events import Usage
from guardrail.judges.base import Meter
from guardrail.judges.decisions.settings import DecisionsSettings
from guardrail.judges.decisions.transports import WIRES, Choice, QuestionSheet, Reply
from guardrail.judges.openai_client import OwnClients, describe, httpx
from guardrail.judges.recorder import recorder
from guardrail.judges.spending import PriceTable, reported_usage

_MOST_BYTES: Final = 1_000_000
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

    def __init__(self, settings: DecisionsSettings, prices: PriceTable | None = None) -> None:
        """Raises ConfigError if there is no key, or openai is too old for what it is asked for."""
        if settings.transport == "openai" and not hasattr(openai.AsyncOpenAI, "decisions"):
            raise ConfigError(
                f"{settings.section}.transport: openai {openai.__version__} is installed, which knows no "
                "decisions; install 3.26 or newer, or name another transport"
            )
        self.name = f"decisions:{settings.model}"
        self.settings = settings
        self.prices = prices
        self.wire = WIRES[settings.transport]
        self.clients = OwnClients(settings.base_url, settings.resolve_api_key())
        self._caller = Caller(self.name, settings.model, settings.max_concurrency)
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}

    async def ask(self, call: DecisionCall, until: float) -> Reply:
        """What a call brings; ``until`` is in the event loop's time. Raises JudgeError."""
        outcome = await self._caller.run(call, until, call.sheet.key, retries=self.settings.max_retries)
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    async def send(self, body: dict[str, Any]) -> bytes:
        """One HTTP call. Raises openai.APIError, httpx.HTTPError or JudgeReplyError."""
        async with self.clients.post(self.wire.path, body, self._headers) as reply:
            return await read_body(reply.iter_bytes(), _MOST_BYTES)


@dataclass(eq=False)
class DecisionCall(Call[Reply]):
    """Questions of a sheet in one call, which are about the claims ``claim_ids``."""

    endpoint: DecisionsEndpoint
    sheet: QuestionSheet
    meter: Meter
    claim_ids: Sequence[str]
    questions: Sequence[Choice]
    begun_at: float = 0.0
    said: bytes = b""

    def admit(self) -> None:
        self.meter.admit()

    async def run(self) -> Reply | Failure:
        settings, wire = self.endpoint.settings, self.endpoint.wire
        self.meter.add(Usage(judge_calls=1), settings.model)
        self.begun_at, self.said = time.monotonic(), b""
        try:
            body = {"model": settings.model, **wire.body(self.sheet, self.questions)}
            self.said = await self.endpoint.send(body)
            reply = wire.read(self.said, self.questions)
        except (openai.APIError, httpx.HTTPError) as error:
            return self.broke_off(describe(error, server_of(settings.base_url), settings.section, _HINTS))
        except JudgeReplyError as error:
            return self.broke_off(Failure(error, retry=False, fault=True))
        # A server may name a model that has no price, or a cheap one's name.
        used = reported_usage(settings.model, reply.usage, self.endpoint.prices)
        if used is not None:
            self.meter.add(used, reply.model or settings.model)
        return reply

    def ended(self) -> None:
        """Record what was asked and what came, if anybody wants to see it."""
        if (record := recorder()) is None:
            return
        asked = [self.sheet.instructions, self.sheet.documents]
        record.add(
            "call",
            self.claim_ids,
            self.begun_at,
            judge=self.endpoint.name,
            prompt="\n\n".join([*asked, *(each.instructions for each in self.questions)]),
            reply=self.said.decode("utf-8", "replace"),
            error=None if self.failure is None else str(self.failure.error),
        )
