from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from io import IncrementalNewlineDecoder
from types import SimpleNamespace
from typing import Any

import pytest

from guardrail.calls import http
from guardrail.calls.http import MAX_EVENT_CHARS, EventStream, read_body
from guardrail.errors import JudgeReplyError
from guardrail.judges.llm.chat import Exchange, StallBounds

TEXT = ': ping\n\nevent: message\ndata: {"a": "ü€😀"}\n\ndata:one\ndata: two\n\nid: 7\n\ndata: [DONE]\n\n'
EVENTS = ['{"a": "ü€😀"}', "one\ntwo", "[DONE]"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_events_are_found_wherever_the_bytes_are_cut(newline: str, size: int) -> None:
    data = TEXT.replace("\n", newline).encode()
    stream = EventStream()
    found = [
        event for start in range(0, len(data), size) for event in stream.feed(data[start : start + size])
    ]
    assert [*found, *stream.finish()] == EVENTS


def test_a_last_event_needs_no_empty_line() -> None:
    stream = EventStream()
    assert list(stream.feed(b"data: a\n\ndata: b")) == ["a"]
    assert list(stream.finish()) == ["b"]


def test_bytes_that_are_no_utf8_do_not_end_it() -> None:
    assert list(EventStream().feed(b"data: \xff\xfe\n\n")) == ["\ufffd\ufffd"]


@pytest.mark.parametrize("piece", [b"x" * 1_000, b"data: x\n" * 100, b"data: " + b"x" * 1_000])
def test_an_event_without_end_is_left(piece: bytes) -> None:
    stream = EventStream()

    def endless() -> None:
        for _ in range(MAX_EVENT_CHARS // 500):
            assert list(stream.feed(piece)) == []

    with pytest.raises(JudgeReplyError, match="more than"):
        endless()


def test_a_line_is_joined_once_however_many_pieces_it_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters handled, per character: the same for a line ten times as long."""
    handled = 0

    class Counting(str):
        __slots__ = ()

        def __add__(self, other: str) -> Counting:
            nonlocal handled
            handled += len(self) + len(other)
            return Counting(str.__add__(self, other))

        def __radd__(self, other: str) -> Counting:
            nonlocal handled
            handled += len(self) + len(other)
            return Counting(str.__add__(other, self))

        def split(self, *how: Any) -> list[str]:
            nonlocal handled
            handled += len(self)
            return [Counting(part) for part in str.split(self, *how)]

    class CountingDecoder(IncrementalNewlineDecoder):
        def decode(self, *how: Any, **ends: Any) -> str:
            return Counting(super().decode(*how, **ends))

    monkeypatch.setattr(http, "IncrementalNewlineDecoder", CountingDecoder)
    costs = []
    for length in (1_000, 10_000):
        handled = 0
        stream = EventStream()
        pieces = (f"data: {'x' * length}\n\n".encode()[at : at + 1] for at in range(length + 8))
        assert [event for piece in pieces for event in stream.feed(piece)] == ["x" * length]
        costs.append(handled / length)
    assert costs[1] <= costs[0] * 1.2 + 1


def test_many_short_events_have_no_such_bound() -> None:
    stream = EventStream()
    piece = b"data: x\n\n: comment\n\n" * 1_000
    assert sum(len(list(stream.feed(piece))) for _ in range(MAX_EVENT_CHARS // 10_000)) == 100_000


# --------------------------------------------------------------------------------- other tasks get their turn

END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def delta(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


class Turns:
    """How many pieces came, at most, while no other task had a turn."""

    def __init__(self) -> None:
        self.longest = 0
        self._since = 0

    def count(self, lines: int = 1) -> None:
        self._since += lines
        self.longest = max(self.longest, self._since)

    async def taken(self) -> None:
        while True:
            self._since = 0
            await asyncio.sleep(0)

    async def pieces(self, pieces: list[bytes]) -> AsyncIterator[bytes]:
        """As httpx gives those of one read: without waiting."""
        for piece in pieces:
            self.count()
            yield piece


async def turns_while(turns: Turns, reading: Callable[[], Any]) -> int:
    others = asyncio.create_task(turns.taken())
    await asyncio.sleep(0)
    await reading()
    others.cancel()
    return turns.longest


def exchange(turns: Turns, pieces: list[bytes], kind: str, on_text: Callable[[str], None]) -> Any:
    @asynccontextmanager
    async def post(*_: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(headers={"content-type": kind}, iter_bytes=lambda: turns.pieces(pieces))

    clients: Any = SimpleNamespace(post=post)
    return Exchange(clients, on_text, StallBounds(60.0, 60.0)).run({"stream": True}, {})


def bytes_of(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


WHOLE = json.dumps({"choices": [{"message": {"content": "x" * 5_000}, "finish_reason": "stop"}]}).encode()


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        (bytes_of(delta("x" * 5_000) + END), "text/event-stream"),
        ([delta("x"), END, *[b"\n"] * 5_000], "text/event-stream"),
        (bytes_of(WHOLE), "application/json"),
    ],
    ids=["a stream", "what follows its end", "a whole reply"],
)
async def test_a_read_of_thousands_of_pieces(pieces: list[bytes], kind: str) -> None:
    turns = Turns()
    assert await turns_while(turns, lambda: exchange(turns, pieces, kind, lambda _: None)) <= 1_000


@pytest.mark.parametrize(
    "piece", [delta("x") * 5_000, delta("x" * 500_000)], ids=["many events", "a long one"]
)
async def test_a_piece_that_holds_thousands_of_verdicts(piece: bytes) -> None:
    turns, sizes = Turns(), []

    def hear(text: str) -> None:
        sizes.append(len(text))
        turns.count()

    assert (
        await turns_while(turns, lambda: exchange(turns, [piece + END], "text/event-stream", hear)) <= 1_000
    )
    assert max(sizes) <= 16_000
    assert sum(sizes) >= 5_000


async def test_a_piece_of_empty_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed reply needs little to hold millions."""
    turns, feed = Turns(), EventStream.feed

    def counted(events: EventStream, data: bytes) -> Iterator[str]:
        turns.count(lines=data.count(b"\n"))
        return feed(events, data)

    monkeypatch.setattr(EventStream, "feed", counted)
    pieces = [b"\n" * 100_000 + delta("x") + END]
    longest = await turns_while(turns, lambda: exchange(turns, pieces, "text/event-stream", lambda _: None))
    assert longest <= 16_000 + 1


async def test_the_body_of_any_other_judges_reply() -> None:
    turns = Turns()
    assert await turns_while(turns, lambda: read_body(turns.pieces([b"x"] * 5_000), 10_000)) <= 1_000
