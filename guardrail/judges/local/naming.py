"""Which records of a table a claim speaks of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from guardrail.evidence.tokens import STOP_TERMS, words
from guardrail.judges.local.columns import end_of, ordered_columns
from guardrail.judges.local.records import CODE, ClaimTerms, NamedRow, TableText, place_of

_MOST_PLACES: Final = 8  # of a word in a claim
MOST_NAMED: Final = 8  # records of a claim
_NAMED: Final = 0.6  # of what tells a label from the others, that names it
_WEAK: Final = 0.4  # what a number or the word of a value counts in a label, beside other words


def records_named(table: TableText, said: ClaimTerms, with_question: str) -> tuple[list[NamedRow], bool]:
    """The records that a claim speaks of, and whether that is sure: by their labels, by a word that only one
    label has, by what the question asks about, by being the cheapest, or by a value that only one has."""
    if named := _named(table, said.tokens, said.text):
        return named, True
    if named := _named_in_part(table, said.tokens):
        return named, False
    tokens = [(start, term) for start, term, _ in words(with_question)]
    if named := _named(table, tokens, with_question) or _named_in_part(table, tokens):
        return [one._replace(places=frozenset()) for one in named], False
    if named := _at_the_end(table, said, with_question):
        return named, False
    named = _named_by_values(table, said.tokens)
    return named, bool(named) and all(len(one.places) > 1 for one in named)


def _named(table: TableText, tokens: Sequence[tuple[int, int]], text: str) -> list[NamedRow]:
    """The records that a text names, each by most of what tells its label from the others, side by side."""
    codes = frozenset(CODE.findall(text.casefold()))
    where: dict[int, list[int]] = {}
    for number, (_, term) in enumerate(tokens):
        places = where.setdefault(term, [])
        if len(places) < _MOST_PLACES:
            places.append(number)
    found: list[NamedRow] = []
    for row in table.alike:
        if not row.codes <= codes:
            continue
        own = [term for term in dict.fromkeys(row.terms) if term not in STOP_TERMS] or list(row.terms)
        weak = row.numbers | table.value_terms
        weight = {term: (_WEAK if term in weak else 1.0) / table.label_terms[term] for term in own}
        held = [term for term in own if term in where]
        if row in table.numbered and not row.numbers.issubset(where):
            continue
        whole = sum(weight.values())
        telling = any(2 * table.label_terms[term] <= len(table.rows) or len(table.rows) == 1 for term in held)
        if not held or not telling or sum(weight[term] for term in held) < _NAMED * whole:
            continue
        near = _closest([where[term] for term in held], len(row.terms) + 2)
        if near:
            found.append(NamedRow(row, min(near), frozenset(near)))
    kept = [one for one in found if not any(one.places < other.places for other in found)]
    kept.sort(key=lambda one: one.at)
    return kept if len(kept) <= MOST_NAMED else []


def _named_in_part(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[NamedRow]:
    """The record whose label has words of a text that no other label, header or value has."""
    others = table.value_terms | table.kind | table.header_terms.keys() | STOP_TERMS
    found: list[NamedRow] = []
    for row in table.alike:
        telling = {t for t in row.terms if table.label_terms[t] == 1 and t not in others} - row.numbers
        places = frozenset(number for number, (_, term) in enumerate(tokens) if term in telling)
        if places:
            found.append(NamedRow(row, min(places), places))
    most = max((len(one.places) for one in found), default=0)
    best = [one for one in found if len(one.places) == most]
    return best if len(best) == 1 else []


def _named_by_values(table: TableText, tokens: Sequence[tuple[int, int]]) -> list[NamedRow]:
    """The one record that a text names by words that only it has: "the school nurse" of a list of staff."""
    found: list[NamedRow] = []
    said = {term for _, term in tokens}
    for cells in table.columns.values():
        told = Counter(cell.told for _, cell in cells)
        for row, cell in cells:
            if told[cell.told] > 1 or not said.issuperset(cell.told) or not cell.wordy:
                continue
            if STOP_TERMS.issuperset(cell.told):
                continue
            place = place_of(tokens, cell.told)
            if place is not None:
                found.append(NamedRow(row, place[0], frozenset(range(*place))))
    return found if len({one.row.label for one in found}) == 1 else []


def _at_the_end(table: TableText, said: ClaimTerms, text: str) -> list[NamedRow]:
    """The record that is said to be the cheapest, heaviest and so on, where one column tells."""
    ways = end_of(text)
    columns = ordered_columns(table, said, ways) if ways and len(table.rows) > 1 else []
    if len(columns) != 1:
        return []
    best = max(amount for _, _, amount in columns[0])
    rows = [row for row, _, amount in columns[0] if amount == best]
    return [NamedRow(rows[0], 0, frozenset())] if len(rows) == 1 else []


def _closest(places: Sequence[Sequence[int]], most: int) -> list[int] | None:
    """A place of each term, all within ``most`` tokens; None where they stand further apart."""
    for first in places[0]:
        chosen = [min(each, key=lambda at: abs(at - first)) for each in places]
        if max(chosen) - min(chosen) < most:
            return chosen
    return None
