"""What do an overload, a busy neighbour, or one client's hostile responses cost others?

    python -m benchmarks.overload [--at-once 150] [--parts 0.5 0.9 1 2] [--neighbours 2] [--seconds 20]
    python -m benchmarks.overload --hostile all --rate 3 [--seconds 15] [--copies 2]

One ``guardrail run`` (default settings, local judge) over a Kafka of its own gets right answers of four
sentences, which say in other words what their document says: first ``--at-once`` in one second, which shows
how many it judges, and then at parts of that. Printed each time: answers, those flagged and blocked, and how
long they waited. ``--neighbours`` processes burn the processors all the while.

With ``--hostile``, ``--rate`` is one that the guard keeps up with, and one client sends ``--copies``
responses of each kind in turn, each made to take long. Printed: how late the others' answers are without any
and beside each kind, and how many of them, which are all right, were flagged or blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.frame import command_line, machine, markdown_row, percentile
from benchmarks.kafka import GuardProcess, kafka_for_benchmark, new_topics
from benchmarks.workload import right_answer
from consumers.kafka.client import quiet_client_log
from guardrail.events import Context, Response
from guardrail.judges.streams import beside

PARTITIONS: Final = 6
_PATIENCE_S: Final = 60.0
"""How long answers are waited for beside hostile ones, as ``GuardClient`` does."""
_PAUSE_S: Final = 10.0
"""Before the next kind: what one claim may take."""
_PRICE, _REFUND = "The Pro plan costs $49 per month. ", "Refunds are paid within 14 days."
_LONG: Final = 440_000  # characters; a record has at most a megabyte
HOSTILE: Final = {
    "items": {"answer": "- a\n" * 24_750},
    "distinct items": {"answer": "".join(f"- The Pro plan has item {n}.\n" for n in range(3_300))},
    "table rows": {"answer": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 9_900},
    "footnotes": {"answer": "a".join(f"[^{n}]" for n in range(12_500))},
    "fractions": {"context": _PRICE + "1/" * (_LONG // 2) + " " + _REFUND},
    "dashes": {"context": _PRICE + "1-" * (_LONG // 2) + " " + _REFUND},
    "figures": {"context": _PRICE + "0/1 1/0 " * (_LONG // 8) + _REFUND},
    "question": {"question": "2026-01-01 12:03:04 INFO 34 ms\n" * 12_000, "answer": f"{_REFUND} " * 20},
    "contexts": {"contexts": "9999", "context": _REFUND, "question": ""},
}
"""What is hostile of the response of one client."""


def hostile(kind: str) -> Response:
    """A response that is made to take long."""
    own = {"question": "What is it?", "context": _PRICE + _REFUND, "answer": _REFUND, "contexts": "1"}
    own |= HOSTILE[kind]
    contexts = tuple(Context(id=str(number), text=own["context"]) for number in range(int(own["contexts"])))
    return Response(
        response_id=uuid.uuid4().hex, question=own["question"], contexts=contexts, answer=own["answer"]
    )


@dataclass(slots=True)
class Others:
    """A guard's right answers: when each was written, until it is delivered, and what became of the rest."""

    topic: str
    producer: AIOKafkaProducer
    written: dict[bytes, float] = field(default_factory=dict)
    waited_s: list[float] = field(default_factory=list)
    decisions: Counter[str] = field(default_factory=Counter)
    none_waits: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, response: Response) -> None:
        """Write one response."""
        await self.producer.send(self.topic, response.to_json(), key=response.response_id.encode())

    async def write(self, rate: float, number: int) -> None:
        """Begin anew with so many answers at a steady rate, however many wait."""
        self.written.clear()
        self.waited_s.clear()
        self.decisions.clear()
        self.none_waits.clear()
        rng, began = random.Random(number), time.monotonic()
        for sent in range(number):
            await asyncio.sleep(max(0.0, began + sent / rate - time.monotonic()))
            answer = right_answer(rng, uuid.uuid4().hex)
            self.written[answer.response_id.encode()] = time.monotonic()
            self.none_waits.clear()
            await self.send(answer)

    async def read(self, consumer: AIOKafkaConsumer) -> None:
        """Take off what is delivered."""
        async for record in consumer:
            said = json.loads(record.value)
            if said["type"] in {"delivery.completed", "delivery.blocked"} and record.key in self.written:
                self.waited_s.append(time.monotonic() - self.written.pop(record.key))
                self.decisions[said.get("decision", "block")] += 1
                if not self.written:
                    self.none_waits.set()

    def row(self, name: str, *, head: bool = False) -> str:
        """What became of them; those without an end have waited until now."""
        waited = [*self.waited_s, *(time.monotonic() - at for at in self.written.values())]
        cells = {
            "": name,
            "answers": len(waited),
            "flagged": self.decisions["flag"] + self.decisions["redact"],
            "blocked": self.decisions["block"],
            "without an end": len(self.written),
        }
        shares = {"p50": 0.5, "p99": 0.99, "most": 1.0}
        waits = {f"waited, s: {at}": f"{percentile(waited, share):.1f}" for at, share in shares.items()}
        return markdown_row(cells | waits, head=head)


@asynccontextmanager
async def guarded(bootstrap: str) -> AsyncIterator[Others]:
    """A guard that is ready, and its right answers."""
    quiet_client_log()
    topics = await new_topics(bootstrap, partitions=PARTITIONS)
    consumer = AIOKafkaConsumer(
        topics.deliveries, bootstrap_servers=bootstrap, isolation_level="read_committed"
    )
    async with (
        GuardProcess(bootstrap, topics, topics.responses),
        AIOKafkaProducer(bootstrap_servers=bootstrap) as producer,
        consumer,
    ):
        others = Others(topics.responses, producer)
        async with beside(others.read(consumer)):
            yield others


def burn() -> None:
    """Take a processor."""
    while True:
        pass


async def measure_parts(bootstrap: str, args: argparse.Namespace) -> None:
    """Print a row for the burst that the capacity is measured by, and one for each part of it."""
    burning = [multiprocessing.Process(target=burn, daemon=True) for _ in range(args.neighbours)]
    for process in burning:
        process.start()
    try:
        async with guarded(bootstrap) as others:
            began = time.monotonic()
            await others.write(args.at_once, args.at_once)
            await others.none_waits.wait()
            pace = args.at_once / (time.monotonic() - began)
            print(f"{machine()}; {args.neighbours} neighbours; answers judged a second: {pace:.1f}")
            print(others.row("all at once", head=True), flush=True)
            for part in args.parts:
                await others.write(part * pace, int(part * pace * args.seconds))
                await others.none_waits.wait()
                print(others.row(f"{part:g} of that"), flush=True)
    finally:
        for process in burning:
            process.kill()


async def measure_hostile(bootstrap: str, kinds: list[str], rate: float, seconds: float, copies: int) -> None:
    """Print what each kind of hostile response costs the others."""
    async with guarded(bootstrap) as others:
        for kind in ("warming up", "nothing", *kinds):
            for _ in range(copies if kind in HOSTILE else 0):
                await others.send(hostile(kind))
            await others.write(rate, int(rate * seconds))
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await others.none_waits.wait()
            print(others.row(f"beside {kind}", head=kind == "warming up"), flush=True)
            await asyncio.sleep(_PAUSE_S)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--at-once", type=int, default=150, help="answers that begin in one second")
    parser.add_argument("--parts", type=float, nargs="*", metavar="PART", default=[0.5, 0.9, 1, 2])
    parser.add_argument("--neighbours", type=int, default=0)
    parser.add_argument("--hostile", choices=("all", *HOSTILE), help="what one client sends beside")
    parser.add_argument("--rate", type=float, default=3.0, help="answers a second beside hostile ones")
    parser.add_argument("--copies", type=int, default=2, help="so many at once")
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    with kafka_for_benchmark(args.bootstrap_servers) as bootstrap:
        if args.hostile:
            kinds = list(HOSTILE) if args.hostile == "all" else [args.hostile]
            uvloop.run(measure_hostile(bootstrap, kinds, args.rate, args.seconds, args.copies))
        else:
            uvloop.run(measure_parts(bootstrap, args))


if __name__ == "__main__":
    main()
