"""Chat completions that stream at a model's pace, written and read by one process.

Both ends are in one place, so that one clock says how long each piece was under way, whatever is between.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.streams import tokens_of
from benchmarks.workload import sentences
from guardrail.claims import BuiltinSeverityRater, ClaimCutter

_SENTENCES: Final = 40
_BEFORE_TEXT_S: Final = 0.1
_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(slots=True)
class Answer:
    """One answer: its tokens, and when each was written and what was read of it came."""

    tokens: list[str]
    contexts: list[str]
    written_at: list[float] = field(default_factory=list)
    """Of each token; last that of the end."""
    pieces: list[tuple[int, float]] = field(default_factory=list)
    """Characters read until then, and when."""
    text: str = ""
    done: bool = False

    @classmethod
    def of(cls, number: int, tokens: int) -> Answer:
        """The answer of this number, of so many tokens."""
        rng = random.Random(number)
        text = sentences(rng, _SENTENCES + tokens // 5)
        return cls(tokens_of(text)[:tokens], [sentences(rng, 10)])

    def delays_s(self) -> Iterator[float]:
        """Of each piece: from the token with which it can be told to be whole, by itself or as a segment with
        its claims, until it was read.
        """
        ready: dict[int, int] = {}
        cutter, chars = ClaimCutter(BuiltinSeverityRater()), 0
        for number, token in enumerate(self.tokens):
            ready |= {segment.end: number for segment, _ in cutter.feed(token)}
        ready |= {segment.end: len(self.tokens) for segment, _ in cutter.finish()}
        by_token = len(self.pieces) >= len(self.tokens)
        for number, token in enumerate(self.tokens):
            chars += len(token)
            if by_token:
                ready[chars] = number
        for chars, at in self.pieces:
            yield at - self.written_at[ready[chars]]


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """A chunk of a completion as OpenAI's API writes it, in a chunk of HTTP."""
    chunk = {
        "id": "chatcmpl-DcEYq7wRzT5nU0kLoVbXs1mGhA2Jf",
        "object": "chat.completion.chunk",
        "created": 1796000000,
        "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_3f58d112f7",
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        "usage": None,
        "obfuscation": "k2Xv",
    }
    return _framed(b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n")


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Model(asyncio.Protocol):
    """One connection to the model, which writes the answers that are asked for."""

    def __init__(self, answers: list[Answer], tokens_per_second: float) -> None:
        self._answers = answers
        self._pause_s = 1 / tokens_per_second
        self._read = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        if found and len(body) == int(head.lower().partition(b"content-length:")[2].split()[0]):
            self._read = b""
            self._transport.write(_HEAD + _event({"role": "assistant", "content": "", "refusal": None}))
            loop = asyncio.get_running_loop()
            answer = self._answers[int(json.loads(body)["user"])]
            loop.call_later(_BEFORE_TEXT_S, self._write, loop, answer, loop.time() + _BEFORE_TEXT_S)

    def _write(self, loop: asyncio.AbstractEventLoop, answer: Answer, due: float) -> None:
        number = len(answer.written_at)
        over = number == len(answer.tokens)
        if over:
            data = _event({}, "stop") + _framed(b"data: [DONE]\n\n") + _framed(b"")
        else:
            data = _event({"content": answer.tokens[number]})
        answer.written_at.append(time.perf_counter())
        self._transport.write(data)
        if not over:
            loop.call_at(due + self._pause_s, self._write, loop, answer, due + self._pause_s)


class Reader(asyncio.Protocol):
    """A client that asks for one answer, and reads it."""

    def __init__(self, number: int, answer: Answer) -> None:
        self._number = number
        self._answer = answer
        self._read = b""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        asked = {
            "model": "gpt-4.1-mini",
            "messages": [{"role": "user", "content": "What is covered?"}],
            "stream": True,
            "user": str(self._number),
            "guardrail": {"contexts": self._answer.contexts},
        }
        body = json.dumps(asked).encode()
        transport.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        *events, self._read = (self._read + data).split(b"\n\n")
        for event in events:
            told = event.partition(b"data: ")[2]
            if told == b"[DONE]":
                self._answer.done = True
                self._transport.close()
            elif told:
                choices = json.loads(told)["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    self._answer.text += text
                    self._answer.pieces.append((len(self._answer.text), now))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self.over.done():
            self.over.set_result(None)


async def read_all(port: int, answers: list[Answer], begin_within_s: float) -> None:
    """Ask for all the answers at this port, and come back when all have been read.

    Raises RuntimeError if one is not what was written.
    """
    loop, at_random = asyncio.get_running_loop(), random.Random(0)

    async def read(number: int, answer: Answer) -> None:
        await asyncio.sleep(begin_within_s * at_random.random())
        reader = Reader(number, answer)
        await loop.create_connection(lambda: reader, "127.0.0.1", port)
        await reader.over
        if not answer.done or answer.text != "".join(answer.tokens):
            raise RuntimeError(f"answer {number} was not read whole: {len(answer.text)} characters came")

    async with asyncio.TaskGroup() as group:
        for number, answer in enumerate(answers):
            group.create_task(read(number, answer))
