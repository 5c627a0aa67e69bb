"""What a reader notices when a guard or Kafka goes: how long nothing comes, and which answers are lost.

    python -m benchmarks.failover [--kills 6] [--guarantee exactly_once] [--kind planned]
    python -m benchmarks.failover --kind kafka --away 60 --kills 5
    python -m benchmarks.failover --kind frozen --away 10 --guards 2
    python -m benchmarks.failover --kind judge --streams 40 --guards 2

Runs guards with the default settings and the local judge over a Kafka of its own, and streams right answers
through ``GuardClient``, ``--streams`` at once, at 10 tokens a second. Then, again and again:

- *restarted*: a guard is killed by SIGKILL, and started again after a second under its own name
  (``kafka.group_instance_id``);
- *replaced*: it is killed, and started only after the others have taken over its partitions;
- *planned*: it is told to stop by SIGTERM, as in a roll-out, and is started again 10 s after it has left;
- *frozen*: it is stopped by SIGSTOP and goes on ``--away`` seconds later, as on a machine that was paused;
- *kafka*: the broker is killed, and started again ``--away`` seconds later;
- *judge*: nothing is killed, but the LLM judge takes every question and never answers. Told is how long after
  the first question the circuit of each guard opened.

The first four under both guarantees, one after the other, unless the options name one. The gap is the
longest wait between two pieces of one answer from the moment of the kill to 10 s after the guard is back; for
Kafka the part of it that comes after the broker's port is open again. The report has the median and the
longest, the longest wait while all were well, and how many of the right answers were blocked, flagged or
ended in an error. The answers say what their document does in other words, so that the verifier reads them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import uvloop
from aiokafka import AIOKafkaConsumer

from benchmarks.frame import command_line, kafka_for_benchmark
from consumers.kafka.client import quiet_client_log
from consumers.settings import Topics
from guardrail.client import AnswerBlocked, GuardClient
from guardrail.errors import GuardrailError
from guardrail.judges.streams import beside

if TYPE_CHECKING:
    from tests.support.kafka_broker import KafkaBroker

PARTITIONS = 6
TOKENS_PER_SECOND = 10.0
GUARANTEES = ("exactly_once", "at_least_once")


@dataclass(frozen=True, slots=True)
class Kind:
    """How a guard is ended or stopped, how long nobody starts it again (None: as long as is asked for), and
    whether it has a name."""

    ends_by: signal.Signals
    back_after_s: float | None
    named: bool


KINDS = {
    "restarted": Kind(signal.SIGKILL, 1.0, named=True),
    "replaced": Kind(signal.SIGKILL, 20.0, named=False),
    "planned": Kind(signal.SIGTERM, 10.0, named=False),
    "frozen": Kind(signal.SIGSTOP, None, named=False),
}
KAFKA = "kafka"
JUDGE = "judge"
_SETTLED_S = 10.0
CONTEXT = "The basic plan costs $49 a month. The pro plan costs $99 a month. Refunds are paid within 14 days."
ANSWER = (
    "You pay $49 every month for the basic plan. With the pro plan it is $99 every month. "
    "You get a refund within 14 days. "
)
TOKENS = (ANSWER * 3).split(" ")


@dataclass(slots=True)
class Guards:
    """Guard processes on one group."""

    bootstrap: str
    guarantee: str
    named: bool
    group: str = field(default_factory=lambda: f"failover-{uuid.uuid4().hex[:8]}")
    settings: dict[str, str] = field(default_factory=dict)
    """Further ones, as variables of the environment."""
    processes: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    logged_at: dict[str, list[float]] = field(default_factory=dict)
    """By event, when guards logged it."""
    _reading: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self, number: int) -> None:
        """Start one, and come back when it takes part."""
        settings = {
            "GUARDRAIL_OPS__PORT": "0",
            "GUARDRAIL_KAFKA__DELIVERY_GUARANTEE": self.guarantee,
            # What the case before wrote to the topics is not this one's.
            "GUARDRAIL_KAFKA__AUTO_OFFSET_RESET": "latest",
            "PYTHONDONTWRITEBYTECODE": "",  # an installed guard has its byte code
        }
        if self.named:
            settings["GUARDRAIL_KAFKA__GROUP_INSTANCE_ID"] = f"guard-{number}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from guardrail.cli import main; main()", "run", "--log-format", "json"),
            *("--bootstrap-servers", self.bootstrap, "--group-id", self.group),
            env=os.environ | settings | self.settings,
            stderr=asyncio.subprocess.PIPE,
        )
        self.processes[number] = process
        assert process.stderr is not None
        said = b""
        while b'"guard.assigned"' not in said:
            line = await process.stderr.readline()
            if not line:
                raise RuntimeError(said[-1_000:].decode("utf-8", "replace"))
            said += line
        self._reading.append(asyncio.create_task(self._read(process.stderr)))

    async def _read(self, log: asyncio.StreamReader) -> None:
        async for line in log:
            with suppress(ValueError):
                self.logged_at.setdefault(json.loads(line)["event"], []).append(time.monotonic())

    async def end(self, number: int, by: signal.Signals) -> None:
        """Return when it has ended."""
        process = self.processes.pop(number)
        process.send_signal(by)
        await process.wait()

    async def stop(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()


@dataclass(slots=True)
class Seen:
    """What readers saw."""

    gaps: list[tuple[float, float]] = field(default_factory=list)
    """When a wait between two pieces began, and how long it was."""
    blocked: list[str] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    finished: int = 0


async def stream(client: GuardClient, seen: Seen, over: asyncio.Event) -> None:
    """Right answers, one after the other."""

    async def tokens() -> AsyncIterator[str]:
        for token in TOKENS:
            yield token + " "
            await asyncio.sleep(1 / TOKENS_PER_SECOND)

    while not over.is_set():
        last = time.monotonic()
        try:
            async for _ in client.guard("What does it cost?", [CONTEXT], tokens()):
                now = time.monotonic()
                seen.gaps.append((last, now - last))
                last = now
        except AnswerBlocked as blocked:
            seen.gaps.append((last, time.monotonic() - last))
            seen.blocked.append(blocked.rule or "")
        except GuardrailError as error:
            seen.gaps.append((last, time.monotonic() - last))
            seen.errors.append(type(error).__name__)
        seen.finished += 1


async def note_flagged(consumer: AIOKafkaConsumer, seen: Seen) -> None:
    """The rules by which answers are flagged, as they are decided."""
    async for record in consumer:
        verdict = json.loads(record.value)
        if verdict["type"] == "verdict.response" and verdict["decision"] == "flag":
            seen.flagged.append(verdict["rule"])


async def create_topics(bootstrap: str) -> None:
    """The guards' topics."""
    create = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from guardrail.cli import main; main()", "topics", "create"),
        *("--bootstrap-servers", bootstrap, "--partitions", str(PARTITIONS), "--replication-factor", "1"),
        stdout=asyncio.subprocess.DEVNULL,
    )
    assert await create.wait() == 0


async def measure(bootstrap: str, args: argparse.Namespace) -> None:
    """Run all cases."""
    quiet_client_log()
    await create_topics(bootstrap)
    for guarantee in [args.guarantee] if args.guarantee else GUARANTEES:
        for name in [args.kind] if args.kind else KINDS:
            kind, rng = KINDS[name], random.Random(args.seed)

            async def fail(guards: Guards, kind: Kind = kind, rng: random.Random = rng) -> Outage:
                number, began = rng.choice(sorted(guards.processes)), time.monotonic()
                if kind.back_after_s is None:
                    guards.processes[number].send_signal(kind.ends_by)
                    await asyncio.sleep(args.away)
                    guards.processes[number].send_signal(signal.SIGCONT)
                    return Outage(began, began, time.monotonic())
                await guards.end(number, kind.ends_by)
                await asyncio.sleep(kind.back_after_s)
                await guards.start(number)
                return Outage(began, began, time.monotonic())

            await measure_case(Guards(bootstrap, guarantee, kind.named), name, fail, args)


async def measure_kafka(broker: KafkaBroker, args: argparse.Namespace) -> None:
    """Run the case in which Kafka goes."""
    quiet_client_log()
    await create_topics(broker.bootstrap_servers)

    async def fail(_: Guards) -> Outage:
        began = time.monotonic()
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(args.away)
        await asyncio.to_thread(broker.start)
        back = time.monotonic()
        return Outage(began, back, back)

    guards = Guards(broker.bootstrap_servers, args.guarantee or GUARANTEES[0], named=False)
    await measure_case(guards, KAFKA, fail, args)


async def measure_judge(bootstrap: str, args: argparse.Namespace) -> None:
    """Run the case of a judge that hangs."""
    quiet_client_log()
    await create_topics(bootstrap)
    asked: list[float] = []
    calls: list[asyncio.StreamWriter] = []

    def hang(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(time.monotonic())
        calls.append(writer)

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    llm = {"BASE_URL": url, "API_KEY": "none", "MODEL": "hangs"}
    settings = {f"GUARDRAIL_JUDGE__LLM__{name}": value for name, value in llm.items()}
    settings["GUARDRAIL_JUDGE__CACHE__ENABLED"] = "false"  # all answers are the same
    guards = Guards(
        bootstrap, GUARANTEES[0], named=False, settings={"GUARDRAIL_JUDGE__KIND": "llm", **settings}
    )
    seen, over = Seen(), asyncio.Event()
    opened = guards.logged_at.setdefault("judge.circuit_open", [])
    try:
        for number in range(args.guards):
            await guards.start(number)
        async with (
            GuardClient(bootstrap, reply_partitions=None, timeout_s=180.0) as client,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(args.streams):
                group.create_task(stream(client, seen, over))
            while len(opened) < args.guards:  # noqa: ASYNC110 - the logs are of other processes
                await asyncio.sleep(0.1)
            over.set()
    finally:
        await guards.stop()
        for call in calls:
            call.close()
        server.close()
    told = {"kind": JUDGE, "guards": args.guards, "streams": args.streams, "questions": len(asked)}
    print(json.dumps(told | {"opened after, s": [round(at - asked[0], 1) for at in opened]}), flush=True)


@dataclass(frozen=True, slots=True)
class Outage:
    """When it began, from when on waits count, and when all was there again."""

    began: float
    counts: float
    ended: float


async def measure_case(
    guards: Guards, kind: str, fail: Callable[[Guards], Awaitable[Outage]], args: argparse.Namespace
) -> None:
    """Run, let fail and report."""
    seen, over = Seen(), asyncio.Event()
    outages: list[Outage] = []
    try:
        for number in range(args.guards):
            await guards.start(number)
        await asyncio.sleep(5)
        verdicts = AIOKafkaConsumer(
            Topics().verdicts, bootstrap_servers=guards.bootstrap, isolation_level="read_committed"
        )
        async with (
            GuardClient(guards.bootstrap, reply_partitions=None, timeout_s=180.0) as client,
            verdicts,
            beside(note_flagged(verdicts, seen)),
            asyncio.TaskGroup() as group,
        ):
            for _ in range(args.streams):
                group.create_task(stream(client, seen, over))
            for _ in range(args.kills):
                await asyncio.sleep(_SETTLED_S)
                outages.append(await fail(guards))
                await asyncio.sleep(_SETTLED_S)
            await asyncio.sleep(4 * _SETTLED_S if kind == KAFKA else _SETTLED_S)
            over.set()
    finally:
        await guards.stop()
    about = {"guarantee": guards.guarantee, "kind": kind, "guards": args.guards}
    print(json.dumps(about | report(seen, outages), indent=2), flush=True)


def report(seen: Seen, outages: list[Outage]) -> dict[str, object]:
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
        "right answers blocked": {
            "share": round(len(seen.blocked) / max(1, seen.finished), 4),
            "count": len(seen.blocked),
            "by rule": dict(Counter(seen.blocked)),
        },
        "right answers flagged": {"count": len(seen.flagged), "by rule": dict(Counter(seen.flagged))},
        "ended in an error": {name: seen.errors.count(name) for name in sorted({*seen.errors})},
    }


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--guards", type=int, default=3)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--guarantee", choices=GUARANTEES)
    parser.add_argument("--kind", choices=(*KINDS, KAFKA, JUDGE))
    parser.add_argument("--away", type=float, default=60.0, help="seconds, of Kafka or a frozen guard")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.kind == KAFKA:
        from tests.support.kafka_broker import KafkaBroker

        with KafkaBroker() as broker:
            uvloop.run(measure_kafka(broker, args))
        return
    with kafka_for_benchmark(args.bootstrap_servers) as bootstrap:
        uvloop.run((measure_judge if args.kind == JUDGE else measure)(bootstrap, args))


if __name__ == "__main__":
    main()
