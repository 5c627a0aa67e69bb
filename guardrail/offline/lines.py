"""Lines of a byte stream of any size and any quality, read beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeVar

BOM: Final = b"\xef\xbb\xbf"
MAX_LINE_BYTES: Final = 32 * 1024 * 1024
"""Above what the default limits of contexts and answer need when every character is escaped in JSON."""
_DRAIN_BYTES: Final = 1024 * 1024
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class InputLine:
    """One line. ``number`` counts from 1, blank ones included.

    ``size`` is in bytes with the line's end; ``data`` is None for a line that was too long to be read.
    """

    number: int
    data: bytes | None
    size: int


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
