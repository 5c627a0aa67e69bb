from __future__ import annotations

from typing import Any

from guardrail.judges.llm.circuit_breaker import CircuitBreaker, State
from guardrail.judges.llm.endpoint_settings import CircuitBreakerSettings
from tests.unit.judges.llm.chatting import Clock


def breaker(clock: Clock, **changes: Any) -> CircuitBreaker:
    values = {"failure_rate": 0.5, "window_ms": 10_000, "min_calls": 4, "open_ms": 5_000, "probes": 2}
    return CircuitBreaker(CircuitBreakerSettings.model_validate(values | changes), "llm:test", clock)


def state(tested: CircuitBreaker) -> State:
    return tested.state


def end(tested: CircuitBreaker, *results: bool | None) -> None:
    for ok in results:
        admission = tested.admit()
        assert admission is not None
        admission.record(ok=ok)


def opened(clock: Clock, **changes: Any) -> CircuitBreaker:
    tested = breaker(clock, **changes)
    end(tested, False, False, False, False)
    assert state(tested) is State.OPEN
    return tested


def test_it_opens_when_the_share_of_failures_is_reached() -> None:
    tested = breaker(Clock())
    end(tested, True, True, False)
    assert state(tested) is State.CLOSED
    end(tested, False)
    assert state(tested) is State.OPEN
    assert tested.admit() is None


def test_few_failures_do_not_open_it() -> None:
    tested = breaker(Clock())
    end(tested, False, False, False)
    assert state(tested) is State.CLOSED


def test_a_smaller_share_of_failures_does_not_open_it() -> None:
    tested = breaker(Clock())
    end(tested, *[True, True, True, False] * 20)
    assert state(tested) is State.CLOSED


def test_what_is_older_than_the_window_does_not_count() -> None:
    clock = Clock()
    tested = breaker(clock)
    end(tested, False, False, False)
    clock.now += 10.0
    end(tested, False)
    assert state(tested) is State.CLOSED
    end(tested, False, False, False)
    assert state(tested) is State.OPEN


def test_what_ended_without_telling_anything_does_not_count() -> None:
    tested = breaker(Clock())
    end(tested, False, False, False, None, None, None)
    assert state(tested) is State.CLOSED


def test_after_a_time_it_lets_a_few_probes_through_and_no_more() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 4.9
    assert tested.admit() is None
    clock.now += 0.1
    assert state(tested) is State.HALF_OPEN
    assert tested.admit() is not None
    assert tested.admit() is not None
    assert tested.admit() is None


def test_it_closes_when_all_probes_succeed() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    end(tested, True)
    assert state(tested) is State.HALF_OPEN
    end(tested, True)
    assert state(tested) is State.CLOSED
    # What failed before it opened is forgotten.
    end(tested, False, False, False)
    assert state(tested) is State.CLOSED


def test_one_probe_that_fails_opens_it_again_for_the_whole_time() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    end(tested, True, False)
    assert state(tested) is State.OPEN
    clock.now += 4.9
    assert tested.admit() is None
    clock.now += 0.1
    assert tested.admit() is not None


def test_a_probe_that_was_cancelled_makes_room_for_another() -> None:
    clock = Clock()
    tested = opened(clock, probes=1)
    clock.now += 5.0
    end(tested, None, None, None)
    assert state(tested) is State.HALF_OPEN
    end(tested, True)
    assert state(tested) is State.CLOSED


def test_a_call_from_before_it_opened_says_nothing_of_the_probes() -> None:
    clock = Clock()
    tested = breaker(clock)
    late_good, late_bad = tested.admit(), tested.admit()
    assert late_good is not None
    assert late_bad is not None
    end(tested, False, False, False, False)
    clock.now += 5.0
    assert state(tested) is State.HALF_OPEN
    late_good.record(ok=True)
    late_bad.record(ok=False)
    assert state(tested) is State.HALF_OPEN
    end(tested, True, True)
    assert state(tested) is State.CLOSED


def test_only_the_first_word_on_a_call_counts() -> None:
    clock = Clock()
    tested = opened(clock)
    clock.now += 5.0
    admission = tested.admit()
    assert admission is not None
    admission.record(ok=True)
    admission.record(ok=None)
    admission.record(ok=True)
    assert state(tested) is State.HALF_OPEN


def test_switched_off_it_stays_closed() -> None:
    tested = breaker(Clock(), enabled=False)
    end(tested, *[False] * 50)
    assert state(tested) is State.CLOSED
