"""Records of verdicts as columns, and what any policy decides about all of them at once.

``decide_all`` says for every record what ``guardrail.decisions.redecide_record`` says for one, to the last
digit of the score, some hundred times as fast (tests/unit/offline/test_records.py). No judge is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, Self

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from guardrail.decisions import Redecision, on_incomplete
from guardrail.events import (
    LEFT_OPEN,
    CitationBacking,
    Decision,
    Finding,
    Probability,
    ResponseVerdict,
    SegmentKind,
    Severity,
    Verdict,
)
from guardrail.policy import LEFT_OPEN_RULE, FailPolicy, Policy, Rule
from guardrail.scoring import Formula

Array = Any
"""An array of numpy."""
DECISIONS: Final = tuple(Decision)
"""By rank: a code in a column of decisions is the rank."""
VERDICTS: Final = tuple(Verdict)
"""A code in a column of verdicts is the place in here."""
SEVERITIES: Final = tuple(Severity)
_KINDS: Final = tuple(SegmentKind)
_BACKING: Final = tuple(CitationBacking)
_VERDICT_CODES: Final = {each.value: code for code, each in enumerate(VERDICTS)}
_SEVERITY_CODES: Final = {each.value: code for code, each in enumerate(SEVERITIES)}
_KIND_CODES: Final = {each.value: code for code, each in enumerate(_KINDS)}
_BACKING_CODES: Final = {None: -1} | {each.value: code for code, each in enumerate(_BACKING)}
_FINDING_BITS: Final = {each.value: 1 << place for place, each in enumerate(Finding)}
_UNVERIFIED: Final = VERDICTS.index(Verdict.UNVERIFIED)
_CONTRADICTED: Final = VERDICTS.index(Verdict.CONTRADICTED)
_BLOCK: Final = Decision.BLOCK.rank
_NEVER: Final = 1 << 40
_SHIFT: Final = 42
_MASK: Final = (1 << _SHIFT) - 1
_ROUNDING: Final = 1e-6
"""Scores are rounded to this: only within it of a threshold can rounding matter."""


Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Head(NamedTuple):
    """What selects the policy of a response."""

    route: str | None
    tenant: str | None
    generator_model: str | None


class InterruptionFields(TypedDict):
    """The fields of an ``Interruption``."""

    rule: str
    after: Count
    forced: NotRequired[bool]


class ClaimFields(TypedDict):
    """The fields of a ``verdict.claim`` that a policy needs."""

    claim_id: NotRequired[str]
    span: NotRequired[tuple[Count, Count]]
    segment: Count
    severity: Severity
    verdict: Verdict
    confidence: Probability
    support: Probability | None
    severity_reasons: NotRequired[tuple[str, ...]]
    contradiction: NotRequired[Probability | None]
    findings: NotRequired[tuple[Finding, ...]]
    citation_backing: NotRequired[CitationBacking | None]


class PolicyFields(TypedDict):
    """The fields of a ``PolicyRef`` that tell policies apart."""

    name: str
    version: str


class RecordFields(TypedDict):
    """The fields of a ``verdict.response`` that a policy needs."""

    schema: NotRequired[Literal[1]]
    type: Literal["verdict.response"]
    id: NotRequired[str]
    response_id: str
    score: Probability | None
    decision: Decision
    rule: str
    mode: str
    complete: bool
    policy: PolicyFields
    claims: NotRequired[list[ClaimFields]]
    route: NotRequired[str | None]
    tenant: NotRequired[str | None]
    generator_model: NotRequired[str | None]
    segment_kinds: NotRequired[list[SegmentKind] | None]
    judged_to_end: NotRequired[bool | None]
    ended_early: NotRequired[InterruptionFields | None]
    judging_stopped: NotRequired[InterruptionFields | None]
    omitted: NotRequired[list[str]]


@dataclass(frozen=True, eq=False)
class Records:
    """Columns: one place a response, a segment or a claim, in the order of the records and of their texts.

    ``nan`` and -1 stand for null. Claims of segment ``s`` are ``claim_start[s]:claim_start[s + 1]``, segments
    of response ``r`` ``segment_start[r]:segment_start[r + 1]``. Codes of decisions, verdicts and severities
    are places in ``DECISIONS``, ``VERDICTS``, ``SEVERITIES``.
    """

    ids: list[str]
    heads: list[Head]
    policies: list[tuple[str, str]]
    """Name and version of the policy that was applied."""
    decision: Array
    rules: list[str]
    """That made the decision."""
    score: Array
    judged_to_end: Array
    """Whether all of the text that arrived was judged; where the record doesn't say, False."""
    tells_head: Array
    """False of records that were written before records told route, tenant and model."""
    tells_kinds: Array
    """Whether the kinds of all segments are known; else only segments with claims are here."""
    tells_claims: Array
    """False if the claims were omitted, because the record would have been too large."""
    ended_after: Array
    ended_forced: Array
    ended_rules: list[str]
    stopped_after: Array
    stopped_rules: list[str]
    segment_start: Array
    segment_kind: Array
    claim_start: Array
    claim_ids: list[str]
    span_start: Array
    span_end: Array
    verdict: Array
    severity: Array
    support: Array
    contradiction: Array
    """The probability that rules use: see ``guardrail.policy.contradiction_of``."""
    confidence: Array
    findings: Array
    citation: Array
    reasons: Array
    reason_sets: tuple[tuple[str, ...], ...]
    """What a code in ``reasons`` stands for."""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, verdicts: Iterable[ResponseVerdict]) -> Self:
        """Those of verdicts in memory."""
        builder = RecordsBuilder()
        for verdict in verdicts:
            builder.add(fields_of(verdict))
        return cls(**builder.columns())

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Self:
        """All of ``parts``, in their order."""
        sets: dict[tuple[str, ...], int] = {}
        reasons = [_renumbered(part.reasons, part.reason_sets, sets) for part in parts]
        columns: dict[str, Any] = {"reason_sets": tuple(sets)}
        for name in cls.__dataclass_fields__:
            each = [getattr(part, name) for part in parts]
            if name in _STARTS:
                columns[name] = _joined_starts(each)
            elif name == "reasons":
                columns[name] = _concatenated(reasons, np.int32)
            elif name in _LISTS:
                columns[name] = [one for some in each for one in some]
            elif name != "reason_sets":
                columns[name] = np.concatenate(each) if each else np.zeros(0)
        return cls(**columns)

    def take(self, at: Array) -> Records:
        """The records at these places, in this order; a place may stand there twice, as bootstraps need."""
        at = np.asarray(at, dtype=np.int64)
        segments, segment_start = _gathered(self.segment_start, at)
        claims, claim_start = _gathered(self.claim_start, segments)
        columns: dict[str, Any] = {
            "segment_start": segment_start,
            "claim_start": claim_start,
            "segment_kind": self.segment_kind[segments],
            "reason_sets": self.reason_sets,
        }
        for name in self.__dataclass_fields__:
            if name not in columns:
                column, places = getattr(self, name), claims if name in _OF_CLAIMS else at
                taken = [column[p] for p in places.tolist()] if isinstance(column, list) else column[places]
                columns[name] = taken
        return Records(**columns)

    @cached_property
    def first_claim(self) -> Array:
        """Where the claims of each response begin, and, at the end, the number of all claims."""
        return self.claim_start[self.segment_start]

    @cached_property
    def checked(self) -> Array:
        """Which claims have a verdict that says something."""
        checked: Array = self.verdict != _UNVERIFIED
        return checked

    @cached_property
    def left_open(self) -> Array:
        """Which claims a judge left open: rules on their findings decide those."""
        bits = sum(_FINDING_BITS[each] for each in LEFT_OPEN)
        return ~self.checked & ((self.findings & bits) != 0)

    @cached_property
    def claim_response(self) -> Array:
        """The place of the response that each claim belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_claim))

    @cached_property
    def sequence(self) -> tuple[Array, ...]:
        """For each k the places of the k-th claims of all responses that have so many.

        Sums over them add in the order of the text, as a session does, and so come out the same to the last
        bit.
        """
        counts = np.diff(self.first_claim)
        order = np.argsort(-counts, kind="stable")
        starts, falling = self.first_claim[:-1][order], counts[order]
        longest = int(falling[0]) if len(falling) else 0
        having = np.searchsorted(-falling, -np.arange(1, longest + 1), side="right")
        return tuple(starts[:many] + k for k, many in enumerate(having.tolist()))


_STARTS: Final = ("segment_start", "claim_start")
_LISTS: Final = ("ids", "heads", "policies", "rules", "ended_rules", "stopped_rules", "claim_ids")
_OF_CLAIMS: Final = frozenset(
    {"claim_ids", "span_start", "span_end", "verdict", "severity", "support", "contradiction"}
    | {"confidence", "findings", "citation", "reasons"}
)


def fields_of(verdict: ResponseVerdict) -> RecordFields:
    """The fields that a policy needs."""
    fields: RecordFields = verdict.model_dump(
        include={
            **dict.fromkeys(RecordFields.__annotations__, True),
            "claims": {"__all__": set(ClaimFields.__annotations__)},
        }
    )  # type: ignore[assignment]
    return fields


class RecordsBuilder:
    """Makes ``Records`` one record at a time."""

    def __init__(self) -> None:
        self._lists: dict[str, list[Any]] = {
            name: [] for name in Records.__dataclass_fields__ if name not in {*_STARTS, "reason_sets"}
        }
        self._segments = [0]
        self._claims = [0]
        self._sets: dict[tuple[str, ...], int] = {}
        self._heads: dict[Head, Head] = {}
        self._policies: dict[tuple[str, str], tuple[str, str]] = {}
        self._texts: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._lists["ids"])

    def add(self, record: RecordFields) -> None:
        """Add one, whose fields have been validated."""
        to = self._lists
        to["ids"].append(record["response_id"])
        head = Head(record.get("route"), record.get("tenant"), record.get("generator_model"))
        to["heads"].append(self._heads.setdefault(head, head))
        policy = (record["policy"]["name"], record["policy"]["version"])
        to["policies"].append(self._policies.setdefault(policy, policy))
        to["decision"].append(Decision(record["decision"]).rank)
        to["rules"].append(self._text(record["rule"]))
        score, to_end = record["score"], record.get("judged_to_end")
        to["score"].append(np.nan if score is None else score)
        to["tells_head"].append(to_end is not None)
        to["judged_to_end"].append(record["complete"] if to_end is None else to_end)
        to["tells_claims"].append("claims" not in record.get("omitted", ()))
        ended, stopped = record.get("ended_early"), record.get("judging_stopped")
        to["ended_after"].append(-1 if ended is None else ended["after"])
        to["ended_forced"].append(ended is not None and ended.get("forced", False))
        to["ended_rules"].append("" if ended is None else self._text(ended["rule"]))
        to["stopped_after"].append(-1 if stopped is None else stopped["after"])
        to["stopped_rules"].append("" if stopped is None else self._text(stopped["rule"]))
        claims = record.get("claims", [])
        places = [claim["segment"] for claim in claims]
        if any(a > b for a, b in pairwise(places)):
            claims = sorted(claims, key=lambda claim: claim["segment"])
            places = [claim["segment"] for claim in claims]
        self._add_segments(record.get("segment_kinds"), places)
        if claims:
            self._add_claims(claims)

    def _add_segments(self, kinds: Sequence[SegmentKind] | None, places: list[int]) -> None:
        at = self._claims[-1]
        if kinds is None or (places and places[-1] >= len(kinds)):
            numbers = list(dict.fromkeys(places))
            codes = [-1] * len(numbers)
            self._lists["tells_kinds"].append(False)
        else:
            numbers = list(range(len(kinds)))
            codes = [_KIND_CODES[kind] for kind in kinds]
            self._lists["tells_kinds"].append(True)
        self._lists["segment_kind"] += codes
        self._segments.append(self._segments[-1] + len(codes))
        if numbers == places:  # a claim in each, as mostly
            self._claims += range(at + 1, at + len(places) + 1)
            return
        counts = dict.fromkeys(numbers, 0)
        for place in places:
            counts[place] += 1
        for count in counts.values():
            at += count
            self._claims.append(at)

    def _add_claims(self, claims: Sequence[ClaimFields]) -> None:
        to, sets = self._lists, self._sets
        to["claim_ids"] += [claim.get("claim_id", "") for claim in claims]
        spans = [claim.get("span", (-1, -1)) for claim in claims]
        to["span_start"] += [span[0] for span in spans]
        to["span_end"] += [span[1] for span in spans]
        verdicts = [_VERDICT_CODES[claim["verdict"]] for claim in claims]
        to["verdict"] += verdicts
        to["severity"] += [_SEVERITY_CODES[claim["severity"]] for claim in claims]
        to["support"] += [claim["support"] for claim in claims]
        confident = [claim["confidence"] for claim in claims]
        to["confidence"] += confident
        to["contradiction"] += [
            told
            if (told := claim.get("contradiction")) is not None
            else (sure if verdict == _CONTRADICTED else 0.0)
            for claim, sure, verdict in zip(claims, confident, verdicts, strict=True)
        ]
        to["findings"] += [
            sum(_FINDING_BITS[each] for each in found) if (found := set(claim.get("findings", ()))) else 0
            for claim in claims
        ]
        to["citation"] += [_BACKING_CODES[claim.get("citation_backing")] for claim in claims]
        to["reasons"] += [
            sets.setdefault(tuple(claim.get("severity_reasons", ())), len(sets)) for claim in claims
        ]

    def columns(self) -> dict[str, Any]:
        """The columns so far, by name."""
        made: dict[str, Any] = {
            name: values if name in _LISTS else np.array(values, dtype=_TYPES.get(name, np.float64))
            for name, values in self._lists.items()
        }
        made["segment_start"] = np.array(self._segments, dtype=np.int64)
        made["claim_start"] = np.array(self._claims, dtype=np.int64)
        made["reason_sets"] = tuple(self._sets)
        return made

    def build(self) -> Records:
        """The records so far."""
        return Records(**self.columns())

    def _text(self, text: str) -> str:
        return self._texts.setdefault(text, text)


_TYPES: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("decision", "segment_kind", "verdict", "severity", "citation"), np.int8),
    **dict.fromkeys(("judged_to_end", "tells_head", "tells_kinds", "tells_claims", "ended_forced"), np.bool_),
    **dict.fromkeys(("ended_after", "stopped_after", "span_start", "span_end"), np.int64),
    "findings": np.int16,
    "reasons": np.int32,
}


@dataclass(frozen=True, eq=False)
class Decisions:
    """What policies decide about the records at the same places."""

    decision: Array
    """Codes: ``DECISIONS[code]``."""
    rule: Array
    """Places in ``rules``."""
    score: Array
    """``nan`` for null."""
    early: Array
    """By a block that nothing later could change."""
    complete: Array
    """Whether a session under the policy would decide just so. If False, the judging of the recorded session
    ended where this policy might have gone on: it is the decision on what was judged."""
    rules: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.decision)

    def at(self, place: int) -> Redecision:
        """As ``redecide`` has it."""
        score = float(self.score[place])
        return Redecision(
            DECISIONS[self.decision[place]],
            self.rules[self.rule[place]],
            None if np.isnan(score) else score,
            bool(self.early[place]),
        )


class _Names:
    """Rules and their codes."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {"": 0}

    def code(self, name: str) -> int:
        return self.codes.setdefault(name, len(self.codes))


def decide_all(policy: Policy, records: Records) -> Decisions:
    """What ``policy`` decides about each of ``records``. Some milliseconds for a thousand responses."""
    names = _Names()
    acts = policy.mode != "observe"
    sums = _Sums(policy, records)
    rank, rule = _segments(policy, records, sums, names)
    count = np.diff(records.segment_start)
    number = np.arange(len(rank)) - np.repeat(records.segment_start[:-1], count)
    some = np.flatnonzero(count)
    starts = records.segment_start[:-1][some]

    # What ends the response early, as 3 * number of the segment + what comes first there.
    ends = np.full(len(records), _NEVER)
    stopped = np.full(len(records), False)
    noted = (records.ended_after >= 0) & (records.ended_after <= count)
    note_rank = np.where(records.ended_forced, _BLOCK, on_incomplete(policy, forced=False).rank)
    ended = noted & (note_rank == _BLOCK) & acts
    if acts:
        if len(some):
            blocked = np.where(rank == _BLOCK, 3 * number + 2, _NEVER)
            ends[some] = np.minimum.reduceat(blocked, starts)
        ends = np.where(ended, np.minimum(ends, 3 * records.ended_after + 1), ends)
        if policy.on_unverified is FailPolicy.FAIL_CLOSED:
            stopped = (records.stopped_after >= 0) & (records.stopped_after <= count)
            ends = np.where(stopped, np.minimum(ends, 3 * records.stopped_after), ends)
    early = ends < _NEVER

    # The strictest decision, and the first rule that made it.
    worst = np.where(noted, _keyed(note_rank, 2 * records.ended_after), 0)
    if len(some):
        strictest = np.maximum.reduceat(_keyed(rank, 2 * number + 1), starts)
        worst[some] = np.maximum(worst[some], strictest)
    worst_rank, order = worst >> _SHIFT, _MASK - (worst & _MASK)
    by_note = order % 2 == 0
    segment = np.minimum(records.segment_start[:-1] + np.where(by_note, 0, order // 2), max(len(rank) - 1, 0))
    ended_rule = np.array([names.code(each) for each in records.ended_rules], dtype=np.int64)
    stopped_rule = np.array([names.code(each) for each in records.stopped_rules], dtype=np.int64)
    worst_rule = np.where(by_note, ended_rule, rule[segment] if len(rank) else 0)

    # Where each response ends: after all its segments, or after those that were decided before the block.
    last = np.where(early, ends // 3 + (ends % 3 == 2), count)
    score = sums.scores(records.claim_start[records.segment_start[:-1] + last] - 1)
    decision, made = _by_score(policy, records, score, sums, names)
    stricter = (worst_rank >= decision) & (worst_rank > 0)
    decision, made = np.where(stricter, worst_rank, decision), np.where(stricter, worst_rule, made)
    if early.any():
        at = np.minimum(records.segment_start[:-1] + ends // 3, max(len(rank) - 1, 0))
        what = np.where(ends % 3 == 0, stopped_rule, np.where(ends % 3 == 1, ended_rule, 0))
        if len(rank):
            what = np.where(ends % 3 == 2, rule[at], what)
        decision, made = np.where(early, _BLOCK, decision), np.where(early, what, made)
    return Decisions(
        decision.astype(np.int8),
        made.astype(np.int32),
        score,
        early,
        records.judged_to_end | early,
        tuple(names.codes),
    )


class _Sums:
    """The running sums of the score, after each claim."""

    def __init__(self, policy: Policy, records: Records) -> None:
        self._records = records
        checked = records.checked
        weights = np.array([policy.weights[each] for each in SEVERITIES])
        credits = np.array([policy.credits.get(each, 0.0) for each in VERDICTS])
        credit = credits[records.verdict]
        if policy.score is Formula.SEVERITY_WEIGHTED:
            credit = np.where(np.isnan(records.support), credit, records.support)
        weight = np.where(checked, weights[records.severity], 0.0)
        credit = np.where(checked, weight * credit, 0.0)
        self.weight, self.credit = np.empty_like(weight), np.empty_like(credit)
        for k, at in enumerate(records.sequence):
            if k == 0:
                weighed, credited = weight[at], credit[at]
            else:
                weighed, credited = weighed[: len(at)] + weight[at], credited[: len(at)] + credit[at]
            self.weight[at], self.credit[at] = weighed, credited
        total = np.concatenate(([0], np.cumsum(checked)))
        self._before = total[records.first_claim[:-1]]
        self._total = total

    def checked(self, at: Array, response: Array) -> Array:
        """How many claims of their responses are checked, up to these claims."""
        return self._total[at + 1] - self._before[response]

    def raw(self, at: Array) -> Array:
        """The scores after these claims, not rounded; nan if nothing with a weight was checked."""
        weight = self.weight[at]
        with np.errstate(invalid="ignore", divide="ignore"):
            score = np.where(weight > 0, self.credit[at] / weight, np.nan)
        return np.minimum(1.0, np.maximum(0.0, score))

    def scores(self, at: Array) -> Array:
        """The score of each response after this claim of it, rounded as ``ScoreKeeper`` does; nan without."""
        has = at >= self._records.first_claim[:-1]
        found = np.full(len(at), np.nan)
        found[has] = rounded(self.raw(at[has]))
        return found


def rounded(values: Array) -> Array:
    """To 6 places as Python rounds, which numpy doesn't in the last digit."""
    return np.array([round(each, 6) for each in values.tolist()], dtype=np.float64)


def _segments(policy: Policy, records: Records, sums: _Sums, names: _Names) -> tuple[Array, Array]:
    """Rank of the decision on each segment, and the code of its rule."""
    kinds = [policy.segment_kinds.get(kind) for kind in _KINDS]
    by_kind = np.array([0 if each is None else each.rank for each in (*kinds, None)])
    kind_rules = np.array([names.code(f"segment kind {kind}") for kind in _KINDS] + [0])
    rank = by_kind[records.segment_kind]
    rule = np.where(rank > 0, kind_rules[records.segment_kind], 0)
    claim_rank, claim_rule = _claims(policy, records, names)
    some = np.flatnonzero(np.diff(records.claim_start))
    if not len(some):
        return rank, rule
    place = np.arange(len(claim_rank))
    strictest = np.maximum.reduceat(_keyed(claim_rank, place), records.claim_start[:-1][some])
    decided, first = strictest >> _SHIFT, _MASK - (strictest & _MASK)
    stricter = decided > rank[some]
    rank[some] = np.where(stricter, decided, rank[some])
    rule[some] = np.where(stricter, claim_rule[first], rule[some])
    if policy.mode == "stream" and policy.block_below > 0:
        last = records.claim_start[1:][some] - 1
        score = sums.raw(last)
        near = np.abs(score - policy.block_below) <= _ROUNDING
        score[near] = rounded(score[near])
        enough = sums.checked(last, records.claim_response[last]) >= policy.score_after_claims
        low = (score < policy.block_below) & enough & (rank[some] != _BLOCK)
        rank[some[low]] = _BLOCK
        rule[some[low]] = names.code(policy.decide_score(-1.0)[1])
    return rank, rule


def _keyed(rank: Array, order: Array) -> Array:
    """Keys whose maximum is the strictest decision and, of several, the first."""
    return (np.asarray(rank).astype(np.int64) << _SHIFT) + (_MASK - order)


def _claims(policy: Policy, records: Records, names: _Names) -> tuple[Array, Array]:
    """Rank of the decision on each claim, and the code of its rule."""
    unverified = ~records.checked & ~records.left_open
    rank = np.where(unverified, unverified_rank(policy), 0)
    rule = np.where(unverified, names.code(policy.unverified_rule), 0)
    left = ~unverified
    for each in policy.rules:
        matched = left & governed(each, records)
        rank[matched] = each.action.rank
        rule[matched] = names.code(each.name)
        left &= ~matched
    left &= records.left_open
    rank[left] = Decision.FLAG.rank
    rule[left] = names.code(LEFT_OPEN_RULE)
    return rank, rule


def unverified_rank(policy: Policy) -> int:
    """Rank of the decision on a claim that could not be checked."""
    return {FailPolicy.FAIL_CLOSED: _BLOCK, FailPolicy.FLAG: Decision.FLAG.rank}.get(policy.on_unverified, 0)


def governed(rule: Rule, records: Records) -> Array:
    """The claims that the rule decides if none before it does."""
    return matching(rule, records) & decided_by(rule, records)


def decided_by(rule: Rule, records: Records) -> Array:
    """The claims that the rule decides where its conditions hold."""
    return records.checked | records.left_open if rule.decides_open else records.checked


def matching(rule: Rule, records: Records) -> Array:
    """The claims for which every condition of the rule holds."""
    holds = np.ones(len(records.verdict), dtype=bool)
    if rule.verdict:
        holds &= np.array([each in rule.verdict for each in VERDICTS])[records.verdict]
    if rule.finding:
        holds &= (records.findings & sum(_FINDING_BITS[each] for each in set(rule.finding))) != 0
    if rule.citation:
        holds &= np.array([each in rule.citation for each in (*_BACKING, None)])[records.citation]
    within = [rule.min_severity.rank <= each.rank <= rule.max_severity.rank for each in SEVERITIES]
    if not all(within):
        holds &= np.array(within)[records.severity]
    if rule.reason:
        told = [any(reason in some for reason in rule.reason) for some in records.reason_sets]
        holds &= np.array([*told, False])[records.reasons]
    for column, least, under in (
        (records.support, rule.min_support, rule.support_below),
        (records.contradiction, rule.min_contradiction, rule.contradiction_below),
        (records.confidence, rule.min_confidence, rule.confidence_below),
    ):
        # nan, a support that is not given, compares as false.
        if least is not None:
            holds &= column >= least
        if under is not None:
            holds &= column < under
    return holds


def _by_score(
    policy: Policy, records: Records, score: Array, sums: _Sums, names: _Names
) -> tuple[Array, Array]:
    """What the score alone decides at the end, and the rule."""
    nothing, passed = policy.decide_score(None)[1], policy.decide_score(1.0)[1]
    last = records.first_claim[1:] - 1
    has = np.diff(records.first_claim) > 0
    none_checked = has.copy()
    none_checked[has] = sums.checked(last[has], np.flatnonzero(has)) == 0
    made = np.where(np.isnan(score), names.code(nothing), names.code(passed))
    made = np.where(none_checked, names.code("no claim could be checked"), made)
    low, lowest = score < policy.flag_below, score < policy.block_below
    decision = np.where(lowest, _BLOCK, np.where(low, Decision.FLAG.rank, 0))
    if low.any():
        flags = names.code(f"score < flag_below {policy.flag_below:g}")
        blocks = names.code(f"score < block_below {policy.block_below:g}")
        made = np.where(lowest, blocks, np.where(low, flags, made))
    return decision, made


def _renumbered(codes: Array, meant: Sequence[tuple[str, ...]], sets: dict[tuple[str, ...], int]) -> Array:
    """Codes by the numbers of ``sets``, which gets what it lacks."""
    return np.array([sets.setdefault(each, len(sets)) for each in meant], dtype=np.int32)[codes]


def _concatenated(parts: Sequence[Array], kind: Any) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _joined_starts(parts: Sequence[Array]) -> Array:
    """Starts as if the columns that they point into were one."""
    made, end = [np.zeros(1, dtype=np.int64)], 0
    for part in parts:
        made.append(part[1:] + end)
        end += int(part[-1])
    return np.concatenate(made)


def _gathered(starts: Array, at: Array) -> tuple[Array, Array]:
    """The places ``starts[a]:starts[a + 1]`` for every a in ``at``, and where those of each begin now."""
    counts = starts[at + 1] - starts[at]
    begins = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    places = np.arange(begins[-1]) + np.repeat(starts[at] - begins[:-1], counts)
    return places, begins
