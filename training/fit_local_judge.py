"""Fit the local judge's combiner and write guardrail/judges/local/parameters.json.

    python training/fit_local_judge.py --data DIR [--out FILE] [--features CACHE.npz]

``DIR`` holds ``pool-train.jsonl.gz``; validation files are never read. The features are those the judge
computes, by the same code. Gradient-boosted trees, monotone where more of a feature can only speak for
(or against) support, are fitted on four fifths of the rows and calibrated (Platt) on the last fifth; the
lines between verdicts come from that fifth too. Needs the ``training`` extra; the judge itself needs
nothing of it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from guardrail.claims.model import Claim
from guardrail.events import Severity
from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import stem, words
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import BoostedTrees, Logistic, Parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from training.rows import LICENCES, Row, pool
from training.sampling import sample, weight_of
from training.trees import export_trees

SEED: Final = 20260101
_VERSION: Final = 1
_RARITY_WORDS: Final = 3000
_FOR: Final = frozenset(
    """
    passage passage_plain sentence two_sentences three_sentences anywhere passage_own passage_bigrams
    sentence_bigrams in_order longest value_frame
    """.split()  # noqa: SIM905
)
_AGAINST: Final = frozenset(
    """
    passage_missing_max passage_missing anywhere_missing_max anywhere_missing swapped turned_ahead antonym
    other_name claim_negates source_negates values_absent values_conflicting value_conflict names_nowhere
    names_not_in_passage absolutes
    """.split()  # noqa: SIM905
)


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
    least = math.log(sentences / listed[-1][1])
    return {word: round(math.log(sentences / n) / least, 3) for word, n in listed}


def features_of(rows: Iterable[Row], weights: dict[str, float]) -> tuple[list[str], Any, Any, list[str]]:
    """``(names, features, labels, data sets)`` of the rows that share a word with their contexts."""
    blank = Parameters(
        version=_VERSION, provenance={}, supported_at=0.5, partially_supported_at=0.5,
        combiner=Logistic(bias=0.0, weights={}), rarity=weights,
    )  # fmt: skip
    checker = ClaimChecker(LocalJudgeSettings(), blank)
    names: list[str] = []
    vectors, labels, sets = [], [], []
    for row in rows:
        claim = Claim(0, 0, row.claim, 0, len(row.claim), Severity.NORMAL, lead_in=row.lead_in)
        examined = checker.examine(claim, row.question, row.index())
        if examined is not None:
            names = list(examined.features)
            vectors.append(list(examined.features.values()))
            labels.append(row.supported)
            sets.append(row.dataset)
    return names, np.array(vectors, dtype=np.float64), np.array(labels), sets


def weights_of(sets: list[str], labels: Any) -> Any:
    """Each data set counts as ``weight_of`` says, both its classes alike; the mean is 1."""
    count: Counter[tuple[str, bool]] = Counter(zip(sets, labels.tolist(), strict=True))
    raw = np.array([weight_of(s) / count[s, bool(label)] for s, label in zip(sets, labels, strict=True)])
    # Both classes alike over everything, too: probabilities are for even odds.
    for truth in (True, False):
        raw[labels == truth] /= raw[labels == truth].sum()
    return raw / raw.mean()


def fit(names: list[str], x: Any, y: Any, w: Any) -> Any:
    """The boosted trees."""
    signs = [1 if name in _FOR else -1 if name in _AGAINST else 0 for name in names]
    model = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=150, max_leaf_nodes=6, min_samples_leaf=60, l2_regularization=5.0,
        monotonic_cst=signs, early_stopping=False, random_state=SEED,
    )  # fmt: skip
    return model.fit(x, y, sample_weight=w)


def lines(p: Any, y: Any, w: Any) -> tuple[float, float]:
    """``(supported_at, partially_supported_at)``.

    For calibrated probabilities at even odds the line that is right most often, both classes counting
    alike, is one half. Partially supported is what lies above the lowest tenth of the supported claims.
    """
    order = np.argsort(p[y])
    share = np.cumsum(w[y][order]) / w[y].sum()
    return 0.5, min(0.5, float(p[y][order][int(np.searchsorted(share, 0.1))]))


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with pool-train.jsonl.gz")
    parser.add_argument("--out", type=Path, default=Path("guardrail/judges/local/parameters.json"))
    parser.add_argument("--features", type=Path, help="keep the features here, or take them from here")
    options = parser.parse_args()
    source = options.data / "pool-train.jsonl.gz"
    if options.features and options.features.exists():
        kept = np.load(options.features, allow_pickle=False)
        names, sets = kept["names"].tolist(), kept["sets"].tolist()
        x, y, common = kept["x"], kept["y"], json.loads(str(kept["rarity"]))
    else:
        common = rarity(pool(source))
        names, x, y, sets = features_of(sample(pool(source), seed=SEED), common)
        if options.features:
            np.savez_compressed(options.features, names=names, sets=sets, x=x, y=y, rarity=json.dumps(common))
    held = np.random.default_rng(SEED).random(len(y)) < 0.2
    w = weights_of(sets, y)
    model = fit(names, x[~held], y[~held], w[~held])
    raw = model.decision_function(x[held])
    platt = LogisticRegression(C=1e6).fit(raw.reshape(-1, 1), y[held], sample_weight=w[held])
    bias, trees = export_trees(model, names)
    combiner = BoostedTrees(
        bias=bias, scale=float(platt.coef_[0, 0]), shift=float(platt.intercept_[0]), trees=trees
    )
    p = platt.predict_proba(raw.reshape(-1, 1))[:, 1]
    _same(combiner, names, x[held], p)
    supported_at, partial_at = lines(p, y[held], w[held])
    by_set: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(np.flatnonzero(held)):
        by_set[sets[row]].append(position)
    figures = {}
    for name, at in sorted(by_set.items()):
        truth, guess = y[held][at], p[at]
        ranked = round(100 * float(roc_auc_score(truth, guess)), 1) if 0 < truth.sum() < len(at) else None
        figures[name] = {
            "rows": sets.count(name),
            "auroc_held_out": ranked,
            "right_held_out": round(100 * float(np.mean((guess >= supported_at) == truth)), 1),
        }
        print(f"{name:24}", figures[name])
    parameters = Parameters(
        version=_VERSION,
        provenance={
            "written_by": "training/fit_local_judge.py",
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "seed": SEED,
            "rows": len(y),
            "licences": {name: LICENCES[name] for name in sorted(set(sets)) if name in LICENCES},
            "synthetic": "minimal pairs made from the contexts of the data sets above (training/perturb.py)",
            "figures": figures,
            "auroc_held_out": round(100 * float(roc_auc_score(y[held], p, sample_weight=w[held])), 1),
            "brier_held_out": round(float(np.average((p - y[held]) ** 2, weights=w[held])), 4),
        },
        supported_at=round(supported_at, 3),
        partially_supported_at=round(partial_at, 3),
        combiner=combiner,
        rarity=common,
    )
    options.out.write_text(_readable(parameters), encoding="utf-8")
    print(
        {k: v for k, v in parameters.provenance.items() if k.endswith("held_out")}, supported_at, partial_at
    )


def _same(combiner: BoostedTrees, names: list[str], x: Any, p: Any) -> None:
    """The exported trees, evaluated as the judge does, give what the library gave."""
    for row, expected in list(zip(x, p, strict=True))[:200]:
        got = combiner.probability(dict(zip(names, row.tolist(), strict=True)))
        assert abs(got - expected) < 1e-3, (got, expected)


def _readable(parameters: Parameters) -> str:
    """JSON with one tree and one word a line."""
    raw = parameters.model_dump()
    trees, common = raw["combiner"].pop("trees"), raw.pop("rarity")
    head = json.dumps(raw, indent=1)
    listed = ",\n".join(json.dumps(tree, separators=(",", ":")) for tree in trees)
    words_ = json.dumps(common, indent=0, ensure_ascii=False)
    head = head.rstrip().removesuffix("}").rstrip()
    body, end = head.rsplit("\n }", 1)
    return f'{body},\n  "trees": [\n{listed}\n]\n }}{end},\n "rarity": {words_}\n}}\n'


if __name__ == "__main__":
    main()
