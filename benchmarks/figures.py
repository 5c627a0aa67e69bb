"""How far the exact-figure check holds: ``python -m benchmarks.figures --data DIR``.

Of claims that people call supported, the share with a conflict and with an absent figure (figures that only
name things aside); of sentences with one number, date or unit changed, the share with one or the other; and
the time per claim. ``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from benchmarks.labelled_sets import EXPERTQA, POOL, changed_sentences, labelled_sets, require_files
from guardrail.evidence import sentence_spans
from guardrail.figures import FigureCheck, FigureSource, SourceText, State, check_figures
from guardrail.figures.source import Sentence
from training.rows import Row

_SEED: Final = 20260101
_NEAR: Final = 8  # sentences, as evidence search gives them
_CHANGED: Final = ("number", "date", "unit")


class Prepared:
    """The sentences of contexts, and a plain search over them: shared words by their rarity."""

    def __init__(self, contexts: tuple[str, ...]) -> None:
        spans = [
            (n, s, e) for n, text in enumerate(contexts) for s, e in zip(*sentence_spans(text), strict=True)
        ]
        self.source = FigureSource([SourceText(str(n), s, e, contexts[n][s:e]) for n, s, e in spans])
        self.terms = [self.source.sentence(number).terms for number in range(len(spans))]
        self.known = Counter(term for terms in self.terms for term in terms)

    def near(self, claim: str) -> list[int]:
        """The numbers of the sentences nearest to a claim, best first."""
        mine = Sentence(claim).terms
        scores = [sum(self._rarity(term) for term in mine & terms) for terms in self.terms]
        ranked = sorted(range(len(scores)), key=lambda number: -scores[number])
        return [number for number in ranked[:_NEAR] if scores[number] > 0]

    def _rarity(self, term: int) -> float:
        return 0.2 + math.log((len(self.terms) + 1) / self.known[term])


prepared: Final = lru_cache(maxsize=4)(Prepared)


def checked(rows: Iterable[Row]) -> tuple[Counter[str], float]:
    """How many rows there are, have figures, a conflict, an absent figure, either; and the seconds taken."""
    counts: Counter[str] = Counter()
    seconds = 0.0
    for row in rows:
        sources = prepared(row.contexts)
        near = sources.near(row.claim)
        begin = time.process_time()
        checks = check_figures(row.claim, sources.source, near, row.question)
        seconds += time.process_time() - begin
        counts.update(("all", *_outcomes(checks)))
    return counts, seconds


def _outcomes(checks: tuple[FigureCheck, ...]) -> set[str]:
    found = {str(check.state) for check in checks if check.state is State.CONFLICT or not check.figure.name}
    found |= {"figures"} if checks else set()
    return found | ({"caught"} if any(c.state in (State.CONFLICT, State.ABSENT) for c in checks) else set())


def main() -> None:
    """Print one line for each set of supported claims and for each kind of change."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled sets")
    parser.add_argument("--limit", type=int, default=3000, help="most claims of one set or kind (sampled)")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    sets = labelled_sets(options.data, options.limit, _SEED)
    supported = {name: [row for row in rows if row.supported] for name, rows in sets.items()}
    supported["all supported"] = [row for rows in supported.values() for row in rows]
    changes = changed_sentences(options.data, options.limit, _SEED)
    print(f"{'':32}{'n':>7}{'figures':>9}{'conflict':>10}{'absent':>8}{'caught':>8}{'ms':>7}")
    for name, rows in (supported | {f"changed {kind}": changes[kind] for kind in _CHANGED}).items():
        counts, seconds = checked(rows)
        if total := counts["all"]:
            shares = [f"{counts[key] / total:.2%}" for key in ("figures", "conflict", "absent", "caught")]
            print(f"{name:32}{total:7}{shares[0]:>9}{shares[1]:>10}{shares[2]:>8}{shares[3]:>8}", end="")
            print(f"{1000 * seconds / total:7.2f}")


if __name__ == "__main__":
    main()
