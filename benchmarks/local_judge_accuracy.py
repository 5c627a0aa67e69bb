"""How well the local judge tells supported claims from others, against plain word overlap.

    python -m benchmarks.local_judge_accuracy --data DIR

``DIR`` holds ``pool-val.jsonl.gz``, ``expertqa-val.jsonl`` and ``pool-train.jsonl.gz`` (of which only the
documents that nothing was fitted on are used, for minimal pairs). Positive are claims that are wholly
supported.

AUROC ranks by ``support``; balanced accuracy (the mean of both classes' recall) asks whether the verdict is
SUPPORTED. Overlap is the share of a claim's distinct words in the best passage; it gets the one threshold
that suits these very sets best, which favours it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets, require_files
from guardrail.claims.model import Claim
from guardrail.events import Severity, Verdict
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import words
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_parameters
from training.rows import Row, pool
from training.synthesis import documents, minimal_pairs

SEED: Final = 20260101
TRAINING_POOL: Final = "pool-train.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Scored:
    """One claim: what is true, what overlap and the judge say."""

    supported: bool
    overlap: float
    support: float
    verdict: Verdict


def overlap(row: Row) -> float:
    """The share of the claim's distinct words (but stop words) in the passage that holds most of them."""
    terms = {term for _, term, _ in words(row.claim)}
    terms = terms - STOP_TERMS or terms
    layout = row.index().layout
    passages = zip(layout.passages.first, layout.passages.last, strict=True)
    held = (len(terms & set(layout.terms[first:last])) for first, last in passages)
    return max(held, default=0) / max(1, len(terms))


def scored(row: Row, checker: ClaimChecker) -> Scored:
    """The row under both."""
    claim = Claim(0, 0, row.claim, 0, len(row.claim), Severity.NORMAL, lead_in=row.lead_in)
    judgement = checker.check("c", claim, row.question, row.index())
    return Scored(row.supported, overlap(row), judgement.support or 0.0, judgement.verdict)


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """The probability that a random positive ranks above a random negative, ties counting half
    (Mann-Whitney)."""
    values = sorted({*positives, *negatives})
    below: dict[float, float] = {}
    counts: dict[float, int] = defaultdict(int)
    for value in negatives:
        counts[value] += 1
    seen = 0
    for value in values:
        below[value] = seen + counts[value] / 2
        seen += counts[value]
    return sum(below[value] for value in positives) / (len(positives) * len(negatives))


def balanced_accuracy(pairs: Iterable[tuple[bool, bool]]) -> float:
    """The mean of the recalls of both classes, from pairs of truth and answer."""
    right, count = {True: 0, False: 0}, {True: 0, False: 0}
    for truth, answer in pairs:
        count[truth] += 1
        right[truth] += truth == answer
    return (right[True] / count[True] + right[False] / count[False]) / 2


def report(sets: dict[str, list[Scored]]) -> dict[str, dict[str, float]]:
    """AUROC and balanced accuracy of both, set by set, with their means as ``macro``; all in percent."""

    def fair(threshold: float) -> float:
        return sum(
            balanced_accuracy((s.supported, s.overlap >= threshold) for s in rows) for rows in sets.values()
        )

    threshold = max((n / 20 for n in range(2, 21)), key=fair)
    table: dict[str, dict[str, float]] = {}
    for name, rows in sorted(sets.items()):
        yes = [s for s in rows if s.supported]
        no = [s for s in rows if not s.supported]
        table[name] = {
            "claims": len(rows),
            "overlap_auroc": 100 * auroc([s.overlap for s in yes], [s.overlap for s in no]),
            "judge_auroc": 100 * auroc([s.support for s in yes], [s.support for s in no]),
            "overlap_bacc": 100 * balanced_accuracy((s.supported, s.overlap >= threshold) for s in rows),
            "judge_bacc": 100
            * balanced_accuracy((s.supported, s.verdict is Verdict.SUPPORTED) for s in rows),
        }
    columns = [c for c in next(iter(table.values())) if c != "claims"]
    table["macro"] = {"claims": sum(len(r) for r in sets.values())} | {
        column: sum(row[column] for row in table.values()) / len(sets) for column in columns
    }
    return table


def pairs_report(rows: Iterable[Row], checker: ClaimChecker) -> dict[str, dict[str, float]]:
    """For each kind of synthetic row: the share that is not called SUPPORTED, and called CONTRADICTED;
    percent."""
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    for row in rows:
        verdicts[row.dataset.removeprefix("synthetic-")].append(scored(row, checker).verdict)
    return {
        kind: {
            "claims": len(found),
            "not_supported": 100 * sum(v is not Verdict.SUPPORTED for v in found) / len(found),
            "contradicted": 100 * sum(v is Verdict.CONTRADICTED for v in found) / len(found),
        }
        for kind, found in sorted(verdicts.items())
    }


def show(title: str, table: dict[str, dict[str, float]]) -> None:
    """Print a table of rows by name."""
    columns = list(next(iter(table.values())))
    print(f"\n{title:24}" + "".join(f"{column:>15}" for column in columns))
    for name, row in table.items():
        print(
            f"{name:24}"
            + "".join(f"{row[c]:>15.0f}" if c == "claims" else f"{row[c]:>15.1f}" for c in columns)
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--limit", type=int, default=2000, help="most claims of one set (sampled)")
    parser.add_argument("--parameters", type=Path, help="parameters file instead of the packaged one")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA, TRAINING_POOL)
    settings = LocalJudgeSettings(parameters_path=options.parameters)
    checker = ClaimChecker(settings, load_parameters(options.parameters))

    begun = time.perf_counter()
    by_set = labelled_sets(options.data, options.limit, SEED)
    two_classes = {
        name: [scored(row, checker) for row in rows]
        for name, rows in by_set.items()
        if len({row.supported for row in rows}) == 2
    }
    table = report(two_classes)
    show("labelled by people", table)

    texts = documents(pool(options.data / TRAINING_POOL), held_out=True)
    pairs = pairs_report(minimal_pairs(texts[:150], per_document=4, seed=SEED), checker)
    show("minimal pairs", pairs)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({"sets": table, "pairs": pairs}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
