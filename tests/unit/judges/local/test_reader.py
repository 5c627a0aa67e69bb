"""Which windows the verifier reads for a claim, and which words of the claim it finds unsupported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from guardrail.figures import check_figures
from guardrail.judges.local.combiner import Read
from guardrail.judges.local.reader import Reworded, WindowReader, reworded, unsupported_spans
from guardrail.judges.local.search import WindowText
from guardrail.judges.model import Verifier
from tests.unit.figures.sources import source_of
from tests.unit.judges.local.contexts import Noting
from tests.unit.judges.model.tiny_verifier import write_verifier


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_verifier(tmp_path_factory.mktemp("verifier"), max_tokens=128)


@pytest.fixture
def verifier(folder: Path) -> Noting:
    return Noting(folder)


def reads(verifier: Verifier, claim: str, texts: Sequence[str]) -> list[Read]:
    windows = (WindowText(text, (n,), n) for n, text in enumerate(texts))
    return list(WindowReader(verifier).reads(Reworded(claim, ()), windows, lambda: False))


@pytest.mark.parametrize(
    ("claim", "texts", "read"),
    [
        ("The sky is blue.", ["The sky is blue.", "The sky is red."], [0, 1]),
        ("Sky is blue " + "and beta gamma delta " * 20, ["The sky is blue."], []),  # no room beside it
        ("!" * 100_000, ["The sky is blue."], []),
        ("Unheard words of another sort", ["The sky is blue."], []),
        ("Our sky is blue.", ["The sky is blue.", "Our sky is red."], [1]),  # "our" and "the" read alike
        ("Sky is blue \u0665\u0660.", ["Sky is blue \u0668\u0669."], []),
        ("Sky is blue \u2713.", ["Sky is blue."], [0]),  # a sign says nothing
    ],
)
def test_what_is_read(verifier: Verifier, claim: str, texts: Sequence[str], read: list[int]) -> None:
    assert [each.window.best for each in reads(verifier, claim, texts)] == read


def test_special_tokens_that_are_left_in_a_text_keep_it_from_being_read(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``encode`` takes them out; a text from which it can't is not read."""
    forged = {"sky blue", "blue sky red"}
    monkeypatch.setattr(verifier, "forged", lambda text: " ".join(text.tokens) in forged)
    assert [each.window.best for each in reads(verifier, "sky red", ["blue sky red", "sky red"])] == [1]
    assert reads(verifier, "sky blue", ["sky blue"]) == []


def test_windows_that_are_too_long_are_cut_for_this_claim_only(verifier: Noting) -> None:
    long = "blue " * 500
    claims = ["sky is blue", "sky is blue 29 costs 49 red ."]
    reader = WindowReader(verifier)
    for claim in claims:
        assert list(reader.reads(Reworded(claim, ()), iter([WindowText(long, (0,), 0)]), lambda: False))
    assert verifier.lengths == [128 - 3 - 3, 128 - 3 - 8]


def test_text_that_is_no_prose_is_cut_before_it_is_encoded(verifier: Noting) -> None:
    """A sentence of few words and very many characters; each claim would have it read."""
    assert reads(verifier, "Sky is blue.", [f"Sky is {'-' * 500_000} blue."])
    assert max(len(text) for text in verifier.encoded) < 10_000


def test_the_same_text_is_encoded_once(verifier: Noting) -> None:
    reader = WindowReader(verifier)
    for _ in range(3):
        list(
            reader.reads(
                Reworded("Sky is blue.", ()), iter([WindowText("Sky is red.", (0,), 0)]), lambda: False
            )
        )
    assert sorted(verifier.encoded) == ["Sky is blue.", "Sky is red."]


TEXT = "Meals are reimbursed daily."


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ([(10, 20, 0.9)], ["reimbursed"]),
        ([(10, 12, 0.1), (12, 15, 0.9), (15, 20, 0.1)], ["reimbursed"]),  # a piece of a word marks the word
        ([(0, 5, 0.9), (6, 9, 0.5)], ["Meals are"]),
        ([(0, 5, 0.9), (6, 9, 0.4), (21, 26, 0.9), (26, 27, 0.9)], ["Meals", "daily"]),
        ([(26, 27, 0.9)], []),
        ([(3, 3, 0.9)], []),
        ([], []),
    ],
)
def test_words_that_are_unsupported(tokens: list[tuple[int, int, float]], words: list[str]) -> None:
    assert [TEXT[start:end] for start, end in unsupported_spans(TEXT, tokens, 0.5)] == words


@pytest.mark.parametrize(
    ("piece", "word"),
    [
        ("5", "€5.20"),
        ("20", "€5.20"),
        ("82", "B82"),
        ("days", "three-days-a-week"),
        ("half", "(half)"),
        ("10", "-10"),
        ("7", "+7%"),
        ("9", "8/9"),
        ("青", "青い空"),
    ],
)
def test_no_piece_of_a_word_is_marked(piece: str, word: str) -> None:
    text = f"It says: {word}, “or” so; 青い、空。"
    at = text.find(piece, 9)
    marked = unsupported_spans(text, [(at, at + len(piece), 0.9)], 0.5)
    assert [text[start:end] for start, end in marked] == [word.strip("()")]


@pytest.mark.parametrize(
    ("claim", "source", "lead_in", "read"),
    [
        ("The lamp needs nine watts.", "The lamp needs 9 W.", "", "The lamp needs 9 W."),
        ("It costs $5 and needs 9 W.", "It costs five dollars and needs nine watts.", "",
         "It costs five dollars and needs nine watts."),
        ("The lamp needs 9 W.", "The lamp needs 9 W.", "", "The lamp needs 9 W."),
        ("The lamp needs 8 W.", "The lamp needs 9 W.", "", "The lamp needs 8 W."),
        ("It costs A$49.", "It costs $49.", "", "It costs A$49."),
        ("It opens at 9 pm.", "It opens at 9:00.", "", "It opens at 9 pm."),
        ("It opens at 9 am.", "It opens at 9:00, not at 17:00.", "", "It opens at 9:00."),
        ("Four adults pay.", "Those aged 4 to 15 pay.", "", "Four adults pay."),
        ("Take a gram hourly.", "Take 1 g.", "", "Take a gram hourly."),
        ("a guided tour", "A tour.", "Come. The ticket includes:", "The ticket includes a guided tour"),
        ("a guided tour", "A tour.", "The ticket includes a map.", "a guided tour"),
        ("a guided tour", "A tour.", "Come! " + "x" * 100_000 + ":", "x" * 199 + " a guided tour"),
    ],
)  # fmt: skip
def test_a_claim_is_read_as_its_sources_write_its_figures_behind_what_leads_in_to_it(
    claim: str, source: str, lead_in: str, read: str
) -> None:
    checks = check_figures(claim, source_of(source), [0])
    found = reworded(claim, checks, lead_in)
    assert found.text == read
    assert found.in_claim(len(read), len(read))[1] == len(claim)
    for at, word in ((read.find(word), word) for word in ("lamp", "needs", "guided")):
        if at >= 0:
            start, end = found.in_claim(at, at + len(word))
            assert claim[start:end] == word


@pytest.mark.parametrize(
    ("claim", "source", "known"),
    [
        (
            "The plan costs $588 a year.",
            "The plan costs $49 per month.",
            " $588 a year follows from $49 per month.",
        ),
        ("It is 12 × $7 = $84.", "One is $7.", " $84 follows from 12 × $7."),
        ("The oven is hot at about 356 °F.", "The oven is hot at 180 °C.", " about 356 °F is 180 °C."),
        ("It costs $600 a year.", "It costs $49 per month.", ""),
        ("It costs $49 per month.", "It costs $49 a month.", ""),
        ("A 7-year-old pays.", "Those aged 4 to 15 pay.", ""),
    ],
)
def test_what_the_figures_make_is_read_behind_the_window(claim: str, source: str, known: str) -> None:
    checks = check_figures(claim, source_of(source), [0])
    assert reworded(claim, checks).known == known


def test_a_time_that_is_reckoned_is_read_as_the_sources_write_theirs() -> None:
    source = "The pool closes at 20:30 and the desk one hour before."
    claim = "The pool closes at 8:30 p.m. and the desk one hour earlier, so come by 7:30 p.m. then."
    checks = check_figures(claim, source_of(source), [0])
    found = reworded(claim, checks)
    assert found.text == "The pool closes at 20:30 and the desk one hour earlier, so come by 19:30 then."
    assert found.known == " 19:30 follows from 20:30 and one hour."


def test_marks_of_what_was_reworded_are_those_of_the_claim(verifier: Noting) -> None:
    claim = "sky is azure or red"
    inside = Reworded("alpha sky is blue or red", ((0, 6, 0, 0), (13, 17, 7, 12)))
    (found,) = WindowReader(verifier).reads(inside, iter([WindowText("red is or", (0,), 0)]), lambda: False)
    marked = unsupported_spans(claim, found.reading.tokens, 0.5)
    assert [claim[start:end] for start, end in marked] == ["sky", "azure"]
