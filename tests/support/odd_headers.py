"""Batches with header names that are not UTF-8, as producers in other languages can write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.producer import message_accumulator
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

Content = tuple[bytes | None, bytes | None, Sequence[tuple[bytes, bytes | None]]]
"""Key, value and headers."""


class RawName(str):
    """A name that the client library's builder in Python writes as the bytes it was made from."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return super().encode(encoding, "surrogateescape")


def _text(headers: Sequence[tuple[bytes, bytes | None]]) -> list[tuple[str, bytes | None]]:
    return [(RawName(name, "utf-8", "surrogateescape"), value) for name, value in headers]


def raw_batch(
    records: Sequence[Content], base_offset: int = 0, *, codec: int = 0, producer_id: int = -1
) -> bytes:
    """One batch as a fetch returns it, a transactional one where ``producer_id`` is given."""
    transactional = int(producer_id >= 0)
    builder = _DefaultRecordBatchBuilderPy(2, codec, transactional, producer_id, 0, 0, 1_000_000)
    for number, (key, value, headers) in enumerate(records):
        builder.append(number, 1_000 + number, key, value, _text(headers))
    # The offset is not part of what the checksum covers: the broker sets it.
    return base_offset.to_bytes(8, "big", signed=True) + bytes(builder.build())[8:]


@contextmanager
def _builder_in_python() -> Iterator[None]:
    module: Any = message_accumulator
    compiled, module.DefaultRecordBatchBuilder = (
        module.DefaultRecordBatchBuilder,
        _DefaultRecordBatchBuilderPy,
    )
    try:
        yield
    finally:
        module.DefaultRecordBatchBuilder = compiled


async def write_raw(
    bootstrap_servers: str, topic: str, records: Sequence[Content], partition: int = 0
) -> None:
    """Write ``records`` to Kafka in one batch."""
    with _builder_in_python():
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers)
        await producer.start()
        try:
            batch = producer.create_batch()
            for key, value, headers in records:
                batch.append(timestamp=None, key=key, value=value, headers=_text(headers))
            await (await producer.send_batch(batch, topic, partition=partition))
        finally:
            await producer.stop()
