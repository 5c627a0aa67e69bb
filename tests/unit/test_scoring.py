from __future__ import annotations

import pytest

from guardrail.events import Severity, Verdict
from guardrail.scoring import ScoreKeeper, count_verdicts, faithfulness

S, V = Severity, Verdict


def test_nothing_to_check_has_no_score() -> None:
    assert faithfulness([]) is None
    assert faithfulness([(S.CRITICAL, V.UNVERIFIED)]) is None


def test_severity_weighs() -> None:
    """One wrong price among nine plain facts costs more than one wrong detail."""
    nine = [(S.NORMAL, V.SUPPORTED)] * 9
    wrong_detail = faithfulness([*nine, (S.MINOR, V.CONTRADICTED)])
    wrong_price = faithfulness([*nine, (S.CRITICAL, V.CONTRADICTED)])
    assert wrong_detail == pytest.approx(9 / 9.25, abs=1e-6)
    assert wrong_price == pytest.approx(9 / 13, abs=1e-6)


def test_partial_support_earns_its_credit() -> None:
    assert faithfulness([(S.NORMAL, V.PARTIALLY_SUPPORTED), (S.NORMAL, V.SUPPORTED)]) == 0.75


def test_with_equal_weights_it_is_the_share_of_supported_claims() -> None:
    """Ragas, Haystack and the four-verdict prompt define faithfulness so."""
    weights = dict.fromkeys(Severity, 1.0)
    credits = {V.SUPPORTED: 1.0, V.PARTIALLY_SUPPORTED: 0.0, V.UNSUPPORTED: 0.0, V.CONTRADICTED: 0.0}
    claims = [(S.CRITICAL, V.SUPPORTED), (S.MINOR, V.PARTIALLY_SUPPORTED)]
    claims += [(S.MAJOR, V.UNSUPPORTED), (S.NORMAL, V.SUPPORTED)]
    assert faithfulness(claims, weights, credits) == 0.5


def test_claims_of_weight_zero_only_have_no_score() -> None:
    assert faithfulness([(S.MINOR, V.SUPPORTED)], {**dict.fromkeys(Severity, 1.0), S.MINOR: 0.0}) is None


def test_unverified_claims_are_not_counted_as_checked() -> None:
    keeper = ScoreKeeper()
    keeper.add(S.NORMAL, V.SUPPORTED)
    keeper.add(S.CRITICAL, V.UNVERIFIED)
    assert (keeper.score, keeper.checked) == (1.0, 1)


def test_counts_have_one_field_for_each_verdict() -> None:
    counts = count_verdicts([V.SUPPORTED, V.SUPPORTED, V.UNVERIFIED, V.CONTRADICTED])
    assert counts.model_dump() == {
        "supported": 2,
        "partially_supported": 0,
        "unsupported": 0,
        "contradicted": 1,
        "unverified": 1,
    }
