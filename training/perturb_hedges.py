"""Hedges, bounds and conditions put into a source: a claim without them says more than the source does."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from training.changes import Change

_BE: Final = re.compile(
    r"\b(is|are|was|were)\b(?= (?:a|an|the|one|two|located|known|used|made|built|born|named|found|caused|sold"
    r"|founded|killed|responsible|able|available|safe|effective|[a-z]{4,}(?:ed|en|ive|al|ous|able|ful))\b)"
    r"(?! (?:located|born|named) (?:in|on|at|after)? ?\d)"
)
_DOUBTS: Final = ("probably", "possibly", "reportedly", "allegedly", "perhaps", "rumoured to be",
                  "said to be", "believed to be", "thought to be", "usually", "sometimes",
                  "often")  # fmt: skip
_NUMBER: Final = re.compile(
    r"(?<![\w.,$€£-])(?<!up to )(?<!at least )(?<!at most )(?<!than )(?<!about )(?<!of )"
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:\.\d+)?|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)"
    r"(?= (?!(?:January|February|March|April|May|June|July|August|September|October|November|December)\b)"
    r"[a-z]{3,})"
)
_BOUNDS: Final = ("up to", "at most", "fewer than", "no more than", "nearly", "almost")
_FIRM: Final = re.compile(r"\b(will|must|can)(?= (?!not\b|also\b|never\b)[a-z]{2,}\b)")
_WEAKER: Final = {
    "will": ("may", "might", "is expected to", "could"),
    "must": ("should", "may"),
    "can": ("may", "could in theory"),
}
_SUBJECT: Final = re.compile(
    r"^(The )?([A-Z]?[a-z]+s|People|Children|Women|Men)(?= (?:are|have|can|will|do)\b)"
)
_LASTING: Final = re.compile(
    r"\b(?:is|are|can|has|have|must|should|may|offers?|provides?|allows?|contains?)\b"
)
_PAST: Final = re.compile(r"\b(?:was|were|had|did|[a-z]{3,}ed)\b")
_CONDITIONS: Final = (
    " in severe cases", " in adults under 65", " for members only", " during the first year",
    " if the order exceeds fifty euros", " unless the patient is pregnant", " in most years",
    " when it is used as directed", " provided that a fee is paid", " only in the summer months",
    " if a doctor prescribes it", " except on public holidays", " in some of the older models",
    " for those who apply in advance", " as long as stocks last", " but only in theory",
    " under laboratory conditions", " in parts of the country", " if the contract was signed before 2020",
    " unless another date is agreed in writing", " for customers of the premium plan",
    " with certain exceptions",
    " only for the first three months", " in animals", " outside the European Union", " when taken with food",
)  # fmt: skip


def hedged(sentence: str, random_: random.Random) -> Change | None:
    """``claim`` is the sentence with a hedge in it, ``old`` where in the sentence it went in."""
    options = list(_options(sentence, random_))
    return random_.choice(options) if options else None


def _options(sentence: str, random_: random.Random) -> Iterator[Change]:
    lasting = bool(_LASTING.search(sentence)) and not _PAST.search(sentence)
    for match in _BE.finditer(sentence):
        doubt = random_.choice(_DOUBTS)
        yield _put(sentence, match.span(), f"{match[1]} {doubt}")
    for match in _NUMBER.finditer(sentence):
        yield _put(sentence, match.span(), f"{random_.choice(_BOUNDS)} {match.group()}")
    for match in _FIRM.finditer(sentence):
        yield _put(sentence, match.span(), random_.choice(_WEAKER[match[1]]))
    if lasting and (subject := _SUBJECT.match(sentence)):
        some = random_.choice(("Some", "A few", "Many", "Most"))
        yield _put(sentence, subject.span(), f"{some} {'of the ' if subject[1] else ''}{subject[2].lower()}")
    if lasting and sentence.endswith(".") and len(sentence.split()) < 28:
        end = len(sentence) - 1
        for condition in random_.sample(_CONDITIONS, 2):
            yield _put(sentence, (end, end), condition)


def _put(sentence: str, span: tuple[int, int], new: str) -> Change:
    """The claim of the whole is not backed, as far as it goes beyond what the hedge leaves of it."""
    start, end = span
    return Change(sentence[:start] + new + sentence[end:], "qualifier", ((start, start + len(new)),), span)
