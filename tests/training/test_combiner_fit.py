"""Fitting on made features: what is learnt is monotone, calibrated, and the judge's own trees say it."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the extra 'training' is not installed")
pytest.importorskip("sklearn", reason="the extra 'training' is not installed")

from guardrail.judges.local.combiner import Logistic, log_odds  # noqa: E402
from training.combiner_fit import (  # noqa: E402
    STACKED,
    Features,
    fit,
    lines_of,
    probabilities,
    weights_of,
)

NAMES = ["passage", "model_support", "model_contradiction", "noise"]


def made(rows: int = 2000, *, seed: int = 1, certain: bool = False) -> Features:
    """Support grows with ``model_support`` and a little with ``passage``. Of the others those are
    contradicted whose ``model_contradiction`` is above 0.6; where that is ``certain``, no supported one's is.
    """
    random_ = np.random.default_rng(seed)
    x: Any = random_.random((rows, 4))
    supported = random_.random(rows) < 1 / (1 + np.exp(-(8 * (x[:, 1] - 0.5) + 2 * (x[:, 0] - 0.5))))
    x[supported, 2] *= 0.5 if certain else 1.0
    contradicted = ~supported & (x[:, 2] > 0.6)
    labels = np.where(supported, "supported", np.where(contradicted, "contradicted", "unsupported"))
    sets = np.where(np.arange(rows) % 3 == 0, "fever", "conjnli")
    return Features(NAMES, x, labels.tolist(), sets.tolist(), np.arange(rows) % 5 == 0)


class Fitted:
    """Features, what each row counts, the trees, and what they make of each row."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.weights = weights_of(features.sets, features.supported)
        found = fit(features, self.weights, seed=1)
        self.combiner, self.error = found.combiner, found.error_on_known_sets
        self.p = probabilities(self.combiner, features)
        self.lines = lines_of(features, self.p, self.weights)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return Fitted(made())


def test_both_classes_and_every_set_count_as_they_should() -> None:
    sets = ["fever"] * 900 + ["summedits-podcast"] * 300
    supported = np.arange(1200) % 4 == 0
    weights = weights_of(sets, supported)
    assert weights.mean() == pytest.approx(1.0)
    assert weights[supported].sum() == pytest.approx(weights[~supported].sum())
    of_set = np.array(sets) == "fever"
    assert weights[~of_set].sum() == pytest.approx(5 * weights[of_set].sum(), rel=0.01)


def test_a_set_of_a_few_rows_does_not_decide() -> None:
    sets = ["fever"] * 900 + ["wice-claim"] * 6
    weights = weights_of(sets, np.arange(906) % 2 == 0)
    assert weights[-1] < 20 * weights[0]


def test_the_fit_ranks_calibrates_and_never_goes_down_with_support(fitted: Fitted) -> None:
    supported = fitted.features.supported
    assert fitted.p[supported].mean() > fitted.p[~supported].mean() + 0.3
    assert fitted.error < 0.08
    for passage, noise in ((0.2, 0.1), (0.9, 0.9)):
        rising = [
            fitted.combiner.probability(
                {"passage": passage, "model_support": s / 20, "model_contradiction": 0.1, "noise": noise}
            )
            for s in range(21)
        ]
        assert rising == sorted(rising)


def test_the_lines_keep_nine_in_ten_of_the_supported(fitted: Fitted) -> None:
    assert fitted.lines.supported == 0.5
    assert 0.0 < fitted.lines.partially < 0.5
    kept = fitted.p[fitted.features.apart & fitted.features.supported] >= fitted.lines.partially
    assert 0.85 < kept.mean() < 0.95


@pytest.mark.parametrize(("power", "least", "most"), [(1.0, 0.9, 0.9), (0.1, 0.93, 0.96)])
def test_contradicted_is_what_nine_in_ten_deserve_and_surely(power: float, least: float, most: float) -> None:
    """Below 0.9 the verifier's word is not enough, however right it is on these rows."""
    made_up = made(certain=True)
    made_up.x[:, 2] **= power
    certain = Fitted(made_up)
    line, features = certain.lines.contradicted, certain.features
    assert line is not None
    assert least <= line <= most
    said = features.apart & (certain.p < 0.5) & (features.x[:, 2] >= line)
    assert np.mean(np.array(features.labels)[said] == "contradicted") >= 0.9


def test_without_a_verifier_nothing_is_called_contradicted_by_it(fitted: Fitted) -> None:
    whole = fitted.features
    rules = Features(NAMES[:1], whole.x[:, :1], whole.labels, whole.sets, whole.apart)
    assert Fitted(rules).lines.contradicted is None


def test_a_set_unlike_the_others_makes_the_probabilities_more_careful() -> None:
    """Where what speaks for support in one set says nothing in another, nobody may be sure of a third."""
    plain, odd = made(), made()
    random_ = np.random.default_rng(2)
    mixed = [label if s == "conjnli" else random_.choice(["supported", "unsupported"]) for label, s in
             zip(odd.labels, odd.sets, strict=True)]  # fmt: skip
    odd = Features(NAMES, odd.x, mixed, odd.sets, odd.apart)
    sure = {"passage": 0.9, "model_support": 0.98, "model_contradiction": 0.1, "noise": 0.5}
    assert Fitted(odd).combiner.probability(sure) < Fitted(plain).combiner.probability(sure) - 0.05


def test_rows_of_one_class_are_refused() -> None:
    some = made(200)
    only = Features(NAMES, some.x, ["supported"] * 200, some.sets, some.apart)
    with pytest.raises(ValueError, match="not of both classes"):
        fit(only, np.ones(200), seed=1)


def test_with_a_verifier_its_scores_are_added_to_what_the_rules_say() -> None:
    plain = made()
    rules = np.clip(plain.x[:, 0], 0.05, 0.95)
    read = np.array([log_odds(p) for p in plain.x[:, 1].tolist()])
    names = [*NAMES, "rules_support", "unread_rules", "read_support"]
    x = np.column_stack([plain.x, rules, np.zeros(len(rules)), read])
    features = Features(names, x, plain.labels, plain.sets, plain.apart)
    found = fit(features, weights_of(features.sets, features.supported), seed=1)
    assert isinstance(found.combiner, Logistic)
    assert set(found.combiner.weights) == set(STACKED)
    assert set(found.combiner.log_odds) == {"rules_support", "model_contradiction"}
    assert found.combiner.weights["read_support"] > found.combiner.weights["rules_support"] > 0.0
    p = probabilities(found.combiner, features)
    assert p[features.supported].mean() > p[~features.supported].mean() + 0.3
    assert found.error_on_known_sets < 0.08


def test_with_a_verifier_partial_support_is_measured_on_sets_that_the_combiner_was_kept_from() -> None:
    plain = made()
    # model_contradiction is one of both lists.
    names = [*STACKED, "anywhere", *(name for name in NAMES if name not in STACKED)]
    x = np.full((2000, len(names)), 0.5)
    features = Features(names, x, plain.labels, plain.sets, plain.apart)
    sure, weights = np.where(plain.supported, 0.9, 0.1), np.ones(2000)
    strange = np.where(plain.apart, 0.2, np.nan)
    assert lines_of(features, sure, weights).partially == 0.5
    assert lines_of(features, sure, weights, strange).partially == pytest.approx(0.2)
    assert lines_of(plain, sure, weights, strange).partially == 0.5  # the rules alone
