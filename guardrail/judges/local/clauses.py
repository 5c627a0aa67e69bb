"""A sentence in clauses: what it denies, and what it says costs nothing or something.

A negation reaches as far as its clause: "Plug it into the wall; do not use an extension cord" denies the
cord and not the wall. The rules are coarse and linear in the number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of
from guardrail.judges.local.polarity import NEGATORS, denies_at, denying_signs


def _terms(text: str) -> frozenset[int]:
    return frozenset(term_of(word) for word in text.split())


_OPENERS: Final = _terms("but unless except although though while whereas because if when instead until")
_CONDITIONS: Final = _terms("if when while because until although though whereas")
_JOINERS: Final = _terms("and or")
_AUXILIARIES: Final = _terms("be have do can may might must shall should will would need") | NEGATORS
_PRONOUNS: Final = _terms("it they you he she we this these")
_OBJECTS: Final = _terms("it them")  # of a further order: "wipe it with a cloth or sponge"
_LIST_WORDS: Final = _terms("or nor any")
_SECOND_HALVES: Final = _terms("nor neither")  # "neither a nor b" denies once
_ENDS: Final = frozenset(",;:.!?()|—–")
_ITEM_TOKENS: Final = 3

FREE_TERMS: Final = _terms("free gratis complimentary waived")
_NO_GIFT: Final = _terms("feel from trial gluten sugar fat tax smoke")
_PAID: Final = _terms("cost fee price charge charged pay payable chargeable surcharge rent rented hire hired")
_NOTHING: Final = _terms("no not without never nothing zero")
_CURRENCY_SIGNS: Final = frozenset("$€£¥₹")
_OWED: Final = _PAID | _terms("interest tax commission deposit premium duty toll tuition postage shipping")
_DENIAL_REACH: Final = 4  # tokens from "no" to "fee": "no additional booking fee"

PRICE_TERMS: Final = FREE_TERMS | _PAID


class Charge(StrEnum):
    """What a clause says that a thing costs."""

    FREE = "free"
    PAID = "paid"


@dataclass(frozen=True, slots=True)
class Clause:
    """The tokens ``[first, last)`` of a sentence. ``terms`` are those that say what it is about.

    ``condition`` marks a clause that says when another holds.
    """

    first: int
    last: int
    terms: frozenset[int]
    denied: bool
    charge: Charge | None
    condition: bool


def clauses_of(text: str, starts: Sequence[int], terms: Sequence[int]) -> tuple[Clause, ...]:
    """The clauses of a sentence, in order; together they hold all its tokens."""
    found: list[Clause] = []
    first = 0
    for i in range(1, len(terms) + 1):
        if i < len(terms) and not _begins(text, starts, terms, i):
            continue
        found.append(_clause(text, starts, terms, first, i, found[-1] if found else None))
        first = i
    return tuple(found)


def with_conditions(clauses: Sequence[Clause]) -> tuple[tuple[frozenset[int], bool], ...]:
    """``(terms, denied)`` of each clause, and of each that has a condition beside it together with that."""
    views = [(clause.terms, clause.denied) for clause in clauses]
    for one, other in pairwise(clauses):
        if one.condition != other.condition:
            views.append((one.terms | other.terms, one.denied if other.condition else other.denied))
    return tuple(views)


def _begins(text: str, starts: Sequence[int], terms: Sequence[int], i: int) -> bool:
    if not _ENDS.isdisjoint(text[starts[i - 1] : starts[i]]) or terms[i] in _OPENERS:
        return True
    if terms[i] not in _JOINERS:
        return False
    after = i + 1 + (i + 1 < len(terms) and terms[i + 1] in _PRONOUNS)
    return after < len(terms) and terms[after] in _AUXILIARIES


def _clause(
    text: str, starts: Sequence[int], terms: Sequence[int], first: int, last: int, before: Clause | None
) -> Clause:
    own = terms[first:last]
    charge, spent = _charge(text, starts, terms, first, last)
    denials = sum(
        denies_at(terms, i) and terms[i] not in _SECOND_HALVES and i not in spent for i in range(first, last)
    )
    end = starts[last] if last < len(starts) else len(text)
    denials += denying_signs(text, starts[first], end)
    denials += bool(_SECOND_HALVES.intersection(own)) and not denials
    denied = denials % 2 == 1
    if (
        before is not None
        and before.denied
        and not denials
        and _goes_on(text, starts, terms, before, first, last)
    ):
        denied = True
    content = frozenset(own) - STOP_TERMS - NEGATORS
    return Clause(first, last, content, denied, charge, own[0] in _CONDITIONS)


def _goes_on(
    text: str, starts: Sequence[int], terms: Sequence[int], before: Clause, first: int, last: int
) -> bool:
    """Whether a stretch after a comma is a further item of what was denied: "no cords, plugs or timers"."""
    own = terms[first:last]
    if not _AUXILIARIES.isdisjoint(own) or own[0] in _OPENERS:
        return False
    comma = _ENDS.isdisjoint(text[starts[first - 1] : starts[first]].replace(",", ""))
    if comma and _OR in own and _OBJECTS.isdisjoint(own) and _forbids(terms[before.first : before.last]):
        return True  # "do not wash pans, boards or glasses in the machine"
    return own[0] in _LIST_WORDS or (last - first <= _ITEM_TOKENS and terms[before.first] not in NEGATORS)


def _forbids(terms: Sequence[int]) -> bool:
    return any(one == _DO and other == _NOT for one, other in pairwise(terms)) or terms[0] == _NEVER


def _charge(
    text: str, starts: Sequence[int], terms: Sequence[int], first: int, last: int
) -> tuple[Charge | None, frozenset[int]]:
    """What the clause says of the price; and the negations that are used up by that ("no fee" is free)."""
    free = paid = False
    spent: set[int] = set()
    for i in range(first, last):
        term = terms[i]
        if term in FREE_TERMS:
            if _NO_GIFT.isdisjoint(terms[max(first, i - 1) : i + 2]):
                denial = _denial(terms, first, i)
                paid, free = (True, free) if denial is not None else (paid, True)
                spent.update(() if denial is None else (denial,))
        elif term in _PAID:
            if i and terms[i - 1] == _OF and terms[max(0, i - 2)] in FREE_TERMS:
                continue  # free of charge
            if term == _PAY and _paid_out(terms, first, i):
                continue
            denial = _denial(terms, first, i)
            if denial is not None and i + 2 < last and terms[i + 1] in _WHOM and terms[i + 2] in _WHOSE:
                continue  # "it won't cost you your place" is of no price
            if denial is None:
                denial = _nothing_after(terms, i, last)
            if denial is not None:
                free = True
                spent.add(denial)
            else:
                paid = True
    end = starts[last] if last < len(starts) else len(text)
    if not free and not _CURRENCY_SIGNS.isdisjoint(text[max(0, starts[first] - 1) : end]):
        paid = True
    if free == paid:
        return None, frozenset()
    return (Charge.FREE if free else Charge.PAID), frozenset(spent)


_DO, _NEVER, _NOT, _OR = (term_of(word) for word in ("do", "never", "not", "or"))
_OF, _NO, _ZERO_WORD = (term_of(word) for word in ("of", "no", "nothing"))
_PAY, _BE = term_of("pay"), term_of("be")
_PAID_OUT: Final = _terms(
    "refund reimbursement interest benefit dividend wage salary bonus allowance compensation pension"
    " commission overtime leave stipend grant royalty"
)
_PASSIVE_REACH: Final = 3  # "are not yet paid"
_PARTING: Final = _terms("and or but with for while if")
_WHOM: Final = _terms("you him her us them me")
_WHOSE: Final = _terms("your his her our their my")


def _paid_out(terms: Sequence[int], first: int, i: int) -> bool:
    """Whether what is paid goes to the reader: "refunds are (not) paid within 14 days" is of no price."""
    passive = _BE in terms[max(first, i - _PASSIVE_REACH) : i]
    return passive and not _PAID_OUT.isdisjoint(terms[first:i])


def _nothing_after(terms: Sequence[int], i: int, last: int) -> int | None:
    """Where it says behind a verb that nothing is paid: "pay no fee", "costs the company nothing extra"."""
    for j in range(i + 1, min(last, i + 1 + _DENIAL_REACH)):
        if terms[j] in _PARTING:
            return None
        if terms[j] == _ZERO_WORD:
            return j
        if terms[j] == _NO:
            return j if j == i + 1 and not _OWED.isdisjoint(terms[j + 1 : min(last, j + 4)]) else None
    return None


def _denial(terms: Sequence[int], first: int, i: int) -> int | None:
    for j in range(i - 1, max(first, i - _DENIAL_REACH) - 1, -1):
        if terms[j] in _NOTHING:
            return j
    return None
