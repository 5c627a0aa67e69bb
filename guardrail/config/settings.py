"""All settings except those of Kafka, in one tree of frozen values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from guardrail.errors import ConfigError
from guardrail.frozen import Frozen
from guardrail.judges.settings import JudgeSettings
from guardrail.leaves import Loc, Place, mapped
from guardrail.limits import Limits
from guardrail.policy import DEFAULT_RULES, NAMES_A_POLICY, RULE_HELP, RULE_LISTS, Policy
from guardrail.routing import Challenger, PolicyRouter, Route, check_challengers, policy_names
from guardrail.secrets import MASK

# -------------------------------------------------------------------------------- policies that extend others

# ``extends`` works on plain values, before validation, because only there a policy's own settings can be told
# from defaults. It checks only names; values of the wrong form stay, for the validation to reject.
_EXTENDS: Final = "extends"
_BEFORE, _RULES, _AFTER = RULE_LISTS
_NOT_INHERITED: Final = frozenset({"name", _EXTENDS, *RULE_LISTS})


def unknown_policy(path: Loc, name: str, known: Iterable[str]) -> PydanticCustomError:
    """The error for a validator to raise where no policy has the name at ``path``."""
    names = sorted(known)
    context: dict[str, Any] = {
        "where": ".".join(map(str, path)),
        "name": repr(name),
        "known": ", ".join(names),
    }
    context |= {"path": path, "value": name, "names": names}
    template = "{where}: unknown policy {name}; known: {known}"
    return PydanticCustomError("unknown_policy", template, context)


def inherit(policies: Mapping[str, Any]) -> tuple[dict[str, Any], list[PydanticCustomError]]:
    """The policies with inherited values written out, and what is wrong with their ``extends``."""
    problems = [*_unknown(policies), *cycles(policies)]
    if problems:
        return dict(policies), problems
    resolved: dict[str, Any] = {}
    for name in policies:
        _resolve(name, policies, resolved)
    return resolved, []


def cycles(policies: Any) -> list[PydanticCustomError]:
    """Every policy that extends itself, directly or indirectly; each is reported at its own place."""
    found = []
    for name in policies if isinstance(policies, Mapping) else ():
        chain = [name]
        while (base := _base(policies, chain[-1])) is not None and base not in chain:
            chain.append(base)
        if base is not None and base == name:  # a name in a file may be null
            way = f": {' -> '.join(map(str, (*chain, name)))}" if len(chain) > 1 else ""
            context = {"path": ("policies", name, _EXTENDS), "value": policies[name][_EXTENDS], "way": way}
            template = "it extends itself{way}; name another policy, or leave it out"
            found.append(PydanticCustomError("extends_cycle", template, context))
    return found


def is_inherited(policies: Any, path: tuple[str | int, ...]) -> bool:
    """Whether the policy's setting at ``path`` is inherited, so that its faults are reported at the other
    policy.
    """
    if len(path) < 3 or path[0] != "policies" or not isinstance(policies, Mapping):
        return False
    name, field, *below = path[1:]
    if _base(policies, name) is None:
        return False
    given = policies[name]
    if field not in given:
        return True
    # Mappings are merged one by one; lists, and texts, are the policy's own.
    return bool(below) and isinstance(given[field], Mapping) and below[0] not in given[field]


def _base(policies: Mapping[Any, Any], name: Any) -> str | None:
    policy = policies.get(name)
    base = policy.get(_EXTENDS) if isinstance(policy, Mapping) else None
    return base if isinstance(base, str) else None


def _unknown(policies: Mapping[str, Any]) -> Iterator[PydanticCustomError]:
    for name in policies:
        base = _base(policies, name)
        if base is not None and base not in policies:
            yield unknown_policy(("policies", name, _EXTENDS), base, map(str, policies))


def _resolve(name: str, policies: Mapping[str, Any], resolved: dict[str, Any]) -> Any:
    """The values of a policy whose chain ends."""
    chain = [name]
    while chain[-1] not in resolved and (base := _base(policies, chain[-1])) is not None:
        chain.append(base)
    for each in reversed(chain):
        if each in resolved:
            continue
        policy, base = policies[each], _base(policies, each)
        resolved[each] = policy if base is None else _joined(resolved[base], policy)
    return resolved[name]


def _joined(base: Any, own: Mapping[str, Any]) -> Any:
    if not isinstance(base, Mapping):
        return {key: value for key, value in own.items() if key != _EXTENDS}
    taken = {key: value for key, value in base.items() if key not in _NOT_INHERITED}
    said = {key: value for key, value in own.items() if key != _EXTENDS}
    if _RULES not in own and any(each in base for each in RULE_LISTS):
        taken[_RULES] = _all_rules(base)
    return merged(taken, said)


def _all_rules(policy: Mapping[str, Any]) -> Any:
    """The rules of a policy in the order of trying."""
    lists = [policy.get(_BEFORE, ()), policy.get(_RULES, DEFAULT_RULES), policy.get(_AFTER, ())]
    if all(isinstance(each, list | tuple) for each in lists):
        return [rule for each in lists for rule in each]
    return next(each for each in lists if not isinstance(each, list | tuple))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``over`` in it: mappings key by key, all else replaced."""
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merged(below, value)
        found[key] = value
    return found


# ----------------------------------------------------------------------------------------------- the settings

ENV_PREFIX: Final = "GUARDRAIL_"
ENV_DELIMITER: Final = "__"
BUILT_IN_POLICY: Final = "default"
SECTIONS_OF_OTHERS: Final = frozenset({"flagged", "kafka", "ops", "serve"})
"""Sections of the same file that this package passes over: ``consumers.settings`` reads them."""

_URL: Final = re.compile(r"[a-z][a-z0-9+.\-]*://\S+$", re.IGNORECASE)
_URL_LOGIN: Final = re.compile(r"(?<=://)[^/?#@]+(?=@)")
_QUERY_VALUE: Final = re.compile(r"(?<==)[^&#]+|(?<=\?)[^=&#]+(?=&|#|$)")

LogFormat = Literal["auto", "json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]


class LoggingSettings(Frozen):
    """What is logged, and how; logs go to stderr."""

    format: LogFormat = Field(
        default="auto",
        description="json: one object per line. console: for people. auto: console in a terminal, else json.",
    )
    level: LogLevel = Field(
        default="info",
        description="Lowest level to log. Of libraries only warnings and errors are, at any level: their "
        "other lines show what they send.",
    )
    log_texts: bool = Field(
        default=False,
        description="Also log questions, contexts, answers and claims; they may contain personal data.",
    )


class ShutdownSettings(Frozen):
    """How the guard shuts down."""

    budget_ms: Annotated[int, Field(ge=500)] = Field(
        default=25_000,
        description="Longest time from SIGTERM to the end of the process. About two thirds are for "
        "responses in flight; the next guard resumes those that are left. The rest is for "
        "committing and leaving the group. Keep it below the grace period of whatever "
        "stops the process (terminationGracePeriodSeconds).",
    )

    @property
    def leave_timeout_ms(self) -> int:
        """Time for the last commits, leaving the group and closing: no more than these need."""
        return min(8_000, self.budget_ms * 2 // 5)

    @property
    def drain_timeout_ms(self) -> int:
        """Time for responses in flight: the rest, less a twentieth for the end of the process itself."""
        return self.budget_ms * 19 // 20 - self.leave_timeout_ms


class Settings(BaseSettings):
    """The configuration without Kafka. ``Settings()`` has the defaults; ``load_settings`` reads the sources.

    Raises pydantic's ValidationError for wrong values; ``load_settings`` turns it into a ConfigError that
    names file, path, value and remedy.
    """

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
        validate_default=False,
    )

    limits: Limits = Field(
        default_factory=Limits, description="Bounds on what one guard process holds at a time."
    )
    judge: JudgeSettings = Field(
        default_factory=JudgeSettings, description="The judge that gives the verdicts."
    )
    policies: dict[Annotated[str, Field(min_length=1)], Policy] = Field(
        default_factory=dict,
        validate_default=True,
        description="Policies by name. The built-in 'default' always exists; name it here to change "
        "it. A policy takes the settings that it omits from the one that it extends, or "
        "from the built-in defaults.",
    )
    routes: tuple[Route, ...] = Field(
        default=(),
        description="Select a response's policy by route, tenant and generator model; the first match wins.",
    )
    default_policy: Annotated[str, NAMES_A_POLICY] = Field(
        default=BUILT_IN_POLICY, description="Name of the policy that applies if no route matches."
    )
    challengers: tuple[Challenger, ...] = Field(
        default=(),
        description="Policies that decide beside others on the same verdicts, without effect, to try "
        "out a policy on live traffic.",
    )
    logging: LoggingSettings = Field(default_factory=LoggingSettings, description="Logs of the process.")
    shutdown: ShutdownSettings = Field(
        default_factory=ShutdownSettings, description="How the guard shuts down."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic-settings'
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the given values: an embedded guard must not change with its host's environment."""
        return (init_settings,)

    @field_validator("policies", mode="before")
    @classmethod
    def _name_policies(cls, value: Any) -> Any:
        """The key is the policy's name; an empty policy is the built-in one under another name."""
        if value is None:
            value = {}
        if not isinstance(value, Mapping):
            return value
        named = {BUILT_IN_POLICY: {}} | {key: _named(key, policy) for key, policy in value.items()}
        resolved, problems = inherit(named)
        if problems:
            raise problems[0]
        return resolved

    @field_validator("policies", mode="after")
    @classmethod
    def _names_match(cls, value: dict[str, Policy]) -> dict[str, Policy]:
        return {
            key: policy if policy.name == key else policy.model_copy(update={"name": key})
            for key, policy in value.items()
        }

    @field_validator("routes", "challengers", mode="before")
    @classmethod
    def _empty_routes(cls, value: Any) -> Any:
        return () if value is None else value

    @model_validator(mode="after")
    def _policies_exist(self) -> Self:
        for place in policy_names(self):
            if place.value is not None and place.value not in self.policies:
                raise unknown_policy(place.path, place.value, self.policies)
        try:
            check_challengers(self.challengers)
        except ConfigError as error:
            where, _, wrong = str(error).partition(": ")
            section, number, name = where.split(".")
            value = getattr(self.challengers[int(number)], name)
            context = {"wrong": wrong, "path": (section, int(number), name), "value": value}
            raise PydanticCustomError("wrong_challenger", "{wrong}", context) from None
        return self

    def router(self) -> PolicyRouter:
        """The policies with their routing table."""
        return PolicyRouter(self.policies, self.routes, self.default_policy, self.challengers)

    def masked(self) -> dict[str, Any]:
        """The settings as plain values for YAML or JSON, with secrets masked, including those in URLs."""
        values: dict[str, Any] = mapped(self.model_dump(mode="json"), _without_url_secrets)
        for name, policy in self.policies.items():
            for rules in RULE_LISTS:
                values["policies"][name][rules] = [rule.line for rule in getattr(policy, rules)]
        return values


def _without_url_secrets(leaf: Place) -> Any:
    """A value; of a URL with logins and query values masked: some gateways take their key in the query."""
    if isinstance(leaf.value, str) and _URL.match(leaf.value):
        return _QUERY_VALUE.sub(MASK, _URL_LOGIN.sub(MASK, leaf.value))
    return leaf.value


def _named(key: Any, policy: Any) -> Any:
    if policy is None:
        return {}
    if isinstance(policy, Mapping) and policy.get("name", key) != key:
        raise PydanticCustomError(
            "policy_name",
            "its key is its name, and 'name' differs; leave 'name' out",
            {"path": ("policies", key, "name"), "value": policy["name"]},
        )
    for field in RULE_LISTS if isinstance(policy, Mapping) else ():
        rules = policy.get(field)
        for number, rule in enumerate(rules if isinstance(rules, list | tuple) else ()):
            if isinstance(rule, Mapping):
                raise PydanticCustomError(
                    "rule_line",
                    "a rule is one line; {help}",
                    {"path": ("policies", key, field, number), "value": rule, "help": RULE_HELP},
                )
    return policy
