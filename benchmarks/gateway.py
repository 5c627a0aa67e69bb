"""What ``guardrail serve`` adds to a stream, beside a bare reverse proxy on the same machine.

    python -m benchmarks.gateway

One process writes chat completions at a model's pace and reads them again: through ``benchmarks.bare_proxy``,
which relays bytes, and through the gateway with a judge that answers at once, in turns. Told are

- how long a piece was under way, from the token that completes it: for the proxy each token, for the gateway
  each segment, which is complete when the cutter says so. The judge takes nothing, so that this is what the
  gateway adds to claims that are complete and judged, the way of the bytes included;
- processor time of the process between, a token written, its share of the requests included;
- resident memory of the gateway's process: idle, and the most while the streams run.

``direct`` is without anything between: what the two ends of the load need themselves.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

import uvloop

from benchmarks.chat_load import Answer, Model, read_all
from benchmarks.frame import (
    command_line,
    cpu_seconds,
    machine,
    markdown_row,
    p50_p99,
    percentile,
    resident_bytes,
)
from guardrail.judges.streams import beside

SETTINGS: Final = {
    "judge.kind": "custom",
    "judge.factory": "benchmarks.instant_judge:InstantJudge",
    "judge.cache.ttl_seconds": "0",
    "logging.format": "json",
    "ops.port": "0",
}
GATEWAY: Final = ("-c", "from guardrail.cli import main; main()", "serve", "--port", "0")
_LISTENS: Final = re.compile(rb'"serve.listening".*"port": ?(\d+)')
_LOOKS_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Between:
    """A process between the two ends; none is ``direct``."""

    name: str
    port: int
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """What one round came to."""

    p50_ms: float
    p99_ms: float
    us_a_token: float
    most_bytes: int


@asynccontextmanager
async def running(
    name: str, *arguments: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Between]:
    """A program that logs on which port it listens; it is ended with the block."""
    named = {
        f"GUARDRAIL_{path.replace('.', '__').upper()}": value for path, value in (settings or {}).items()
    }
    pipe, joined = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, env=os.environ | named, stdout=pipe, stderr=joined
    )
    log = process.stdout
    assert log is not None

    async def passed_over() -> None:
        async for _ in log:
            pass

    try:
        said = b""
        while (port := _LISTENS.search(said)) is None:
            line = await log.readline()
            if not line:
                raise RuntimeError(f"{name} ended before it listened: {said.decode(errors='replace')}")
            said += line
        async with beside(passed_over()):
            yield Between(name, int(port[1]), process.pid)
    finally:
        process.terminate()
        await process.wait()


async def one_round(
    between: Between, streams: int, tokens: int, answers: list[Answer], begin_s: float
) -> Round:
    """Let all streams run through it once."""
    answers[:] = [Answer.of(number, tokens) for number in range(streams)]
    most = 0

    async def watch() -> None:
        nonlocal most
        while between.pid is not None:
            most = max(most, resident_bytes(between.pid))
            await asyncio.sleep(_LOOKS_S)

    busy = 0.0 if between.pid is None else -cpu_seconds(between.pid)
    async with beside(watch()):
        await read_all(between.port, answers, begin_s)
    busy += 0.0 if between.pid is None else cpu_seconds(between.pid)
    times = p50_p99([delay for answer in answers for delay in answer.delays_s()])
    return Round(times["p50"], times["p99"], busy / (streams * tokens) * 1e6, most)


async def measure(streams: int, rate: float, tokens: int, rounds: int, begin_s: float) -> None:
    """Print the table of one load."""
    print(
        f"\n{streams:,} streams of {rate:g} tokens a second, {tokens} tokens each; {machine()}\n", flush=True
    )
    answers: list[Answer] = []
    async with AsyncExitStack() as stack:
        server = await asyncio.get_running_loop().create_server(
            lambda: Model(answers, rate), "127.0.0.1", 0, backlog=2048
        )
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        upstream = f"http://127.0.0.1:{port}/v1"
        proxy = running("bare proxy", "-m", "benchmarks.bare_proxy", upstream)
        serve = running("gateway", *GATEWAY, "--upstream", upstream, settings=SETTINGS)
        bare, gateway = await stack.enter_async_context(proxy), await stack.enter_async_context(serve)
        every = (Between("direct", port), bare, gateway)
        for each in every:
            await one_round(each, min(streams, 20), 20, answers, 0.5)  # what is loaded and cached once
        idle = resident_bytes(gateway.pid)
        found: dict[str, list[Round]] = {each.name: [] for each in every}
        for number in range(rounds):
            for each in every:
                told = await one_round(each, streams, tokens, answers, begin_s)
                found[each.name].append(told)
                cells = {
                    "round": number + 1,
                    "between": each.name,
                    "p50 ms": told.p50_ms,
                    "p99 ms": told.p99_ms,
                    "processor time a token, µs": round(told.us_a_token),
                    "memory, MB": round(told.most_bytes / 1e6),
                }
                print(markdown_row(cells, head=number == 0 and each is every[0]), flush=True)
    print(f"\nThe gateway, which took {idle / 1e6:.0f} MB idle, beside the bare proxy, by rounds:")
    for what in ("p50_ms", "p99_ms", "us_a_token"):
        rounds_of = zip(found["gateway"], found["bare proxy"], strict=True)
        ratios = sorted(getattr(ours, what) / getattr(theirs, what) for ours, theirs in rounds_of)
        print(f"  {what}: {percentile(ratios, 0.5):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f})")


async def run(rounds: int) -> None:
    """Both loads."""
    await measure(100, 20, 300, rounds, begin_s=1)
    await measure(1_000, 2, 60, 1, begin_s=10)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of the first load")
    uvloop.run(run(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
