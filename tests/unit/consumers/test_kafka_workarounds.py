"""aiokafka is held to the release whose private parts are known, and few modules touch those.

What the workarounds do is shown here and by test_kafka_headers, and over a broker by the suites of
tests/integration.
"""

from __future__ import annotations

import ast
import asyncio
import re
import socket
import tomllib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import aiokafka
import pytest
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import (
    CoordinatorLoadInProgressError,
    KafkaConnectionError,
    ProducerFenced,
    RequestTimedOutError,
)
from aiokafka.producer.transaction_manager import TransactionManager, TransactionState
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest
from aiokafka.protocol.metadata import MetadataRequest
from packaging.requirements import Requirement

from consumers.kafka import TransactionalProducer, workarounds
from consumers.kafka.workarounds import (
    CHECKED_WITH,
    Membership,
    Requests,
    close_producer,
    expect_fatal_errors,
    fatal_error,
    in_transaction,
    patch_client_library,
)
from consumers.settings import KafkaSettings
from consumers.transport import Commit, Partition
from guardrail.errors import StepFailed

ROOT = Path(__file__).parents[3]
TOUCHING = {"consumers/kafka/workarounds.py", "guardrail/client/presence.py"}
PUBLIC = {
    "aiokafka",
    "aiokafka.abc",
    "aiokafka.admin",
    "aiokafka.admin.config_resource",  # what the public describe_configs takes
    "aiokafka.coordinator.assignors.range",
    "aiokafka.errors",
    "aiokafka.structs",
}


def _private_parts(source: str) -> Iterator[str]:
    """Imports from aiokafka's inner modules, and underscored names, as attributes or in strings, that the
    module does not set itself."""
    tree = ast.parse(source)
    own = {"_asdict", "_fields", "_replace"}  # of named tuples, and public
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                own.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("aiokafka"):
                if module not in PUBLIC or any(alias.name.startswith("_") for alias in names):
                    yield f"from {module}"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith("aiokafka") and alias.name not in PUBLIC:
                        yield f"import {alias.name}"
            case ast.Attribute(attr=name) if re.match(r"_[^_]", name) and name not in own:
                yield f".{name}"
            case ast.Constant(value=str(name)) if re.fullmatch(r"_[a-z][a-z_]+", name) and name not in own:
                yield repr(name)


def test_private_parts_are_touched_in_few_modules() -> None:
    files = [*(ROOT / "consumers").rglob("*.py"), *(ROOT / "guardrail").rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    found = {path: list(_private_parts(text)) for path, text in texts.items() if "aiokafka" in text}
    assert {path: parts for path, parts in found.items() if parts and path not in TOUCHING} == {}
    assert all(found[path] for path in TOUCHING)


def test_the_package_asks_for_releases_that_were_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = next(
        one for one in map(Requirement, project["dependencies"]) if one.name == "aiokafka"
    ).specifier
    assert all(version in allowed for version in CHECKED_WITH)
    assert aiokafka.__version__ in CHECKED_WITH, "run all suites with it, then add it"
    minor = CHECKED_WITH[-1].rpartition(".")[0]
    assert not allowed.contains(f"{minor.partition('.')[0]}.{int(minor.partition('.')[2]) + 1}.0")


def test_a_release_that_nobody_has_checked_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patch_client_library.__wrapped__()
    assert not caplog.records
    monkeypatch.setattr(aiokafka, "__version__", "0.14.99")
    patch_client_library.__wrapped__()
    (record,) = caplog.records
    assert (
        f"guard.aiokafka_unchecked installed='0.14.99' checked_with='{CHECKED_WITH[0]}" in record.getMessage()
    )


# --------------------------------------------------------------------------------- closing at a bad moment


async def test_a_producer_ends_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's sender, cancelled twice, ends the one that it awaits and forgets the others."""
    monkeypatch.setattr(workarounds, "_STOP_S", 0.01)
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    sender: Any = producer._sender
    to_send: list[dict[int, Any]] = [{node: {} for node in range(5)}]
    asked: asyncio.Queue[int] = asyncio.Queue()

    async def unanswered(node: int, batches: object) -> None:
        asked.put_nowait(node)
        await asyncio.Event().wait()

    def drain(**_: object) -> tuple[dict[int, Any], bool]:
        return (to_send.pop() if to_send else {}), False

    sender._send_produce_req = unanswered
    monkeypatch.setattr(producer._message_accumulator, "drain_by_nodes", drain)
    requests = Requests(producer)
    sender._sender_task = asyncio.create_task(sender._sender_routine())
    assert [await asked.get() for _ in range(5)] == list(range(5))

    await close_producer(producer, requests)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_join_without_an_answer_is_given_up() -> None:
    """Else the group would stand still for as long as any request may take."""
    waiting, dead = Mock(), Mock()

    class Coordinator:
        coordinator_id = 7
        coordinator_dead = dead
        _client = SimpleNamespace(_conns={(7, ConnectionGroup.COORDINATION): waiting})

        async def _send_req(self, request: object) -> object:
            if isinstance(request, JoinGroupRequest):
                await asyncio.Event().wait()
            return SimpleNamespace(error_code=0)

    coordinator = Coordinator()
    consumer = cast("AIOKafkaConsumer", SimpleNamespace(_coordinator=coordinator))
    Membership(consumer, "group", None, -900, lambda _: None)  # 100 ms with the margin
    with pytest.raises(RequestTimedOutError, match="no answer to a join of group group"):
        await coordinator._send_req(JoinGroupRequest("group", 1, 1, "", "", "consumer", []))
    dead.assert_called_once_with()
    waiting.close.assert_called_once_with(reason=CloseReason.CONNECTION_TIMEOUT)


async def test_a_member_that_leaves_joins_no_more() -> None:
    """Else everybody in the group would wait for it."""
    sent: list[object] = []

    class Coordinator:
        coordinator_id = 7

        async def _send_req(self, request: object) -> object:
            sent.append(request)
            return SimpleNamespace(error_code=0)

    coordinator = Coordinator()
    consumer = cast("AIOKafkaConsumer", SimpleNamespace(_coordinator=coordinator))
    membership = Membership(consumer, "group", None, 30_000, lambda _: None)
    join = JoinGroupRequest("group", 30_000, 30_000, "", "", "consumer", [])
    await coordinator._send_req(join)
    membership.join_no_more()
    with pytest.raises(CoordinatorLoadInProgressError):
        await coordinator._send_req(join)
    goodbye = LeaveGroupRequest("group", "me")
    await coordinator._send_req(goodbye)
    assert sent == [join, goodbye]


# --------------------------------------------------------------------------- transactions without a broker


class Noting(TransactionalProducer):
    """Notes the parts of a step; nothing is sent."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, Partition("in", 0))
        self.parts: list[str] = []

    async def begin(self) -> None:
        self.parts.append("begin")

    async def send(self, *_: object) -> None:
        self.parts.append("records")

    async def settled(self) -> None:
        self.parts.append("acknowledged")

    async def send_offsets(self, *_: object) -> None:
        self.parts.append("position")

    async def commit(self) -> None:
        self.parts.append("commit")


async def test_the_position_follows_the_records_when_they_are_acknowledged() -> None:
    """A failed send does not fail the library's transaction: it would commit without the record."""
    producer = Noting(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    await producer.transact([], [], Commit(1))
    assert producer.parts == ["begin", "records", "acknowledged", "position", "commit"]
    await producer.stop()


async def test_a_fatal_error_before_the_first_transaction_is_told() -> None:
    """The library's own handler would trip over the transaction that is not there."""
    manager = TransactionManager("id", 1000)
    manager.set_pid_and_epoch(1, 0)

    async def fenced() -> None:
        raise ProducerFenced

    async def fail() -> AIOKafkaProducer:
        producer = cast("AIOKafkaProducer", SimpleNamespace(_txn_manager=manager, _sender=SimpleNamespace()))
        sender: Any = producer._sender
        sender.sender_task = asyncio.create_task(fenced())
        await asyncio.wait([sender.sender_task])
        return producer

    producer = await fail()
    with pytest.raises(AttributeError):
        manager.fatal_error(ProducerFenced())
    manager.state = TransactionState.READY
    expect_fatal_errors(producer)
    manager.fatal_error(ProducerFenced())
    manager.wait_for_transaction_end().exception()
    assert isinstance(fatal_error(producer), ProducerFenced)
    assert not in_transaction(producer)


class Stuck(TransactionalProducer):
    """Its step waits for ever, until the deadline fires."""

    async def begin(self) -> None:
        await asyncio.Event().wait()

    @property
    def deadline(self) -> asyncio.Timeout:
        assert self._deadline is not None
        return self._deadline


@pytest.mark.parametrize("fires", [False, True])
async def test_stop_closes_also_when_the_deadline_of_its_step_has_just_fired(fires: bool) -> None:
    producer = Stuck(KafkaSettings(bootstrap_servers="127.0.0.1:1"), Partition("in", 0))
    step = asyncio.ensure_future(producer.transact([], [], Commit(1)))
    await asyncio.sleep(0)
    if fires:
        # In the turn in which stop begins: the step is cancelled by then, and has not heard of it yet.
        producer.deadline.reschedule(0.0)
    stopping = asyncio.ensure_future(producer.stop())
    with pytest.raises(StepFailed, match="was stopped"):
        await step
    await stopping
    assert producer._producer._closed


# ---------------------------------------------------------------------------------- a broker that hangs up

Write = Callable[[AIOKafkaConnection], Awaitable[Any]]


class Connection(AIOKafkaConnection):
    """To a server that says nothing."""

    async def _do_version_lookup(self) -> None:
        self._versions = {MetadataRequest.API_KEY: (0, 1)}


async def meet_a_closed_transport(write: Write) -> None:
    """Write where the transport has just gone, and the library's reader does not know of it yet."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection: Any = Connection(*server.getsockname())  # type: ignore[no-untyped-call]
        await connection.connect()
        try:
            writer = connection._writer
            writer.transport.abort()
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="handler is closed"):
                writer.write(b"the loop's own answer, which the rest is about")
            with pytest.raises(KafkaConnectionError, match=r"broken.*handler is closed"):
                await write(connection)
            assert connection._writer is None, "the connection is not given up"
        finally:
            await connection.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda connection: connection.send(MetadataRequest([])),
        lambda connection: connection._send_sasl_token(b"token"),
    ],
    ids=["request", "login"],
)
def test_a_closed_transport_is_a_broken_connection(write: Write) -> None:
    patch_client_library()  # as before the first client of a process
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(meet_a_closed_transport(write))
