"""Speed of cutting text into segments and claims, by size of the text and of the deltas.

What to look for: the time per character must not grow with the size of the text, whatever the size of the
deltas, and no hostile text may break that. Severities are not rated here (the rater is constant), unless
``--rate`` is given. Times are CPU time of this process, the best of ``--repeat`` runs. Last comes for how
long a whole answer holds the event loop at a time, so that other responses wait: the longest stretch of CPU
time of its thread between two turns of another task, with real severities and a judge that answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from typing import Final

from benchmarks.frame import command_line
from benchmarks.instant_judge import InstantJudge
from guardrail.claims import ClaimCutter, Segmenter, SeverityRater
from guardrail.claims.segmenter import DEFAULT_MAX_SEGMENT_CHARS
from guardrail.events import SegmentKind, Severity
from guardrail.guard import Guard

HELD_CHARS: Final = (3_000, 10_000, 50_000, 100_000)

ANSWER: Final = """\
According to the leaflet, adults and children over 12 years take one tablet of 500 mg every four to \
six hours. \
Do not take more than eight tablets in 24 hours [1]. If you have a liver disease, talk to Dr. Meyer \
or another \
doctor before the first dose, because a lower limit applies (see section 3, p. 12). It can be taken \
with or \
without food.

## What it costs

The basic plan is $19.90 per month, billed yearly, e.g. for teams of up to five people; the \
professional plan \
costs $49.50 and includes support by telephone from 9 a.m. to 5 p.m. on working days. Prices have \
not changed \
since the U.S. launch in March 2021. Cancelling is possible at any time, and the remaining months \
are refunded:

- Refunds are paid within 14 days to the card that was charged.
- Discounts of 20 % for schools end on 30 June, after which the usual price applies.
- Accounts that were closed can be opened again within 90 days, with all of their documents.

| Plan | Price | Storage |
|------|-------|---------|
| Basic | $19.90 | 10 GB |
| Professional | $49.50 | 1 TB |

The contract is governed by the laws of the Netherlands, and either party may terminate it with a \
notice of \
three months to the end of a quarter. Should a delivery be late by more than ten working days, the \
customer may \
withdraw from the order without giving a reason. I could not find anything about penalties in the \
documents. \
Let me know if you would like me to look into the appendix as well!

"""

HOSTILE: Final[dict[str, str]] = {
    "full stops": ".",
    "full stops and spaces": ". ",
    "'[[['": "[",
    "'((('": "(",
    "quotes": '"',
    "brackets closing": ".)]",
    "unclosed fence": "```\ncode. (more) [text]\n",
    "fence, one line": "```code. (more) ",
    "no spaces": "abcdefghij",
    "digits": "0123456789",
    "spaces": " ",
    "line ends": "\n",
    "list markers": "- \n",
    "pipes": "|",
    "citations begun": "a. [1, 2, 3, 4, 5, 6",
    "abbreviations": "e.g. U.S. Dr. No. 5 ",
    "capital initials": "A. B. C. ",
    "lower-case sentences": "so it is. and then some. ",
    "abstentions": "I don't know, and but so, the documents do not say, ",
    "CJK": "これは文です。次の文です！",
    "combining marks": "e\u0301\u0300\u0302",
    "zero width joiners": "👩\u200d",
}


class ConstantRater:
    """Leaves severity out of the measurement."""

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:  # noqa: ARG002
        return Severity.NORMAL, ()


def repeated(unit: str, chars: int) -> str:
    """``unit`` over and over, ``chars`` characters long."""
    return (unit * (chars // len(unit) + 1))[:chars]


def seconds(text: str, delta_chars: int, run: Callable[[list[str]], None], repeat: int) -> float:
    """Best CPU time of ``repeat`` runs over ``text``, fed in deltas of ``delta_chars``."""
    deltas = [text[i : i + delta_chars] for i in range(0, len(text), delta_chars)]
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        run(deltas)
        best = min(best, time.process_time() - begin)
    return best


def segment(deltas: list[str]) -> None:
    """Segments only."""
    segmenter = Segmenter()
    for delta in deltas:
        segmenter.feed(delta)
    segmenter.finish()


def cutting(rater: SeverityRater) -> Callable[[list[str]], None]:
    """Segments and claims."""

    def cut(deltas: list[str]) -> None:
        cutter = ClaimCutter(rater)
        for delta in deltas:
            cutter.feed(delta)
        cutter.finish()

    return cut


def row(name: str, text: str, delta_chars: int, run: Callable[[list[str]], None], repeat: int) -> None:
    """Measure and print one row of the table."""
    took = seconds(text, delta_chars, run, repeat)
    megabytes = len(text.encode()) / 1e6
    print(
        f"{name:<34} {len(text):>9,} {delta_chars:>9,} {megabytes / took:>8.2f} "
        f"{took / len(text) * 1e9:>9.0f}",
        flush=True,
    )


async def longest_hold(chars: int) -> float:
    """Seconds for which checking an answer of so many characters holds the loop at most."""
    longest, last, done = 0.0, time.thread_time(), asyncio.Event()

    async def others() -> None:
        nonlocal longest, last
        while not done.is_set():
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    async with Guard(InstantJudge()) as guard:
        await guard.check("What?", ["A source."], "Paris is in France.")  # what is loaded lazily
        watching = asyncio.create_task(others())
        await asyncio.sleep(0)
        last = time.thread_time()
        longest = 0.0
        await guard.check("What?", ["A source."], repeated(ANSWER, chars))
        done.set()
        await watching
    return longest


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="CHARS")
    parser.add_argument("--deltas", type=int, nargs="+", default=[1, 4, 100, 10**9], metavar="CHARS")
    parser.add_argument(
        "--hostile-chars", type=int, default=1_000_000, help="size of each hostile text; 0: none"
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of each measurement, of which the best counts"
    )
    parser.add_argument("--rate", action="store_true", help="rate severities with the built-in rules as well")
    return parser.parse_args(arguments)


def main() -> int:
    """Print the tables."""
    options = parse_arguments()
    rater: SeverityRater = ConstantRater()
    if options.rate:
        from guardrail.claims import BuiltinSeverityRater
        from guardrail.claims.patterns import SeverityRules

        rater = BuiltinSeverityRater(SeverityRules())
    cut = cutting(rater)
    print(
        f"segments of at most {DEFAULT_MAX_SEGMENT_CHARS} characters; 1 MB = 10^6 bytes; "
        "'delta' in characters\n"
    )
    print(f"{'text':<34} {'chars':>9} {'delta':>9} {'MB/s':>8} {'ns/char':>9}")
    for delta in options.deltas:
        for size in options.sizes:
            row("answers: segments and claims", repeated(ANSWER, size), min(delta, size), cut, options.repeat)
    for size in options.sizes:
        row("answers: segments alone", repeated(ANSWER, size), 4, segment, options.repeat)
    for name, unit in HOSTILE.items():
        for size in (options.hostile_chars // 10, options.hostile_chars):
            if size:
                row(f"hostile: {name}", repeated(unit, size), 4, cut, 1)
    print()
    for chars in HELD_CHARS:
        held = min(asyncio.run(longest_hold(chars)) for _ in range(options.repeat))
        print(f"an answer of {chars:,} characters holds the loop for {1000 * held:.1f} ms at a time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
