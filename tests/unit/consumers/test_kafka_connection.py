"""A broker that hangs up is a broken connection under uvloop too."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from consumers.kafka.workarounds import patch_client_library

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
