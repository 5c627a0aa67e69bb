"""The policies of the chaos runs, by route. Scores decide nothing, so that outcomes follow from the text."""

from __future__ import annotations

from typing import Final, Literal

from guardrail.events import Decision
from guardrail.policy import FailPolicy, OnIncomplete, Policy, Rule
from guardrail.routing import PolicyRouter, Route

PATIENT_MS: Final = 300_000
"""Longer than any fault: where time must decide nothing."""
ORPHAN_MS: Final = 4_000
DELICATE_MS: Final = 800
DEFAULT_ROUTE: Final = "stream-block"


def _policy(
    name: str,
    mode: Literal["hold", "stream", "observe"],
    action: Decision,
    *,
    on_unverified: FailPolicy = FailPolicy.FAIL_CLOSED,
    on_incomplete: OnIncomplete = OnIncomplete.BLOCK,
    claim_timeout_ms: int = PATIENT_MS,
    incomplete_timeout_ms: int = PATIENT_MS,
) -> Policy:
    return Policy(
        name=name,
        mode=mode,
        rules=(Rule.model_validate(f"verdict CONTRADICTED: {action}"),),
        flag_below=0.0,
        block_below=0.0,
        on_unverified=on_unverified,
        on_incomplete=on_incomplete,
        claim_timeout_ms=claim_timeout_ms,
        incomplete_timeout_ms=incomplete_timeout_ms,
    )


_FLAG = OnIncomplete.FLAG
POLICIES: Final[dict[str, Policy]] = {
    policy.name: policy
    for policy in (
        _policy(DEFAULT_ROUTE, "stream", Decision.BLOCK),
        _policy("stream-redact", "stream", Decision.REDACT, on_incomplete=_FLAG),
        _policy("stream-flag", "stream", Decision.FLAG, on_incomplete=_FLAG),
        _policy("hold-block", "hold", Decision.BLOCK, on_incomplete=_FLAG),
        _policy("hold-redact", "hold", Decision.REDACT),
        _policy("observe", "observe", Decision.BLOCK),
        _policy("delicate-closed", "stream", Decision.BLOCK, claim_timeout_ms=DELICATE_MS),
        _policy(
            "delicate-open",
            "stream",
            Decision.REDACT,
            on_unverified=FailPolicy.FAIL_OPEN,
            claim_timeout_ms=DELICATE_MS,
        ),
        _policy(
            "delicate-flag",
            "hold",
            Decision.REDACT,
            on_unverified=FailPolicy.FLAG,
            claim_timeout_ms=DELICATE_MS,
        ),
        _policy("orphan-block", "stream", Decision.BLOCK, incomplete_timeout_ms=ORPHAN_MS),
        _policy("orphan-flag", "hold", Decision.REDACT, on_incomplete=_FLAG, incomplete_timeout_ms=ORPHAN_MS),
    )
}
SOUND_ROUTES: Final = tuple(name for name in POLICIES if not name.startswith(("delicate", "orphan")))
DELICATE_ROUTES: Final = tuple(name for name in POLICIES if name.startswith("delicate"))
ORPHAN_ROUTES: Final = tuple(name for name in POLICIES if name.startswith("orphan"))


def router() -> PolicyRouter:
    """Chooses the policy that has the route's name."""
    return PolicyRouter(POLICIES, [Route(route=name, policy=name) for name in POLICIES], DEFAULT_ROUTE)
