"""How long the local judge takes for a claim, and what it keeps in memory.

    python benchmarks/local_judge_latency.py [--claims N]

Contexts and claims are made up from word lists: five contexts of 300 words each, claims of about 14 words
taken from them, half with one detail changed. Each response has its own contexts and eight claims.
Reported are milliseconds a claim (p50, p99) through ``LocalJudge.judge``, one request at a time and 32 at
a time, with the index of the contexts built beforehand and built by the first request that needs it. With
32 at a time a request waits for the 31 before it; ``ms_of_work`` is the wall time of the whole run by the
number of its claims.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import time
from pathlib import Path
from typing import Final

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest
from guardrail.judges.local import LocalJudge

CLAIMS_PER_RESPONSE: Final = 8
_SUBJECTS: Final = (
    "The Basic plan", "The Pro plan", "Each licence", "The supplier", "A tablet",
    "The warranty", "Every employee", "The night shift", "Annual billing",
    "The Dublin office", "Maria Keller", "The router", "A late payment",
)  # fmt: skip
_VERBS: Final = (
    "costs",
    "includes",
    "covers",
    "requires",
    "replaces",
    "limits",
    "supports",
    "excludes",
    "ends after",
)
_OBJECTS: Final = (
    "storage", "phone support", "written notice", "water damage", "hotel stays",
    "daily doses", "data transfer", "parental leave", "customs duties", "spare parts",
    "medical advice", "night flights", "software updates",
)  # fmt: skip
_TAILS: Final = (
    "in the first year", "for customers in Ireland", "unless agreed otherwise",
    "without a credit card", "after the trial period", "for adults over 65",
    "as stated in section 7", "on working days only",
)  # fmt: skip


def sentence(random_: random.Random) -> str:
    """A sentence of about 14 words, half of them with a value."""
    if random_.random() < 0.5:
        parts = (random_.choice(_SUBJECTS), random_.choice(_VERBS), "most of the", random_.choice(_OBJECTS))
        return " ".join((*parts, "and the", random_.choice(_OBJECTS), random_.choice(_TAILS))) + "."
    value = random_.choice(("$%d a month", "%d hours", "%d percent", "%d mg a day", "%d days"))
    return " ".join(
        (random_.choice(_SUBJECTS), random_.choice(_VERBS), value % random_.randrange(2, 400), "of",
         random_.choice(_OBJECTS), random_.choice(_TAILS))
    ) + "."  # fmt: skip


def context(random_: random.Random) -> str:
    """300 words of sentences, some in paragraphs."""
    text = ""
    while text.count(" ") < 300:
        text += sentence(random_) + random_.choice((" ", " ", " ", "\n\n"))
    return " ".join(text.split(" ")[:300])


def responses(count: int, seed: int) -> list[tuple[tuple[Context, ...], list[Claim]]]:
    """Contexts and claims of ``count`` responses."""
    random_ = random.Random(seed)
    made = []
    for _ in range(count):
        contexts = tuple(Context(id=f"c{n}", text=context(random_)) for n in range(5))
        claims = []
        for index in range(CLAIMS_PER_RESPONSE):
            text = random_.choice(random_.choice(contexts).text.split(". ")).strip().removesuffix(".") + "."
            if index % 2:
                words = text.split()
                words[random_.randrange(len(words))] = random_.choice(_OBJECTS)
                text = " ".join(words)
            claims.append(Claim(index, index, text, 0, len(text), Severity.NORMAL))
        made.append((contexts, claims))
    return made


async def measure(
    made: list[tuple[tuple[Context, ...], list[Claim]]], at_once: int, built: bool
) -> list[float]:
    """Milliseconds of each claim, each a request of its own; ``at_once`` are in flight together."""
    judge = LocalJudge()
    indexes = [EvidenceIndex(contexts) for contexts, _ in made]
    if built:
        for index in indexes:
            assert index.layout
    todo = [
        JudgeRequest(f"r{n}", "What does the plan cost?", {"c": claim}, indexes[n], time.monotonic() + 3600)
        for n, (_, claims) in enumerate(made)
        for claim in claims
    ]
    taken: list[float] = []
    queue = iter(todo)

    async def worker() -> None:
        for request in queue:
            begun = time.perf_counter()
            reply = await judge.judge(request)
            taken.append(1000 * (time.perf_counter() - begun))
            assert len(reply.judgements) == 1

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(worker())
    await judge.aclose()
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", type=int, default=800, help="claims of each run")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    count = max(1, options.claims // CLAIMS_PER_RESPONSE)
    figures = {}
    asyncio.run(measure(responses(5, 0), 1, built=True))  # the caches of a process that has been running
    for seed, (at_once, built) in enumerate([(1, True), (1, False), (32, True), (32, False)], 1):
        made = responses(count, seed)
        begun = time.perf_counter()
        taken = sorted(asyncio.run(measure(made, at_once, built)))
        name = f"{at_once} at a time, index {'built beforehand' if built else 'built within'}"
        figures[name] = {
            "p50_ms": round(statistics.median(taken), 2),
            "p99_ms": round(taken[int(0.99 * (len(taken) - 1))], 2),
            "ms_of_work": round(1000 * (time.perf_counter() - begun) / len(taken), 2),
        }
        print(f"{name:42}", figures[name])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["process"] = {"max_resident_mb": round(memory)}
    print("process", figures["process"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
