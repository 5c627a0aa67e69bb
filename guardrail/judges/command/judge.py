"""The command judge: the operator's own program or endpoint, whose replies are taken for hostile."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import httpx2

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Evidence, Usage, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest, Meter
from guardrail.judges.command.protocol import (
    MAX_REASONING_CHARS,
    ReplyVerdict,
    read_reply,
    read_verdicts,
    verdict_of,
    write_request,
)
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.http import read_body, request_headers, tls
from guardrail.judges.llm.verdicts import UNQUOTED_FACTOR, support_of
from guardrail.judges.recorder import recorder
from guardrail.verdicts import TWO_VERDICTS, Judgement, unverified

_REMEDIES: Final = {401: "check headers or token_file", 403: "check headers or token_file", 404: "check url"}


class HttpEndpoint:
    """POSTs requests, so many at once, and reads replies of bounded length. Redirects are not followed."""

    def __init__(self, settings: CommandJudgeSettings, section: str) -> None:
        """Raises ConfigError when a file that is named can't be used."""
        if settings.url is None:
            raise ConfigError(f"{section}.url is not set")
        self._url = settings.url
        self._section = section
        self._limit = settings.max_reply_bytes
        self._slots = asyncio.Semaphore(settings.concurrency)
        headers = request_headers(settings.headers, settings.token_file, section)
        self._client = httpx2.AsyncClient(
            headers=headers,
            verify=tls(settings.cafile, section),
            timeout=None,
            limits=httpx2.Limits(max_connections=settings.concurrency),
        )

    async def ask(self, line: bytes, request_id: str, deadline: float, meter: Meter) -> dict[str, Any]:
        """The reply to ``line``. ``deadline`` is in the loop's time. Raises JudgeError."""
        try:
            async with asyncio.timeout_at(deadline) as scope, self._slots:
                meter.add(Usage(judge_calls=1))
                body = await self._post(line)
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable("the endpoint gave no verdict within the deadline") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise JudgeUnavailable(f"the endpoint can't be reached ({type(error).__name__})") from None
        reply = await asyncio.to_thread(read_reply, body)
        if reply.get("request_id") != request_id:
            raise JudgeReplyError("the reply is to another request")
        return reply

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _post(self, line: bytes) -> bytes:
        async with self._client.stream("POST", self._url, content=line) as response:
            status = response.status_code
            if status == 429 or status >= 500:
                raise JudgeUnavailable(f"the endpoint answered {status}")
            if status != 200:
                remedy = _REMEDIES.get(status, "see what it expects")
                raise JudgeError(f"the endpoint answered {status}; {self._section}: {remedy}")
            return await read_body(response, self._limit)


_NO_CONTEXTS = "There are no contexts to support it."
_INVENTED = "No quote that was given for it stands in the contexts."


class _Port(Protocol):
    async def ask(self, line: bytes, request_id: str, deadline: float, meter: Meter) -> dict[str, Any]: ...

    async def aclose(self) -> None: ...


class CommandJudge:
    """A Judge. Without contexts nothing is asked."""

    def __init__(self, settings: CommandJudgeSettings, section: str = "judge.command") -> None:
        """Raises ConfigError: neither argv nor url, no such program, a file that can't be read."""
        self._settings = settings
        self._port: _Port
        if settings.argv:
            from guardrail.judges.command.processes import Processes

            self._port = Processes(settings, section)
            name = Path(settings.argv[0]).name
        elif settings.url is not None:
            from guardrail.judges.command.judge import HttpEndpoint

            self._port = HttpEndpoint(settings, section)
            name = urlsplit(settings.url).hostname or ""
        else:
            raise ConfigError(
                f"{section}: neither argv nor url is set; name the program to run or the endpoint to ask"
            )
        self._name = f"command:{settings.name or name}"

    @property
    def name(self) -> str:
        return self._name

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """One request for all claims. Raises JudgeUnavailable and JudgeReplyError."""
        if not request.claims:
            return
        meter = Meter(request.meter)
        meter.add(Usage())  # calls are counted here, so that none is known to be none
        if not any(context.text.strip() for context in request.evidence.contexts):
            for claim_id in request.claims:
                yield Judgement(
                    claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, self._name, reasoning=_NO_CONTEXTS, attempts=0
                )
            return
        left = request.deadline - time.monotonic()
        if left <= 0:
            raise JudgeUnavailable("the deadline has passed before the request was sent")
        deadline = asyncio.get_running_loop().time() + left
        request_id = uuid.uuid4().hex
        line = await asyncio.to_thread(write_request, request, request_id, int(left * 1000))
        reply = await self._asked(line, request_id, deadline, meter, tuple(request.claims))
        found, dropped = await asyncio.to_thread(self._settle, reply, request)
        meter.add(Usage(dropped_quotes=dropped))
        for judgement in found:
            yield replace(judgement, attempts=meter.attempts)

    async def aclose(self) -> None:
        await self._port.aclose()

    async def _asked(
        self, line: bytes, request_id: str, deadline: float, meter: Meter, claim_ids: tuple[str, ...]
    ) -> dict[str, Any]:
        record, begun_at = recorder(), time.monotonic()
        reply: dict[str, Any] | None = None
        error: str | None = None
        try:
            reply = await self._port.ask(line, request_id, deadline, meter)
        except JudgeError as raised:
            error = str(raised)
            raise
        finally:
            if record is not None:
                record.add(
                    "call",
                    claim_ids,
                    begun_at,
                    judge=self._name,
                    prompt=line.decode().strip(),
                    reply=None if reply is None else json.dumps(reply),
                    error=error,
                )
        return reply

    def _settle(self, reply: dict[str, Any], request: JudgeRequest) -> tuple[list[Judgement], int]:
        """A judgement for each claim that ``reply`` speaks of, and how many quotes of it stand nowhere."""
        found: list[Judgement] = []
        dropped = 0
        for claim_id, offers in read_verdicts(reply, frozenset(request.claims)).items():
            said: list[Judgement] = []
            for offered in offers:
                if offered is None:
                    said.append(
                        unverified(claim_id, self._name, "the judge's verdict on this claim is unusable")
                    )
                    continue
                evidence = _located(offered, request.evidence)
                dropped += len(offered.evidence) - len(evidence)
                said.append(self._judgement(claim_id, offered, evidence))
            if len({judgement.verdict for judgement in said}) > 1:
                said = [unverified(claim_id, self._name, TWO_VERDICTS)]
            found.append(said[0])
        return found, dropped

    def _judgement(self, claim_id: str, offered: ReplyVerdict, evidence: list[Evidence]) -> Judgement:
        verdict = verdict_of(offered)
        reasoning = offered.reasoning.strip()[:MAX_REASONING_CHARS]
        if verdict is Verdict.UNVERIFIED:
            return unverified(claim_id, self._name, reasoning or "the judge could not say")
        if verdict is Verdict.SUPPORTED and not evidence and self._settings.require_quotes:
            return unverified(
                claim_id, self._name, "SUPPORTED, but no quote that was given for it stands in the contexts"
            )
        confidence, support = offered.confidence, offered.support
        if verdict is Verdict.SUPPORTED and offered.evidence and not evidence:
            # As for the LLM judge; one that gives no quotes at all was not asked for any.
            confidence *= UNQUOTED_FACTOR
            if support is not None:
                support = min(support, round(0.5 + (support - 0.5) * UNQUOTED_FACTOR, 6))
            reasoning = f"{reasoning} {_INVENTED}".strip()
        if support is None:
            support = support_of(verdict, confidence)
        return Judgement(
            claim_id,
            verdict,
            confidence,
            support,
            self._name,
            tuple(dict.fromkeys(evidence)),
            reasoning=reasoning,
            unsupported_spans=tuple((start, end) for start, end in offered.unsupported_spans),
            contradiction=offered.contradiction,
        )


def _located(offered: ReplyVerdict, index: EvidenceIndex) -> list[Evidence]:
    found = (index.locate(item.quote, item.context_id) for item in offered.evidence)
    return [evidence for evidence in found if evidence is not None]
