"""Chooses a response's policy from an ordered table of routes, and the challenger that decides beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import BaseModel, Field, model_validator

from guardrail.errors import ConfigError, NotAllowed
from guardrail.events import Response, ResponseStarted
from guardrail.frozen import Frozen
from guardrail.leaves import Place, leaves
from guardrail.policy import NAMES_A_POLICY, Policy

_HOW: Final = "must be this, letter by letter; * stands for any characters, or none."
Pattern = Annotated[str, Field(min_length=1, max_length=256)]
PolicyName = Annotated[str, Field(min_length=1), NAMES_A_POLICY]


class Route(Frozen):
    """One line of the routing table. An omitted field matches anything, including a missing value."""

    route: Pattern | None = Field(default=None, description=f"The response's route {_HOW}")
    tenant: Pattern | None = Field(default=None, description=f"The response's tenant {_HOW}")
    generator_model: Pattern | None = Field(
        default=None, description=f"The model that writes the response {_HOW}"
    )
    policy: PolicyName = Field(description="Name of the policy that applies to a match.")
    share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="Share of the matching responses that get the policy, 0 to 1; the others go on to the "
        "next route. A given id is always included or never.",
    )

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if self.share == 1 and self.unconditional:
            raise ValueError(
                "a route without 'route', 'tenant', 'generator_model' and 'share' matches everything; "
                "give one of them, or set default_policy"
            )
        return self

    @property
    def unconditional(self) -> bool:
        """Whether it takes a share of everything."""
        return self.route is None and self.tenant is None and self.generator_model is None

    def matches(self, route: str | None, tenant: str | None, generator_model: str | None = None) -> bool:
        """Whether all fields that are set match the response's."""
        return (
            _fits(self.route, route)
            and _fits(self.tenant, tenant)
            and _fits(self.generator_model, generator_model)
        )

    def includes(self, response_id: str | None) -> bool:
        """Whether a response that matches is in the share; without an id only if everything is."""
        if self.share == 1:
            return True
        return response_id is not None and _place(response_id, f"route {self.policy}") < self.share


def _place(response_id: str, drawing: str) -> float:
    """Where an id falls in 0..1, the same in every process; independent of its place in other drawings."""
    named = f"{drawing}\0{response_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=8).digest()) / 2**64


def _fits(pattern: str | None, value: str | None) -> bool:
    """Whether ``value`` matches. Linear time for one *, and at worst their number times the length."""
    if pattern is None or pattern == value:
        return True
    if value is None or "*" not in pattern:
        return False
    first, *between, last = pattern.split("*")
    if len(value) < len(first) + len(last) or not (value.startswith(first) and value.endswith(last)):
        return False
    at, end = len(first), len(value) - len(last)
    for piece in between:
        found = value.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


class Scope(Frozen):
    """What chooses the policy, where those who ask don't: a key's holder, or the producers of a topic."""

    holder: ClassVar[str] = "the key"

    tenant: Annotated[
        str | None,
        Field(max_length=256, description="The tenant of all that comes; none but it may be named."),
    ] = None
    routes: Annotated[
        tuple[Annotated[str, Field(max_length=256)], ...],
        Field(description="The routes that may be named; the first is meant by who names none. Empty: none."),
    ] = ()

    @property
    def told(self) -> str:
        """In a line, what may be named."""
        routes = ", ".join(self.routes) or "none"
        return f"tenant {self.tenant or 'none'}, routes {routes}"

    def chosen(self, route: str | None, tenant: str | None) -> tuple[str | None, str | None]:
        """The route and tenant that hold. Raises NotAllowed for one that may not be named."""
        if tenant is not None and tenant != self.tenant:
            whose = "is for another" if self.tenant else "may name none"
            raise NotAllowed("tenant_not_allowed", f"tenant: {self.holder} {whose}, so leave it out")
        if route is not None and route not in self.routes:
            may = ", ".join(self.routes) or "none, so leave it out"
            raise NotAllowed("route_not_allowed", f"route: {self.holder} may name {may}")
        return route or next(iter(self.routes), None), self.tenant

    def held(self, event: Response | ResponseStarted) -> Response | ResponseStarted:
        """The event that begins an answer, as it may be. Raises NotAllowed."""
        route, tenant = self.chosen(event.route, event.tenant)
        # The model is the caller's word, too, which must not choose another policy.
        return event.model_copy(update={"route": route, "tenant": tenant, "generator_model": None})


class Challenger(Frozen):
    """A policy that decides beside another one on the same verdicts, without effect."""

    policy: PolicyName = Field(description="Name of the policy that decides beside the other one.")
    against: PolicyName = Field(description="Name of the policy that is applied.")
    share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="Share of the responses of that policy, 0 to 1; a given id is always included or "
        "never. The shares of several challengers of one policy add up to at most 1, "
        "because each response has at most one.",
    )


class PolicyRouter:
    """Chooses the policy of a response: the first route that matches, else the default.

    Raises ConfigError if a route, the default or a challenger names a missing policy, or if the shares of a
    policy's challengers exceed 1.
    """

    __slots__ = ("_challengers", "_default", "_policies", "_routes")

    def __init__(
        self,
        policies: Mapping[str, Policy],
        routes: Sequence[Route] = (),
        default: str = "default",
        challengers: Sequence[Challenger] = (),
    ) -> None:
        named = [("default_policy", default)]
        named += [
            (each.dotted, each.value) for each in policy_names({"routes": routes, "challengers": challengers})
        ]
        for place, name in named:
            if name not in policies:
                known = ", ".join(sorted(policies)) or "none"
                raise ConfigError(
                    f"{place}: unknown policy {name!r}; name one of policies ({known}) or add it there"
                )
        check_challengers(challengers)
        self._policies = dict(policies)
        self._routes = tuple(routes)
        self._default = self._policies[default]
        self._challengers: dict[str, list[tuple[float, Policy]]] = {}
        for challenger in challengers:
            taken = self._challengers.setdefault(challenger.against, [])
            end = (taken[-1][0] if taken else 0.0) + challenger.share
            taken.append((end, self._policies[challenger.policy]))

    @classmethod
    def single(cls, policy: Policy) -> Self:
        """A router that always chooses ``policy``."""
        return cls({policy.name: policy}, (), policy.name)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Every policy that could be chosen, in the order of the configuration."""
        return tuple(self._policies.values())

    def choose(
        self,
        route: str | None,
        tenant: str | None,
        generator_model: str | None = None,
        response_id: str | None = None,
    ) -> Policy:
        """The policy for a response of this route, tenant and model. Without its id, routes that take a share
        only are passed over.
        """
        for candidate in self._routes:
            if candidate.matches(route, tenant, generator_model) and candidate.includes(response_id):
                return self._policies[candidate.policy]
        return self._default

    def misses(self, route: str | None, tenant: str | None, generator_model: str | None = None) -> bool:
        """Are there routes, and none for this one, which is named? Then it may be misspelt."""
        named = [each for each in self._routes if not each.unconditional]
        if route is None or not named:
            return False
        return not any(each.matches(route, tenant, generator_model) for each in named)

    def challenger(self, policy: Policy, response_id: str) -> Policy | None:
        """The policy that decides beside ``policy`` for this response, if any. Every process chooses the same
        one for the same id.
        """
        challengers = self._challengers.get(policy.name)
        if not challengers:
            return None
        place = _place(response_id, "challenger")
        return next((challenger for end, challenger in challengers if place < end), None)

    def for_unknown(
        self, route: str | None = None, tenant: str | None = None, generator_model: str | None = None
    ) -> Policy:
        """The policy for a response whose policy, or whose start, can't be known.

        Such a response must end, and a policy that observes would release its text instead. So this is the
        policy that ``choose`` returns, unless it observes; then the default, then the first that doesn't
        observe. If all policies observe, it is that of ``choose``.
        """
        candidates = (self.choose(route, tenant, generator_model), self._default, *self._policies.values())
        return next((policy for policy in candidates if policy.mode != "observe"), candidates[0])


def policy_names(values: Any, kind: type[BaseModel] | None = None) -> Iterator[Place]:
    """Every place of settings, or of plain values for ``kind``, where the name of a policy stands."""
    return (
        each for each in leaves(values, kind=kind) if each.field and NAMES_A_POLICY in each.field.metadata
    )


def check_challengers(challengers: Sequence[Challenger]) -> None:
    """Raises ConfigError for the first wrong challenger: one that challenges itself, or whose share is too
    large.
    """
    shares: dict[str, float] = {}
    for i, challenger in enumerate(challengers):
        if challenger.policy == challenger.against:
            raise ConfigError(
                f"challengers.{i}.policy: {challenger.policy!r} would challenge itself; name another policy"
            )
        shares[challenger.against] = shares.get(challenger.against, 0.0) + challenger.share
        if shares[challenger.against] > 1 + 1e-9:
            raise ConfigError(
                f"challengers.{i}.share: the challengers of {challenger.against!r} take "
                f"{shares[challenger.against]:g} of its responses; lower the shares to 1 together"
            )
