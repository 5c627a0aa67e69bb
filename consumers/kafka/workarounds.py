"""What touches private parts of aiokafka, as ``guardrail.client.presence`` does.

Each section begins with the defect that it works around and the upstream issue, or how to reproduce it where
nobody has filed one. aiokafka may rename a private part in any release, so pyproject.toml holds it to
one minor release, and continuous integration runs the tests that show each effect with the newest of that
(``scripts/extras.py``). A release that they have not run with logs a warning.

Unless a section says so, nothing here changes what aiokafka requests from a broker or how it treats the
responses.
"""

from __future__ import annotations

import asyncio
import functools
import struct
import time
from collections.abc import Awaitable, Callable, Iterator
from io import BytesIO
from typing import Any, Final, NamedTuple

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.consumer import fetcher
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.errors import (
    BrokerResponseError,
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
    for_code,
)
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.protocol.admin import ApiVersionRequest, DescribeGroupsRequest_v1
from aiokafka.protocol.api import Request, RequestStruct, Response, ResponseHeader_v0
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.protocol.types import CompactArray, CompactString, Int16, Int32, Schema, TaggedFields
from aiokafka.record._protocols import DefaultRecordProtocol
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.record.util import decode_varint_py
from aiokafka.util import create_future

from guardrail.client.library import look_at
from guardrail.errors import PartitionLost, TransportError, TransportUnavailable
from guardrail.log_events import EventLog

CHECKED_WITH: Final = ("0.14.0",)
"""The releases that the tests of all sections ran with."""

_log = EventLog(__name__)


@functools.cache
def patch_client_library() -> None:
    """Apply what affects every client of this process, once; warns of a release that has not been tested."""
    if aiokafka.__version__ not in CHECKED_WITH:
        _log.warning(
            "guard.aiokafka_unchecked",
            installed=aiokafka.__version__,
            checked_with=", ".join(CHECKED_WITH),
            effect="what the guard works around in it may be done in vain",
        )
    _notice_closed_transports()
    _read_every_batch()


# ------------------------------------------------------------------------------------ closed transports
#
# A write to a connection whose transport is closed already ends in a RuntimeError under uvloop. aiokafka
# expects an OSError, so the error comes out of a poll and would end the guard because a broker hung up.
# https://github.com/aio-libs/aiokafka/issues/1038

_WRITING: Final = ("send", "_send_sasl_token")
_Write = Callable[..., Awaitable[Any]]


def _notice_closed_transports() -> None:
    for name in _WRITING:
        setattr(AIOKafkaConnection, name, _noticing(getattr(AIOKafkaConnection, name)))


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
#
# Kafka takes header names that are not UTF-8; aiokafka's decoder raises out of every poll on such a record,
# for ever. Here the batch is read again with escapes such as \xff in its names. Nothing else of a record is
# text, and what aiokafka can read stays with its own decoder. Not filed: write a record whose header name
# is the byte ff with a Java producer, and poll.
#
# Kafka keeps the last batch of a producer id when it cleans a compacted topic, and of an aborted or
# committed transaction that is a control batch without records. aiokafka raises on it, for ever, so that no
# guard can take the partition of stored sessions over. Kafka's own consumer skips it (KAFKA-7467), and so
# does this one.
# Not filed: the text of an issue, with a reproduction, is in docs/aiokafka-empty-control-batches.md.

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
"""Where a batch says how many bytes follow its length."""
_BEFORE_LENGTH_ENDS: Final = _LENGTH_AT + _LENGTH.size
_COUNT_AT: Final = 57
"""Where it says how many records it has."""


def _read_every_batch() -> None:
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
    marker it is not a control batch."""

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


class _Escaping(bytearray):
    """Bytes of which each part is text, with escapes in place of what is not UTF-8."""

    def __getitem__(self, part: Any) -> Any:
        found = super().__getitem__(part)
        return _Escaping(found) if isinstance(part, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, errors)


def decoded(batch: _DefaultRecordBatchPy) -> Iterator[DefaultRecordProtocol]:
    """All records of a batch of format 2, with escapes in odd names. Raises CorruptRecordException."""
    batch._maybe_uncompress()
    batch._buffer = _Escaping(batch._buffer)
    for _ in range(batch._num_records):
        try:
            # Not the compiled one, which would read beyond the end of the buffer.
            record = batch._read_msg(decode_varint_py)
        except (ValueError, IndexError) as error:
            raise CorruptRecordException("a record has an invalid length") from error
        if batch._pos > len(batch._buffer):
            raise CorruptRecordException("a record ends early")
        yield record


# --------------------------------------------------------------------------- reasons of a failed start
#
# A client that can't start says 'Unable to bootstrap', whether the port, the password or the certificate is
# wrong, so one connection is made first, whose errors tell; and a broker's refusal of a token is taken for
# a login.
# Not filed: start a producer with a wrong password, or with an OAUTHBEARER token that has expired.


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
#
# A second member with the same group_instance_id replaces the first, which the broker then no longer knows.
# aiokafka joins again and replaces the second, for ever; the broker's code for it (82) is not in its
# tables.
# https://github.com/aio-libs/aiokafka/issues/1186
#
# None of these is filed:
# - A consumer with a group_instance_id never leaves its group, so its partitions stand still until its
#   session has timed out, also after a planned stop; Kafka removes a static member that asks for it. Stop
#   one of two static members.
# - After a broker was away for longer than sessions last, a join may get no answer, and the consumer waits
#   for it for request_timeout_ms (30 s), with all its partitions. Here it waits for as long as the group
#   may take. Kill the only broker of two consumers, start it a minute later, and try again some times.
# - Told to close while a rebalance is under way, aiokafka joins first: everybody waits for a member that
#   leaves. Stop one of two consumers while the other's on_partitions_revoked is still running.
# - No heartbeat is sent while on_partitions_assigned runs, so restoring long state there costs the
#   membership, and nothing tells it that the next rebalance is due. Sleep for longer than
#   session_timeout_ms in there.
# - A transactional commit carries no generation (KIP-447 is missing), so a member that was frozen and has
#   lost its partition must learn it before it fences its successor. Freeze a consumer for longer than
#   session_timeout_ms, and ask it whether it holds a partition.

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
        """Raise PartitionLost if a rebalance is due, TransportError without an answer. Has no time limit."""
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
#
# stop() of a producer waits for its pending records for as long as no broker answers; interrupted, it leaves
# connections open and tasks running. A consumer that is interrupted leaves connections open.
# https://github.com/aio-libs/aiokafka/issues/1101, https://github.com/aio-libs/aiokafka/issues/1039

_STOP_S: Final = 2.0


async def ask_for_metadata(consumer: AIOKafkaConsumer) -> bool:
    """Have the consumer ask for its topics now, and act on changes; did any broker answer?

    By itself it notices a topic that is deleted, and made again, when the metadata expire, after five
    minutes, and tells that no broker answers in lines of which each is of one request. Not filed.
    """
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


# ------------------------------------------------------------------------------------ errors of a transaction
#
# A fatal error before the first transaction trips over a future that is not there (AttributeError). After
# one, every call ends in an AssertionError; what went wrong is known to the sender's task alone. A
# transaction's end that nobody awaits is logged as an exception never retrieved.
# Not filed: start a second producer with the same transactional id, then begin on the first.


def expect_fatal_errors(producer: AIOKafkaProducer) -> None:
    """Give a started producer the attribute that a fatal error before its first transaction looks for."""
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


# ------------------------------------------------------------------------- what the admin client doesn't ask
#
# It has no requests that show, without leaving a record, whether a user may read a topic, join a group or
# write in a transaction; makes topics that it is asked for by name where the broker does; and asks for no
# answer that tells the broker's release. Its describe_consumer_groups fails with two groups or more.
# Not filed.

_BEYOND_THE_END: Final = 2**62
_SUPPORTED_FEATURES: Final = 0
_NAME: Final[Any] = ("name", CompactString("utf-8"))
_VERSIONS: Final[Any] = (("min", Int16), ("max", Int16), ("tags", TaggedFields))
_FEATURES: Final[Any] = CompactArray(_NAME, *_VERSIONS)
_TIMEOUT_MS: Final = 1000
ErrorKind = type[BrokerResponseError | NoError]


class _FeaturesResponse(Response):
    API_KEY = 18
    API_VERSION = 3
    SCHEMA = Schema(
        ("error_code", Int16),
        ("api_versions", CompactArray(("api_key", Int16), *_VERSIONS)),
        ("throttle_time_ms", Int32),
        ("tags", TaggedFields),
    )


class _FeaturesQuestion(RequestStruct):
    API_KEY = 18
    API_VERSION = 3
    RESPONSE_TYPE = _FeaturesResponse
    FLEXIBLE_VERSION = True
    SCHEMA = Schema(_NAME, ("version", CompactString("utf-8")), ("tags", TaggedFields))

    def parse_response_header(self, read_buffer: BytesIO | bytes) -> ResponseHeader_v0:
        """Of this answer alone the header has no tags, so that any client can read it."""
        header: ResponseHeader_v0 = ResponseHeader_v0.decode(read_buffer)
        return header


class _FeaturesRequest(Request[_FeaturesQuestion]):
    API_KEY = 18

    def build(self, request_struct_class: type[_FeaturesQuestion]) -> _FeaturesQuestion:
        return request_struct_class("guardrail", "1", {})


class _GroupsRequest(Request[DescribeGroupsRequest_v1]):
    """The library reads answers of version 3 as if they were of version 2, and fails."""

    API_KEY = 15

    def __init__(self, groups: list[str]) -> None:
        self._groups = groups

    def build(self, request_struct_class: type[DescribeGroupsRequest_v1]) -> DescribeGroupsRequest_v1:
        return request_struct_class(self._groups)


class Subscription(NamedTuple):
    """What a member of a group has told its coordinator."""

    topics: tuple[str, ...]
    user_data: bytes


async def subscriptions(
    admin: AIOKafkaAdminClient, node: int, groups: list[str]
) -> dict[str, list[Subscription]]:
    """The subscriptions of the members of groups whose coordinator is ``node``: none while a group
    rebalances, and without the groups that this user may not describe. Raises KafkaError.
    """
    answer: Any = await admin._client.send(node, _GroupsRequest(groups))
    found: dict[str, list[Subscription]] = {}
    for code, name, _state, _type, _protocol, members in answer.groups:
        if for_code(code) is NoError:
            found[name] = [
                told
                for _member, _client, _host, metadata, _assignment in members
                if (told := _subscription(metadata)) is not None
            ]
    return found


def _subscription(metadata: bytes) -> Subscription | None:
    try:
        decoded = ConsumerProtocolMemberMetadata.decode(metadata)
    except ValueError:
        return None  # by a client that is not a consumer, or not known yet
    return Subscription(tuple(decoded.subscription or ()), decoded.user_data or b"")


class Asker:
    """Asks brokers what the admin client doesn't, and writes to no topic. Its calls raise KafkaError and
    TimeoutError."""

    def __init__(self, options: dict[str, Any]) -> None:
        """``options`` are those of an admin client."""
        self._client = AIOKafkaClient(**options)

    async def start(self) -> None:
        """Connect."""
        await self._client.bootstrap()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def _ask(self, request: Any, node: int | None = None) -> Any:
        return await self._client.send(self._client.get_random_node() if node is None else node, request)

    async def metadata(self, topics: list[str]) -> dict[str, Any]:
        """Brokers, and these topics with their errors; none of them is made by that."""
        answer = await self._ask(MetadataRequest(topics, allow_auto_topic_creation=False))
        told: dict[str, Any] = answer.to_object()
        return told

    async def metadata_version(self) -> int | None:
        """The highest that a broker can hold; None where it doesn't tell, as before Kafka 3.3."""
        try:
            answer = await self._ask(_FeaturesRequest())
        except NotImplementedError:  # before 2.4
            return None
        features: Any = _FEATURES.decode(BytesIO(answer.tags.get(_SUPPORTED_FEATURES, b"\x01")))
        return next((highest for name, _, highest, _ in features if name == "metadata.version"), None)

    async def fetch_nothing(self, topic: str, leader: int | None) -> ErrorKind:
        """What reading from beyond the end of the first partition is answered with: an error in any case."""
        place = [(topic, [(0, _BEYOND_THE_END, 1)])]
        answer = await self._ask(FetchRequest(0, 0, 1, 0, place), leader)
        return _only_error(answer.topics)

    async def group_coordinator(self, group: str) -> int:
        """The node to ask about a group."""
        node: int = await self._client.coordinator_lookup(CoordinationType.GROUP, group)
        return node

    async def transaction_coordinator(self, transactional_id: str) -> int:
        """The node to ask about a transactional id."""
        node: int = await self._client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
        return node

    async def heartbeat_of_nobody(self, group: str, node: int) -> ErrorKind:
        """What a heartbeat of no member is answered with: an error in any case."""
        return for_code((await self._ask(HeartbeatRequest(group, -1, ""), node)).error_code)

    async def write_nothing(self, topic: str) -> ErrorKind:
        """What a write without records is answered with: an error in any case, first that of a right that
        lacks. It leaves no trace in the topic, where an aborted transaction leaves a marker."""
        answer = await self._ask(ProduceRequest(None, -1, _TIMEOUT_MS, [(topic, [(0, b"")])]))
        return _only_error(answer.topics)

    async def producer(self, transactional_id: str, timeout_ms: int, node: int) -> ErrorKind:
        """What a producer of transactions with this id is answered with; it begins none."""
        answer = await self._ask(InitProducerIdRequest(transactional_id, timeout_ms), node)
        return for_code(answer.error_code)


def _only_error(topics: Any) -> ErrorKind:
    [error] = [for_code(partition[1]) for _topic, partitions in topics for partition in partitions]
    return error
