"""A chat service in front of the guard: writes an answer to Kafka token by token, shows what is released.

    guardrail topics create --bootstrap-servers localhost:9092 --partitions 6 --replication-factor 1
    guardrail run --bootstrap-servers localhost:9092 --group-id guardrail &
    python examples/chat_service.py --bootstrap-servers localhost:9092

The second answer gets a detail wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import uuid
from contextlib import AsyncExitStack

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

CONNECT_S = 10
ANSWER_S = 60
CONTEXT = (
    "The basic plan costs $49 a month and can be cancelled at the end of any month. "
    "Refunds are paid within 14 days of the cancellation."
)
ANSWERS = (
    "The basic plan costs $49 a month. Refunds are paid within 14 days of the cancellation.",
    "The basic plan costs $49 a month. Refunds are paid within 30 days of the cancellation.",
)


class Unavailable(Exception):
    """Why nothing can be shown, with the remedy."""


async def write(producer: AIOKafkaProducer, topic: str, response_id: str, answer: str) -> None:
    """The answer as a model writes it. The key is the response's id, so that its events stay in order."""

    async def send(**event: object) -> None:
        value = json.dumps({"schema": 1, "response_id": response_id, **event}).encode()
        await producer.send(topic, value, key=response_id.encode())

    contexts = [{"id": "pricing", "text": CONTEXT}]
    await send(type="response.started", question="What does it cost?", contexts=contexts)
    tokens = [answer[start : start + 4] for start in range(0, len(answer), 4)]
    for seq, token in enumerate(tokens):
        await send(type="response.delta", seq=seq, text=token)
        await asyncio.sleep(0.03)
    await send(type="response.completed", seq=len(tokens))


async def show(consumer: AIOKafkaConsumer, response_id: str) -> None:
    """Print what is released, until the final event."""
    shown = -1
    async for record in consumer:
        event = json.loads(record.value)
        if event["response_id"] != response_id:
            continue
        # Read committed, deliveries come exactly once. Under delivery_guarantee: at_least_once a guard that
        # takes over an answer may write again what the one before it wrote last, with the same seq; as the
        # seq of a response only grows, this line makes a chat service right under both.
        if event["seq"] <= shown:
            continue
        shown = event["seq"]
        if event["type"] == "delivery.segment":
            print(event["text"], end="", flush=True)
        elif event["type"] == "delivery.blocked":
            print(f"\n  ✘ withdrawn ({event['rule']}): {event['message']}\n")
            return
        else:
            print(f"\n  ✔ complete ({event['decision']}, score {event['score']})\n")
            return


async def connect(
    stack: AsyncExitStack, bootstrap_servers: str, responses: str, deliveries: str
) -> tuple[AIOKafkaProducer, AIOKafkaConsumer]:
    """A producer and a consumer at the end of ``deliveries``, closed with ``stack``. Raises Unavailable."""
    try:
        async with asyncio.timeout(CONNECT_S):
            # Asked first, because clients would wait long for a topic that is not there.
            admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
            stack.push_async_callback(admin.close)
            await admin.start()
            missing = sorted({responses, deliveries} - set(await admin.list_topics()))
            if missing:
                raise Unavailable(
                    f"Kafka at {bootstrap_servers} has no topic {', '.join(missing)}; make it with: "
                    f"guardrail topics create --bootstrap-servers {bootstrap_servers}"
                )
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
            stack.push_async_callback(producer.stop)
            await producer.start()
            consumer = AIOKafkaConsumer(
                deliveries, bootstrap_servers=bootstrap_servers, isolation_level="read_committed"
            )
            stack.push_async_callback(consumer.stop)
            await consumer.start()
            await consumer.seek_to_end()
    except (KafkaError, OSError) as error:  # a timeout is an OSError
        raise Unavailable(
            f"Kafka can't be reached at {bootstrap_servers} ({type(error).__name__}); "
            "start it (make kafka), or name another with --bootstrap-servers"
        ) from error
    return producer, consumer


async def main(bootstrap_servers: str, responses: str, deliveries: str) -> None:
    """Two answers, one after the other. Raises Unavailable."""
    async with AsyncExitStack() as stack:
        producer, consumer = await connect(stack, bootstrap_servers, responses, deliveries)
        for answer in ANSWERS:
            response_id = uuid.uuid4().hex
            try:
                async with asyncio.timeout(ANSWER_S), asyncio.TaskGroup() as group:
                    group.create_task(write(producer, responses, response_id, answer))
                    group.create_task(show(consumer, response_id))
            except TimeoutError:
                raise Unavailable(
                    f"\nnothing came back within {ANSWER_S} s: is 'guardrail run' running on these topics?"
                ) from None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--responses", default="rag.responses", help="topic that the guard reads")
    parser.add_argument("--deliveries", default="rag.deliveries", help="topic that the guard writes")
    arguments = parser.parse_args()
    # The client logs every attempt to connect; what matters of it is told once, below.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        asyncio.run(main(arguments.bootstrap_servers, arguments.responses, arguments.deliveries))
    except Unavailable as unavailable:
        sys.exit(str(unavailable))
