"""Features -> a combiner, its calibration and the lines between verdicts.

For the rules alone: gradient-boosted trees, monotone where more of a feature can only speak for (or against)
support, whatever the rest says. With a verifier: a logistic of few log-odds, what those trees say (they were
fitted on other rows) and what the verifier says, because trees over all features learn the data sets: on sets
they were kept from they were worse. Platt's logistic on rows that were not fitted on sets the line. For the
rules alone its slope is halfway (the geometric mean) between what these rows allow and what rows of data sets
that the combiner was kept from allow: the judge meets texts that are of none of the sets, but seldom as
strange as one puzzle of them is to others. With a verifier, which has read other texts of all the sets, it is
what rows of sets that the combiner was kept from allow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from guardrail.judges.local.combiner import BoostedTrees, Logistic, log_odds
from guardrail.judges.local.verification import READ_SUPPORT, RULES_SUPPORT, UNREAD_RULES
from training.metrics import calibration_error
from training.sampling import weight_of
from training.trees import export_trees

FOR: Final = frozenset((
    "passage", "passage_plain", "sentence", "two_sentences", "three_sentences", "anywhere", "passage_own",
    "passage_bigrams", "sentence_bigrams", "in_order", "longest", "value_frame",
    "model_support", "model_support_sentences", "model_support_mean",
))  # fmt: skip
AGAINST: Final = frozenset((
    "passage_missing_max", "passage_missing", "anywhere_missing_max", "anywhere_missing", "swapped",
    "turned_ahead", "antonym", "other_name", "claim_negates", "source_negates", "values_absent",
    "values_conflicting", "value_conflict", "names_nowhere", "names_not_in_passage", "absolutes",
    "model_contradiction", "model_contradiction_at_best", "model_token_max", "model_token_mean",
))  # fmt: skip

LOG_ODDS: Final = (RULES_SUPPORT, "model_contradiction")
STACKED: Final = (*LOG_ODDS, READ_SUPPORT, UNREAD_RULES)
"""What the combiner looks at where there is a verifier; the first two enter as log-odds, the others are."""

_LEAST_SHARES: Final = (0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
# A contradiction may block an answer, and answers have fewer of them than these rows.
_LEAST_CONTRADICTION: Final = 0.9
# Of balanced accuracy: words that no source has are a reason that a reader can check.
_SHARE_MAY_COST: Final = 0.002

_WHOLE_WEIGHT_FROM: Final = 300  # rows; smaller sets count less, so that no row counts much more than others
_PARTLY_BELOW: Final = 0.1
_FLATTEST: Final = 0.1  # of the slope that the sets which were fitted on allow
_TRUE_CONTRADICTIONS: Final = 0.9


@dataclass(frozen=True, slots=True)
class Features:
    """What the judge found out about the rows: names of the columns, ``x [rows, columns]``, labels, data
    sets, and whether a row is set apart for calibration."""

    names: list[str]
    x: Any
    labels: list[str]
    sets: list[str]
    apart: Any

    @property
    def supported(self) -> Any:
        """Whether each row is wholly supported."""
        return np.array([label in ("supported", "Complete") for label in self.labels])


@dataclass(frozen=True, slots=True)
class Fitted:
    """The combiner with its calibration, and its expected error on rows set apart: of the data sets that it
    knows, and of sets that it was kept from (``nan`` where there is one set only). ``strange`` are the
    probabilities of the latter, ``nan`` for rows that there are none of."""

    combiner: BoostedTrees | Logistic
    error_on_known_sets: float
    error_on_other_sets: float
    strange: Any


@dataclass(frozen=True, slots=True)
class Lines:
    """The least probability of each verdict; ``contradicted`` is of ``model_contradiction`` or None.
    ``share``: of a claim, by rarity, that the sources must mention before it can be supported."""

    supported: float
    partially: float
    contradicted: float | None
    share: float


_Calibrated = Callable[[float, float], BoostedTrees | Logistic]
"""``(scale, shift)`` of the raw scores -> the combiner."""
_Fit = Callable[[Features, Any, Any], tuple[Any, _Calibrated]]
"""Features, which rows to fit on, weights -> what is made of every row (log-odds), and the combiner."""


def weights_of(sets: Sequence[str], supported: Any) -> Any:
    """Each data set counts as ``weight_of`` says, both its classes alike; the mean is 1."""
    count: Counter[tuple[str, bool]] = Counter(zip(sets, supported.tolist(), strict=True))
    rows = Counter(sets)
    raw = np.array(
        [
            weight_of(s) * min(1.0, rows[s] / _WHOLE_WEIGHT_FROM) / count[s, bool(true)]
            for s, true in zip(sets, supported, strict=True)
        ]
    )
    # Both classes alike over everything, too: probabilities are for even odds.
    for true in (True, False):
        raw[supported == true] /= raw[supported == true].sum()
    return raw / raw.mean()


def fit(features: Features, weights: Any, *, seed: int, rounds: int = 150) -> Fitted:
    """A combiner of the rows that are not set apart, calibrated on those that are.

    Raises ValueError where either part lacks a class.
    """
    y, apart = features.supported, features.apart
    for part, name in ((~apart, "to fit on"), (apart, "set apart")):
        if len(set(y[part].tolist())) < 2:
            raise ValueError(f"the rows {name} are not of both classes")
    fitted: _Fit = (
        _stacked if RULES_SUPPORT in features.names else partial(_boosted, seed=seed, rounds=rounds)
    )
    own, calibrated = fitted(features, ~apart, weights)
    scale, shift = platt(own[apart], y[apart], weights[apart])
    strange, known = _transferred(features, weights, fitted)
    if scale > 0.0 and len(set(y[known].tolist())) == 2:
        line = -shift / scale
        flatter = slope(strange[known] - line, y[known], weights[known])
        flatter = max(flatter, _FLATTEST * scale)
        scale = flatter if fitted is _stacked else math.sqrt(scale * flatter)
        shift = -line * scale
    combiner = calibrated(scale, shift)
    _same(combiner, features, 1.0 / (1.0 + np.exp(-(scale * own[apart] + shift))))

    def error(raw: Any, part: Any) -> float:
        p = 1.0 / (1.0 + np.exp(-(scale * raw[part] + shift)))
        return calibration_error(y[part].tolist(), p.tolist(), weights=weights[part].tolist())

    unsure = np.where(known, 1.0 / (1.0 + np.exp(-(scale * strange + shift))), np.nan)
    return Fitted(combiner, error(own, apart), error(strange, known), unsure)


def _boosted(
    features: Features, part: Any, weights: Any, *, seed: int, rounds: int
) -> tuple[Any, _Calibrated]:
    signs = [1 if n in FOR else -1 if n in AGAINST else 0 for n in features.names]
    boosting = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=rounds, max_leaf_nodes=6, l2_regularization=5.0,
        min_samples_leaf=min(60, max(1, len(features.sets) // 50)), monotonic_cst=signs,
        early_stopping=False, random_state=seed,
    )  # fmt: skip
    with threadpool_limits(limits=1):  # sums in one order; and threads that wait for another take longer
        model = boosting.fit(features.x[part], features.supported[part], sample_weight=weights[part])

    def calibrated(scale: float, shift: float) -> BoostedTrees:
        bias, trees = export_trees(model, features.names)
        return BoostedTrees(bias=bias, scale=scale, shift=shift, trees=trees)

    return model.decision_function(features.x), calibrated


def _stacked(features: Features, part: Any, weights: Any) -> tuple[Any, _Calibrated]:
    x = np.column_stack([_column(features, name) for name in STACKED])
    model = LogisticRegression(C=1.0).fit(x[part], features.supported[part], sample_weight=weights[part])

    def calibrated(scale: float, shift: float) -> Logistic:
        found = zip(STACKED, model.coef_[0], strict=True)
        return Logistic(
            bias=scale * float(model.intercept_[0]) + shift,
            weights={name: round(scale * float(weight), 5) for name, weight in found},
            log_odds=LOG_ODDS,
        )

    return model.decision_function(x), calibrated


def _column(features: Features, name: str) -> Any:
    column = features.x[:, features.names.index(name)]
    return np.array([log_odds(p) for p in column.tolist()]) if name in LOG_ODDS else column


def _transferred(features: Features, weights: Any, fitted: _Fit) -> tuple[Any, Any]:
    """``(raw, known)``: what combiners that never saw a family of data sets say of its rows set apart."""
    families = np.array([name.split("-")[0] for name in features.sets])
    y = features.supported
    raw, known = np.zeros(len(y)), np.zeros(len(y), dtype=bool)
    for family in sorted(set(families.tolist())):
        others = ~features.apart & (families != family)
        mine = features.apart & (families == family)
        if mine.any() and len(set(y[others].tolist())) == 2:
            raw[mine] = fitted(features, others, weights)[0][mine]
            known |= mine
    return raw, known


def platt(raw: Any, y: Any, weights: Any) -> tuple[float, float]:
    """``(scale, shift)`` so that ``sigmoid(scale * raw + shift)`` are probabilities."""
    model = LogisticRegression(C=1e6).fit(raw.reshape(-1, 1), y, sample_weight=weights)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def slope(raw: Any, y: Any, weights: Any) -> float:
    """The scale of a logistic that says one half at 0."""
    model = LogisticRegression(C=1e6, fit_intercept=False).fit(raw.reshape(-1, 1), y, sample_weight=weights)
    return float(model.coef_[0, 0])


def probabilities(combiner: BoostedTrees | Logistic, features: Features) -> Any:
    """What the judge's own code makes of each row."""
    return np.array(
        [combiner.probability(dict(zip(features.names, row, strict=True))) for row in features.x.tolist()]
    )


def lines_of(features: Features, p: Any, weights: Any, strange: Any = None) -> Lines:
    """The lines, from the rows that are set apart; with a verifier, that of partial support from
    ``strange`` (see ``Fitted``): an answer on a matter that is new to it is not made up for that.

    For calibrated probabilities at even odds the line that is right most often, both classes counting
    alike, is one half. Partially supported is what lies above the lowest tenth of the supported claims. A
    claim is contradicted where the verifier's contradiction reaches what nine in ten claims that reach it,
    and that are not supported, deserve, and at least 0.9; None where nothing reaches that. The rules
    know no other words for a thing and want most of a claim's; a verifier does, and the highest share stands
    that costs next to nothing.
    """
    apart, y = features.apart, features.supported
    said, mine = p, apart & y
    if strange is not None and RULES_SUPPORT in features.names and (y & ~np.isnan(strange)).any():
        said, mine = strange, y & ~np.isnan(strange)
    order = np.argsort(said[mine])
    cumulated = np.cumsum(weights[mine][order]) / weights[mine].sum()
    low = float(said[mine][order][int(np.searchsorted(cumulated, _PARTLY_BELOW))])
    return Lines(0.5, min(0.5, low), _contradicted(features, p), _least_share(features, p, weights))


def _least_share(features: Features, p: Any, weights: Any) -> float:
    if RULES_SUPPORT not in features.names:
        return _LEAST_SHARES[0]
    apart, y = features.apart, features.supported
    share = features.x[:, features.names.index("anywhere")]

    def right(least: float) -> float:
        said = (p >= 0.5) & (share >= least)
        return (
            float(
                np.average(said[apart & y], weights=weights[apart & y])
                + np.average(~said[apart & ~y], weights=weights[apart & ~y])
            )
            / 2.0
        )

    best = max(right(least) for least in _LEAST_SHARES)
    return next(least for least in _LEAST_SHARES if right(least) >= best - _SHARE_MAY_COST)


def _contradicted(features: Features, p: Any) -> float | None:
    if "model_contradiction" not in features.names:
        return None
    labels = np.array(features.labels)
    told = features.apart & (p < 0.5) & np.isin(labels, ("contradicted", "unsupported", "supported"))
    vague = np.array([s.endswith(("addition", "qualifier", "overgeneralisation")) for s in features.sets])
    told &= ~vague
    scores = features.x[told, features.names.index("model_contradiction")]
    truths = labels[told] == "contradicted"
    order = np.argsort(-scores)
    precision = np.cumsum(truths[order]) / np.arange(1, len(order) + 1)
    good = np.flatnonzero((precision >= _TRUE_CONTRADICTIONS) & (np.arange(len(order)) >= 20))
    return max(_LEAST_CONTRADICTION, float(scores[order][good[-1]])) if len(good) else None


def _same(combiner: BoostedTrees | Logistic, features: Features, expected: Any) -> None:
    """What is exported, evaluated as the judge does, gives the probabilities that the library gave."""
    rows = features.x[features.apart]
    for row, wanted in list(zip(rows, expected, strict=True))[:200]:
        got = combiner.probability(dict(zip(features.names, row.tolist(), strict=True)))
        if abs(got - wanted) > 1e-3:
            raise ValueError(f"the exported combiner says {got:.4f} where the fitted one says {wanted:.4f}")
