"""Claims that a thing need not be done, of which a source says that it must.

A denied need is no denied fact: "you don't have to" is the opposite of "you must", whatever else is denied
around it ("whoever can't come should cancel"). So it is looked for by itself, in the forms that English has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from guardrail.evidence.tokens import term_of
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.compare import Comparison
from guardrail.judges.local.source import Sentence

_NEEDLESS: Final = re.compile(
    r"\b(?:do|does)(?:n['’]t| not) (?:need|have) to\b|\bneed(?:n['’]t| not)\b|\bno need to\b"
    r"|(?:\bnot|n['’]t) (?:be )?(?:necessary|required|obliged|compulsory|mandatory|obligatory)\b",
    re.IGNORECASE,
)
_DEMANDED: Final = re.compile(
    r"\b(?:must|should|shall|ought to)\b(?! (?:not|never|only|also)\b)(?!n['’]t)"
    r"|(?<!not )(?<!n['’]t )(?<!never )\b(?:ha(?:s|ve)|needs?) to\b"
    r"|\b(?:is|are|be) (?:required|obliged|compulsory|mandatory|obligatory|necessary)\b",
    re.IGNORECASE,
)
_RELAXED: Final = re.compile(  # demands with an exception, which the claim may be
    r"\b(?:only|unless|except\w*|exempt\w*|without|optional\w*|voluntar\w+|if|neither|nor)\b", re.IGNORECASE
)
_CONDITION: Final = re.compile(
    r"\b(?:unless|if|once|until|when|while|where|only|again|from|after|under|with|for)\b", re.IGNORECASE
)
_LEAST: Final = 0.6
_ALL: Final = 0.999
_LEAST_WORDS: Final = 2
_NEED: Final = frozenset(
    term_of(word)
    for word in "need needed necessary required obliged compulsory mandatory obligatory".split()  # noqa: SIM905
)


def demanded(view: ClaimView, compared: Sequence[Comparison]) -> tuple[Sentence, bool] | None:
    """The sentence that demands what the claim says need not be done, and whether it has all of the claim.

    None where there is none, where another sentence has as much of the claim and doesn't demand it, and for
    claims with values: whether "over 12" is a case of "under 12" is not compared here.
    """
    if view.value_tokens or not _NEEDLESS.search(view.text):
        return None
    matter = {term: weight for term, weight in view.content.items() if term not in _NEED}
    total = sum(matter.values())
    least = total * (_ALL if _CONDITION.search(view.text) else _LEAST)
    best: Sentence | None = None
    most = other = 0.0
    for each in compared:
        held = matter.keys() & each.sentence.known
        weight = sum(matter[term] for term in held)
        if not _demands(each.sentence.text):
            other = max(other, weight)
        elif weight > most and weight >= least and len(held) >= _LEAST_WORDS:
            best, most = each.sentence, weight
    return (best, most >= _ALL * total) if best is not None and other < most else None


def _demands(sentence: str) -> bool:
    """Whether a sentence demands something without exception."""
    return (
        _DEMANDED.search(sentence) is not None
        and _NEEDLESS.search(sentence) is None
        and _RELAXED.search(sentence) is None
    )
