"""What the local judge costs, claim by claim: ``python -m benchmarks.local_judge_latency``.

    python -m benchmarks.local_judge_latency [--data DIR] [--claims N] [--windows]
        [--verifier FOLDER]

Claims are made up from word lists: three contexts of 150 words a response, eight claims of about 14 words
taken from them, half with one word changed. With ``--data`` they are those of the real answers in
``*-val.jsonl`` and ``*-val.jsonl.gz`` of a folder (``benchmarks.labelled_answers``), set by set. The judge
is the packaged one unless ``--verifier`` names another.

Printed for each row: windows read a claim, milliseconds a claim (p50, p99, one after the other), processor
time a claim (``cpu_ms``, all threads), and claims judged a second where eight responses are judged at a time.
``by words`` leaves the verifier out. ``--windows`` adds rows that read up to 1, 2 and 3 windows of every
claim, and for each row how many verdicts are those of three windows.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest import mock

from benchmarks.frame import command_line
from benchmarks.labelled_answers import read_answers
from guardrail.claims import Claim
from guardrail.engine.runs import Cutters
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import JudgeRequest, Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.reader import WindowReader
from guardrail.judges.local.search import MOST_WINDOWS, windows_of
from guardrail.judges.local.settings import VerifierSettings
from guardrail.policy import Policy

CLAIMS_PER_RESPONSE: Final = 8
CONTEXTS: Final = 3
WORDS_OF_A_CONTEXT: Final = 150
AT_A_TIME: Final = 8
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


def context(random_: random.Random, words: int) -> str:
    """Sentences of so many words together, some in paragraphs."""
    text = ""
    while text.count(" ") < words:
        text += sentence(random_) + random_.choice((" ", " ", " ", "\n\n"))
    return " ".join(text.split(" ")[:words])


class Asked(NamedTuple):
    """The claims of a response, and what they are judged by."""

    question: str
    contexts: tuple[Context, ...]
    claims: dict[str, Claim]


class Row(NamedTuple):
    """What judging took, and the verdicts in order."""

    figures: dict[str, float]
    verdicts: list[Verdict]


def made_up(claims: int, seed: int = 1) -> list[Asked]:
    """Responses with so many claims together."""
    random_ = random.Random(seed)
    found = []
    for _ in range(max(1, claims // CLAIMS_PER_RESPONSE)):
        texts = [context(random_, WORDS_OF_A_CONTEXT) for _ in range(CONTEXTS)]
        asked = {}
        for index in range(CLAIMS_PER_RESPONSE):
            text = random_.choice(random_.choice(texts).split(". ")).strip().removesuffix(".") + "."
            if index % 2:
                words = text.split()
                words[random_.randrange(len(words))] = random_.choice(_OBJECTS)
                text = " ".join(words)
            asked[f"c{index}"] = Claim(index, index, text, 0, len(text), Severity.NORMAL)
        contexts = tuple(Context(id=f"d{n}", text=text) for n, text in enumerate(texts))
        found.append(Asked("What does the plan cost?", contexts, asked))
    return found


def real(path: Path, claims: int) -> list[Asked]:
    """The first real answers of a file, with about so many claims together."""
    found: list[Asked] = []
    cutters, policy = Cutters(), Policy()
    for answer in read_answers(path):
        response = answer.response
        cutter = cutters.new(policy, response.question, response.contexts)
        cut = [*cutter.feed(response.answer), *cutter.finish()]
        asked = {f"c{claim.index}": claim for segment in cut for claim in segment.claims}
        found.append(Asked(response.question, tuple(response.contexts), asked))
        claims -= len(asked)
        if claims <= 0:
            break
    return found


def measure(responses: Sequence[Asked], settings: LocalJudgeSettings, windows: int | None = None) -> Row:
    """One row; ``windows``: as many are read of every claim, whether or not an earlier one settles it."""
    checker = build_checker(settings)
    read = 0
    original_reads = WindowReader.reads

    def reads(self: WindowReader, *arguments: Any) -> Iterator[Any]:
        nonlocal read
        for each in original_reads(self, *arguments):
            read += 1
            yield each

    def limited(*arguments: Any) -> Iterator[Any]:
        return itertools.islice(windows_of(*arguments), windows)

    taken: list[float] = []
    verdicts: list[Verdict] = []
    with (
        mock.patch.object(WindowReader, "reads", reads),
        mock.patch("guardrail.judges.local.check.windows_of", limited),
    ):
        if windows is not None:
            checker._settled = lambda *_: False  # type: ignore[method-assign]
        for question, contexts, claims in responses[
            :2
        ]:  # what a process that has been running has in its caches
            list(checker.check_all(claims, question, EvidenceIndex(contexts), lambda: False))
        read, worked = 0, time.process_time()
        for question, contexts, claims in responses:
            index = EvidenceIndex(contexts)
            begun = time.perf_counter()
            for judgement in checker.check_all(claims, question, index, lambda: False):
                taken.append(1000 * (time.perf_counter() - begun))
                verdicts.append(judgement.verdict)
                begun = time.perf_counter()
        worked = time.process_time() - worked
    taken.sort()
    figures = {
        "windows": round(read / len(taken), 2),
        "p50_ms": round(statistics.median(taken), 1),
        "p99_ms": round(taken[int(0.99 * (len(taken) - 1))], 1),
        "cpu_ms": round(1000 * worked / len(taken), 1),
    }
    return Row(figures, verdicts)


async def throughput(responses: Sequence[Asked], settings: LocalJudgeSettings) -> float:
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


def report(name: str, responses: Sequence[Asked], settings: LocalJudgeSettings, compare: bool) -> None:
    """Measure and print the rows of a set."""
    words = settings.model_copy(update={"verifier": VerifierSettings(enabled=False)})
    print(f"{name}: {sum(len(each.claims) for each in responses)} claims of {len(responses)} answers")
    wanted: list[tuple[str, LocalJudgeSettings, int | None]] = [
        ("as fitted", settings, None),
        ("by words", words, None),
    ]
    if compare:
        wanted += [(f"{n} window{'s' * (n > 1)}", settings, n) for n in range(1, MOST_WINDOWS + 1)]
    rows = {label: measure(responses, how, most) for label, how, most in wanted}
    most = rows.get(f"{MOST_WINDOWS} windows")
    for label, how, windows in wanted:
        figures, verdicts = rows[label]
        if windows is None:
            figures["claims_per_s"] = round(asyncio.run(throughput(responses, how)))
        if most is not None:
            same = sum(one is other for one, other in zip(verdicts, most.verdicts, strict=True))
            figures["same_verdicts"] = round(same / len(verdicts), 3)
        print(f"  {label:10}", "  ".join(f"{key} {value}" for key, value in figures.items()), flush=True)


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--claims", type=int, default=400, help="claims of each set, about")
    parser.add_argument("--data", type=Path, help="folder with real answers; default: made-up claims")
    parser.add_argument("--windows", action="store_true", help="compare reading 1 to 4 windows")
    parser.add_argument("--verifier", type=Path, help="folder of another verifier")
    options = parser.parse_args()
    settings = LocalJudgeSettings(verifier=VerifierSettings(path=options.verifier))
    if options.data is None:
        report("made up", made_up(options.claims), settings, options.windows)
    else:
        paths = [path for end in ("", ".gz") for path in sorted(options.data.glob(f"*-val.jsonl{end}"))]
        for path in paths:
            try:
                responses = real(path, options.claims)
            except ValueError:
                print(f"{path.name}: no answers with labels")
                continue
            report(path.name, responses, settings, options.windows)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"resident memory at most {memory:.0f} MB")


if __name__ == "__main__":
    main()
