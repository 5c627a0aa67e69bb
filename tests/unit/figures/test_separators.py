"""What a comma or point before three digits does, and what becomes of a claim where that stays open."""

from __future__ import annotations

import pytest

from guardrail.figures import FigureSource, SourceText, State, check_figures, find_figures
from guardrail.figures.agreement import is_plain
from tests.unit.figures.sources import source_of

MIXED = "Das Fass fasst 1.250 Liter, die Flasche 0,75 Liter."
LISTED = "See chapters 2,3 and 4,5. The bridge is 1,280 metres long."


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Feed 1,250 g a day.", [1250]),
        ("Feed 1.250 g a day.", [1.25, 1250]),
        ("Feed 0.250 g a day.", [0.25]),
        ("Feed 1.250 g a day, after 0.5 hours.", [1.25]),
        ("Feed 1.200 g a day, after 0.5 hours.", [1.2, 1200]),
        ("Feed 1.250 g a day to 3.400.000 hens.", [1250]),
        ("Feed 1,250 g a day to 3,400,000 hens.", [1250]),
        ("Feed 1,250 g a day, 3,5 g of it salt.", [1.25]),
        ("Feed 1.250 g a day, 3,5 g of it salt.", [1250]),
        ("Feed 1,250 g a day, 3,5 g of it salt, after 0.5 hours.", [1250, 1.25]),
        ("It cost $1,250 or 17,5 % more.", [1250]),
        ("Das Paket wiegt 1,250 kg.", [1250, 1.25]),
        ("It grew by 1.375 % to 7 tons.", [1.375]),
        ("It owes 1.375 billion.", [1.375e9]),
        ("A town of 8.250.000.", [8_250_000]),
        (LISTED[LISTED.index("The") :], [1280]),
    ],
)
def test_a_separator_is_read_as_the_text_shows_it(text: str, values: list[float]) -> None:
    assert list(find_figures(text)[0].values) == pytest.approx(values)


def test_numbers_of_a_list_show_no_decimals() -> None:
    assert [f.values for f in find_figures(LISTED) if f.unit == "m"] == [(1280.0,)]


@pytest.mark.parametrize(
    ("document", "claim", "state", "plain"),
    [
        (("The cable holds 1,750 kg.",), "The cable holds 1,750 kg.", State.FOUND, True),
        (("The cable holds 1,750 kg.",), "The cable holds 1.75 tonnes.", State.FOUND, True),
        (("The cable holds 1,750 kg.",), "The cable holds 1.75 kg.", State.CONFLICT, True),
        (("The cable holds 1,750 kg.",), "The cable holds 1.750 kg.", State.FOUND, False),
        (("The cable holds 1.750 kg.",), "The cable holds 1.750 kg.", State.FOUND, True),
        (("The cable holds 1.750 kg.",), "The cable holds 1.75 kg.", State.FOUND, False),
        (("The cable holds 1.750 kg.",), "The cable holds 1,750 kg.", State.FOUND, False),
        (
            ("It is 2.5 m long.", "The cable holds 1.750 kg."),
            "The cable holds 1,750 kg.",
            State.CONFLICT,
            True,
        ),
        (
            ("The deposit for the hall is £2,400.",),
            "The deposit for the hall is £2.40.",
            State.CONFLICT,
            True,
        ),
        # a claim written as its source is the source's, whatever the separator does
        ((MIXED,), "Das Fass fasst 1.250 Liter.", State.FOUND, True),
        ((MIXED,), "The barrel holds 1,250 litres.", State.FOUND, True),
        (
            ("Das Paket wiegt 1,875 kg.", "Es kostet 4,50 Euro."),
            "Das Paket wiegt 1,875 kg.",
            State.FOUND,
            True,
        ),
        (
            ("Das Paket wiegt 1,875 kg.", "Es kostet 4,50 Euro."),
            "Das Paket wiegt 1875 kg.",
            State.CONFLICT,
            True,
        ),
    ],
)
def test_what_depends_on_a_separator_is_not_plain(
    document: tuple[str, ...], claim: str, state: State, plain: bool
) -> None:
    check = check_figures(claim, source_of(*document, context="c"), range(len(document)))[0]
    assert check.source is not None
    assert (check.state, is_plain(check.figure, check.source) or state is State.CONFLICT) == (state, plain)


def test_a_context_shows_nothing_of_another_one_s_separators() -> None:
    texts = {"de": "Die Tür ist 2,5 m hoch.", "en": "The tank holds 1,125 kg of sand."}
    source = FigureSource([SourceText(name, 0, 0, text) for name, text in texts.items()])
    assert source.sentence(1).figures[0].values == (1125.0,)
