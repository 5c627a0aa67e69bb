"""Logs of a process: structlog and the standard library through one handler, to stderr.

Texts of responses (questions, contexts, answers, claims, quotes) may be personal data. Log them only under a
key in ``TEXT_KEYS``: such values, and inputs that validation errors quote, are withheld unless ``log_texts``
is on. Of libraries only warnings and errors are logged. Control characters never reach the terminal, so a
logged value can neither forge a line nor control the screen.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final, TextIO

import structlog
from pydantic import ValidationError
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from guardrail.config.settings import LoggingSettings, LogLevel
from guardrail.log_events import CODE, FIELDS
from guardrail.printable import escape_controls

TEXT_KEYS: Final = frozenset(
    {
        "answer",
        "claim",
        "claims",
        "context",
        "contexts",
        "delta",
        "passage",
        "question",
        "quote",
        "reasoning",
        "text",
    }
)
"""Keys of log events whose values are texts of responses."""

_OURS: Final = ("guardrail", "consumers")


def configure_logging(settings: LoggingSettings, stream: TextIO | None = None) -> None:
    """Send all logs of this process to ``stream``, stderr by default. The last call takes effect."""
    stream = stream if stream is not None else sys.stderr
    tty = stream.isatty()
    as_json = settings.format == "json" or (settings.format == "auto" and not tty)
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        _ExceptionText(settings.log_texts),
    ]
    if not settings.log_texts:
        shared.append(withhold_texts)
    last: list[Processor] = (
        [_first_what_and_when, structlog.processors.JSONRenderer(default=repr)]
        if as_json
        else [_escape_values, structlog.dev.ConsoleRenderer(colors=tty and not os.environ.get("NO_COLOR"))]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder([CODE, FIELDS]), _code_and_fields, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.captureWarnings(True)
    logging.getLogger().handlers[:] = [handler]
    set_level(settings.level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _code_and_fields(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """An event of ``guardrail.log_events`` as one of structlog's would be."""
    code, fields = event.pop(CODE, None), event.pop(FIELDS, {})
    return event if code is None else {**event, **fields, "event": code}


def _first_what_and_when(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """The same order in every line, so that people can compare lines."""
    first = {key: event[key] for key in ("timestamp", "level", "event") if key in event}
    return {**first, **event}


def set_level(name: LogLevel) -> None:
    """Set the lowest level to log, from now on. Of libraries only warnings and errors are logged at any."""
    level = logging.getLevelNamesMapping()[name.upper()]
    # Libraries show in their other lines what they send and get: aiokafka whole records and SASL passwords,
    # HTTP clients headers and URLs.
    logging.getLogger().setLevel(max(level, logging.WARNING))
    for ours in _OURS:
        logging.getLogger(ours).setLevel(level)


def withhold_texts(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace the texts of responses in a log event by their length."""
    for key in TEXT_KEYS & event.keys():
        value = event[key]
        if isinstance(value, str):
            event[key] = f"({len(value)} characters withheld)"
        elif value is not None and not isinstance(value, bool | int | float):
            event[key] = f"({len(value)} withheld)" if hasattr(value, "__len__") else "(withheld)"
    return event


def _escape_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    # JSON escapes them itself; the console prints what it gets.
    return {escape_controls(str(key)): _escaped(key, value) for key, value in event.items()}


def _escaped(key: str, value: Any) -> Any:
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = value if isinstance(value, str) else repr(value)
    return escape_controls(text, keep_lines=key in {"exception", "stack"})


class _ExceptionText:
    """Turns ``exc_info`` into text under ``exception``, without local variables and quoted inputs."""

    def __init__(self, log_texts: bool) -> None:
        self._log_texts = log_texts

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        info: ExcInfo | BaseException | bool | None = event.pop("exc_info", None)
        error = info if isinstance(info, BaseException) else info[1] if isinstance(info, tuple) else None
        if info is True:
            error = sys.exc_info()[1]
        if error is not None:
            event["exception"] = "".join(self._lines(error, set())).rstrip("\n")
        return event

    def _lines(self, error: BaseException, seen: set[int]) -> Iterator[str]:
        seen.add(id(error))
        before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if before is not None and id(before) not in seen:
            yield from self._lines(before, seen)
            yield "\nwhich led to:\n"
        if error.__traceback__ is not None:
            yield "Traceback (most recent call last):\n"
            yield from traceback.format_tb(error.__traceback__)
        yield f"{type(error).__qualname__}: {self._message(error)}\n"
        if isinstance(error, BaseExceptionGroup):
            for i, inner in enumerate(error.exceptions, start=1):
                if id(inner) not in seen:
                    yield f"-- {i} of {len(error.exceptions)} in {type(error).__qualname__}:\n"
                    yield from self._lines(inner, seen)

    def _message(self, error: BaseException) -> str:
        if self._log_texts or not isinstance(error, ValidationError):
            return str(error)
        details = error.errors(include_url=False, include_input=False, include_context=False)
        return "; ".join(
            f"{'.'.join(map(str, each['loc'])) or error.title}: {each['type']}" for each in details
        )
