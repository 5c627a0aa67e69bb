"""Many policies on records decide what the one piece of code that decides does, response by response."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.decisions import by_segment, redecide
from guardrail.evals.search import BOUNDS, Deciding
from guardrail.events import CitationBacking, ClaimVerdict, Finding, ResponseVerdict, Severity, Verdict
from guardrail.policy import DEFAULT_RULES, FailPolicy, Policy, Rule
from tests.support.constants import made
from tests.unit.evals.tuning_cases import claim, judged

PROBABILITIES = st.sampled_from((0.0, 0.1, 0.15, 0.3, 0.5, 0.55, 0.85, 0.9, 1.0))


@st.composite
def claims_of_a_response(draw: st.DrawFn) -> list[ClaimVerdict]:
    found: list[ClaimVerdict] = []
    segment = 0
    for index in range(draw(st.integers(0, 7))):
        verdict = draw(st.sampled_from(Verdict))
        support = None if verdict is Verdict.UNVERIFIED else draw(PROBABILITIES)
        segment += draw(st.integers(0, 1))
        found.append(
            claim(
                "r",
                index,
                verdict,
                support,
                segment=segment,
                severity=draw(st.sampled_from(Severity)),
                contradiction=draw(st.none() | PROBABILITIES),
                confidence=draw(PROBABILITIES),
                severity_reasons=draw(st.sampled_from(((), ("price",), ("dosage", "price")))),
                citation_backing=draw(st.none() | st.sampled_from(CitationBacking)),
                findings=tuple(draw(st.sets(st.sampled_from(Finding), max_size=2))),
            )
        )
    return found


WEIGHTS = st.fixed_dictionaries({each: st.sampled_from((0.0, 0.25, 1.0, 4.0)) for each in Severity})


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    block, flag = sorted((draw(PROBABILITIES), draw(PROBABILITIES)))
    rules = list(DEFAULT_RULES) + draw(
        st.lists(
            st.sampled_from(
                (
                    "support < 0.3 and support >= 0.1: redact",
                    "verdict UNSUPPORTED and confidence >= 0.9: block",
                    "verdict SUPPORTED and contradiction < 0.5: release",
                    "reason price and citation none: block",
                )
            ),
            max_size=2,
        )
    )
    return made(
        Policy,
        mode=draw(st.sampled_from(("hold", "stream", "observe"))),
        rules=draw(st.permutations(rules)),
        flag_below=flag,
        block_below=block,
        score_after_claims=draw(st.integers(1, 4)),
        score=draw(st.sampled_from(("severity_weighted", "credits"))),
        weights=draw(WEIGHTS.filter(lambda weights: any(weights.values()))),
        on_unverified=draw(st.sampled_from(FailPolicy)),
    )


def verdicts(responses: list[list[ClaimVerdict]]) -> list[ResponseVerdict]:
    return [judged("r", claims).verdict for claims in responses]


@settings(max_examples=300)
@given(responses=st.lists(claims_of_a_response(), min_size=1, max_size=5), policy=policies())
def test_records_decide_as_redecide_does(responses: list[list[ClaimVerdict]], policy: Policy) -> None:
    deciding = Deciding(verdicts(responses), policy)
    found = deciding.ranks(deciding.bounds(), policy.flag_below, policy.block_below, policy.weights)
    alone = [redecide(policy, by_segment(claims)).decision.rank for claims in responses]
    assert found.tolist() == alone


@settings(max_examples=100)
@given(
    responses=st.lists(claims_of_a_response(), min_size=1, max_size=5),
    policy=policies(),
    bound=PROBABILITIES,
    name=st.sampled_from(tuple(BOUNDS)),
    number=st.integers(0, 7),
)
def test_other_bounds_decide_as_the_policy_with_them(
    responses: list[list[ClaimVerdict]], policy: Policy, bound: float, name: str, number: int
) -> None:
    changed = [
        rule.model_copy(update={name: bound}) if i == number else rule for i, rule in enumerate(policy.rules)
    ]
    other = policy.model_copy(update={"rules": tuple(changed)})
    deciding = Deciding(verdicts(responses), policy)
    bounds = list(deciding.bounds())
    bounds[number] = tuple(getattr(changed[number], each) for each in BOUNDS)
    found = deciding.ranks(bounds, policy.flag_below, policy.block_below, policy.weights)
    assert found.tolist() == [redecide(other, by_segment(claims)).decision.rank for claims in responses]


def test_a_response_without_claims_has_no_score_and_is_released() -> None:
    deciding = Deciding(verdicts([[]]), Policy(rules=(Rule.model_validate("always: block"),)))
    assert np.isnan(deciding.scores(Policy().weights)[0]).all()
    assert deciding.ranks(deciding.bounds(), 1.0, 1.0, Policy().weights).tolist() == [0]
