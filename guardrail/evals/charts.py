"""The report's charts: SVG that its style sheet colours.

A chart holds numbers and the words of the guard only, never a text from the data. What a colour says, a
pattern or a word says too, and a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from guardrail.evals.statistics import Bin, Estimate, Rate
from guardrail.render import duration

_WIDTH, _HEIGHT = 1000, 250
_LEFT, _TOP = 52, 22
_WIDE, _FLOOR = _WIDTH - _LEFT - 12, _HEIGHT - 34.0
_TALL: Final = _FLOOR - _TOP
"""Curves and columns stand on ``_FLOOR``, ``_WIDE`` units of width and ``_TALL`` of height."""
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


def operating(style: str, name: str, caught: Rate, false_alarms: Rate) -> list[Spot]:
    """Recall and precision of a policy as a whole, rules included; none of one that acts on nothing."""
    acted = caught.count + false_alarms.count
    if not acted or not caught.total:
        return []
    return [Spot(style, name, caught.count / caught.total, caught.count / acted)]


def bar(parts: Sequence[Part]) -> Markup:
    """Shares of a whole, side by side over the width that there is."""
    whole = sum(part.number for part in parts)
    told = ", ".join(f"{part.number:,} {part.name}" for part in parts if part.number) or "none"
    pieces, at = [], 0.0
    for part in parts:
        if part.number:
            width = 100 * part.number / whole
            title = f"{part.name}: {part.number:,} ({width:.1f} %)"
            pieces += _filled(part.style, title, x=f"{at:.3f}%", width=f"{width:.3f}%", height="100%")
            at += width
    return _svg("bar", told, pieces)


def histogram(stacks: Sequence[Stack], lines: Sequence[Upright], label: str) -> Markup:
    """Stacked columns over 0 to 1, with named lines; those at ``nan`` are left out."""
    bins = len(stacks[0].counts)
    names = [f"{at / bins:.2f} to {(at + 1) / bins:.2f}, " for at in range(bins)]
    return _chart([*_columns(stacks, names, 1.5), *_tenths(), *_uprights(lines)], label)


def _columns(stacks: Sequence[Stack], names: Sequence[str], gap: float) -> list[Markup]:
    """Stacked columns, one for each of the names, over an axis of counts; with a gap on either side."""
    highest = max(sum(stack.counts[at] for stack in stacks) for at in range(len(names)))
    top, pieces = _counted_axis(highest)
    step = _WIDE / len(names)
    for at, name in enumerate(names):
        y = _FLOOR
        for stack in stacks:
            if count := stack.counts[at]:
                height = _TALL * count / top
                y -= height
                x, title = _LEFT + at * step + gap, f"{name}{stack.name}: {count:,}"
                pieces += _filled(stack.style, title, x=x, y=y, width=step - 2 * gap, height=height)
    return pieces


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
        return _across(x), _FLOOR - _TALL * min(1.0, y / high)

    pieces = []
    for quarter in range(5):
        value = high * quarter / 4
        pieces += _level(place(0.0, value)[1], f"{value:.3g}")
    pieces += _tenths()
    for each in drawn:
        path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in each.points)
        pieces.append(_tag("polyline", f"curve {each.style}", each.name, points=path))
    pieces += _uprights(lines)
    for spot in points:
        x, y = place(spot.x, spot.y)
        told = f"{spot.name}: {spot.x:.3f}, {spot.y:.3f}"
        pieces.append(_tag("circle", f"spot {spot.style}", told, cx=x, cy=y, r=6))
    return _chart(pieces, label)


def times(values_ms: Sequence[float], label: str) -> Markup:
    """Columns over the logarithm of a time in milliseconds."""
    found = np.maximum(np.asarray(values_ms, dtype=float), 0.1)
    low, high = math.floor(math.log10(found.min())), math.ceil(math.log10(found.max()))
    high = max(high, low + 1)
    counts, _ = np.histogram(np.log10(found), bins=_TIME_BINS, range=(low, high))
    edges = [duration(10 ** (low + (high - low) * at / _TIME_BINS)) for at in range(_TIME_BINS + 1)]
    names = [f"{start} to {end}" for start, end in pairwise(edges)]
    pieces = _columns([Stack("t", "", counts.tolist())], names, 1.0)
    for power in range(low, high + 1):
        x = _LEFT + _WIDE * (power - low) / (high - low)
        pieces.append(_text(x, _FLOOR + 18, duration(10.0**power), "end" if power == high else "middle"))
    return _chart(pieces, label)


def calibration(bins: Sequence[Bin], label: str) -> Markup:
    """The share that is true over the probability that was said; on the diagonal they agree."""
    size, left, floor = 260, 40, 270
    right = left + size
    pieces = [_tag("line", "diagonal", x1=left, y1=floor, x2=right, y2=floor - size)]
    for tenth in (0, 2, 4, 6, 8, 10):
        at = size * tenth / 10
        pieces += [
            _tag("line", "grid", x1=left, x2=right, y1=floor - at, y2=floor - at),
            _text(left + at, floor + 18, f"{tenth / 10:.1f}", "middle"),
            _text(left - 6, floor + 4 - at, f"{tenth / 10:.1f}", "end"),
        ]
    heaviest = max((each.weight for each in bins), default=1.0)
    for each in bins:
        x, y = left + size * each.predicted, floor - size * each.observed
        radius = 3 + 7 * math.sqrt(each.weight / heaviest)
        title = f"said {each.predicted:.2f}, true {each.observed:.2f}, {each.weight:,.0f}"
        pieces.append(_tag("circle", "dot", title, cx=x, cy=y, r=radius))
    return _svg("square", label, pieces, viewBox="0 0 310 300")


def interval(estimate: Estimate) -> Markup:
    """A value and its interval on a line from 0 to 1; empty where there is none."""
    if math.isnan(estimate.value):
        return Markup("")

    def at(value: float) -> str:
        return f"{2 + 96 * min(1.0, max(0.0, value)):.2f}%"

    start, end = (estimate.value if math.isnan(each) else each for each in (estimate.low, estimate.high))
    told = f"{estimate.value:.3f}, 95 % interval {start:.3f} to {end:.3f}"
    pieces = [
        _tag("line", "axis", x1="2%", x2="98%", y1="50%", y2="50%"),
        _tag("line", "range", x1=at(start), x2=at(end), y1="50%", y2="50%"),
        _tag("circle", "dot", cx=at(estimate.value), cy="50%", r=4),
        Markup("<title>{}</title>").format(told),
    ]
    return _svg("interval", told, pieces)


def _across(x: float) -> float:
    """Where 0 to 1 lies from left to right."""
    return _LEFT + _WIDE * min(1.0, max(0.0, x))


def _tenths() -> list[Markup]:
    return [_text(_across(n / 10), _FLOOR + 18, f"{n / 10:.1f}", "middle") for n in range(11)]


def _uprights(lines: Sequence[Upright]) -> list[Markup]:
    """Their names stand on either side of two lines, so that they don't overlap however close these are."""
    there = sorted((line for line in lines if not math.isnan(line.x)), key=lambda line: line.x)
    pieces = []
    for at, line in enumerate(there):
        x = _across(line.x)
        pieces.append(_tag("line", f"upright {line.style}", x1=x, x2=x, y1=_TOP - 6, y2=_FLOOR))
        left = line.x > 0.9 or (len(there) > 1 and at == 0 and line.x > 0.15)
        anchor = "end" if left else "start"
        pieces.append(_text(x + (-6 if left else 6), _TOP - 8, line.name, anchor, "strong"))
    return pieces


def _round_up(value: float, steps: Sequence[int] = (1, 2, 4, 5, 10)) -> float:
    """The next of these times a power of 10 that is no less; 1 of nothing."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in steps if unit * step >= value * (1 - 1e-9))


def _counted_axis(highest: int) -> tuple[int, list[Markup]]:
    """The top of an axis of counts, at least ``highest``, and its lines."""
    step = max(1, round(_round_up(highest / _MOST_TICKS, (1, 2, 5, 10))))
    top = max(1, math.ceil(highest / step)) * step
    lines = [_level(_FLOOR - _TALL * tick / top, f"{tick:,}") for tick in range(0, top + 1, step)]
    return top, [piece for line in lines for piece in line]


def _level(y: float, name: str) -> list[Markup]:
    """A line from left to right, and what it stands for."""
    return [
        _tag("line", "grid", x1=_LEFT, x2=_LEFT + _WIDE, y1=y, y2=y),
        _text(_LEFT - 8, y + 4, name, "end"),
    ]


def _filled(style: str, title: str, **where: float | str) -> list[Markup]:
    """A rectangle with its colour and its pattern."""
    return [_tag("rect", f"{kind} {style}", title, **where) for kind in ("fill", "hatch")]


def _text(x: float, y: float, text: str, anchor: str, style: str = "") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        style, x, y, anchor, text
    )


def _tag(name: str, style: str, title: str = "", **where: float | str) -> Markup:
    """An element of SVG; ``where`` are its attributes, numbers to one decimal."""
    told = Markup("").join(
        Markup(' {}="{}"').format(key, f"{value:.1f}" if isinstance(value, float) else value)
        for key, value in where.items()
    )
    if not title:
        return Markup('<{} class="{}"{}/>').format(name, style, told)
    return Markup('<{0} class="{1}"{2}><title>{3}</title></{0}>').format(name, style, told, title)


def _chart(pieces: Sequence[Markup], label: str) -> Markup:
    return _svg("chart", label, pieces, viewBox=f"0 0 {_WIDTH} {_HEIGHT}")


def _svg(style: str, label: str, pieces: Sequence[Markup], **more: str) -> Markup:
    told = Markup("").join(Markup(' {}="{}"').format(*each) for each in more.items())
    return Markup('<svg class="{}"{} role="img" aria-label="{}">{}</svg>').format(
        style, told, label, Markup("").join(pieces)
    )
