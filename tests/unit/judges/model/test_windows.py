"""Windows hold every token, overlap, and keep sentences whole where they can."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from guardrail.judges.model.tokens import TokenisedText


def tokenised(text: str) -> tuple[TokenisedText, list[tuple[int, int]]]:
    spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    return TokenisedText(text, spans), spans


@given(
    text=st.lists(st.sampled_from(["one", "two.", "Three", "four!\n", "五。", "-", "6"]), max_size=200).map(
        " ".join
    ),
    budget=st.integers(4, 40),
    overlap=st.integers(0, 80),
)
def test_no_token_is_lost_and_no_window_is_too_long(text: str, budget: int, overlap: int) -> None:
    cutter, spans = tokenised(text)
    windows = list(cutter.windows(budget, overlap))
    for start, end in windows:
        assert sum(start <= a and b <= end for a, b in spans) <= budget
    for a, b in spans:
        assert any(start <= a and b <= end for start, end in windows)
    assert windows == sorted(set(windows))
    assert len(windows) <= 1 + 4 * len(spans) // budget


def test_windows_end_with_sentences_and_share_some() -> None:
    text = " ".join(f"Sentence number {n} ends here." for n in range(20))
    cutter, _ = tokenised(text)
    windows = [text[start:end] for start, end in cutter.windows(24, 6)]
    assert all(window.startswith("Sentence") and window.endswith("here.") for window in windows)
    assert windows[0].endswith("number 3 ends here.")
    assert windows[1].startswith("Sentence number 3 ends")


def test_a_text_without_sentences_overlaps_by_tokens() -> None:
    text = " ".join(str(n) for n in range(100))
    cutter, _ = tokenised(text)
    windows = [text[start:end].split() for start, end in cutter.windows(40, 10)]
    assert [(w[0], w[-1]) for w in windows] == [("0", "39"), ("30", "69"), ("60", "99")]


def test_an_empty_text_has_none() -> None:
    cutter, _ = tokenised(" \n")
    assert list(cutter.windows(10, 2)) == []
