"""A judge on claims that people labelled, set by set, and on sentences with one detail changed: in minutes.

    python -m benchmarks.offline_sets --data DIR [--rows N] [--pairs N] [--config FILE] [--json OUT]
        [--against OTHER.json] [--baselines [--untrained FOLDER]] [--report FOLDER]

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``, neither ever fitted on. Whatever judge the
configuration names (the local one by default) is asked for one claim at a time through its public interface.
``--rows`` and ``--pairs`` draw the same claims each time. Reported: AUROC and calibration error of support
and balanced accuracy of SUPPORTED, each set counting alike; how many claims that people call supported are
called CONTRADICTED; how many contradictions fall on such claims; changed critical details caught and false
alarms; what it makes of facts that were written for training and that nothing was fitted on; and what a claim
costs. ``--against`` compares with an earlier ``--json`` on the same claims: what is gained, and how many
verdicts differ. ``--baselines`` puts beside it word overlap, the local judge without its verifier, the
verifier alone (its highest reading) and, with ``--untrained``, its base (``training.export --base``).
``--report`` writes all as ``report.md`` with ``reliability.png``.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import uvloop

from benchmarks.answer_figures import percent_told
from benchmarks.baselines import baselines
from benchmarks.frame import command_line
from benchmarks.labelled_sets import (
    CRITICAL,
    EXPERTQA,
    FAITHFUL,
    POOL,
    changed_sentences,
    labelled_sets,
    require_files,
    written_claims,
)
from benchmarks.offline_report import markdown, plot
from guardrail.claims import BuiltinSeverityRater
from guardrail.config import LoggingSettings, load_settings
from guardrail.errors import GuardrailError
from guardrail.events import SegmentKind
from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from guardrail.offline.statistics import (
    ROUNDS,
    Estimate,
    Figure,
    Rate,
    auroc,
    balanced_accuracy,
    calibration_error,
    mean,
    reliability,
    told,
)
from training.rows import Row

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
    label: str
    support: float
    verdict: Verdict

    def value(self, figure: str) -> float:
        """What ``figure`` ranks or counts."""
        return self.support if figure == "auroc" else float(self.verdict is Verdict.SUPPORTED)


class Asking:
    """Asks a judge for single claims, and adds up what that takes."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._rater = BuiltinSeverityRater()
        self.claims = 0
        self.seconds = 0.0
        self.processor_seconds = 0.0

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
        found = next((one for one in said if one.claim_id == "c"), None)
        return _judged(row, found)

    async def all(self, sets: Mapping[str, Sequence[Row]]) -> dict[str, list[Judged]]:
        """Every row of every set, one after the other."""
        found = {}
        for name, rows in sets.items():
            found[name] = [await self.judged(row) for row in rows]
            print(f"  {name}: {len(rows)} claims", flush=True)
        return found


def _judged(row: Row, found: Judgement | None) -> Judged:
    if found is None or found.support is None:
        return Judged(row.supported, row.label, 0.0, Verdict.UNVERIFIED)
    return Judged(row.supported, row.label, found.support, found.verdict)


def figures(sets: Mapping[str, Sequence[Judged]], pairs: Mapping[str, Sequence[Judged]]) -> dict[str, Any]:
    """Everything that is reported but cost, ready for JSON but for ``nan``."""
    everything = [claim for claims in sets.values() for claim in claims]
    supported = [claim for claim in everything if claim.supported]
    contradicted = [claim for claim in everything if claim.verdict is Verdict.CONTRADICTED]
    table: dict[str, Counter[str]] = {}
    for claim in everything:
        table.setdefault(claim.label, Counter())[claim.verdict.value] += 1
    by_set = {name: _of_set(claims) for name, claims in sets.items()}
    pooled = [claim.supported for claim in everything], [claim.support for claim in everything], _even(sets)
    return {
        "macro": {name: asdict(_macro(sets, name)) for name in FIGURES}
        | {"calibration_error": {"value": mean([each["calibration_error"] for each in by_set.values()])}},
        "sets": by_set,
        "calibration_error_pooled": calibration_error(*pooled),
        "reliability": [list(each) for each in reliability(*pooled)],
        "supported_called_contradicted": Rate(
            sum(claim.verdict is Verdict.CONTRADICTED for claim in supported), len(supported)
        ).told(),
        "contradictions_of_supported": Rate(sum(c.supported for c in contradicted), len(contradicted)).told(),
        "verdicts_by_label": {label: dict(counts.most_common()) for label, counts in sorted(table.items())},
        "changed": {kind: _not_supported(claims) for kind, claims in pairs.items()},
        "critical_caught": mean([_not_supported(pairs[k]) for k in sorted(CRITICAL) if k in pairs]),
        "false_alarms": mean([_not_supported(pairs[k]) for k in FAITHFUL if k in pairs]),
        "each": {
            name: [[claim.supported, claim.support, claim.verdict.value] for claim in claims]
            for name, claims in sets.items()
        },
    }


def _even(sets: Mapping[str, Sequence[Judged]]) -> list[float]:
    """What each claim counts where sets count alike, and in each both classes."""
    weights: list[float] = []
    for claims in sets.values():
        count = Counter(claim.supported for claim in claims)
        weights.extend(1.0 / count[claim.supported] for claim in claims)
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


def _not_supported(claims: Sequence[Judged]) -> float:
    return mean([float(claim.verdict is not Verdict.SUPPORTED) for claim in claims])


def _macro(sets: Mapping[str, Sequence[Judged]], figure: str) -> Estimate:
    """The mean of the sets, each counting alike, and its interval where claims are drawn again."""
    return _drawn([_columns(claims, figure) for claims in sets.values()], FIGURES[figure])


def gained(
    sets: Mapping[str, Sequence[Judged]], before: Mapping[str, Sequence[Judged]], figure: str
) -> Estimate:
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


def differing(sets: Mapping[str, Sequence[Judged]], before: Mapping[str, Sequence[Judged]]) -> dict[str, Any]:
    """Of the same claims, judged twice: how many have another verdict, by which two, and by how much support
    differs."""
    both = [pair for name, claims in sets.items() for pair in zip(claims, before[name], strict=True)]
    others = Counter(f"{b.verdict} -> {a.verdict}" for a, b in both if a.verdict is not b.verdict)
    apart = [abs(a.support - b.support) for a, b in both]
    return {
        "verdicts": Rate(sum(others.values()), len(both)).told(),
        "pairs": dict(others.most_common()),
        "support": {"mean": mean(apart), "p99": float(np.quantile(apart, 0.99)), "most": max(apart)},
    }


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
        name: [Judged(supported, "", support, Verdict(verdict)) for supported, support, verdict in claims]
        for name, claims in raw["each"].items()
    }


def printed(found: Mapping[str, Any]) -> str:
    """The figures for people, in percent but for counts and times."""
    lines = [f"{'set':24}{'claims':>8}{'AUROC':>8}{'bal. acc.':>11}{'cal. error':>12}"]
    lines += [
        f"{name:24}{each['claims']:8}{100 * each['auroc']:8.1f}{100 * each['balanced_accuracy']:11.1f}"
        f"{100 * each['calibration_error']:12.1f}"
        for name, each in found["sets"].items()
    ]
    lines += [f"macro {name:18} {percent_told(found['macro'][name])}" for name in FIGURES]
    lines.append(
        f"calibration error: macro {100 * found['macro']['calibration_error']['value']:.1f}, "
        f"pooled {100 * found['calibration_error_pooled']:.1f}"
    )
    lines += [
        f"{words:24} {found[key]['count']} of {found[key]['of']}: {percent_told(found[key])}"
        for words, key in (
            ("supported, CONTRADICTED", "supported_called_contradicted"),
            ("of all CONTRADICTED", "contradictions_of_supported"),
        )
    ]
    lines += [
        f"  {label:22} {', '.join(f'{verdict} {count}' for verdict, count in counts.items())}"
        for label, counts in found["verdicts_by_label"].items()
    ]
    if found["changed"]:
        changed = ", ".join(f"{kind} {100 * share:.0f}" for kind, share in found["changed"].items())
        lines += [
            f"not SUPPORTED: {changed}",
            f"critical details caught  {100 * found['critical_caught']:.1f}, "
            f"false alarms {100 * found['false_alarms']:.1f}",
        ]
    cost = found["cost"]
    lines.append(
        f"{cost['claims']} claims, {cost['unverified']} UNVERIFIED; each {cost['ms_a_claim']:.1f} ms, "
        f"{cost['processor_ms_a_claim']:.1f} ms of processor time"
    )
    for name, gain in found.get("gained", {}).items():
        lines.append(f"gained, {name}: {percent_told(gain)}")
    if "differing" in found:
        other = found["differing"]
        lines.append(
            f"other verdicts: {other['verdicts']['count']} of {other['verdicts']['of']}: "
            f"{percent_told(other['verdicts'])}; "
            + ", ".join(f"{pair} {count}" for pair, count in other["pairs"].items())
        )
        lines.append("support differs by: " + ", ".join(f"{k} {v:.4f}" for k, v in other["support"].items()))
    for name, other in found.get("baselines", {}).items():
        lines.append(f"{name}: " + ", ".join(f"{key} {percent_told(other['macro'][key])}" for key in FIGURES))
    return "\n".join(lines)


async def _measured(judge: Judge, sets: dict[str, list[Row]], pairs: dict[str, list[Row]]) -> Any:
    """All figures of a judge, which is closed then; and what it said."""
    print(f"{judge.name}:", flush=True)
    try:
        await Asking(judge).judged(next(iter(sets.values()))[0])  # what is loaded lazily is not timed
        asking = Asking(judge)
        judged, changed = await asking.all(sets), await asking.all(pairs)
    finally:
        await judge.aclose()
    found = figures(judged, changed)
    found["cost"] = {
        "claims": asking.claims,
        "unverified": sum(c.verdict is Verdict.UNVERIFIED for claims in judged.values() for c in claims),
        "ms_a_claim": 1000 * asking.seconds / max(1, asking.claims),
        "processor_ms_a_claim": 1000 * asking.processor_seconds / max(1, asking.claims),
    }
    return found, judged


async def _run(options: argparse.Namespace, sets: dict[str, list[Row]], pairs: dict[str, list[Row]]) -> Any:
    settings = options.settings.judge
    others = baselines(settings.local, options.untrained) if options.baselines else []
    judge = build_judge(settings)
    found, judged = await _measured(judge, sets, pairs)
    found["judge"] = judge.name
    if options.before is not None:
        found["gained"] = {name: asdict(gained(judged, options.before, name)) for name in FIGURES}
        found["differing"] = differing(judged, options.before)
    found["baselines"] = {each.name: (await _measured(each, sets, pairs))[0] for each in others}
    for each in found["baselines"].values():
        del each["each"]
    return found


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
    parser.add_argument(
        "--untrained", type=Path, help="an exported verifier that wasn't trained, to compare with"
    )
    parser.add_argument("--report", type=Path, help="folder for report.md and reliability.png (matplotlib)")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    configure_logging(LoggingSettings(level="warning"))
    try:
        options.settings = load_settings(options.config)
        options.before = known(options.against) if options.against else None
        sets = labelled_sets(options.data, options.rows, SEED)
        sets = {name: rows for name, rows in sets.items() if len({row.supported for row in rows}) == 2}
        pairs: dict[str, list[Row]] = {}
        if options.pairs:
            pairs = changed_sentences(options.data, options.pairs, SEED)
            pairs |= written_claims(4 * options.pairs, SEED)
        found = uvloop.run(_run(options, sets, pairs))
    except (OSError, ValueError, GuardrailError) as error:
        parser.error(f"{type(error).__name__}: {error}")
    print(printed(found))
    if options.json is not None:
        options.json.write_text(json.dumps(told(found)) + "\n", encoding="utf-8")
    if options.report is not None:
        _report(options, found)


def _report(options: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """``report.md`` and ``reliability.png`` in the folder."""
    options.report.mkdir(parents=True, exist_ok=True)
    judges = {**found["baselines"], f"{found['judge']} judge": found}
    claims = sum(each["claims"] for each in found["sets"].values())
    cost = found["cost"]
    head = (
        f"{dt.datetime.now(tz=dt.UTC).date().isoformat()}, {claims:,} claims of {len(found['sets'])} sets "
        "labelled by people, none of which anything was fitted on; positive for AUROC are claims that are "
        f"wholly supported. The {found['judge']} judge took {cost['ms_a_claim']:.1f} ms a claim, "
        f"{cost['processor_ms_a_claim']:.1f} ms of processor time. Made by "
        "`python -m benchmarks.offline_sets --data DIR --baselines --report FOLDER` (docs/training.md)."
    )
    (options.report / "report.md").write_text(markdown(judges, head), encoding="utf-8")
    try:
        plot(options.report / "reliability.png", judges)
    except ImportError:
        print("reliability.png is not drawn: matplotlib is not installed (extra: training)")


if __name__ == "__main__":
    main()
