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

import numpy as np

from guardrail.evals import charts
from guardrail.evals.aims import FAITHFUL, LEAST_RANK, THRESHOLD, WRONG, By
from guardrail.evals.calibration import Fitted, FittedBand
from guardrail.evals.records import Judged
from guardrail.evals.report import rendered
from guardrail.evals.search import Deciding
from guardrail.evals.statistics import COLUMNS, Array, Line, Point, Rate, binned, precision_recall
from guardrail.evals.tuning import ForShare, Tuned, classes_of, differences, number
from guardrail.policy import Policy

_CLASSES: Final = ("d-release", "d-block")
"""Styles of faithful and of wrong answers."""
_CUTS: Final = 101


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


def write_tuning_report(path: Path, page: TuningPage, tuned: Tuned, responses: Sequence[Judged]) -> None:
    """The page of a policy that was chosen from labels. ``responses`` are those that it is for, calibrated
    where it is to be. Raises OSError.
    """
    aim = tuned.aim
    threshold = THRESHOLD[aim.by]
    classes = classes_of(responses, aim)
    deciding = Deciding([each.verdict for each in responses], tuned.policy)
    scores = deciding.scores(tuned.policy.weights)[0]
    wrong, faithful = classes == WRONG, classes == FAITHFUL
    columns = {"faithful": binned(scores[faithful]), f"with {aim.error}": binned(scores[wrong])}
    cuts = _cuts(getattr(tuned.baseline, threshold), getattr(tuned.policy, threshold), "tuned")
    known = wrong | faithful
    by_score = charts.Curve("", "by the score alone", precision_recall(wrong[known], scores[known]))
    before, after = (counts.rates(aim.by) for counts in (tuned.baseline_counts, tuned.held_out))
    spots = [
        *charts.operating("now", "now", before["caught"], before["false alarms"]),
        *charts.operating("tuned", "tuned, held out", after["caught"], after["false alarms"]),
    ]
    _write(
        path,
        page,
        tuned=tuned,
        aim=str(aim),
        before=before,
        after=after,
        gains=differences(tuned),
        threshold=threshold,
        classes=list(zip(_CLASSES, columns, strict=True)),
        columns=columns,
        histogram=charts.histogram(
            [
                charts.Stack(style, name, counts)
                for style, (name, counts) in zip(_CLASSES, columns.items(), strict=True)
            ],
            cuts,
            "Scores of answers by what people say of them",
        ),
        operating=[spot.name for spot in spots],
        precision_recall=charts.curve([by_score], "Precision over recall", points=spots, top=1.0),
        costs=charts.curve(
            [charts.Curve("", "cost of an answer", _costs(deciding, wrong, faithful, tuned))],
            f"Cost of an answer over {threshold}",
            lines=cuts,
        ),
        miss=aim.cost_miss or 1.0,
        false_alarm=aim.cost_false or 1.0,
    )


def _cuts(now: float, then: float, chosen: str) -> list[charts.Upright]:
    """The threshold before and after; one line where they are the same."""
    if now == then:
        return [charts.Upright("tuned", f"now and {chosen} {number(now)}", now)]
    return [
        charts.Upright("now", f"now {number(now)}", now),
        charts.Upright("tuned", f"{chosen} {number(then)}", then),
    ]


def _costs(deciding: Deciding, wrong: Array, faithful: Array, tuned: Tuned) -> Line:
    """What an answer costs over the threshold, all else as tuned."""
    aim, policy, found = tuned.aim, tuned.policy, []
    total = max(1, int(wrong.sum() + faithful.sum()))
    flags = aim.by == "flag"
    for cut in np.linspace(policy.block_below if flags else 0.0, 1.0, _CUTS):
        flag, block = (cut, policy.block_below) if flags else (max(cut, policy.flag_below), cut)
        acts = deciding.ranks(deciding.bounds(), flag, block, policy.weights) >= LEAST_RANK[aim.by]
        missed, false = int((wrong & ~acts).sum()), int((faithful & acts).sum())
        cost = (aim.cost_miss or 1.0) * missed + (aim.cost_false or 1.0) * false
        found.append(Point(float(cut), cost / total))
    return tuple(found)


def write_suggestion_report(
    path: Path,
    page: TuningPage,
    suggested: ForShare,
    base: Policy,
    by: By,
    share: float,
    responses: Sequence[Judged],
) -> None:
    """The page of a threshold that was chosen without labels, from the scores alone. Raises OSError."""
    deciding = Deciding([each.verdict for each in responses], base)
    counts = binned(deciding.scores(base.weights)[0 if by == "flag" else 1])
    now, then = (getattr(each, THRESHOLD[by]) for each in (base, suggested.policy))
    _write(
        path,
        page,
        tuned=None,
        suggested=suggested,
        aim=f"{by} {share:.2%} of all answers, whatever is right or wrong",
        threshold=THRESHOLD[by],
        cuts={"now": now, "tuned": then},
        columns={"answers": counts},
        histogram=charts.histogram(
            [charts.Stack("t", "answers", counts)],
            _cuts(now, then, "suggested"),
            f"Distribution of {sum(counts):,} scores",
        ),
    )


def _write(path: Path, page: TuningPage, **values: Any) -> None:
    text = rendered(
        "tuning.html.j2",
        written=datetime.now(UTC),
        title="Thresholds from labelled answers" if values["tuned"] else "Thresholds without labels",
        run=page,
        bins=COLUMNS,
        interval=charts.interval,
        calibration=charts.calibration,
        filters={"number": number, "estimate": Rate.estimate},
        **values,
    )
    path.write_text(text, encoding="utf-8", newline="\n")
