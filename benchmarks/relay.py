"""A relay between judges and the one chat endpoint that all of them ask: it counts calls, tokens and time.

Each system has an account, the first part of the path of its calls: ``http://RELAY/SYSTEM/v1``. The model's
name in a call is replaced by the real one, since some clients refuse names that they don't know.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

import httpx2

from tests.support.tcp_server import TcpServer

_OVER: Final = 400
"""A status after which no client tries again."""


@dataclass(slots=True)
class Account:
    """What was spent on one answer; of calls that are ``cut`` neither tokens nor seconds are known."""

    until: float
    """On the event loop's clock: calls that go on then are cut, and later ones are refused."""
    calls: int = 0
    refused: int = 0
    """Those that the endpoint answered with an error."""
    tokens_in: int = 0
    cached: int = 0
    tokens_out: int = 0
    seconds_of_calls: list[float] = field(default_factory=list)
    """Of each call, from when it was sent to the last byte of the reply."""
    under_way: int = 0

    async def settled(self) -> None:
        """Wait for calls that outlive the answer they belong to, until the time is over."""
        while self.under_way:  # noqa: ASYNC110 - calls begin at any time
            await asyncio.sleep(0.01)

    @property
    def cut(self) -> int:
        """Calls without a whole reply: the time was over, or the caller left, or has by now."""
        return self.calls - len(self.seconds_of_calls)

    def count(self, body: bytes) -> None:
        """Add the usage that a reply tells, whole or streamed."""
        events = [line for line in body.splitlines() if line.startswith(b"data:")]
        for each in events or [body]:
            with suppress(ValueError):
                usage = json.loads(each.removeprefix(b"data:")).get("usage") or {}
                self.tokens_in += usage.get("prompt_tokens", 0)
                self.tokens_out += usage.get("completion_tokens", 0)
                self.cached += (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0


class Relay(TcpServer):
    """Serves on loopback for as long as it is entered."""

    def __init__(self, base_url: str, model: str, api_key: str, at_once: int) -> None:
        """Calls go to ``base_url``, at most ``at_once`` of them at a time; others wait, untimed."""
        super().__init__()
        self._to = base_url.rstrip("/")
        self._model = model
        self._headers = {"authorization": f"Bearer {api_key}"}
        self._slots = asyncio.Semaphore(at_once)
        self._client = httpx2.AsyncClient(timeout=None, trust_env=False)
        self._accounts: dict[str, Account] = {}
        self.gone = False
        """Whether the endpoint could not be reached."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        await self._client.aclose()

    def base_url(self, system: str) -> str:
        """What a system takes for the endpoint."""
        return f"{self.url.removesuffix('/v1')}/{system}/v1"

    def begin(self, system: str, seconds: float) -> Account:
        """A new account, for at most so many seconds."""
        self._accounts[system] = Account(asyncio.get_running_loop().time() + seconds)
        return self._accounts[system]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call: the connection is closed behind its reply."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            method, path, _ = head[0].split(" ")
            length = next((int(line.split(":")[1]) for line in head if line.startswith("content-length:")), 0)
            body = await reader.readexactly(length)
            system, _, rest = path.strip("/").partition("/v1/")
            passing = asyncio.create_task(self._pass_on(self._accounts[system], method, rest, body, writer))
            left = asyncio.create_task(reader.read(1))  # who hangs up waits for nothing more
            await asyncio.wait({passing, left}, return_when=asyncio.FIRST_COMPLETED)
            passing.cancel()
            left.cancel()
            await asyncio.gather(passing, left, return_exceptions=True)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    async def _pass_on(
        self, account: Account, method: str, path: str, body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        content = json.dumps(json.loads(body) | {"model": self._model}).encode() if body else b""
        headers = self._headers | {"content-type": "application/json"}
        told = False
        account.under_way += 1
        try:
            async with asyncio.timeout_at(account.until), self._slots:
                await asyncio.sleep(0)  # where the time is over already, nothing is sent
                account.calls += 1
                begun = time.perf_counter()
                request = self._client.stream(method, f"{self._to}/{path}", content=content, headers=headers)
                async with request as reply:
                    kind = reply.headers.get("content-type", "application/json")
                    _head(writer, reply.status_code, kind)
                    told, seen = True, b""
                    async for piece in reply.aiter_bytes():
                        seen += piece
                        writer.write(piece)
                        await writer.drain()
                account.refused += reply.is_error
                account.count(seen)
                account.seconds_of_calls.append(time.perf_counter() - begun)
        except (TimeoutError, httpx2.HTTPError) as error:
            self.gone |= isinstance(error, httpx2.ConnectError)
            if not told:
                _head(writer, _OVER, "application/json")
                writer.write(json.dumps({"error": {"message": f"no reply in time: {error!r}"}}).encode())
        finally:
            account.under_way -= 1


def _head(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    writer.write(f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
