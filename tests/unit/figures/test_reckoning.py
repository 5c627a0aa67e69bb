"""Reckoned figures: right results of made-up sums that are spelled out are derived, wrong ones are not, and
what a reader would have to work out from the sources stays open."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from guardrail.figures import State, check_figures
from tests.unit.figures.sources import source_of

_SEED = 20260101
_OF_EACH = 60


class Sum(NamedTuple):
    """A claim with a place for the result (``{}``), its sources, the right result, question and lead-in."""

    claim: str
    sources: tuple[str, ...]
    result: float
    question: str = ""
    lead_in: str = ""


def _price(random_: random.Random) -> float:
    return random_.randint(6, 160) / 2


def _money(amount: float) -> str:
    return f"{amount:.0f}" if amount == int(amount) else f"{amount:.2f}"


def _sums(r: random.Random) -> list[Sum]:
    p, q, n, m = _price(r), _price(r), r.randint(2, 9), r.randint(2, 9)
    a, b = _money(p), _money(q)
    prices = (f"Adults pay €{a}.", f"Children pay €{b}.", "The café closes at 5 p.m. and has 40 seats.")
    one = (f"A day ticket costs €{a}.", "Dogs are welcome. Parking is €3 for 2 hours.")
    high, low = max(p, q) + 1, min(p, q)
    plans = (f"Monthly billing is €{_money(high)}.", f"Yearly billing is €{_money(low)}.")
    cents = r.randint(2, 30)
    wide, kilos = r.randint(20, 400), r.randint(3, 60)
    share, people = r.randint(1, 9) * 10, r.randint(2, 90) * 100
    minutes = r.choice((5, 10, 15, 20, 30))
    stock, rate = r.randint(5, 40), r.randint(2, 9)
    named = f"We are {n} adults and {m} children."
    return [
        Sum(f"{n} × €{a} plus {m} × €{b} comes to €{{}}.", prices, n * p + m * q, named),
        Sum(f"A family of {n} pays €{{}} ({n} × €{a}).", one, n * p, f"We are a family of {n}."),
        Sum(f"{n} day tickets at €{a} each make €{{}}.", one, n * p, f"What do {n} day tickets cost?"),
        Sum(f"Adults pay €{a} and children €{b}, so you pay €{{}} altogether.", prices, n * p + m * q, named),
        Sum("So you save €{}.", plans, high - low, "", f"Monthly is €{_money(high)}, yearly €{_money(low)}."),
        Sum(f"Yearly billing is €{_money(low)} instead of €{_money(high)}, which saves €{{}}.",
            plans, high - low),
        Sum(f"At €0.{cents:02} per kilometre, a {wide} km drive gives you €{{}}.",
            (f"We pay €0.{cents:02} per kilometre.", "Trains are second class."), cents * wide / 100,
            f"What do I get for {wide} km?"),
        Sum(f"€{a} is charged per {minutes} minutes of delay, so {minutes * n} minutes come to €{{}}.",
            (f"Each {minutes} minutes of delay cost €{a}.", "A deposit of €50 is due."), n * p,
            f"We were {minutes * n} minutes late."),
        Sum(f"{n} litres are needed per kilogram, so a {kilos}-kg wheel takes {{}} litres.",
            (f"It takes {n} litres of milk to make a kilogram of cheese.", "It ripens."), n * kilos,
            f"How much milk is in a wheel of {kilos} kg?"),
        Sum(f"{share}% of the {people} euros, so {{}} euros, are paid back.",
            (f"We pay back {share}% of the fees.", f"The fees are {people} euros."), share * people / 100),
        Sum(f"At {rate} tablets a day, {stock * rate} tablets will last {{}} days.",
            (f"Take {rate} tablets a day.", f"A pack holds {stock * rate} tablets."), stock),
        Sum(f"{n} nights at €{a} plus the €{b} cleaning fee add up to €{{}}.",
            (f"A night costs €{a}.", f"The cleaning fee is €{b}."), n * p + q, f"What are {n} nights?"),
        Sum(f"The ticket is €{a} and the locker €{b}, so both together cost €{{}}.",
            (f"The ticket costs €{a}.", f"A locker costs €{b}."), p + q),
    ]  # fmt: skip


def _unsaid(r: random.Random) -> list[Sum]:
    """Sums whose operands stand in the sources or nowhere, not in the claim."""
    p, q, n = _price(r) + 90, _price(r), r.randint(2, 9)
    a, b = _money(p), _money(q)
    prices = (f"The bay tour costs €{a}.", f"The fort tour costs €{b}.", "Both begin at noon.")
    return [
        Sum("Both tours together come to €{}.", prices, p + q),
        Sum(f"{n} people pay €{{}} for the bay tour.", prices, n * p),
        Sum("The difference is €{}.", prices, p - q),
    ]


def _wrong(right: float, r: random.Random) -> float:
    """Off by a little or by a slip of the pen, never by what rounding explains."""
    slips: list[Callable[[], float]] = [
        lambda: right + r.choice((-1, 1)) * r.randint(1, 5) * (1 if right < 100 else 10),
        lambda: right * r.choice((1.1, 0.9, 1.25, 0.75)),
        lambda: right + r.choice((-1, 1)) * r.randint(2, 60) / 2,
    ]
    wrong = abs(round(r.choice(slips)() * 2) / 2)
    return wrong if abs(wrong - right) > 0.02 * right and wrong > 1 else right + 7.5


def _last(sum_: Sum, result: float) -> State:
    text = sum_.claim.format(_money(result))
    sources = source_of(*sum_.sources)
    checks = check_figures(text, sources, range(len(sum_.sources)), sum_.question, sum_.lead_in)
    at = sum_.claim.index("{}")
    return next(check.state for check in checks if check.figure.start <= at < check.figure.end)


def test_what_no_claim_spells_out_is_neither_derived_nor_absent() -> None:
    r = random.Random(_SEED)
    made = [s for _ in range(_OF_EACH) for s in _unsaid(r)]
    assert {_last(s, s.result) for s in made} <= {State.UNCHECKED, State.FOUND}


def test_right_results_are_derived_and_wrong_ones_are_not() -> None:
    r = random.Random(_SEED)
    made = [(shape, s) for _ in range(_OF_EACH) for shape, s in enumerate(_sums(r)) if s.result > 2]
    backed = {State.FOUND, State.DERIVED}
    missed = [s.claim for _, s in made if _last(s, s.result) not in backed]
    passed = [s.claim for _, s in made if _last(s, _wrong(s.result, r)) in backed]
    assert len(missed) <= 0.02 * len(made), missed[:20]
    assert len(passed) <= 0.03 * len(made), (len(passed) / len(made), passed[:20])
