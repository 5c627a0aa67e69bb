"""Formulas that a claim turns around, and those that it only writes otherwise."""

import pytest

from guardrail.figures import State, check_figures
from guardrail.figures.formulas import compared, formulas
from tests.support.tables import table
from tests.unit.figures.sources import source_of

CASES = table(__file__, "formulas.yaml")


@pytest.mark.parametrize(("given", "claimed"), CASES["same"])
def test_the_same_formula_may_be_written_otherwise(given: str, claimed: str) -> None:
    [one], [other] = formulas(given), formulas(claimed)
    assert one.value == other.value
    assert [mine.value == theirs.value for mine, _, theirs in compared(claimed, [(0, given)], list)] == [True]


@pytest.mark.parametrize(("given", "claimed"), CASES["turned"])
def test_a_turned_formula_is_at_odds(given: str, claimed: str) -> None:
    [(mine, number, theirs)] = compared(claimed, [(3, given)], lambda: [given])
    assert (number, mine.is_at_odds_with(theirs)) == (3, True)
    assert not list(compared(claimed, [(3, given)], lambda: [given, claimed])), "stands elsewhere"


@pytest.mark.parametrize(("given", "claimed"), CASES["neither"])
def test_what_is_rounded_or_has_other_letters_is_not_at_odds(given: str, claimed: str) -> None:
    [one], [other] = formulas(given), formulas(claimed)
    assert not one.is_at_odds_with(other)


def test_each_of_several_formulas_is_looked_up_everywhere() -> None:
    claim, near = "p = q·r and k = m·n", "p = q/r and k = m/n"
    assert not list(compared(claim, [(0, near)], lambda: iter([near, claim])))


@pytest.mark.parametrize("text", CASES["none"])
def test_words_units_and_limits_are_no_formulas(text: str) -> None:
    assert not list(formulas(text))


def test_a_claim_without_figures_is_compared_by_its_formula() -> None:
    text = "Speed is given by v = s/t."
    source = source_of(text)
    [check] = check_figures("Speed is given by v = t/s.", source, [0])
    assert (check.state, check.figure.text) == (State.CONFLICT, "v = t/s")
    assert check.source is not None
    assert check.source.text == "v = s/t"
    assert not check_figures("Speed is not given by v = t/s.", source, [0])


def test_many_brackets_and_terms_end() -> None:
    assert not list(formulas("x = " + "(" * 5_000 + "a"))
    assert not list(formulas("x = " + "(a + b)" * 40))


def test_a_number_of_a_formula_that_is_another_is_not_found() -> None:
    text = "The force is F = 9.81m."
    source = source_of(text)
    states = [check.state for check in check_figures("The force is F = 9.90m.", source, [0])]
    assert State.CONFLICT in states
    assert State.FOUND not in states


def test_the_numbers_of_a_formula_are_quoted_from_the_sentence_that_has_it() -> None:
    source = source_of("0", "x 0/0")
    for check in check_figures("0/0", source, [0, 1]):
        assert (check.state, check.sentence) == (State.FOUND, 1)
        assert check.source is not None
        assert "x 0/0"[check.source.start : check.source.end] == check.source.text
