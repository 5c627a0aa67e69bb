"""Which policy a response gets: an ordered table of routes and tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guardrail.errors import ConfigError
from guardrail.policy import Policy


class Route(BaseModel):
    """One line of the routing table. A field that is left out matches anything, also a missing value."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    route: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The response's route must equal this, letter by letter."
    )
    tenant: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The response's tenant must equal this, letter by letter."
    )
    policy: str = Field(min_length=1, description="Name of the policy that applies then.")

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if self.route is None and self.tenant is None:
            raise ValueError(
                "a route without 'route' and 'tenant' matches everything; "
                "give one of them, or set default_policy"
            )
        return self

    def matches(self, route: str | None, tenant: str | None) -> bool:
        """Do all fields that are set equal the response's?"""
        return self.route in {None, route} and self.tenant in {None, tenant}


class PolicyRouter:
    """Chooses the policy of a response: the first route that matches, else the default.

    Raises ConfigError when a route or the default names a policy that is not there.
    """

    __slots__ = ("_default", "_policies", "_routes")

    def __init__(
        self, policies: Mapping[str, Policy], routes: Sequence[Route] = (), default: str = "default"
    ) -> None:
        known = ", ".join(sorted(policies)) or "none"
        for i, route in enumerate(routes):
            if route.policy not in policies:
                raise ConfigError(
                    f"routes.{i}.policy: {route.policy!r} is no policy; "
                    f"name one of policies ({known}) or add it there"
                )
        if default not in policies:
            raise ConfigError(
                f"default_policy: {default!r} is no policy; name one of policies ({known}) or add it there"
            )
        self._policies = dict(policies)
        self._routes = tuple(routes)
        self._default = self._policies[default]

    @classmethod
    def single(cls, policy: Policy) -> Self:
        """A router that always chooses ``policy``."""
        return cls({policy.name: policy}, (), policy.name)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Every policy that could be chosen, in the order of the configuration."""
        return tuple(self._policies.values())

    def choose(self, route: str | None, tenant: str | None) -> Policy:
        """The policy for a response of this route and tenant."""
        for candidate in self._routes:
            if candidate.matches(route, tenant):
                return self._policies[candidate.policy]
        return self._default

    def for_unknown(self, route: str | None = None, tenant: str | None = None) -> Policy:
        """The policy for a response of which the policy can't be known, or what it began with.

        It is to be ended, and a policy that observes would let its text through instead. So it is the one
        that ``choose`` gives unless that observes; then the default, then the first that does not. Where all
        policies observe it is that of ``choose``.
        """
        candidates = (self.choose(route, tenant), self._default, *self._policies.values())
        return next((policy for policy in candidates if policy.mode != "observe"), candidates[0])
