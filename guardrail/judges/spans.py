"""Spans within a claim's text: made sound, whoever offers them."""

from __future__ import annotations

from guardrail.events import Span


def spans_within(text: str, offered: object) -> tuple[Span, ...]:
    """The spans ``[start, end)`` of ``offered`` that lie in ``text``, in code points: ascending, and apart.

    One that is no pair of whole numbers, is empty, or reaches out of the text is left out. Those that overlap
    or touch are one. ``offered`` may be anything; what is no list or tuple has none.
    """
    if not isinstance(offered, list | tuple):
        return ()
    found: list[Span] = []
    for start, end in sorted(span for item in offered if (span := _span(item)) and span[1] <= len(text)):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def _span(item: object) -> Span | None:
    if not isinstance(item, list | tuple) or len(item) != 2 or not all(type(at) is int for at in item):
        return None
    start, end = item
    return (start, end) if 0 <= start < end else None
