"""What a soak shows: straight lines through the samples, the verdict, the plot and the summary.

Part of ``benchmarks.soak``.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

MEMORY_GROWTH_AN_HOUR = 0.05
"""Flat: the fitted growth of resident memory, less two standard errors, is under this share an hour."""


class Sample(NamedTuple):
    """The guard at one moment."""

    seconds: float
    """Since the load began."""
    rss_mib: float
    fds: int
    threads: int
    cpu: float
    """CPUs used since the sample before."""
    in_flight: int
    """Responses begun that have no final event yet."""
    lag: int
    """Input records written and not committed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A least-squares line through samples, ``slope`` a second, and the standard error of the slope."""

    slope: float
    start: float
    error: float


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict and what it rests on."""

    flat: bool
    samples: int
    responses: int
    answered: int
    rss_mean_mib: float
    rss_growth_mib_an_hour: float
    rss_growth_error_mib_an_hour: float
    fds_first_third: float
    fds_last_third: float
    fds_most: int
    threads_most: int
    cpu_mean: float
    lag_most: int
    exit_status: int


def fit(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """The line, for three samples or more."""
    slope, start = statistics.linear_regression(xs, ys)
    mean = statistics.fmean(xs)
    spread = sum((x - mean) ** 2 for x in xs)
    rest = sum((y - start - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    return Line(slope, start, math.sqrt(rest / (len(xs) - 2) / spread))


def judge(
    samples: Sequence[Sample],
    warm_up_s: float,
    load_s: float,
    responses: int,
    answered: int,
    exit_status: int,
) -> tuple[Result, Line]:
    """Is it flat? Memory by its fit, descriptors by the medians of the first and the last third.

    What counts is the time of steady load, from the end of the warm-up to ``load_s``. Raises ValueError where
    that holds fewer than three samples.
    """
    counted = [sample for sample in samples if warm_up_s <= sample.seconds <= load_s]
    if len(counted) < 3:
        raise ValueError(
            f"only {len(counted)} samples after the warm-up: the guard ended, or the run is short"
        )
    line = fit([s.seconds for s in counted], [s.rss_mib for s in counted])
    mean = statistics.fmean(s.rss_mib for s in counted)
    third = max(1, len(counted) // 3)
    first = statistics.median(s.fds for s in counted[:third])
    last = statistics.median(s.fds for s in counted[-third:])
    grows = (line.slope - 2 * line.error) * 3600 > MEMORY_GROWTH_AN_HOUR * mean
    result = Result(
        flat=not grows and last <= first and exit_status == 0 and answered == responses,
        samples=len(counted),
        responses=responses,
        answered=answered,
        rss_mean_mib=round(mean, 1),
        rss_growth_mib_an_hour=round(line.slope * 3600, 2),
        rss_growth_error_mib_an_hour=round(line.error * 3600, 2),
        fds_first_third=first,
        fds_last_third=last,
        fds_most=max(s.fds for s in counted),
        threads_most=max(s.threads for s in counted),
        cpu_mean=round(statistics.fmean(s.cpu for s in counted), 2),
        lag_most=max(s.lag for s in counted),
        exit_status=exit_status,
    )
    return result, line


def write(
    out: Path, name: str, title: str, samples: Sequence[Sample], result: Result, line: Line, warm_up_s: float
) -> None:
    """``name``.png, ``name``.json and ``name``.md in ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = asdict(result)
    data = {"title": title, **facts, "fields": Sample._fields, "samples": [list(s) for s in samples]}
    (out / f"{name}.json").write_text(json.dumps(data) + "\n")
    rows = "\n".join(f"| {key.replace('_', ' ')} | {value} |" for key, value in facts.items())
    (out / f"{name}.md").write_text(f"# Soak: {title}\n\n![]({name}.png)\n\n| | |\n|---|---|\n{rows}\n")
    _plot(out / f"{name}.png", title, samples, line, warm_up_s)


def _plot(path: Path, title: str, samples: Sequence[Sample], line: Line, warm_up_s: float) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    minutes = [sample.seconds / 60 for sample in samples]
    figure, axes = plt.subplots(4, 1, figsize=(10, 11), sharex=True, layout="constrained")
    figure.suptitle(title)
    memory, descriptors, load, cpu = axes
    memory.plot(minutes, [s.rss_mib for s in samples], lw=1, label="resident")
    ends = [warm_up_s, samples[-1].seconds]
    label = f"fit after the warm-up: {line.slope * 3600:+.1f} ± {2 * line.error * 3600:.1f} MiB an hour"
    memory.plot([x / 60 for x in ends], [line.start + line.slope * x for x in ends], "--", label=label)
    memory.set_ylabel("MiB")
    descriptors.plot(minutes, [s.fds for s in samples], lw=1, label="open file descriptors")
    descriptors.plot(minutes, [s.threads for s in samples], lw=1, label="threads")
    load.plot(minutes, [s.in_flight for s in samples], lw=1, label="responses in flight")
    load.plot(minutes, [s.lag for s in samples], lw=1, label="input records not committed")
    cpu.plot(minutes, [s.cpu for s in samples], lw=1, label="CPUs used")
    cpu.set_xlabel("minutes")
    for axis in axes:
        axis.axvspan(0, warm_up_s / 60, color="0.92")
        axis.set_ylim(bottom=0)
        axis.legend(loc="lower right")
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)
