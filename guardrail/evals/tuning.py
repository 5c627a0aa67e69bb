"""Thresholds chosen from evidence: the policy that serves an aim best, judged on responses held out; and as a
configuration file, with where it comes from in comments.

The file stands alone: ``guardrail config check FILE`` accepts it, ``guardrail run --config FILE`` takes it,
and its policy can be copied into another file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from guardrail import __version__
from guardrail.errors import InputError
from guardrail.evals.aims import FAITHFUL, LEAST_RANK, OTHERS, WRONG, Aim, By, Counts, class_of
from guardrail.evals.lines import STDIN
from guardrail.evals.records import Judged, LabelledAnswers
from guardrail.evals.search import Deciding, Search, Vary
from guardrail.evals.statistics import ROUNDS, SEED, Array, Estimate, Rate, percent, wilson
from guardrail.evals.truths import answer_truth
from guardrail.events import Decision
from guardrail.policy import RULE_LISTS, Policy
from guardrail.printable import escape_controls

FOLDS: Final = 5
_DIGITS: Final = 6  # of a score


@dataclass(frozen=True, slots=True)
class Setting:
    """A number before and after, and the least and the greatest that the folds chose."""

    name: str
    before: float | None
    after: float | None
    folds: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search found. Counts are of responses held out: each was decided by a policy that never saw it.

    ``gains`` are differences, tuned minus baseline, on the same held-out responses: ``caught`` and ``false
    alarms`` as shares, ``cost`` for each response, with intervals by drawing responses again.
    """

    policy: Policy
    baseline: Policy
    aim: Aim
    settings: tuple[Setting, ...]
    held_out: Counts
    baseline_counts: Counts
    fitted: Counts
    gains: dict[str, Estimate]
    unknown: int
    """Responses without a label that tells their class."""
    others: int
    """Responses with lesser errors only."""
    problems: tuple[str, ...] = ()
    """What the labels are too few for, each with the number that would be needed."""

    @property
    def changed(self) -> list[Setting]:
        """The settings that are others now."""
        return [each for each in self.settings if each.before != each.after]

    @property
    def better(self) -> bool:
        """Whether it serves the aim better than the baseline, by more than chance."""
        if not self.changed:
            return False
        aim, ours, base = self.aim, self.held_out, self.baseline_counts
        caught, false = self.gains["caught"], self.gains["false alarms"]
        if aim.catch is not None:
            asked = aim.catch * base.wrong
            if base.caught(aim.by) < asked and caught.low > 0:
                return True
            return ours.caught(aim.by) >= min(asked, base.caught(aim.by)) and false.high < 0
        if aim.max_false is not None:
            allowed = aim.max_false * base.faithful
            if base.false_alarms(aim.by) > allowed and false.high < 0:
                return True
            return ours.false_alarms(aim.by) <= max(allowed, base.false_alarms(aim.by)) and caught.low > 0
        return self.gains["cost"].high < 0

    @property
    def conclusions(self) -> list[str]:
        """Sentences: whether to take the policy; and how the aim is missed, if it is by more than chance."""
        if not self.changed:
            found = ["The search found nothing better than the policy as it is: keep it."]
        else:
            does, then = ("serves", "") if self.better else ("doesn't serve", ": keep that")
            found = [
                f"On answers held out it {does} the aim better than the policy as it is, by more than "
                f"chance{then}."
            ]
        aim, counts, missed = self.aim, self.held_out, ""
        caught, false = counts.caught(aim.by), counts.false_alarms(aim.by)
        if aim.catch is not None and wilson(caught, counts.wrong)[1] < aim.catch:
            missed = f"{caught / counts.wrong:.1%} are caught, and {aim.catch:.1%} were asked for"
        if aim.max_false is not None and wilson(false, counts.faithful)[0] > aim.max_false:
            missed = f"{false / counts.faithful:.1%} are false alarms, and {aim.max_false:.1%} were allowed"
        return [*found, *([f"The aim is not reached on answers held out: {missed}."] if missed else [])]


Calibrate = Callable[[Sequence[Judged]], Callable[[Judged], Judged]]
"""Fits calibrations on some responses, and gives what applies them to any."""


def tune(
    responses: Sequence[Judged],
    policy: Policy,
    aim: Aim,
    *,
    vary: Sequence[Vary] = ("thresholds",),
    calibrate: Calibrate | None = None,
) -> Tuned:
    """The policy like ``policy`` that serves ``aim`` best, with what it does on responses held out.

    Raises InputError where the labels hold no wrong or no faithful response at all.
    """
    classes = classes_of(responses, aim)
    known = [each for each, cls in zip(responses, classes, strict=True) if cls >= 0]
    unknown = len(responses) - len(known)
    classes = classes[classes >= 0]
    problems = _too_few(classes, aim)
    for cls, called in ((WRONG, "wrong"), (FAITHFUL, "faithful")):
        if not (classes == cls).any():
            need = aim.needed()[0 if called == "wrong" else 1]
            raise InputError(
                "one_class",
                f"the labels of {len(responses)} answers tell of no {called} one; at least {need} are needed "
                "for this aim. Label more answers, or look whether --of leaves out what you mean",
            )
    folds = max(2, min(FOLDS, *(int((classes == cls).sum()) for cls in (WRONG, FAITHFUL))))
    fold = _folds(classes, folds)

    def search_on(apply: Callable[[Judged], Judged] | None) -> Search:
        verdicts = [(each if apply is None else apply(each)).verdict for each in known]
        return Search(verdicts, classes, fold, policy, vary, aim.by)

    search = search_on(None if calibrate is None else calibrate(known))
    before = search if calibrate is None else search_on(None)
    ours = np.zeros(len(known), dtype=np.int64)
    chosen = []
    for number in range(folds):
        inner = search
        if calibrate is not None:
            inner = search_on(calibrate([r for r, f in zip(known, fold, strict=True) if f != number]))
        state = inner.best(aim, left_out=number)
        ours[fold == number] = inner.ranks(state)[fold == number]
        chosen.append(dict(zip((knob.name for knob in inner.knobs), state, strict=True)))
    base = before.ranks(before.start)
    best = search.best(aim)
    found = search.policy_of(best)
    settings = [
        Setting(knob.name, own, value, tuple(each.get(knob.name) for each in chosen))
        for knob, own, value in zip(search.knobs, search.start, best, strict=True)
    ]
    if aim.by != "flag" and found.flag_below != policy.flag_below:
        settings.append(Setting("flag_below", policy.flag_below, found.flag_below))  # pushed up by the other
    return Tuned(
        policy=found,
        baseline=policy,
        aim=aim,
        settings=tuple(settings),
        held_out=_counts(classes, ours),
        baseline_counts=_counts(classes, base),
        fitted=search.counts(best),
        gains=_gains(classes, ours, base, aim),
        unknown=unknown,
        others=int((classes == OTHERS).sum()),
        problems=tuple(problems),
    )


def classes_of(responses: Sequence[Judged], aim: Aim) -> Array:
    """The class of each response by its labels, as ``class_of`` has it."""
    truths = (answer_truth(each.claims, each.labels) for each in responses)
    return np.array([class_of(truth, aim) for truth in truths], dtype=np.int64)


def _too_few(classes: Array, aim: Aim) -> list[str]:
    there = [int((classes == cls).sum()) for cls in (WRONG, FAITHFUL)]
    kinds = (f"answers with {aim.error}", "faithful answers")
    return [
        f"{have} labelled {kind}: at least {need} are needed for this aim"
        for have, need, kind in zip(there, aim.needed(), kinds, strict=True)
        if have < need
    ]


def _folds(classes: Array, folds: int) -> Array:
    """The fold of each response: as many of each class in each as can be."""
    random = np.random.default_rng(SEED)
    found = np.zeros(len(classes), dtype=np.int64)
    for cls in (WRONG, FAITHFUL, OTHERS):
        members = random.permutation(np.flatnonzero(classes == cls))
        found[members] = np.arange(len(members)) % folds
    return found


def _counts(classes: Array, ranks: Array) -> Counts:
    cells = np.bincount(classes * len(Decision) + ranks, minlength=3 * len(Decision))
    return Counts(cells.reshape(3, len(Decision)))


def _gains(classes: Array, ours: Array, base: Array, aim: Aim) -> dict[str, Estimate]:
    """Tuned minus baseline on the same responses, wrong and faithful ones drawn again apart."""
    least = LEAST_RANK[aim.by]
    change = (ours >= least).astype(float) - (base >= least)
    wrong, faithful = change[classes == WRONG], change[classes == FAITHFUL]
    random = np.random.default_rng(SEED)
    caught, false = (
        np.array([each[random.integers(0, len(each), len(each))].mean() for _ in range(ROUNDS)])
        for each in (wrong, faithful)
    )
    total = len(wrong) + len(faithful)
    miss, alarm = (aim.cost_miss or 1.0) * len(wrong) / total, (aim.cost_false or 1.0) * len(faithful) / total
    return {
        "caught": Estimate.drawn(float(wrong.mean()), caught),
        "false alarms": Estimate.drawn(float(faithful.mean()), false),
        "cost": Estimate.drawn(
            float(alarm * faithful.mean() - miss * wrong.mean()), alarm * false - miss * caught
        ),
    }


@dataclass(frozen=True, slots=True)
class ForShare:
    """The policy that comes closest to a share, if not above it, and on how many it acts; ``before``, the
    given one. ``next``: the next threshold, which acts on more than the share; None if there is none.
    """

    policy: Policy
    before: Rate
    after: Rate
    next: Rate | None


def for_share(responses: Sequence[Judged], policy: Policy, share: float, by: By) -> ForShare:
    """Without labels: the policy whose threshold on the score acts on that share of the responses.

    By ``flag`` it is ``flag_below``, by the others ``block_below``. It says nothing of right and wrong. Ties
    of scores may leave less than the share, or nothing.
    Raises InputError where rules alone act on more.
    """
    if not responses:
        raise InputError(
            "no_records", "there is no response in the records; name files with results or verdicts"
        )
    deciding = Deciding([each.verdict for each in responses], policy)
    bounds, weights, least = deciding.bounds(), policy.weights, LEAST_RANK[by]

    def acted(flag: float, block: float) -> int:
        return int((deciding.ranks(bounds, flag, block, weights) >= least).sum())

    flags = by == "flag"
    scores = deciding.scores(weights)[0 if flags else 1]
    seen = np.unique(np.round(scores[~np.isnan(scores)], _DIGITS))
    allowed = math.floor(share * len(responses) + 1e-9)
    low = policy.block_below if flags else 0.0
    tried = sorted({low, *(float(cut) for cut in seen if cut > low), 1.0}, reverse=True)

    def with_cut(cut: float) -> tuple[float, float]:
        return (cut, policy.block_below) if flags else (max(cut, policy.flag_below), cut)

    now = Rate(acted(policy.flag_below, policy.block_below), len(responses))
    above = None
    for cut in tried:
        acts_on = Rate(acted(*with_cut(cut)), len(responses))
        if acts_on.count > allowed:
            above = acts_on
            continue
        if acts_on.count <= now.count <= allowed:
            return ForShare(policy, now, now, above)
        flag, block = with_cut(cut)
        chosen = policy.model_copy(update={"flag_below": flag, "block_below": block})
        return ForShare(chosen, now, acts_on, above)
    least_share = acted(*with_cut(low)) / len(responses)
    raise InputError(
        "share_out_of_reach",
        f"rules act on {least_share:.1%} of the answers whatever the threshold, which is more than the share "
        f"{share:.1%}; allow more, or change rules",
    )


# ------------------------------------------------------ the policy as a file, and what is said of it

_WIDTH: Final = 110


def written(
    policy: Policy,
    comments: Sequence[str],
    *,
    calibration: str | None = None,
    bands: dict[str, dict[str, float]] | None = None,
) -> str:
    """The file's text: of the policy its rules, and what else differs from the built-in defaults.

    ``calibration`` is the name of a file beside it; ``bands`` are the cascade's.
    """
    judge: dict[str, Any] = {}
    if calibration is not None:
        judge["calibration"] = calibration
    if bands:
        judge["cascade"] = {"bands": bands}
    values: dict[str, Any] = {"judge": judge} if judge else {}
    given = policy.model_dump(mode="json", exclude_defaults=True, exclude={"name", "extends", *RULE_LISTS})
    values["policies"] = {policy.name: {**given, "rules": [rule.line for rule in policy.rules]}}
    if policy.name != "default":
        values["default_policy"] = policy.name
    body = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "".join(f"# {line}".rstrip() + "\n" for line in comments) + body


def provenance(command: str, files: Sequence[Path], found: LabelledAnswers) -> list[str]:
    """Comments on what the file was made from: files with their hashes, counts, command, version, date."""
    return [
        f"Written by guardrail {__version__} on {datetime.now(UTC).date().isoformat()}:",
        f"  {escape_controls(command)}",
        "From:",
        *(f"  {escape_controls(str(path))}, {_kept(path)}" for path in files),
        f"  {len(found.responses):,} answers with {found.claims():,} claims, {found.labels():,} labels",
    ]


def figures(tuned: Tuned) -> list[str]:
    """Comments on what the policy reaches on answers held out, and the one before it beside it."""
    lines = [f"Aim: {tuned.aim}.", *tuned.conclusions]
    lines += [f"Too few labels: {problem}." for problem in tuned.problems]
    lines += [f"  {name}: {rate(after)}, before {rate(before)}" for name, before, after in shares(tuned)]
    lines += [f"  difference, {name}: {told}" for name, told in differences(tuned).items()]
    lines.append("Changed:" if tuned.changed else "Nothing changed.")
    for each in tuned.changed:
        spread = ", ".join(number(value) for value in each.folds)
        told = f"  {each.name} {number(each.before)} -> {number(each.after)}"
        lines.append(told + (f" (chosen in folds: {spread})" if spread else ""))
    return lines


def shares(tuned: Tuned) -> Iterator[tuple[str, Rate, Rate]]:
    """What the policy does on answers held out: name, before and after."""
    before, after = (counts.rates(tuned.aim.by) for counts in (tuned.baseline_counts, tuned.held_out))
    yield from ((name, before[name], after[name]) for name in after)


def differences(tuned: Tuned) -> dict[str, str]:
    """The differences in words, by name; that of costs only where the aim has some."""
    return {
        name: difference(each, name)
        for name, each in tuned.gains.items()
        if name != "cost" or tuned.aim.cost_miss is not None
    }


def rate(given: Rate, *, counts: bool = True) -> str:
    """A share in percent with its interval, and its counts."""
    if not given.total:
        return "none to count"
    return f"{percent(given)} %" + (f" ({given.count} of {given.total})" if counts else "")


def difference(given: Estimate, name: str) -> str:
    """A difference with its interval: of shares in points, of costs as they are."""
    scale, unit = (1.0, " an answer") if name == "cost" else (100.0, " points")
    digits = 3 if name == "cost" else 1
    value, low, high = (f"{scale * each:+.{digits}f}" for each in (given.value, given.low, given.high))
    return f"{value}{unit} [{low}, {high}]"


def number(value: float | None) -> str:
    """A threshold; a dash where there is none."""
    return "–" if value is None else f"{value:g}"


def _kept(path: Path) -> str:
    """The hash of a file's content, with its kind; that it is not kept for stdin. Raises OSError."""
    if str(path) == STDIN:
        return "stdin, not kept"
    with path.open("rb") as stream:
        return f"sha256 {hashlib.file_digest(stream, 'sha256').hexdigest()}"
