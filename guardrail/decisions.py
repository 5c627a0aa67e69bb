"""From the verdicts on a response's segments, in text order, to its decision.

``Decider`` decides as the verdicts come, for a session. ``redecide`` decides a whole response again, under
any policy, for challengers and for replay. Both share one implementation, and neither asks a judge.

Whatever a policy says about *how* to judge a response has no effect here: claims, severities and verdicts are
as given, regardless of its ``judge``, ``budget``, ``severity`` and time limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from guardrail.events import (
    ClaimVerdict,
    Decision,
    Interruption,
    ResponseVerdict,
    SegmentKind,
)
from guardrail.policy import SCORE_BELOW, FailPolicy, OnIncomplete, Policy
from guardrail.scoring import ScoreKeeper, lost

# As ``Policy.decide_score`` writes them; an operator may name a rule so that it begins like them.
_OF_THE_SCORE: Final = re.compile(rf"{re.escape(SCORE_BELOW)}(?:block|flag)_below [0-9.e-]+")
# Looking up a module-level name is faster than a member of an enumeration.
_RELEASE, _BLOCK = Decision.RELEASE, Decision.BLOCK


class Decider:
    """What one policy decides about one response, segment by segment in text order."""

    __slots__ = ("_kinds", "_policy", "_score", "_streaming", "claims", "worst", "worst_rule")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._kinds = policy.segment_kinds
        self._streaming = policy.mode == "stream"
        self._score = ScoreKeeper(policy.score, policy.weights)
        self.claims = 0  # in the segments so far, checked or not
        self.worst = _RELEASE  # the strictest decision so far, and the first rule that made it
        self.worst_rule = ""

    @property
    def score(self) -> float | None:
        """The running score; None while nothing has been checked."""
        return self._score.score

    def count(self, claims: Iterable[ClaimVerdict]) -> None:
        """Add claims to the score, from segments that were decided before a restart."""
        for claim in claims:
            self.claims += 1
            self._score.add(claim.severity, claim.verdict, claim.support)

    def segment(self, kind: SegmentKind | None, claims: Sequence[ClaimVerdict]) -> tuple[Decision, str]:
        """What happens to the next segment, and the rule that decided it. ``kind`` is None if unknown."""
        policy, score = self._policy, self._score
        worst, rule = _RELEASE, ""
        if kind in self._kinds:
            worst, rule = self._kinds[kind], f"segment kind {kind}"
        for claim in claims:
            score.add(claim.severity, claim.verdict, claim.support)
            decision, name = policy.decide_claim(claim)
            if decision.rank > worst.rank:
                worst, rule = decision, name
        if claims:
            self.claims += len(claims)
            if self._streaming and worst is not _BLOCK and score.checked >= policy.score_after_claims:
                decision, name = policy.decide_score(score.score)
                if decision is _BLOCK:
                    worst, rule = decision, name
        self.note(worst, rule)
        return worst, rule

    def note(self, decision: Decision, rule: str) -> None:
        """Something other than a segment was decided."""
        if decision.rank > self.worst.rank:
            self.worst, self.worst_rule = decision, rule

    def end(self) -> tuple[Decision, str]:
        """What happens to the response, now that all its segments are decided and none blocked it."""
        decision, rule = self._policy.decide_score(self._score.score)
        if self._score.checked == 0 and self.claims:
            rule = "no claim could be checked"
        if self.worst.rank >= decision.rank and self.worst is not _RELEASE:
            return self.worst, self.worst_rule
        return decision, rule


class Redecision(NamedTuple):
    """A policy's decision about a response. ``early``: by a block that no later segment could change."""

    decision: Decision
    rule: str
    score: float | None
    early: bool


JudgedSegment = tuple[SegmentKind | None, Sequence[ClaimVerdict]]
"""A segment and the verdicts on its claims; the kind matters to policies with ``segment_kinds`` only."""

_ON_INCOMPLETE: Final = {
    OnIncomplete.BLOCK: Decision.BLOCK,
    OnIncomplete.FLAG: Decision.FLAG,
    OnIncomplete.RELEASE: Decision.RELEASE,
}


def redecide(
    policy: Policy,
    segments: Sequence[JudgedSegment],
    *,
    ended_early: Interruption | None = None,
    judging_stopped: Interruption | None = None,
) -> Redecision:
    """What ``policy`` decides about a response with these segments, given in text order.

    ``ended_early`` is for a response whose text ended early (aborted, timed out, a gap), ``judging_stopped``
    for one for which no judge was asked from there on. The result is what a session under this policy would
    decide on these verdicts.
    """
    decider = Decider(policy)
    acts = policy.mode != "observe"
    fails_closed = acts and policy.on_unverified is FailPolicy.FAIL_CLOSED
    for number, (kind, claims) in enumerate((*segments, (None, ()))):
        if fails_closed and judging_stopped is not None and judging_stopped.after == number:
            return Redecision(_BLOCK, judging_stopped.rule, decider.score, early=True)
        if ended_early is not None and ended_early.after == number:
            decision = on_incomplete(policy, forced=ended_early.forced)
            decider.note(decision, ended_early.rule)
            if acts and decision is _BLOCK:
                return Redecision(_BLOCK, ended_early.rule, decider.score, early=True)
        if number == len(segments):
            break
        decision, rule = decider.segment(kind, claims)
        if acts and decision is _BLOCK:
            return Redecision(_BLOCK, rule, decider.score, early=True)
    decision, rule = decider.end()
    return Redecision(decision, rule, decider.score, early=False)


def on_incomplete(policy: Policy, *, forced: bool) -> Decision:
    """What happens to a response that ended early; ``forced``: whatever the policy says."""
    return _BLOCK if forced else _ON_INCOMPLETE[policy.on_incomplete]


def redecide_record(policy: Policy, verdict: ResponseVerdict) -> Redecision:
    """What ``policy`` decides about a response, by the record of its verdict.

    Unless ``verdict.judged_to_end`` is true or the result is ``early``, a session under this policy might
    have gone on to judge more, and this is the decision on what was judged.
    """
    segments = by_segment(verdict.claims)
    kinds = verdict.segment_kinds
    if kinds is not None and all(claim.segment < len(kinds) for claim in verdict.claims):
        claims = {each[0].segment: each for _, each in segments}
        segments = [(kind, claims.get(number, ())) for number, kind in enumerate(kinds)]
    return redecide(
        policy, segments, ended_early=verdict.ended_early, judging_stopped=verdict.judging_stopped
    )


def by_segment(claims: Sequence[ClaimVerdict]) -> list[JudgedSegment]:
    """The segments of one response's claims, ascending, as far as its verdicts show them: those with claims,
    of unknown kinds.
    """
    found: dict[int, list[ClaimVerdict]] = {}
    for claim in claims:
        found.setdefault(claim.segment, []).append(claim)
    return [(None, found[segment]) for segment in sorted(found)]


def claims_decided_by(
    decision: Decision, rule: str, claims: Sequence[ClaimVerdict], policy: Policy
) -> tuple[ClaimVerdict, ...]:
    """The claims that ``policy``'s decision about a response was about, the one that decided first.

    Those that the deciding rule is about, in text order; of a decision by the score alone, those that cost it
    anything, the dearest first. None of a decision that no claim made: the text ended early, a segment's
    kind.
    """
    if decision is _RELEASE:
        return ()
    if not decided_by_score(rule):
        return tuple(claim for claim in claims if policy.decide_claim(claim) == (decision, rule))

    def cost(claim: ClaimVerdict) -> float:
        return lost(claim.severity, claim.verdict, claim.support, policy.score, policy.weights)

    return tuple(sorted((claim for claim in claims if cost(claim) > 0.0), key=cost, reverse=True))


def decided_by_score(rule: str) -> bool:
    """Whether a decision by this rule was about the score of the whole response."""
    return _OF_THE_SCORE.fullmatch(rule) is not None
