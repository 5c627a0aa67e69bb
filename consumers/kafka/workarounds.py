r"""What the client library, aiokafka, gets wrong, and what is done about it.

**Connections.** A connection whose transport is closed already is a broken connection, whichever event loop
says so.

The client library expects an OSError of such a write, which it turns into an error of its own and gets over.
uvloop raises a RuntimeError, "the handler is closed", which nothing expects: it would come out of a poll, and
end the guard because a broker has hung up.

**Headers.** Reading records whose header names are not UTF-8, which Kafka takes and the client library can't
decode.

Any producer can write such a name. The library's decoder then raises out of every poll, for ever: one record
would end every guard. Here a batch that the library fails on is read once more, its names with escapes such
as ``\xff`` for bytes that are no UTF-8. Nothing else of a record is text, and batches that the library can
read stay with its own fast decoder. The escaped name is what is written, too: its producer takes UTF-8 only.

**Membership.**

- A second member with the same ``group_instance_id`` replaces the first, which the broker then does not know
  any more. The library would join again, replace the second, and so on for ever; and the code with which the
  broker says what is wrong is not in its tables.
- Told to close while a rebalance is under way, it joins first: everybody else waits for one that leaves.

**Transactions**, for speed. The library's sender makes one transactional request at a time, and goes through
its whole loop between two of them: four turns that each wait for everything else on the event loop. Here one
task makes all requests that are due, and asks for partitions and group to be added at once: both go to the
coordinator on one connection, which a broker serves in order. The position goes last, when the records are
acknowledged: a broker asks its coordinator about both, and a question that comes while another of the
transaction waits to be asked is answered with an error that costs a look-up and a pause. What is asked for,
and how every answer is treated, stays the library's.
"""

from __future__ import annotations

import asyncio
import functools
import struct
import time
from asyncio import InvalidStateError
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    CorruptRecordException,
    KafkaConnectionError,
    NoError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest
from aiokafka.record._protocols import DefaultRecordProtocol
from aiokafka.record.default_records import DefaultRecord, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint

from guardrail.config.kafka import KafkaSettings
from guardrail.errors import TransportUnavailable

_WRITING = ("send", "_send_sasl_token")
_Write = Callable[..., Awaitable[Any]]


def notice_closed_transports() -> None:
    """For all connections of this process. Doing it again changes nothing."""
    for name in _WRITING:
        write: _Write = getattr(AIOKafkaConnection, name)
        if not hasattr(write, "__wrapped__"):
            setattr(AIOKafkaConnection, name, _noticing(write))


def _noticing(write: _Write) -> _Write:
    @functools.wraps(write)
    def noticing(connection: AIOKafkaConnection, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        try:
            return write(connection, *args, **kwargs)
        except RuntimeError as error:
            # As the library does after an OSError.
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(
                f"Connection at {connection.host}:{connection.port} broken: {error}"
            ) from error

    return noticing


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


_FENCED_INSTANCE_ID: Final = 82


class Membership:
    """Sees all that a consumer's coordinator sends, from its start on."""

    def __init__(
        self, coordinator: Any, settings: KafkaSettings, failed: Callable[[TransportUnavailable], None]
    ) -> None:
        """``failed`` is told when another member has taken over the instance id."""
        self._settings = settings
        self._failed = failed
        self._send = coordinator._send_req
        self._heard_at = float("-inf")
        self._leaving = False
        coordinator._send_req = self._send_req

    def joined(self) -> None:
        """The broker has just assigned partitions to us."""
        self._heard_at = time.monotonic()

    def leave(self) -> None:
        """Do not join any more."""
        self._leaving = True

    async def _send_req(self, request: Any) -> Any:
        if self._leaving and isinstance(request, JoinGroupRequest):
            raise CoordinatorLoadInProgressError  # the library tries later, and sees that it is to close
        sent_at = time.monotonic()
        response = await self._send(request)
        if self._settings.group_instance_id is not None:
            self._look_at(request, getattr(response, "error_code", NoError.errno), sent_at)
        return response

    def _look_at(self, request: Any, code: int, sent_at: float) -> None:
        heartbeat = isinstance(request, HeartbeatRequest)
        if heartbeat and code in {NoError.errno, RebalanceInProgressError.errno}:
            self._heard_at = sent_at
        # After a long silence not to be known is nothing but that: the session has expired.
        silence_s = time.monotonic() - self._heard_at
        lately = silence_s < self._settings.session_timeout_ms / 2000
        replaced = heartbeat and code == UnknownMemberIdError.errno and lately
        if (replaced or code == _FENCED_INSTANCE_ID) and not self._leaving:
            self._leaving = True
            self._failed(
                TransportUnavailable(
                    f"another member of group {self._settings.group_id} has joined with the same "
                    f"group_instance_id {self._settings.group_instance_id} and taken this one's place; "
                    "give every guard an id of its own"
                )
            )


def hasten(producer: AIOKafkaProducer) -> Driver:
    """Have a transactional producer that is not started yet work like that."""
    driver = Driver(producer)
    producer._sender._maybe_do_transactional_request = driver.task  # type: ignore[method-assign]
    return driver


class Driver:
    """Stands in for ``Sender._maybe_do_transactional_request``."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._under_way: set[asyncio.Future[Any]] = set()
        self._sender = producer._sender
        self._transactions = producer._txn_manager
        self._accumulator = producer._message_accumulator

    def hold_position(self, records: Iterable[asyncio.Future[Any]]) -> None:
        """The position is not sent before these are acknowledged, or have failed."""
        for future in records:
            self._under_way.add(future)
            future.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future[Any]) -> None:
        self._under_way.discard(future)
        if not self._under_way:
            self._transactions.notify_task_waiter()

    def task(self) -> asyncio.Task[None] | None:
        """The task that makes what requests are due; None when none is. The sender keeps and awaits it."""
        return asyncio.create_task(self._make_requests()) if self._due() else None

    async def _make_requests(self) -> None:
        while due := self._due():
            adding = bool(self._transactions.partitions_to_add())
            results = await asyncio.gather(*(request() for request in due), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException) and not self._follows(result):
                    raise result
            if adding:
                self._wake_sender()

    def _follows(self, error: BaseException) -> bool:
        """Is this of an answer that came when another one had just spoiled the transaction?

        The library forgets then what was asked for, and trips over the second answer about it.
        """
        spoilt = self._transactions.state == TransactionState.ABORTABLE_ERROR
        return spoilt and isinstance(error, KeyError | InvalidStateError)

    def _due(self) -> list[Callable[[], Awaitable[object]]]:
        """What can be asked now, in the library's order: partitions, group, its position, the end."""
        sender, transactions = self._sender, self._transactions
        due: list[Callable[[], Awaitable[object]]] = []
        partitions = transactions.partitions_to_add()
        if partitions:
            due.append(lambda: sender._do_add_partitions_to_txn(partitions))
        group_id = transactions.consumer_group_to_add()
        if group_id is not None:
            due.append(lambda: sender._do_add_offsets_to_txn(group_id))
        if due:
            return due
        position = transactions.offsets_to_commit()
        if position is not None:
            if self._under_way:
                return []
            return [lambda: sender._do_txn_offset_commit(*position)]
        result = transactions.needs_transaction_commit()
        if result is not None:
            return [lambda: sender._do_txn_commit(result)]
        return []

    def _wake_sender(self) -> None:
        """Batches of a partition were held back until it was added."""
        waiting = self._accumulator._waiter_future
        if not waiting.done():
            waiting.set_result(None)
