from __future__ import annotations

import pytest

from guardrail.engine.load import Bounds, Load, over_their_share
from guardrail.limits import Limits
from tests.support.constants import made

LIMITS = made(Limits, max_sessions=100, max_bytes=1_000, max_pending_claims=100, resume_at=0.8)


def loads(**pending: int) -> dict[str, Load]:
    return {lane: Load(pending=claims) for lane, claims in pending.items()}


def hot(paused: set[str], **pending: int) -> set[str]:
    return over_their_share(loads(**pending), sum(pending.values()) / 100, paused, LIMITS)


def test_the_share_is_that_of_the_nearest_bound() -> None:
    assert Load().share(LIMITS) == 0.0
    assert Load(sessions=50, chars=100, pending=10).share(LIMITS) == 0.5
    assert Load(sessions=1, chars=2_000, pending=10).share(LIMITS) == 2.0
    assert Load(pending=70).share(LIMITS) == 0.7


@pytest.mark.parametrize(
    ("paused", "pending", "expected"),
    [
        # With room nobody is paused, whoever takes it.
        (set(), {"a": 79, "b": 0}, set()),
        # From resume_at on, those over their share of one half.
        (set(), {"a": 75, "b": 10}, {"a"}),
        (set(), {"a": 42, "b": 42}, set()),
        (set(), {"a": 49, "b": 49}, set()),
        # What was paused stays so until it is well below its share,
        ({"a"}, {"a": 45, "b": 30}, {"a"}),
        ({"a"}, {"a": 39, "b": 40}, set()),
        # or there is room again.
        ({"a"}, {"a": 66, "b": 0}, {"a"}),
        ({"a"}, {"a": 63, "b": 0}, set()),
        # What stays paused does not pause others that are under their share.
        ({"a"}, {"a": 45, "b": 45}, {"a"}),
        # One lane may have all there is; the hard bound stops it.
        (set(), {"a": 99}, set()),
        (set(), {}, set()),
    ],
)
def test_who_takes_more_than_its_share_is_paused(
    paused: set[str], pending: dict[str, int], expected: set[str]
) -> None:
    assert hot(paused, **pending) == expected


def test_a_lane_in_which_only_input_can_make_room_is_read_on() -> None:
    found = {"a": Load(sessions=90), "b": Load(sessions=2, pending=1)}
    assert over_their_share(found, 0.92, {"a"}, LIMITS) == set()
    found["a"].pending = 1
    assert over_their_share(found, 0.92, set(), LIMITS) == {"a"}


def state(bounds: Bounds) -> tuple[bool, bool]:
    assert bounds.room.is_set() != bounds.saturated
    return bounds.saturated, bounds.shedding


def test_a_bound_that_is_reached_holds_until_there_is_room() -> None:
    bounds = Bounds(LIMITS)
    a, b = Load(), Load()
    bounds.add(a, pending=99)
    assert state(bounds) == (False, False)
    bounds.add(b, pending=1)
    bounds.shedding = True
    assert state(bounds) == (True, True)
    bounds.add(a, pending=-20)
    assert state(bounds) == (True, True)
    bounds.add(a, pending=-1)
    assert state(bounds) == (False, False)


def test_it_is_idle_while_no_claim_waits() -> None:
    bounds = Bounds(LIMITS)
    a, b = Load(), Load()
    idle = [bounds.idle.is_set()]
    for load, pending in ((a, 2), (b, 1), (a, -2), (b, -1)):
        bounds.add(load, pending=pending)
        idle.append(bounds.idle.is_set())
    assert idle == [True, False, False, False, True]
    assert a == b == bounds.total == Load()
