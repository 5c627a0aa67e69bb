"""Files of lines of any size and any quality, compressed or not, read beside the event loop if need be."""

from __future__ import annotations

import asyncio
import gzip
import io
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast

from guardrail.errors import DecodeError

STDIN: Final = "-"
BROKEN_GZIP: Final = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a compressed file raises that is cut short or damaged."""
BOM: Final = b"\xef\xbb\xbf"
MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Above what the default limits of contexts and answer need when every character is escaped in JSON."""
_DRAIN_BYTES: Final = 1024 * 1024
_GZIP: Final = b"\x1f\x8b"
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line. ``number`` counts from 1, blank ones included.

    ``size`` is in bytes with the line's end; ``data`` is None for a line that was too long to be read.
    """

    number: int
    data: bytes | None
    size: int

    @property
    def whole(self) -> bytes:
        """The line. Raises DecodeError if it is longer than any that the guard writes."""
        if self.data is None:
            raise DecodeError("line_too_long", f"{self.size:,} bytes are too many for a line")
        return self.data


def unpacked(stream: BinaryIO) -> BinaryIO:
    """The stream, or what it holds if it is gzip's, whatever its name. It need not be seekable."""
    buffered: Any = stream if hasattr(stream, "peek") else io.BufferedReader(cast("Any", stream))
    packed = buffered.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
    return cast("BinaryIO", gzip.GzipFile(fileobj=buffered) if packed else buffered)


@contextmanager
def open_unpacked(path: str | Path) -> Iterator[BinaryIO]:
    """A file to read, unpacked if it is gzip's; ``-`` is stdin, which stays open. Raises OSError."""
    with ExitStack() as stack:
        given = sys.stdin.buffer if str(path) == STDIN else stack.enter_context(Path(path).open("rb"))
        yield unpacked(given)


def name_of(path: str | Path) -> str:
    """What messages call a file that is read."""
    return "<stdin>" if str(path) == STDIN else str(path)


def lines_of(stream: BinaryIO, name: str = "") -> Iterator[tuple[InputLine, str]]:
    """As ``read_lines``, each with its place in the file ``name``. Raises DecodeError for broken gzip."""
    number = 0
    try:
        for line in read_lines(stream):
            number = line.number
            yield line, f"{name} line {number}".lstrip()
    except BROKEN_GZIP:
        problem = f"{name}: the compressed file is cut short or damaged after line {number}"
        raise DecodeError("invalid_gzip", problem) from None


def read_lines(stream: BinaryIO, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[InputLine]:
    """All lines but blank ones, a byte order mark at the start and line ends of any kind removed.

    No more than ``max_line_bytes`` are ever held: of a longer line only the length is told.
    """
    number = 0
    while data := stream.readline(max_line_bytes + 1):
        number += 1
        size = len(data)
        if size > max_line_bytes and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = stream.readline(_DRAIN_BYTES)
                size += len(data)
            yield InputLine(number, None, size)
            continue
        data = data.removeprefix(BOM) if number == 1 else data
        data = data.strip()
        if data:
            yield InputLine(number, data, size)


async def beside_the_loop(lines: Iterator[_Item], ahead: int) -> AsyncIterator[_Item]:
    """``lines``, or what was read of them, from a thread, so that a terminal or a slow pipe holds nobody up.

    At most ``ahead`` lines are read before they are asked for. The thread is a daemon: one that waits for
    input which never comes does not keep the process from ending. Errors of reading are raised here.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[_Item | BaseException | None] = asyncio.Queue()
    room = threading.Semaphore(ahead)
    stopped = threading.Event()

    def hand_over(item: _Item | BaseException | None) -> None:
        # The loop may be closed already when the process is on its way out.
        if not stopped.is_set():
            loop.call_soon_threadsafe(arrived.put_nowait, item)

    def read() -> None:
        try:
            for line in lines:
                room.acquire()
                if stopped.is_set():
                    return
                hand_over(line)
        except BaseException as error:  # noqa: BLE001 - raised again where the lines are wanted
            hand_over(error)
        else:
            hand_over(None)

    threading.Thread(target=read, name="read-lines", daemon=True).start()
    try:
        while (item := await arrived.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            room.release()
            yield item
    finally:
        stopped.set()
        room.release()
