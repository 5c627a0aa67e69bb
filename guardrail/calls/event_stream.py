"""Server-sent events, as models stream them."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import IncrementalNewlineDecoder
from typing import Final

from guardrail.errors import JudgeReplyError

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
