from __future__ import annotations

import pytest

from consumers.offsets import OffsetTracker, read_position
from consumers.transport import Commit, Partition

P0, P1 = Partition("in", 0), Partition("in", 1)


def tracker(commit: Commit | None = None) -> OffsetTracker:
    found = OffsetTracker()
    found.assign({P0: commit})
    return found


def read(found: OffsetTracker, *offsets: int) -> None:
    for offset in offsets:
        found.read(P0, offset)


def test_nothing_read_nothing_to_commit() -> None:
    assert tracker().commits() == {}


def test_without_responses_in_flight_everything_read_is_safe() -> None:
    found = tracker()
    read(found, 0, 1, 2)
    assert found.commits()[P0].offset == 3


def test_the_oldest_response_in_flight_holds_the_position() -> None:
    found = tracker()
    found.open(P0, "a", 0)
    found.open(P0, "b", 1)
    read(found, 0, 1, 2, 3)
    assert found.commits()[P0].offset == 0
    found.close("a")
    assert found.commits()[P0].offset == 1
    found.close("b")
    assert found.commits()[P0].offset == 4


def test_unchanged_positions_are_not_committed_again() -> None:
    found = tracker()
    read(found, 0)
    commits = found.commits()
    found.committed(commits)
    assert found.commits() == {}
    read(found, 1)
    assert found.commits()[P0].offset == 2


def test_the_note_says_how_far_had_been_read() -> None:
    """After a restart, what is read a second time is told from what is new."""
    found = tracker()
    found.open(P0, "a", 0)
    read(found, *range(10))
    again = tracker(found.commits()[P0])
    assert again.replayed(P0, 9)
    assert not again.replayed(P0, 10)


def test_a_second_restart_during_the_second_reading_keeps_the_note() -> None:
    found = tracker(Commit(0, '{"v":1,"position":10}'))
    read(found, 0, 1)
    commit = found.commits()[P0]
    assert (commit.offset, read_position(commit)) == (2, 10)


@pytest.mark.parametrize("note", ["", "x", "[]", '{"v":2,"position":5}', '{"v":1,"position":"5"}', "null"])
def test_a_note_that_is_not_ours_is_ignored(note: str) -> None:
    assert read_position(Commit(3, note)) == 0
    assert tracker(Commit(3, note)).replayed(P0, 2)
    assert not tracker(Commit(3, note)).replayed(P0, 3)


def test_revoked_partitions_give_up_their_responses() -> None:
    found = tracker()
    found.assign({P1: None})
    found.open(P0, "a", 0)
    found.open(P1, "b", 0)
    assert found.revoke([P0]) == ["a"]
    found.close("a")
    found.read(P1, 0)
    assert set(found.commits()) == {P1}
    assert list(found.partitions) == [P1]


def test_a_repeated_start_does_not_move_the_response() -> None:
    found = tracker()
    found.open(P0, "a", 0)
    found.open(P0, "a", 5)
    read(found, *range(6))
    assert found.commits()[P0].offset == 0
