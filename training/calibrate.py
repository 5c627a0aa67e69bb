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
import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import roc_auc_score

from guardrail.errors import GuardrailError
from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import stem, words
from guardrail.judges.local.combiner import Logistic, Parameters
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings
from guardrail.judges.local.verifier import Verifier, load_verifier
from training.calibration_rows import MOST_ROWS, held_out_rows, split_by_document
from training.combiner_fit import Features, fit, lines_of, probabilities, weights_of
from training.examining import Examiner
from training.examples import DataError
from training.metrics import auroc
from training.prepare import source_rows
from training.rows import LICENCES, Row
from training.sampling import sample

SEED: Final = 20260101
_VERSION: Final = 1
_RARITY_WORDS: Final = 3000
_APART: Final = 0.2
_PACKAGED: Final = Path("guardrail/judges/local")


def rarity(rows: Iterable[Row]) -> dict[str, float]:
    """The commonest stems of the sentences of all contexts, and how little each says (see ``Rarity``)."""
    seen: set[int] = set()
    frequency: Counter[str] = Counter()
    sentences = 0
    for row in rows:
        for text in row.contexts:
            if row.dataset not in LICENCES or hash(text) in seen:
                continue
            seen.add(hash(text))
            for start, end in zip(*sentence_spans(text), strict=True):
                sentences += 1
                frequency.update({stem(surface) for _, _, surface in words(text[start:end])})
    listed = [(word, n) for word, n in frequency.most_common(_RARITY_WORDS) if word.isalpha()]
    if not listed or listed[-1][1] == sentences:
        return {}
    least = math.log(sentences / listed[-1][1])
    return {word: round(math.log(sentences / n) / least, 3) for word, n in listed}


def features_of(
    rows: Sequence[Row],
    weights: dict[str, float],
    verifier: Verifier | None,
    settings: LocalJudgeSettings | None = None,
) -> Features:
    """What the judge finds out about the rows that share a word with their contexts.

    A verifier is at work where one is given; the features don't depend on anything fitted but the rarities.
    """
    blank = Parameters(
        version=_VERSION, provenance={}, supported_at=0.5, partially_supported_at=0.5,
        combiner=Logistic(bias=0.0, weights={}), rarity=weights,
    )  # fmt: skip
    examiner = Examiner(blank, verifier, settings)
    apart = split_by_document(rows, share=_APART, seed=SEED)
    names: list[str] = []
    vectors, kept = [], []
    for number, row in enumerate(rows):
        found = examiner.features(row)
        if found is not None:
            names = list(found)
            vectors.append(list(found.values()))
            kept.append(number)
        if number % 1000 == 999:
            print(f"  {number + 1:,} of {len(rows):,} rows examined", flush=True)
    if not kept:
        raise DataError(
            "none of the rows could be examined: the verifier lacks their words, or there are none"
        )
    return Features(
        names,
        np.array(vectors, dtype=np.float64),
        [rows[n].label for n in kept],
        [rows[n].dataset for n in kept],
        np.array([apart[n] for n in kept], dtype=bool),
    )


def figures_of(features: Features, p: Any) -> dict[str, dict[str, Any]]:
    """Each data set's rows, and on those that are set apart: AUROC and the share told right, percent."""
    by_set: dict[str, list[int]] = defaultdict(list)
    for number in np.flatnonzero(features.apart).tolist():
        by_set[features.sets[number]].append(number)
    y = features.supported
    figures = {}
    for name, numbers in sorted(by_set.items()):
        truths = y[numbers].tolist()
        said = (p[numbers] >= 0.5).tolist()
        figures[name] = {
            "rows": features.sets.count(name),
            "auroc_held_out": _percent(auroc(truths, p[numbers].tolist())),
            "right_held_out": _percent(sum(a == t for a, t in zip(said, truths, strict=True)) / len(truths)),
        }
    return figures


def calibrated(
    features: Features, common: dict[str, float], verifier: FittedVerifier | None, *, seed: int = SEED
) -> Parameters:
    """The parameters. Raises ValueError where the rows don't suffice."""
    y = features.supported
    w = weights_of(features.sets, y)
    fitted = fit(features, w, seed=seed)
    combiner = fitted.combiner
    p = probabilities(combiner, features)
    lines = lines_of(features, p, w)
    apart = features.apart
    made = sorted({s for s in features.sets if s not in LICENCES})
    return Parameters(
        version=_VERSION,
        provenance={
            "written_by": "training/calibrate.py",
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "seed": seed,
            "rows": len(y),
            "licences": {name: LICENCES[name] for name in sorted(set(features.sets)) if name in LICENCES},
            "synthetic": f"made from texts of the data sets above: {', '.join(made)}" if made else "",
            "figures": figures_of(features, p),
            "auroc_held_out": _percent(roc_auc_score(y[apart], p[apart], sample_weight=w[apart])),
            "brier_held_out": round(float(np.average((p - y)[apart] ** 2, weights=w[apart])), 4),
            "calibration_error_known_sets_held_out": _percent(fitted.error_on_known_sets),
            "calibration_error_other_sets_held_out": _percent(fitted.error_on_other_sets),
        },
        supported_at=round(lines.supported, 3),
        partially_supported_at=round(lines.partially, 3),
        contradicted_at=None if lines.contradicted is None else round(lines.contradicted, 3),
        combiner=combiner,
        rarity=common,
        verifier=verifier,
        least_share=lines.share,
    )


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


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 1)


def _saved(path: Path, features: Features, common: dict[str, float]) -> None:
    np.savez_compressed(
        path, names=features.names, x=features.x, labels=features.labels, sets=features.sets,
        apart=features.apart, rarity=json.dumps(common),
    )  # fmt: skip


def _kept(path: Path) -> tuple[Features, dict[str, float]]:
    with np.load(path, allow_pickle=False) as kept:
        return Features(
            kept["names"].tolist(), kept["x"], kept["labels"].tolist(), kept["sets"].tolist(), kept["apart"]
        ), json.loads(str(kept["rarity"]))


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
    try:
        _run(options)
    except (DataError, GuardrailError, OSError, ValueError) as error:
        parser.exit(1, f"calibrate: {error}\n")


def _run(options: argparse.Namespace) -> None:
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
        features, common = _kept(options.features)
    else:
        common = rarity(source_rows(options.data))
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
            _saved(options.features, features, common)
    parameters = calibrated(features, common, fitted)
    out = options.out or _PACKAGED / ("parameters-rules.json" if alone else "parameters.json")
    out.write_text(readable(parameters), encoding="utf-8")
    print(json.dumps({k: v for k, v in parameters.provenance.items() if k != "licences"}, indent=1))
    lines = (parameters.supported_at, parameters.partially_supported_at, parameters.contradicted_at)
    print(f"{out}: supported, partially supported, contradicted at {lines}")


if __name__ == "__main__":
    main()
