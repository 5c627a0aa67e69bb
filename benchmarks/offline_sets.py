"""A judge on claims that people labelled, set by set, and on sentences with one detail changed: in minutes.

    python -m benchmarks.offline_sets --data DIR [--rows N] [--pairs N] [--config FILE] [--json OUT]
        [--against OTHER.json] [--baselines] [--report FOLDER]

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``, neither ever fitted on. Whatever judge the
configuration names (the local one by default) is asked for one claim at a time through its public interface.
``--rows`` and ``--pairs`` draw the same claims each time. Reported: AUROC and calibration error of support
and balanced accuracy of SUPPORTED, each set counting alike; how many claims that people call supported are
called CONTRADICTED; how many contradictions fall on such claims; changed critical details caught and false
alarms; what it makes of facts that were written for training and that nothing was fitted on; and what a claim
costs. ``--against`` compares with an earlier ``--json`` on the same claims: what is gained, and how many
verdicts differ. ``--baselines`` puts beside it the local judge without its verifier, and the verifier alone
(its highest reading).
``--report`` writes ``report.md``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import uvloop

from benchmarks.answer_figures import counted
from benchmarks.baselines import baselines
from benchmarks.frame import command_line
from benchmarks.labelled_sets import (
    CRITICAL,
    EXPERTQA,
    FAITHFUL,
    POOL,
    labelled_sets,
    made_claims,
    require_files,
)
from benchmarks.offline_report import report
from guardrail.claims import BuiltinSeverityRater
from guardrail.config import LoggingSettings, load_settings
from guardrail.errors import GuardrailError
from guardrail.evals.statistics import (
    ROUNDS,
    Estimate,
    Figure,
    Rate,
    as_json,
    auroc,
    balanced_accuracy,
    calibration_error,
    percent,
)
from guardrail.events import SegmentKind
from guardrail.judges import Judge, JudgeRequest, Verdict
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from training.rows import SUPPORTED_SHARE, Row

SEED: Final = 20260101
_UNHURRIED_S: Final = 3600.0
FIGURES: Final[Mapping[str, Figure]] = {
    "auroc": auroc,
    "balanced_accuracy": balanced_accuracy,
}
"""Those that have an interval: claims drawn again would only raise a calibration error."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim: what people say, and what the judge says; without a verdict support is 0."""

    supported: bool
    support: float
    verdict: Verdict

    def value(self, figure: str) -> float:
        """What ``figure`` ranks or counts."""
        return self.support if figure == "auroc" else float(self.verdict is Verdict.SUPPORTED)


Sets = Mapping[str, Sequence[Judged]]


class Asking:
    """Asks a judge for single claims, and adds up what that takes."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._rater = BuiltinSeverityRater()
        self.claims = self.unverified = 0
        self.seconds = self.processor_seconds = 0.0

    async def judged(self, row: Row) -> Judged:
        """The row's claim, as the guard would put it; the time includes the index of its contexts."""
        severity, _ = self._rater.rate(row.claim, SegmentKind.SENTENCE)
        begun, busy = time.perf_counter(), time.process_time()
        request = JudgeRequest(
            response_id="offline",
            question=row.question,
            claims={"c": row.as_claim(severity)},
            evidence=row.index(),
            deadline=time.monotonic() + _UNHURRIED_S,
        )
        said = [judgement async for judgement in self._judge.judge(request)]
        self.seconds += time.perf_counter() - begun
        self.processor_seconds += time.process_time() - busy
        self.claims += 1
        found = next((one for one in said if one.claim_id == "c" and one.support is not None), None)
        if found is None or found.support is None:
            self.unverified += 1
            return Judged(row.supported, 0.0, Verdict.UNVERIFIED)
        return Judged(row.supported, found.support, found.verdict)

    async def all(self, sets: Mapping[str, Sequence[Row]]) -> dict[str, list[Judged]]:
        """Every row of every set, one after the other."""
        return {name: [await self.judged(row) for row in rows] for name, rows in sets.items()}

    def cost(self) -> str:
        """What a claim took."""
        each_ms, busy_ms = (1000 * s / max(1, self.claims) for s in (self.seconds, self.processor_seconds))
        return (
            f"took {each_ms:.1f} ms a claim, {busy_ms:.1f} ms of processor time; {self.unverified} UNVERIFIED"
        )


def figures(sets: Sets, pairs: Sets) -> dict[str, Any]:
    """Everything that is reported but cost."""
    everything = [claim for claims in sets.values() for claim in claims]
    supported = [claim for claim in everything if claim.supported]
    contradicted = [claim for claim in everything if claim.verdict is Verdict.CONTRADICTED]
    by_set = {name: _of_set(claims) for name, claims in sets.items()}
    pooled = (
        [claim.supported for claim in everything],
        [claim.support for claim in everything],
        _weights(sets),
    )
    return {
        "macro": {
            **{name: _macro(sets, name) for name in FIGURES},
            "calibration_error": mean([each["calibration_error"] for each in by_set.values()]),
        },
        "sets": by_set,
        "calibration_error_pooled": calibration_error(*pooled),
        "supported_called_contradicted": Rate(
            sum(claim.verdict is Verdict.CONTRADICTED for claim in supported), len(supported)
        ),
        "contradictions_of_supported": Rate(sum(c.supported for c in contradicted), len(contradicted)),
        "changed": {kind: _not_supported(claims) for kind, claims in pairs.items()},
        "critical_caught": mean([_not_supported(pairs[k]) for k in sorted(CRITICAL) if k in pairs]),
        "false_alarms": mean([_not_supported(pairs[k]) for k in FAITHFUL if k in pairs]),
        "each": {
            name: [[claim.supported, claim.support, claim.verdict.value] for claim in claims]
            for name, claims in sets.items()
        },
    }


def _weights(sets: Sets) -> list[float]:
    """What each claim counts where sets count alike, and in each supported claims ``SUPPORTED_SHARE``."""
    weights: list[float] = []
    share = {True: SUPPORTED_SHARE, False: 1.0 - SUPPORTED_SHARE}
    for claims in sets.values():
        count = Counter(claim.supported for claim in claims)
        weights.extend(share[claim.supported] / count[claim.supported] for claim in claims)
    return weights


def _of_set(claims: Sequence[Judged]) -> dict[str, float]:
    truths = [claim.supported for claim in claims]
    ones = np.ones(len(claims))
    found = {name: figure(*_columns(claims, name), ones) for name, figure in FIGURES.items()}
    return {
        "claims": len(claims),
        **found,
        "calibration_error": calibration_error(truths, [claim.support for claim in claims]),
    }


def mean(values: Sequence[float]) -> float:
    """The mean of those that are figures; ``nan`` where none is."""
    found = [value for value in values if not math.isnan(value)]
    return sum(found) / len(found) if found else math.nan


def _not_supported(claims: Sequence[Judged]) -> float:
    return mean([float(claim.verdict is not Verdict.SUPPORTED) for claim in claims])


def _macro(sets: Sets, figure: str) -> Estimate:
    """The mean of the sets, each counting alike, and its interval where claims are drawn again."""
    return _drawn([_columns(claims, figure) for claims in sets.values()], FIGURES[figure])


def gained(sets: Sets, before: Sets, figure: str) -> Estimate:
    """The mean of the sets less that of ``before``, which holds the same claims judged otherwise.

    Both are drawn together, so that what is hard in a claim for both does not widen the interval. Raises
    ValueError where the claims are others.
    """
    pairs = []
    for name, claims in sets.items():
        others = before.get(name, [])
        if [claim.supported for claim in claims] != [claim.supported for claim in others]:
            raise ValueError(f"{name} holds other claims there: give the same --rows")
        truths, values = _columns(claims, figure)
        pairs.append((truths, np.stack([values, _columns(others, figure)[1]])))

    def less(truths: Any, values: Any, weights: Any) -> float:
        return FIGURES[figure](truths, values[0], weights) - FIGURES[figure](truths, values[1], weights)

    return _drawn(pairs, less)


def differing(sets: Sets, before: Sets) -> str:
    """Of the same claims, judged twice: how many have another verdict, by which two, and by how much support
    differs."""
    both = [pair for name, claims in sets.items() for pair in zip(claims, before[name], strict=True)]
    others = Counter(f"{b.verdict} -> {a.verdict}" for a, b in both if a.verdict is not b.verdict)
    apart = [abs(a.support - b.support) for a, b in both]
    return (
        f"other verdicts: {counted(Rate(others.total(), len(both)))}; "
        + ", ".join(f"{pair} {count}" for pair, count in others.most_common())
        + f"\nsupport differs by: mean {mean(apart):.4f}, p99 {np.quantile(apart, 0.99):.4f}, "
        f"most {max(apart):.4f}"
    )


def _columns(claims: Sequence[Judged], figure: str) -> tuple[Any, Any]:
    return (
        np.array([claim.supported for claim in claims], dtype=bool),
        np.array([claim.value(figure) for claim in claims], dtype=float),
    )


def _drawn(sets: Sequence[tuple[Any, Any]], figure: Figure) -> Estimate:
    random = np.random.default_rng(SEED)

    def once(draw: bool) -> float:
        found = []
        for truths, values in sets:
            count = len(truths)
            times = np.bincount(random.integers(0, count, count), minlength=count) if draw else np.ones(count)
            found.append(figure(truths, values, times))
        return mean(found)

    value = once(draw=False)
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan)
    low, high = np.nanquantile([once(draw=True) for _ in range(ROUNDS)], (0.025, 0.975))
    return Estimate(value, float(low), float(high))


def known(path: Path) -> dict[str, list[Judged]]:
    """The claims of an earlier run. Raises OSError, or ValueError where the file is something else."""
    raw = json.loads(path.read_bytes())
    if not isinstance(raw, dict) or "each" not in raw:
        raise ValueError(f"{path} is not of --json")
    return {
        name: [Judged(supported, support, Verdict(verdict)) for supported, support, verdict in claims]
        for name, claims in raw["each"].items()
    }


Rows = Mapping[str, list[Row]]


async def _measured(
    judge: Judge, sets: Rows, pairs: Rows
) -> tuple[dict[str, Any], dict[str, list[Judged]], str]:
    """All figures of a judge, which is closed then; what it said; and what that cost."""
    print(f"{judge.name} …", flush=True)
    try:
        await Asking(judge).judged(next(iter(sets.values()))[0])  # what is loaded lazily is not timed
        asking = Asking(judge)
        judged, changed = await asking.all(sets), await asking.all(pairs)
    finally:
        await judge.aclose()
    return figures(judged, changed), judged, asking.cost()


async def _run(options: argparse.Namespace, sets: Rows, pairs: Rows) -> None:
    settings = options.settings.judge
    others = baselines(settings.local) if options.baselines else []
    judge = build_judge(settings)
    found, judged, cost = await _measured(judge, sets, pairs)
    judges = {each.name: (await _measured(each, sets, pairs))[0] for each in others}
    judges[f"{judge.name} judge"] = found
    head = (
        f"{dt.datetime.now(tz=dt.UTC).date()}, {sum(map(len, sets.values())):,} claims of {len(sets)}"
        " sets labelled by people, none of which anything was fitted on; positive for AUROC are claims that "
        f"are wholly supported. The {judge.name} judge {cost}. Made by "
        "`python -m benchmarks.offline_sets --data DIR --baselines --report FOLDER` (docs/training.md)."
    )
    text = report(judges, head)
    print(text)
    if options.before is not None:
        for name in FIGURES:
            print(f"gained, {name}: {percent(gained(judged, options.before, name))}")
        print(differing(judged, options.before))
    if options.json is not None:
        kept = {name: {**each, "each": None} for name, each in judges.items() if each is not found}
        options.json.write_text(json.dumps(as_json({**found, "baselines": kept})) + "\n", encoding="utf-8")
    if options.report is not None:
        options.report.mkdir(parents=True, exist_ok=True)
        (options.report / "report.md").write_text(text, encoding="utf-8")


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled sets")
    parser.add_argument("--rows", type=int, default=1000, help="most claims of one set (sampled)")
    parser.add_argument("--pairs", type=int, default=150, help="most changed sentences of a kind; 0: none")
    parser.add_argument("--config", type=Path, help="configuration that names the judge; default: none")
    parser.add_argument("--json", type=Path, help="write all figures, and each verdict, to this file")
    parser.add_argument("--against", type=Path, help="an earlier --json to compare with")
    parser.add_argument("--baselines", action="store_true", help="measure plain ones beside it")
    parser.add_argument("--report", type=Path, help="folder for report.md")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    configure_logging(LoggingSettings(level="warning"))
    try:
        options.settings = load_settings(options.config)
        options.before = known(options.against) if options.against else None
        sets = labelled_sets(options.data, options.rows, SEED)
        sets = {name: rows for name, rows in sets.items() if len({row.supported for row in rows}) == 2}
        pairs = made_claims(options.data, options.pairs, SEED) if options.pairs else {}
        uvloop.run(_run(options, sets, pairs))
    except (OSError, ValueError, GuardrailError) as error:
        parser.error(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
