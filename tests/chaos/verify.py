"""The end of a run: reads everything back and has it checked, within bounded memory.

Records go to a file for each bucket of cases first, and are checked bucket by bucket.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from tests.chaos.checker import (
    Place,
    aborted_records,
    check_case,
    check_dead_letters,
    check_positions,
    check_reads,
    check_sessions,
)
from tests.chaos.history import Anomaly, Found, Log, Logs, Read
from tests.chaos.readers import OUTPUTS, ends, read_all, read_logs
from tests.chaos.sender import BAD_HEADERS
from tests.chaos.workload import Workload, number_of

CASES_A_BUCKET: Final = 2_000
KEPT_EXAMPLES: Final = 20
"""Of each anomaly; all are counted."""
_SETTLE_S: Final = 60.0


@dataclass(slots=True)
class Findings:
    """What the checker has to say of a run."""

    counts: Counter[Anomaly] = field(default_factory=Counter)
    examples: list[Found] = field(default_factory=list)
    records: Counter[str] = field(default_factory=Counter)
    """Committed records by role of the topic."""
    aborted: int = 0
    """Records that stand in the output topics and were aborted."""
    unplanned: int = 0
    """Cases whose input is not as planned, of which nothing can be said."""

    def add(self, found: Iterator[Found] | list[Found]) -> None:
        for one in found:
            self.counts[one.anomaly] += 1
            if self.counts[one.anomaly] <= KEPT_EXAMPLES:
                self.examples.append(one)


class Verifier:
    """Reads a run's topics (name by role) and checks them."""

    def __init__(
        self, bootstrap: str, group: str, topics: Mapping[str, str], partitions: int, folder: Path
    ) -> None:
        self._bootstrap = bootstrap
        self._group = group
        self._topics = topics
        self._outputs = {role: topics[role] for role in OUTPUTS}
        self._input = {"responses": topics["responses"]}
        self._partitions = partitions
        self._folder = folder

    async def settled(self) -> bool:
        """Wait until all is read and committed and no transaction is open; False when that never is."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SETTLE_S
        while loop.time() < deadline:
            try:
                if await self._settled():
                    return True
            except KafkaError as error:
                if not error.retriable:
                    raise  # else: the broker has just been started
            await asyncio.sleep(0.2)
        return False

    async def _settled(self) -> bool:
        stable = await ends(self._bootstrap, "read_committed", self._outputs, self._partitions)
        high = await ends(self._bootstrap, "read_uncommitted", self._outputs, self._partitions)
        return stable == high and not [*check_positions(*await self._positions())]

    async def check(self, workload: Workload, live: Logs) -> Findings:
        """All checks. ``live`` is what the reader saw that was there all the time."""
        findings = Findings()
        final: Logs = {(role, n): Log() for role in self._outputs for n in range(self._partitions)}
        letters = await self._spool(workload, final, findings)
        dead: dict[Place, Read] = {}
        may_be_dead: set[Place] = set()
        for number, inputs, outputs in self._spooled(workload):
            report = check_case(workload.case(number), inputs, outputs)
            findings.unplanned += not report.as_planned
            findings.add(report.found)
            dead |= report.dead
            may_be_dead |= report.may_be_dead
        findings.add(check_dead_letters(dead, may_be_dead, letters, BAD_HEADERS))
        uncommitted = await read_logs(self._bootstrap, "read_uncommitted", self._outputs, self._partitions)
        findings.aborted = aborted_records(final, uncommitted)
        findings.add(check_reads(live, final, uncommitted))
        findings.add(check_sessions(await self._sessions()))
        findings.add(check_positions(*await self._positions()))
        return findings

    async def _spool(self, workload: Workload, final: Logs, findings: Findings) -> list[Read]:
        """Everything committed into the buckets' files; returns the dead letters, which are few."""
        letters: list[Read] = []
        buckets = workload.cases // CASES_A_BUCKET + 1
        with ExitStack() as stack:
            files = [stack.enter_context(self._bucket(n).open("w")) for n in range(buckets)]
            async for batch in read_all(
                self._bootstrap, "read_committed", {**self._input, **self._outputs}, self._partitions
            ):
                for read in batch:
                    findings.records[read.topic] += 1
                    if read.topic != "responses":
                        final[read.topic, read.partition].add(read.offset, read.key, read.value)
                    if read.topic == "dead_letters":
                        letters.append(read)
                        continue
                    number = number_of(read.key, read.value)
                    if number is None or number >= workload.cases:
                        findings.add([Found(Anomaly.NO_INPUT, str(read.key), read.place)])
                        continue
                    files[number // CASES_A_BUCKET].write(_line(number, read))
        return letters

    def _spooled(self, workload: Workload) -> Iterator[tuple[int, list[Read], list[Read]]]:
        """Number, inputs and outputs of every case."""
        for bucket in range(workload.cases // CASES_A_BUCKET + 1):
            inputs: dict[int, list[Read]] = {}
            outputs: dict[int, list[Read]] = {}
            with self._bucket(bucket).open() as file:
                for line in file:
                    number, read = _parsed(line)
                    (inputs if read.topic == "responses" else outputs).setdefault(number, []).append(read)
            first = bucket * CASES_A_BUCKET
            for number in range(first, min(first + CASES_A_BUCKET, workload.cases)):
                yield number, inputs.get(number, []), outputs.get(number, [])

    def _bucket(self, number: int) -> Path:
        return self._folder / f"cases-{number:04d}.jsonl"

    async def _sessions(self) -> dict[bytes, bool]:
        """Every key of the sessions topic, true where its last committed record is no tombstone."""
        latest: dict[bytes, bool] = {}
        sessions = {"sessions": self._topics["sessions"]}
        async for batch in read_all(self._bootstrap, "read_committed", sessions, self._partitions):
            for read in batch:
                # Partitions count by themselves.
                latest[f"{(read.key or b'').decode()} in {read.partition}".encode()] = read.value is not None
        return latest

    async def _positions(self) -> tuple[dict[int, int], dict[int, int]]:
        """The group's committed positions and the ends of the input, by partition."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            found = await admin.list_consumer_group_offsets(self._group)
        finally:
            await admin.close()
        committed = {
            tp.partition: at.offset for tp, at in found.items() if tp.topic == self._topics["responses"]
        }
        input_ends = await ends(self._bootstrap, "read_uncommitted", self._input, self._partitions)
        return committed, {n: offset for (_, n), offset in input_ends.items()}


def _line(number: int, read: Read) -> str:
    key = None if read.key is None else read.key.decode("latin-1")
    value = None if read.value is None else read.value.decode("latin-1")
    place = [read.topic, read.partition, read.offset, read.timestamp_ms]
    return json.dumps([number, *place, key, value]) + "\n"


def _parsed(line: str) -> tuple[int, Read]:
    number, topic, partition, offset, timestamp_ms, key, value = json.loads(line)
    key = None if key is None else key.encode("latin-1")
    value = None if value is None else value.encode("latin-1")
    return number, Read(topic, partition, offset, timestamp_ms, key, value)
