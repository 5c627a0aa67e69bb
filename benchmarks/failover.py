"""What a reader notices when a guard or Kafka goes: how long nothing comes, and which answers are lost.

    python -m benchmarks.failover [--kills 6] [--guarantee exactly_once] [--kind planned]
    python -m benchmarks.failover --kind kafka --away 60 --kills 5
    python -m benchmarks.failover --kind frozen --away 10 --guards 2

Runs guards with the default settings and the local judge over a Kafka of its own, and streams right answers
through ``GuardClient``, ``--streams`` at once, at 10 tokens a second. Then, again and again:

- *restarted*: a guard is killed by SIGKILL, and started again after a second under its own name
  (``kafka.group_instance_id``);
- *replaced*: it is killed, and started only after the others have taken over its partitions;
- *planned*: it is told to stop by SIGTERM, as in a roll-out, and is started again 10 s after it has left;
- *frozen*: it is stopped by SIGSTOP and goes on ``--away`` seconds later, as on a machine that was paused;
- *kafka*: the broker is killed, and started again ``--away`` seconds later.

The first four under both guarantees, one after the other, unless the options name one. The gap is the
longest wait between two pieces of one answer from the moment of the kill to 10 s after the guard is back; for
Kafka the part of it that comes after the broker's port is open again. The report has the median and the
longest, the longest wait while all were well, and how many of the right answers were blocked, flagged or
ended in an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import uvloop
from aiokafka import AIOKafkaConsumer

from benchmarks.frame import command_line
from benchmarks.kafka import GuardProcess, new_topics
from benchmarks.workload import right_answer
from consumers.kafka.client import quiet_client_log
from guardrail.client import AnswerBlocked, GuardClient
from guardrail.errors import GuardrailError
from guardrail.judges.streams import beside
from tests.support.kafka_broker import KafkaBroker

PARTITIONS = 6
TOKENS_PER_SECOND = 10.0
GUARANTEES = ("exactly_once", "at_least_once")
ENDS_BY = {
    "restarted": signal.SIGKILL,
    "replaced": signal.SIGKILL,
    "planned": signal.SIGTERM,
    "frozen": signal.SIGSTOP,
}
BACK_AFTER_S = {"restarted": 1.0, "replaced": 20.0, "planned": 10.0}
KAFKA = "kafka"
_SETTLED_S = 10.0


@dataclass(slots=True)
class Seen:
    """What readers saw."""

    gaps: list[tuple[float, float]] = field(default_factory=list)
    """When a wait between two pieces began, and how long it was."""
    blocked: Counter[str] = field(default_factory=Counter)
    flagged: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    finished: int = 0


class Outage(NamedTuple):
    """When it began, from when on waits count, and when all was there again."""

    began: float
    counts: float
    ended: float


async def stream(client: GuardClient, seen: Seen, over: asyncio.Event, seed: int) -> None:
    """Right answers, one after the other."""
    rng = random.Random(seed)

    async def tokens(text: str) -> AsyncIterator[str]:
        for token in text.split(" "):
            yield token + " "
            await asyncio.sleep(1 / TOKENS_PER_SECOND)

    while not over.is_set():
        answer = right_answer(rng, "any")
        contexts = [context.text for context in answer.contexts]
        last = time.monotonic()
        try:
            async for _ in client.guard(answer.question, contexts, tokens(answer.answer)):
                now = time.monotonic()
                seen.gaps.append((last, now - last))
                last = now
        except GuardrailError as error:
            seen.gaps.append((last, time.monotonic() - last))
            if isinstance(error, AnswerBlocked):
                seen.blocked[error.rule or ""] += 1
            else:
                seen.errors[type(error).__name__] += 1
        seen.finished += 1


async def note_flagged(consumer: AIOKafkaConsumer, seen: Seen) -> None:
    """The rules by which answers are flagged, as they are decided."""
    async for record in consumer:
        verdict = json.loads(record.value)
        if verdict["type"] == "verdict.response" and verdict["decision"] == "flag":
            seen.flagged[verdict["rule"]] += 1


@asynccontextmanager
async def streaming(
    bootstrap: str, kind: str, guarantee: str, args: argparse.Namespace
) -> AsyncIterator[tuple[list[GuardProcess], Seen]]:
    """Guards, and answers that stream through them for as long as the block runs."""
    topics, seen, over = await new_topics(bootstrap, partitions=PARTITIONS), Seen(), asyncio.Event()
    guards = []
    async with AsyncExitStack() as stack:
        for number in range(args.guards):
            named = {"kafka.group_instance_id": f"guard-{number}"} if kind == "restarted" else {}
            settings = {"kafka.delivery_guarantee": guarantee, **named}
            guard = GuardProcess(bootstrap, topics, topics.responses, settings)
            guards.append(await stack.enter_async_context(guard))
        client = GuardClient(
            bootstrap,
            responses_topic=topics.responses,
            deliveries_topic=topics.deliveries,
            reply_partitions=None,
            timeout_s=180.0,
        )
        verdicts = AIOKafkaConsumer(
            topics.verdicts, bootstrap_servers=bootstrap, isolation_level="read_committed"
        )
        await asyncio.sleep(5)
        async with client, verdicts, beside(note_flagged(verdicts, seen)), asyncio.TaskGroup() as group:
            for number in range(args.streams):
                group.create_task(stream(client, seen, over, number))
            yield guards, seen
            over.set()


async def measure(
    bootstrap: str,
    kind: str,
    guarantee: str,
    args: argparse.Namespace,
    fail: Callable[[list[GuardProcess]], Awaitable[Outage]],
) -> None:
    """Run one case, let it fail and report."""
    quiet_client_log()
    outages: list[Outage] = []
    async with streaming(bootstrap, kind, guarantee, args) as (guards, seen):
        for _ in range(args.kills):
            await asyncio.sleep(_SETTLED_S)
            outages.append(await fail(guards))
            await asyncio.sleep(_SETTLED_S)
        await asyncio.sleep(4 * _SETTLED_S if kind == KAFKA else _SETTLED_S)
    about = {"guarantee": guarantee, "kind": kind, "guards": args.guards}
    print(json.dumps(about | report(seen, outages), indent=2), flush=True)


async def measure_guards(bootstrap: str, args: argparse.Namespace) -> None:
    """The cases in which a guard goes."""
    for guarantee in [args.guarantee] if args.guarantee else GUARANTEES:
        for kind in [args.kind] if args.kind else ENDS_BY:
            rng = random.Random(args.seed)

            async def fail(guards: list[GuardProcess], kind: str = kind, rng: random.Random = rng) -> Outage:
                guard, began = rng.choice(guards), time.monotonic()
                if kind == "frozen":
                    guard.send_signal(ENDS_BY[kind])
                    await asyncio.sleep(args.away)
                    guard.send_signal(signal.SIGCONT)
                else:
                    await guard.end(ENDS_BY[kind])
                    await asyncio.sleep(BACK_AFTER_S[kind])
                    await guard.start()
                return Outage(began, began, time.monotonic())

            await measure(bootstrap, kind, guarantee, args, fail)


async def measure_kafka(broker: KafkaBroker, args: argparse.Namespace) -> None:
    """The case in which Kafka goes."""

    async def fail(_: list[GuardProcess]) -> Outage:
        began = time.monotonic()
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(args.away)
        await asyncio.to_thread(broker.start)
        back = time.monotonic()
        return Outage(began, back, back)

    await measure(broker.bootstrap_servers, KAFKA, args.guarantee or GUARANTEES[0], args, fail)


def report(seen: Seen, outages: Sequence[Outage]) -> dict[str, object]:
    """The figures."""
    longest = [
        max(
            (
                start + length - max(start, outage.counts)
                for start, length in seen.gaps
                if start < outage.ended + _SETTLED_S and start + length > outage.counts
            ),
            default=0.0,
        )
        for outage in outages
    ]
    well = [
        length
        for start, length in seen.gaps
        if not any(start < each.ended + _SETTLED_S and start + length > each.began for each in outages)
    ]
    return {
        "kills": len(outages),
        "gap_s": {"p50": round(statistics.median(longest), 1), "max": round(max(longest), 1)},
        "gaps_s": [round(each, 1) for each in longest],
        "gap_s while all are well, max": round(max(well, default=0.0), 1),
        "answers": seen.finished,
        "right answers blocked, by rule": seen.blocked,
        "right answers flagged, by rule": seen.flagged,
        "ended in an error": seen.errors,
    }


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--guards", type=int, default=3)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--guarantee", choices=GUARANTEES)
    parser.add_argument("--kind", choices=(*ENDS_BY, KAFKA))
    parser.add_argument("--away", type=float, default=60.0, help="seconds, of Kafka or a frozen guard")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with KafkaBroker() as broker:
        if args.kind == KAFKA:
            uvloop.run(measure_kafka(broker, args))
        else:
            uvloop.run(measure_guards(broker.bootstrap_servers, args))


if __name__ == "__main__":
    main()
