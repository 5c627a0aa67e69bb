"""What a reader notices when a guard dies without a word: how long nothing comes, and which answers are lost.

    python -m benchmarks.failover [--kills 6] [--guarantee exactly_once] [--kind replaced]

Runs guards with the default settings and the local judge over a Kafka of its own, and streams right answers
through ``GuardClient``, ``--streams`` at once, at 10 tokens a second. Every 30 s one guard is killed by
SIGKILL. A *restarted* one is started again after a second under its own name (``kafka.group_instance_id``);
a *replaced* one only after the others have taken over its partitions. Both kinds under both guarantees, one
after the other, unless the options name one.

The gap of a kill is the longest wait between two pieces of one answer that began before the kill and ended
after it. The report has the median and the longest over the kills, the longest wait while all guards were
well, and how many of the right answers were blocked.
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
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import uvloop

from benchmarks.bare_kafka_loop import kafka_for_benchmark
from consumers.kafka.client import quiet_client_log
from guardrail.client import AnswerBlocked, GuardClient

PARTITIONS = 6
TOKENS_PER_SECOND = 10.0
EVERY_S = 30.0
GUARANTEES = ("exactly_once", "at_least_once")
BACK_AFTER_S = {"restarted": 1.0, "replaced": 20.0}
"""By kind, how long nobody starts the guard that was killed."""
CONTEXT = "The basic plan costs $49 a month. The pro plan costs $99 a month. Refunds are paid within 14 days."
ANSWER = "The basic plan costs $49 a month. The pro plan costs $99 a month. Refunds are paid within 14 days. "
TOKENS = (ANSWER * 3).split(" ")


@dataclass(slots=True)
class Guards:
    """Guard processes on one group."""

    bootstrap: str
    guarantee: str
    kind: str
    group: str = field(default_factory=lambda: f"failover-{uuid.uuid4().hex[:8]}")
    processes: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)

    async def start(self, number: int) -> None:
        """Start one, and come back when it takes part."""
        settings = {
            "GUARDRAIL_OPS__PORT": "0",
            "GUARDRAIL_KAFKA__DELIVERY_GUARANTEE": self.guarantee,
            # What the case before wrote to the topics is not this one's.
            "GUARDRAIL_KAFKA__AUTO_OFFSET_RESET": "latest",
            "PYTHONDONTWRITEBYTECODE": "",  # an installed guard has its byte code
        }
        if self.kind == "restarted":
            settings["GUARDRAIL_KAFKA__GROUP_INSTANCE_ID"] = f"guard-{number}"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from guardrail.cli import main; main()", "run", "--log-format", "json"),
            *("--bootstrap-servers", self.bootstrap, "--group-id", self.group),
            env=os.environ | settings,
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
        self._drain = asyncio.create_task(process.stderr.read())

    async def kill(self, number: int) -> None:
        """Without a word."""
        process = self.processes.pop(number)
        process.send_signal(signal.SIGKILL)
        await process.wait()

    async def stop(self) -> None:
        for process in self.processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()

    _drain: asyncio.Task[bytes] | None = None


@dataclass(slots=True)
class Seen:
    """What readers saw."""

    gaps: list[tuple[float, float]] = field(default_factory=list)
    """When a wait between two pieces began, and how long it was."""
    blocked: list[str] = field(default_factory=list)
    finished: int = 0


async def stream(client: GuardClient, seen: Seen, until: float) -> None:
    """Right answers, one after the other."""

    async def tokens() -> AsyncIterator[str]:
        for token in TOKENS:
            yield token + " "
            await asyncio.sleep(1 / TOKENS_PER_SECOND)

    while time.monotonic() < until:
        last = time.monotonic()
        try:
            async for _ in client.guard("What does it cost?", [CONTEXT], tokens()):
                now = time.monotonic()
                seen.gaps.append((last, now - last))
                last = now
        except AnswerBlocked as blocked:
            seen.gaps.append((last, time.monotonic() - last))
            seen.blocked.append(blocked.rule or "")
        seen.finished += 1


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
        for kind in [args.kind] if args.kind else BACK_AFTER_S:
            await measure_case(bootstrap, guarantee, kind, args)


async def measure_case(bootstrap: str, guarantee: str, kind: str, args: argparse.Namespace) -> None:
    """Run, kill and report."""
    rng = random.Random(args.seed)
    guards, seen = Guards(bootstrap, guarantee, kind), Seen()
    kills: list[float] = []
    try:
        for number in range(args.guards):
            await guards.start(number)
        await asyncio.sleep(5)
        until = time.monotonic() + EVERY_S * (args.kills + 1)
        async with (
            GuardClient(bootstrap, reply_partitions=None, timeout_s=120.0) as client,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(args.streams):
                group.create_task(stream(client, seen, until))
            for _ in range(args.kills):
                await asyncio.sleep(EVERY_S - BACK_AFTER_S[kind])
                number = rng.choice(sorted(guards.processes))
                kills.append(time.monotonic())
                await guards.kill(number)
                await asyncio.sleep(BACK_AFTER_S[kind])
                await guards.start(number)
    finally:
        await guards.stop()
    about = {"guarantee": guarantee, "kind": kind, "guards": args.guards}
    print(json.dumps(about | report(seen, kills), indent=2), flush=True)


def report(seen: Seen, kills: list[float]) -> dict[str, object]:
    """The figures."""
    hit = [[length for start, length in seen.gaps if start <= at < start + length] for at in kills]
    well = [
        length
        for start, length in seen.gaps
        if not any(start - 1 <= at + 20 and at <= start + length for at in kills)
    ]
    longest = [max(lengths, default=0.0) for lengths in hit]
    reasons: dict[str, int] = {}
    for rule in seen.blocked:
        reasons[rule] = reasons.get(rule, 0) + 1
    return {
        "kills": len(kills),
        "gap_s": {"p50": round(statistics.median(longest), 1), "max": round(max(longest), 1)},
        "gap_s while all are well, max": round(max(well, default=0.0), 1),
        "answers": seen.finished,
        "right answers blocked": {
            "share": round(len(seen.blocked) / max(1, seen.finished), 4),
            "count": len(seen.blocked),
            "by rule": reasons,
        },
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--guards", type=int, default=3)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--guarantee", choices=GUARANTEES)
    parser.add_argument("--kind", choices=BACK_AFTER_S)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="default: a Kafka of its own")
    args = parser.parse_args()
    with kafka_for_benchmark(args.bootstrap_servers) as bootstrap:
        uvloop.run(measure(bootstrap, args))


if __name__ == "__main__":
    main()
