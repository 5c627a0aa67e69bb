"""The routing table: first match wins, a missing field matches anything."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail.errors import ConfigError, NotAllowed
from guardrail.events import Response
from guardrail.policy import Policy
from guardrail.routing import Challenger, PolicyRouter, Route, Scope

POLICIES = {name: Policy(name=name) for name in ("default", "strict", "shadow")}


@pytest.mark.parametrize(
    ("scope", "named", "held"),
    [
        (Scope(tenant="acme", routes=("a", "b")), (None, None), ("a", "acme")),
        (Scope(tenant="acme", routes=("a", "b")), ("b", "acme"), ("b", "acme")),
        (Scope(tenant="acme", routes=("a", "b")), ("c", None), "route_not_allowed"),
        (Scope(tenant="acme", routes=("a", "b")), ("a", "beta"), "tenant_not_allowed"),
        (Scope(), (None, None), (None, None)),
        (Scope(), ("a", None), "route_not_allowed"),
        (Scope(), (None, "acme"), "tenant_not_allowed"),
    ],
)
def test_who_is_held_to_a_tenant_and_routes_names_no_others(
    scope: Scope, named: tuple[str | None, str | None], held: tuple[str | None, str | None] | str
) -> None:
    event = Response(response_id="r", answer="A.", route=named[0], tenant=named[1], generator_model="m")
    if isinstance(held, str):
        with pytest.raises(NotAllowed) as error:
            scope.held(event)
        assert error.value.reason == held
    else:
        found = scope.held(event)
        assert (found.route, found.tenant, found.generator_model, found.response_id) == (*held, None, "r")


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


def test_an_unknown_policy_is_told_with_its_place_and_the_known_ones() -> None:
    with pytest.raises(
        ConfigError, match=r"routes\.1\.policy: unknown policy 'strikt'.*default, shadow, strict"
    ):
        PolicyRouter(POLICIES, [Route(route="a", policy="strict"), Route(route="b", policy="strikt")])
    with pytest.raises(ConfigError, match=r"default_policy: unknown policy 'none'"):
        PolicyRouter(POLICIES, [], "none")


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


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o*", "gpt-4o-mini", True),
        ("gpt-4o*", "gpt-4o", True),
        ("*-mini", "gpt-4o-mini", True),
        ("*-mini", "gpt-4o-mini-2024", False),
        ("*/llama-*-8b", "meta/llama-3-8b", True),
        ("*/llama-*-8b", "meta/llama-8b", False),
        ("a*a", "a", False),
        ("*", "anything", True),
        ("*", "", True),
        ("*", None, False),
        ("a**b", "ab", True),
        ("*ab*ab*", "abab", True),
        ("*ab*ab*", "aba", False),
        ("GPT*", "gpt-4o", False),
        ("[g]pt?", "gpt4", False),
    ],
)
def test_a_star_stands_for_any_characters(pattern: str, value: str | None, fits: bool) -> None:
    assert Route(generator_model=pattern, policy="strict").matches("any", "one", value) is fits
    assert Route(tenant=pattern, policy="strict").matches("any", value) is fits
    assert Route(route=pattern, policy="strict").matches(value, "one") is fits


def test_a_long_pattern_of_stars_is_quick() -> None:
    assert not Route(route="*a" * 128, policy="strict").matches("a" * 127 + "b" * 129, None)


def test_the_generator_model_chooses_with_the_others() -> None:
    routes = [
        Route(route="medical", generator_model="gpt-*", policy="strict"),
        Route(generator_model="*-beta", policy="shadow"),
    ]
    router = PolicyRouter(POLICIES, routes)
    assert router.choose("medical", None, "gpt-4").name == "strict"
    assert router.choose("medical", None, "claude-beta").name == "shadow"
    assert router.choose("medical", None).name == "default"


class TestChallengers:
    def test_the_share_is_of_ids_and_always_the_same(self) -> None:
        router = PolicyRouter(
            POLICIES, challengers=[Challenger(policy="strict", against="default", share=0.25)]
        )
        chosen = [router.challenger(POLICIES["default"], f"r{n}") for n in range(4_000)]
        assert chosen == [router.challenger(POLICIES["default"], f"r{n}") for n in range(4_000)]
        assert 800 < sum(policy is not None for policy in chosen) < 1_200
        assert router.challenger(POLICIES["strict"], "r1") is None

    def test_several_share_without_overlap_and_none_is_left_when_they_add_up_to_one(self) -> None:
        router = PolicyRouter(
            POLICIES,
            challengers=[
                Challenger(policy="strict", against="default", share=0.3),
                Challenger(policy="shadow", against="default", share=0.7),
            ],
        )
        found = [router.challenger(POLICIES["default"], f"r{n}") for n in range(1_000)]
        names = [policy.name for policy in found if policy is not None]
        assert len(names) == 1_000
        assert 200 < names.count("strict") < 400

    @pytest.mark.parametrize(
        ("challengers", "told"),
        [
            ([{"policy": "none", "against": "default"}], r"challengers\.0\.policy: unknown policy 'none'"),
            ([{"policy": "strict", "against": "none"}], r"challengers\.0\.against: unknown policy 'none'"),
            ([{"policy": "strict", "against": "strict"}], r"challengers\.0\.policy: .* itself"),
            ([{"policy": "strict", "against": "default"}] * 2, r"challengers\.1\.share: .* take 2 "),
        ],
    )
    def test_what_can_not_be_is_an_error(self, challengers: list[dict[str, str]], told: str) -> None:
        with pytest.raises(ConfigError, match=told):
            PolicyRouter(POLICIES, challengers=[Challenger.model_validate(each) for each in challengers])


def test_a_canary_takes_its_share_and_the_rest_goes_on() -> None:
    routes = [Route(policy="strict", share=0.1), Route(route="medical", policy="shadow", share=0.5)]
    router = PolicyRouter(POLICIES, routes)
    ids = [f"r{n}" for n in range(4_000)]
    chosen = {each: router.choose("medical", None, None, each).name for each in ids}
    assert chosen == {each: router.choose("medical", None, None, each).name for each in ids}
    shares = {name: list(chosen.values()).count(name) / len(ids) for name in ("strict", "shadow", "default")}
    assert shares["strict"] == pytest.approx(0.1, abs=0.02)
    assert shares["shadow"] == pytest.approx(0.45, abs=0.03)
    assert shares["default"] == pytest.approx(0.45, abs=0.03)


def test_a_canary_is_the_same_for_all_routes_and_needs_an_id() -> None:
    router = PolicyRouter(POLICIES, [Route(policy="strict", share=0.3)])
    for n in range(200):
        assert router.choose("one", None, None, f"r{n}") is router.choose("two", "t", "m", f"r{n}")
    assert router.choose(None, None).name == "default"
    assert router.for_unknown("one").name == "default"


def test_a_route_for_everything_needs_a_share() -> None:
    with pytest.raises(ValidationError, match="matches everything"):
        Route(policy="strict")
    with pytest.raises(ValidationError, match="less than or equal to 1"):
        Route(policy="strict", share=1.5)


def test_a_canary_of_everything_names_no_route() -> None:
    canary = Route(policy="strict", share=0.1)
    assert not PolicyRouter(POLICIES, [canary]).misses("leaflet", None)
    router = PolicyRouter(POLICIES, [canary, Route(route="leaflets", policy="strict")])
    assert router.misses("leaflet", None)
    assert not router.misses("leaflets", None)
