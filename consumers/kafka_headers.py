r"""Reading records whose header names are not UTF-8, which Kafka takes and the client library can't decode.

Any producer can write such a name. The library's decoder then raises out of every poll, for ever: one record
would end every guard. Here a batch that the library fails on is read once more, its names with escapes such
as ``\xff`` for bytes that are no UTF-8. Nothing else of a record is text, and batches that the library can
read stay with its own fast decoder. The escaped name is what is written, too: its producer takes UTF-8 only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any, Final

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record._protocols import DefaultRecordProtocol
from aiokafka.record.default_records import DefaultRecord, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
"""Where a batch says how many bytes follow its length."""
_BEFORE_LENGTH_ENDS: Final = _LENGTH_AT + _LENGTH.size


def read_any_header_name(consumer: AIOKafkaConsumer) -> None:
    """Let ``consumer`` read records with any header names. Call it once started, before it has partitions.

    Other consumers of the process stay as they are.
    """
    fetcher: Any = consumer._fetcher
    fetcher._proc_fetch_request = MethodType(_PROC_FETCH_REQUEST, fetcher)


def _with_names(function: Any, **names: object) -> FunctionType:
    """``function`` where some names of its module mean something else; the module stays as it is."""
    code, defaults, closure = function.__code__, function.__defaults__, function.__closure__
    return FunctionType(code, {**function.__globals__, **names}, function.__name__, defaults, closure)


class FetchedBatches:
    """The library's ``MemoryRecords``, which keeps the bytes of the batch that was taken last findable."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._batches = MemoryRecords(data)
        self.size_in_bytes: Callable[[], int] = self._batches.size_in_bytes
        self.has_next: Callable[[], bool] = self._batches.has_next
        self.taken = 0
        """How many batches ``next_batch`` has returned."""

    def next_batch(self) -> Any:
        """See ``MemoryRecords.next_batch``."""
        batch = self._batches.next_batch()
        self.taken += 1
        return batch

    def last(self) -> memoryview:
        """The bytes of the batch that ``next_batch`` returned last."""
        begin = end = 0
        for _ in range(self.taken):
            begin = end
            end = begin + _BEFORE_LENGTH_ENDS + _LENGTH.unpack_from(self._data, begin + _LENGTH_AT)[0]
        return memoryview(self._data)[begin:end]


class TolerantRecords(PartitionRecords):
    """The library's iterator over what was fetched of a partition; it goes on where a name can't be decoded.

    What it raises otherwise, it raises still.
    """

    _records: FetchedBatches

    def _unpack_records(self) -> Iterator[Any]:
        reading = PartitionRecords._unpack_records(self)
        read_again = 0
        while True:
            try:
                yield from reading
            except (UnicodeDecodeError, CorruptRecordException) as error:
                # The second is what the library's decoder in Python makes of the first.
                undecodable = isinstance(error, UnicodeDecodeError) or (
                    isinstance(error.__cause__, UnicodeDecodeError)
                )
                if not undecodable or read_again == self._records.taken:
                    raise
                read_again = self._records.taken
                reading = self._read_on()
            else:
                return

    def _read_on(self) -> Iterator[Any]:
        """The rest of the batch that was taken last, and all batches after it.

        It was checked and found to be visible before its first record was read.
        """
        batch = _DefaultRecordBatchPy(self._records.last())
        for record in decoded(batch):
            if record.offset >= self.next_fetch_offset:
                found = PartitionRecords._consumer_record(self, self._tp, record)
                self.next_fetch_offset = record.offset + 1
                yield found
        self.next_fetch_offset = batch.next_offset
        yield from PartitionRecords._unpack_records(self)


def decoded(batch: _DefaultRecordBatchPy) -> Iterator[DefaultRecordProtocol]:
    """All records of a batch of format 2, escapes in names that are not UTF-8.

    The fields are those of https://kafka.apache.org/documentation/#record. Raises CorruptRecordException.
    """
    batch._maybe_uncompress()
    fields = _Fields(batch._buffer, batch._pos)
    for _ in range(batch._num_records):
        length = fields.number()
        end = fields.at + length
        fields.at += 1  # attributes, which mean nothing so far
        timestamp = batch.first_timestamp + fields.number()
        if batch.timestamp_type == batch.LOG_APPEND_TIME:
            timestamp = batch.max_timestamp
        offset = batch.base_offset + fields.number()
        key, value = fields.sized(), fields.sized()
        headers = [fields.header() for _ in range(fields.number())]
        if fields.at != end:
            raise CorruptRecordException(f"a record of {length} bytes does not end where it should")
        yield DefaultRecord(offset, timestamp, batch.timestamp_type, key, value, headers)


class _Fields:
    """Takes the fields of records out of ``data``, from ``at`` on."""

    def __init__(self, data: bytearray, at: int) -> None:
        self._data = data
        self.at = at

    def number(self) -> int:
        if self.at >= len(self._data):  # the library's function would look beyond it
            raise CorruptRecordException("a record ends early")
        try:
            value, self.at = decode_varint(self._data, self.at)
        except (ValueError, IndexError) as error:
            raise CorruptRecordException("a record has a length that is none") from error
        return value

    def sized(self) -> bytes | None:
        """Bytes after their length; None where that is negative."""
        length = self.number()
        if length < 0:
            return None
        begin, self.at = self.at, self.at + length
        if self.at > len(self._data):
            raise CorruptRecordException("a record ends early")
        return bytes(self._data[begin : self.at])

    def header(self) -> tuple[str, bytes | None]:
        name = self.sized()
        if name is None:
            raise CorruptRecordException("a header has no name")
        return name.decode("utf-8", "backslashreplace"), self.sized()


_PROC_FETCH_REQUEST: Final = _with_names(
    Fetcher._proc_fetch_request, MemoryRecords=FetchedBatches, PartitionRecords=TolerantRecords
)
