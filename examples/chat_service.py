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
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

CONTEXT = (
    "The basic plan costs $49 a month and can be cancelled at the end of any month. "
    "Refunds are paid within 14 days of the cancellation."
)
ANSWERS = (
    "The basic plan costs $49 a month. Refunds are paid within 14 days of the cancellation.",
    "The basic plan costs $49 a month. Refunds are paid within 30 days of the cancellation.",
)


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
    async for record in consumer:
        event = json.loads(record.value)
        if event["response_id"] != response_id:
            continue
        if event["type"] == "delivery.segment":
            print(event["text"], end="", flush=True)
        elif event["type"] == "delivery.blocked":
            print(f"\n  ✘ withdrawn ({event['rule']}): {event['message']}\n")
            return
        else:
            print(f"\n  ✔ complete ({event['decision']}, score {event['score']})\n")
            return


async def main(bootstrap_servers: str, responses: str, deliveries: str) -> None:
    """Two answers, one after the other."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    consumer = AIOKafkaConsumer(
        deliveries, bootstrap_servers=bootstrap_servers, isolation_level="read_committed"
    )
    await producer.start()
    await consumer.start()
    try:
        await consumer.seek_to_end()
        for answer in ANSWERS:
            response_id = uuid.uuid4().hex
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(write(producer, responses, response_id, answer))
                group.create_task(show(consumer, response_id))
    except TimeoutError:
        print("\nnothing came back within a minute: is 'guardrail run' running on these topics?")
        raise SystemExit(1) from None
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--responses", default="rag.responses", help="topic that the guard reads")
    parser.add_argument("--deliveries", default="rag.deliveries", help="topic that the guard writes")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.bootstrap_servers, arguments.responses, arguments.deliveries))
