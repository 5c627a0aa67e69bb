"""Which share of claims a cascade passes on to its second judge, and how good the first one is on the others.

    python -m benchmarks.cascade_share --data DIR

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``. Each claim gets the severity that the guard
would give it, is judged by the local judge, and settled or not by the bands, as ``CascadeJudge`` does it.
``right`` is the share of claims whose being called SUPPORTED or not agrees with people's labels (wholly
supported or not): of those that stay (``settled``), of those that go on (``open``), and of all. Apart from
that, how often SUPPORTED and how often the other verdicts are right among the settled ones, and how often a
CONTRADICTED is wrong because the claim is supported after all.

``--accept 0.97 --reject 0.03`` measures one band for all severities in place of the default ones;
``--rules`` leaves the verifier out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets, require_files
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import SegmentKind, Severity, Verdict
from guardrail.judges.cascade.bands import settled
from guardrail.judges.cascade.settings import Band, CascadeSettings
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.assembly import build_checker
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.settings import VerifierSettings
from training.rows import Row

SEED: Final = 20260101


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim: what people say, what the local judge says, and whether that stands."""

    supported: bool
    severity: Severity
    verdict: Verdict
    settled: bool

    @property
    def right(self) -> bool:
        return self.supported == (self.verdict is Verdict.SUPPORTED)


def judged(row: Row, checker: ClaimChecker, rater: BuiltinSeverityRater, settings: CascadeSettings) -> Judged:
    """The row as the first tier of a cascade sees it."""
    severity, _ = rater.rate(row.claim, SegmentKind.SENTENCE)
    judgement = checker.check("c", row.as_claim(severity), row.question, row.index())
    return Judged(row.supported, severity, judgement.verdict, settled(judgement, severity, settings))


def percent(rows: Iterable[bool]) -> float:
    """The share of True; not a number where there are none."""
    known = list(rows)
    return 100 * sum(known) / len(known) if known else float("nan")


def figures(rows: Sequence[Judged]) -> dict[str, float]:
    """The columns of the table, all but the number of claims in percent."""
    inside = [row for row in rows if row.settled]
    return {
        "claims": len(rows),
        "goes on": percent(not row.settled for row in rows),
        "settled right": percent(row.right for row in inside),
        "open right": percent(row.right for row in rows if not row.settled),
        "all right": percent(row.right for row in rows),
        "SUPPORTED right": percent(row.right for row in inside if row.verdict is Verdict.SUPPORTED),
        "others right": percent(row.right for row in inside if row.verdict is not Verdict.SUPPORTED),
        "CONTRAD. wrong": percent(row.supported for row in rows if row.verdict is Verdict.CONTRADICTED),
    }


def show(title: str, table: dict[str, dict[str, float]]) -> None:
    """Print a table of rows by name."""
    columns = list(next(iter(table.values())))
    print(f"\n{title:22}" + "".join(f"{column:>17}" for column in columns))
    for name, row in table.items():
        cells = (f"{row[c]:>17.0f}" if c == "claims" else f"{row[c]:>17.1f}" for c in columns)
        print(f"{name:22}" + "".join(cells))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data files")
    parser.add_argument("--limit", type=int, default=600, help="most claims of one set (sampled)")
    parser.add_argument("--accept", type=float, help="accept_support for all severities")
    parser.add_argument("--reject", type=float, help="reject_support for all severities")
    parser.add_argument("--rules", action="store_true", help="without the verifier")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    settings = CascadeSettings()
    if options.accept is not None or options.reject is not None:
        accept = 0.9 if options.accept is None else options.accept
        reject = 0.1 if options.reject is None else options.reject
        band = Band(accept_support=accept, reject_support=reject)
        settings = CascadeSettings(bands=dict.fromkeys(Severity, band))

    begun = time.perf_counter()
    local = LocalJudgeSettings(verifier=VerifierSettings(enabled=not options.rules))
    checker, rater = build_checker(local), BuiltinSeverityRater()
    sets = {
        name: [judged(row, checker, rater, settings) for row in rows]
        for name, rows in labelled_sets(options.data, options.limit, SEED).items()
    }
    everything = [row for rows in sets.values() for row in rows]
    table = {name: figures(rows) for name, rows in sets.items()} | {"all": figures(everything)}
    show("set", table)
    severities = {
        severity.value: figures([row for row in everything if row.severity is severity])
        for severity in Severity
    }
    show("severity, all sets", severities)
    expert = {
        severity.value: figures([row for row in sets["expertqa"] if row.severity is severity])
        for severity in Severity
    }
    show("severity, expertqa", expert)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    if options.json:
        whole = {"sets": table, "severities": severities, "expertqa": expert}
        options.json.write_text(json.dumps(whole, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
