"""Server-sent events, as chat-completions servers write them: bytes in, the data of each event out."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import IncrementalNewlineDecoder
from typing import Final

from guardrail.errors import JudgeReplyError

MAX_EVENT_CHARS: Final = 1_000_000


class EventStream:
    """Decodes one stream. Cuts may fall anywhere: within an event, a line ending or a character."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._decoder = IncrementalNewlineDecoder(utf8, translate=True)
        self._line = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[str]:
        """The data of the events that ``data`` completes. Raises JudgeReplyError when one is too long."""
        *lines, self._line = (self._line + self._decoder.decode(data)).split("\n")
        for line in lines:
            if not line:
                yield from self._event()
            elif line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
                self._size += len(line)
            self._check()
        self._check()

    def finish(self) -> Iterator[str]:
        """The data of a last event that no empty line ended, as some servers leave it."""
        self._line += self._decoder.decode(b"", final=True)
        yield from self.feed(b"\n\n")

    def _event(self) -> Iterator[str]:
        if self._data:
            data = "\n".join(self._data)
            self._data.clear()
            self._size = 0
            yield data

    def _check(self) -> None:
        if len(self._line) + self._size > MAX_EVENT_CHARS:
            raise JudgeReplyError(f"an event of the stream has more than {MAX_EVENT_CHARS} characters")
