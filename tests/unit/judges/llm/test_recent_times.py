from __future__ import annotations

from guardrail.judges.llm.recent_times import RecentTimes
from tests.unit.judges.llm.chatting import Clock


def test_quantiles() -> None:
    times = RecentTimes(clock=Clock())
    for seconds in range(1, 101):
        times.add(float(seconds))
    assert times.quantile(0.5) == 51.0
    assert times.quantile(0.95) == 96.0


def test_too_few_samples_say_nothing() -> None:
    times = RecentTimes(clock=Clock())
    assert times.quantile(0.5) is None
    times.add(1.0)
    assert times.quantile(0.5) == 1.0
    assert times.quantile(0.5, min_samples=2) is None


def test_samples_expire() -> None:
    """Else a server that was slow once, and is given up without a call since then, stayed slow for ever."""
    clock = Clock()
    times = RecentTimes(window_s=60.0, clock=clock)
    times.add(9.0)
    clock.now += 30.0
    times.add(1.0)
    assert times.quantile(0.99) == 9.0
    clock.now += 31.0
    assert times.quantile(0.99) == 1.0
    clock.now += 30.0
    assert times.quantile(0.99) is None


def test_memory_is_bounded_and_the_latest_are_kept() -> None:
    times = RecentTimes(clock=Clock())
    for _ in range(1_000):
        times.add(9.0)
    for _ in range(256):
        times.add(1.0)
    assert times.quantile(0.99) == 1.0
