"""What the local judge costs, claim by claim: ``python -m benchmarks.local_judge_latency``.

    python -m benchmarks.local_judge_latency [--data DIR] [--claims N] [--verifier FOLDER]

The claims are those of the right chat answers in ``tests/chat_answers``, or with ``--data`` of the real
answers in ``*-val.jsonl`` and ``*-val.jsonl.gz`` of a folder (``benchmarks.labelled_answers``), set by set.
The judge is the packaged one unless ``--verifier`` names another.

Printed for each row: windows read a claim, milliseconds a claim (p50, p99, one after the other), processor
time a claim (all threads), and claims judged a second where eight responses are judged at a time. ``by
words`` leaves the verifier out. The last line is the memory of this process.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from benchmarks.chat_answers import CHAT, load
from benchmarks.frame import command_line, p50_p99
from benchmarks.labelled_answers import read_answers
from guardrail.claims import Claim
from guardrail.engine.runs import Cutters
from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.judges import JudgeRequest
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.reader import WindowReader
from guardrail.judges.local.settings import VerifierSettings
from guardrail.policy import Policy

AT_A_TIME: Final = 8


class Asked(NamedTuple):
    """The claims of a response, and what they are judged by."""

    question: str
    contexts: tuple[Context, ...]
    claims: dict[str, Claim]


def asked(answers: Iterable[tuple[str, Sequence[Context], str]], claims: int) -> list[Asked]:
    """The first answers, with about so many claims together."""
    found: list[Asked] = []
    cutters, policy = Cutters(), Policy()
    for question, contexts, text in answers:
        cutter = cutters.new(policy, question, contexts)
        cut = [*cutter.feed(text), *cutter.finish()]
        own = {f"c{claim.index}": claim for segment in cut for claim in segment.claims}
        found.append(Asked(question, tuple(contexts), own))
        claims -= len(own)
        if claims <= 0:
            break
    return found


def one_by_one(responses: Sequence[Asked], settings: LocalJudgeSettings) -> str:
    """What a claim takes, one after the other."""
    checker, read, taken = build_checker(settings), 0, list[float]()
    original_reads = WindowReader.reads

    def reads(self: WindowReader, *arguments: Any) -> Iterator[Any]:
        nonlocal read
        for each in original_reads(self, *arguments):
            read += 1
            yield each

    with mock.patch.object(WindowReader, "reads", reads):
        # First what a process that has been running has in its caches.
        for part in (responses[:2], responses):
            read, worked = 0, time.process_time()
            taken.clear()
            for question, contexts, claims in part:
                index, begun = EvidenceIndex(contexts), time.perf_counter()
                for _ in checker.check_all(claims, question, index, lambda: False):
                    taken.append(time.perf_counter() - begun)
                    begun = time.perf_counter()
    worked = 1000 * (time.process_time() - worked) / len(taken)
    return f"{read / len(taken):.2f} windows a claim, {p50_p99(taken)} ms, {worked:.1f} ms of processor time"


async def claims_a_second(responses: Sequence[Asked], settings: LocalJudgeSettings) -> float:
    """Claims judged a second, ``AT_A_TIME`` responses at a time, through ``LocalJudge``."""
    judge = LocalJudge(settings)
    waiting = iter(responses)

    async def worker() -> None:
        for question, contexts, claims in waiting:
            request = JudgeRequest("r", question, claims, EvidenceIndex(contexts), time.monotonic() + 3600)
            async for _ in judge.judge(request):
                pass

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_A_TIME):
            tasks.create_task(worker())
    await judge.aclose()
    return sum(len(each.claims) for each in responses) / (time.perf_counter() - begun)


def report(name: str, responses: Sequence[Asked], settings: LocalJudgeSettings) -> None:
    """Measure and print the rows of a set."""
    by_words = settings.verifier.model_copy(update={"enabled": False})
    words = settings.model_copy(update={"verifier": by_words})
    print(f"{name}: {sum(len(each.claims) for each in responses)} claims of {len(responses)} answers")
    for label, how in {"as fitted": settings, "by words": words}.items():
        rate = asyncio.run(claims_a_second(responses, how))
        print(f"  {label:10} {one_by_one(responses, how)}, {rate:.0f} claims a second", flush=True)


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--claims", type=int, default=400, help="claims of each set, about")
    parser.add_argument("--data", type=Path, help="folder with real answers; default: the chat answers")
    parser.add_argument("--verifier", type=Path, help="folder of another verifier")
    options = parser.parse_args()
    settings = LocalJudgeSettings(verifier=VerifierSettings(path=options.verifier))
    if options.data is None:
        right = ((one.question, one.contexts, one.answer) for one in load(CHAT, "development")[::2])
        report("chat answers", asked(right, options.claims), settings)
    else:
        for path in sorted([*options.data.glob("*-val.jsonl"), *options.data.glob("*-val.jsonl.gz")]):
            try:
                responses = [answer.response for answer in read_answers(path)]
            except ValueError:
                print(f"{path.name}: no answers with labels")
                continue
            real = ((one.question, one.contexts, one.answer) for one in responses)
            report(path.name, asked(real, options.claims), settings)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"resident memory at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
