"""Do a guard's own figures say how late readers are in an overload? What does one client cost the others?

    python -m benchmarks.overload [--rate 150] [--seconds 12]
    python -m benchmarks.overload --hostile all [--rate 4] [--seconds 15] [--copies 2]

One ``guardrail run`` (default settings, local judge) over a Kafka of its own gets ``--rate`` whole answers a
second for ``--seconds``, which is more than it can judge. Once a second, until all are decided: the records
that are really not read (the end of each partition minus the group's committed position), the sum of
``guardrail_partition_lag_records``, the age of the oldest answer that is not delivered, and
``guardrail_oldest_unreleased_seconds``. Printed: a row for each second, and how far the figures were
off, the lag while reading was paused.

With ``--hostile`` the answers come at a rate that the guard keeps up with, and after ``--seconds`` one client
sends ``--copies`` responses of each kind in turn, each made to take long. Printed: how late the others'
answers are before and in the seconds after, and how many of them, which are all right, were flagged or
blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import sys
import time
import uuid
from dataclasses import dataclass, field

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.bare_kafka_loop import kafka_for_benchmark
from benchmarks.failover import PARTITIONS, create_topics
from benchmarks.workload import sentences
from consumers.kafka.client import quiet_client_log
from consumers.settings import Topics
from guardrail.events import Context, Response

TOPICS = Topics()
GROUP = "overload"
_SENTENCES = 4
_LEAST = 200
"""Fewer records that wait are not compared: a few are always under way."""
_PATIENCE_S = 60.0
"""How long answers are waited for, as ``GuardClient`` does."""
_PAUSE_S = 10.0
"""Before the next kind: what one claim may take."""


@dataclass(slots=True)
class Answers:
    """When each answer was written, until it is delivered."""

    written: dict[bytes, float] = field(default_factory=dict)

    decided: list[tuple[float, float, str]] = field(default_factory=list)
    """Of those that are: when it was written, how long it took, and the decision."""

    def oldest_s(self) -> float:
        """The age of the oldest that waits."""
        first = min(self.written.values(), default=None)
        return 0.0 if first is None else time.time() - first


def answer(number: int) -> Response:
    """A right answer of some sentences, which are those of its document."""
    text = sentences(random.Random(number), _SENTENCES)
    context = Context(id="doc", text=text)
    return Response(response_id=uuid.uuid4().hex, question="What is it?", contexts=(context,), answer=text)


async def write(producer: AIOKafkaProducer, answers: Answers, rate: float, seconds: float) -> None:
    """Answers at a steady rate, however many wait."""
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        event = answer(number)
        key = event.response_id.encode()
        answers.written[key] = time.time()
        await producer.send(TOPICS.responses, event.to_json(), key=key)


async def read(consumer: AIOKafkaConsumer, answers: Answers) -> None:
    """Take off what is delivered."""
    async for record in consumer:
        event = json.loads(record.value)
        if event["type"] in {"delivery.completed", "delivery.blocked"} and record.key in answers.written:
            at = answers.written.pop(record.key)
            answers.decided.append((at, time.time() - at, event.get("decision", "block")))


def hostile(kind: str) -> Response:
    """A response that is made to take long."""
    price, text = "The Pro plan costs $49 per month. ", "Refunds are paid within 14 days."
    long = 440_000  # characters; a record has at most a megabyte

    def of(answer: str = text, context: str = price + text, question: str = "What is it?") -> Response:
        contexts = (Context(id="doc", text=context),)
        return Response(response_id=uuid.uuid4().hex, question=question, contexts=contexts, answer=answer)

    if kind == "contexts":
        contexts = tuple(Context(id=str(number), text=text) for number in range(9_999))
        return Response(response_id=uuid.uuid4().hex, question="", contexts=contexts, answer=text)
    return {
        "items": lambda: of("- a\n" * 24_750),
        "distinct items": lambda: of("".join(f"- The Pro plan has item {n}.\n" for n in range(3_300))),
        "table rows": lambda: of("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 9_900),
        "footnotes": lambda: of("a".join(f"[^{n}]" for n in range(12_500))),
        "fractions": lambda: of(context=price + "1/" * (long // 2) + " " + text),
        "dashes": lambda: of(context=price + "1-" * (long // 2) + " " + text),
        "figures": lambda: of(context=price + "0/1 1/0 " * (long // 8) + text),
        "question": lambda: of(answer=f"{text} " * 20, question="2026-01-01 12:03:04 INFO 34 ms\n" * 12_000),
    }[kind]()


HOSTILE = (
    "items",
    "distinct items",
    "table rows",
    "footnotes",
    "fractions",
    "dashes",
    "figures",
    "question",
    "contexts",
)
_RIGHT_RATE = 4.0


async def beside(bootstrap: str, kinds: list[str], rate: float, seconds: float, copies: int) -> None:
    """Print what each kind of hostile response costs the others."""
    quiet_client_log()
    await create_topics(bootstrap)
    guard, _ = await start_guard(bootstrap)
    assert guard.stderr is not None
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(
        TOPICS.deliveries, bootstrap_servers=bootstrap, isolation_level="read_committed"
    )
    await producer.start()
    await consumer.start()
    answers = Answers()
    tasks = [asyncio.create_task(guard.stderr.read()), asyncio.create_task(read(consumer, answers))]
    print(f"{'':16} answers   p50, s   p99, s   flagged   blocked")
    try:
        for kind in ("warming up", "nothing", *kinds):
            answers.decided.clear()
            if kind in HOSTILE:
                for _ in range(copies):
                    event = hostile(kind)
                    await producer.send(TOPICS.responses, event.to_json(), key=event.response_id.encode())
            await write(producer, answers, rate, seconds)
            until = time.monotonic() + _PATIENCE_S
            while answers.written and time.monotonic() < until:  # noqa: ASYNC110 - a benchmark
                await asyncio.sleep(0.1)
            took = sorted(
                [s for _, s, _ in answers.decided] + [time.time() - at for at in answers.written.values()]
            )
            decisions = [decision for _, _, decision in answers.decided]
            p50, p99 = (took[int(share * (len(took) - 1))] for share in (0.5, 0.99))
            lost = f"   {len(answers.written)} without an end" if answers.written else ""
            flagged, blocked = decisions.count("flag"), decisions.count("block")
            print(
                f"{kind:16}{len(took):>8}{p50:>9.2f}{p99:>9.2f}{flagged:>10}{blocked:>10}{lost}", flush=True
            )
            answers.written.clear()
            await asyncio.sleep(_PAUSE_S)
    finally:
        for task in tasks:
            task.cancel()
        guard.terminate()
        await guard.wait()
        await consumer.stop()
        await producer.stop()


async def metrics(port: int) -> dict[str, float]:
    """The sum of each metric of the guard."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    page = (await reader.read()).decode()
    writer.close()
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(guardrail_\w+)(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


async def start_guard(bootstrap: str) -> tuple[asyncio.subprocess.Process, int]:
    """A guard that reads, and its port for metrics."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from guardrail.cli import main; main()", "run", "--log-format", "json"),
        *("--bootstrap-servers", bootstrap, "--group-id", GROUP),
        env=os.environ | {"GUARDRAIL_OPS__PORT": "0"},
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    port = 0
    async for line in process.stderr:
        said = json.loads(line)
        port = said.get("port", port)
        if said["event"] == "guard.ready":
            return process, port
    raise RuntimeError("the guard ended")


async def measure(bootstrap: str, rate: float, seconds: float) -> None:
    """Print the rows."""
    quiet_client_log()
    await create_topics(bootstrap)
    guard, port = await start_guard(bootstrap)
    assert guard.stderr is not None
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(
        TOPICS.deliveries, bootstrap_servers=bootstrap, isolation_level="read_committed"
    )
    answers = Answers()
    await admin.start()
    await producer.start()
    await consumer.start()
    tasks = [asyncio.create_task(guard.stderr.read()), asyncio.create_task(read(consumer, answers))]
    writing = asyncio.create_task(write(producer, answers, rate, seconds))
    lags: list[float] = []
    ages: list[float] = []
    places = [TopicPartition(TOPICS.responses, number) for number in range(PARTITIONS)]
    print("   s   not read   lag told   oldest, s   told, s")
    began = time.monotonic()
    try:
        while answers.written or not writing.done():
            await asyncio.sleep(1.0)
            oldest_s = answers.oldest_s()
            told = await metrics(port)
            ends = await consumer.end_offsets(places)
            committed = await admin.list_consumer_group_offsets(GROUP, partitions=places)
            unread = sum(end - max(0, committed[place].offset) for place, end in ends.items())
            lag, age_s = told["guardrail_partition_lag_records"], told["guardrail_oldest_unreleased_seconds"]
            passed = time.monotonic() - began
            print(f"{passed:>4.0f}{unread:>11}{lag:>11.0f}{oldest_s:>12.1f}{age_s:>10.1f}", flush=True)
            ages.append(abs(oldest_s - age_s))
            if unread >= _LEAST and told["guardrail_judge_behind"]:
                lags.append(abs(unread - lag) / unread)
    finally:
        for task in (*tasks, writing):
            task.cancel()
        guard.terminate()
        await guard.wait()
        await consumer.stop()
        await producer.stop()
        await admin.close()
    print(f"lag off by {statistics.median(lags or [0]):.0%} (median), {max(lags, default=0):.0%} at most")
    print(f"age off by {statistics.median(ages):.1f} s (median), {max(ages):.1f} s at most")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, help="answers a second; default: 150, or 4 with --hostile")
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument(
        "--hostile", choices=("all", *HOSTILE), help="what one client sends beside right answers"
    )
    parser.add_argument("--copies", type=int, default=2, help="so many at once")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="default: a Kafka of its own")
    args = parser.parse_args()
    with kafka_for_benchmark(args.bootstrap_servers) as bootstrap:
        if args.hostile is None:
            uvloop.run(measure(bootstrap, args.rate or 150.0, args.seconds))
            return
        kinds = list(HOSTILE) if args.hostile == "all" else [args.hostile]
        uvloop.run(beside(bootstrap, kinds, args.rate or _RIGHT_RATE, args.seconds, args.copies))


if __name__ == "__main__":
    main()
