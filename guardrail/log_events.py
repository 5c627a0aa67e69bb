"""Log events with a code and fields, on the standard library's loggers.

For the parts that run inside other programs: such a program may have set up its logging in any way, and then
reads ``judge.failed judge='llm:m' error='…'``. ``guardrail.logs`` takes code and fields apart again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

CODE: Final = "guardrail_code"
FIELDS: Final = "guardrail_fields"
"""Attributes of a record."""


class EventLog:
    """Logs events. A code is two names or more, joined by dots, and never changes with the values."""

    __slots__ = ("_log",)

    def __init__(self, name: str) -> None:
        """``name`` is that of the logger."""
        self._log = logging.getLogger(name)

    def info(self, code: str, **fields: Any) -> None:
        """Something that is as it should be."""
        self._tell(logging.INFO, code, fields)

    def warning(self, code: str, **fields: Any) -> None:
        """Something that the process copes with, and somebody should know of."""
        self._tell(logging.WARNING, code, fields)

    def error(self, code: str, **fields: Any) -> None:
        """Something that somebody has to mend."""
        self._tell(logging.ERROR, code, fields)

    def _tell(self, level: int, code: str, fields: Mapping[str, Any]) -> None:
        if self._log.isEnabledFor(level):
            text = " ".join((code, *(f"{name}={value!r}" for name, value in fields.items())))
            self._log.log(level, "%s", text, extra={CODE: code, FIELDS: fields})
