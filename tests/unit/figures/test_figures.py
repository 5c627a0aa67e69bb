"""What figures are read, and what becomes of a claim's (cases.yaml)."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.figures import Day, State, check_figures, find_figures
from tests.support.tables import table
from tests.unit.figures.sources import source_of

CASES: dict[str, list[Any]] = table(__file__, "cases.yaml")


@pytest.mark.parametrize(("text", "expected"), CASES["readings"])
def test_figures_are_read(text: str, expected: list[list[Any]]) -> None:
    found = find_figures(text)
    assert [[figure.text, str(figure.kind)] for figure in found] == [entry[:2] for entry in expected]
    for figure, (_, kind, *value) in zip(found, expected, strict=True):
        if kind == "date":
            assert figure.days[0] == Day(**value[0])
        elif value:
            assert figure.values[0] == pytest.approx(value[0])
            assert figure.unit == (value[1] if len(value) > 1 else None)


@pytest.mark.parametrize("case", CASES["checks"], ids=lambda case: case["claim"])
def test_claims_are_checked(case: dict[str, Any]) -> None:
    source = source_of(*case["sources"])
    said = case.get("question", ""), case.get("lead_in", "")
    checks = check_figures(case["claim"], source, range(len(case["sources"])), *said)
    weak = (
        check.state is State.ABSENT and check.figure.name and case["states"] == ["weak"] for check in checks
    )
    states = ["weak" if w else str(check.state) for w, check in zip(weak, checks, strict=True)]
    assert states == case["states"]
    quoted = [check.source.text for check in checks if check.state is State.CONFLICT and check.source]
    assert quoted == ([case["quote"]] if "quote" in case else [])


def test_a_figure_of_a_sentence_that_was_not_named_is_found_too() -> None:
    source = source_of("Adults pay 12 euros.", *["Nothing costs anything here."] * 50, "The fee is €7.")
    check = check_figures("A fee of seven euros applies.", source, near=[0])[0]
    assert (check.state, check.sentence) == (State.FOUND, 51)


def test_only_the_sentence_with_the_subject_s_pronoun_takes_over_words() -> None:
    texts = ["The basic plan is for teams.", "It costs 49 euros a month."]
    one = source_of(*texts, context="c")
    assert check_figures("The basic plan costs 59 euros a month.", one, [0, 1])[0].state is State.CONFLICT
    two = source_of(*texts)
    assert check_figures("The basic plan costs 59 euros a month.", two, [0, 1])[0].state is State.ABSENT


def test_of_very_many_figures_each_is_looked_up() -> None:
    numbers = [*range(1000, 1200), 77]
    source = source_of("Nothing.", ", ".join(map(str, numbers[:-1])))
    checks = check_figures(f"They are {', '.join(map(str, numbers))}.", source, [0])
    assert [check.state for check in checks] == [State.FOUND] * 200 + [State.ABSENT]


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        ("The special fee is €77.77.", State.FOUND),
        ("The special fee is €77.78.", State.ABSENT),
        ("The special tour lasts 1.5 hours.", State.FOUND),
        ("Call 0800 123 456.", State.FOUND),
        ("It has twelve doors.", State.FOUND),
        ("It opens at 9 pm.", State.FOUND),
    ],
)
def test_figures_are_found_in_contexts_too_long_to_be_read(claim: str, state: State) -> None:
    rows = [f"item{n},{n}.05,{n % 7}" for n in range(6000)]
    last = ["A fee of €77.77 is due.", "90 minutes", "Call 0800-123456.", "Doors: 12", "21:00"]
    source = source_of(*rows, *last)
    assert check_figures(claim, source, [0])[-1].state is state


def test_nothing_is_read_once_stopped() -> None:
    source = source_of("One.", "The fee is €7.")
    assert check_figures("A fee of €7.", source, [0], stopped=lambda: True) == ()
    assert source.holding(check_figures("A fee of €7.", source, [])[0].figure, lambda: True) == [1]
    assert source_of("The fee is €7.").holding(check_figures("€7", source, [])[0].figure, lambda: True) == []


def test_figures_that_stand_at_each_other_s_things_are_in_conflict() -> None:
    cases = table(__file__, "exchanged.yaml")

    def in_conflict(case: dict[str, str], which: str) -> bool:
        checks = check_figures(case[which], source_of(case["source"]), [0])
        return any(check.state is State.CONFLICT for check in checks)

    assert not [case["right"] for case in cases if in_conflict(case, "right")]
    assert sum(in_conflict(case, "wrong") for case in cases) >= 0.75 * len(cases)


def test_what_names_a_thing_by_a_number_is_absent_where_others_are_named_so() -> None:
    source = source_of("Trams leave from Platform 4.", "It costs €6.", context="c")
    states = [
        [(check.state, check.figure.name) for check in check_figures(claim, source, [0, 1])]
        for claim in (
            "Trams leave from Platform 6.",
            "Apollo 9 was a test flight.",
            "Trams leave from Platform 4.",
        )
    ]
    assert states == [[(State.ABSENT, False)], [(State.ABSENT, True)], [(State.FOUND, True)]]


@pytest.mark.parametrize(
    "text", ["1.5 × 10⁹⁹⁹ g", "10⁹⁹⁹⁹", "2⁻⁹⁹⁹⁹", f"{'9' * 60} × 10⁹⁹⁹⁹", "1.5 × 10⁻⁹⁹⁹⁹ g"]
)
def test_huge_powers_are_read(text: str) -> None:
    assert find_figures(text)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Four nights in the lodge come to €380.", "Four nights in the lodge come to €340."),
        ("The deposit amounts to £900 for 12 months.", "The deposit is £500 for 12 months."),
    ],
)
def test_a_total_that_the_source_states_otherwise_is_no_calculation(claim: str, source: str) -> None:
    checks = check_figures(claim, source_of(source), [0])
    assert State.CONFLICT in [check.state for check in checks]
