"""What long contexts cost the LLM judge, sent whole or as passages, with and without a prefix cache.

    python -m benchmarks.long_contexts

The answers, the simulated model and the figures are those of ``benchmarks.peers``. To the documents of an
answer come those of other topics, in versions with other numbers, in any order. The model can only tell what
it is shown: a claim whose sentence is not in the prompt is UNSUPPORTED, whatever the truth. One answer in
five keeps its planted errors; of the others they are left out.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.peers import measure, simulated_model
from benchmarks.peers_answers import Case, load
from benchmarks.peers_environment import installed
from benchmarks.peers_report import Result, machine, percentile
from benchmarks.peers_tokens import CACHE_MINIMUM, CACHE_STEP
from guardrail.judges.llm import LlmJudgeSettings

SIZES = (6_000, 16_000, 40_000, 100_000)
MODES = {"whole": sys.maxsize, "passages": 0}
_HEAD = (
    "| characters of contexts | prefix cache | contexts | calls | tokens in | billed | delay p50 (ms) "
    "| first error known p50 (ms) | right |\n"
    "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)
_NUMBER = re.compile(r"\d+")


def lengthened(case: Case, cases: tuple[Case, ...], chars: int, rng: random.Random) -> Case:
    """The case with documents of other topics among its own, until there are so many characters."""
    own = set(case.contexts)
    others = list(dict.fromkeys(text for each in cases for text in each.contexts if text not in own))
    rng.shuffle(others)
    contexts = list(case.contexts)
    for text in _versions(others):
        if sum(map(len, contexts)) >= chars:
            break
        contexts.insert(rng.randint(0, len(contexts)), text)
    return replace(case, contexts=tuple(contexts))


def corrected(case: Case) -> Case:
    """The case without the claims that are wrong."""
    return replace(case, claims=tuple(claim for claim in case.claims if not claim.bad))


def _versions(texts: list[str]) -> Iterator[str]:
    """The texts, and then again and again with other numbers."""
    for version in itertools.count():
        for text in texts:
            yield _NUMBER.sub(partial(_higher, by=version), text)


def _higher(found: re.Match[str], by: int) -> str:
    return str(int(found[0]) + by) if by else found[0]


def line(chars: int, cached: bool, mode: str, result: Result) -> str:
    """A row of the table."""
    count = len(result.outcomes)
    cells = (
        f"{chars:,}",
        "yes" if cached else "no",
        mode,
        f"{result.spent.calls / count:.1f}",
        f"{result.tokens():,.0f}",
        f"{result.billed():,.0f}",
        f"{percentile(result.delays_ms(), 0.5):,.0f}",
        f"{percentile(result.first_bad_ms(), 0.5):+,.0f}",
        f"{result.right():.0%}",
    )
    return f"| {' | '.join(cells)} |"


async def run(args: argparse.Namespace) -> int:
    """Measure and report."""
    python = installed() or Path(sys.executable)  # the peers' has a better tokenizer
    cases = load()
    print(_HEAD)
    for cached in (True, False):
        args.cache_minimum = CACHE_MINIMUM if cached else sys.maxsize
        async with simulated_model(python, args) as model:
            for chars, mode in itertools.product(args.sizes, MODES):
                rng = random.Random(chars)
                answers = [
                    lengthened(corrected(case) if number % 5 else case, cases, chars, rng)
                    for number, case in enumerate(cases)
                ]
                LlmJudgeSettings.whole_context_chars = MODES[mode]
                args.judge = {}
                result = await measure(
                    "guardrail-llm",
                    args.concurrency,
                    model,
                    None,
                    args,
                    f"-{chars}-{mode}",
                    answers,
                    args.answers,
                )
                print(line(chars, cached, mode, result), flush=True)
                for error in sorted(result.errors())[:3]:
                    print(f"    {error}", file=sys.stderr)
    print(f"\n{machine()}; {args.concurrency} answers at once; tokens counted by {model.tokenizer}")
    return 0


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="characters of contexts")
    parser.add_argument("--concurrency", type=int, default=10, help="answers at once (default 10)")
    parser.add_argument(
        "--answers", type=int, default=40, help="so many to learn from, and so many measured (default 40)"
    )
    parser.set_defaults(ttft_ms=350.0, token_ms=8.0, slow_motion=1.0, cache_step=CACHE_STEP)
    sys.exit(uvloop.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
