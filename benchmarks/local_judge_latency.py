"""How long the local judge takes for a claim, and what it keeps in memory.

    python -m benchmarks.local_judge_latency [--claims N] [--verifier FOLDER] [--threads N] [--tokens N]

Contexts and claims are made up from word lists: five contexts of 300 words each, claims of about 14 words
taken from them, half with one detail changed. Each response has its own contexts and eight claims.
Reported are milliseconds a claim (p50, p99) through ``LocalJudge.judge``, one request at a time and 32 at
a time, with the index of the contexts built beforehand and built by the first request that needs it. With
32 at a time a request waits for the 31 before it; ``ms_of_work`` is the wall time of the whole run by the
number of its claims.

The runs with the verifier (the packaged one, or that of ``--verifier``, which needn't be trained) have three
contexts of 150 words, one request at a time: every claim a request of its own, and all eight of a response in
one, where a claim's time is its share. They tell how many tokens and readings a claim had. ``cpu_ms`` is
the processor time of a claim, of all threads. ``--threads`` and ``--tokens`` are those of
``judge.local.verifier`` (``threads``, ``tokens_per_claim``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final, TypeAlias

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.combiner import load_parameters, load_rules_parameters
from guardrail.judges.local.settings import VerifierSettings
from guardrail.judges.local.verifier import default_threads, load_verifier
from guardrail.judges.local.verifier_files import packaged_folder

CLAIMS_PER_RESPONSE: Final = 8
PASSAGES: Final = (3, 150)
"""Contexts with the verifier, and words of each."""
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


RULES: Final = LocalJudgeSettings(verifier=VerifierSettings(enabled=False))
Response: TypeAlias = tuple[tuple[Context, ...], list[Claim]]


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


def context(random_: random.Random, words: int) -> str:
    """Sentences of so many words together, some in paragraphs."""
    text = ""
    while text.count(" ") < words:
        text += sentence(random_) + random_.choice((" ", " ", " ", "\n\n"))
    return " ".join(text.split(" ")[:words])


def responses(count: int, seed: int, contexts_of: tuple[int, int] = (5, 300)) -> list[Response]:
    """Contexts, so many of so many words, and claims of ``count`` responses."""
    random_ = random.Random(seed)
    made = []
    number, words_each = contexts_of
    for _ in range(count):
        contexts = tuple(Context(id=f"c{n}", text=context(random_, words_each)) for n in range(number))
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
    made: list[Response],
    at_once: int,
    built: bool,
    settings: LocalJudgeSettings = RULES,
    together: bool = False,
) -> tuple[list[float], float]:
    """Milliseconds of each claim, each a request of its own, and of processor time a claim; ``at_once`` are
    in flight together.

    ``together``: the claims of a response are one request, and each has its share of the time.
    """
    judge = LocalJudge(settings)
    indexes = [EvidenceIndex(contexts) for contexts, _ in made]
    if built:
        for index in indexes:
            assert index.layout
    todo = [
        JudgeRequest(f"r{n}", "What does the plan cost?", asked, indexes[n], time.monotonic() + 3600)
        for n, (_, claims) in enumerate(made)
        for asked in (
            [{f"c{claim.index}": claim for claim in claims}] if together else [{"c": c} for c in claims]
        )
    ]
    taken: list[float] = []
    queue = iter(todo)
    worked = time.process_time()

    async def worker() -> None:
        for request in queue:
            begun = time.perf_counter()
            reply = await judge.judge(request)
            each = 1000 * (time.perf_counter() - begun) / len(request.claims)
            taken.extend([each] * len(request.claims))
            assert len(reply.judgements) == len(request.claims)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(worker())
    await judge.aclose()
    return taken, 1000 * (time.process_time() - worked) / len(taken)


def with_verifier(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """The runs with the verifier of a folder. Its parameters are those of the package where they were fitted
    with it, else made up of the rules' ones: what a verdict says takes no time.
    """
    verifier = load_verifier(folder, options.threads)
    parameters = load_parameters()
    if parameters.verifier is None or parameters.verifier.sha256 != verifier.sha256:
        parameters = load_rules_parameters().model_copy(update={"verifier": verifier.fitted()})
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "parameters.json"
        path.write_text(parameters.model_dump_json(), encoding="utf-8")
        wanted = VerifierSettings(path=folder, threads=options.threads, tokens_per_claim=options.tokens)
        settings = LocalJudgeSettings(parameters_path=path, verifier=wanted)
        asyncio.run(measure(responses(3, 0, PASSAGES), 1, built=True, settings=settings))
        for together in (False, True):
            made = responses(max(1, options.claims // CLAIMS_PER_RESPONSE), 5, PASSAGES)
            begun = time.perf_counter()
            taken, worked = asyncio.run(measure(made, 1, built=True, settings=settings, together=together))
            figures[f"verifier, {'claims of a response together' if together else 'claim by claim'}"] = {
                **_figures(taken, time.perf_counter() - begun),
                "cpu_ms": round(worked, 2),
                **_read(LocalJudge(settings), made),
                "threads": options.threads or default_threads(),
            }
    return figures


def _read(judge: LocalJudge, made: list[Response]) -> dict[str, float]:
    """The mean number of readings and of tokens that a claim had."""
    readings = tokens = claims = 0
    for contexts, asked in made[:20]:
        index = EvidenceIndex(contexts)
        for claim in asked:
            examined = judge._checker.examine(claim, "What does the plan cost?", index)
            assert examined is not None
            assert examined.verification is not None
            own = len(examined.verification.best.tokens) + 3
            claims += 1
            readings += len(examined.verification.premises)
            tokens += sum(own + len(premise.tokens.ids) for premise in examined.verification.premises)
    return {"readings": round(readings / claims, 2), "tokens": round(tokens / claims, 1)}


def _figures(taken: list[float], wall: float) -> dict[str, float]:
    taken = sorted(taken)
    return {
        "p50_ms": round(statistics.median(taken), 2),
        "p99_ms": round(taken[int(0.99 * (len(taken) - 1))], 2),
        "ms_of_work": round(1000 * wall / len(taken), 2),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--claims", type=int, default=800, help="claims of each run")
    parser.add_argument("--verifier", type=Path, help="folder of a verifier; default: the packaged one")
    parser.add_argument("--threads", type=int, help="of the verifier")
    parser.add_argument("--tokens", type=int, help="most tokens that are read for a claim")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    count = max(1, options.claims // CLAIMS_PER_RESPONSE)
    figures: dict[str, dict[str, float]] = {}
    asyncio.run(measure(responses(5, 0), 1, built=True))  # the caches of a process that has been running
    for seed, (at_once, built) in enumerate([(1, True), (1, False), (32, True), (32, False)], 1):
        made = responses(count, seed)
        begun = time.perf_counter()
        taken, worked = asyncio.run(measure(made, at_once, built))
        name = f"{at_once} at a time, index {'built beforehand' if built else 'built within'}"
        figures[name] = {**_figures(taken, time.perf_counter() - begun), "cpu_ms": round(worked, 2)}
        print(f"{name:42}", figures[name])
    folder = options.verifier or packaged_folder()
    if folder is not None:
        for name, found in with_verifier(options, folder).items():
            figures[name] = found
            print(f"{name:42}", found)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["process"] = {"max_resident_mb": round(memory)}
    print("process", figures["process"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
