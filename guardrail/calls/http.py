"""HTTP with servers that may send anything: bodies and the events of streams are bounded, and failures are
told in words of our own.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from io import IncrementalNewlineDecoder
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


# ----------------------------------------------------------------------------------------- server-sent events

MAX_EVENT_CHARS: Final = 1_000_000


class EventStream:
    """Decodes server-sent events: bytes in, the data of each event out.

    The bytes may be cut anywhere, including inside an event, a line ending or a character. A byte order mark
    at the beginning doesn't count.
    """

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder = IncrementalNewlineDecoder(utf8, translate=True)
        self._line: list[str] = []  # the pieces of one without end
        self._data: list[str] = []
        self._size = 0  # of all that is kept
        self._begun = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that ``data`` completes. Raises JudgeReplyError if one is too long.

        Time is linear in the length of ``data``, however long the line is that it continues.
        """
        yield from self._read(self._decoder.decode(data))

    def finish(self) -> Iterator[str]:
        """The data of a last event without the empty line, which some servers omit."""
        yield from self._read(self._decoder.decode(b"", final=True) + "\n\n")

    def _read(self, text: str) -> Iterator[str]:
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        *ends, rest = text.split("\n")
        for end in ends:
            line = "".join((*self._line, end)) if self._line else end
            self._size += len(end) - (0 if line.startswith("data:") else len(line))
            self._line.clear()
            if not line:
                yield from self._event()
            elif line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
            self._check()
        if rest:
            self._line.append(rest)
            self._size += len(rest)
        self._check()

    def _event(self) -> Iterator[str]:
        if self._data:
            data = "\n".join(self._data)
            self._data.clear()
            self._size = 0
            yield data

    def _check(self) -> None:
        if self._size > MAX_EVENT_CHARS:
            raise JudgeReplyError(f"an event of the stream has more than {MAX_EVENT_CHARS} characters")
