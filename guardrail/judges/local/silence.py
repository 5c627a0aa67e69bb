"""What a claim says of the documents' silence: "the documents don't mention a trial, but ..."."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of, words
from guardrail.judges.local.rarity import Rarity

_SOURCES: Final = (
    r"(?:documents?|sources?|contexts?|texts?|articles?|passages?|materials?|pages?|excerpts?|files?"
    r"|search results?|provided information)"
)
_GIVEN: Final = r"(?:(?:the|this|these|your|any|provided|given|available|retrieved|supplied|above|of) ){0,4}"
_SAY: Final = (
    r"(?:mention|specify|state|say|list|address|discuss|describe|indicate|note|explain|clarify|detail|tell"
    r"|speak of)s?"
)
_SAID: Final = (
    r"(?:mentioned|specified|stated|said|listed|addressed|discussed|described|indicated|noted|explained|given"
    r"|provided|covered|included|found)"
)
_IN: Final = rf"(?:in|by|on|from) {_GIVEN}{_SOURCES}"
_TOPIC: Final = r"(?P<topic>[^.;:!?]{2,200})"
_SHORT: Final = r"(?P<topic>[^.;:!?,]{2,200}?)"
_SILENT: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_GIVEN}{_SOURCES} (?:do(?:es)?|did)(?:n['’]t| not) (?:\w+ly )?{_SAY} {_TOPIC}",
        rf"{_GIVEN}{_SOURCES} (?:never {_SAY}|(?:says? nothing|(?:is|are) silent) (?:about|of|on)) {_TOPIC}",
        rf"{_SHORT} (?:is|are|was|were)(?:n['’]t| not) (?:\w+ly )?{_SAID}(?: \w+)? {_IN}",
        rf"nothing (?:is |was )?{_SAID}?(?: {_IN})? ?(?:about|on|of) {_SHORT}(?: {_IN})?",
        rf"there (?:is|are|was|were) no (?:mention|information|details?|statement) (?:of|about|on|regarding) "
        rf"{_SHORT}(?: {_IN})?",
    )
)
"""Whole clauses of a claim. One that merely names documents, or lacks something, speaks of the world."""
_CLAUSE: Final = re.compile(r"[;:–—]\s|,\s|\bbut\b", re.IGNORECASE)
_LINKING: Final = re.compile(
    r"(?:\s|,|and\b|but\b|though\b|although\b|while\b|however\b|yet\b|so\b|unfortunately\b)+", re.IGNORECASE
)
_STATING: Final = re.compile(r"\d|\b(?:but|however|though|although|while|yet|so|which|who)\b", re.IGNORECASE)
"""What no topic has: a figure, or a statement of its own."""
_ITEMS: Final = re.compile(r",|\b(?:or|and|nor)\b", re.IGNORECASE)
_SAVE: Final = re.compile(
    r"\b(?:other than|except|apart from|aside from|besides|beyond|more than|anything else)\b", re.IGNORECASE
)
_IDLE: Final = frozenset(
    term_of(word)
    for word in """any specific exact explicit detail information anything something rule whether how much
    many""".split()  # noqa: SIM905
)
_MENTIONED: Final = 0.55  # of a topic, by rarity, in one sentence
_MOST_CHARS: Final = 1_000
_MOST_CLAUSES: Final = 12


@dataclass(frozen=True, slots=True)
class Silence:
    """``topics`` are what the documents are said to be silent on, each by its terms; ``rest`` is the span of
    what else the claim says, None where that is nothing."""

    topics: tuple[frozenset[int], ...]
    rest: tuple[int, int] | None


def silence_of(text: str) -> Silence | None:
    """What a claim says of the documents' silence; None where it says nothing of it, or too much to tell."""
    if len(text) > _MOST_CHARS:
        return None
    for start, end in _clauses(text):
        clause = text[start:end].strip().rstrip(".!")
        match = next((m for m in (pattern.fullmatch(clause) for pattern in _SILENT) if m), None)
        if match is None or _SAVE.search(clause) or _STATING.search(match["topic"]):
            continue
        topics = tuple(
            terms
            for item in _ITEMS.split(match["topic"])
            if (terms := frozenset(term for _, term, _ in words(item)) - STOP_TERMS - _IDLE)
        )
        if not topics:
            return None
        before, after = (0, start), (end, len(text))
        first, last = max(before, after, key=lambda span: span[1] - span[0])
        linking = _LINKING.match(text, first, last)
        first = linking.end() if linking else first
        return Silence(topics, (first, last) if words(text[first:last]) else None)
    return None


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of a claim that may be a clause, the longest first: from one border to another, without what
    links them."""
    borders = [(0, 0), *(match.span() for match in _CLAUSE.finditer(text)), (len(text), len(text))]
    if len(borders) > _MOST_CLAUSES:
        return
    for width in range(len(borders) - 1, 0, -1):
        for at in range(len(borders) - width):
            start, end = borders[at][1], borders[at + width][0]
            linking = _LINKING.match(text, start, end)
            yield linking.end() if linking else start, end


def mentioned(silence: Silence, evidence: EvidenceIndex, rarity: Rarity) -> int | None:
    """A sentence that speaks of one of the topics that the documents are said to be silent on; None where
    none does."""
    layout = evidence.layout
    for topic in silence.topics:
        total = sum(rarity.of(term) for term in topic)
        held: dict[int, float] = {}
        for term in topic:
            for number in layout.sentences.holding_any(layout.positions(term)):
                held[number] = held.get(number, 0.0) + rarity.of(term)
        best = max(held, key=lambda number: held[number], default=None)
        if best is not None and held[best] >= _MENTIONED * total:
            return best
    return None
