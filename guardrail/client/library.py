"""What guard and client make of aiokafka alike: its parameters, its errors in words, its log, its closing."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError

_LOG_AGAIN_S: Final = 10.0
_MOST_LINES: Final = 100


def known_to(kind: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``options`` that ``kind``, one of aiokafka's classes, has as parameters."""
    known = inspect.signature(kind.__init__).parameters
    return {name: value for name, value in options.items() if name in known}


def named(error: BaseException) -> str:
    """The error with its type, which aiokafka's own text may lack."""
    text, name = str(error), type(error).__name__
    return text if text and name in text else f"{name}: {text}" if text else name


def look_at(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception, or asyncio complains where nobody waits for it any more."""
    if not future.cancelled():
        future.exception()


async def closing_failed(closing: Coroutine[Any, Any, None], limit_s: float) -> str | None:
    """Close a client of aiokafka; why that did not work in time, None if it did.

    Runs in its own task: a client that meets a dead broker while closing may end in a CancelledError that
    nobody asked for and that must not end the caller. Raises other errors than those of Kafka.
    """
    task = asyncio.create_task(closing)
    try:
        await asyncio.wait([task], timeout=limit_s)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, (KafkaError, OSError, TimeoutError)):
        raise error
    return "out of time" if task.cancelled() else None if error is None else type(error).__name__


def demoted(record: logging.LogRecord) -> bool:
    """Make a line one for debugging; whether it is still to be logged."""
    record.levelno, record.levelname = logging.DEBUG, "DEBUG"
    return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


class Repetitions:
    """Which lines of aiokafka's log say again what they said a moment ago."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str], float] = {}

    def is_one(self, record: logging.LogRecord, about: str) -> bool:
        """Was it said within 10 s? The same line about another topic, node or host is news."""
        line = (record.name, str(record.msg), about)
        last = self._last.get(line)
        if last is not None and record.created - last < _LOG_AGAIN_S:
            return True
        if len(self._last) >= _MOST_LINES:
            self._last.clear()
        self._last[line] = record.created
        return False
