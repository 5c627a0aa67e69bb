"""Time and memory of sessions: from a delta to what may be released, without transport and judge.

    python -m benchmarks.session [--dense]

Time: a text is fed in deltas, every claim is answered at once as supported, everything that comes out is
taken. The time per character must not grow with the text, whatever the size of the deltas. Severities are
rated as in production. The text is the answer of benchmarks/segmentation.py, over and over, with a claim
every hundred characters; with ``--dense`` it is made of very short sentences, nearly all of them claims.

Memory: sessions that are open at once, each with contexts of 8 KB and half an answer, after the judge has
been given their claims; what they cost beyond the text itself, index included.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import deque
from pathlib import Path

from benchmarks.frame import command_line
from benchmarks.segmentation import ANSWER, repeated
from benchmarks.workload import text_of
from guardrail.claims import BuiltinSeverityRater, ClaimCutter, SeverityRater
from guardrail.engine import Engine
from guardrail.events import Context, ResponseDelta, ResponseStarted
from guardrail.judges import Judgement, Verdict
from guardrail.judges.local import LocalJudge
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.session import AskJudge, CutOn, Effect, Session

SIZES = (10_000, 100_000, 1_000_000)
DELTAS = (1, 4, 100, 0)


def run_session(deltas: list[str], policy: Policy, rater: SeverityRater) -> None:
    """One response from start to end."""
    head = ResponseStarted(response_id="bench")
    session = Session(head, policy, ClaimCutter(rater), now=0.0, max_answer_chars=10_000_000)
    for seq, delta in enumerate(deltas):
        carry_out(session, session.delta(seq, delta, 0.0))
    carry_out(session, session.complete(len(deltas), 0.0))
    assert session.closed


def carry_out(session: Session, effects: list[Effect]) -> None:
    """Judge what is to be judged, and cut on, until there is no more to do."""
    left = deque(effects)
    while left:
        effect = left.popleft()
        if isinstance(effect, AskJudge):
            session.judged([supported(claim_id) for claim_id, _ in effect.claims], 0.0)
        elif isinstance(effect, CutOn):
            left.extend(session.cut_on(0.0))


def supported(claim_id: str) -> Judgement:
    """The verdict of a judge that is always content."""
    return Judgement(claim_id, Verdict.SUPPORTED, 1.0, 1.0, "bench")


def times(repeat: int, *, dense: bool) -> None:
    """Print the table of speeds."""
    print(f"{'characters':>12} {'delta':>8} {'MB/s':>8} {'ns/char':>9}")
    policy, rater = Policy(), BuiltinSeverityRater()
    for size in SIZES:
        text = text_of(size) if dense else repeated(ANSWER, size)
        for chars in DELTAS:
            step = chars or size
            deltas = [text[start : start + step] for start in range(0, size, step)]
            best = float("inf")
            for _ in range(repeat):
                started = time.process_time()
                run_session(deltas, policy, rater)
                best = min(best, time.process_time() - started)
            rate = len(text.encode()) / 1e6 / best
            print(f"{size:>12,} {chars or 'all':>8} {rate:>8.2f} {best / size * 1e9:>9.0f}")


def resident_bytes() -> int:
    """Resident memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def memory(sessions: int) -> None:
    """Print what open sessions cost."""
    contexts = [[text_of(2_000, seed=100 * n + i) for i in range(4)] for n in range(sessions)]
    answers = [text_of(600, seed=n + 7) for n in range(sessions)]
    text_bytes = sum(len(c) for cs in contexts for c in cs) + sum(map(len, answers))
    judge = LocalJudge()
    router = PolicyRouter.single(Policy(mode="hold"))
    async with Engine(judge, router, emit=lambda _: None, limits=Limits()) as engine:
        await warm_up(engine)
        gc.collect()
        before = resident_bytes()
        for n in range(sessions):
            # The texts are copied, as they would be when they come off the wire.
            copies = tuple(
                Context(id=f"c{i}", text="".join(list(text))) for i, text in enumerate(contexts[n])
            )
            engine.handle(ResponseStarted(response_id=f"s{n}", contexts=copies))
            for seq, start in enumerate(range(0, len(answers[n]), 4)):
                piece = "".join(list(answers[n][start : start + 4]))
                engine.handle(ResponseDelta(response_id=f"s{n}", seq=seq, text=piece))
        await engine.drain()
        gc.collect()
        grown = resident_bytes() - before
        print(f"{sessions:,} open sessions, 8 KB of contexts each, {text_bytes / 1e6:.1f} MB of text")
        beyond_text = (grown - text_bytes) / sessions
        print(f"  resident memory grew by {grown / 1e6:.1f} MB: text plus {beyond_text / 1e3:.1f} KB each")
        print(f"  whole process: {resident_bytes() / 1e6:.0f} MB")
        engine.discard([f"s{n}" for n in range(sessions)])
    await judge.aclose()


async def warm_up(engine: Engine) -> None:
    """Have everything imported and every cache filled that one response fills."""
    for n in range(50):
        head = ResponseStarted(
            response_id=f"w{n}",
            contexts=tuple(Context(id=f"c{i}", text=text_of(2_000, seed=i)) for i in range(4)),
        )
        engine.handle(head)
        engine.handle(ResponseDelta(response_id=f"w{n}", seq=0, text=text_of(600, seed=n)))
    await engine.drain()
    engine.discard([f"w{n}" for n in range(50)])


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--dense", action="store_true", help="time short sentences that are nearly all claims"
    )
    arguments = parser.parse_args()
    times(arguments.repeat, dense=arguments.dense)
    print()
    asyncio.run(memory(arguments.sessions))


if __name__ == "__main__":
    main()
