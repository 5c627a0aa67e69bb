"""A sentence without one of its short modifiers: "simmer gently in the small pan" -> "simmer gently".

What a modifier of one to five words adds is what a verifier overlooks first: the rest of the claim stands in
the source word for word. Where something is denied, general, compared or a condition nothing is left out:
what is left might say more than the whole.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

from training.lexicon import MONTHS, SMALL_NUMBERS

_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_UNSAFE: Final = re.compile(
    r"\b(?:not?|never|none|nothing|nobody|neither|nor|without|hardly|rarely|seldom|cannot|\w+n['’]t|all"
    r"|every(?:one|thing|body)|any\w*|each (?!day|week|month|year)|both|only|just|unless|if|when|until"
    r"|whether|most|least|more|less|fewer|than|as \w+ as|except|but|may|might|could|would|should|alleged\w*"
    r"|claim\w*|said|says|believe\w*|first|last|\w+est)\b",
    re.IGNORECASE,
)
_END: Final = r"(?=[.;]|,(?!\d)| and\b)(?!, \d{4})"
_WORD: Final = r"(?!\d)[\w'’-]+"
_PHRASE: Final = re.compile(
    r" (?:with|in|at|on|for|from|during|under|near|behind|through|after|before|via|inside|outside|throughout"
    r"|along|across|by) (?:(?:the|an?|his|her|its|their|your|our|this|one|two|three|ten|\d+) )?"
    rf"{_WORD}(?: {_WORD})?{_END}"
)
_OFTEN: Final = re.compile(
    r" (?:every|each|per|once an?|twice an?|once every|on) (?:day|week|month|year|night|morning|evening|hour"
    rf"|person|household|customer|visit|weekday|{_DAYS})s?{_END}"
)
_WHEN: Final = re.compile(
    rf" (?:in|since|on) (?:(?:early|late|{'|'.join(MONTHS)}) )?(?:\d{{1,2}}, )?\d{{4}}s?{_END}"
)
_ADJECTIVE: Final = re.compile(
    r"(?<=[a-z]) (?P<before>the|an?|his|her|its|their|your|our|of|with|for|by|from) "
    rf"(?P<gone>{'|'.join(SMALL_NUMBERS[1:])}|old|new|small|large|big|long|short|young|local|red|blue|green"
    r"|white|black|free|full|early|late|private|main|daily|weekly|annual|monthly|fresh|dry|hot|cold|paid"
    r"|written|[a-z]{3,}(?:ical|ional|eral|ious|eous|able|ible|ful|less|ary|ese|ern|ive|ous|ish|ic)) "
    r"(?P<after>[a-z]{3,})"
)
_MANNER: Final = re.compile(
    r"(?<=[a-z]) (?P<gone>[a-z]{3,}(?:ally|ively|ously|fully|edly|ently|antly|ickly|arly|oudly|eeply))\b"
)
_NOT_MANNER: Final = frozenset(
    """
    usually generally typically especially basically originally potentially allegedly reportedly
    supposedly apparently nearly particularly regularly frequently currently previously subsequently
    partially actually virtually similarly
    """.split()  # noqa: SIM905
)
_NO_MODIFIER: Final = frozenset(
    """
    former possible potential public fictional possessive native alternative representative derivative
    executive
    """.split()  # noqa: SIM905
)
_BOUND: Final = re.compile(  # what such a phrase completes rather than modifies
    r"(?:\b(?:is|are|was|were|be|been|being|located|based|born|known|used|part|member|consist\w*|depend\w*"
    r"|relat\w*|result\w*|deal\w*|interested|involved|engaged|responsible|search\w*|look\w*|wait\w*|pay|paid"
    r"|ask\w*|agree\w*|suffer\w*|beg[au]n|play\w*|provid\w*|made|called|and|or|to|of|the|an?))$",
    re.IGNORECASE,
)
_LEAST_WORDS: Final = 4


def without_modifier(sentence: str, random_: random.Random) -> str | None:
    """The sentence with one modifier left out, or None where there is none that may be."""
    if _UNSAFE.search(sentence):
        return None
    found = [shorter for shorter in _shorter(sentence) if len(shorter.split()) >= _LEAST_WORDS]
    return random_.choice(found) if found else None


def _shorter(sentence: str) -> Iterator[str]:
    for pattern in (_PHRASE, _OFTEN, _WHEN):
        for match in pattern.finditer(sentence):
            if not _BOUND.search(sentence[: match.start()]):
                yield sentence[: match.start()] + sentence[match.end() :]
    for match in _ADJECTIVE.finditer(sentence):
        before, gone = match["before"], match["gone"]
        if gone in _NO_MODIFIER or (before in ("a", "an") and gone in SMALL_NUMBERS):
            continue
        if before in ("a", "an"):
            before = "an" if match["after"][0] in "aeiou" else "a"
        yield f"{sentence[: match.start()]} {before} {sentence[match.start('after') :]}"
    for match in _MANNER.finditer(sentence):
        if match["gone"] not in _NOT_MANNER:
            yield sentence[: match.start()] + sentence[match.end() :]
