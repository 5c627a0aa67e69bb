from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.offsets import OffsetTracker, StartStatus, read_note, write_note
from consumers.transport import Commit, Partition

P0, P1 = Partition("in", 0), Partition("in", 1)


def never(response_id: str) -> bool:
    del response_id
    return False


def tracker(commit: Commit | None = None) -> OffsetTracker:
    found = OffsetTracker()
    found.assign({P0: commit})
    return found


def read(found: OffsetTracker, *offsets: int) -> None:
    for offset in offsets:
        found.read(P0, offset)


def test_nothing_read_nothing_to_commit() -> None:
    assert tracker().commits(never) == {}


def test_without_responses_in_flight_everything_read_is_safe() -> None:
    found = tracker()
    read(found, 0, 1, 2)
    assert found.commits(never)[P0].offset == 3


def test_the_oldest_response_in_flight_holds_the_position() -> None:
    found = tracker()
    found.open(P0, "a", 0)
    found.open(P0, "b", 1)
    read(found, 0, 1, 2, 3)
    assert found.commits(never)[P0].offset == 0
    found.close("a")
    assert found.commits(never)[P0].offset == 1
    found.close("b")
    assert found.commits(never)[P0].offset == 4


def test_unchanged_positions_are_not_committed_again() -> None:
    found = tracker()
    read(found, 0)
    commits = found.commits(never)
    found.committed(commits)
    assert found.commits(never) == {}
    read(found, 1)
    assert found.commits(never)[P0].offset == 2


def test_after_a_restart_only_what_was_in_flight_begins_again() -> None:
    found = tracker()
    for offset, name in ((0, "a"), (1, "over"), (2, "decided"), (40, "b")):
        found.open(P0, name, offset)
    found.close("over")
    read(found, *range(50))
    again = tracker(found.commits(lambda name: name == "decided")[P0])
    meaning = {offset: again.reading(P0, offset) for offset in (0, 1, 2, 3, 40, 49, 50)}
    assert meaning == {
        0: StartStatus.AGAIN,
        1: StartStatus.OVER,
        2: StartStatus.DECIDED,
        3: StartStatus.OVER,
        40: StartStatus.AGAIN,
        49: StartStatus.OVER,
        50: StartStatus.FIRST,
    }


def test_a_second_restart_during_the_second_reading_keeps_the_note() -> None:
    commit = Commit(0, write_note(0, 10, {0: False}))
    found = tracker(commit)
    found.open(P0, "a", 0)
    read(found, 0, 1)
    assert found.commits(never) == {}
    read(found, *range(2, 11))
    assert found.commits(never)[P0] == Commit(0, write_note(0, 11, {0: False}))


def test_more_starts_than_a_note_can_hold_begin_again_all_of_them() -> None:
    found = tracker()
    for offset in range(0, 90_000, 30):
        found.open(P0, f"r{offset}", offset)
    read(found, 90_000)
    commit = found.commits(never)[P0]
    assert len(commit.metadata) <= 4096
    assert tracker(commit).reading(P0, 30) is StartStatus.AGAIN
    assert tracker(commit).reading(P0, 31) is StartStatus.AGAIN
    assert tracker(commit).reading(P0, 90_001) is StartStatus.FIRST


def test_a_topic_that_was_made_anew_is_read_as_new() -> None:
    found = tracker(Commit(1_000, write_note(1_000, 2_000, {})))
    assert found.reading(P0, 0) is StartStatus.FIRST
    assert found.reading(P0, 1_500) is StartStatus.FIRST


@given(
    offset=st.integers(0, 2**40),
    starts=st.dictionaries(st.integers(0, 10**6), st.booleans(), max_size=300),
)
def test_a_note_is_read_as_it_was_written(offset: int, starts: dict[int, bool]) -> None:
    absolute = {offset + distance: decided for distance, decided in starts.items()}
    note = write_note(offset, offset + 10**6, absolute)
    assert read_note(Commit(offset, note)) == (offset + 10**6, absolute)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "x",
        "[]",
        '{"v":2,"position":5}',
        '{"v":1,"position":"5"}',
        "null",
        '{"v":1,"position":5,"open":"?"}',
    ],
)
def test_a_note_that_is_not_ours_is_ignored(note: str) -> None:
    assert read_note(Commit(3, note)) == (0, None)
    assert tracker(Commit(3, note)).reading(P0, 3) is StartStatus.FIRST


def test_revoked_partitions_give_up_their_responses() -> None:
    found = tracker()
    found.assign({P1: None})
    found.open(P0, "a", 0)
    found.open(P1, "b", 0)
    assert found.revoke([P0]) == ["a"]
    found.close("a")
    found.read(P1, 0)
    assert set(found.commits(never)) == {P1}
    assert list(found.partitions) == [P1]


def test_a_repeated_start_does_not_move_the_response() -> None:
    found = tracker()
    found.open(P0, "a", 0)
    found.open(P0, "a", 5)
    read(found, *range(6))
    assert found.commits(never)[P0].offset == 0
