"""A stand-in LLM server: the chat-completions wire format over a real socket, misbehaving on demand."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

_END_OF_HEAD: Final = b"\r\n\r\n"
_ASKED: Final = re.compile(r"Give the verdicts on (.+?), as one JSON object")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call as it arrived."""

    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def asked(self) -> list[str]:
        """The short ids of the claims asked for."""
        found = _ASKED.findall(self.user)
        return str(found[-1]).split(", ") if found else []


def member(label: str, verdict: str = "SUPPORTED", **changes: Any) -> dict[str, Any]:
    """One verdict of a reply, as a model that keeps to the schema would write it."""
    return {
        "id": label,
        "quotes": [],
        "verdict": verdict,
        "confidence": 0.9,
        "contradicted_by": [],
        "reasoning": "",
    } | changes


def verdicts(*members: dict[str, Any]) -> str:
    return json.dumps({"verdicts": list(members)})


@dataclass(frozen=True, slots=True)
class Reply:
    """A completion with this content; a callable is given the call."""

    content: str | Callable[[Recorded], str] | None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: dict[str, Any] | None = field(
        default_factory=lambda: {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "total_tokens": 120,
            "prompt_tokens_details": {"cached_tokens": 64},
        }
    )
    choices: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP error, or with 200 a body that is no completion."""

    code: int
    error: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing, until the caller gives up."""


@dataclass(frozen=True, slots=True)
class Drip:
    """A head, then a byte of white space now and then: never silent for long, and never done."""

    every_s: float = 0.01


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends in the middle of a reply's body (or, with 0, before any byte)."""

    after: int = 40


Behaviour = Reply | Status | Hang | Drip | Cut | Callable[[Recorded], Reply | Status]


def obliging(call: Recorded) -> str:
    """SUPPORTED for every claim asked for."""
    return verdicts(*(member(label) for label in call.asked))


def refusing(*formats: str, status: int = 400, then: Behaviour | None = None) -> Behaviour:
    """A server that takes no response_format of these types."""

    def behave(call: Recorded) -> Reply | Status:
        kind = call.body.get("response_format", {}).get("type")
        if kind in formats:
            return Status(status, {"message": f"'response_format.type' {kind} is not supported"})
        return then if isinstance(then, Reply) else Reply(obliging)

    return behave


class LlmServer:
    """Listens on 127.0.0.1. Behaviours are taken in turn, the last for ever.

    ``calls`` are those that arrived; ``given_up`` is set when a caller left while waiting.
    """

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours = list(behaviours) or [Reply(obliging)]
        self.calls: list[Recorded] = []
        self.arrived = asyncio.Event()
        self.given_up = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()  # ends its reader, and with it the task
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            while (call := await _read_call(reader)) is not None:
                turn = min(len(self.calls), len(self._behaviours) - 1)
                self.calls.append(call)
                self.arrived.set()
                behaviour = self._behaviours[turn]
                made = behaviour(call) if callable(behaviour) else behaviour
                if not await self._answer(made, call, reader, writer):
                    return
        except ConnectionError:
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(
        self, made: Behaviour, call: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Does the connection stay open?"""
        if isinstance(made, Hang):
            await reader.read(1)  # returns when the caller closes
            self.given_up.set()
            return False
        if isinstance(made, Drip):
            await self._drip(made, reader, writer)
            return False
        if isinstance(made, Cut):
            head, body = _response(Reply(obliging), call)
            writer.write((head + body)[: len(head) + made.after] if made.after else b"")
            await writer.drain()
            return False
        assert isinstance(made, Reply | Status)
        writer.writelines(_response(made, call))
        await writer.drain()
        return True

    async def _drip(self, made: Drip, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        closed = asyncio.create_task(reader.read(1))
        try:
            while not closed.done():
                writer.write(b" ")
                await writer.drain()
                await asyncio.wait({closed}, timeout=made.every_s)
            self.given_up.set()
        finally:
            closed.cancel()


async def _read_call(reader: asyncio.StreamReader) -> Recorded | None:
    try:
        head = await reader.readuntil(_END_OF_HEAD)
    except asyncio.IncompleteReadError:
        return None
    request, *lines = head.decode("latin-1").strip().split("\r\n")
    assert request.startswith("POST /v1/chat/completions "), request
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers["content-length"]))
    return Recorded(headers, json.loads(body))


def _response(made: Reply | Status, call: Recorded) -> tuple[bytes, bytes]:
    """Head and body."""
    headers = {"Content-Type": "application/json"}
    status = 200
    if isinstance(made, Status):
        status = made.code
        headers |= made.headers
        text = made.raw if made.raw is not None else json.dumps({"error": made.error})
    else:
        text = json.dumps(_completion(made, call))
    body = text.encode()
    lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + _END_OF_HEAD, body


def _completion(made: Reply, call: Recorded) -> dict[str, Any]:
    content = made.content(call) if callable(made.content) else made.content
    message = {"role": "assistant", "content": content, "refusal": made.refusal}
    choice = {"index": 0, "finish_reason": made.finish_reason, "message": message}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": call.body["model"],
        "choices": [choice] if made.choices is None else made.choices,
        "usage": made.usage,
    }
