"""What it saves to let claims gather before a language model is asked, and what it adds to the delay.

    python -m benchmarks.peers_waits --out docs/benchmarks

The answers, the simulated model and the figures are those of ``benchmarks.peers``; what differs from run to
run is ``judge.llm.max_wait_ms`` (``judge.cascade.max_wait_ms`` for the cascade).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvloop

from benchmarks.peers import measure, simulated_model
from benchmarks.peers_environment import installed
from benchmarks.peers_report import Result, machine, percentile
from benchmarks.peers_systems import OURS
from benchmarks.peers_tokens import CACHE_MINIMUM, CACHE_STEP

WAITS_MS = (0, 500, 1000, 1500, 2500, 4000)
_HEAD = (
    "| system | max_wait_ms | delay p50 (ms) | first error known p50 (ms) | calls | tokens in | billed "
    "| right |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def line(wait_ms: int, result: Result) -> str:
    """A row of the table."""
    count = len(result.outcomes)
    cells = (
        result.system,
        f"{wait_ms:,}",
        f"{percentile(result.delays_ms(), 0.5):,.0f}",
        f"{percentile(result.first_bad_ms(), 0.5):+,.0f}",
        f"{result.spent.calls / count:.1f}",
        f"{result.tokens():,.0f}",
        f"{result.billed():,.0f}",
        f"{result.right():.0%}",
    )
    return f"| {' | '.join(cells)} |"


def plot(path: Path, results: dict[str, dict[int, Result]]) -> None:
    """Cost against delay: a line for each system and price of cached tokens, a point for each wait."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    for color, (system, by_wait) in zip(("tab:green", "tab:blue"), results.items(), strict=False):
        delays = [percentile(each.delays_ms(), 0.5) for each in by_wait.values()]
        for tokens, style, what in (
            ([each.tokens() for each in by_wait.values()], "-", "no prefix cache"),
            ([each.billed() for each in by_wait.values()], "--", "cached at a quarter"),
        ):
            axes.plot(delays, tokens, style, marker="o", color=color, label=f"{system}, {what}")
            for wait_ms, delay, count in zip(by_wait, delays, tokens, strict=True):
                axes.annotate(f"{wait_ms:,}", (delay, count), (4, 4), textcoords="offset points", fontsize=8)
    axes.set_xlabel("last token to full verdict, ms (p50)")
    axes.set_ylabel("prompt tokens an answer")
    axes.set_ylim(bottom=0)
    axes.set_title("Points: max_wait_ms")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


async def run(args: argparse.Namespace) -> int:
    """Measure and report."""
    python = installed() or Path(sys.executable)  # the peers' has a better tokenizer
    results: dict[str, dict[int, Result]] = {}
    print(_HEAD)
    async with simulated_model(python, args) as model:
        for system in args.systems:
            for wait_ms in args.waits:
                kind = OURS[system]
                args.judge = {kind: {"max_wait_ms": wait_ms}}
                result = await measure(system, args.concurrency, model, None, args, f"-{wait_ms}")
                results.setdefault(system, {})[wait_ms] = result
                print(line(wait_ms, result), flush=True)
    print(f"\n{machine()}; {args.concurrency} answers at once; tokens counted by {model.tokenizer}")
    if args.out is not None:
        plot(args.out / "peers-waits.png", results)
    return 0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--systems", nargs="+", choices=tuple(OURS), default=tuple(OURS), metavar="NAME")
    parser.add_argument("--waits", nargs="+", type=int, default=WAITS_MS, help="max_wait_ms, each a run")
    parser.add_argument("--concurrency", type=int, default=20, help="answers at once (default 20)")
    parser.add_argument("--out", type=Path, help="folder for peers-waits.png")
    parser.set_defaults(
        answers=20,
        ttft_ms=350.0,
        token_ms=8.0,
        slow_motion=1.0,
        cache_minimum=CACHE_MINIMUM,
        cache_step=CACHE_STEP,
    )
    sys.exit(uvloop.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
