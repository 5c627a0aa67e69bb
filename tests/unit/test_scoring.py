from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.events import Severity
from guardrail.judges import Verdict
from guardrail.scoring import DEFAULT_WEIGHTS, Formula, ScoreKeeper, count_verdicts

S, V = Severity, Verdict
Checked = tuple[Severity, Verdict, float | None]


def score(
    claims: Iterable[Checked],
    formula: Formula = Formula.SEVERITY_WEIGHTED,
    weights: Mapping[Severity, float] = DEFAULT_WEIGHTS,
) -> float | None:
    keeper = ScoreKeeper(formula, weights)
    for claim in claims:
        keeper.add(*claim)
    return keeper.score


@pytest.mark.parametrize("formula", Formula)
def test_nothing_to_check_has_no_score(formula: Formula) -> None:
    assert score([], formula) is None
    assert score([(S.CRITICAL, V.UNVERIFIED, None)], formula) is None


def test_it_is_the_mean_probability_of_support_weighted_by_severity() -> None:
    claims: list[Checked] = [(S.CRITICAL, V.SUPPORTED, 0.75), (S.NORMAL, V.UNSUPPORTED, 0.25)]
    assert score(claims) == pytest.approx((4 * 0.75 + 0.25) / 5)


def test_a_verdict_without_a_probability_counts_by_its_credit() -> None:
    assert score([(S.NORMAL, V.PARTIALLY_SUPPORTED, None), (S.NORMAL, V.SUPPORTED, 0.75)]) == 0.625


def test_severity_weighs() -> None:
    """One wrong price among nine plain facts costs more than one wrong detail."""
    nine: list[Checked] = [(S.NORMAL, V.SUPPORTED, 1.0)] * 9
    assert score([*nine, (S.MINOR, V.CONTRADICTED, 0.0)]) == pytest.approx(9 / 9.25, abs=1e-6)
    assert score([*nine, (S.CRITICAL, V.CONTRADICTED, 0.0)]) == pytest.approx(9 / 13, abs=1e-6)


def test_credits_count_verdicts_whatever_the_probabilities() -> None:
    """With equal weights and no credit for parts it is the share of supported claims."""
    claims: list[Checked] = [
        (S.CRITICAL, V.SUPPORTED, 0.6),
        (S.MINOR, V.PARTIALLY_SUPPORTED, 0.5),
        (S.MAJOR, V.UNSUPPORTED, 0.4),
        (S.NORMAL, V.SUPPORTED, None),
    ]
    keeper = ScoreKeeper(
        Formula.CREDITS,
        dict.fromkeys(Severity, 1.0),
        {V.SUPPORTED: 1.0, V.PARTIALLY_SUPPORTED: 0.0, V.UNSUPPORTED: 0.0, V.CONTRADICTED: 0.0},
    )
    for claim in claims:
        keeper.add(*claim)
    assert keeper.score == 0.5


def test_claims_of_weight_zero_only_have_no_score() -> None:
    weights = {**dict.fromkeys(Severity, 1.0), S.MINOR: 0.0}
    assert score([(S.MINOR, V.SUPPORTED, 0.9)], weights=weights) is None


def test_unverified_claims_are_not_counted_as_checked() -> None:
    keeper = ScoreKeeper()
    keeper.add(S.NORMAL, V.SUPPORTED, 0.9)
    keeper.add(S.CRITICAL, V.UNVERIFIED, None)
    assert (keeper.score, keeper.checked) == (0.9, 1)


_checked = st.tuples(st.sampled_from(S), st.sampled_from(V), st.none() | st.floats(0, 1))


@given(st.sampled_from(Formula), st.lists(_checked, min_size=1, max_size=6), st.integers(0, 5))
def test_a_score_is_a_probability_and_never_falls_when_a_claim_gains_support(
    formula: Formula, claims: list[Checked], at: int
) -> None:
    before = score(claims, formula)
    assert before is None or 0.0 <= before <= 1.0
    severity, verdict, _ = claims[at % len(claims)]
    better = V.SUPPORTED if verdict is not V.UNVERIFIED else verdict
    claims[at % len(claims)] = (severity, better, 1.0)
    after = score(claims, formula)
    assert (before is None) == (after is None)
    assert before is None or after is None or after >= before


def test_counts_have_one_field_for_each_verdict() -> None:
    counts = count_verdicts([V.SUPPORTED, V.SUPPORTED, V.UNVERIFIED, V.CONTRADICTED])
    assert counts.model_dump() == {
        "supported": 2,
        "partially_supported": 0,
        "unsupported": 0,
        "contradicted": 1,
        "unverified": 1,
    }
