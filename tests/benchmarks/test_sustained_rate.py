"""How many answers are under way says whether guards keep up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.sustained_rate import Ended, Third

RATE, SECONDS = 10, 30


def answers(takes: Callable[[float], float]) -> list[Ended]:
    begun = [number / RATE for number in range(RATE * SECONDS)]
    return [Ended(at, at + takes(at), takes(at), right=True, error="") for at in begun]


def under_way(takes: Callable[[float], float]) -> list[float]:
    return [Third.of(number, answers(takes), SECONDS).under_way for number in range(3)]


def test_of_guards_that_keep_up_it_is_the_rate_times_an_answer_s_time() -> None:
    first, middle, last = under_way(lambda _: 3.0)
    assert middle == pytest.approx(RATE * 3.0, rel=0.02)
    assert last == pytest.approx(middle, rel=0.02)
    assert first < middle  # it begins with none


def test_of_guards_that_fall_behind_it_grows() -> None:
    _, middle, last = under_way(lambda at: 3.0 + 0.2 * at)
    assert last > 1.1 * middle


def test_a_third_has_the_delays_of_the_answers_that_began_in_it() -> None:
    third = Third.of(1, answers(lambda at: 1.0 if at < SECONDS / 3 else 2.0), SECONDS)
    assert len(third.answers) == RATE * SECONDS / 3
    assert third.delays() == "2,000 · 2,000"
