from __future__ import annotations

from io import IncrementalNewlineDecoder
from typing import Any

import pytest

from guardrail.calls import http
from guardrail.calls.http import MAX_EVENT_CHARS, EventStream
from guardrail.errors import JudgeReplyError

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
