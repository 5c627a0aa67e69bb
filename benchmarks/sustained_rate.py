"""How many answers a second guards with an LLM judge keep up with, and what they take of a processor.

    python -m benchmarks.sustained_rate --rates 10 20 30 --guards 2

Answers begin at a steady rate whatever becomes of those before, unlike in ``benchmarks.peers``, where one
begins when another ends: guards that are too slow fall behind, and ever more answers are under way. Answers,
model and judge are those of ``benchmarks.peers``. Each guard is a process of its own, bound to a processor
where there is one for each. What the simulated model takes of a processor is told beside.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from benchmarks.peers import numbered, simulated_model
from benchmarks.peers_answers import TOKENS_PER_SECOND, load
from benchmarks.peers_environment import installed
from benchmarks.peers_report import machine, percentile
from benchmarks.peers_systems import opened
from benchmarks.peers_tokens import CACHE_MINIMUM, CACHE_STEP

_GROWS: Final = 1.1
"""A queue grows if so many times as many answers are under way in the last third as in the second."""
_START_S: Final = 15.0
"""Processes start and warm up in this time; the schedule begins after it for all of them at once."""
_HEAD: Final = (
    "| answers a second | guards | answers | delay p50 · p99, middle third (ms) | last third (ms) "
    "| under way, middle · last third | right | processor an answer (ms) | busy, of the guards' processors "
    "| model's processor | keeps up |\n"
    "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
)


class Part(NamedTuple):
    """What one guard is given."""

    number: int
    guards: int
    base_url: str
    rate: float
    """Answers a second of all guards together, in real time."""
    seconds: float
    begin: float
    """On the monotonic clock, which the processes of a machine share."""
    slow_motion: float


class Ended(NamedTuple):
    """One answer, in seconds of real time after the beginning; ``delay_s`` is told as at full speed."""

    began: float
    ended: float
    delay_s: float
    right: bool
    error: str


class Report(NamedTuple):
    """What came of a part."""

    answers: list[Ended]
    processor_s: float
    """For these answers."""
    process_s: float
    """Of the whole process, with its start."""


def drive(part: Part) -> Report:
    """Begin answers at their times and wait for all of them; the body of a process."""
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(processors) >= part.guards:
        os.sched_setaffinity(0, {processors[part.number]})
    return uvloop.run(_drive(part))


async def _drive(part: Part) -> Report:
    cases = numbered(load())
    ended: list[Ended] = []
    async with opened("guardrail-llm", part.base_url, None, None, part.slow_motion) as system:
        async with asyncio.TaskGroup() as group:
            for case in itertools.islice(cases, 3):
                group.create_task(system.judge(case, time.monotonic()))
        used = system.processor_s()
        if time.monotonic() > part.begin:
            raise RuntimeError(f"a guard took more than {_START_S:g} s to start; is the machine busy?")

        async def answer(begin: float) -> None:
            case = next(cases)
            outcome = await system.judge(case, part.begin + begin)
            now = time.monotonic() - part.begin
            ended.append(Ended(begin, now, outcome.delay_s, outcome.right, outcome.error))

        async with asyncio.TaskGroup() as group:
            for number in range(part.number, round(part.rate * part.seconds), part.guards):
                begin = number / part.rate
                await asyncio.sleep(part.begin + begin - time.monotonic())
                group.create_task(answer(begin))
        return Report(ended, system.processor_s() - used, time.process_time())


@dataclass(frozen=True, slots=True)
class Third:
    """The answers that began in one third of the time."""

    answers: list[Ended]
    under_way: float
    """How many answers were under way on average."""

    @classmethod
    def of(cls, number: int, answers: Sequence[Ended], seconds: float) -> Third:
        """The third with this number, counted from 0."""
        start, end = seconds * number / 3, seconds * (number + 1) / 3
        inside = sum(max(0.0, min(each.ended, end) - max(each.began, start)) for each in answers)
        return cls([each for each in answers if start <= each.began < end], inside / (end - start))

    def delays(self) -> str:
        told = [each.delay_s * 1000 for each in self.answers if not each.error]
        return f"{percentile(told, 0.5):,.0f} · {percentile(told, 0.99):,.0f}"


async def measure(rate: float, args: argparse.Namespace) -> bool:
    """Print the line of one rate. Do the guards keep up?"""
    slow: float = args.slow_motion
    seconds = args.seconds * slow
    python = installed() or Path(sys.executable)  # the peers' has a better tokenizer
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    context = multiprocessing.get_context("spawn")
    async with simulated_model(python, args) as model:
        begin = time.monotonic() + _START_S
        parts = [
            Part(n, args.guards, model.base_url(f"guard-{n}"), rate / slow, seconds, begin, slow)
            for n in range(args.guards)
        ]
        with ProcessPoolExecutor(args.guards, mp_context=context) as pool:
            loop = asyncio.get_running_loop()
            reports = await asyncio.gather(*(loop.run_in_executor(pool, drive, part) for part in parts))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answers = [each for report in reports for each in report.answers]
    processor_s = sum(report.processor_s for report in reports)
    everything_s = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    model_s = everything_s - sum(report.process_s for report in reports)
    middle, last = (Third.of(n, answers, seconds) for n in (1, 2))
    keeps_up = last.under_way <= _GROWS * middle.under_way and not any(each.error for each in answers)
    elapsed = max(each.ended for each in answers)
    cells = (
        f"{rate:g}",
        f"{args.guards}",
        f"{len(answers):,}",
        middle.delays(),
        last.delays(),
        f"{middle.under_way:.0f} · {last.under_way:.0f}",
        f"{sum(each.right for each in answers) / len(answers):.1%}",
        f"{1000 * processor_s / len(answers):.0f}",
        f"{processor_s / elapsed / args.guards:.0%}",
        f"{model_s / elapsed:.0%}",
        "yes" if keeps_up else "no",
    )
    print(f"| {' | '.join(cells)} |", flush=True)
    for error in sorted({each.error for each in answers if each.error})[:3]:
        print(f"    {error}", file=sys.stderr)
    return keeps_up


async def run(args: argparse.Namespace) -> None:
    """Measure every rate, until the guards no longer keep up."""
    answer_s = sum(len(case.deltas()) for case in load()) / len(load()) / TOKENS_PER_SECOND
    print(f"{machine()}; an answer takes {answer_s:.1f} s to write; {args.slow_motion:g} times slow motion\n")
    print(_HEAD)
    for rate in args.rates:
        if not await measure(rate, args):
            break


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rates", nargs="+", type=float, default=[10, 20, 30, 60], help="answers a second")
    parser.add_argument("--guards", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long answers begin (default 30)")
    parser.add_argument(
        "--slow-motion",
        type=float,
        default=1.0,
        help="everything so many times slower, and told as if it were not: what a machine so many times as "
        "fast would do, if its processors were all that differed",
    )
    parser.set_defaults(ttft_ms=350.0, token_ms=8.0, cache_minimum=CACHE_MINIMUM, cache_step=CACHE_STEP)
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
