"""What a start on this machine would miss of what the settings name, and what in them is hardly meant.

Notes and no errors: keys, programs, models, packages and files may be where the guard runs and not where its
settings are checked.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guardrail.config import Settings
from guardrail.doctor.checks import Area, Check, detail_and_remedy
from guardrail.errors import ConfigError, install_hint
from guardrail.events import Decision
from guardrail.judges.factory import all_kinds, uses_local
from guardrail.leaves import leaves
from guardrail.policy import PROBABILITIES, FailPolicy, Policy, Rule
from guardrail.routing import Route
from guardrail.secrets import Secret

if TYPE_CHECKING:
    from guardrail.judges.cache import CacheSettings
    from guardrail.judges.llm.settings import LlmJudgeSettings
    from guardrail.judges.local.settings import VerifierSettings
    from guardrail.judges.settings import JudgeSettings

_SETTINGS: Final = Area("settings")


def check_settings(settings: Settings, notes: Iterable[str] = ()) -> list[Check]:
    """Files that can't be opened here, and what a start would miss; ``notes`` are those of other sections."""
    checks = [
        _SETTINGS.fail(path, f"can't be read here: {why}", "put it there, or correct the setting")
        for path, why in unreadable_files(settings)
    ]
    for note in dict.fromkeys((*start_notes(settings), *notes)):
        about, colon, rest = note.partition(": ")
        checks.append(
            _SETTINGS.warn(about if colon else "judge", *detail_and_remedy(rest if colon else note))
        )
    return checks or [_SETTINGS.ok("files and keys", "all that the settings name are here")]


def unreadable_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings in use that name a file which can't be opened, with their value, and why."""
    for setting, path in _named_files(settings):
        if path.is_dir():
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            yield f"{setting} {path}", error.strerror or type(error).__name__


def _named_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    every = all_kinds(settings.judge, settings.policies.values())
    used = frozenset().union(*(each.kinds() for each in every))
    idle = {"local", "llm", "decisions", "classifier", "http"} - used
    if any(map(uses_local, every)):
        idle -= {"local"}
    if not settings.judge.cache.enabled or used == {"local"}:
        idle |= {"cache"}
    for leaf in leaves(settings):
        # Those of flagged are read by what notes its settings.
        if leaf.path[0] == "flagged" or (leaf.path[0] == "judge" and leaf.path[1] in idle):
            continue
        if isinstance(leaf.value, Path):
            yield leaf.dotted, leaf.value
        elif isinstance(leaf.value, Secret) and leaf.value.file is not None:
            yield f"{leaf.dotted}.file", leaf.value.file


def start_notes(settings: Settings) -> list[str]:
    """A line for each thing that ``build_judge`` would find missing here, without building anything. Files
    that settings name are ``unreadable_files``'.
    """
    every = all_kinds(settings.judge, settings.policies.values())
    return list(dict.fromkeys(note for each in every for note in _of_judge(each)))


def _of_judge(judge: JudgeSettings) -> Iterator[str]:
    kinds = judge.kinds()
    if uses_local(judge):
        yield from _of_verifier(judge.local.verifier)
    if "llm" in kinds:
        yield from _of_llm(judge.llm)
    if "decisions" in kinds:
        yield from refused(judge.decisions.resolve_api_key)
    if "classifier" in kinds:
        from guardrail.judges.model import start_notes as of_classifier

        yield from of_classifier(judge.classifier)
    if "custom" in kinds and judge.factory is not None:
        from guardrail.judges.own import load_factory

        yield from refused(partial(load_factory, judge.factory))
    if judge.cache.enabled and judge.cache.redis_url is not None and kinds != {"local"}:
        yield from _of_redis(judge.cache)


def refused(attempt: Callable[[], object]) -> list[str]:
    """What ``attempt`` raises as ConfigError, as a note."""
    try:
        attempt()
    except ConfigError as error:
        return [str(error)]
    return []


def _of_llm(llm: LlmJudgeSettings) -> Iterator[str]:
    models = llm.models()
    for number, each in enumerate(models):
        place = f"judge.llm.fallbacks.{number - 1}" if number else "judge.llm"
        if _opens(each.api_key):
            yield from refused(partial(each.resolve_api_key, place))
        same = next((other for other in models[:number] if _one_server_model(other, each)), None)
        if same is not None:
            yield f"{place}: the same model on the same server as before it; when that fails, so will this"


def _of_verifier(verifier: VerifierSettings) -> Iterator[str]:
    from guardrail.judges.model import missing_runtime
    from guardrail.judges.model.verifier import RUNTIME

    if not verifier.enabled:
        yield "judge.local.verifier.enabled is false: claims are judged by words and figures alone"
        return
    for module in RUNTIME:
        if not _installed(module):
            yield str(missing_runtime(module))


def _one_server_model(one: LlmJudgeSettings, other: LlmJudgeSettings) -> bool:
    return (one.model, one.base_url) == (other.model, other.base_url)


def _of_redis(cache: CacheSettings) -> Iterator[str]:
    if not _installed("redis"):
        yield f"judge.cache.redis_url: the Redis client is not installed; {install_hint('redis')}"
    if _opens(cache.redis_url):
        yield from refused(cache.resolve_redis_url)
    if _opens(cache.signing_key):
        yield from refused(cache.resolve_signing_key)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _opens(secret: Secret | None) -> bool:
    """Whether its file can be opened, if it stands in one: those that can't be are ``unreadable_files``'."""
    if secret is None or secret.file is None:
        return True
    try:
        secret.file.open("rb").close()
    except OSError:
        return False
    return True


# ------------------------------------------------------------------------------------------------ policies
#
# Which policies do nothing, or less than their author will have meant. Told from the settings alone: a rule
# is said to be inert only where no verdict at all could make it fire.

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
