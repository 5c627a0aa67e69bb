"""What does an overload, or one client, cost others, and do a guard's own figures tell how late readers are?

    python -m benchmarks.overload [--rate 40] [--seconds 12]
    python -m benchmarks.overload --parts 0.5 0.9 1 2 [--neighbours 2] [--seconds 20]
    python -m benchmarks.overload --hostile all --rate 3 [--seconds 15] [--copies 2]

One ``guardrail run`` (default settings, local judge) over a Kafka of its own gets right answers of four
sentences, which say in other words what their document says.

With ``--rate``, more than it can judge: so many a second for ``--seconds``. Once a second, until all are
decided: the records that are really not read (the end of each partition minus the group's committed
position), the sum of ``guardrail_partition_lag_records``, the age of the oldest answer that is not delivered,
and ``guardrail_oldest_unreleased_seconds``. Printed: a row for each second, and how far the figures were off,
the lag while reading was paused.

With ``--parts``, parts of what it can judge: that is measured first, on as many as it gets at once. Printed
for each part: answers, those flagged and blocked, and how long they waited. ``--neighbours`` processes burn
the processors all the while.

With ``--hostile``, ``--rate`` is one that the guard keeps up with, and one client sends ``--copies``
responses of each kind in turn, each made to take long. Printed: how late the others' answers are without any
and beside each kind, and how many of them, which are all right, were flagged or blocked.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import re
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.failover import PARTITIONS, create_topics
from benchmarks.frame import command_line, kafka_for_benchmark
from consumers.kafka.client import quiet_client_log
from consumers.settings import Topics
from guardrail.events import Context, Response
from guardrail.judges.streams import beside

TOPICS = Topics()
GROUP = "overload"
FACTS = (
    ("The {name} plan costs ${price} a month.", "You pay ${price} every month for the {name} plan."),
    (
        "Refunds for the {name} plan are paid within {days} days.",
        "You get a refund for the {name} plan within {days} days.",
    ),
    (
        "Support for the {name} plan answers within {hours} hours.",
        "With the {name} plan you hear from support within {hours} hours.",
    ),
    ("The {name} plan includes {size} GB of storage.", "The {name} plan comes with {size} GB of storage."),
)
NAMES = ("Basic", "Pro", "Team", "Family", "Student", "Studio", "Garden", "Harbour")
_AT_ONCE = 150
"""Answers written to measure the pace: enough for some ten seconds."""
_LEAST = 200
"""Fewer records that wait are not compared: a few are always under way."""
_PATIENCE_S = 60.0
"""How long answers are waited for, as ``GuardClient`` does."""
_PAUSE_S = 10.0
"""Before the next kind: what one claim may take."""


@dataclass(slots=True)
class Answers:
    """When each answer was written, until it is delivered, and what became of the others."""

    written: dict[bytes, float] = field(default_factory=dict)
    waited_s: list[float] = field(default_factory=list)
    decisions: Counter[str] = field(default_factory=Counter)
    none_waits: asyncio.Event = field(default_factory=asyncio.Event)

    def forget(self) -> None:
        """Begin anew."""
        self.written.clear()
        self.waited_s.clear()
        self.decisions.clear()

    def oldest_s(self) -> float:
        """The age of the oldest that waits."""
        first = min(self.written.values(), default=None)
        return 0.0 if first is None else time.time() - first


def answer(rng: random.Random) -> Response:
    """A right answer."""
    values = {
        "name": rng.choice(NAMES),
        "price": rng.randint(11, 99),
        "days": rng.randint(11, 60),
        "hours": rng.randint(12, 72),
        "size": rng.randint(100, 900),
    }
    says, said = (" ".join(each.format(**values) for each in texts) for texts in zip(*FACTS, strict=True))
    context = Context(id="doc", text=says)
    return Response(
        response_id=uuid.uuid4().hex, question="What does it come with?", contexts=(context,), answer=said
    )


async def write(producer: AIOKafkaProducer, answers: Answers, rate: float, number: int) -> None:
    """So many answers at a steady rate, however many wait."""
    rng = random.Random(number)
    began = time.monotonic()
    for written in range(number):
        await asyncio.sleep(max(0.0, began + written / rate - time.monotonic()))
        event = answer(rng)
        key = event.response_id.encode()
        answers.written[key] = time.time()
        answers.none_waits.clear()
        await producer.send(TOPICS.responses, event.to_json(), key=key)


async def read(consumer: AIOKafkaConsumer, answers: Answers) -> None:
    """Take off what is delivered."""
    async for record in consumer:
        said = json.loads(record.value)
        if said["type"] in {"delivery.completed", "delivery.blocked"} and record.key in answers.written:
            answers.waited_s.append(time.time() - answers.written.pop(record.key))
            answers.decisions[said.get("decision", "block")] += 1
            if not answers.written:
                answers.none_waits.set()


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


@dataclass(frozen=True, slots=True)
class Running:
    """A guard, and who writes to it and reads from it."""

    port: int
    answers: Answers
    producer: AIOKafkaProducer
    consumer: AIOKafkaConsumer


@asynccontextmanager
async def running(bootstrap: str) -> AsyncIterator[Running]:
    """A guard that is ready."""
    quiet_client_log()
    await create_topics(bootstrap)
    guard, port = await start_guard(bootstrap)
    assert guard.stderr is not None
    consumer = AIOKafkaConsumer(
        TOPICS.deliveries, bootstrap_servers=bootstrap, isolation_level="read_committed"
    )
    answers = Answers()
    try:
        async with (
            AIOKafkaProducer(bootstrap_servers=bootstrap) as producer,
            consumer,
            beside(guard.stderr.read()),
            beside(read(consumer, answers)),
        ):
            yield Running(port, answers, producer, consumer)
    finally:
        guard.terminate()
        await guard.wait()


async def measure_figures(bootstrap: str, rate: float, seconds: float) -> None:
    """Print a row for each second."""
    lags: list[float] = []
    ages: list[float] = []
    places = [TopicPartition(TOPICS.responses, number) for number in range(PARTITIONS)]
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    async with running(bootstrap) as guard:
        await admin.start()
        print("   s   not read   lag told   oldest, s   told, s")
        began = time.monotonic()
        writing = write(guard.producer, guard.answers, rate, int(rate * seconds))
        async with beside(writing) as written:
            while guard.answers.written or not written.done():
                await asyncio.sleep(1.0)
                oldest_s = guard.answers.oldest_s()
                told = await metrics(guard.port)
                ends = await guard.consumer.end_offsets(places)
                committed = await admin.list_consumer_group_offsets(GROUP, partitions=places)
                unread = sum(end - max(0, committed[place].offset) for place, end in ends.items())
                lag = told["guardrail_partition_lag_records"]
                age_s = told["guardrail_oldest_unreleased_seconds"]
                passed = time.monotonic() - began
                print(f"{passed:>4.0f}{unread:>11}{lag:>11.0f}{oldest_s:>12.1f}{age_s:>10.1f}", flush=True)
                ages.append(abs(oldest_s - age_s))
                if unread >= _LEAST and told["guardrail_judge_behind"]:
                    lags.append(abs(unread - lag) / unread)
        await admin.close()
    print(f"lag off by {statistics.median(lags or [0]):.0%} (median), {max(lags, default=0):.0%} at most")
    print(f"age off by {statistics.median(ages):.1f} s (median), {max(ages):.1f} s at most")


def burn() -> None:
    """Take a processor."""
    while True:
        pass


async def measure_parts(bootstrap: str, parts: list[float], neighbours: int, seconds: float) -> None:
    """Print a row for each part of the capacity."""
    burning = [multiprocessing.Process(target=burn, daemon=True) for _ in range(neighbours)]
    for process in burning:
        process.start()
    try:
        async with running(bootstrap) as guard:
            answers = guard.answers
            began = time.monotonic()
            await write(guard.producer, answers, _AT_ONCE, _AT_ONCE)
            await answers.none_waits.wait()
            pace = _AT_ONCE / (time.monotonic() - began)
            print(f"{neighbours} neighbours; answers judged a second: {pace:.1f}")
            print("of that   answers   flagged   blocked   waited, s: p50    p99   most")
            print(row("all", answers))
            for part in parts:
                answers.forget()
                await write(guard.producer, answers, part * pace, int(part * pace * seconds))
                await answers.none_waits.wait()
                print(row(f"{part:g}", answers), flush=True)
    finally:
        for process in burning:
            process.kill()


async def measure_hostile(bootstrap: str, kinds: list[str], rate: float, seconds: float, copies: int) -> None:
    """Print what each kind of hostile response costs the others."""
    async with running(bootstrap) as guard:
        answers = guard.answers
        print("beside            answers   flagged   blocked   waited, s: p50    p99   most")
        for kind in ("warming up", "nothing", *kinds):
            answers.forget()
            if kind in HOSTILE:
                for _ in range(copies):
                    event = hostile(kind)
                    await guard.producer.send(
                        TOPICS.responses, event.to_json(), key=event.response_id.encode()
                    )
            await write(guard.producer, answers, rate, int(rate * seconds))
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await answers.none_waits.wait()
            lost = f"   {len(answers.written)} without an end" if answers.written else ""
            print(row(f"{kind:17}", answers) + lost, flush=True)
            await asyncio.sleep(_PAUSE_S)


def row(part: str, answers: Answers) -> str:
    """What became of them."""
    waits_s = [time.time() - at for at in answers.written.values()]
    waited, decided = sorted([*answers.waited_s, *waits_s]), answers.decisions
    p99 = waited[int(0.99 * (len(waited) - 1))]
    return (
        f"{part:>7}{len(waited):>10}{decided['flag'] + decided['redact']:>10}{decided['block']:>10}"
        f"{statistics.median(waited):>17.1f}{p99:>7.1f}{waited[-1]:>7.1f}"
    )


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--parts", type=float, nargs="+", metavar="PART")
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument(
        "--hostile", choices=("all", *HOSTILE), help="what one client sends beside right answers"
    )
    parser.add_argument("--copies", type=int, default=2, help="so many at once")
    parser.add_argument("--seconds", type=float, default=12.0)
    args = parser.parse_args()
    with kafka_for_benchmark(args.bootstrap_servers) as bootstrap:
        if args.parts:
            uvloop.run(measure_parts(bootstrap, args.parts, args.neighbours, args.seconds))
        elif args.hostile:
            kinds = list(HOSTILE) if args.hostile == "all" else [args.hostile]
            uvloop.run(measure_hostile(bootstrap, kinds, args.rate, args.seconds, args.copies))
        else:
            uvloop.run(measure_figures(bootstrap, args.rate, args.seconds))


if __name__ == "__main__":
    main()
