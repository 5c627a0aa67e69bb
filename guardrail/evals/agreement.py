"""How far verdicts and decisions agree with people's labels ("alignment"), with intervals, slice by slice.

``truths`` says how labels are joined to claims, and what is right. Claims that are UNVERIFIED are counted and
left out of all figures. Errors are what is looked for, so F1 and average precision are those of the wrong
claims; the other figures don't change if the classes are exchanged.

Intervals are 95 %: rates by Wilson; the others by drawing whole answers again, since the claims of one answer
go together.
"""

from __future__ import annotations

import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from guardrail.evals import statistics
from guardrail.evals.results import EvaluationResult
from guardrail.evals.scores import score_value
from guardrail.evals.statistics import (
    Bin,
    Estimate,
    Line,
    Rate,
    as_json,
    bootstrap,
    costs_by_threshold,
    percent,
    precision_recall,
    reliability,
)
from guardrail.evals.truths import ERRORS, AnswerTruth, ClaimTruth, LabelsByResponse, answer_truth
from guardrail.events import Decision, Label, ResponseVerdict, Severity, Verdict
from guardrail.printable import escape_controls, shorten

FEW: Final = 10
"""Below so many right or wrong ones a figure says nothing."""
ROUGH: Final = 50
"""Below so many it says little: its interval is wide."""
WITHHELD: Final = frozenset({Decision.REDACT, Decision.BLOCK})
MISS_COSTS: Final = (1, 5, 20)
"""What a wrong answer that passes may cost, in false alarms: the curves of a report."""
SLICES: Final = ("route", "generator_model", "tenant", "severity", "category")
_MOST_VALUES: Final = 20
_MANY: Final = 20_000
_FEWER_ROUNDS: Final = 200
_NAME_CHARS: Final = 32

_Groups = Sequence[Sequence[tuple[bool, float]]]


_BY_SCORE: Final[Mapping[str, statistics.Figure]] = {
    "auroc": statistics.auroc,
    "average_precision": lambda truths, scores, weights: statistics.average_precision(
        ~truths, scores.max(initial=0) - scores, weights
    ),
}
_BY_VERDICT: Final[Mapping[str, statistics.Figure]] = {
    "balanced_accuracy": statistics.balanced_accuracy,
    "f1": lambda truths, scores, weights: statistics.f1(~truths, 1 - scores, weights),
    "kappa": statistics.cohen_kappa,
}
TITLES: Final = {
    "balanced_accuracy": "balanced accuracy",
    "auroc": "AUROC",
    "average_precision": "average precision (errors)",
    "f1": "F1 (errors)",
    "kappa": "Cohen's kappa",
    "calibration_error": "calibration error",
}


@dataclass(frozen=True, slots=True)
class AgreementLevel:
    """Agreement on claims, or on whole answers. ``unit`` is ``claims`` or ``answers``.

    ``figures`` are 0..1 (kappa -1..1), ``nan`` where the labels can't give them: ``balanced_accuracy``,
    ``f1`` and ``kappa`` of what the guard says; ``auroc`` and ``average_precision`` of its ranking, by
    support or score; for claims, ``calibration_error`` of the support. ``bins`` are for the calibration plot.
    """

    unit: str
    right: int
    wrong: int
    caught: Rate
    """Of the wrong ones those that the guard doesn't call supported; of answers, those it doesn't release."""
    false_alarms: Rate
    """The same of the right ones."""
    figures: Mapping[str, Estimate]
    bins: tuple[Bin, ...] = ()
    precision_recall: Line = ()
    """Of answers, by the score: recall and precision of the wrong ones as the threshold rises."""
    costs: Mapping[int, Line] = field(default_factory=dict)
    """Of answers, by what a miss costs in false alarms: the mean cost of acting below a score."""

    def data(self) -> dict[str, Any]:
        """What reports in JSON have of it."""
        counts = {name: getattr(self, name) for name in ("right", "wrong", "caught", "false_alarms")}
        return {**counts, **self.figures, "bins": self.bins}


@dataclass(frozen=True, slots=True)
class DecisionAgreement:
    """What the policy does to answers that people call right, and to those that they call wrong.

    A withheld answer is redacted or blocked. ``missed_by_severity`` has the wrong answers by the severity of
    their worst wrong claim, where a claim is known to be wrong.
    """

    wrongly_withheld: Rate
    wrongly_flagged: Rate
    missed: Rate
    """Wrong answers that are released untouched."""
    shown: Rate
    """Wrong answers that are shown: released or flagged."""
    missed_by_severity: Mapping[Severity, Rate]


@dataclass(frozen=True, slots=True)
class SliceAgreement:
    """Agreement on a part of the answers, or of the claims; slices of claims have no ``decisions``."""

    claims: AgreementLevel
    decisions: DecisionAgreement | None = None


@dataclass(frozen=True, slots=True)
class LabelCoverage:
    """What the labels reach. ``outside`` are marked errors that lie in no claim, which the guard therefore
    missed whatever the judge; ``stray`` labels are about answers that are not among the results, and
    ``unknown`` ones name claims that the results don't have. ``repeated`` answers have the id of an earlier
    one; ``ambiguous`` labels are about such an id, and count for every answer that has it.
    """

    answers: int
    labelled: int
    failed: int
    claims: int
    claims_known: int
    unverified: int
    disputed: int
    outside: int
    stray: int
    unknown: int = 0
    repeated: int = 0
    ambiguous: int = 0


@dataclass(frozen=True, slots=True)
class Agreement:
    """The whole of it. ``slices`` are by name ("route") and value; ``warnings`` are for people."""

    claims: AgreementLevel
    answers: AgreementLevel
    decisions: DecisionAgreement
    slices: Mapping[str, Mapping[str, SliceAgreement]]
    coverage: LabelCoverage
    warnings: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """As JSON, for reports; names of slices are as users gave them, and hostile."""
        return as_json(
            {
                "claims": self.claims.data(),
                "answers": self.answers.data(),
                "decisions": self.decisions,
                "slices": {
                    name: {
                        value: {"claims": part.claims.data(), "decisions": part.decisions}
                        for value, part in values.items()
                    }
                    for name, values in self.slices.items()
                },
                "coverage": self.coverage,
                "warnings": self.warnings,
            }
        )

    def lines(self) -> list[str]:
        """For a terminal, with all names escaped; in percent, with 95 % intervals."""
        told = [*_coverage_lines(self.coverage), *(f"! {warning}" for warning in self.warnings)]
        if not self.coverage.labelled:
            return told
        return [
            *told,
            *_level_lines(self.claims, "called supported"),
            *_level_lines(self.answers, "released"),
            *_decision_lines(self.decisions),
            *_slice_lines(self.slices),
        ]


class _JudgedAnswer(NamedTuple):
    result: EvaluationResult
    verdict: ResponseVerdict
    truth: AnswerTruth


def agreement(
    results: Iterable[EvaluationResult],
    labels: Iterable[Label] = (),
    *,
    score: str | None = None,
    mildest: Verdict = Verdict.PARTIALLY_SUPPORTED,
    rounds: int = statistics.ROUNDS,
) -> Agreement:
    """How far ``results`` agree with the labels in them and with ``labels``, which are joined by response id.

    ``score`` is the published score that ranks whole answers, by default the policy's own. ``mildest`` is the
    mildest verdict that counts as an error, of labels and of the guard alike. ``rounds`` are those of the
    bootstrap. Raises ValueError for an unknown score or ``mildest``.
    """
    if mildest not in ERRORS:
        raise ValueError(f"mildest: {mildest} is not an error; give one of {', '.join(ERRORS)}")
    results = list(results)
    extra = LabelsByResponse(labels)
    answers = []
    said_of: dict[str, tuple[Label, ...]] = {}
    for result in results:
        if result.verdict is not None:
            said = extra.of(result.verdict.response_id, result.labels)
            said_of[result.verdict.response_id] = said
            truth = answer_truth(result.verdict.claims, said, mildest)
            answers.append(_JudgedAnswer(result, result.verdict, truth))
    measure = _Measure(ERRORS[mildest], score, rounds)
    known = Counter(answer.verdict.response_id for answer in answers)
    coverage = LabelCoverage(
        answers=len(results),
        labelled=sum(_is_labelled(answer.truth) for answer in answers),
        failed=len(results) - len(answers),
        claims=sum(len(answer.verdict.claims) for answer in answers),
        claims_known=sum(len(answer.truth.claims) for answer in answers),
        unverified=sum(_is_unverified(each) for answer in answers for each in answer.truth.claims),
        disputed=sum(answer.truth.disputed for answer in answers),
        outside=sum(answer.truth.outside for answer in answers),
        stray=extra.stray(known),
        unknown=sum(answer.truth.unknown for answer in answers),
        repeated=len(answers) - len(known),
        ambiguous=sum(len(said) for name, said in said_of.items() if known[name] > 1),
    )
    claims = measure.claims([answer.truth.claims for answer in answers])
    whole = measure.answers(answers)
    return Agreement(
        claims=claims,
        answers=whole,
        decisions=_decisions(answers),
        slices={name: found for name in SLICES if (found := measure.slices(name, answers))},
        coverage=coverage,
        warnings=tuple(_warnings(claims, whole, coverage)),
    )


@dataclass(frozen=True, slots=True)
class _Measure:
    errors: frozenset[Verdict]
    score: str | None
    rounds: int

    def claims(self, groups: Sequence[Sequence[ClaimTruth]]) -> AgreementLevel:
        checked = [[each for each in group if not _is_unverified(each)] for group in groups]
        checked = [group for group in checked if group]
        said = [
            [(each.right, float(each.claim.verdict not in self.errors)) for each in group]
            for group in checked
        ]
        support = [[(each.right, each.claim.support or 0.0) for each in group] for group in checked]
        pairs = [pair for group in support for pair in group]
        return self._level(
            "claims",
            said,
            support,
            bins=tuple(reliability([t for t, _ in pairs], [p for _, p in pairs])) if pairs else (),
        )

    def answers(self, answers: Sequence[_JudgedAnswer]) -> AgreementLevel:
        known = [(answer, answer.truth.right) for answer in answers if answer.truth.right is not None]
        said = [[(right, float(_is_released(answer)))] for answer, right in known]
        scored = [
            [(right, value)] for answer, right in known if (value := self._score(answer.verdict)) is not None
        ]
        errors = np.array([not right for ((right, _),) in scored], dtype=bool)
        values = np.array([value for ((_, value),) in scored], dtype=float)
        return self._level(
            "answers",
            said,
            scored,
            precision_recall=precision_recall(errors, values),
            costs={miss: costs_by_threshold(errors, values, miss) for miss in MISS_COSTS},
        )

    def _level(self, unit: str, said: _Groups, ranked: _Groups, **charts: Any) -> AgreementLevel:
        """``said`` is 1 for what the guard lets pass, ``ranked`` how far it trusts it."""
        caught, false_alarms = (
            _rate([passed for group in said for right, passed in group if right is truth], operator.not_)
            for truth in (False, True)
        )
        size = sum(len(group) for group in said)
        rounds = self.rounds if size <= _MANY else min(self.rounds, _FEWER_ROUNDS)
        figures = {name: bootstrap(said, figure, rounds=rounds) for name, figure in _BY_VERDICT.items()}
        for name, figure in _BY_SCORE.items():
            figures[name] = bootstrap(ranked, figure, rounds=rounds, by_rank=True)
        if unit == "claims":
            figures["calibration_error"] = bootstrap(ranked, statistics.calibration_error, rounds=rounds)
        right, wrong = false_alarms.total, caught.total
        return AgreementLevel(unit, right, wrong, caught, false_alarms, figures, **charts)

    def slices(self, name: str, answers: Sequence[_JudgedAnswer]) -> dict[str, SliceAgreement]:
        """By value, those with the most answers or claims first; empty if no answer has one."""
        quick = _Measure(self.errors, self.score, min(self.rounds, _FEWER_ROUNDS))
        if name in {"severity", "category"}:
            groups = _claims_by(name, answers)
            return {value: SliceAgreement(quick.claims(found)) for value, found in groups.items()}
        by_value: dict[str, list[_JudgedAnswer]] = defaultdict(list)
        for answer in answers:
            response = answer.result.response
            value = getattr(response, name) if response is not None else None
            if value is not None and _is_labelled(answer.truth):
                by_value[value].append(answer)
        most = sorted(by_value, key=lambda value: (-len(by_value[value]), value))[:_MOST_VALUES]
        return {
            value: SliceAgreement(
                quick.claims([answer.truth.claims for answer in by_value[value]]), _decisions(by_value[value])
            )
            for value in most
        }

    def _score(self, verdict: ResponseVerdict) -> float | None:
        return verdict.score if self.score is None else score_value(self.score, verdict).value


def _claims_by(name: str, answers: Sequence[_JudgedAnswer]) -> dict[str, list[list[ClaimTruth]]]:
    """The claims of each value, by answer. Only wrong claims have categories."""
    by_value: dict[str, list[list[ClaimTruth]]] = defaultdict(list)
    for answer in answers:
        own: dict[str, list[ClaimTruth]] = defaultdict(list)
        for each in answer.truth.claims:
            for value in [str(each.severity)] if name == "severity" else each.categories:
                own[value].append(each)
        for value, claims in own.items():
            by_value[value].append(claims)
    if name == "severity":
        return {str(each): by_value[each] for each in reversed(Severity) if each in by_value}
    most = sorted(by_value, key=lambda value: (-sum(map(len, by_value[value])), value))[:_MOST_VALUES]
    return {value: by_value[value] for value in most}


def _decisions(answers: Sequence[_JudgedAnswer]) -> DecisionAgreement:
    right = [answer.verdict.decision for answer in answers if answer.truth.right is True]
    wrong = [answer for answer in answers if answer.truth.right is False]
    by_severity: dict[Severity, list[_JudgedAnswer]] = defaultdict(list)
    for answer in wrong:
        if (worst := answer.truth.worst) is not None:
            by_severity[worst].append(answer)
    return DecisionAgreement(
        wrongly_withheld=_rate(right, lambda decision: decision in WITHHELD),
        wrongly_flagged=_rate(right, lambda decision: decision is Decision.FLAG),
        missed=_rate(wrong, _is_released),
        shown=_rate(wrong, lambda answer: answer.verdict.decision not in WITHHELD),
        missed_by_severity={
            severity: _rate(by_severity[severity], _is_released)
            for severity in reversed(Severity)
            if severity in by_severity
        },
    )


def _rate(of: Sequence[Any], counts: Callable[[Any], bool]) -> Rate:
    return Rate(sum(map(counts, of)), len(of))


def _is_released(answer: _JudgedAnswer) -> bool:
    return answer.verdict.decision is Decision.RELEASE


def _is_unverified(truth: ClaimTruth) -> bool:
    return truth.claim.verdict is Verdict.UNVERIFIED


def _is_labelled(truth: AnswerTruth) -> bool:
    return truth.right is not None or bool(truth.claims) or bool(truth.disputed)


def _warnings(claims: AgreementLevel, answers: AgreementLevel, coverage: LabelCoverage) -> Iterable[str]:
    if coverage.unknown:
        yield (
            f"labels of claims that these results don't have, and without words: {coverage.unknown}, "
            "left out. Labels made under another policy need their 'policy' or a 'span'"
        )
    if coverage.repeated:
        yield (
            f"answers with the id of an earlier one: {coverage.repeated}; labels of such ids, which count "
            f"for each answer that has the id: {coverage.ambiguous}"
        )
    if not coverage.labelled:
        yield "no label is about any of these answers, so nothing can be said of agreement"
        return
    for level in (claims, answers):
        for kind, count in (("right", level.right), ("wrong", level.wrong)):
            unit = level.unit.removesuffix("s") if count == 1 else level.unit
            if count < FEW:
                yield (
                    f"{count} {unit} that people call {kind}: too few to say anything of {level.unit}; "
                    f"label at least {FEW}, better {ROUGH}"
                )
            elif count < ROUGH:
                yield (
                    f"{count} {unit} that people call {kind}: figures of {level.unit} are rough, see "
                    f"their intervals; {ROUGH} or more are better"
                )
    if coverage.outside:
        yield (
            f"{coverage.outside} marked {_plural(coverage.outside, 'error')} in no claim: the guard did not "
            "check those words, and figures of claims don't count them"
        )
    if coverage.stray:
        yield f"{coverage.stray} {_plural(coverage.stray, 'label')} about answers that are not in the results"


def _plural(count: int, noun: str) -> str:
    return f"{noun} is" if count == 1 else f"{noun}s are"


# ------------------------------------------------------------------------------------------ for terminals


def _coverage_lines(coverage: LabelCoverage) -> Iterable[str]:
    yield (
        f"Labels: {coverage.labelled:,} of {coverage.answers:,} answers, {coverage.claims_known:,} of "
        f"{coverage.claims:,} claims"
    )
    left_out = {
        "answers without a verdict": coverage.failed,
        "labelled claims unverified": coverage.unverified,
        "claims disputed": coverage.disputed,
    }
    counts = [f"{what} {count:,}" for what, count in left_out.items() if count]
    if counts:
        yield f"Left out: {', '.join(counts)}"
    if coverage.labelled:
        yield "In percent, with 95 % intervals; kappa from -1 to 1."


def _level_lines(level: AgreementLevel, passing: str) -> Iterable[str]:
    yield ""
    yield f"{level.unit.capitalize()}: {level.right:,} right, {level.wrong:,} wrong"
    yield _line(f"wrong, and not {passing}", percent(level.caught))
    yield _line(f"right, and not {passing}", percent(level.false_alarms))
    for name, estimate in level.figures.items():
        yield _line(TITLES[name], _kappa(estimate) if name == "kappa" else percent(estimate))


def _decision_lines(decisions: DecisionAgreement) -> Iterable[str]:
    yield ""
    yield "Decisions of the policy"
    yield _line("right answers withheld", percent(decisions.wrongly_withheld))
    yield _line("right answers flagged", percent(decisions.wrongly_flagged))
    yield _line("wrong answers released", percent(decisions.missed))
    yield _line("wrong answers shown (released or flagged)", percent(decisions.shown))
    for severity, rate in decisions.missed_by_severity.items():
        yield _line(f"  released, worst error {severity}", percent(rate))


def _slice_lines(slices: Mapping[str, Mapping[str, SliceAgreement]]) -> Iterable[str]:
    for name, values in slices.items():
        yield ""
        yield f"By {name.replace('_', ' ')}: right and wrong claims, wrong ones caught, false alarms, AUROC"
        for value, part in values.items():
            claims, auroc = part.claims, part.claims.figures["auroc"].value
            shown = escape_controls(shorten(value, _NAME_CHARS))
            yield (
                f"  {shown:<{_NAME_CHARS}} {claims.right:>6,} {claims.wrong:>6,}  "
                f"{percent(claims.caught):>20}  {percent(claims.false_alarms):>20}  "
                f"{'–' if math.isnan(auroc) else f'{100 * auroc:.1f}'}"
            )


def _kappa(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "–"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _line(title: str, figure: str) -> str:
    return f"  {title:<44} {figure}"
