"""Runs episodes by seed, or by bytes, and gathers what was found."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import random
import selectors
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.fuzzing.records import BytesRandom, FuzzRecord, episode
from tests.support.fuzzing.world import OUTCOMES, World


class NothingScheduled(Exception):
    """The loop would wait for ever: no timer is set, and nothing comes from outside."""


class _NoWaiting(selectors.DefaultSelector):
    """Polls; the time that would have been waited is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingScheduled
        if timeout > 0:
            self.now += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Days pass in milliseconds, and the same things happen in the same order every time.

    For code without threads and sockets: ``time()`` starts at 0 and stands still while callbacks run.
    """

    def __init__(self) -> None:
        self._virtual = _NoWaiting()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


HANGS_AFTER_S = 300.0
"""An episode takes some hundredths of a second."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault: the seed that shows it, and what was seen."""

    seed: int
    kind: str
    message: str
    where: str


@dataclass(slots=True)
class Tally:
    """What came of any number of episodes."""

    counts: Counter[str] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    records: int = 0
    mutated: int = 0
    episodes: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.mutations.update(other.mutations)
        self.records += other.records
        self.mutated += other.mutated
        self.episodes += other.episodes
        self.findings += other.findings

    def note(self, records: list[FuzzRecord]) -> None:
        self.episodes += 1
        self.records += len(records)
        self.mutated += sum(bool(record.mutations) for record in records)
        for record in records:
            self.mutations.update(record.mutations)

    @property
    def accounted(self) -> int:
        """Records that took effect, repeated one, were passed over, or were refused with a reason."""
        return sum(n for what, n in self.counts.items() if what.startswith(OUTCOMES))


def run_seeds(seeds: Iterable[int]) -> Tally:
    """One episode a seed. What is found is returned; a hang ends the process, with its traces."""
    tally = Tally()
    with _silenced():
        for seed in seeds:
            rng = random.Random(seed)
            records = episode(rng)
            tally.note(records)
            faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
            finding = _run(records, rng, tally, seed)
            faulthandler.cancel_dump_traceback_later()
            if finding is not None:
                tally.findings.append(finding)
    return tally


@contextmanager
def _silenced() -> Iterator[None]:
    """Faulty judges are what this is about: their warnings are no news. Others' loggers stay as they were."""
    logger = logging.getLogger("guardrail")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def run_bytes(data: bytes) -> None:
    """One episode made from ``data``; raises what it finds."""
    rng = BytesRandom(data)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(World(rng, Counter()).run(episode(rng)))


def _run(records: list[FuzzRecord], rng: random.Random, tally: Tally, seed: int) -> Finding | None:
    try:
        # A loop of its own, so that what a fault leaves behind can't touch the next episode.
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(World(rng, tally.counts).run(records))
    except Exception as error:  # noqa: BLE001 - finding them is what this is for
        lines = traceback.format_exception(error)
        return Finding(seed, type(error).__name__, str(error)[:2_000], "".join(lines)[-4_000:])
    return None
