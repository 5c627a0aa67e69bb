"""The way of a record stays as short as docs/architecture.md says."""

from __future__ import annotations

from collections import Counter

from benchmarks.record_way import ENGINE, traced


async def test_the_way_of_a_delta_gets_no_longer() -> None:
    """A change that makes it longer says here, and in docs/architecture.md, what for."""
    way = await traced()
    entered = Counter(way.switches())
    assert len(way.calls) <= 130
    assert sum(entered.values()) - len(entered) <= 39
    assert entered[ENGINE] <= 4
