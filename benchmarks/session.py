"""Time and memory of cutting and of sessions, without transport and judge.

    python -m benchmarks.session

Time: a text is fed in deltas to the segmenter alone, to what cuts segments into claims and rates their
severity, and to a whole session, in which every claim is answered at once as supported. It must not grow with
the text, whatever the size of the deltas (benchmarks.overload has hostile texts). Times are CPU time of this
process, the best of ``--repeat`` runs. Then comes for how long a whole answer holds the event loop at a time,
so that others wait: the longest stretch of CPU time of its thread between two turns of another task, with a
judge that answers at once.

Memory: sessions that are open at once, each with contexts of 8 KB and half an answer, after the judge has
been given their claims; what they cost beyond the text itself, index included.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from benchmarks.frame import command_line, resident_bytes
from benchmarks.instant_judge import InstantJudge
from benchmarks.workload import text_of
from guardrail.claims import BuiltinSeverityRater, ClaimCutter, Segmenter
from guardrail.engine import Engine
from guardrail.events import Context, ResponseDelta, ResponseStarted
from guardrail.guard import Guard
from guardrail.judges import Judgement, Verdict
from guardrail.judges.local import LocalJudge
from guardrail.judges.streams import beside
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session import AskJudge, CutOn, Session

SIZES: Final = (10_000, 100_000, 1_000_000)
DELTAS: Final = (1, 4, 100, 1_000_000)
HELD_CHARS: Final = (3_000, 10_000, 50_000, 100_000)

ANSWER: Final = """\
According to the leaflet, adults and children over 12 years take one tablet of 500 mg every four to six \
hours. Do not take more than eight tablets in 24 hours [1]. If you have a liver disease, talk to Dr. \
Meyer or another doctor before the first dose, because a lower limit applies (see section 3, p. 12). It \
can be taken with or without food.

## What it costs

The basic plan is $19.90 per month, billed yearly, e.g. for teams of up to five people; the \
professional plan costs $49.50 and includes support by telephone from 9 a.m. to 5 p.m. on working days. \
Prices have not changed since the U.S. launch in March 2021. Cancelling is possible at any time, and \
the remaining months are refunded:

- Refunds are paid within 14 days to the card that was charged.
- Discounts of 20 % for schools end on 30 June, after which the usual price applies.
- Accounts that were closed can be opened again within 90 days, with all of their documents.

| Plan | Price | Storage |
|------|-------|---------|
| Basic | $19.90 | 10 GB |
| Professional | $49.50 | 1 TB |

The contract is governed by the laws of the Netherlands, and either party may terminate it with a \
notice of three months to the end of a quarter. Should a delivery be late by more than ten working \
days, the customer may withdraw from the order without giving a reason. I could not find anything about \
penalties in the documents. Let me know if you would like me to look into the appendix as well!

"""


def repeated(unit: str, chars: int) -> str:
    """``unit`` over and over, ``chars`` characters long."""
    return (unit * (chars // len(unit) + 1))[:chars]


def deltas_of(text: str, chars: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[at : at + chars] for at in range(0, len(text), chars)]


def seconds(text: str, delta_chars: int, run: Callable[[list[str]], None], repeat: int) -> float:
    """Best CPU time of ``repeat`` runs over ``text``, fed in deltas of ``delta_chars``."""
    deltas = deltas_of(text, delta_chars)
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        run(deltas)
        best = min(best, time.process_time() - begin)
    return best


def speed(name: str, text: str, delta_chars: int, took: float) -> str:
    """A line of the table. 1 MB is 10^6 bytes."""
    return (
        f"{name:<34} {len(text):>9,} characters in deltas of {min(delta_chars, len(text)):>9,}: "
        f"{len(text.encode()) / 1e6 / took:>6.2f} MB/s {took / len(text) * 1e9:>7.0f} ns/char"
    )


def segment(deltas: list[str]) -> None:
    """Segments only."""
    segmenter = Segmenter()
    for delta in deltas:
        segmenter.feed(delta)
    segmenter.finish()


def cut(deltas: list[str]) -> None:
    """Segments, claims and their severities."""
    cutter = ClaimCutter(BuiltinSeverityRater())
    for delta in deltas:
        cutter.feed(delta)
    cutter.finish()


def run_session(deltas: list[str]) -> None:
    """One response from start to end, judged supported, and cut on until there is no more to do."""
    head, cutter = ResponseStarted(response_id="bench"), ClaimCutter(BuiltinSeverityRater())
    session = Session(head, Policy(), cutter, now=0.0, max_answer_chars=10_000_000)
    for seq, delta in enumerate([*deltas, None]):
        left = deque(session.complete(seq, 0.0) if delta is None else session.delta(seq, delta, 0.0))
        while left:
            effect = left.popleft()
            if isinstance(effect, AskJudge):
                supported = [
                    Judgement(claim_id, Verdict.SUPPORTED, 1.0, 1.0, "bench") for claim_id, _ in effect.claims
                ]
                session.judged(supported, 0.0)
            elif isinstance(effect, CutOn):
                left.extend(session.cut_on(0.0))
    assert session.closed


async def longest_hold(chars: int) -> float:
    """Seconds for which checking an answer of so many characters holds the loop at most."""
    longest = last = 0.0

    async def others() -> None:
        nonlocal longest, last
        while True:
            now = time.thread_time()
            longest, last = max(longest, now - last), now
            await asyncio.sleep(0)

    async with Guard(InstantJudge()) as guard:
        await guard.check("What?", ["A source."], "Paris is in France.")  # what is loaded lazily
        last = time.thread_time()
        async with beside(others()):
            await guard.check("What?", ["A source."], repeated(ANSWER, chars))
    return longest


async def memory(sessions: int) -> None:
    """Print what open sessions cost."""
    contexts = [[text_of(2_000, seed=100 * n + i) for i in range(4)] for n in range(sessions)]
    answers = [text_of(600, seed=n + 7) for n in range(sessions)]
    text_bytes = sum(len(c) for cs in contexts for c in cs) + sum(map(len, answers))
    judge = LocalJudge()
    router = PolicyRouter.single(Policy(mode="hold"))

    def open_(name: str, texts: list[str], answer: str) -> None:
        # The texts are copied, as they would be when they come off the wire.
        copies = tuple(Context(id=f"c{i}", text="".join(list(text))) for i, text in enumerate(texts))
        engine.handle(ResponseStarted(response_id=name, contexts=copies))
        for seq, piece in enumerate(deltas_of(answer, 4)):
            engine.handle(ResponseDelta(response_id=name, seq=seq, text="".join(list(piece))))

    async with Engine(judge, router, emit=lambda _: None, limits=Limits()) as engine:
        warm = [f"w{n}" for n in range(50)]  # what is imported and cached once
        for name, texts, answer in zip(warm, contexts, answers, strict=False):
            open_(name, texts, answer)
        await engine.drain()
        engine.discard(warm)
        gc.collect()
        before = resident_bytes()
        for n in range(sessions):
            open_(f"s{n}", contexts[n], answers[n])
        await engine.drain()
        gc.collect()
        grown = resident_bytes() - before
        print(f"{sessions:,} open sessions, 8 KB of contexts each, {text_bytes / 1e6:.1f} MB of text")
        beyond_text = (grown - text_bytes) / sessions
        print(f"  resident memory grew by {grown / 1e6:.1f} MB: text plus {beyond_text / 1e3:.1f} KB each")
        print(f"  whole process: {resident_bytes() / 1e6:.0f} MB")
        engine.discard([f"s{n}" for n in range(sessions)])
    await judge.aclose()


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the best counts")
    options = parser.parse_args()

    def row(name: str, text: str, delta: int, run: Callable[[list[str]], None]) -> None:
        print(speed(name, text, delta, seconds(text, delta, run, options.repeat)), flush=True)

    for size in SIZES:
        text = repeated(ANSWER, size)
        row("segments alone", text, 4, segment)
        for delta in DELTAS:
            row("segments, claims and severities", text, delta, cut)
            row("a whole session", text, delta, run_session)
    for chars in HELD_CHARS:
        held = min(asyncio.run(longest_hold(chars)) for _ in range(options.repeat))
        print(f"an answer of {chars:,} characters holds the loop for {1000 * held:.1f} ms at a time")
    asyncio.run(memory(options.sessions))


if __name__ == "__main__":
    main()
