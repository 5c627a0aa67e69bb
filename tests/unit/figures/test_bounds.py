"""However many figures a text has, a bounded number of them is read, and what is not read ends in doubt."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from guardrail.figures import State, check_figures, find_figures, reading, source
from guardrail.figures.model import Figure
from guardrail.figures.numbers import Separators
from guardrail.figures.reading import MOST, MOST_CHARS
from guardrail.figures.tables import Token, tokenize
from tests.property.test_figures_properties import HOSTILE as PIECES
from tests.unit.figures.sources import source_of

HOSTILE = ["1/", "1-", "0/1 1/0 ", "1:", "1 ", "$5 "]
CLAIM = "Refunds are paid within 14 days."


def stopping_after(asked: int) -> Callable[[], bool]:
    left = iter([False] * asked)
    return lambda: next(left, True)


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("times", [20_000, 40_000])
def test_of_a_text_so_many_figures_are_read_however_long_it_is(piece: str, times: int) -> None:
    text = piece * times
    figures = find_figures(text)
    assert len(figures) <= MOST + 1
    assert figures[-1].end == len(text)
    assert all(text[figure.start : figure.end] == figure.text for figure in figures)
    assert all(first.end <= second.start for first, second in pairwise(figures))


def test_words_behind_the_last_character_that_is_read_are_no_figure() -> None:
    assert find_figures("word " * MOST_CHARS) == ()
    assert [figure.text for figure in find_figures("word " * MOST_CHARS + "14 days")][-1].endswith("14 days")


def test_a_claim_is_not_backed_by_figures_that_were_not_read() -> None:
    """Where the source says the same so far, and goes on otherwise, with those figures elsewhere."""
    listed = " and ".join(str(number) for number in range(MOST + 20))
    other = source_of(listed[:-1] + "8", listed[len(listed) // 2 :])
    rest = check_figures(listed, other, [0, 1])[-1]
    assert (rest.state, rest.figure.name) == (State.ABSENT, False)
    assert check_figures(listed, source_of(listed), [0])[-1].state is State.FOUND


def reading_noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts whose figures are read from now on."""
    read: list[str] = []

    def reading(text: str, shown: Separators | None = None) -> tuple[Figure, ...]:
        read.append(text)
        return find_figures(text, shown)

    monkeypatch.setattr(source, "find_figures", reading)
    return read


def test_the_question_and_what_leads_in_are_read_once_for_all_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reading_noted(monkeypatch)
    paid = source_of(CLAIM)
    for days in range(14, 20):
        check_figures(f"They are paid within {days} days.", paid, [0], "Is it 30 days?", "Of the 2 plans:")
    assert [read.count(text) for text in ("Is it 30 days?", "Of the 2 plans:", CLAIM)] == [1, 1, 1]


def test_reading_the_sources_ends_when_nobody_waits_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks before each sentence, of those that are read and of those whose digits are looked at."""
    sentences = [f"Plan {number} costs ${number}." for number in range(100)]
    read = reading_noted(monkeypatch)
    assert check_figures(CLAIM, source_of(*sentences), [], stopped=stopping_after(10)) == ()
    assert read == [CLAIM, *sentences[:10]]

    looked_at: list[str] = []
    monkeypatch.setattr(source, "_READ_WHOLLY", 0)

    def looking(text: str) -> set[str]:
        looked_at.append(text)
        return set()

    monkeypatch.setattr(source, "digits_of", looking)
    source_of(*sentences).holding(find_figures(CLAIM)[0], stopping_after(10))
    assert looked_at == sentences[: len(looked_at)]
    assert 0 < len(looked_at) <= 10


def test_of_many_sentences_so_many_figures_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are found by their digits."""
    monkeypatch.setattr(source, "_READ_FIGURES", 6)
    sentences = [f"Plans {n} and {n + 1} cost ${n * 7}." for n in range(1, 40)]
    found, read = source_of(*sentences), reading_noted(monkeypatch)
    assert 19 in found.holding(find_figures("$140")[0])
    assert read == sentences[:2]
    assert found.has_more_figures_than(8)
    assert read == sentences[:3]


@pytest.mark.parametrize("piece", PIECES)
def test_the_work_is_linear(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long and odd a text is, the scan looks at each token a bounded number of times: as often per
    token in one that is ten times as long."""
    looked = 0

    class Counting(list[Token]):
        def __getitem__(self, key):  # type: ignore[no-untyped-def]
            nonlocal looked
            looked += 1
            return super().__getitem__(key)

    monkeypatch.setattr(reading, "tokenize", lambda text: Counting(tokenize(text)))
    costs = []
    for times in (200, 2000):
        looked = 0
        find_figures(piece * times)
        costs.append(looked / times)
    assert costs[1] <= costs[0] * 1.2 + 1
