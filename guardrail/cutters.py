"""New cutters for responses, by policy."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from guardrail.claims.citations import CitationReader
from guardrail.claims.cutter import ClaimCutter
from guardrail.claims.links import KnownLinks
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import Context
from guardrail.policy import Policy

_RATERS_KEPT: Final = 64


class Cutters:
    """Makes cutters; what a policy says of severity is compiled once for as long as it is in use."""

    def __init__(self) -> None:
        # The policy is kept beside its rater so that its id can't be another's.
        self._raters: OrderedDict[int, tuple[Policy, BuiltinSeverityRater]] = OrderedDict()

    def new(self, policy: Policy, contexts: Sequence[Context]) -> ClaimCutter:
        """A cutter for one response with these contexts under this policy."""
        cached = self._raters.get(id(policy))
        if cached is None:
            cached = self._raters[id(policy)] = (policy, BuiltinSeverityRater(policy.severity))
            if len(self._raters) > _RATERS_KEPT:  # policies of restored responses come and go
                self._raters.popitem(last=False)
        links = KnownLinks(contexts)
        return ClaimCutter(
            cached[1],
            citations=CitationReader(contexts, policy.citation_pattern, links),
            links=links,
            max_segment_chars=policy.max_segment_chars,
        )
