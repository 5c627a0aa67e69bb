"""Which policies do nothing, or less than their author will have meant.

Told from the settings alone: a rule is said to be inert only where no verdict at all could make it fire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from guardrail.config import Settings
from guardrail.doctor.checks import Area, Check
from guardrail.events import Decision
from guardrail.policy import PROBABILITIES, FailPolicy, Policy, Rule
from guardrail.routing import Route

_POLICIES: Final = Area("policies")
_NAMED: Final = 3
_TEN_MINUTES_MS: Final = 600_000
_DAY_MS: Final = 86_400_000
_NO_GLOB: Final = re.compile(r"\.\*|[][?{}|\\^$]")
_ACTING: Final = (Decision.BLOCK, Decision.REDACT, Decision.FLAG)
_WITHHOLDING: Final = frozenset({Decision.BLOCK, Decision.REDACT})


def check_policies(settings: Settings) -> list[Check]:
    """Every policy, the rules of each, and the routes."""
    uses = _uses(settings)
    return list(
        chain(
            *(_of_policy(policy, settings, uses.get(name, ())) for name, policy in settings.policies.items()),
            _of_routes(settings.routes),
        )
    )


def never_fires(rule: Rule) -> str | None:
    """Why no verdict makes this rule fire; None where one could."""
    name = next((name for name in PROBABILITIES if rule.bounds(name)[1] == 0), None)
    return name and f"{name} is never under 0"


def covers(earlier: Rule, later: Rule) -> bool:
    """Does ``earlier`` match every claim that ``later`` matches?"""
    any_of = all(
        _holds_all(getattr(earlier, name), getattr(later, name))
        for name in ("verdict", "finding", "citation", "reason")
    )
    severities = (
        earlier.min_severity.rank <= later.min_severity.rank
        and later.max_severity.rank <= earlier.max_severity.rank
    )
    bounds = all(_bound_holds(*earlier.bounds(name), *later.bounds(name)) for name in PROBABILITIES)
    open_too = earlier.decides_open or not later.decides_open
    return any_of and severities and bounds and open_too


def _holds_all(earlier: Sequence[str], later: Sequence[str]) -> bool:
    return not earlier or (bool(later) and set(later) <= set(earlier))


def _bound_holds(
    least: float | None, under: float | None, later_least: float | None, later_under: float | None
) -> bool:
    if least is not None and (later_least is None or later_least < least):
        return False
    return under is None or (later_under is not None and later_under <= under)


def withholds(policy: Policy) -> bool:
    """Could the policy block or redact something for what a judge says of it?"""
    return policy.mode != "observe" and (bool(_actions(policy) & _WITHHOLDING) or policy.block_below > 0)


def _actions(policy: Policy) -> set[Decision]:
    return {rule.action for rule in _live(policy).values()} | set(policy.segment_kinds.values())


def _uses(settings: Settings) -> dict[str, list[str]]:
    """Where each policy is used, in words."""
    found: dict[str, list[str]] = {}
    for number, route in enumerate(settings.routes):
        found.setdefault(route.policy, []).append(f"routes.{number}")
    found.setdefault(settings.default_policy, []).append("default_policy")
    for number, challenger in enumerate(settings.challengers):
        found.setdefault(challenger.policy, []).append(f"challengers.{number}")
    return found


def _of_policy(policy: Policy, settings: Settings, uses: Sequence[str]) -> Iterator[Check]:
    name = f"policies.{policy.name}"
    if not uses:
        if policy.name != "default" or len(settings.policies) == 1:
            yield _POLICIES.warn(name, "nothing uses it", "name it in routes or default_policy, or remove it")
        return  # what nobody uses can't be inert in a way that matters
    applied = [use for use in uses if not use.startswith("challengers.")]
    found = list(inert_rules(name, policy))
    effect = _effect(name, policy, applied)
    lenient = list(_lenient(name, policy)) if applied and policy.mode != "observe" else []
    if effect is None:
        words = (policy.mode, *_can_do(policy), f"used by {_named(uses)}")
        effect = _POLICIES.ok(name, "; ".join(words))
    yield from (effect, *found, *lenient)


def _named(uses: Sequence[str]) -> str:
    return ", ".join(uses[:_NAMED]) + (f" and {len(uses) - _NAMED} more" if len(uses) > _NAMED else "")


def _can_do(policy: Policy) -> Iterator[str]:
    actions = [rule.action for rule in _live(policy).values()]
    told = [f"{actions.count(each)} {each.value}" for each in _ACTING if each in actions]
    if told:
        yield f"rules: {', '.join(told)}"
    for word, bound in (("blocks", policy.block_below), ("flags", policy.flag_below)):
        if bound:
            yield f"{word} scores below {bound:g}"


def _live(policy: Policy) -> dict[int, Rule]:
    """The rules that some claim could make fire, by their places."""
    live: dict[int, Rule] = {}
    for number, rule in enumerate(policy.rules):
        if never_fires(rule) is None and not any(covers(earlier, rule) for earlier in live.values()):
            live[number] = rule
    return live


def _effect(name: str, policy: Policy, applied: Sequence[str]) -> Check | None:
    """What is wrong with what the policy does as a whole."""
    if not _actions(policy) - {Decision.RELEASE} and not policy.flag_below:
        return _POLICIES.fail(
            name,
            "it releases everything: no rule that could fire does more, and the thresholds are 0",
            "give it rules, or set block_below and flag_below",
        )
    if policy.mode == "observe":
        if not applied:
            return None  # a challenger has no effect in any mode
        return _POLICIES.warn(
            name,
            f"it only observes: every answer of {_named(applied)} is shown as it is written",
            "set mode: hold or stream where answers are to be withheld",
        )
    if not withholds(policy):
        return _POLICIES.warn(
            name,
            "it flags and withholds nothing: no rule that could fire blocks or redacts, and block_below is 0",
            "add a rule that blocks, or set block_below",
        )
    return None


def inert_rules(name: str, policy: Policy) -> Iterator[Check]:
    """A warning for each rule that never fires, or that earlier ones leave nothing to."""
    live = _live(policy)
    for number, rule in enumerate(policy.rules):
        if number in live:
            continue
        about = f"{name}.rules.{number}"
        if (why := never_fires(rule)) is not None:
            yield _POLICIES.warn(about, f"'{rule.name}' can never fire: {why}", "change it, or remove it")
            continue
        at, earlier = next(each for each in live.items() if covers(each[1], rule))
        yield _POLICIES.warn(
            about,
            f"'{rule.name}' is never reached: rules.{at} ('{earlier.name}') takes every claim that it would",
            f"move it before rules.{at}, or remove it",
        )


def _lenient(name: str, policy: Policy) -> Iterator[Check]:
    if policy.on_unverified is FailPolicy.FAIL_OPEN:
        yield _POLICIES.warn(
            f"{name}.on_unverified",
            "fail_open: while the judge is away, everything is released unchecked",
            "set fail_closed, or flag to have it marked",
        )


def _of_routes(routes: Sequence[Route]) -> Iterator[Check]:
    for number, route in enumerate(routes):
        earlier = next((at for at in range(number) if _takes_all(routes[at], route)), None)
        if earlier is not None:
            yield _POLICIES.warn(
                f"routes.{number}",
                f"it is never reached: routes.{earlier} takes every response that it would",
                f"move it before routes.{earlier}, or remove it",
            )


def _takes_all(earlier: Route, later: Route) -> bool:
    return all(
        getattr(earlier, name) is None
        # A pattern that fits another's text fits what that one stands for, as * stands for * too.
        or Route(route=getattr(earlier, name), policy="any").matches(getattr(later, name), None)
        for name in ("route", "tenant", "generator_model")
    )


def policy_notes(settings: Settings) -> Iterator[str]:
    """A line for each setting of policies and routes that is allowed and hardly meant."""
    for name, policy in settings.policies.items():
        place = f"policies.{name}"
        yield from (f"{each.about}: {each.detail}; {each.remedy}" for each in inert_rules(place, policy))
        for field, does in (("flag_below", "flags"), ("block_below", "blocks")):
            if getattr(policy, field) == 1:
                yield f"{place}.{field}: 1, or true, {does} nearly every answer: few have a score of 1"
        for field, most in (("claim_timeout_ms", _TEN_MINUTES_MS), ("incomplete_timeout_ms", _DAY_MS)):
            if (value := getattr(policy, field)) > most:
                yield f"{place}.{field}: {value} is {value / 3_600_000:,.1f} hours; readers may wait for them"
    for number, route in enumerate(settings.routes):
        for field in ("route", "tenant", "generator_model"):
            pattern = getattr(route, field) or ""
            if pattern != pattern.strip():
                yield f"routes.{number}.{field}: {pattern!r} has a space at an end; values must have it, too"
            if _NO_GLOB.search(pattern):
                yield f"routes.{number}.{field}: {pattern!r} is not a regular expression: only * is special"
