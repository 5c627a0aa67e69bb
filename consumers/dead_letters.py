"""Dead letters: what could not be used, byte for byte, with headers that say why and from where."""

from __future__ import annotations

from typing import Final

from consumers.transport import OutRecord, Record
from guardrail.errors import InputError

PREFIX: Final = "guardrail-dead-letter-"
MAX_MESSAGE_CHARS: Final = 500


def dead_letter(topic: str, record: Record, error: InputError) -> OutRecord:
    """The record as it came, its own headers first.

    Headers added, all UTF-8: ``…reason`` (a stable code), ``…error`` (class), ``…message``, and the original
    ``…topic``, ``…partition``, ``…offset`` and ``…timestamp`` (milliseconds since 1970).
    """
    about = {
        "reason": error.reason,
        "error": type(error).__name__,
        "message": str(error)[:MAX_MESSAGE_CHARS],
        "topic": record.partition.topic,
        "partition": str(record.partition.index),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
    }
    added = tuple((PREFIX + name, value.encode("utf-8", "replace")) for name, value in about.items())
    return OutRecord(topic, record.key, record.value, (*record.headers, *added))
