"""Progress of a replay, as it is committed and found again."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from consumers.dead_letter_progress import ReplayProgress, resume, rewound
from consumers.transport import MAX_METADATA_BYTES, Commit
from guardrail.errors import TransportError


def after(
    chosen: Collection[int], offsets: Collection[int], progress: ReplayProgress | None = None
) -> ReplayProgress:
    """Read ``offsets``, replaying those of ``chosen`` that were not replayed before."""
    progress = progress or ReplayProgress(min(offsets))
    for offset in offsets:
        if progress.was_done(offset) or offset in chosen:
            progress.done(offset)
        else:
            progress.left(offset)
    return progress


def test_without_gaps_there_is_only_a_position() -> None:
    assert after(range(10), range(10)).commit() == Commit(10)
    assert after((), range(10)).commit() == Commit(0)


def test_offsets_without_records_belong_to_what_is_beside_them() -> None:
    """Markers of transactions take offsets, and are no dead letters that were left behind."""
    assert after({0, 3, 9}, [0, 3, 9]).commit() == Commit(10)


def test_what_was_left_behind_is_between_ranges() -> None:
    commit = after({0, 1, 4, 5, 8}, range(10)).commit()
    assert commit == Commit(2, "1:2+2,2+1")
    again = resume(commit, 0)
    assert again.begin == 2
    assert [offset for offset in range(2, 12) if again.was_done(offset)] == [4, 5, 8]


def test_the_position_moves_over_what_was_done_ahead_of_it() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    commit = after({0, 1, 2, 3}, range(10), resume(commit, 0)).commit()
    assert commit == Commit(6, "1:2+1")
    assert after(range(10), range(6, 10), resume(commit, 0)).commit() == Commit(10)


def test_a_reading_that_stops_half_way_keeps_what_is_beyond() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    progress = resume(commit, 0)
    assert not progress.was_done(0)
    progress.done(0)
    assert progress.commit() == Commit(1, "1:3+2,2+1")


def test_records_that_the_topic_no_longer_keeps_are_behind_the_position() -> None:
    commit = after({4, 5, 8}, range(10)).commit()
    assert after(range(10), range(5, 10), resume(commit, 5)).commit() == Commit(10)
    assert resume(Commit(3), 7).begin == 7


def test_to_start_over_and_to_read_once_more() -> None:
    commit = after({0, 1, 4}, range(6)).commit()
    assert resume(commit, 0, forget=True).commit() == Commit(0)
    once_more = rewound(commit, 0)
    assert once_more.begin == 0
    assert [offset for offset in range(6) if once_more.was_done(offset)] == [0, 1, 4]
    assert rewound(commit, 0).commit() == Commit(2, "1:2+1")
    assert rewound(Commit(3), 5).begin == 5
    assert rewound(None, 5).begin == 5


def test_a_thousand_gaps_fit_and_more_are_refused() -> None:
    commit = after(range(1, 2_000, 2), range(2_000)).commit()
    assert len(commit.metadata) <= MAX_METADATA_BYTES
    again = resume(commit, 0)
    assert {offset for offset in range(2_000) if again.was_done(offset)} == set(range(1, 2_000, 2))
    with pytest.raises(TransportError, match=r"separate ranges.*without a filter"):
        after(range(1, 4_000, 2), range(4_000)).commit()


@pytest.mark.parametrize("note", ["rubbish", "1:x", "1:3+0", "1:1+1,", "1:1+1 2+2", "2:1+1", "1:+", "1:-1+1"])
def test_a_note_that_can_not_be_read_stops_the_replay(note: str) -> None:
    with pytest.raises(TransportError, match="from-beginning"):
        resume(Commit(3, note), 0)
    assert resume(Commit(3, note), 0, forget=True).begin == 0


@pytest.mark.parametrize("ranges", [[(5, 5)], [(5, 4)], [(5, 7), (6, 8)], [(8, 9), (5, 6)]])
def test_ranges_ascend(ranges: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="not ascending"):
        ReplayProgress(0, ranges)
