"""What aiokafka does with a password and a record, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.admin import SaslAuthenticateRequest


async def send_secrets() -> None:
    """Send both by aiokafka's own code, up to the wire. Each contains the word SECRET."""
    connection: Any = AIOKafkaConnection("localhost", 9092)
    connection._writer = SimpleNamespace(write=lambda _: None, drain=lambda: None)
    connection._versions = {SaslAuthenticateRequest.API_KEY: (0, 1)}
    connection.send(SaslAuthenticateRequest(b"\0user\0SECRET"), expect_response=False)
    connection._writer = None
    producer: Any = AIOKafkaProducer(bootstrap_servers="localhost:9092")

    async def nothing(*_: object, **__: object) -> None: ...

    producer.client._wait_on_metadata = nothing
    producer._message_accumulator.add_message = nothing
    producer._partition = lambda *_: 0
    await producer.send("rag.responses", b"SECRET")
    producer._closed = True
