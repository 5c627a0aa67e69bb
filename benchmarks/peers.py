"""What a verdict costs in time and tokens: the guard against the evaluators that people would use instead.

    python -m benchmarks.peers

One simulated endpoint (``benchmarks.peers_endpoint``) is the model of all of them and knows the truth. The
same answers with the same errors are written at 50 tokens a second; the guard gets them as they are written,
the peers, which take whole answers only, after the last token. The peers are installed into an environment of
their own on first use, which takes some minutes and 900 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import uvloop

from benchmarks.frame import command_line, machine, markdown_row, percentile
from benchmarks.peers_answers import TOKENS_PER_SECOND, Case, load
from benchmarks.peers_systems import (
    DECIDED,
    OURS,
    ROOT,
    SYSTEMS,
    Outcome,
    System,
    installed,
    opened,
    peers_python,
)
from benchmarks.peers_tokens import CACHE_MINIMUM, CACHE_STEP, Usage

WARM_UP = 20
"""Answers judged before the measurement: connections, caches, lazy imports and patterns that are compiled
when they are first needed are warm in every system."""
CHAT_PRICE = (0.40, 0.10, 1.60)
"""What a million tokens cost in USD: read, of them cached, written. Of gpt-4.1-mini, …"""
DECISIONS_PRICE = (0.10, 0.0, 0.0)
"""… and of gpt-6-luna's decisions; OpenAI's prices in November 2026."""


@dataclass(frozen=True, slots=True)
class Result:
    """One system at one concurrency. Figures per answer are of all that were asked, failed ones too."""

    system: str
    at_once: int
    outcomes: tuple[Outcome, ...]
    spent: Usage
    processor_s: float
    """Of the system's process, over all answers; for ours with the writers of the answers, which share it."""

    def errors(self) -> set[str]:
        """What went wrong, each once."""
        unknown = (
            {f"{self.spent.unknown} claims or prompts unknown to the model"} if self.spent.unknown else set()
        )
        return unknown | {outcome.error for outcome in self.outcomes if outcome.error}

    def cells(self) -> dict[str, str]:
        """The row of the table. Delays are of the answers that were judged, the first error known of those
        where one was; calls and tokens are per answer."""
        count, spent = len(self.outcomes), self.spent
        delays = [each.delay_s * 1000 for each in self.outcomes if not each.error]
        first = [each.first_bad_s * 1000 for each in self.outcomes if each.first_bad_s is not None]
        prices = DECISIONS_PRICE if self.system in DECIDED else CHAT_PRICE
        tokens = (spent.prompt_tokens - spent.cached_tokens, spent.cached_tokens, spent.output_tokens)
        cost_usd = sum(price * each for price, each in zip(prices, tokens, strict=True)) / 1_000_000
        return {
            "at once": f"{self.at_once}",
            "system": self.system,
            "answers": f"{count}",
            "delay p50 (ms)": f"{percentile(delays, 0.5):,.0f}",
            "delay p95 (ms)": f"{percentile(delays, 0.95):,.0f}",
            "first error known p50 (ms)": f"{percentile(first, 0.5):+,.0f}",
            "before the end": f"{sum(at < 0 for at in first) / count:.0%}",
            "calls": f"{spent.calls / count:.1f}",
            "tokens in": f"{spent.prompt_tokens / count:,.0f}",
            "of them cached": f"{spent.cached_tokens / count:,.0f}",
            "tokens out": f"{spent.output_tokens / count:,.0f}",
            "USD for 1,000": f"{1000 * cost_usd / count:.2f}",
            "right": f"{sum(each.right for each in self.outcomes) / count:.0%}",
            "processor (ms)": f"{1000 * self.processor_s / count:,.0f}",
        }


@dataclass(frozen=True, slots=True)
class Model:
    """The simulated endpoint, while it runs."""

    address: str
    tokenizer: str

    def base_url(self, label: str) -> str:
        return f"{self.address}/{label}/v1"

    async def usage(self, label: str) -> Usage:
        """What was spent under a label so far."""
        reply = await asyncio.to_thread(urllib.request.urlopen, f"{self.address}/{label}/usage")
        return Usage(**json.load(reply))


@asynccontextmanager
async def simulated_model(args: argparse.Namespace, python: Path) -> AsyncIterator[Model]:
    """The endpoint in a process of its own, run by ``python``."""
    options = {
        "--ttft-ms": args.ttft_ms * args.slow_motion,
        "--token-ms": args.token_ms * args.slow_motion,
        "--cache-minimum": args.cache_minimum,
        "--cache-step": args.cache_step,
    }
    command = [str(python), "-m", "benchmarks.peers_endpoint", *map(str, itertools.chain(*options.items()))]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Model(**json.loads(await process.stdout.readline()))
    finally:
        process.stdin.close()
        await process.wait()


def numbered(cases: Sequence[Case]) -> Iterator[Case]:
    """The cases again and again, never the same documents twice."""
    for number, case in enumerate(itertools.cycle(cases), 1):
        yield case.copy(number)


async def judge_all(
    system: System, cases: Sequence[Case], at_once: int, rng: random.Random, slow_motion: float = 1.0
) -> list[Outcome]:
    """Outcomes of ``cases``, of which ``at_once`` are written or judged at any time."""
    waiting = iter(cases)
    outcomes: list[Outcome] = []

    async def slot(start: float) -> None:
        for case in waiting:
            try:
                outcomes.append(await system.judge(case, start))
            except Exception as error:  # noqa: BLE001 - a failure is a result, and is reported as one
                failed = f"{type(error).__name__}: {error}"
                outcomes.append(Outcome(0.0, None, right=False, error=failed))
            start = time.monotonic()

    # Writers don't begin in step: they are spread over the time that one answer takes.
    spread = len(cases[0].deltas()) * slow_motion / TOKENS_PER_SECOND if at_once > 1 else 0.0
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(slot(time.monotonic() + rng.uniform(0.0, spread)))
    return outcomes


async def measure(
    name: str, at_once: int, model: Model, python: Path | None, args: argparse.Namespace
) -> Result:
    """One system at one concurrency."""
    label = f"{name}-{at_once}"
    cases = numbered(load())
    async with opened(name, model.base_url(label), python, args.judge, args.slow_motion) as system:
        ahead = list(itertools.islice(cases, WARM_UP))
        await judge_all(system, ahead, max(WARM_UP, at_once), random.Random(0))
        before, began = await model.usage(label), system.processor_s()
        measured = list(itertools.islice(cases, max(args.answers, at_once)))
        outcomes = await judge_all(system, measured, at_once, random.Random(at_once), args.slow_motion)
        after, ended = await model.usage(label), system.processor_s()
    spent = Usage(*(getattr(after, f.name) - getattr(before, f.name) for f in fields(Usage)))
    return Result(name, at_once, tuple(outcomes), spent, ended - began)


async def run(args: argparse.Namespace) -> None:
    """Measure and report."""
    # For ours alone the peers' environment is not made, but used if it is there: its tokenizer is better.
    ours = OURS.keys() >= set(args.systems)
    python = installed() if ours else peers_python()
    first = True
    async with simulated_model(args, python or Path(sys.executable)) as model:
        for at_once, name in itertools.product(args.concurrency, args.systems):
            result = await measure(name, at_once, model, python, args)
            print(markdown_row(result.cells(), head=first), flush=True)
            first = False
            for error in sorted(result.errors())[:3]:
                print(f"    {error}", file=sys.stderr)
    print(
        f"\n{machine()}, {args.slow_motion:g} times slow motion; {args.ttft_ms:g} ms to the first token, "
        f"{args.token_ms:g} ms a token; prefixes cached from {args.cache_minimum} tokens on in steps of "
        f"{args.cache_step}; tokens counted by {model.tokenizer}"
    )


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS, metavar="NAME")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 20, 200], help="answers at once")
    parser.add_argument("--answers", type=int, default=20, help="at least so many of each (default 20)")
    parser.add_argument(
        "--judge", type=json.loads, help='settings of ours: \'{"llm": {"reasoning": "none"}}\''
    )
    parser.add_argument("--ttft-ms", type=float, default=350.0, help="model's time to first token")
    parser.add_argument("--token-ms", type=float, default=8.0, help="model's time per output token")
    parser.add_argument("--cache-minimum", type=int, default=CACHE_MINIMUM, help="shortest cached prefix")
    parser.add_argument("--cache-step", type=int, default=CACHE_STEP, help="tokens that prefix grows by")
    parser.add_argument(
        "--slow-motion",
        type=float,
        default=1.0,
        help="everything so many times slower, and the times told as if it were not: what a machine so many "
        "times as fast would do, or what is left on a busy one of the calls without the computing",
    )
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
