"""Fit the local judge's combiner: features of rules and verifier -> a calibrated probability, and the lines.

    python -m training.calibrate --data DIR --work WORK --verifier FOLDER [--out parameters.json]
    python -m training.calibrate --data DIR --verifier none [--out parameters-rules.json]

With a verifier the rows are those held out of its training (of ``WORK/prepared.jsonl.gz`` and
``WORK/synthetic.jsonl.gz``) and minimal pairs of held-out documents; without one, rows of
the data sets in ``DIR``. Validation files are never read. The features are those the judge computes, by
the same code. A fifth of the rows, split by document, is set apart for calibration and lines.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Final

from guardrail.judges.local.combiner import Parameters, load_rules_parameters
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings
from guardrail.judges.local.verifier import load_verifier
from training.calibration_rows import MOST_ROWS, held_out_rows
from training.examples import DataError
from training.prepare import source_rows
from training.sampling import sample
from training.steps import running

_PACKAGED: Final = Path("guardrail/judges/local")


def readable(parameters: Parameters) -> str:
    """JSON with one tree and one word a line."""
    raw = parameters.model_dump(mode="json")
    trees, common = raw["combiner"].get("trees"), raw.pop("rarity")
    raw["rarity"] = "@rarity"
    if trees is not None:
        raw["combiner"]["trees"] = "@trees"
    text = json.dumps(raw, indent=1, ensure_ascii=False)
    listed = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees or ())
    text = text.replace('"@trees"', f"[\n{listed}\n]")
    return text.replace('"@rarity"', json.dumps(common, indent=0, ensure_ascii=False)) + "\n"


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--work", type=Path, help="folder of prepared.jsonl.gz and synthetic.jsonl.gz")
    parser.add_argument("--verifier", required=True, help="a folder that training.export wrote, or none")
    parser.add_argument("--out", type=Path, help="default: the packaged parameters(-rules).json")
    parser.add_argument("--features", type=Path, help="keep the features here (.npz), or take them from here")
    parser.add_argument("--readings", help="comma-separated: sentences, sentence, passage; default: as run")
    parser.add_argument("--tokens-per-claim", type=int, help="default: as run")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="most of one data set of the work folder")
    options = parser.parse_args()
    with running(parser, "calibrate"):
        try:
            _run(options)
        except ValueError as error:  # options that don't fit together, rows that don't suffice
            raise DataError(str(error)) from error


def _run(options: argparse.Namespace) -> None:
    from training.calibration import SEED, calibrated, features_of, rarity, read_features, save_features

    alone = options.verifier == "none"
    verifier = None if alone else load_verifier(Path(options.verifier))
    fitted = verifier.fitted() if verifier else None
    if fitted:
        asked = {
            "readings": options.readings.split(",") if options.readings else fitted.readings,
            "tokens_per_claim": options.tokens_per_claim or fitted.tokens_per_claim,
        }
        fitted = FittedVerifier.model_validate(fitted.model_dump() | asked)
    if options.features and options.features.exists():
        features, common = read_features(options.features)
    else:
        # The rules' probability is a feature: it has to be what their own parameters make of it.
        common = rarity(source_rows(options.data)) if alone else load_rules_parameters().rarity
        if alone:
            rows = list(sample(source_rows(options.data), seed=SEED))
        elif options.work is None:
            raise DataError("--work is needed with a verifier: the folder that it was trained from")
        else:
            rows = held_out_rows(options.data, options.work, seed=SEED, most=options.rows)
        settings = LocalJudgeSettings()
        if fitted:
            read = {"readings": fitted.readings, "tokens_per_claim": fitted.tokens_per_claim}
            settings = LocalJudgeSettings(verifier=VerifierSettings.model_validate(read))
        features = features_of(rows, common, verifier, settings)
        if options.features:
            save_features(options.features, features, common)
    parameters = calibrated(features, common, fitted)
    out = options.out or _PACKAGED / ("parameters-rules.json" if alone else "parameters.json")
    out.write_text(readable(parameters), encoding="utf-8")
    print(json.dumps({k: v for k, v in parameters.provenance.items() if k != "licences"}, indent=1))
    lines = (parameters.supported_at, parameters.partially_supported_at, parameters.contradicted_at)
    print(f"{out}: supported, partially supported, contradicted at {lines}")


if __name__ == "__main__":
    main()
