"""A judge on claims that people labelled, set by set, and on sentences with one detail changed: in minutes.

    python -m benchmarks.offline_sets --data DIR [--rows N] [--pairs N] [--config FILE] [--json OUT]
        [--against OTHER.json]

``DIR`` holds ``pool-val.jsonl.gz`` and ``expertqa-val.jsonl``, neither ever fitted on. Whatever judge the
configuration names (the local one by default) is asked for one claim at a time through its public interface.
``--rows`` and ``--pairs`` draw the same claims each time. Reported: AUROC of support and balanced accuracy of
SUPPORTED, each set counting alike; how many claims that people call supported are called CONTRADICTED; how
many contradictions fall on such claims; changed critical details caught and false alarms; and what a claim
costs. ``--against`` compares with an earlier ``--json`` on the same claims. ``training.evaluate`` has more
figures, of the parts of the local judge and of plain baselines, too.
"""

from __future__ import annotations

import argparse
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

from benchmarks.intervals import (
    ROUNDS,
    Estimate,
    Figure,
    Rate,
    percent,
    weighted_auroc,
    weighted_balanced_accuracy,
)
from benchmarks.labelled_sets import EXPERTQA, POOL, require_files
from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.config import LoggingSettings, load_settings
from guardrail.errors import GuardrailError
from guardrail.events import SegmentKind, Verdict
from guardrail.judges.base import Judge, Judgement, JudgeRequest
from guardrail.judges.factory import build_judge
from guardrail.logs import configure_logging
from training.evaluation_data import CRITICAL, FAITHFUL, labelled, made
from training.metrics import mean, without_nan
from training.rows import Row

SEED: Final = 20260101
_UNHURRIED_S: Final = 3600.0
FIGURES: Final[Mapping[str, Figure]] = {
    "auroc": weighted_auroc,
    "balanced_accuracy": weighted_balanced_accuracy,
}


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
        reply = await self._judge.judge(
            JudgeRequest(
                response_id="offline",
                question=row.question,
                claims={"c": row.as_claim(severity)},
                evidence=row.index(),
                deadline=time.monotonic() + _UNHURRIED_S,
            )
        )
        self.seconds += time.perf_counter() - begun
        self.processor_seconds += time.process_time() - busy
        self.claims += 1
        found = next((one for one in reply.judgements if one.claim_id == "c"), None)
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
    return {
        "macro": {name: asdict(_macro(sets, name)) for name in FIGURES},
        "sets": {name: _of_set(claims) for name, claims in sets.items()},
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


def _of_set(claims: Sequence[Judged]) -> dict[str, float]:
    truths = np.array([claim.supported for claim in claims])
    ones = np.ones(len(claims))
    return {"claims": len(claims)} | {
        name: figure(truths, np.array([claim.value(name) for claim in claims]), ones)
        for name, figure in FIGURES.items()
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
    lines = [f"{'set':24}{'claims':>8}{'AUROC':>8}{'bal. acc.':>11}"]
    lines += [
        f"{name:24}{each['claims']:8}{100 * each['auroc']:8.1f}{100 * each['balanced_accuracy']:11.1f}"
        for name, each in found["sets"].items()
    ]
    lines += [f"macro {name:18} {percent(found['macro'][name])}" for name in FIGURES]
    lines += [
        f"{words:24} {found[key]['count']} of {found[key]['of']}: {percent(found[key])}"
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
        lines.append(f"gained, {name}: {percent(gain)}")
    return "\n".join(lines)


async def _run(options: argparse.Namespace, sets: dict[str, list[Row]], pairs: dict[str, list[Row]]) -> Any:
    judge = build_judge(options.settings.judge)
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
    if options.before is not None:
        found["gained"] = {name: asdict(gained(judged, options.before, name)) for name in FIGURES}
    return found


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled sets")
    parser.add_argument("--rows", type=int, default=1000, help="most claims of one set (sampled)")
    parser.add_argument("--pairs", type=int, default=150, help="most changed sentences of a kind; 0: none")
    parser.add_argument("--config", type=Path, help="configuration that names the judge; default: none")
    parser.add_argument("--json", type=Path, help="write all figures, and each verdict, to this file")
    parser.add_argument("--against", type=Path, help="an earlier --json to compare with")
    options = parser.parse_args()
    require_files(parser, options.data, POOL, EXPERTQA)
    configure_logging(LoggingSettings(level="warning"))
    try:
        options.settings = load_settings(options.config)
        options.before = known(options.against) if options.against else None
        sets = labelled(options.data, limit=options.rows, seed=SEED)
        pairs = made(options.data, limit=options.pairs, seed=SEED) if options.pairs else {}
        found = uvloop.run(_run(options, sets, pairs))
    except (OSError, ValueError, GuardrailError) as error:
        parser.error(f"{type(error).__name__}: {error}")
    print(printed(found))
    if options.json is not None:
        options.json.write_text(json.dumps(without_nan(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
