"""The seam between the client and what carries its records: Kafka, or the memory broker of tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from guardrail.errors import TransportError
from guardrail.events import GROUP_HEADER

Headers = tuple[tuple[str, bytes], ...]


class OutgoingRecord(NamedTuple):
    """An input event to write: its key is the response's id."""

    key: bytes
    value: bytes
    headers: Headers


class DeliveryRecord(NamedTuple):
    """A record of the deliveries, and the group of guards that wrote it, if it says so."""

    key: bytes | None
    value: bytes | None
    group: str | None = None

    @classmethod
    def of(
        cls, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> DeliveryRecord:
        """From a record as Kafka has it."""
        for name, content in headers:
            if name == GROUP_HEADER and content is not None:
                return cls(key, value, content.decode(errors="replace"))
        return cls(key, value)


class ClientTransport(Protocol):
    """Carries a client's records. ``KafkaClientTransport``, and ``guardrail.testing`` for tests.

    Life: ``start`` once, then anything, ``stop`` once, also after a failed ``start``. ``poll`` is never
    called twice at a time and never cancelled: it returns by itself.
    """

    async def start(self) -> None:
        """Connect, and read from the present end of the deliveries on. Raises TransportUnavailable."""
        ...

    async def stop(self, within_s: float) -> None:
        """Close. What takes longer is given up."""
        ...

    def mint(self) -> str:
        """A new response id whose deliveries this client reads."""
        ...

    async def open(self, response_id: str) -> None:
        """See to it that all deliveries of a response that is to begin are read. Raises TransportError."""
        ...

    def close(self, response_id: str) -> None:
        """Nothing more is expected for this response."""
        ...

    def lane(self, response_id: str) -> int:
        """Responses of different lanes are written side by side, those of one lane in turn."""
        ...

    async def publish(self, records: Sequence[OutgoingRecord]) -> Sequence[TransportError | None]:
        """Write records, in order for each key; of each what went wrong, None once it is acknowledged."""
        ...

    async def poll(self, timeout_ms: int) -> Sequence[DeliveryRecord]:
        """Records of the deliveries, in order for each key; empty after ``timeout_ms``.

        Raises TransportError where something may be missed, or can't be read; it may be called again.
        """
        ...
