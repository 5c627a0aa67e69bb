"""Dead letters: unusable records, byte for byte, with headers that say why and where they came from.

Also detects when most records of a partition are unreadable, rather than single ones.
"""

from __future__ import annotations

import time
from collections import deque
from itertools import repeat
from typing import Final

import structlog

from consumers.transport import OutRecord, Partition, Record
from guardrail import telemetry
from guardrail.errors import DecodeError, InputError, ProtocolError
from guardrail.limits import Limits

log = structlog.get_logger(__name__)

BAD_RECORD_PAUSE_S: Final = 1.0
"""Between undecodable records of a partition that has too many of them."""


class BadRecords:
    """The share of undecodable records among the latest ones of a partition, and what it means.

    While it is too large, the partition is read on slowly: a fault is seen before all of the input is dead
    letters, nothing waits for a restart, and other partitions are not concerned.
    """

    def __init__(self, limits: Limits, partition: Partition) -> None:
        self._share = limits.bad_record_share
        self._least = limits.bad_record_min
        self._partition = f"{partition.topic}-{partition.index}"
        self._last: deque[bool] = deque(maxlen=limits.bad_record_window)
        self._bad = 0
        self.too_many = False
        self._pause_until = 0.0

    @property
    def pausing(self) -> bool:
        """Whether the next record has to wait."""
        return self.too_many and time.monotonic() < self._pause_until

    def good(self, records: int) -> None:
        """So many records were decoded, whatever happened to them afterwards."""
        if self._bad:
            for _ in range(records):
                self._note(bad=False)
        else:
            self._last.extend(repeat(False, records))

    def bad(self) -> None:
        """A record could not be decoded."""
        self._note(bad=True)
        if self.too_many:
            self._pause_until = time.monotonic() + BAD_RECORD_PAUSE_S

    def _note(self, *, bad: bool) -> None:
        last = self._last
        if len(last) == last.maxlen and last[0]:
            self._bad -= 1
        last.append(bad)
        self._bad += bad
        too_many = len(last) >= self._least and self._bad > self._share * len(last)
        if too_many and not self.too_many:
            log.error(
                "guard.unreadable",
                partition=self._partition,
                unreadable=self._bad,
                of_the_last=len(last),
                effect=f"of this partition one unreadable record in {BAD_RECORD_PAUSE_S:g} s is read",
                remedy="see who writes to it, and in which format: 'guardrail dead-letters list'",
            )
        elif self.too_many and not too_many:
            log.info("guard.readable_again", partition=self._partition)
        self.too_many = too_many


REASONS: Final = (
    "answer_too_long",
    "contexts_too_large",
    "duplicate_start",
    "empty_value",
    "internal_error",
    "invalid_event",
    "invalid_json",
    "response_finished",
    "route_not_allowed",
    "sequence_gap",
    "tenant_not_allowed",
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
    later = "session" if isinstance(error, ProtocolError) else "guard"
    about = {
        "reason": error.reason,
        "error": type(error).__name__,
        "message": str(error)[:MAX_MESSAGE_CHARS],
        "stage": "decode" if isinstance(error, DecodeError) else later,
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
