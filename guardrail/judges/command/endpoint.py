"""A judge behind HTTP."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

import httpx2

from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import Meter
from guardrail.judges.command.protocol import read_reply
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.secret_files import read_secret

_REMEDIES: Final = {401: "check headers or token_file", 403: "check headers or token_file", 404: "check url"}


class Endpoint:
    """POSTs requests, so many at once, and reads replies of bounded length. Redirects are not followed."""

    def __init__(self, settings: CommandJudgeSettings, section: str) -> None:
        """Raises ConfigError when a file that is named can't be used."""
        if settings.url is None:
            raise ConfigError(f"{section}.url is not set")
        self._url = settings.url
        self._section = section
        self._limit = settings.max_reply_bytes
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        if settings.token_file is not None:
            token = read_secret(settings.token_file, f"{section}.token_file", "token", for_header=True)
            headers["Authorization"] = f"Bearer {token}"
        headers |= {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._client = httpx2.AsyncClient(
            headers=headers,
            verify=_tls(settings, section),
            timeout=None,
            limits=httpx2.Limits(max_connections=settings.max_concurrency),
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
            if response.headers.get("content-encoding", "identity") != "identity":
                raise JudgeReplyError("the endpoint compressed its reply, which it was not asked to")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._limit:
                    raise JudgeReplyError("the reply is longer than max_reply_bytes")
            return bytes(body)


def _tls(settings: CommandJudgeSettings, section: str) -> ssl.SSLContext | bool:
    if settings.cafile is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(settings.cafile))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"{section}.cafile: {settings.cafile} can't be used ({type(error).__name__}); give a PEM file"
        ) from None
