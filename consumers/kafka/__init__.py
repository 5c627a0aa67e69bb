"""Kafka as a transport: consumer and producers, one transaction per step, and how a guard connects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from consumers.kafka.client import client_options, connect_admin, require_topics
    from consumers.kafka.examiner import Examiner, Right, examining
    from consumers.kafka.producing import KafkaWriter, TransactionalProducer, transactional_id
    from consumers.kafka.recovery import Positions, read_state
    from consumers.kafka.transport import KafkaTransport

__all__ = [
    "Examiner",
    "KafkaTransport",
    "KafkaWriter",
    "Positions",
    "Right",
    "TransactionalProducer",
    "client_options",
    "connect_admin",
    "examining",
    "read_state",
    "require_topics",
    "transactional_id",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "consumers.kafka.client": ("client_options", "connect_admin", "require_topics"),
            "consumers.kafka.examiner": ("Examiner", "Right", "examining"),
            "consumers.kafka.producing": ("KafkaWriter", "TransactionalProducer", "transactional_id"),
            "consumers.kafka.recovery": ("Positions", "read_state"),
            "consumers.kafka.transport": ("KafkaTransport",),
        },
    )
