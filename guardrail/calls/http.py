"""HTTP with servers that may send anything: bodies are bounded, and failures are told in words of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

import httpx2

from guardrail.calls.failures import Failure, cut_off, of_status
from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable

_CONNECT_TIMEOUT_S: Final = 5.0
_MOST_ERROR_BYTES: Final = 65_536
_PIECES: Final = 1_000
_SMALL: Final = 16  # what makes more work than this many bytes or characters counts as several pieces


class Turns:
    """Lets other tasks run while a reply is read: one read of a socket may hold thousands of its pieces,
    which then come without a wait in between.
    """

    def __init__(self) -> None:
        self._pieces = 0

    async def after(self, size: int) -> None:
        """A piece of so many bytes or characters was read."""
        self._pieces += 1 + size // _SMALL
        if self._pieces >= _PIECES:
            self._pieces = 0
            await asyncio.sleep(0)


async def read_body(pieces: AsyncIterator[bytes], limit: int) -> bytes:
    """A body that comes in pieces. Raises JudgeReplyError if it has more than ``limit`` bytes."""
    body = bytearray()
    turns = Turns()
    async for piece in pieces:
        body += piece
        if len(body) > limit:
            raise JudgeReplyError(f"the reply is longer than {limit:,} bytes")
        await turns.after(len(piece))
    return bytes(body)


def named_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises JudgeReplyError if it gives a member twice, since either may be meant."""
    found = dict(members)
    if len(found) != len(members):
        raise JudgeReplyError("the reply is unusable: it names a member twice")
    return found


class HttpServer:
    """One server, and the connections to it. Redirects are not followed."""

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        max_connections: int,
        name: str,
        section: str,
        refused: Callable[[str, int, str], JudgeError],
        *,
        reads_errors: bool = True,
    ) -> None:
        """``name`` is what messages call it, and ``section`` has its settings, ``url`` among them.

        ``refused`` makes the error for a request that would fare no better another time, of what happened
        ("NAME answered 400"), the status, and the beginning of the body, which may repeat a text: it may be
        searched, and never reported. Without ``reads_errors`` it is empty, and not waited for.
        """
        self.name = name
        self._url = url
        self._section = section
        self._refusal = refused
        self._reads_errors = reads_errors
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            limits=httpx2.Limits(max_connections=max_connections, max_keepalive_connections=max_connections),
        )

    async def send(self, path: str, body: bytes | None, most_bytes: int) -> bytes | Failure:
        """The body of what it answers to a POST of ``body``, or to a GET if that is None."""
        method = "GET" if body is None else "POST"
        try:
            async with self._client.stream(method, self._url + path, content=body) as response:
                if response.status_code != 200:
                    return await self._refused(response)
                if response.headers.get("content-encoding", "identity") != "identity":
                    told = f"{self.name} compressed its reply, which it was not asked to"
                    return Failure(JudgeReplyError(told), retry=False, fault=True)
                return await read_body(response.aiter_raw(), most_bytes)
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            told = cut_off(self.name, error, f"{self._section}.url")
            return Failure(JudgeUnavailable(told), retry=True, fault=True)
        except JudgeReplyError as error:
            return Failure(error, retry=False, fault=True)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _refused(self, response: httpx2.Response) -> Failure:
        said = bytearray()
        if self._reads_errors:
            with suppress(httpx2.HTTPError, httpx2.StreamError):  # the status says enough
                async for piece in response.aiter_raw():
                    said += piece
                    if len(said) >= _MOST_ERROR_BYTES:
                        break
        status = response.status_code
        text = f"{self.name} answered {status}"
        refused = self._refusal(text, status, said.decode("utf-8", "replace"))
        return of_status(text, status, response.headers, refused)
