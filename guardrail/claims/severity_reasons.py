"""The built-in reasons of severity, and how grave a set of them is.

A set of reasons is an integer with a bit for each, in the order of ``SEVERITY_REASONS``: claims are rated on
the event loop, and there are far fewer sets of reasons than claims, so what a set amounts to is looked up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from guardrail.events import Severity


class Reason(NamedTuple):
    """A built-in reason: the severity it sets, and what it means."""

    severity: Severity
    description: str


#: Every built-in reason, in the order of report within a severity. ``disabled_reasons`` names these. The
#: severity is the highest that the reason sets: a mere mention of a topic is major.
SEVERITY_REASONS: Final[dict[str, Reason]] = {
    "dosage": Reason(Severity.CRITICAL, "an amount of a medicine, or how often it is taken"),
    "clinical_direction": Reason(Severity.CRITICAL, "what to do or not to do with a medicine or an illness"),
    "safety_warning": Reason(Severity.CRITICAL, "a danger, and what protects from it"),
    "price": Reason(Severity.CRITICAL, "an amount of money, a price, fee, refund or discount"),
    "deadline": Reason(Severity.CRITICAL, "by when, until when or within what time"),
    "limit": Reason(Severity.CRITICAL, "a maximum, minimum or allowance"),
    "quantity": Reason(Severity.CRITICAL, "a number with a unit of measure"),
    "legal": Reason(Severity.CRITICAL, "a right, duty, prohibition, contract term, tax or eligibility"),
    "contact": Reason(Severity.CRITICAL, "an e-mail address or telephone number"),
    "url": Reason(Severity.CRITICAL, "a web address"),
    "date": Reason(Severity.CRITICAL, "a day, a weekday or a time of day"),
    "period": Reason(Severity.MAJOR, "a year, month, decade or century, or a duration in years"),
    "percentage": Reason(Severity.MAJOR, "a percentage or a share of a whole"),
    "number": Reason(Severity.MAJOR, "a number, count or rank without a unit of measure"),
    "identifier": Reason(Severity.MAJOR, "a version, model, standard or reference number"),
    "named_entity": Reason(Severity.MAJOR, "a named person, organisation, place or product"),
    "permission": Reason(Severity.MAJOR, "how the reader may, can or must use a thing or a place"),
    "negation": Reason(Severity.MAJOR, "says that something is not so; lifts by one step, at most to major"),
    "superlative": Reason(Severity.MAJOR, "most, best, only, always; lifts by one step, at most to major"),
}
#: The bit of each reason.
BIT: Final[dict[str, int]] = {reason: 1 << i for i, reason in enumerate(SEVERITY_REASONS)}

#: As many bits as there are reasons.
REASON_BITS: Final = len(SEVERITY_REASONS)
_LIFTING: Final = BIT["negation"] | BIT["superlative"]
_RANKED: Final = tuple(Severity)
_CACHED: Final = 4096  # sets of reasons; a few hundred occur


@lru_cache(maxsize=_CACHED)
def grade(reasons: int, mentions: int, chatter: bool) -> tuple[Severity, tuple[str, ...]]:
    """The severity of a set of reasons, and their names, the gravest first.

    Those that are also in ``mentions`` are major at most; lifting ones add one step, up to major.
    ``chatter``: with no other reason the claim is minor.
    """
    named = [
        (name, Severity.MAJOR if bit & mentions else SEVERITY_REASONS[name].severity)
        for name, bit in BIT.items()
        if bit & reasons
    ]
    about = [severity for name, severity in named if not BIT[name] & _LIFTING]
    gravest = max(about, key=_rank) if about else Severity.MINOR if chatter else Severity.NORMAL
    if reasons & _LIFTING and gravest.rank < Severity.MAJOR.rank:
        gravest = _RANKED[gravest.rank + 1]
    named.sort(key=lambda pair: -pair[1].rank)
    return gravest, tuple(name for name, _ in named)


def _rank(severity: Severity) -> int:
    return severity.rank
