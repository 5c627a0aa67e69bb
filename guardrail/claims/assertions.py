"""Assertions where none are expected: in headings, offers, lead-ins and the texts of links.

"### The maximum dose is 5000 mg a day" is a heading to Markdown and a claim to its reader. Whether such a
line asserts is read from its verbs: one with a subject of its own states something, one behind "what" or "if"
does not, nor does a noun phrase without a verb, unless it names an amount.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

from guardrail.claims.detector import ASKS, INTERROGATIVES, ORDERS, VERDICT, Statement, fold
from guardrail.claims.phrases import pattern, words


class Assertion(IntEnum):
    """How surely a segment that was let off states something."""

    NONE = 0
    #: A claim if an error in it would be grave.
    WEAK = 1
    #: A claim if it is about anything that the severity rules know.
    SOME = 2
    STRONG = 3


#: What may be a claim after all.
_LINES: Final = frozenset({Statement.STRUCTURE, Statement.CITATION})
_SPOKEN: Final = frozenset(
    {Statement.GREETING, Statement.OFFER, Statement.HEDGE, Statement.META, Statement.LEAD_IN}
)
_AMOUNT: Final = pattern("amount")
_GRANTING: Final = pattern("granting")
_MARKS: Final = " \t*_#`>~\"'“”"
_TOKEN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?|[,;:–—|.!?]|\s-\s")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_BREAKS: Final = frozenset(",;:–—|.!?-")
_STATING: Final = words("stating")
_EMBEDDERS: Final = words("embedders")
_BINDERS: Final = words("binders")
_ADDRESSED: Final = words("addressed")
_POINTERS: Final = words("pointers")
_FREE_WITH: Final = words("fronted")
# "You can …", "it is …", "Dose: you must …" speak in whole sentences.
_ADDRESSES: Final = re.compile(rf"(?:\A|[:–—|] ?)(?:{'|'.join(_ADDRESSED)}) (?:{'|'.join(_STATING)}) \S+ \S")


def asserts(text: str, statement: Statement) -> Assertion:
    """How surely a segment that reads ``text`` states something although it was let off as ``statement``.

    Linear in the length of ``text``. Abstentions, answers and questions are what they are: never anything.
    """
    if statement in _LINES:
        return line_asserts(fold(text))
    if statement not in _SPOKEN:
        return Assertion.NONE
    plain = fold(text).strip(_MARKS)
    if VERDICT.match(plain) or _GRANTING.search(plain):
        return Assertion.STRONG
    if _AMOUNT.search(plain) or _states(plain, leads=statement is Statement.LEAD_IN):
        return Assertion.WEAK
    return Assertion.NONE


def line_asserts(plain: str) -> Assertion:
    """A heading, a bold line, a table's header row or the text of a link, in lower case."""
    plain = plain.strip().strip(_MARKS)
    if not plain or plain.endswith(ASKS):
        return Assertion.NONE
    first = next(iter(plain.split(None, 1)), "").rstrip(",")
    orders = first == "don't" or plain.startswith("do not ")
    if (first in INTERROGATIVES or first in _EMBEDDERS) and not orders:
        # "What it costs: $5 a month" answers itself.
        plain = plain.partition(":")[2].strip()
        if not plain:
            return Assertion.NONE
    if VERDICT.match(plain) or _ADDRESSES.search(plain):
        return Assertion.STRONG
    states = _states(plain, leads=False)
    if states and plain.endswith((".", "!")):
        return Assertion.STRONG
    amounts = len(_AMOUNT.findall(plain))
    cells = plain.count(",")
    if amounts and not (cells >= 2 and amounts >= cells):  # columns of amounts are a header
        named = len(_LETTERS.findall(_AMOUNT.sub(" ", plain)))
        if named >= 2 or (named and (cells or ":" in plain)):
            return Assertion.WEAK
    return Assertion.SOME if states else Assertion.NONE


def _states(plain: str, *, leads: bool) -> bool:
    """Whether a main clause has a subject and a verb, or an order begins a clause.

    ``leads``: the last clause leads over to what follows, and its verb states nothing yet. A verb behind an
    embedder ("if", "what", "that") is spent on it; "the dose you should take" is about a dose.
    """
    tokens = _TOKEN.findall(plain)
    begins, embedded, open_embedding, found = 0, False, False, False
    for i, token in enumerate(tokens):
        token = token.strip()
        if token in _BREAKS:
            if found and i + 1 < len(tokens):
                return True
            begins, embedded, open_embedding = i + 1, False, False
        elif token in _BINDERS:
            if found:
                return True
            embedded = open_embedding
            if not open_embedding:
                begins = i + 1
        elif token in _EMBEDDERS:
            embedded = open_embedding = True
        elif i == begins and _orders(tokens, i):
            found = True
        elif token in _STATING:
            found = found or (not embedded and i > begins and _subject_stands(tokens, begins, i))
            embedded = False
        if found and not leads:
            return True
    return False


def _orders(tokens: list[str], i: int) -> bool:
    """Whether an order begins here: "avoid …", "do not …"."""
    following = tokens[i + 1 : i + 2]
    return bool(following) and (tokens[i] in ORDERS or (tokens[i] == "do" and following == ["not"]))


def _subject_stands(tokens: list[str], begins: int, verb: int) -> bool:
    """Whether the verb has a subject of its own, and none that only points at the answer."""
    before = tokens[verb - 1]
    if before in _POINTERS:
        return False
    # "side effects you may have" is a noun; "with this drug you can drink" is not.
    return before not in _ADDRESSED or verb - 1 == begins or tokens[begins] in _FREE_WITH
