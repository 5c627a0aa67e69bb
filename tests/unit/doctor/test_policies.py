"""Policies that do nothing, or less than was meant, are named."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.config import Settings
from guardrail.doctor import Check, check_policies
from guardrail.doctor.settings import covers
from guardrail.policy import Policy, Rule

BLOCK = "verdict CONTRADICTED: block"


def found(**settings: Any) -> list[Check]:
    return check_policies(Settings(**settings))


def of(checks: list[Check], about: str) -> Check:
    [one] = [check for check in checks if check.about == about]
    return one


def states(checks: list[Check]) -> dict[str, str]:
    return {check.about: check.state for check in checks}


def test_the_built_in_policy_is_well_and_told_in_words() -> None:
    [check] = found()
    assert (check.state, check.about) == ("ok", "policies.default")
    assert check.detail == (
        "stream; rules: 2 block, 3 redact, 7 flag; flags scores below 0.55; used by default_policy"
    )


def test_a_policy_that_observes_is_named_with_what_uses_it() -> None:
    checks = found(policies={"shadow": {"mode": "observe"}}, routes=[{"route": "chat", "policy": "shadow"}])
    check = of(checks, "policies.shadow")
    assert check.state == "warn"
    assert "only observes: every answer of routes.0 is shown" in check.detail
    assert "mode: hold or stream" in check.remedy


def test_a_challenger_may_observe() -> None:
    checks = found(
        policies={"next": {"mode": "observe"}}, challengers=[{"policy": "next", "against": "default"}]
    )
    assert states(checks) == {"policies.default": "ok", "policies.next": "ok"}


@pytest.mark.parametrize(
    ("policy", "detail"),
    [
        ({"rules": [], "flag_below": 0}, "the thresholds are 0"),
        ({"rules": ["always: release"], "flag_below": 0}, "the thresholds are 0"),
        ({"rules": ["support < 0: block"], "flag_below": 0}, "the thresholds are 0"),
    ],
)
def test_a_policy_that_can_do_nothing_fails(policy: dict[str, Any], detail: str) -> None:
    check = of(found(policies={"default": policy}), "policies.default")
    assert check.state == "fail"
    assert "it releases everything" in check.detail
    assert detail in check.detail
    assert check.remedy


@pytest.mark.parametrize(
    "policy",
    [
        {"rules": [], "flag_below": 0.5, "block_below": 0.2},
        {"rules": [BLOCK], "flag_below": 0},
        {"rules": ["verdict CONTRADICTED: redact"]},
        {"rules": [], "segment_kinds": {"code": "block"}},
    ],
)
def test_what_withholds_something_is_well(policy: dict[str, Any]) -> None:
    assert of(found(policies={"default": policy}), "policies.default").state == "ok"


def test_a_policy_that_only_flags_is_named() -> None:
    check = of(found(policies={"default": {"rules": ["verdict CONTRADICTED: flag"]}}), "policies.default")
    assert (check.state, "withholds nothing" in check.detail) == ("warn", True)


def test_rules_that_never_fire_or_are_never_reached_are_named_by_their_place() -> None:
    rules = [
        "verdict CONTRADICTED|UNSUPPORTED: flag",
        BLOCK,
        "support < 0: flag",
        "verdict UNVERIFIED: block",
    ]
    checks = found(policies={"default": {"rules": rules}})
    shadowed = of(checks, "policies.default.rules.1")
    assert "rules.0 ('verdict CONTRADICTED|UNSUPPORTED: flag') takes every claim" in shadowed.detail
    assert shadowed.remedy == "move it before rules.0, or remove it"
    assert "support is never under 0" in of(checks, "policies.default.rules.2").detail
    assert {"policies.default.rules.0", "policies.default.rules.3"}.isdisjoint(states(checks))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("always", "verdict CONTRADICTED"),
        ("verdict CONTRADICTED|UNSUPPORTED", "verdict UNSUPPORTED and severity >= major"),
        ("severity >= major", "severity critical"),
        ("support < 0.5", "support < 0.3"),
        ("contradiction >= 0.5", "contradiction >= 0.9 and confidence >= 0.2"),
        ("finding figure_absent|figure_conflict", "finding figure_absent"),
        ("reason price|dosage", "reason price"),
        ("citation none|other", "citation other"),
    ],
)
def test_a_rule_covers_what_is_narrower_and_not_what_is_wider(earlier: str, later: str) -> None:
    one, other = (Rule.model_validate(f"{text}: flag") for text in (earlier, later))
    assert covers(one, other)
    assert not covers(other, one)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("support < 0.5", "verdict CONTRADICTED"),
        ("verdict CONTRADICTED", "finding figure_conflict"),
        ("severity >= major", "severity <= major"),
        ("support >= 0.2", "support < 0.5"),
    ],
)
def test_rules_that_overlap_do_not_cover_each_other(earlier: str, later: str) -> None:
    one, other = (Rule.model_validate(f"{text}: flag") for text in (earlier, later))
    assert not covers(one, other)
    assert not covers(other, one)


def test_failing_open_is_named_where_it_has_an_effect() -> None:
    open_ones = {"default": {"on_unverified": "fail_open"}, "beside": {"on_unverified": "fail_open"}}
    checks = found(policies=open_ones, challengers=[{"policy": "beside", "against": "default"}])
    assert of(checks, "policies.default.on_unverified").state == "warn"
    assert "policies.beside.on_unverified" not in states(checks)


def test_policies_that_nothing_uses_and_routes_that_are_never_reached_are_named() -> None:
    checks = found(
        policies={"a": {}, "idle": {"mode": "observe"}},
        default_policy="a",
        routes=[
            {"route": "shop*", "policy": "a"},
            {"route": "shop-de", "tenant": "acme", "policy": "a"},
            {"tenant": "acme", "policy": "a"},
        ],
    )
    assert states(checks) == {"policies.a": "ok", "policies.idle": "warn", "routes.1": "warn"}
    assert "routes.0 takes every response" in of(checks, "routes.1").detail


def test_all_published_policies_have_no_inert_rule() -> None:
    assert [check for check in found(policies={"default": Policy()}) if check.state != "ok"] == []
