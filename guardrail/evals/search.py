"""A policy's numbers, searched for what serves an aim best.

The search is a walk along coordinates. Each number that may change (``Knob``) is tried at quantiles of what
the judge said, the best is kept, and the next one follows, until no single change helps; then all pairs are
tried on a coarser grid, since an aim with a bound often needs one number to give way for another. It draws
nothing, so that the same records always give the same policy. Gradients would find nothing, because decisions
are steps, and a random search needs more tries to find the same place twice.

Whatever is tried is counted for every fold at once, so that cross-validation costs little more than one
search. Thousands of policies are decided by ``Deciding``, on columns of claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Final, Literal

import numpy as np

from guardrail.evals.agreement import WITHHELD
from guardrail.evals.aims import Aim, By, Counts
from guardrail.evals.statistics import Array
from guardrail.events import ClaimVerdict, Decision, ResponseVerdict, Severity, Verdict
from guardrail.policy import Policy, Rule, contradiction_of
from guardrail.scoring import DEFAULT_CREDITS, Formula

Bounds = tuple[float | None, ...]
"""A rule's bounds in the order of ``BOUNDS``."""
Vary = Literal["thresholds", "weights", "bounds"]
"""Numbers that may change: thresholds that the policy has, weights, bounds on support that rules lack."""
_GRID: Final = 40
_PAIRS: Final = 10
_TAILS: Final = (0.002, 0.005, 0.01, 0.02, 0.98, 0.99, 0.995, 0.998)
_WEIGHTS: Final = (0.0, 0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
_SWEEPS: Final = 20
_ACTING: Final[dict[By, frozenset[Decision]]] = {
    "flag": frozenset({Decision.FLAG}),
    "withhold": WITHHELD,
    "block": frozenset({Decision.BLOCK}),
}
_DIGITS: Final = 3


@dataclass(frozen=True, slots=True)
class Knob:
    """A number that the search may change. ``rule`` and ``field`` say which, ``values`` what is tried."""

    name: str
    field: str
    values: tuple[float | None, ...]
    rule: int | None = None


State = tuple[float | None, ...]
"""A value for each knob."""


def knobs_of(deciding: Deciding, vary: Sequence[Vary], by: By) -> list[Knob]:
    """The numbers that may change for an aim by that decision, with what is tried for each.

    Tried are the number's own value and quantiles. By ``flag`` only what flags may change (``flag_below``,
    rules that flag), by ``withhold`` and ``block`` only what withholds or blocks: more flags are never bought
    by withholding more. Rules that release may always change. Weights keep the order of severities.
    """
    policy = deciding.policy
    acting = _ACTING[by] | {Decision.RELEASE}
    found = []
    for number, rule in enumerate(policy.rules):
        met = deciding.conditions[number]
        for name, (column, reach) in BOUNDS.items() if rule.action in acting else ():
            own = getattr(rule, name)
            added = name == "support_below" and "bounds" in vary and rule.action is not Decision.RELEASE
            if (own is not None and "thresholds" in vary) or (own is None and added):
                label = f"rule {number + 1}: {column} {'>=' if reach else '<'}"
                found.append(Knob(label, name, _grid(deciding.columns[column][met], own), number))
    final, lowest = deciding.scores(policy.weights)
    if "thresholds" in vary:
        values, name = (final, "flag_below") if by == "flag" else (lowest, "block_below")
        found.append(Knob(name, name, _grid(values, getattr(policy, name))))
    if "weights" in vary:
        for severity in (Severity.MINOR, Severity.MAJOR, Severity.CRITICAL):  # normal is the unit
            values = [
                each for each in _WEIGHTS if (each <= 1.0) == (severity is Severity.MINOR) or each == 1.0
            ]
            own = policy.weights[severity]
            found.append(Knob(f"weights.{severity}", severity, tuple(sorted({*values, own}))))
    return found


def _grid(values: Array, own: float | None) -> tuple[float | None, ...]:
    """Cuts between the observed values, at most ``_GRID`` and the tails, and the knob's own value."""
    seen = np.unique(values[~np.isnan(values)])
    cuts = np.concatenate(([0.0, 1.0], (seen[1:] + seen[:-1]) / 2)) if len(seen) else np.array([0.0, 1.0])
    if len(cuts) > _GRID:
        at = np.concatenate((np.linspace(0, 1, _GRID), _TAILS))
        spread = np.quantile(values[~np.isnan(values)], at)
        cuts = np.concatenate((spread, [0.0, 1.0]))
    found = {float(cut) for cut in np.round(cuts, _DIGITS)}
    if own is None:
        return (None, *sorted(found))
    return tuple(sorted(found | {own}))


class Search:
    """Policies tried on responses whose truth is known, each counted by fold."""

    def __init__(
        self,
        verdicts: Sequence[ResponseVerdict],
        classes: Array,
        folds: Array,
        policy: Policy,
        vary: Sequence[Vary],
        by: By,
    ) -> None:
        self.deciding = Deciding(verdicts, policy)
        self.policy = policy
        self.knobs = knobs_of(self.deciding, vary, by)
        self.start: State = tuple(_own(policy, knob) for knob in self.knobs)
        self._folds = max(2, int(folds.max()) + 1)
        self._place: Array = (folds * 3 + classes) * len(Decision)
        self._bounds = self.deciding.bounds()
        self._counted: dict[State, Array] = {}

    def _numbers(self, state: State) -> tuple[list[Bounds], float, float, dict[Severity, float]]:
        """The bounds of rules, ``flag_below``, ``block_below`` and the weights with these values."""
        bounds = [list(each) for each in self._bounds]
        thresholds = {name: getattr(self.policy, name) for name in ("flag_below", "block_below")}
        weights, names = dict(self.policy.weights), list(BOUNDS)
        for knob, value in zip(self.knobs, state, strict=True):
            if knob.rule is not None:
                bounds[knob.rule][names.index(knob.field)] = value
            elif knob.field in thresholds:
                thresholds[knob.field] = value or 0.0
            else:
                weights[Severity(knob.field)] = value or 0.0
        flag, block = thresholds["flag_below"], thresholds["block_below"]
        # A policy never blocks before it flags.
        return [tuple(each) for each in bounds], max(flag, block), block, weights

    def ranks(self, state: State) -> Array:
        """The decision on each response with these values."""
        return self.deciding.ranks(*self._numbers(state))

    def counts(self, state: State, left_out: int | None = None) -> Counts:
        """Of all folds but the one left out."""
        known = self._counted.get(state)
        if known is None:
            cells = np.bincount(self._place + self.ranks(state), minlength=self._folds * 3 * len(Decision))
            known = self._counted[state] = cells.reshape(self._folds, 3, len(Decision))
        total = known.sum(axis=0)
        return Counts(total if left_out is None else total - known[left_out])

    def best(self, aim: Aim, left_out: int | None = None) -> State:
        """The values that serve the aim best on all folds but one, and of equals those nearest the start."""
        state, key = self.start, self._key(self.start, aim, left_out)

        def improve(places: Sequence[int], every: Iterable[Sequence[float | None]]) -> None:
            nonlocal state, key
            from_here = state
            for values in every:
                tried = list(from_here)
                for place, value in zip(places, values, strict=True):
                    tried[place] = value
                other = tuple(tried)
                if self._sound(other) and (found := self._key(other, aim, left_out)) < key:
                    state, key = other, found

        for _ in range(_SWEEPS):
            before = key
            for number, knob in enumerate(self.knobs):
                improve([number], ([value] for value in knob.values))
            if key < before:
                continue
            for pair in combinations(range(len(self.knobs)), 2):
                improve(pair, product(*(self._coarse(number, state[number]) for number in pair)))
            if key >= before:
                break
        return state

    def policy_of(self, state: State) -> Policy:
        """The policy with these values; rules that had no name of their own are named anew."""
        bounds, flag, block, weights = self._numbers(state)
        rules = tuple(map(_with_bounds, self.policy.rules, self._bounds, bounds))
        changed = {"rules": rules, "flag_below": flag, "block_below": block, "weights": weights}
        return Policy.model_validate(self.policy.model_copy(update=changed).model_dump())

    def _key(self, state: State, aim: Aim, left_out: int | None) -> tuple[float, ...]:
        moved = [number for number, value in enumerate(state) if value != self.start[number]]
        distance = sum(abs((state[n] or 0.0) - (self.start[n] or 0.0)) for n in moved)
        return *aim.key(self.counts(state, left_out)), len(moved), distance

    def _coarse(self, number: int, own: float | None) -> list[float | None]:
        values = self.knobs[number].values
        step = max(1, len(values) // _PAIRS)
        return [*dict.fromkeys((own, *values[::step], values[-1]))]

    def _sound(self, state: State) -> bool:
        """Whether a policy may have these values."""
        policy = self.policy
        named = {
            knob.field: value for knob, value in zip(self.knobs, state, strict=True) if knob.rule is None
        }
        if (named.get("flag_below") or 1.0) < policy.block_below:
            return False
        major, critical = (
            named.get(each) or policy.weights[each] for each in (Severity.MAJOR, Severity.CRITICAL)
        )
        if Severity.MAJOR in named and major > critical:
            return False
        bounds = {(k.rule, k.field): v for k, v in zip(self.knobs, state, strict=True) if k.rule is not None}
        for (rule, name), value in bounds.items():
            if name.startswith("min_") and value is not None and rule is not None:
                other = f"{name.removeprefix('min_')}_below"
                under = bounds.get((rule, other), getattr(policy.rules[rule], other))
                if under is not None and value >= under:
                    return False
        return True


def _own(policy: Policy, knob: Knob) -> float | None:
    if knob.field in policy.weights:
        return policy.weights[Severity(knob.field)]
    value: float | None = getattr(policy if knob.rule is None else policy.rules[knob.rule], knob.field)
    return value


def _with_bounds(rule: Rule, own: Bounds, bounds: Bounds) -> Rule:
    if bounds == own:
        return rule
    fields = rule.model_dump() | dict(zip(BOUNDS, bounds, strict=True))
    return Rule.model_validate({**fields, "name": rule.name if rule.line != rule.name else ""})


# ------------------------------------------------------------------------- many policies at once

BOUNDS: Final = {
    "min_support": ("support", True),
    "support_below": ("support", False),
    "min_contradiction": ("contradiction", True),
    "contradiction_below": ("contradiction", False),
    "min_confidence": ("confidence", True),
    "confidence_below": ("confidence", False),
}
"""The bounds that a rule may have: the column they are on, and whether a claim has to reach them."""
_KEPT: Final = 4096
_SCORE_DIGITS: Final = 6  # as ScoreKeeper rounds it


class Deciding:
    """Decisions about all responses under ``policy`` with other numbers in it: what ``decisions.redecide``
    decides about one, for policies that differ in bounds of rules, thresholds on the score and weights only.

    What can't differ is asked of the policy once, which makes it thousands of times as fast. Responses are
    taken to be judged to their end; what the kinds of their segments decide is left out. A test holds it
    against ``redecide``.

    ``columns`` hold, for each claim of all responses in their order, what bounds are held against; ``nan``
    stands for a support that is not given, and meets no bound.
    """

    def __init__(self, verdicts: Iterable[ResponseVerdict], policy: Policy) -> None:
        self.policy = policy
        texts = [sorted(verdict.claims, key=lambda claim: claim.segment) for verdict in verdicts]
        claims = list(chain.from_iterable(texts))
        self._count = len(texts)
        self._claims = claims
        self._owner = np.array([at for at, each in enumerate(texts) for _ in each], dtype=np.int64)
        self._checked = _truths(claim.verdict is not Verdict.UNVERIFIED for claim in claims)
        self._ends = _ends_of_segments(texts)
        self._first = np.concatenate(([0], np.cumsum([len(each) for each in texts], dtype=np.int64)))
        self.columns: dict[str, Array] = {
            "support": np.array([claim.support for claim in claims], dtype=np.float64),
            "contradiction": np.array([contradiction_of(claim) for claim in claims], dtype=np.float64),
            "confidence": np.array([claim.confidence for claim in claims], dtype=np.float64),
        }
        self.conditions = self._without_bounds()
        """By rule, which claims meet every condition of it but its bounds."""
        self._rows: Array = np.flatnonzero(np.any([*self.conditions, np.zeros(len(claims), bool)], axis=0))
        self._met = [met[self._rows] for met in self.conditions]
        self._values = {name: column[self._rows] for name, column in self.columns.items()}
        owners, checked = self._owner[self._rows], self._checked[self._rows]
        self._left_open: Array = np.where(checked, 0, Decision.FLAG.rank).astype(np.int8)
        self._owners: Array = np.unique(owners)
        self._begins: Array = np.searchsorted(owners, self._owners)
        self._masks: dict[tuple[int, Bounds], Array] = {}
        self._scores: dict[tuple[float, ...], tuple[Array, Array]] = {}
        self._unruled = self._of_unruled()

    def bounds(self) -> tuple[Bounds, ...]:
        """Those of the policy's own rules."""
        return tuple(tuple(getattr(rule, name) for name in BOUNDS) for rule in self.policy.rules)

    def ranks(
        self,
        bounds: Sequence[Bounds],
        flag_below: float,
        block_below: float,
        weights: Mapping[Severity, float],
    ) -> Array:
        """The rank of the decision about each response, 0 to 3."""
        found: Array = self._unruled.copy()
        if len(self._rows):
            of_claims = self._left_open.copy()
            for number in range(len(bounds) - 1, -1, -1):  # the first that matches decides: it is set last
                action = self.policy.rules[number].action.rank
                np.copyto(of_claims, action, where=self._mask(number, bounds[number]))
            worst = np.maximum.reduceat(of_claims, self._begins)
            found[self._owners] = np.maximum(found[self._owners], worst)
        final, lowest = self.scores(weights)
        with np.errstate(invalid="ignore"):  # no score is below nothing
            np.maximum(found, Decision.FLAG.rank, out=found, where=final < flag_below)
            np.copyto(found, Decision.BLOCK.rank, where=lowest < block_below)
        return found

    def scores(self, weights: Mapping[Severity, float]) -> tuple[Array, Array]:
        """Each response's score, and the lowest that ``block_below`` is held against; nan without any."""
        key = tuple(weights[severity] for severity in Severity)
        known = self._scores.get(key)
        if known is None:
            known = self._scores[key] = self._scored(weights)
        return known

    def _scored(self, weights: Mapping[Severity, float]) -> tuple[Array, Array]:
        policy, owner, checked = self.policy, self._owner, self._checked
        credit = np.array([DEFAULT_CREDITS.get(claim.verdict, 0.0) for claim in self._claims], np.float64)
        if policy.score is Formula.SEVERITY_WEIGHTED:
            support = self.columns["support"]
            credit = np.where(np.isnan(support), credit, support)
        weight = checked * np.array([weights[claim.severity] for claim in self._claims], np.float64)
        final = _share(
            np.bincount(owner, weight * credit, minlength=self._count),
            np.bincount(owner, weight, minlength=self._count),
        )
        if policy.mode != "stream" or not len(self._claims):
            return final, final
        credited, weighed, many = (
            self._running(each)[self._ends] for each in (weight * credit, weight, checked * 1.0)
        )
        running = np.where(many >= policy.score_after_claims - 0.5, _share(credited, weighed), np.nan)
        lowest = final.copy()
        np.fmin.at(lowest, owner[self._ends], running)
        return final, lowest

    def _running(self, values: Array) -> Array:
        """Sums within each response, up to and with each claim."""
        sums = np.cumsum(values)
        before = np.concatenate(([0.0], sums))[self._first[:-1]]
        return sums - before[self._owner]

    def _mask(self, number: int, bounds: Bounds) -> Array:
        known = self._masks.get((number, bounds))
        if known is not None:
            return known
        mask = self._met[number]
        for (name, reach), bound in zip(BOUNDS.values(), bounds, strict=True):
            if bound is not None:
                column = self._values[name]
                with np.errstate(invalid="ignore"):
                    mask = mask & ((column >= bound) if reach else (column < bound))
        if len(self._masks) >= _KEPT:
            self._masks.clear()
        self._masks[number, bounds] = mask
        return mask

    def _without_bounds(self) -> list[Array]:
        claims, found = self._claims, []
        decidable = ~_truths(claim.unanswered for claim in claims)
        for rule in self.policy.rules:
            loose = rule.model_copy(update=dict.fromkeys(BOUNDS))
            decides = decidable if rule.decides_open else self._checked
            found.append(decides & _truths(map(loose.matches, claims)))
        return found

    def _of_unruled(self) -> Array:
        """The rank that claims give each response about which no rule can decide, whatever its bounds."""
        ranks = np.array([self.policy.decide_claim(claim)[0].rank for claim in self._claims], dtype=np.int8)
        ranks[self._rows] = 0
        found = np.zeros(self._count, dtype=np.int8)
        np.maximum.at(found, self._owner, ranks)
        return found


def _truths(values: Iterable[bool]) -> Array:
    return np.fromiter(values, dtype=bool)


def _ends_of_segments(texts: Sequence[Sequence[ClaimVerdict]]) -> Array:
    """The places of the last claims of segments, among the claims of all responses."""
    segments = [(number, claim.segment) for number, each in enumerate(texts) for claim in each]
    return np.array([at for at, each in enumerate(segments) if segments[at + 1 : at + 2] != [each]], np.int64)


def _share(part: Array, whole: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 1e-12, np.round(np.clip(part / whole, 0.0, 1.0), _SCORE_DIGITS), np.nan)
