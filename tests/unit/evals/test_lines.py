"""Lines of any size and quality; reading never holds up the loop, and never runs far ahead."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evals.lines import InputLine, beside_the_loop, read_lines


def lines_of(data: bytes, limit: int = 100) -> list[tuple[int, bytes | None]]:
    return [(line.number, line.data) for line in read_lines(io.BytesIO(data), limit)]


def test_lines_are_numbered_and_blank_ones_are_counted_but_not_given() -> None:
    assert lines_of(b"a\n\n  \nb\n") == [(1, b"a"), (4, b"b")]


def test_line_ends_of_windows_and_a_missing_last_one() -> None:
    assert lines_of(b"a\r\n\r\nb") == [(1, b"a"), (3, b"b")]


def test_a_byte_order_mark_is_taken_off_the_first_line_only() -> None:
    assert lines_of(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n") == [(1, b"a"), (2, b"\xef\xbb\xbfb")]
    assert lines_of(b"\xef\xbb\xbf\nb\n") == [(2, b"b")]


def test_of_a_line_that_is_too_long_only_its_length_is_told() -> None:
    found = list(read_lines(io.BytesIO(b"ok\n" + b"x" * 101 + b"\nnext\n"), 100))
    assert found == [InputLine(1, b"ok", 3), InputLine(2, None, 102), InputLine(3, b"next", 5)]


def test_a_line_of_exactly_the_limit_is_read() -> None:
    assert lines_of(b"x" * 100 + b"\n" + b"y" * 100) == [(1, b"x" * 100), (2, b"y" * 100)]


@given(st.lists(st.binary(max_size=250).filter(lambda data: b"\n" not in data)))
def test_sizes_add_up_to_what_was_read_of_lines_with_content(parts: list[bytes]) -> None:
    data = b"\n".join(parts)
    found = list(read_lines(io.BytesIO(data), 100))
    assert sum(line.size for line in found) <= len(data)
    assert [line.number for line in found] == sorted({line.number for line in found})
    for line in found:
        part = parts[line.number - 1]
        assert line.data == (None if len(part) > 100 and line.data is None else line.data)
        assert line.data is None or line.data in part


async def test_lines_come_through_the_thread_in_order() -> None:
    data = b"".join(b"%d\n" % number for number in range(1000))
    found = [line.data async for line in beside_the_loop(read_lines(io.BytesIO(data)), ahead=3)]
    assert found == [b"%d" % number for number in range(1000)]


async def test_no_more_lines_are_read_than_asked_for_and_the_few_ahead() -> None:
    taken = 0

    def source() -> Iterator[InputLine]:
        nonlocal taken
        for number in range(1, 1000):
            taken = number
            yield InputLine(number, b"x", 2)

    lines = beside_the_loop(source(), ahead=5)
    for _ in range(10):
        await anext(lines)
    assert taken <= 10 + 5 + 1
    await lines.aclose()  # type: ignore[attr-defined]


async def test_an_error_of_reading_is_raised_where_the_lines_are_wanted() -> None:
    def source() -> Iterator[InputLine]:
        yield InputLine(1, b"x", 2)
        raise OSError("disk gone")

    lines = beside_the_loop(source(), ahead=5)
    assert (await anext(lines)).number == 1
    with pytest.raises(OSError, match="disk gone"):
        await anext(lines)


async def test_the_loop_runs_while_a_pipe_has_nothing_to_read() -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as stream:  # noqa: PTH123, ASYNC230 - a descriptor, and it is read in a thread
        lines = beside_the_loop(read_lines(stream), ahead=2)
        waiting = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0)
        assert not waiting.done()
        os.write(writer, b"late\n")
        assert (await waiting).data == b"late"
        os.close(writer)
        with pytest.raises(StopAsyncIteration):
            await anext(lines)
