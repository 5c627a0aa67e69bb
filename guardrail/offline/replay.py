"""What another policy would have decided about stored verdicts, set against what was decided.

A record tells a decision for certain if a session under the policy would have decided just so on these
verdicts. Where it doesn't, the response is *not known*, with the reason, and counts in no rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import ValidationError

from guardrail.decisions import claims_decided_by
from guardrail.errors import DecodeError
from guardrail.events import (
    ClaimVerdict,
    Decision,
    Label,
    ResponseVerdict,
    Severity,
    Span,
    parse_output,
)
from guardrail.offline.record_reading import Batch
from guardrail.offline.records import DECISIONS, SEVERITIES, Array, Head, Records, decide_all
from guardrail.offline.results import EvaluationResult
from guardrail.offline.statistics import Rate, without_nan
from guardrail.offline.truths import Claimed, LabelsByResponse, answer_truth
from guardrail.routing import PolicyRouter

EXAMPLES: Final = 3
"""Kept for each kind of change."""
_CLAIMS_TOLD: Final = 2
_MOST_RULES: Final = 50
RIGHT: Final = "right"
WRONG: Final = "wrong"
_WITHHELD: Final = (Decision.REDACT, Decision.BLOCK)
_OMITTED: Final = "the record omits its claims"
_CUT: Final = "a block ended the judging, and this policy would have gone on"
_KINDS: Final = "the record doesn't tell the kinds of segments, which this policy asks for"
_HEAD: Final = "the record doesn't tell route, tenant and model, which select the policy"


@dataclass(frozen=True, slots=True)
class Side:
    """Policies that decide. ``by_head``: whether route, tenant or model select among them."""

    name: str
    router: PolicyRouter
    by_head: bool = False


class Decided(NamedTuple):
    """What a side decides about a batch; ``unknown``: the reason why it can't be known, or ''."""

    decision: Array
    rules: list[str]
    score: Array
    policies: list[str]
    unknown: list[str]


def as_recorded(records: Records) -> Decided:
    """What the records say that was decided."""
    names = [name for name, _ in records.policies]
    return Decided(records.decision, records.rules, records.score, names, [""] * len(records))


def decided_by(side: Side, records: Records) -> Decided:
    """What the policies of ``side`` decide."""
    chosen = [
        side.router.choose(*head, response_id=name)
        for head, name in zip(records.heads, records.ids, strict=True)
    ]
    count = len(records)
    decision, score = np.zeros(count, dtype=np.int8), np.full(count, np.nan)
    rules, unknown = [""] * count, [""] * count
    places: dict[str, list[int]] = {}
    for place, policy in enumerate(chosen):
        places.setdefault(policy.name, []).append(place)
    for at in places.values():
        policy = chosen[at[0]]
        found = decide_all(policy, records if len(at) == count else records.take(at))
        decision[at], score[at] = found.decision, found.score
        asks_kinds = any(each is not Decision.RELEASE for each in policy.segment_kinds.values())
        for number, place in enumerate(at):
            rules[place] = found.rules[found.rule[number]]
            if not records.tells_claims[place]:
                unknown[place] = _OMITTED
            elif side.by_head and not records.tells_head[place]:
                unknown[place] = _HEAD
            elif not found.complete[number]:
                unknown[place] = _CUT
            elif asks_kinds and not records.tells_kinds[place]:
                unknown[place] = _KINDS
    return Decided(decision, rules, score, [policy.name for policy in chosen], unknown)


@dataclass(frozen=True, slots=True)
class _ClaimPlace:
    """What of a claim labels are joined by. ``text`` is not held: the record has it."""

    claim_id: str
    index: int
    span: Span
    severity: Severity
    text: str = ""


@dataclass(frozen=True, slots=True)
class SideDecision:
    """One side of a changed response."""

    policy: str
    decision: Decision
    rule: str
    score: float | None

    def told(self) -> dict[str, Any]:
        """In JSON."""
        return {
            "policy": self.policy,
            "decision": self.decision.value,
            "rule": self.rule,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class ChangedResponse:
    """A response about which the sides decide differently. ``claims``: those that made the decision."""

    response_id: str
    place: str
    route: str | None
    before: SideDecision
    after: SideDecision
    claims: tuple[ClaimVerdict, ...] = ()

    def told(self) -> dict[str, Any]:
        """In JSON, without texts of the answer."""
        return {
            "response_id": self.response_id,
            "place": self.place,
            "route": self.route,
            "before": self.before.told(),
            "after": self.after.told(),
        }


@dataclass(slots=True)
class DecisionTally:
    """Decisions before and after, by their ranks."""

    before: list[int] = field(default_factory=lambda: [0] * len(DECISIONS))
    after: list[int] = field(default_factory=lambda: [0] * len(DECISIONS))
    changed: int = 0

    @property
    def total(self) -> int:
        """How many responses."""
        return sum(self.before)

    def told(self) -> dict[str, Any]:
        """In JSON: counts, shares and their intervals."""
        total = self.total
        return {
            "responses": total,
            "changed": Rate(self.changed, total).told(),
            **{
                name: {each.value: Rate(counts[each.rank], total).told() for each in DECISIONS}
                for name, counts in (("before", self.before), ("after", self.after))
            },
        }

    def withheld(self, counts: Sequence[int]) -> Rate:
        """How many were redacted or blocked."""
        return Rate(sum(counts[each.rank] for each in _WITHHELD), self.total)

    def untouched(self, counts: Sequence[int]) -> Rate:
        """How many were released and not flagged."""
        return Rate(counts[Decision.RELEASE.rank], self.total)


class Replay:
    """Adds up batch by batch how ``after`` differs from ``before``, or from what was recorded."""

    def __init__(
        self,
        after: Side,
        before: Side | None = None,
        labels: LabelsByResponse | None = None,
        *,
        examples: int = EXAMPLES,
    ) -> None:
        self.after = after
        self.before = before
        self.labels = LabelsByResponse() if labels is None else labels
        self.responses = self.claims = 0
        self.unknown: Counter[str] = Counter()
        """Responses of which one side is not known, by the reason."""
        self.moves: Counter[tuple[Decision, Decision]] = Counter()
        """Of all that are known, also those that stay."""
        self.rules: Counter[tuple[Decision, Decision, str]] = Counter()
        """Of those that change, by the rule that decides now."""
        self.total = DecisionTally()
        self.routes: dict[str | None, DecisionTally] = {}
        self.labelled: dict[str, DecisionTally] = {RIGHT: DecisionTally(), WRONG: DecisionTally()}
        self.unknown_claims = 0
        """Labels that name claims which the records don't have."""
        self._with_labels: Counter[str] = Counter()
        self.examples: dict[tuple[Decision, Decision], list[ChangedResponse]] = {}
        self._most_examples = examples

    def add(self, batch: Batch) -> list[ChangedResponse]:
        """Count a batch, and give its changes, in its order."""
        records = batch.records
        self.responses += len(records)
        self.claims += len(records.claim_ids)
        before = as_recorded(records) if self.before is None else decided_by(self.before, records)
        after = decided_by(self.after, records)
        changes: list[ChangedResponse] = []
        for place, (was, now) in enumerate(
            zip(before.decision.tolist(), after.decision.tolist(), strict=True)
        ):
            labels = self.labels.of(records.ids[place])
            if labels:
                self._with_labels[records.ids[place]] += 1
            reason = after.unknown[place] or before.unknown[place]
            if reason:
                self.unknown[reason] += 1
                continue
            head = records.heads[place]
            tallies = [self.total, self.routes.setdefault(head.route, DecisionTally())]
            truth = self._truth(batch, place, labels)
            if truth is not None:
                tallies.append(self.labelled[truth])
            for tally in tallies:
                tally.before[was] += 1
                tally.after[now] += 1
                tally.changed += was != now
            move = (DECISIONS[was], DECISIONS[now])
            self.moves[move] += 1
            if was == now:
                continue
            change = ChangedResponse(
                records.ids[place],
                batch.places[place],
                head.route,
                _part(before, place),
                _part(after, place),
            )
            self._note(move, change, head, batch.values[place])
            changes.append(change)
        return changes

    def _truth(self, batch: Batch, place: int, labels: Sequence[Label]) -> str | None:
        if not labels:
            return None
        claims: Sequence[Claimed] = _claims_at(batch.records, place)
        ids = {claim.claim_id for claim in claims}
        if any(each.policy is not None and each.claim_id not in {None, *ids} for each in labels):
            # Their ids are those of another policy, and made of the claims' texts.
            with suppress(DecodeError, ValidationError):
                claims = verdict_in(batch.values[place]).claims
        truth = answer_truth(claims, labels)
        self.unknown_claims += truth.unknown
        return None if truth.right is None else RIGHT if truth.right else WRONG

    @property
    def stray(self) -> int:
        """Labels that belong to no answer of the records."""
        return self.labels.stray(self._with_labels)

    @property
    def ambiguous(self) -> int:
        """Labels of ids that several of the records have: each of these counts by them."""
        return sum(len(self.labels.of(name)) for name, count in self._with_labels.items() if count > 1)

    def _note(
        self, move: tuple[Decision, Decision], change: ChangedResponse, head: Head, value: bytes
    ) -> None:
        key = (*move, change.after.rule)
        if key in self.rules or len(self.rules) < _MOST_RULES:
            self.rules[key] += 1
        kept = self.examples.setdefault(move, [])
        if len(kept) < self._most_examples:
            policy = self.after.router.choose(*head, response_id=change.response_id)
            after, judged = change.after, verdict_in(value).claims
            claims = claims_decided_by(after.decision, after.rule, judged, policy)[:_CLAIMS_TOLD]
            kept.append(
                ChangedResponse(
                    change.response_id, change.place, change.route, change.before, change.after, claims
                )
            )

    @property
    def compared(self) -> int:
        """Responses of which both sides are known."""
        return self.total.total

    @property
    def stricter(self) -> int:
        """Responses that the new side treats more strictly."""
        return sum(count for (was, now), count in self.moves.items() if now.rank > was.rank)

    @property
    def milder(self) -> int:
        """Responses that the new side treats more mildly."""
        return sum(count for (was, now), count in self.moves.items() if now.rank < was.rank)

    def told(self) -> dict[str, Any]:
        """Everything in JSON, without texts of answers."""
        told: dict[str, Any] = {
            "before": "as recorded" if self.before is None else self.before.name,
            "after": self.after.name,
            "responses": self.responses,
            "claims": self.claims,
            "compared": self.compared,
            "not_known": dict(self.unknown.most_common()),
            "stricter": Rate(self.stricter, self.compared).told(),
            "milder": Rate(self.milder, self.compared).told(),
            "total": self.total.told(),
            "moves": [
                {"from": was.value, "to": now.value, "count": count}
                for (was, now), count in sorted(self.moves.items(), key=_by_rank)
            ],
            "rules": [
                {"from": was.value, "to": now.value, "rule": rule, "count": count}
                for (was, now, rule), count in self.rules.most_common()
            ],
            "routes": [
                {"route": route, **tally.told()}
                for route, tally in sorted(self.routes.items(), key=lambda each: -each[1].total)
            ],
            "examples": [change.told() for kept in self.examples.values() for change in kept],
        }
        if len(self.labels):
            told["labels"] = {name: tally.told() for name, tally in self.labelled.items()}
            told["labels_left_out"] = {
                "of_no_answer": self.stray,
                "of_unknown_claims": self.unknown_claims,
            }
            told["labels_of_repeated_ids"] = self.ambiguous
            told["wrongful_blocks"] = self._both(RIGHT, DecisionTally.withheld)
            told["misses"] = self._both(WRONG, DecisionTally.untouched)
        found: dict[str, Any] = without_nan(told)
        return found

    def _both(self, truth: str, rate: Any) -> dict[str, Any]:
        tally = self.labelled[truth]
        return {"before": rate(tally, tally.before).told(), "after": rate(tally, tally.after).told()}


def _claims_at(records: Records, place: int) -> list[_ClaimPlace]:
    """The claims of a record."""
    first, end = records.first_claim[place : place + 2].tolist()
    starts, ends = (column[first:end].tolist() for column in (records.span_start, records.span_end))
    return [
        _ClaimPlace(name, index, (start, end), SEVERITIES[code])
        for index, (name, start, end, code) in enumerate(
            zip(records.claim_ids[first:end], starts, ends, records.severity[first:end].tolist(), strict=True)
        )
    ]


def _by_rank(move: tuple[tuple[Decision, Decision], int]) -> tuple[int, int]:
    (was, now), _ = move
    return was.rank, now.rank


def _part(decided: Decided, place: int) -> SideDecision:
    score = float(decided.score[place])
    return SideDecision(
        decided.policies[place],
        DECISIONS[decided.decision[place]],
        decided.rules[place],
        None if math.isnan(score) else score,
    )


def verdict_in(value: bytes) -> ResponseVerdict:
    """The whole verdict of a record that was read before. Raises DecodeError if it is a reader's alone."""
    if b'"evaluation.result"' in value:
        found = EvaluationResult.model_validate_json(value).verdict
    else:
        event = parse_output(value)
        found = event if isinstance(event, ResponseVerdict) else None
    if found is None:
        raise DecodeError("no_verdict", "there is no verdict in it")
    return found
