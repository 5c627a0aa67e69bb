"""A proxy ahead of a real LLM server that refuses forms of replies as llama-cpp-python does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection
from types import TracebackType
from typing import Final, Self

_END_OF_HEAD: Final = b"\r\n\r\n"
_PIECE: Final = 64 * 1024
_MESSAGE: Final = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' "
    "or 'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]"
)
_BODY: Final = json.dumps(
    {"error": {"message": _MESSAGE, "type": "internal_server_error", "param": None, "code": None}}
).encode()
_REFUSAL: Final = (
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class ChoosyProxy:
    """Passes calls on to ``target`` (host, port), one a connection, save those whose form it refuses.

    An async context manager. ``formats`` are the types of ``response_format`` that arrived, in order, "none"
    where there was none.
    """

    def __init__(self, target: tuple[str, int], refuse: Collection[str]) -> None:
        self.formats: list[str] = []
        self._target = target
        self._refuse = refuse
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Root of its API."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(_END_OF_HEAD)
        first, *lines = head.removesuffix(_END_OF_HEAD).split(b"\r\n")
        fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)
        }
        body = await reader.readexactly(int(fields[b"content-length"]))
        form = json.loads(body).get("response_format") or {}
        self.formats.append(form.get("type", "none"))
        if self.formats[-1] in self._refuse:
            writer.write(_REFUSAL)
            await writer.drain()
            return
        fields[b"connection"] = b"close"  # so that the end of the reply is the end of the connection
        passed = b"".join(b"%b: %b\r\n" % field for field in fields.items())
        await self._pass_on(b"%b\r\n%b\r\n%b" % (first, passed, body), writer)

    async def _pass_on(self, call: bytes, writer: asyncio.StreamWriter) -> None:
        upstream, sender = await asyncio.open_connection(*self._target)
        try:
            sender.write(call)
            while piece := await upstream.read(_PIECE):
                writer.write(piece)
                await writer.drain()
        finally:
            sender.close()
