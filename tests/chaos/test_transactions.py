"""The nemesis reads from the broker which transactions are under way; here one whose state is known."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.chaos.transactions import State, settled, states
from tests.support.kafka_broker import KafkaBroker

ID = "the only one"


@pytest.mark.kafka
async def test_states_of_transactions_are_read_from_the_broker(own_kafka: KafkaBroker) -> None:
    own_kafka.start()
    bootstrap = own_kafka.bootstrap_servers
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic("some", 1, 1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=ID)
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_and_wait("some", b"1")
        assert await states(bootstrap) == {ID: State.ONGOING}
        assert await settled(bootstrap, 0), "nothing is decided yet"
        await producer.commit_transaction()
        assert await settled(bootstrap, 30)
        assert await states(bootstrap) == {ID: State.COMPLETE_COMMIT}
        await producer.begin_transaction()
        await producer.send_and_wait("some", b"2")
        await producer.abort_transaction()
        assert await settled(bootstrap, 30)
        assert await states(bootstrap) == {ID: State.COMPLETE_ABORT}
    finally:
        await producer.stop()
