"""Kafka as a transport: consumer and producers, one transaction per step, and how a guard connects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from consumers.kafka.client import client_options as client_options
    from consumers.kafka.client import connect_admin as connect_admin
    from consumers.kafka.client import require_topics as require_topics
    from consumers.kafka.producing import KafkaPublisher as KafkaPublisher
    from consumers.kafka.producing import KafkaWriter as KafkaWriter
    from consumers.kafka.producing import TransactionalProducer as TransactionalProducer
    from consumers.kafka.producing import transactional_id as transactional_id
    from consumers.kafka.recovery import Positions as Positions
    from consumers.kafka.recovery import read_state as read_state
    from consumers.kafka.transport import KafkaTransport as KafkaTransport

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
