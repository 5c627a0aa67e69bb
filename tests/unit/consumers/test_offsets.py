"""How far may be committed without stored sessions, and what a second reading makes of the note beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.guarantee import AtLeastOnce, HeldPartition, StartStatus, read_note, write_note
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.transport import Commit, Partition


def held(commit: Commit | None) -> HeldPartition:
    owner = AtLeastOnce(MemoryTransport(MemoryBroker(), "g", "in"), commit_interval_ms=1)
    return HeldPartition(Partition("in", 0), commit, owner)


def never(response_id: str) -> bool:
    del response_id
    return False


def committed(found: HeldPartition) -> Commit:
    commit = found.commit(never)
    assert commit is not None
    return commit


def read(offsets: range, in_flight: dict[str, int], commit: Commit | None = None) -> HeldPartition:
    """Read so far, with these responses in flight from where they began."""
    found = held(commit)
    found.open.update(in_flight)
    for offset in offsets:
        found.taken(offset, None)
    return found


def test_nothing_read_nothing_to_commit() -> None:
    assert held(None).commit(never) is None


def test_the_oldest_response_in_flight_holds_the_position() -> None:
    found = read(range(4), {"a": 0, "b": 1})
    assert committed(found).offset == 0
    del found.open["a"]
    assert committed(found).offset == 1
    del found.open["b"]
    assert committed(found).offset == 4


def test_unchanged_positions_are_not_committed_again() -> None:
    found = read(range(1), {})
    found.committed = found.commit(never)
    assert found.commit(never) is None
    found.taken(1, None)
    assert committed(found).offset == 2


def test_after_a_restart_only_what_was_in_flight_begins_again() -> None:
    found = read(range(50), {"a": 0, "decided": 2, "b": 40})
    again = held(found.commit(lambda name: name == "decided"))
    meaning = {offset: again.reading(offset) for offset in (0, 1, 2, 3, 40, 49, 50)}
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
    found = read(range(2), {"a": 0}, Commit(0, write_note(0, 10, {0: False})))
    assert found.commit(never) is None
    for offset in range(2, 11):
        found.taken(offset, None)
    assert committed(found) == Commit(0, write_note(0, 11, {0: False}))


def test_more_starts_than_a_note_can_hold_begin_again_all_of_them() -> None:
    commit = committed(read(range(90_001), {f"r{offset}": offset for offset in range(0, 90_000, 30)}))
    assert len(commit.metadata) <= 4096
    again = held(commit)
    statuses = [again.reading(offset) for offset in (30, 31, 90_001)]
    assert statuses == [StartStatus.AGAIN, StartStatus.AGAIN, StartStatus.FIRST]


def test_a_topic_that_was_made_anew_is_read_as_new() -> None:
    found = held(Commit(1_000, write_note(1_000, 2_000, {})))
    assert [found.reading(offset) for offset in (0, 1_500)] == [StartStatus.FIRST] * 2


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
    assert held(Commit(3, note)).reading(3) is StartStatus.FIRST
