"""What touches private parts of aiokafka, but for ``consumers.kafka.asking``, and the reasons why.

``WORKAROUNDS`` lists every defect that is worked around: what goes wrong, the upstream issue, the test
that fails without the workaround, and the private parts it relies on. aiokafka may rename a private part in
any release, so ``check_client_library`` looks for all of them before the first client is made. A release that
lacks one stops the guard with an error that names it; a release that was not tested logs a warning.

Unless an entry of the list says so, nothing here changes what aiokafka requests from a broker or how it
treats the responses.
"""

from __future__ import annotations

import asyncio
import dis
import functools
import importlib
import inspect
import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from types import CodeType
from typing import Any, Final

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    CorruptRecordException,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    NoError,
    ProducerClosed,
    RebalanceInProgressError,
    RequestTimedOutError,
    UnknownMemberIdError,
)

from guardrail.errors import ConfigError, PartitionLost, TransportError, TransportUnavailable
from guardrail.log_events import EventLog
from guardrail.shipped import shipped_yaml


def lacking(error: ImportError) -> ConfigError:
    """What to tell of an inner module of aiokafka that is not there."""
    return ConfigError(
        f"aiokafka {aiokafka.__version__} lacks what the guard relies on: {error}; "
        "install the release that the package asks for: pip install --force-reinstall streaming-guardrail"
    )


try:
    from aiokafka.client import ConnectionGroup
    from aiokafka.conn import AIOKafkaConnection, CloseReason
    from aiokafka.consumer import fetcher
    from aiokafka.producer.transaction_manager import TransactionState
    from aiokafka.protocol.admin import ApiVersionRequest
    from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
    from aiokafka.record._protocols import DefaultRecordProtocol
    from aiokafka.record.default_records import DefaultRecord, _DefaultRecordBatchPy
    from aiokafka.record.memory_records import MemoryRecords
    from aiokafka.record.util import decode_varint
    from aiokafka.util import create_future
except ImportError as error:
    raise lacking(error) from error

CHECKED_WITH: Final = ("0.14.0",)
"""The releases that the tests of all entries ran with."""

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class Takes:
    """A function that takes these positional arguments; further ones must be optional."""

    function: str
    arguments: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """What is not as it should be, or None."""
        named = f"{self.function}({', '.join(self.arguments)})"
        try:
            parameters = list(inspect.signature(_find(self.function)).parameters.values())
        except (ImportError, AttributeError, TypeError):
            return named
        except ValueError:
            return None  # compiled, and has no signature
        if parameters and parameters[0].name == "self":
            del parameters[0]
        rest = parameters[len(self.arguments) :]
        by_name = tuple(parameter.name for parameter in parameters[: len(self.arguments)])
        insists = any(
            one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD} for one in rest
        )
        return named if by_name != self.arguments or insists else None


@dataclass(frozen=True, slots=True)
class Uses:
    """A function whose code sets, reads or calls these names: attributes, or what we put in their place."""

    function: str
    names: tuple[str, ...]

    def missing(self) -> str | None:
        """What is not as it should be, or None."""
        try:
            known = set(_names(inspect.unwrap(_find(self.function)).__code__))
        except (ImportError, AttributeError):
            return self.function
        lost = [name for name in self.names if name not in known]
        return f"{', '.join(lost)} in {self.function}" if lost else None


@dataclass(frozen=True, slots=True)
class Has:
    """A class or module with these names."""

    owner: str
    names: tuple[str, ...]

    def missing(self) -> str | None:
        """What is not as it should be, or None."""
        try:
            owner = _find(self.owner)
        except (ImportError, AttributeError):
            return self.owner
        lost = [name for name in self.names if not hasattr(owner, name)]
        return f"{', '.join(lost)} in {self.owner}" if lost else None


def _find(path: str) -> Any:
    """The object at ``module:qualified.name`` in aiokafka; the module itself without a name."""
    module, _, name = path.partition(":")
    found = importlib.import_module(f"aiokafka.{module}")
    return attrgetter(name)(found) if name else found


def _names(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        # From Python 3.13 on, one instruction may load two.
        values = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        yield from (value for value in values if isinstance(value, str))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@dataclass(frozen=True, slots=True)
class Workaround:
    """One defect of aiokafka, and what the workaround needs."""

    name: str
    defect: str
    upstream: str
    """The issue; where nobody has filed one, how to reproduce it."""
    tests: tuple[str, ...]
    """Of these, one or more fail without the workaround."""
    parts: tuple[Takes | Uses | Has, ...]


_KINDS: Final = {"takes": Takes, "uses": Uses, "has": Has}


def _listed() -> Iterator[Workaround]:
    for each in shipped_yaml("consumers.kafka", "workarounds.yaml"):
        parts = [{name: _fixed(value) for name, value in part.items()} for part in each["parts"]]
        made = [of(part.pop(kind), **part) for part in parts for kind, of in _KINDS.items() if kind in part]
        yield Workaround(**each | {"tests": tuple(each["tests"]), "parts": tuple(made)})


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


WORKAROUNDS: Final = tuple(_listed())
"""All of them, as ``workarounds.yaml`` lists them."""


def missing_parts() -> list[str]:
    """The private parts that the installed aiokafka lacks, each with the workaround that relies on it."""
    return [
        f"{lost} ({each.name})" for each in WORKAROUNDS for part in each.parts if (lost := part.missing())
    ]


@functools.cache
def check_client_library() -> None:
    """Make sure that the workarounds fit the installed aiokafka, and apply them.

    Affects every client of this process; repeating it changes nothing. Raises ConfigError that names the
    release and what it lacks. Logs a warning for a release that has not been tested.
    """
    version = aiokafka.__version__
    lost = missing_parts()
    if lost:
        raise ConfigError(
            f"aiokafka {version} lacks what the guard relies on: {'; '.join(lost)}. "
            f"Install a release that it was checked with: pip install 'aiokafka=={CHECKED_WITH[-1]}'"
        )
    if version not in CHECKED_WITH:
        _log.warning(
            "guard.aiokafka_unchecked",
            installed=version,
            checked_with=", ".join(CHECKED_WITH),
            effect="all private parts that the guard needs are there",
        )
    notice_closed_transports()
    read_every_batch()


# ------------------------------------------------------------------------------------ closed transports

_WRITING: Final = ("send", "_send_sasl_token")
_Write = Callable[..., Awaitable[Any]]


def notice_closed_transports() -> None:
    """Applies to all connections of this process; repeating it changes nothing."""
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


# --------------------------------------------------------------------- header names, empty control batches

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
"""Where a batch says how many bytes follow its length."""
_BEFORE_LENGTH_ENDS: Final = _LENGTH_AT + _LENGTH.size
_COUNT_AT: Final = 57
"""Where it says how many records it has."""


def read_every_batch() -> None:
    """Let all consumers of this process read any header name, and skip control batches that were emptied;
    repeating it changes nothing."""
    module: Any = fetcher
    module.MemoryRecords = TolerantRecords


class TolerantRecords:
    """Replaces ``MemoryRecords``: the fetched batches of a partition."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._end = 0
        self._records = MemoryRecords(data)
        self.size_in_bytes: Callable[[], int] = self._records.size_in_bytes
        self.has_next: Callable[[], bool] = self._records.has_next

    def next_batch(self) -> TolerantBatch:
        """See ``MemoryRecords.next_batch``."""
        batch = self._records.next_batch()
        begin = self._end
        self._end += _BEFORE_LENGTH_ENDS + _LENGTH.unpack_from(self._data, begin + _LENGTH_AT)[0]
        return TolerantBatch(batch, self._data[begin : self._end])


class TolerantBatch:
    """The library's batch; if it can't decode a name, iteration continues with escaped names, and without a
    marker it is no control batch."""

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    @property
    def is_control_batch(self) -> bool:
        """Not one whose marker was cleaned away: the library insists on finding it."""
        control: bool = self._batch.is_control_batch
        return control and _LENGTH.unpack_from(self._data, _COUNT_AT)[0] > 0

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except (UnicodeDecodeError, CorruptRecordException) as error:
            # The second is what the library's decoder in Python makes of the first.
            if not isinstance(error, UnicodeDecodeError) and not isinstance(
                error.__cause__, UnicodeDecodeError
            ):
                raise
        else:
            return
        # From its beginning: the library skips records before the offset that it has reached.
        yield from decoded(_DefaultRecordBatchPy(self._data))


def decoded(batch: _DefaultRecordBatchPy) -> Iterator[DefaultRecordProtocol]:
    """All records of a batch of format 2, with escapes in names that are not UTF-8.

    The fields are those of https://kafka.apache.org/documentation/#record. Raises CorruptRecordException.
    """
    batch._maybe_uncompress()
    fields = _Fields(batch._buffer, batch._pos)
    for _ in range(batch._num_records):
        length = fields.number()
        end = fields.at + length
        fields.at += 1  # attributes, still unused
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
    """Reads the fields of records from ``data``, from ``at`` on."""

    def __init__(self, data: bytearray, at: int) -> None:
        self._data = data
        self.at = at

    def number(self) -> int:
        if self.at >= len(self._data):  # the library's function would read beyond it
            raise CorruptRecordException("a record ends early")
        try:
            value, self.at = decode_varint(self._data, self.at)
        except (ValueError, IndexError) as error:
            raise CorruptRecordException("a record has a length that is none") from error
        return value

    def sized(self) -> bytes | None:
        """Bytes after their length; None if that is negative."""
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


# --------------------------------------------------------------------------- reasons of a failed start


class NotLoggedIn(KafkaError):
    """aiokafka considers the login successful and the broker doesn't."""


def connection(host: str, port: int, **options: Any) -> AIOKafkaConnection:
    """A connection to one broker, not opened yet: ``connect`` logs in and raises what went wrong."""
    return AIOKafkaConnection(host, port, **options)


async def confirm_token(connection: AIOKafkaConnection) -> None:
    """Raise NotLoggedIn if the broker did not accept the token of a connection that claims to be logged in.

    The broker answers a refused token with the reason in place of the usual empty answer (RFC 7628); the next
    request is refused or finds the connection closed.
    """
    try:
        answer = await connection.send(ApiVersionRequest())
    except KafkaConnectionError as error:
        raise NotLoggedIn("the broker hung up after the login") from error
    if answer.error_code == IllegalSaslStateError.errno:
        raise NotLoggedIn("the broker still waits for a login")


# -------------------------------------------------------------------------------------------- membership

_FENCED_INSTANCE_ID: Final = 82
_JOIN_LATER_S: Final = 1.0


class Membership:
    """A started consumer's membership in its group: sees what its coordinator sends, and asks it."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        group_id: str,
        group_instance_id: str | None,
        session_timeout_ms: int,
        failed: Callable[[TransportUnavailable], None],
    ) -> None:
        """``failed`` is called when another member has taken over the instance id."""
        coordinator: Any = consumer._coordinator
        self._coordinator = coordinator
        self._group_id = group_id
        self._instance_id = group_instance_id
        self._session_timeout_s = session_timeout_ms / 1000
        self._failed = failed
        self._send = coordinator._send_req
        self._heard_at = float("-inf")
        self._leaving = False
        self._joining = False
        coordinator._send_req = self._send_req

    def joined(self) -> None:
        """The broker has just assigned partitions to us: from now on send heartbeats, even in a callback."""
        self._heard_at = time.monotonic()
        self._coordinator._start_heartbeat_task()

    def join_no_more(self) -> None:
        """Until the end."""
        self._leaving = True

    async def leave(self) -> None:
        """Leave the group, also as a static member: the others get its partitions at once, and not when its
        session times out. Has no time limit. Raises KafkaError.
        """
        coordinator = self._coordinator
        if self._instance_id is not None and coordinator.generation > 0 and not self._joining:
            await self._send(LeaveGroupRequest(self._group_id, coordinator.member_id))

    def rebalance_due(self) -> asyncio.Future[None]:
        """Done when this member has learned that it has to join again."""
        due: asyncio.Future[None] = self._coordinator._rejoin_needed_fut
        return due

    async def check(self) -> None:
        """Raise PartitionLost if a rebalance is due, TransportError if the coordinator does not answer.

        Has no time limit.
        """
        await self._coordinator.ensure_coordinator_known()
        alive = await self._coordinator._do_heartbeat()
        if self.rebalance_due().done():
            raise PartitionLost("the group is being rebalanced")
        if not alive:
            raise TransportError(f"the coordinator of group {self._group_id} does not answer")

    async def _send_req(self, request: Any) -> Any:
        if self._leaving and isinstance(request, JoinGroupRequest):
            raise CoordinatorLoadInProgressError  # the library tries later, and sees that it should close
        sent_at = time.monotonic()
        join = isinstance(request, JoinGroupRequest)
        response = await (self._join(request) if join else self._send(request))
        if self._instance_id is not None:
            self._look_at(request, getattr(response, "error_code", NoError.errno), sent_at)
        return response

    async def _join(self, request: JoinGroupRequest) -> Any:
        """The coordinator answers when all have joined, or those who have not are expelled. What takes longer
        is not answered any more, and what is asked on the same connection waits for it.
        """
        coordinator = self._coordinator
        node = coordinator.coordinator_id
        self._joining = True
        try:
            async with asyncio.timeout(self._session_timeout_s + _JOIN_LATER_S):
                return await self._send(request)
        except TimeoutError as error:
            coordinator.coordinator_dead()
            waiting = coordinator._client._conns.get((node, ConnectionGroup.COORDINATION))
            if waiting is not None:
                waiting.close(reason=CloseReason.CONNECTION_TIMEOUT)
            raise RequestTimedOutError(f"no answer to a join of group {self._group_id}") from error
        finally:
            self._joining = False

    def _look_at(self, request: Any, code: int, sent_at: float) -> None:
        heartbeat = isinstance(request, HeartbeatRequest)
        if heartbeat and code in {NoError.errno, RebalanceInProgressError.errno}:
            self._heard_at = sent_at
        # After a long silence an unknown member is nothing more than an expired session.
        lately = time.monotonic() - self._heard_at < self._session_timeout_s / 2
        replaced = heartbeat and code == UnknownMemberIdError.errno and lately
        if (replaced or code == _FENCED_INSTANCE_ID) and not self._leaving:
            self._leaving = True
            self._failed(
                TransportUnavailable(
                    f"another member of group {self._group_id} has joined with the same "
                    f"group_instance_id {self._instance_id} and taken this one's place; "
                    "give every guard an id of its own"
                )
            )


# --------------------------------------------------------------------------------- closing without a broker

_STOP_S: Final = 2.0


async def ask_for_metadata(consumer: AIOKafkaConsumer) -> bool:
    """Have the consumer ask for its topics now, and act on changes; did any broker answer?"""
    return bool(await consumer._client.force_metadata_update())


async def hang_up(consumer: AIOKafkaConsumer) -> None:
    """Close the connections of a consumer whose ``stop`` was interrupted."""
    await consumer._client.close()


class Requests:
    """The tasks in which a producer's sender makes requests; it keeps no list of them outside its loop."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        sender: Any = producer._sender
        self._send = sender._send_produce_req
        self._ask = sender._maybe_do_transactional_request
        sender._send_produce_req = self._sending
        sender._maybe_do_transactional_request = self._asking

    async def _sending(self, node_id: Any, batches: Any) -> None:
        self._note(asyncio.current_task())
        await self._send(node_id, batches)

    def _asking(self) -> asyncio.Task[Any] | None:
        task: asyncio.Task[Any] | None = self._ask()
        self._note(task)
        return task

    def _note(self, task: asyncio.Task[Any] | None) -> None:
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """Cancel all, and wait until they are gone."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def close_producer(producer: AIOKafkaProducer, requests: Requests) -> None:
    """Close, leaving no task and no socket; safe after a failed start. Raises only errors other than
    KafkaError.

    Pending batches have failed or are given up: they get a moment, and are then ended, which the library
    can't do by itself (it would wait for its delivery timeout, and leave its tasks behind if interrupted).
    """
    stopping = asyncio.ensure_future(producer.stop())
    try:
        await asyncio.wait([stopping], timeout=_STOP_S)
    finally:
        if not stopping.done():
            producer._message_accumulator.fail_all(ProducerClosed())
            if producer._sender.sender_task is not None:
                producer._sender.sender_task.cancel()
        await asyncio.wait([stopping])
        if stopping.cancelled() or stopping.exception() is not None:
            # If interrupted it leaves its connections open and its tasks running.
            await producer.client.close()
            await requests.end()
        _look_at_pending(producer)
    if not stopping.cancelled():
        error = stopping.exception()
        if error is not None and not isinstance(error, (KafkaError, OSError)):
            raise error


def _look_at_pending(producer: AIOKafkaProducer) -> None:
    """Keep batches that were given up from being logged as exceptions never retrieved."""
    for batches in producer._message_accumulator._batches.values():
        for batch in batches:
            batch.future.add_done_callback(look_at)
            batch._drain_waiter.add_done_callback(look_at)
    transactions = producer._txn_manager
    if transactions is not None and transactions._transaction_waiter is not None:
        transactions._transaction_waiter.add_done_callback(look_at)


def look_at(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception."""
    if not future.cancelled():
        future.exception()


# ------------------------------------------------------------------------------------ errors of a transaction


def expect_fatal_errors(producer: AIOKafkaProducer) -> None:
    """Give a started transactional producer the attribute that a fatal error before its first transaction
    looks for.
    """
    waiter: asyncio.Future[None] = create_future()
    waiter.set_result(None)
    producer._txn_manager._transaction_waiter = waiter


async def begin_transaction(producer: AIOKafkaProducer) -> None:
    """Begin; later calls report how the transaction ends, so it need not be awaited."""
    await producer.begin_transaction()
    ending: asyncio.Future[None] = producer._txn_manager.wait_for_transaction_end()
    ending.add_done_callback(look_at)


def in_transaction(producer: AIOKafkaProducer) -> bool:
    """Whether a transaction is open that can be aborted."""
    return producer._txn_manager.state in {TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR}


def fatal_error(producer: AIOKafkaProducer) -> BaseException | None:
    """Why the producer gave up, if it has: later calls only find that it has."""
    sender = producer._sender.sender_task
    if sender is None or not sender.done() or sender.cancelled():
        return None
    error: BaseException | None = sender.exception()
    return error
