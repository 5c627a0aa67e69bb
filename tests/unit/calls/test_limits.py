"""What holds calls back: times of late, the circuit breaker, the number of calls."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.calls import AdaptiveLimit, BreakerState, CircuitBreaker, RecentTimes
from guardrail.calls.limits import SILENT_S
from tests.unit.judges.llm.chatting import Clock

BUSY = 1_000  # calls that want to be sent: more than any limit


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


def breaker(clock: Clock, **changes: Any) -> CircuitBreaker:
    values: dict[str, Any] = {"window_s": 10.0, "min_calls": 4, "open_s": 5.0}
    return CircuitBreaker("llm:test", clock, **values | changes)


def state(tested: CircuitBreaker) -> BreakerState:
    return tested.state


def end(tested: CircuitBreaker, *results: bool | None) -> None:
    for ok in results:
        admission = tested.admit()
        assert admission is not None
        admission.record(ok=ok)


def opened(clock: Clock, **changes: Any) -> CircuitBreaker:
    tested = breaker(clock, **changes)
    end(tested, False, False, False, False)
    assert state(tested) is BreakerState.OPEN
    return tested


def test_it_opens_when_the_share_of_failures_is_reached() -> None:
    tested = breaker(Clock())
    end(tested, True, True, False)
    assert state(tested) is BreakerState.CLOSED
    end(tested, False)
    assert state(tested) is BreakerState.OPEN
    assert tested.admit() is None


def test_few_failures_do_not_open_it() -> None:
    tested = breaker(Clock())
    end(tested, False, False, False)
    assert state(tested) is BreakerState.CLOSED


def test_a_smaller_share_of_failures_does_not_open_it() -> None:
    tested = breaker(Clock())
    end(tested, *[True, True, True, False] * 20)
    assert state(tested) is BreakerState.CLOSED


def test_what_is_older_than_the_window_does_not_count() -> None:
    clock = Clock()
    tested = breaker(clock)
    end(tested, False, False, False)
    clock.now += 10.0
    end(tested, False)
    assert state(tested) is BreakerState.CLOSED
    end(tested, False, False, False)
    assert state(tested) is BreakerState.OPEN


def test_what_ended_without_telling_anything_does_not_count() -> None:
    tested = breaker(Clock())
    end(tested, False, False, False, None, None, None)
    assert state(tested) is BreakerState.CLOSED


def test_after_a_time_it_lets_a_few_probes_through_and_no_more() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 4.9
    assert tested.admit() is None
    clock.now += 0.1
    assert state(tested) is BreakerState.HALF_OPEN
    assert tested.admit() is not None
    assert tested.admit() is not None
    assert tested.admit() is None


def test_it_closes_when_all_probes_succeed() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    end(tested, True)
    assert state(tested) is BreakerState.HALF_OPEN
    end(tested, True)
    assert state(tested) is BreakerState.CLOSED
    # What failed before it opened is forgotten.
    end(tested, False, False, False)
    assert state(tested) is BreakerState.CLOSED


def test_one_probe_that_fails_opens_it_again_for_the_whole_time() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    end(tested, True, False)
    assert state(tested) is BreakerState.OPEN
    clock.now += 4.9
    assert tested.admit() is None
    clock.now += 0.1
    assert tested.admit() is not None


def test_a_probe_that_was_cancelled_makes_room_for_another() -> None:
    clock = Clock()
    tested = opened(clock, probes=1)
    clock.now += 5.0
    end(tested, None, None, None)
    assert state(tested) is BreakerState.HALF_OPEN
    end(tested, True)
    assert state(tested) is BreakerState.CLOSED


def test_a_call_from_before_it_opened_says_nothing_of_the_probes() -> None:
    clock = Clock()
    tested = breaker(clock)
    late_good, late_bad = tested.admit(), tested.admit()
    assert late_good is not None
    assert late_bad is not None
    end(tested, False, False, False, False)
    clock.now += 5.0
    assert state(tested) is BreakerState.HALF_OPEN
    late_good.record(ok=True)
    late_bad.record(ok=False)
    assert state(tested) is BreakerState.HALF_OPEN
    end(tested, True, True)
    assert state(tested) is BreakerState.CLOSED


def test_only_the_first_word_on_a_call_counts() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    admission = tested.admit()
    assert admission is not None
    admission.record(ok=True)
    admission.record(ok=None)
    admission.record(ok=True)
    assert state(tested) is BreakerState.HALF_OPEN


def hang(tested: CircuitBreaker, times: int) -> None:
    for _ in range(times):
        admission = tested.admit()
        assert admission is not None
        admission.record(ok=False, hung=True)


def test_a_server_that_hangs_is_left_alone_after_few_calls() -> None:
    clock = Clock()
    tested = breaker(clock, min_calls=10)
    end(tested, True)
    clock.now += 10.0
    hang(tested, 2)
    assert state(tested) is BreakerState.CLOSED
    hang(tested, 1)
    assert state(tested) is BreakerState.OPEN


def test_a_server_that_answers_others_in_the_meantime_does_not_hang() -> None:
    clock = Clock()
    tested = breaker(clock, min_calls=100)
    for _ in range(5):
        end(tested, True)
        clock.now += SILENT_S - 0.1
        hang(tested, 4)
        end(tested, False)  # an error is an answer
    assert state(tested) is BreakerState.CLOSED


def test_a_call_that_was_given_up_counts_by_the_time_that_it_had() -> None:
    clock = Clock()
    tested = breaker(clock, min_calls=100)
    for _ in range(5):
        early = tested.admit()
        assert early is not None
        clock.now += 1.9
        early.given_up(2.0)
    assert state(tested) is BreakerState.CLOSED
    late = [tested.admit() for _ in range(3)]
    clock.now += 2.0
    for admission in late:
        assert admission is not None
        admission.given_up(2.0)
    assert state(tested) is BreakerState.OPEN
    assert tested.last_failure == "no answer in time"


def adaptive(maximum: int = 64, **changes: Any) -> AdaptiveLimit:
    return AdaptiveLimit(maximum, **changes)


def run_round(limit: AdaptiveLimit, capacity: int) -> int:
    """As many calls as are allowed, all under way together; those above the capacity are refused."""
    sent, began_in = limit.limit, limit.round
    for number in range(sent):
        if number < capacity:
            limit.succeeded(began_in, BUSY, None)
        else:
            limit.overloaded(began_in)
    return sent


@pytest.mark.parametrize("capacity", [1, 3, 8, 20, 50])
@pytest.mark.parametrize("initial", [1, 16, 64])
def test_it_finds_the_capacity_of_the_server_and_stays_near_it(capacity: int, initial: int) -> None:
    limit = adaptive(initial=initial)
    rounds = [run_round(limit, capacity) for _ in range(300)][-100:]
    assert min(rounds) >= int(capacity * 0.6)
    assert max(rounds) <= capacity + 2
    refused = sum(max(0, sent - capacity) for sent in rounds)
    assert refused <= 0.4 * sum(rounds)


def test_a_server_with_room_is_used_up_to_the_maximum() -> None:
    limit = adaptive(maximum=40, initial=1)
    assert [run_round(limit, 100) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 40, 40]


def test_it_follows_a_capacity_that_changes() -> None:
    limit = adaptive(initial=8)
    for capacity in (20, 5, 40):
        rounds = [run_round(limit, capacity) for _ in range(200)][-20:]
        assert capacity * 0.6 <= sum(rounds) / len(rounds) <= capacity + 2


def test_it_begins_with_all_that_is_allowed_unless_told_otherwise() -> None:
    assert adaptive(maximum=40).limit == 40
    assert adaptive(maximum=40, initial=3).limit == 3


def test_a_limit_that_is_far_too_high_is_halved_until_a_call_succeeds() -> None:
    limit = adaptive(initial=64, decrease=0.75)
    seen = []
    for _ in range(4):
        limit.overloaded(limit.round)
        seen.append(limit.limit)
    assert seen == [48, 24, 12, 6]
    limit.succeeded(limit.round, 1, None)
    limit.overloaded(limit.round)
    assert limit.limit == 4


def test_it_never_leaves_its_bounds() -> None:
    limit = adaptive(maximum=6, minimum=3, initial=100)
    assert limit.limit == 6
    for _ in range(50):
        limit.overloaded(limit.round)
    assert limit.limit == 3


def test_the_minimum_yields_to_a_smaller_maximum() -> None:
    assert adaptive(maximum=2, minimum=5, initial=5).limit == 2


def test_calls_refused_together_count_once() -> None:
    limit = adaptive(initial=10, decrease=0.5)
    began_in = limit.round
    for _ in range(10):
        limit.overloaded(began_in)
    assert limit.limit == 5


def test_it_does_not_rise_while_there_is_no_demand() -> None:
    """What nobody has tried is not known to be borne."""
    limit = adaptive(initial=10)
    for _ in range(1_000):
        limit.succeeded(limit.round, 3, None)
    assert limit.limit == 10


def test_a_server_that_queues_is_sent_fewer() -> None:
    limit = adaptive(initial=32, latency_tolerance=3.0)
    for _ in range(50):
        limit.succeeded(limit.round, 1, 0.2)
    assert limit.limit == 32
    for _ in range(40):
        limit.succeeded(limit.round, 32, 2.0)
    assert limit.limit < 16


def test_noise_and_a_lasting_change_are_no_overload() -> None:
    limit = adaptive(initial=32, latency_tolerance=3.0)
    for number in range(500):
        limit.succeeded(limit.round, 1, 0.1 if number % 5 else 0.6)
    assert limit.limit == 32
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.5)
    low = limit.limit
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.5)
    assert limit.limit >= low
