"""What a claim says of the documents' silence: "the documents don't mention a trial, but ..."."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of, words
from guardrail.judges.local.rarity import Rarity

_SOURCES: Final = (
    r"(?:documents?|sources?|contexts?|texts?|articles?|passages?|materials?|pages?|excerpts?|files?"
    r"|information|search results?|handbook|guide|manual|leaflet|brochure|policy|report|listing)"
)
_GIVEN: Final = r"(?:(?:the|this|these|your|any|provided|given|available|retrieved|supplied|above|of) ){0,4}"
_SAID: Final = (
    r"(?:mention(?:ed|s)?|specif(?:y|ied|ies)|state[ds]?|list(?:ed|s)?|cover(?:ed|s)?|include[ds]?|provide[ds]?"
    r"|address(?:ed|es)?|discuss(?:ed|es)?|describe[ds]?|give[ns]?|indicate[ds]?|contain(?:ed|s)?|say|says|said"
    r"|note[ds]?|explain(?:ed|s)?|clarif(?:y|ied|ies)|detail(?:ed|s)?)"
)
_NOT: Final = r"(?:not|n['’]t|never|nowhere)"
_SILENT: Final = re.compile(
    rf"\b{_GIVEN}{_SOURCES}(?: [\w'’-]+){{0,4}}? ?(?:\w+{_NOT}|{_NOT}|no longer) (?:\w+ ){{0,2}}?{_SAID}\b"
    rf"|\b(?:is|are|was|were|has|have|does|do|did)(?:n['’]t| not)(?: been)? (?:\w+ ){{0,1}}?{_SAID}"
    rf"(?: (?:anywhere|explicitly|here))?(?: (?:in|by|on) {_GIVEN}{_SOURCES})"
    rf"|\b(?:no|without) (?:mention|information|details?)\b",
    re.IGNORECASE,
)
_BORDER: Final = re.compile(
    r"[;:–—]\s|,\s++(?:and|but|though|although|while|however|yet|so)\b|(?<!\s)\s++but\b", re.IGNORECASE
)
_FRAME: Final = re.compile(
    rf"{_SOURCES}|{_SAID}|{_NOT}|provided|given|available|explicitly|there|any|information|details?|no",
    re.IGNORECASE,
)
_SAVE: Final = re.compile(
    r"\b(?:other than|except|apart from|aside from|besides|beyond|more than)\b", re.IGNORECASE
)
_MENTIONED: Final = 0.75  # of what is said not to be mentioned, by rarity, in one sentence
_MOST_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Silence:
    """``topic`` is what the documents are said to be silent on; ``rest`` the span of what else the claim
    says, None where that is nothing."""

    topic: frozenset[int]
    rest: tuple[int, int] | None


def silence_of(text: str) -> Silence | None:
    """What a claim says of the documents' silence; None where it says nothing of it. Linear in its length."""
    found = _SILENT.search(text[:_MOST_CHARS])
    if found is None:
        return None
    borders = [match.span() for match in _BORDER.finditer(text)]
    start = max((end for _, end in borders if end <= found.start()), default=0)
    end = min((begin for begin, _ in borders if begin >= found.end()), default=len(text))
    if _SAVE.search(text, start, end):
        return None  # silent on all but something that they do mention
    topic = frozenset(term_of(word) for _, _, word in words(_FRAME.sub(" ", text[start:end]))) - STOP_TERMS
    if not topic:
        return None
    before, after = (0, start), (end, len(text))
    rest = max(before, after, key=lambda span: span[1] - span[0])
    border = _BORDER.match(text, rest[0])
    rest = (border.end() if border else rest[0], rest[1])
    return Silence(topic, rest if len(words(text[slice(*rest)])) > 2 else None)


def mentioned(silence: Silence, evidence: EvidenceIndex, rarity: Rarity) -> int | None:
    """The sentence that speaks of what the documents are said to be silent on; None where none does."""
    layout = evidence.layout
    total = sum(rarity.of(term) for term in silence.topic)
    held: dict[int, float] = {}
    for term in silence.topic:
        for number in layout.sentences.holding_any(layout.positions(term)):
            held[number] = held.get(number, 0.0) + rarity.of(term)
    best = max(held, key=lambda number: held[number], default=None)
    return best if best is not None and held[best] >= _MENTIONED * total else None
