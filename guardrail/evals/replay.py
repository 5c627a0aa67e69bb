"""What another policy would have decided about stored verdicts, set against what was decided.

A record tells a decision for certain if a session under the policy would have decided just so on these
verdicts. Where it doesn't, the response is *not known*, with the reason, and counts in no rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from guardrail import render
from guardrail.decisions import claims_decided_by, redecide_record
from guardrail.evals.agreement import WITHHELD
from guardrail.evals.records import Passed, to_its_end
from guardrail.evals.statistics import Rate, as_json, percent
from guardrail.evals.truths import LabelsByResponse, answer_truth
from guardrail.events import ClaimVerdict, Decision, Label, ResponseVerdict
from guardrail.policy import Policy
from guardrail.printable import escape_controls, shorten
from guardrail.render import DECISION_STYLES, DECISION_WORDS
from guardrail.routing import PolicyRouter

EXAMPLES: Final = 3
"""Kept for each kind of change."""
_CLAIMS_TOLD: Final = 2
_MOST_RULES: Final = 50
_UNTOUCHED: Final = frozenset({Decision.RELEASE})
RIGHT: Final = "right"
WRONG: Final = "wrong"
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

    def policy_for(self, verdict: ResponseVerdict) -> Policy:
        """The policy that would have been applied to this response."""
        return self.router.choose(
            verdict.route, verdict.tenant, verdict.generator_model, response_id=verdict.response_id
        )


class SideDecision(NamedTuple):
    """What a side decides about a response, or what the record says that was decided."""

    policy: str
    decision: Decision
    rule: str
    score: float | None


def decided_by(side: Side | None, verdict: ResponseVerdict) -> tuple[SideDecision, str]:
    """What ``side`` decides, or was decided without one; and the reason why that can't be known, or ''."""
    if side is None:
        return SideDecision(verdict.policy.name, verdict.decision, verdict.rule, verdict.score), ""
    policy = side.policy_for(verdict)
    found = redecide_record(policy, verdict)
    unknown = ""
    if "claims" in verdict.omitted:
        unknown = _OMITTED
    elif side.by_head and verdict.judged_to_end is None:  # older records tell neither
        unknown = _HEAD
    elif not found.early and not to_its_end(verdict):
        unknown = _CUT
    elif any(each is not Decision.RELEASE for each in policy.segment_kinds.values()):
        kinds = verdict.segment_kinds
        if kinds is None or any(claim.segment >= len(kinds) for claim in verdict.claims):
            unknown = _KINDS
    return SideDecision(policy.name, found.decision, found.rule, found.score), unknown


@dataclass(frozen=True, slots=True)
class ChangedResponse:
    """A response about which the sides decide differently. ``claims``: those that made the decision."""

    response_id: str
    place: str
    route: str | None
    before: SideDecision
    after: SideDecision
    claims: tuple[ClaimVerdict, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """In JSON, without texts of the answer."""
        return {name: value for name, value in as_json(self).items() if name != "claims"}


@dataclass(slots=True)
class DecisionTally:
    """Decisions before and after."""

    before: Counter[Decision] = field(default_factory=Counter)
    after: Counter[Decision] = field(default_factory=Counter)
    changed: int = 0

    def add(self, was: Decision, now: Decision) -> None:
        """Count a response."""
        self.before[was] += 1
        self.after[now] += 1
        self.changed += was is not now

    @property
    def total(self) -> int:
        """How many responses."""
        return self.before.total()

    def as_json(self) -> dict[str, Any]:
        """In JSON: counts, shares and their intervals."""
        decided = {each.value: self.decided({each}) for each in Decision}
        return {
            "responses": self.total,
            "changed": Rate(self.changed, self.total),
            "before": {name: before for name, (before, _) in decided.items()},
            "after": {name: after for name, (_, after) in decided.items()},
        }

    def decided(self, decisions: Collection[Decision]) -> tuple[Rate, Rate]:
        """How many were decided so, before and after."""
        before, after = (sum(counts[each] for each in decisions) for counts in (self.before, self.after))
        return Rate(before, self.total), Rate(after, self.total)


class Replay:
    """Adds up record by record how ``after`` differs from ``before``, or from what was recorded."""

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

    def add(self, verdict: ResponseVerdict, place: str) -> ChangedResponse | None:
        """Count a record, which stands at ``place``; what changes, if anything does."""
        self.responses += 1
        self.claims += len(verdict.claims)
        labels = self.labels.of(verdict.response_id)
        if labels:
            self._with_labels[verdict.response_id] += 1
        before, why_not = decided_by(self.before, verdict)
        after, unknown = decided_by(self.after, verdict)
        if unknown or why_not:
            self.unknown[unknown or why_not] += 1
            return None
        tallies = [self.total, self.routes.setdefault(verdict.route, DecisionTally())]
        truth = self._truth(verdict, labels)
        if truth is not None:
            tallies.append(self.labelled[truth])
        move = (before.decision, after.decision)
        for tally in tallies:
            tally.add(*move)
        self.moves[move] += 1
        if before.decision is after.decision:
            return None
        change = ChangedResponse(verdict.response_id, place, verdict.route, before, after)
        self._note(move, change, verdict)
        return change

    def _truth(self, verdict: ResponseVerdict, labels: Sequence[Label]) -> str | None:
        if not labels:
            return None
        truth = answer_truth(verdict.claims, labels)
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
        self, move: tuple[Decision, Decision], change: ChangedResponse, verdict: ResponseVerdict
    ) -> None:
        rule = change.after.rule
        if (*move, rule) in self.rules or len(self.rules) < _MOST_RULES:
            self.rules[*move, rule] += 1
        kept = self.examples.setdefault(move, [])
        if len(kept) < self._most_examples:
            policy = self.after.policy_for(verdict)
            claims = claims_decided_by(change.after.decision, rule, verdict.claims, policy)
            kept.append(replace(change, claims=claims[:_CLAIMS_TOLD]))

    def routes_by_size(self) -> list[tuple[str | None, DecisionTally]]:
        """Those with the most responses first."""
        return sorted(self.routes.items(), key=lambda each: -each[1].total)

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

    def as_json(self) -> dict[str, Any]:
        """Everything in JSON, without texts of answers."""
        figures: dict[str, object] = {
            "before": "as recorded" if self.before is None else self.before.name,
            "after": self.after.name,
            "responses": self.responses,
            "claims": self.claims,
            "compared": self.compared,
            "not_known": dict(self.unknown.most_common()),
            "stricter": Rate(self.stricter, self.compared),
            "milder": Rate(self.milder, self.compared),
            "total": self.total.as_json(),
            "moves": [
                {"from": was.value, "to": now.value, "count": self.moves[was, now]}
                for was, now in product(Decision, Decision)
                if (was, now) in self.moves
            ],
            "rules": [
                {"from": was.value, "to": now.value, "rule": rule, "count": count}
                for (was, now, rule), count in self.rules.most_common()
            ],
            "routes": [{"route": route, **tally.as_json()} for route, tally in self.routes_by_size()],
            "examples": [change.as_json() for kept in self.examples.values() for change in kept],
        }
        if len(self.labels):
            figures["labels"] = {name: tally.as_json() for name, tally in self.labelled.items()}
            figures["labels_left_out"] = {
                "of_no_answer": self.stray,
                "of_unknown_claims": self.unknown_claims,
            }
            figures["labels_of_repeated_ids"] = self.ambiguous
            for name, truth, decisions in (
                ("wrongful_blocks", RIGHT, WITHHELD),
                ("misses", WRONG, _UNTOUCHED),
            ):
                before, after = self.labelled[truth].decided(decisions)
                figures[name] = {"before": before, "after": after}
        return as_json(figures)


# ------------------------------------------------------------------------------------------ for terminals

_RULES_SHOWN: Final = 8
_MOST_ROUTES: Final = 12
_MOST_CHARS: Final = 200


def print_replay(console: Console, replay: Replay, passed: Passed) -> None:
    """What was found, for people: tables and examples."""
    before = "as recorded" if replay.before is None else replay.before.name
    _line(
        console,
        f"{replay.responses:,} responses, {replay.claims:,} claims; {replay.after.name} against {before}",
        "bold",
    )
    for what, count in (
        ("events of other types passed over", passed.others),
        ("records of guardrail doctor's proofs left out", passed.proofs),
        ("records repeated, counted once", passed.repeated),
        ("results without a verdict left out", passed.failed),
        ("that can't be read left out", passed.unreadable),
    ):
        if count:
            _line(console, f"{count:,} {what}", "dim")
    for reason, count in replay.unknown.most_common():
        _line(console, f"{count:,} responses are not known and left out: {reason}", "yellow")
    if not replay.compared:
        return
    console.print()
    console.print(_decisions(replay.total))
    changed = Rate(replay.total.changed, replay.compared)
    counts = f"{changed.count:,} of {changed.total:,}, {percent(changed)} %"
    moved = f"{replay.stricter:,} more strictly, {replay.milder:,} more mildly"
    _line(console, f"changed {counts}: {moved}. In brackets: 95 % intervals.")
    if replay.total.changed:
        for table in (_moves(replay), _rules(replay)):
            console.print()
            console.print(table)
    if len(replay.routes) > 1:
        console.print()
        console.print(_routes(replay))
    if len(replay.labels):
        console.print()
        _print_labels(console, replay)
    for (was, now), kept in sorted(replay.examples.items(), key=lambda each: each[0][1].rank, reverse=True):
        for change in kept:
            _print_example(console, was, now, change)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(escape_controls(text), style), soft_wrap=True)


def _words(decision: Decision) -> Text:
    return Text(DECISION_WORDS[decision], DECISION_STYLES[decision])


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _decisions(tally: DecisionTally) -> Table:
    table = _table("decision", "before", "% [95 %]", "after", "% [95 %]")
    for decision in Decision:
        row = [(f"{rate.count:,}", percent(rate)) for rate in tally.decided({decision})]
        table.add_row(_words(decision), *chain.from_iterable(row))
    return table


def _moves(replay: Replay) -> Table:
    table = _table("from \\ to", *(DECISION_WORDS[decision] for decision in Decision))
    for was in Decision:
        row = [replay.moves[was, now] for now in Decision]
        if any(row):
            table.add_row(
                _words(was),
                *(
                    Text(f"{count:,}", "" if was is now or not count else "bold")
                    for now, count in zip(Decision, row, strict=True)
                ),
            )
    return table


def _rules(replay: Replay) -> Table:
    table = _table("change", "responses", "rule that decides now")
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for (was, now, rule), count in replay.rules.most_common(_RULES_SHOWN):
        change = Text.assemble(_words(was), " to ", _words(now))
        table.add_row(change, f"{count:,}", Text(escape_controls(rule)))
    return table


def _routes(replay: Replay) -> Table:
    table = _table("route", "responses", "changed", "withheld", "after", "flagged", "after")
    routes = replay.routes_by_size()
    for route, tally in routes[:_MOST_ROUTES]:
        changed = Rate(tally.changed, tally.total)
        shares = (changed, *tally.decided(WITHHELD), *tally.decided({Decision.FLAG}))
        name = Text("none", "dim") if route is None else Text(escape_controls(shorten(route, 40)))
        cells = (render.percent(rate.count, rate.total) for rate in shares)
        table.add_row(name, f"{tally.total:,}", *cells)
    if len(routes) > _MOST_ROUTES:
        table.add_row(Text(f"and {len(routes) - _MOST_ROUTES} more; --json has all", "dim"))
    return table


def _print_labels(console: Console, replay: Replay) -> None:
    for count, what in (
        (replay.stray, "labels belong to no answer of the records"),
        (replay.unknown_claims, "labels name claims that the records don't have, and no words; left out"),
        (
            replay.ambiguous,
            "labels are of ids that several answers have; each of these answers counts by them",
        ),
    ):
        if count:
            _line(console, f"{count:,} {what}", "yellow")
    right, wrong = replay.labelled[RIGHT], replay.labelled[WRONG]
    if not right.total and not wrong.total:
        _line(console, "labels: none of the responses has labels that say whether it is right", "yellow")
        return
    _line(console, f"{right.total:,} answers are right by their labels, {wrong.total:,} wrong")
    table = _table("", "before", "after")

    for name, tally, decisions in (
        ("wrongful blocks: right, withheld", right, WITHHELD),
        ("right, flagged or withheld", right, {*Decision} - _UNTOUCHED),
        ("misses: wrong, not even flagged", wrong, _UNTOUCHED),
        ("wrong, not withheld", wrong, {*Decision} - WITHHELD),
    ):
        if tally.total:
            cells = (f"{rate.count:,}  {percent(rate)} %" for rate in tally.decided(decisions))
            table.add_row(name, *cells)
    console.print(table)


def _print_example(console: Console, was: Decision, now: Decision, change: ChangedResponse) -> None:
    console.print()
    console.print(
        Text.assemble(
            (escape_controls(shorten(change.response_id, 64)), "bold"),
            "  ",
            _words(was),
            " to ",
            _words(now),
            (f"  {escape_controls(change.place)}", "dim"),
        ),
        soft_wrap=True,
    )
    for name, part in (("before", change.before), ("after ", change.after)):
        score = "none" if part.score is None else f"{part.score:.2f}"
        _line(console, f"  {name}  {part.rule or 'no rule'} · score {score} · {part.policy}")
    for claim in change.claims:
        text = shorten(claim.text, _MOST_CHARS)
        _line(console, f'  {claim.verdict.value}, {claim.severity.value}: "{text}"')
