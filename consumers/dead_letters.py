"""Dead letters: unusable records, byte for byte, with headers that say why and where they came from.

Also detects when most records are unreadable, rather than single ones.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from consumers.transport import OutRecord, Record
from guardrail import telemetry
from guardrail.errors import DecodeError, InputError, ProtocolError, TooManyBadRecords
from guardrail.limits import Limits


class BadRecords:
    """The share of undecodable records among the latest ones."""

    def __init__(self, limits: Limits, topic: str) -> None:
        self._share = limits.bad_record_share
        self._least = limits.bad_record_min
        self._topic = topic
        self._last: deque[bool] = deque(maxlen=limits.bad_record_window)
        self._bad = 0

    def good(self) -> None:
        """A record was decoded, whatever happened to it afterwards."""
        if self._bad:
            self._note(bad=False)
        else:
            self._last.append(False)

    def bad(self) -> None:
        """A record could not be decoded. Raises TooManyBadRecords if this makes the share too large."""
        self._note(bad=True)
        taken = len(self._last)
        if taken >= self._least and self._bad > self._share * taken:
            raise TooManyBadRecords(
                f"{self._bad:,} of the last {taken:,} records of {self._topic} could not be read; that is "
                f"more than limits.bad_record_share ({self._share:g}) allows, and the guard stops before all "
                "of them are dead letters. See who writes to the topic, and in which format: 'guardrail "
                "dead-letters list' shows those read so far. Started again, the guard goes on after them, up "
                f"to the next {self._least:,}. If all are to be passed over, raise "
                "limits.bad_record_share; 1 switches this limit off"
            )

    def _note(self, *, bad: bool) -> None:
        last = self._last
        if len(last) == last.maxlen and last[0]:
            self._bad -= 1
        last.append(bad)
        self._bad += bad


REASONS: Final = (
    "answer_too_long",
    "contexts_too_large",
    "duplicate_start",
    "empty_value",
    "internal_error",
    "invalid_event",
    "invalid_json",
    "response_finished",
    "sequence_gap",
    "unknown_response",
    "unknown_schema",
    "unknown_type",
    "wrong_partition",
)
"""The codes that dead letters can bear."""
for _reason in REASONS:
    telemetry.DEAD_LETTERS.labels(_reason)  # begins with 0, so that the first one is an increase

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
    ``…message``, ``…stage`` (where it was refused: ``decode``, ``session`` or ``guard``), and the original
    ``…topic``, ``…partition``, ``…offset`` and ``…timestamp`` (milliseconds since 1970). If the record would
    exceed ``max_bytes``, its value, then its headers, then its key are left out, and ``…value-bytes``,
    ``…headers-bytes`` and ``…key-bytes`` give their sizes. They can still be read at their original place,
    and a record too large to write doesn't stop the guard.
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
