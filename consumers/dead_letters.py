"""Dead letters: what could not be used, byte for byte, with headers that say why and from where."""

from __future__ import annotations

from typing import Final

from consumers.transport import OutRecord, Record
from guardrail.errors import DecodeError, InputError, ProtocolError

PREFIX: Final = "guardrail-dead-letter-"
REPLAYED: Final = "guardrail-replayed"
"""On a record written back by ``guardrail dead-letters replay``: how many times it was, in decimal."""
MAX_MESSAGE_CHARS: Final = 500
MAX_ADDED_BYTES: Final = 4_096


def dead_letter(topic: str, record: Record, error: InputError, max_bytes: int) -> OutRecord:
    """The record as it came, its own headers first.

    Headers added, all UTF-8: ``…reason`` (a stable code, always the first of them), ``…error`` (class),
    ``…message``, ``…stage`` (what refused it: ``decode``, ``session`` or ``guard``), and the original
    ``…topic``, ``…partition``, ``…offset`` and ``…timestamp`` (milliseconds since 1970). A value that would
    make the record larger than ``max_bytes`` is left out, and ``…value-bytes`` says how large it is: it can
    be read at its original place, and the guard is not stopped by what it can't write.
    """
    about = {
        "reason": error.reason,
        "error": type(error).__name__,
        "message": str(error)[:MAX_MESSAGE_CHARS],
        "stage": _stage(error),
        "topic": record.partition.topic,
        "partition": str(record.partition.index),
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
    }
    value = record.value
    size = len(value or b"") + len(record.key or b"") + sum(len(n) + len(v or b"") for n, v in record.headers)
    if size + MAX_ADDED_BYTES > max_bytes:
        value = None
        about["value-bytes"] = str(len(record.value or b""))
    added = tuple((PREFIX + name, text.encode("utf-8", "replace")) for name, text in about.items())
    return OutRecord(topic, record.key, value, (*record.headers, *added))


def _stage(error: InputError) -> str:
    match error:
        case DecodeError():
            return "decode"
        case ProtocolError():
            return "session"
        case _:
            return "guard"
