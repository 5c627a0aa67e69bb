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
HEADER_BYTES: Final = 10
"""What a header takes at most beside its name and its content."""


def dead_letter(topic: str, record: Record, error: InputError, max_bytes: int) -> OutRecord:
    """The record as it came, its own headers first.

    Headers added, all UTF-8: ``…reason`` (a stable code, always the first of them), ``…error`` (class),
    ``…message``, ``…stage`` (what refused it: ``decode``, ``session`` or ``guard``), and the original
    ``…topic``, ``…partition``, ``…offset`` and ``…timestamp`` (milliseconds since 1970). Where the record
    would be larger than ``max_bytes``, its value, then its headers, then its key are left out, and
    ``…value-bytes``, ``…headers-bytes`` and ``…key-bytes`` say how large they are: they can be read at their
    original place, and the guard is not stopped by what it can't write.
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
    key, value, headers = record.key, record.value, record.headers
    sizes = (
        len(key or b""),
        sum(len(name.encode()) + len(content or b"") + HEADER_BYTES for name, content in headers),
        len(value or b""),
    )
    most = max_bytes - MAX_ADDED_BYTES
    if sum(sizes) > most:
        value, about["value-bytes"] = None, str(sizes[2])
    if sum(sizes[:2]) > most:
        headers, about["headers-bytes"] = (), str(sizes[1])
    if sizes[0] > most:
        key, about["key-bytes"] = None, str(sizes[0])
    added = tuple((PREFIX + name, text.encode("utf-8", "replace")) for name, text in about.items())
    return OutRecord(topic, key, value, (*headers, *added))


def _stage(error: InputError) -> str:
    match error:
        case DecodeError():
            return "decode"
        case ProtocolError():
            return "session"
        case _:
            return "guard"
