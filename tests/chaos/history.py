"""What readers saw, as plain records, and the names of what can be wrong with it."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Anomaly(StrEnum):
    """Every way in which a history can break the guarantees."""

    LOST = "lost"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    ABORTED_READ = "aborted but read"
    NO_INPUT = "verdict or delivery without input"
    EARLY = "delivery before its verdicts"
    TWO_FINALS = "two final events"
    WRONG_TEXT = "text delivered differs from text allowed"
    WRONG_OUTCOME = "outcome differs from the one known in advance"
    DEAD_LETTER_LOST = "dead letter missing"
    DEAD_LETTER_DOUBLED = "dead letter doubled"
    DEAD_LETTER_CHANGED = "dead letter not byte for byte"
    DEAD_LETTER_UNDUE = "dead letter of a good record"
    POSITION = "committed position not at the end"
    SESSION_LEFT = "session left behind"


class Found(NamedTuple):
    """One anomaly and where it was seen."""

    anomaly: Anomaly
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.anomaly}: {self.subject}: {self.detail}"


class Read(NamedTuple):
    """One record as read. ``topic`` is its role (responses, deliveries, …), not its name."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def place(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.offset}"


class Log:
    """Offsets and checksums of what was read of one partition, in the order in which it was read.

    12 bytes a record, so that a reader can remember millions.
    """

    __slots__ = ("checksums", "offsets")

    def __init__(self) -> None:
        self.offsets = array("q")
        self.checksums = array("I")

    def add(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        self.offsets.append(offset)
        self.checksums.append(zlib.crc32(value or b"", zlib.crc32(key or b"")))

    @classmethod
    def of(cls, records: Iterable[Read]) -> Log:
        log = cls()
        for record in records:
            log.add(record.offset, record.key, record.value)
        return log

    def entries(self) -> dict[int, int]:
        """Checksum by offset."""
        return dict(zip(self.offsets, self.checksums, strict=True))


Logs = dict[tuple[str, int], Log]
"""By role of the topic and partition."""
