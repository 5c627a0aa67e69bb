"""The way of a record stays as short as docs/architecture.md says."""

from __future__ import annotations

from collections import Counter

from benchmarks.record_way import ENGINE, traced


async def test_the_way_of_a_delta_gets_no_longer() -> None:
    """Two thirds, two fifths and a third of what it was, whatever the test's own loop adds."""
    way = await traced()
    entered = Counter(way.switches())
    assert len(way.calls) <= 139
    # Three more since what Kafka and the gateway publish is made in one place, consumers/outputs.py.
    assert sum(entered.values()) - len(entered) <= 47
    assert entered[ENGINE] <= 6
