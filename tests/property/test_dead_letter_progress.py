"""However a replay is cut into runs, filters and commits, every dead letter is written back once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from consumers.dead_letter_replay import resume
from consumers.transport import Commit

RUNS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 40)),  # what the filter wants
        st.integers(0, 45),  # after so many records it is killed
        st.integers(1, 5),  # records in a transaction
        st.integers(0, 8),  # oldest record kept by then
    ),
    max_size=8,
)


@given(st.sets(st.integers(0, 40)), RUNS)
def test_once_each_whatever_is_chosen_and_killed(
    holes: set[int], runs: list[tuple[set[int], int, int, int]]
) -> None:
    """``holes`` are offsets without a record, as markers of transactions are."""
    records = [offset for offset in range(41) if offset not in holes]
    written: list[int] = []
    committed: Commit | None = None
    oldest = 0
    everything = (set(records), 100, 3, 0)
    for wanted, killed_after, step, kept_from in [*runs, everything]:
        oldest = max(oldest, kept_from)
        progress = resume(committed, oldest)
        pending: list[int] = []
        reading = [offset for offset in records if offset >= progress.begin]
        for offset in reading[:killed_after]:
            if progress.was_done(offset):
                progress.done(offset)
            elif offset in wanted:
                if len(pending) == step:
                    committed = progress.commit()
                    written += pending
                    pending = []
                pending.append(offset)
                progress.done(offset)
            else:
                progress.left(offset)
        if killed_after >= len(reading):
            committed = progress.commit()
            written += pending
    assert len(written) == len(set(written))
    assert set(written) >= {offset for offset in records if offset >= oldest}
    assert committed is not None
    assert committed.metadata == ""
