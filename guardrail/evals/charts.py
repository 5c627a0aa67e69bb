"""The report's charts: SVG that its style sheet colours.

A chart holds numbers and the words of the guard only, never a text from the data. What a colour says, a
pattern or a word says too, and a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from guardrail.evals.statistics import Bin, Estimate
from guardrail.render import duration

_WIDTH, _HEIGHT = 1000, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 22, 34
_MOST_TICKS: Final = 5
_TIME_BINS: Final = 40


class Part(NamedTuple):
    """One part of a bar: the class of its colour, what it is, how many."""

    style: str
    name: str
    number: int


class Stack(NamedTuple):
    """One column of a histogram: the class of its colour and its height, for each bin."""

    style: str
    name: str
    counts: Sequence[int]


class Upright(NamedTuple):
    """A line from top to bottom at ``x``, 0 to 1, with what it stands for written at its head."""

    style: str
    name: str
    x: float


class Curve(NamedTuple):
    """A line through points (x from 0 to 1, y from 0 on), and the class of its colour."""

    style: str
    name: str
    points: Sequence[tuple[float, float]]


class Spot(NamedTuple):
    """A point that stands for something of its own."""

    style: str
    name: str
    x: float
    y: float


def bar(parts: Sequence[Part]) -> Markup:
    """Shares of a whole, side by side over the width that there is."""
    whole = sum(part.number for part in parts)
    told = ", ".join(f"{part.number:,} {part.name}" for part in parts if part.number) or "none"
    pieces, at = [], 0.0
    for part in parts:
        if not part.number:
            continue
        width = 100 * part.number / whole
        title = f"{part.name}: {part.number:,} ({width:.1f} %)"
        pieces += [
            Markup(
                '<rect class="{}" x="{:.3f}%" width="{:.3f}%" height="100%"><title>{}</title></rect>'
            ).format(f"{kind} {part.style}", at, width, title)
            for kind in ("fill", "hatch")
        ]
        at += width
    return Markup('<svg class="bar" role="img" aria-label="{}">{}</svg>').format(
        told, Markup("").join(pieces)
    )


def histogram(stacks: Sequence[Stack], lines: Sequence[Upright], label: str) -> Markup:
    """Stacked columns over 0 to 1, with named lines; those at ``nan`` are left out."""
    bins = len(stacks[0].counts)
    highest = max((sum(stack.counts[at] for stack in stacks) for at in range(bins)), default=0)
    top, ticks = _ticks(highest)
    step = (_WIDTH - _LEFT - _RIGHT) / bins
    pieces = _grid(top, ticks)
    for at in range(bins):
        y = float(_HEIGHT - _BOTTOM)
        for stack in stacks:
            count = stack.counts[at]
            if not count:
                continue
            height = (_HEIGHT - _TOP - _BOTTOM) * count / top
            y -= height
            title = f"{at / bins:.2f} to {(at + 1) / bins:.2f}, {stack.name}: {count:,}"
            pieces += _column(stack.style, _LEFT + at * step + 1.5, y, step - 3, height, title)
    pieces += _tenths()
    pieces += _uprights(lines)
    return _chart(pieces, label)


def curve(
    drawn: Sequence[Curve],
    label: str,
    *,
    points: Sequence[Spot] = (),
    lines: Sequence[Upright] = (),
    top: float | None = None,
) -> Markup:
    """Curves over 0 to 1, up to ``top`` (by default the highest drawn), with named points and lines."""
    highest = max((point[1] for each in drawn for point in each.points), default=0.0)
    high = top if top is not None else _round_up(highest)

    def place(x: float, y: float) -> tuple[float, float]:
        return _across(x), _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(1.0, y / high)

    pieces = []
    for quarter in range(5):
        y = place(0.0, high * quarter / 4)[1]
        pieces.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _LEFT, _WIDTH - _RIGHT, y, y
            )
        )
        pieces.append(_text(_LEFT - 8, y + 4, f"{high * quarter / 4:.3g}", "end"))
    pieces += _tenths()
    for each in drawn:
        path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in each.points)
        pieces.append(
            Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>').format(
                f"curve {each.style}", path, each.name
            )
        )
    pieces += _uprights(lines)
    for spot in points:
        x, y = place(spot.x, spot.y)
        told = f"{spot.name}: {spot.x:.3f}, {spot.y:.3f}"
        pieces.append(
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="6"><title>{}</title></circle>').format(
                f"spot {spot.style}", x, y, told
            )
        )
    return _chart(pieces, label)


def times(values_ms: Sequence[float], label: str) -> Markup:
    """Columns over the logarithm of a time in milliseconds."""
    found = np.maximum(np.asarray(values_ms, dtype=float), 0.1)
    low, high = math.floor(math.log10(found.min())), math.ceil(math.log10(found.max()))
    high = max(high, low + 1)
    counts, _ = np.histogram(np.log10(found), bins=_TIME_BINS, range=(low, high))
    top, ticks = _ticks(int(counts.max()))
    pieces = _grid(top, ticks)
    wide = _WIDTH - _LEFT - _RIGHT
    step = wide / _TIME_BINS
    for at, count in enumerate(counts):
        if count:
            height = (_HEIGHT - _TOP - _BOTTOM) * int(count) / top
            start, end = (10 ** (low + (high - low) * edge / _TIME_BINS) for edge in (at, at + 1))
            title = f"{duration(start)} to {duration(end)}: {int(count):,}"
            pieces += _column("t", _LEFT + at * step + 1, _HEIGHT - _BOTTOM - height, step - 2, height, title)
    for power in range(low, high + 1):
        x = _LEFT + wide * (power - low) / (high - low)
        anchor = "end" if power == high else "middle"
        pieces.append(_text(x, _HEIGHT - _BOTTOM + 18, duration(10.0**power), anchor))
    return _chart(pieces, label)


def calibration(bins: Sequence[Bin], label: str) -> Markup:
    """The share that is true over the probability that was said; on the diagonal they agree."""
    size, left = 300, 40
    pieces = [
        Markup('<line class="diagonal" x1="{}" y1="{}" x2="{}" y2="10"/>').format(
            left, size - 30, left + size - 40
        )
    ]
    heaviest = max((each.weight for each in bins), default=1.0)
    for tenth in (0, 2, 4, 6, 8, 10):
        at = (size - 40) * tenth / 10
        pieces.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                left, left + size - 40, size - 30 - at, size - 30 - at
            )
        )
        pieces.append(_text(left + at, size - 12, f"{tenth / 10:.1f}", "middle"))
        pieces.append(_text(left - 6, size - 26 - at, f"{tenth / 10:.1f}", "end"))
    for each in bins:
        x, y = left + (size - 40) * each.predicted, size - 30 - (size - 40) * each.observed
        radius = 3 + 7 * math.sqrt(each.weight / heaviest)
        title = f"said {each.predicted:.2f}, true {each.observed:.2f}, {each.weight:,.0f}"
        pieces.append(
            Markup(
                '<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>'
            ).format(x, y, radius, title)
        )
    return Markup('<svg class="square" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        size + 10, size, label, Markup("").join(pieces)
    )


def interval(estimate: Estimate, low: float = 0.0, high: float = 1.0) -> Markup:
    """A value and its interval on a line from ``low`` to ``high``; empty where there is none."""
    if math.isnan(estimate.value):
        return Markup("")
    wide = high - low

    def at(value: float) -> float:
        return 2 + 96 * min(1.0, max(0.0, (value - low) / wide))

    start, end = (estimate.value if math.isnan(each) else each for each in (estimate.low, estimate.high))
    told = f"{estimate.value:.3f}, 95 % interval {start:.3f} to {end:.3f}"
    zero = (
        Markup('<line class="zero" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="100%"/>').format(at(0.0))
        if low < 0 < high
        else Markup("")
    )
    return Markup(
        '<svg class="interval" role="img" aria-label="{}">{}'
        '<line class="axis" x1="2%" x2="98%" y1="50%" y2="50%"/>'
        '<line class="range" x1="{:.2f}%" x2="{:.2f}%" y1="50%" y2="50%"/>'
        '<circle class="dot" cx="{:.2f}%" cy="50%" r="4"/><title>{}</title></svg>'
    ).format(told, zero, at(start), at(end), at(estimate.value), told)


def _across(x: float) -> float:
    """Where 0 to 1 lies from left to right."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * min(1.0, max(0.0, x))


def _tenths() -> list[Markup]:
    return [
        _text(_across(tenth / 10), _HEIGHT - _BOTTOM + 18, f"{tenth / 10:.1f}", "middle")
        for tenth in range(11)
    ]


def _uprights(lines: Sequence[Upright]) -> list[Markup]:
    """Their names stand on either side of two lines, so that they don't overlap however close these are."""
    there = sorted((line for line in lines if not math.isnan(line.x)), key=lambda line: line.x)
    pieces = []
    for at, line in enumerate(there):
        x = _across(line.x)
        pieces.append(
            Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>').format(
                f"upright {line.style}", x, x, _TOP - 6, _HEIGHT - _BOTTOM
            )
        )
        left = line.x > 0.9 or (len(there) > 1 and at == 0 and line.x > 0.15)
        anchor = "end" if left else "start"
        pieces.append(_text(x + (-6 if left else 6), _TOP - 8, line.name, anchor, "strong"))
    return pieces


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10 and so on that is no less; 1 of nothing."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 4, 5, 10) if unit * step >= value * (1 - 1e-9))


def _ticks(highest: int) -> tuple[int, list[int]]:
    """The top of an axis of counts, at least ``highest``, and where its lines are."""
    step = 1
    while highest / step > _MOST_TICKS:
        # 1, 2, 5, 10, 20, 50, …
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    top = max(1, math.ceil(highest / step)) * step
    return top, list(range(0, top + 1, step))


def _grid(top: int, ticks: Sequence[int]) -> list[Markup]:
    pieces = []
    for tick in ticks:
        y = _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * tick / top
        pieces.append(
            Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(
                _LEFT, _WIDTH - _RIGHT, y, y
            )
        )
        pieces.append(_text(_LEFT - 8, y + 4, f"{tick:,}", "end"))
    return pieces


def _column(style: str, x: float, y: float, width: float, height: float, title: str) -> list[Markup]:
    return [
        Markup(
            '<rect class="{} {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
            "<title>{}</title></rect>"
        ).format(kind, style, x, y, width, height, title)
        for kind in ("fill", "hatch")
    ]


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        style, x, y, anchor, text
    )


def _chart(pieces: Sequence[Markup], label: str) -> Markup:
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, label, Markup("").join(pieces)
    )
