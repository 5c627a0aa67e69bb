"""Judges of one's own: what a function makes, or an HTTP endpoint, whose replies are not trusted."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import time
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from guardrail.calls import Failure
from guardrail.calls.http import HttpServer, named_once
from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage, Verdict
from guardrail.judges.base import Judge, JudgeRequest, Meter, support_of, without_contexts
from guardrail.judges.http import HttpJudgeSettings, request_headers
from guardrail.verdicts import TWO_VERDICTS, Judgement, unverified


def load_factory(factory: str) -> Any:
    """What ``factory`` (``package.module:make``) names, imported. Raises ConfigError."""
    name, _, attribute = factory.partition(":")
    try:
        return getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"judge.factory: {factory} can't be imported ({type(error).__name__}: {error}); install it where "
            "the guard runs, or put its folder on PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # a module may do anything while it is imported
        raise ConfigError(f"judge.factory: importing {factory} failed ({_where(error)})") from error


def make_judge(factory: str) -> Judge:
    """The judge that ``factory`` makes, which is called without arguments. Raises ConfigError."""
    make = load_factory(factory)
    try:
        judge = make()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"judge.factory: {factory} failed ({_where(error)})") from error
    if isinstance(judge, type):
        wrong = f"the class {judge.__name__}; return an instance"
    elif not isinstance(judge, Judge) or not isinstance(judge.name, str):
        wrong = f"a {type(judge).__name__}, which lacks a name, judge or aclose; return a Judge"
    elif inspect.iscoroutinefunction(judge.judge):
        wrong = f"a {type(judge).__name__} whose judge returns; let it yield each judgement"
    else:
        return judge
    raise ConfigError(f"judge.factory: {factory} made {wrong}")


def _where(error: BaseException) -> str:
    """The kind of the error and the line that raised it. Its text may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} in {Path(frames[-1].filename).name}, line {frames[-1].lineno}"


# ------------------------------------------------------------------------------------------- an HTTP endpoint

_SECTION: Final = "judge.http"
_MAX_REPLY_BYTES: Final = 1_048_576  # verdicts on a request are some kilobytes

_Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class _Quote(BaseModel):
    quote: Annotated[str, Field(max_length=10_000)]
    context_id: str | None = None


class _Offer(BaseModel):
    """A verdict as the endpoint gives it; docs/other-judges.md explains the members."""

    id: str
    verdict: Verdict
    confidence: _Probability
    support: _Probability | None = None
    contradiction: _Probability | None = None
    evidence: Annotated[list[_Quote], Field(max_length=10)] = []
    reasoning: str = ""
    unsupported_spans: Annotated[list[tuple[int, int]], Field(max_length=1_000)] = []


class _HttpReply(BaseModel):
    verdicts: list[_Offer]


class HttpJudge:
    """A Judge. Without contexts nothing is asked. Redirects are not followed."""

    def __init__(self, settings: HttpJudgeSettings) -> None:
        """``settings.url`` is set. Raises ConfigError for a header whose file or variable can't be read."""
        url, most = settings.url or "", settings.max_concurrency
        self.name = f"http:{urlsplit(url).hostname}"
        self._slots = asyncio.Semaphore(most)
        headers = request_headers(settings.headers, _SECTION)
        self._server = HttpServer(url, headers, most, "the endpoint", _SECTION, _refused, reads_errors=False)

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """One request for all claims. Raises JudgeError."""
        meter = Meter(request.meter)
        meter.add(Usage())  # no call is recorded as zero, not as unknown
        if not request.has_contexts:
            for judgement in without_contexts(request, self.name):
                yield judgement
        elif request.claims:
            body = await self._ask(request, meter)
            found, dropped = await asyncio.to_thread(self._settle, body, request)
            meter.add(Usage(dropped_quotes=dropped))
            for judgement in found:
                yield replace(judgement, attempts=meter.attempts)

    async def aclose(self) -> None:
        await self._server.aclose()

    async def _ask(self, request: JudgeRequest, meter: Meter) -> bytes:
        left = request.deadline - time.monotonic()
        try:
            async with asyncio.timeout(left):
                body = await asyncio.to_thread(_body, request, int(left * 1000))
                async with self._slots:
                    meter.add(Usage(judge_calls=1))
                    outcome = await self._server.send("", body, _MAX_REPLY_BYTES)
        except TimeoutError:
            raise JudgeUnavailable("the endpoint gave no verdict within the deadline") from None
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    def _settle(self, body: bytes, request: JudgeRequest) -> tuple[list[Judgement], int]:
        """A judgement for each claim that the reply names, and how many quotes are in no context."""
        try:
            reply = _HttpReply.model_validate_json(body, strict=True)
            json.loads(body, object_pairs_hook=named_once)
        except ValidationError as error:
            wrong = error.errors(include_input=False)[0]  # of the reply itself nothing is repeated
            place = ".".join(map(str, wrong["loc"]))
            raise JudgeReplyError(f"the reply is unusable: {place} {wrong['msg']}") from None
        except ValueError as error:
            raise JudgeReplyError(f"the reply is unusable: {error}") from None
        found: dict[str, Judgement] = {}
        dropped = 0
        for offer in reply.verdicts:
            if offer.id not in request.claims:
                continue
            located = [request.evidence.locate(each.quote, each.context_id) for each in offer.evidence]
            dropped += located.count(None)
            evidence = tuple(dict.fromkeys(each for each in located if each is not None))
            reasoning = offer.reasoning.strip()[:2_000]
            support = support_of(offer.verdict, offer.confidence) if offer.support is None else offer.support
            judgement = Judgement(
                offer.id,
                offer.verdict,
                offer.confidence,
                support,
                self.name,
                evidence,
                reasoning=reasoning,
                contradiction=offer.contradiction,
                unsupported_spans=tuple(offer.unsupported_spans),
            )
            if offer.verdict is Verdict.UNVERIFIED:
                judgement = unverified(offer.id, self.name, reasoning or "the judge could not say")
            elif offer.verdict is Verdict.SUPPORTED and located and not evidence:
                judgement = unverified(offer.id, self.name, "none of its quotes is in the contexts")
            if found.get(offer.id, judgement) != judgement:
                judgement = unverified(offer.id, self.name, TWO_VERDICTS)
            found[offer.id] = judgement
        return list(found.values()), dropped


def _refused(answered: str, _status: int, _said: str) -> JudgeError:
    return JudgeError(f"{answered}; check {_SECTION}")


def _body(request: JudgeRequest, deadline_ms: int) -> bytes:
    message = {
        "response_id": request.response_id,
        "question": request.question,
        "contexts": [{"id": each.id, "text": each.text} for each in request.evidence.contexts],
        "claims": [
            {"id": claim_id, "text": claim.prose.text, "lead_in": claim.lead_in, "severity": claim.severity}
            for claim_id, claim in request.claims.items()
        ],
        "deadline_ms": deadline_ms,
    }
    return json.dumps(message, separators=(",", ":")).encode("ascii")  # lone surrogates have a form in it
