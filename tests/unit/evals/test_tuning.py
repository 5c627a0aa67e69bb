"""Tuning finds thresholds that are known, says what it can't tell, and never trades flags for blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from guardrail.decisions import by_segment, redecide
from guardrail.errors import InputError
from guardrail.evals.aims import Aim, labels_needed
from guardrail.evals.records import Judged
from guardrail.evals.search import Vary
from guardrail.evals.statistics import wilson
from guardrail.evals.tuning import for_share, tune
from guardrail.events import Decision, Severity, Verdict
from guardrail.policy import DEFAULT_RULES, Mode, Policy, Rule
from tests.unit.evals.tuning_cases import claim, judged, label

S, P, U, C, N = Verdict
ALONE: dict[str, Any] = {"rules": ()}


def by_score(cut: float, count: int = 200, *, noise: float = 0.0) -> list[Judged]:
    """Answers of one claim, whose support is spread evenly; those below ``cut`` are wrong, but for noise."""
    random = np.random.default_rng(7)
    found = []
    for number, support in enumerate(np.linspace(0.005, 0.995, count)):
        wrong = (support < cut) != (random.random() < noise)
        one = claim(f"r{number}", 0, S, round(float(support), 4))
        found.append(judged(f"r{number}", [one], [label(one, U if wrong else S)]))
    return found


def test_a_threshold_that_separates_is_found() -> None:
    found = tune(by_score(0.7), Policy(**ALONE, flag_below=0.2), Aim(cost_miss=1, cost_false=1))
    assert found.policy.flag_below == pytest.approx(0.7, abs=0.03)
    assert found.better
    assert found.held_out.caught("flag") / found.held_out.wrong > 0.95
    assert found.baseline_counts.caught("flag") / found.baseline_counts.wrong == pytest.approx(
        2 / 7, abs=0.02
    )
    assert found.gains["cost"].high < 0


def test_a_threshold_in_a_rule_is_found() -> None:
    rule = Rule.model_validate("verdict CONTRADICTED and contradiction >= 0.95: block")
    responses = []
    for number, contradiction in enumerate(np.linspace(0.5, 1.0, 120)):
        one = claim(f"r{number}", 0, C, 0.1, contradiction=round(float(contradiction), 3))
        responses.append(judged(one.response_id, [one], [label(one, C if contradiction > 0.8 else S)]))
    aim = Aim(catch=0.95, by="block")
    found = tune(responses, Policy(rules=(rule,), flag_below=0.0), aim)
    assert found.policy.rules[0].min_contradiction == pytest.approx(0.8, abs=0.03)
    assert found.policy.rules[0].name.startswith("verdict CONTRADICTED and contradiction >= 0.")
    assert found.held_out.false_alarms("block") <= 3


def test_held_out_catches_agree_with_the_aim_within_their_interval() -> None:
    found = tune(by_score(0.5, 600, noise=0.1), Policy(**ALONE, flag_below=0.1), Aim(catch=0.8))
    low, high = wilson(found.held_out.caught("flag"), found.held_out.wrong)
    assert low <= 0.82
    assert high >= 0.8
    assert found.fitted.caught("flag") >= 0.8 * found.fitted.wrong


def test_a_bound_on_false_alarms_holds_where_it_was_fitted() -> None:
    found = tune(by_score(0.5, 400, noise=0.1), Policy(**ALONE, flag_below=0.9), Aim(max_false=0.05))
    assert found.fitted.false_alarms("flag") <= 0.05 * found.fitted.faithful
    assert found.better  # the policy as it is broke the bound


def test_labels_that_follow_nothing_leave_the_policy_as_it_is() -> None:
    found = tune(by_score(0.5, 120, noise=0.5), Policy(**ALONE), Aim(cost_miss=1, cost_false=1))
    assert not found.better
    assert "keep" in found.conclusions[0]


def test_what_is_best_already_is_left_alone() -> None:
    found = tune(by_score(0.55), Policy(**ALONE), Aim(cost_miss=1, cost_false=1))
    assert found.policy.flag_below == pytest.approx(0.55, abs=0.01)
    assert not found.better


def mixed(count: int = 300) -> list[Judged]:
    """Answers of several claims with every verdict and severity, and labels that follow support."""
    random = np.random.default_rng(3)
    found = []
    for number in range(count):
        claims = []
        for index in range(int(random.integers(1, 7))):
            verdict = (S, S, S, P, U, C, N)[int(random.integers(7))]
            support = None if verdict is N else round(float(random.random()), 3)
            severity = list(Severity)[int(random.integers(4))]
            contradiction = round(float(random.random()), 3)
            claims.append(
                claim(f"r{number}", index, verdict, support, severity=severity, contradiction=contradiction)
            )
        labels = [label(c, S if random.random() < 0.5 + (c.support or 0) / 2 else U) for c in claims]
        found.append(judged(f"r{number}", claims, labels))
    return found


@pytest.mark.parametrize("vary", [("thresholds",), ("thresholds", "weights", "bounds")])
@pytest.mark.parametrize("by", ["flag", "withhold", "block"])
def test_the_policy_found_decides_what_the_search_counted(vary: tuple[Vary, ...], by: Any) -> None:
    responses = mixed()
    aim = Aim(cost_miss=2, cost_false=1, of=Severity.MAJOR, by=by)
    found = tune(responses, Policy(on_unverified="flag"), aim, vary=vary)
    least = {"flag": Decision.FLAG, "withhold": Decision.REDACT, "block": Decision.BLOCK}[by]
    acts = sum(
        redecide(found.policy, by_segment(each.claims)).decision.rank >= least.rank for each in responses
    )
    assert acts == int(found.fitted.table[:, [*Decision].index(least) :].sum())
    assert Policy.model_validate(found.policy.model_dump()) == found.policy


def test_an_aim_by_flags_withholds_nothing_more() -> None:
    found = tune(mixed(), Policy(), Aim(catch=0.99), vary=("thresholds", "bounds", "weights"))
    changed = {each.name for each in found.settings if each.before != each.after}
    assert changed
    assert found.policy.block_below == Policy().block_below
    blocking = [rule for rule in found.policy.rules if rule.action is not Decision.FLAG]
    assert blocking == [rule for rule in Policy().rules if rule.action is not Decision.FLAG]


def test_weights_keep_the_order_of_severities() -> None:
    weights = tune(mixed(), Policy(), Aim(cost_miss=1, cost_false=1), vary=("weights",)).policy.weights
    assert [weights[severity] for severity in Severity] == sorted(weights[severity] for severity in Severity)
    assert weights[Severity.NORMAL] == 1.0


def test_the_same_records_give_the_same_policy() -> None:
    first, second = (tune(mixed(), Policy(), Aim(catch=0.9)) for _ in range(2))
    assert first.policy == second.policy
    assert (first.held_out.table == second.held_out.table).all()
    assert first.gains == second.gains


# -------------------------------------------------------------------------------- degenerate records


@pytest.mark.parametrize(("verdict", "missing"), [(S, "wrong"), (U, "faithful")])
def test_labels_of_one_class_are_an_error_that_says_how_many_are_needed(
    verdict: Verdict, missing: str
) -> None:
    responses = [judged(f"r{n}", [claim(f"r{n}", 0, S, 0.5)], [label(f"r{n}", verdict)]) for n in range(30)]
    with pytest.raises(InputError, match=rf"no {missing} one; at least \d+ are needed"):
        tune(responses, Policy(), Aim(catch=0.9))


def test_too_few_labels_are_told_with_the_number_that_is_needed() -> None:
    found = tune(by_score(0.5, 12), Policy(**ALONE), Aim(catch=0.95))
    wrong, faithful = Aim(catch=0.95).needed()
    assert found.problems == (
        f"6 labelled answers with any error: at least {wrong} are needed for this aim",
        f"6 labelled faithful answers: at least {faithful} are needed for this aim",
    )
    assert Aim(max_false=0.01).needed()[1] == 100
    assert Aim(catch=0.99).needed()[0] == 100
    one_of_each = tune(by_score(0.5, 2), Policy(**ALONE), Aim(catch=0.95))
    assert one_of_each.problems[0].startswith("1 labelled answers with any error: at least")


def test_scores_that_are_all_equal_can_not_be_told_apart() -> None:
    responses = [
        judged(f"r{n}", [claim(f"r{n}", 0, S, 0.6)], [label(f"r{n}", S if n % 2 else U)]) for n in range(100)
    ]
    found = tune(responses, Policy(**ALONE), Aim(catch=0.9))
    # All or none: the aim asks for all, and the false alarms that this costs are told.
    assert (found.held_out.caught("flag"), found.held_out.false_alarms("flag")) == (50, 50)
    costs = tune(responses, Policy(**ALONE), Aim(cost_miss=1, cost_false=1))
    assert not costs.better


def test_claims_that_nobody_could_check_leave_the_policy_as_it_is() -> None:
    responses = [
        judged(f"r{n}", [claim(f"r{n}", 0, N, None)], [label(f"r{n}", S if n % 2 else U)]) for n in range(100)
    ]
    found = tune(responses, Policy(), Aim(catch=0.9))
    assert found.policy == Policy()
    assert (found.better, found.held_out.caught("flag")) == (False, 50)  # fail_closed blocks them


def test_responses_with_lesser_errors_count_for_neither() -> None:
    responses = [*by_score(0.5), *by_score(0.5)]
    for number, each in enumerate(responses[200:]):
        minor = label(f"m{number}", U, severity=Severity.MINOR)
        responses[200 + number] = judged(f"m{number}", each.claims, [minor])
    bare = [judged(f"w{n}", each.claims, [label(f"w{n}", U)]) for n, each in enumerate(by_score(0.5, 9))]
    found = tune([*responses, *bare], Policy(**ALONE), Aim(catch=0.9, of=Severity.NORMAL))
    assert (found.held_out.wrong, found.held_out.faithful, found.others, found.unknown) == (100, 100, 200, 9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "give one aim"),
        ({"catch": 0.9, "max_false": 0.1}, "give one aim"),
        ({"cost_miss": 1.0}, "give both"),
        ({"cost_miss": 1.0, "cost_false": -1.0}, "give both"),
        ({"catch": 95.0}, "not a fraction"),
    ],
)
def test_an_aim_that_is_none_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Aim(**given)


def test_labels_needed_is_the_least_number_with_so_narrow_an_interval() -> None:
    for share in (0.05, 0.5, 0.95):
        need = labels_needed(share)
        low, high = wilson(round(share * need), need)
        assert high - low <= 0.2
        low, high = wilson(round(share * (need - 1)), need - 1)
        assert high - low > 0.2


# --------------------------------------------------------------------------------- without labels


@pytest.mark.parametrize(("by", "setting"), [("flag", "flag_below"), ("block", "block_below")])
def test_without_labels_a_share_of_the_traffic_is_acted_on(by: Any, setting: str) -> None:
    responses = [judged(f"r{n}", [claim(f"r{n}", 0, S, round(n / 200, 4))]) for n in range(200)]
    found = for_share(responses, Policy(**ALONE, mode="hold"), 0.1, by)
    policy, after = found.policy, found.after
    assert (after.count, after.total) == (20, 200)
    assert getattr(policy, setting) == pytest.approx(0.1, abs=0.001)
    decisions = [redecide(policy, by_segment(each.claims)).decision for each in responses]
    assert sum(decision is not Decision.RELEASE for decision in decisions) >= 20
    Policy.model_validate(policy.model_dump())


def test_a_policy_that_acts_on_the_share_already_is_kept() -> None:
    responses = [judged(f"r{n}", [claim(f"r{n}", 0, S, round(n / 200, 4))]) for n in range(200)]
    own = Policy(**ALONE | {"flag_below": 0.0999}, mode="hold")
    found = for_share(responses, own, 0.1, "flag")
    assert found.policy is own
    assert found.before == found.after
    assert found.after.count == 20


def test_ties_that_leave_nothing_tell_what_the_next_threshold_acts_on() -> None:
    responses = [judged(f"r{n}", [claim(f"r{n}", 0, S, 0.5)]) for n in range(20)]
    found = for_share(responses, Policy(**ALONE | {"flag_below": 0.55}, mode="hold"), 0.1, "flag")
    assert (found.before.count, found.after.count) == (20, 0)
    assert found.next is not None
    assert found.next.count == 20


def test_a_share_below_what_rules_act_on_is_out_of_reach() -> None:
    flags = Policy(rules=(Rule.model_validate("verdict SUPPORTED: flag"),))
    with pytest.raises(InputError, match=r"rules act on 100\.0%"):
        for_share(by_score(0.5), flags, 0.02, "flag")


def test_the_default_rules_can_be_tuned_in_every_mode() -> None:
    modes: tuple[Mode, ...] = ("hold", "stream", "observe")
    for mode in modes:
        found = tune(mixed(80), Policy(mode=mode), Aim(max_false=0.3, by="withhold"))
        assert len(found.policy.rules) == len(DEFAULT_RULES)


def test_a_threshold_that_blocks_may_pass_the_one_that_flags() -> None:
    responses = by_score(0.8)
    found = tune(responses, Policy(**ALONE, flag_below=0.5, mode="hold"), Aim(catch=0.95, by="block"))
    assert found.policy.block_below > 0.7
    assert found.policy.flag_below == found.policy.block_below
    assert {each.name for each in found.settings if each.before != each.after} == {
        "block_below",
        "flag_below",
    }


def test_an_aim_that_is_not_reached_is_told() -> None:
    rules = (Rule.model_validate("verdict UNSUPPORTED and support < 0.1: block"),)
    found = tune(by_score(0.5), Policy(rules=rules, flag_below=0.0), Aim(max_false=0.001, by="block"))
    assert len(found.conclusions) == 1
    released = (Rule.model_validate("always: block"),)
    found = tune(by_score(0.5), Policy(rules=released), Aim(max_false=0.1, by="block"))
    assert "100.0% are false alarms, and 10.0% were allowed" in found.conclusions[1]
