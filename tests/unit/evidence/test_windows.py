"""Which windows hold a token, or any of several."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from guardrail.evidence.index import Layout
from guardrail.evidence.shown import ShownText

TEXT = "One two three four. Five six seven. " * 40


@given(st.lists(st.integers(0, 279), max_size=30), st.integers(5, 60), st.integers(0, 4))
def test_the_windows_of_several_tokens_are_those_of_each(found: list[int], size: int, overlap: int) -> None:
    layout = Layout([ShownText(TEXT)], size, overlap * size // 5)
    positions = sorted(set(found))
    for windows in (layout.sentences, layout.passages):
        each = {number for position in positions for number in windows.holding(position)}
        together = windows.holding_any(positions)
        assert set(together) == each
        assert len(together) == len(each)
