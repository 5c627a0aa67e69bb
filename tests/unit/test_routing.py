"""The routing table: first match wins, a missing field matches anything."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail.errors import ConfigError
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter, Route

POLICIES = {name: Policy(name=name) for name in ("default", "strict", "shadow")}


@pytest.mark.parametrize(
    ("route", "tenant", "expected"),
    [
        ("medical", "acme", "shadow"),
        ("medical", "other", "strict"),
        ("medical", None, "strict"),
        ("billing", "acme", "default"),
        (None, "beta", "shadow"),
        ("billing", "beta", "shadow"),
        (None, None, "default"),
        ("Medical", None, "default"),
        ("", "", "default"),
    ],
)
def test_first_match_wins(route: str | None, tenant: str | None, expected: str) -> None:
    router = PolicyRouter(
        POLICIES,
        [
            Route(route="medical", tenant="acme", policy="shadow"),
            Route(route="medical", policy="strict"),
            Route(tenant="beta", policy="shadow"),
        ],
        "default",
    )
    assert router.choose(route, tenant).name == expected


def test_order_decides_between_two_matches() -> None:
    general, special = (
        Route(route="medical", policy="strict"),
        Route(route="medical", tenant="acme", policy="shadow"),
    )
    assert PolicyRouter(POLICIES, [general, special]).choose("medical", "acme").name == "strict"
    assert PolicyRouter(POLICIES, [special, general]).choose("medical", "acme").name == "shadow"


def test_unknown_policy_of_a_route_names_its_place_and_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"routes\.1\.policy: 'strikt'.*default, shadow, strict"):
        PolicyRouter(POLICIES, [Route(route="a", policy="strict"), Route(route="b", policy="strikt")])


def test_unknown_default_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"default_policy: 'none'"):
        PolicyRouter(POLICIES, [], "none")


def test_a_route_without_a_condition_is_an_error() -> None:
    with pytest.raises(ValidationError, match="default_policy"):
        Route(policy="strict")


def test_single_chooses_its_policy_for_everyone() -> None:
    policy = Policy(name="only")
    router = PolicyRouter.single(policy)
    assert router.choose("any", "one") is policy
    assert router.policies == (policy,)


def test_later_changes_of_the_mapping_do_not_reach_the_router() -> None:
    policies = dict(POLICIES)
    router = PolicyRouter(policies)
    policies["default"] = Policy(name="other")
    assert router.choose(None, None).name == "default"


OBSERVING = Policy(name="shadow", mode="observe")


@pytest.mark.parametrize(
    ("default", "others", "route", "expected"),
    [
        (Policy(), [OBSERVING, Policy(name="strict")], None, "default"),
        (Policy(mode="observe"), [OBSERVING, Policy(name="strict", mode="hold")], None, "strict"),
        (Policy(mode="observe"), [OBSERVING], None, "default"),
        (Policy(mode="observe"), [Policy(name="first"), Policy(name="strict")], "medical", "strict"),
        (Policy(), [Policy(name="first"), OBSERVING], "watched", "default"),
        (Policy(mode="observe"), [OBSERVING], "watched", "shadow"),
    ],
)
def test_what_cannot_be_known_gets_a_policy_that_blocks_if_there_is_one(
    default: Policy, others: list[Policy], route: str | None, expected: str
) -> None:
    names = {"medical": "strict", "watched": "shadow"}
    policies = {policy.name: policy for policy in (default, *others)}
    routes = [Route(route=route, policy=name) for route, name in names.items() if name in policies]
    router = PolicyRouter(policies, routes)
    assert router.for_unknown(route).name == expected
