"""Fit the local judge's combiner: what is found out about claims -> calibrated probabilities, and the lines.

    python -m training.calibrate --data DIR --work WORK --verifier FOLDER [--out FILE]

The rows are those held out of the verifier's training (of ``WORK/prepared.jsonl.gz`` and
``WORK/synthetic.jsonl.gz``) and minimal pairs of held-out documents. Validation files are never read. The
features are those the judge computes, by the same code, all windows read.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import FEATURES, Combiner, Fit, Lines, Parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import FittedVerifier, load_verifier
from training.calibration_rows import MOST_ROWS, held_out_rows
from training.examples import DataError
from training.rows import LICENCES, Row
from training.steps import running

if TYPE_CHECKING:
    from training.combiner_fit import Features

SEED: Final = 20260101
SURE: Final = 0.55
HOPELESS: Final = 0.03
"""Where reading ends."""


def unfitted(verifier: FittedVerifier) -> Parameters:
    """Parameters that say nothing yet: for what is found out before they are asked."""
    fit = Fit(
        combiner=Combiner(biases=(0, 0, 0, 0), weights={}),
        lines=Lines(supported=0.5, partially=0.3, contradicted=0.9, sure=1.0, hopeless=0.0),
    )
    return Parameters(version=2, provenance={}, verifier=verifier, read=fit, words=fit)


def features_of(rows: Sequence[Row], checker: ClaimChecker) -> Features:
    """The features of the rows that have something to compare, all windows read. Raises DataError."""
    import numpy as np

    from training.combiner_fit import Features

    found: list[list[float]] = []
    kept: list[Row] = []
    for number, row in enumerate(rows, 1):
        examined = checker.examine(row.as_claim(), row.question, row.index())
        if examined is not None:
            found.append([examined.features.get(name, np.nan) for name in FEATURES])
            kept.append(row)
        if number % 500 == 0:
            print(f"  {number:,} of {len(rows):,} rows examined", flush=True)
    if not kept:
        raise DataError("none of the rows has something to compare its claim with")
    return Features(np.array(found), [row.label for row in kept], [row.dataset for row in kept])


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, required=True, help="folder of prepared and synthetic")
    parser.add_argument("--verifier", type=Path, required=True, help="a folder that training.export wrote")
    parser.add_argument("--out", type=Path, help="default: parameters.json beside the verifier")
    parser.add_argument("--features", type=Path, help="keep the features here (.npz), or take them from here")
    parser.add_argument(
        "--more", type=Path, nargs="*", default=(), help="features of other draws (.npz), added"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw of the rows")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="most of one data set")
    options = parser.parse_args()
    with running(parser, "calibrate"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    from training.combiner_fit import Features, fits

    verifier = load_verifier(options.verifier)
    if options.features and options.features.exists():
        features = Features.load(options.features)
    else:
        rows = held_out_rows(options.data, options.work, seed=options.seed, most=options.rows)
        checker = ClaimChecker(LocalJudgeSettings(), unfitted(verifier.fitted()), verifier)
        features = features_of(rows, checker)
        if options.features:
            features.save(options.features)
    for file in options.more:
        features += Features.load(file)
    read, words = fits(features, sure=SURE, hopeless=HOPELESS)
    sets = Counter(features.sets)
    parameters = Parameters(
        version=2,
        provenance={
            "written_by": "training/calibrate.py",
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "seed": options.seed,
            "rows": dict(sorted(sets.items())),
            "licences": {name: LICENCES[name] for name in sorted(sets) if name in LICENCES},
        },
        verifier=verifier.fitted(),
        read=read,
        words=words,
    )
    out = options.out or options.verifier / "parameters.json"
    out.write_text(
        json.dumps(parameters.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(f"{out}: {len(features.labels):,} rows; {read.lines}")


if __name__ == "__main__":
    main()
