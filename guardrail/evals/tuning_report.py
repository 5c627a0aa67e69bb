"""The report of ``guardrail tune``: one HTML file that needs nothing else, as ``report`` makes them.

It shows what the evidence is, so it is written also where the policy had better stay as it is.
Needs the extra ``report`` (Jinja2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from guardrail.evals import charts
from guardrail.evals.aims import By
from guardrail.evals.bands import FittedBand
from guardrail.evals.calibration import Fitted
from guardrail.evals.curves import BINS, TuningCurves, binned, threshold_name, threshold_of
from guardrail.evals.deciding import Deciding
from guardrail.evals.labelled import Judged
from guardrail.evals.policy_file import differences, number
from guardrail.evals.report import rendered
from guardrail.evals.statistics import Rate
from guardrail.evals.tuning import ForShare, Tuned
from guardrail.policy import Policy

_CLASSES: Final = ("d-release", "d-block")
"""Styles of faithful and of wrong answers."""


@dataclass(frozen=True, slots=True)
class TuningPage:
    """What both kinds of page tell: of which policy and files, and the text of the policy's file.

    ``settings`` stand at the head by name (files, counts); ``findings`` and ``warnings`` are sentences for
    people; ``where`` says whether and where the policy was written.
    """

    name: str
    settings: dict[str, str]
    findings: Sequence[str]
    warnings: Sequence[str]
    policy_text: str
    where: str
    fitted: Sequence[Fitted] = ()
    bands: Sequence[FittedBand] = ()


def write_tuning_report(
    path: Path, page: TuningPage, tuned: Tuned, curves: TuningCurves, *, written: datetime | None = None
) -> None:
    """The page of a policy that was chosen from labels. Raises OSError."""
    aim = tuned.aim
    stacks = [
        charts.Stack(style, name, counts)
        for style, (name, counts) in zip(_CLASSES, curves.scores.items(), strict=True)
    ]
    cuts = [
        charts.Upright("now", f"now {number(curves.now)}", curves.now),
        charts.Upright("tuned", f"tuned {number(curves.tuned)}", curves.tuned),
    ]
    if curves.now == curves.tuned:
        cuts = [charts.Upright("tuned", f"now and tuned {number(curves.now)}", curves.now)]
    spots = [
        charts.Spot("now" if name == "now" else "tuned", name, *point)
        for name, point in curves.operating.items()
    ]
    _write(
        path,
        page,
        written,
        tuned=tuned,
        aim=str(aim),
        before=tuned.baseline_counts.rates(aim.by),
        after=tuned.held_out.rates(aim.by),
        gains=differences(tuned),
        threshold=curves.threshold,
        classes=list(zip(_CLASSES, curves.scores, strict=True)),
        columns=curves.scores,
        histogram=charts.histogram(stacks, cuts, "Scores of answers by what people say of them"),
        operating=list(curves.operating),
        precision_recall=charts.curve(
            [charts.Curve("", "by the score alone", curves.precision_recall)],
            "Precision over recall",
            points=spots,
            top=1.0,
        ),
        costs=charts.curve(
            [charts.Curve("", "cost of an answer", curves.costs)],
            f"Cost of an answer over {curves.threshold}",
            lines=cuts,
        ),
        miss=aim.cost_miss or 1.0,
        false_alarm=aim.cost_false or 1.0,
    )


def write_suggestion_report(
    path: Path,
    page: TuningPage,
    suggested: ForShare,
    base: Policy,
    by: By,
    share: float,
    responses: Sequence[Judged],
    *,
    written: datetime | None = None,
) -> None:
    """The page of a threshold that was chosen without labels, from the scores alone. Raises OSError."""
    deciding = Deciding([each.verdict for each in responses], base)
    counts = binned(deciding.scores(base.weights)[0 if by == "flag" else 1])
    now, then = threshold_of(base, by), threshold_of(suggested.policy, by)
    cuts = [
        charts.Upright("now", f"now {number(now)}", now),
        charts.Upright("tuned", f"suggested {number(then)}", then),
    ]
    if now == then:
        cuts = [charts.Upright("tuned", f"now and suggested {number(now)}", now)]
    _write(
        path,
        page,
        written,
        tuned=None,
        suggested=suggested,
        aim=f"{by} {share:.2%} of all answers, whatever is right or wrong",
        threshold=threshold_name(by),
        cuts={"now": now, "tuned": then},
        columns={"answers": counts},
        histogram=charts.histogram(
            [charts.Stack("t", "answers", counts)], cuts, f"Distribution of {sum(counts):,} scores"
        ),
    )


def _write(path: Path, page: TuningPage, written: datetime | None, **values: Any) -> None:
    text = rendered(
        "tuning.html.j2",
        written=written or datetime.now(UTC),
        title="Thresholds from labelled answers" if values["tuned"] else "Thresholds without labels",
        run=page,
        findings=page.findings,
        warnings=page.warnings,
        fitted=page.fitted,
        bands=page.bands,
        policy_text=page.policy_text,
        written_where=page.where,
        bins=BINS,
        interval=charts.interval,
        calibration=charts.calibration,
        filters={"number": number, "estimate": Rate.estimate},
        **values,
    )
    path.write_text(text, encoding="utf-8", newline="\n")
