"""Of several values of one sentence, which belongs to what: "9 on weekdays and 11 on Sundays".

A sentence is read so only where each value stands in a part of its own, and one comma or "and" between two
values says where the parts meet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import Enum
from itertools import pairwise
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.source import Sentence, tokens_within
from guardrail.values import Value, ValueKind, agree, comparable
from guardrail.values.units import BY_NAME

PRICING: Final = frozenset(
    term_of(word)
    for word in "cost price priced charge pay payable fee rate sell amount".split()  # noqa: SIM905
)
_MEETING: Final = re.compile(
    r"[,;–—](?:\s{0,4}(?:and|or|but|while|whereas)\b)?|\b(?:and|or|but|while|whereas)\b", re.IGNORECASE
)
_MORE_OF_IT: Final = frozenset(
    term_of(word)
    for word in "it this that which too also even including well same both like only if when".split()  # noqa: SIM905
)
_LEAD_IN: Final = 2  # content words before a comma that go with what follows: "on Sundays, it opens at 9"
_DURATIONS: Final = frozenset(("time", "months"))


class Belongs(Enum):
    """OWN: the claim says the value of what the sentence says it of. UNKNOWN: the parts don't tell."""

    OWN = "own"
    UNKNOWN = "unknown"


def belonging(view: ClaimView, value: Value, sentence: Sentence, frame: Collection[int]) -> Value | Belongs:
    """The value that the sentence has for what the claim says its own of; or that it is of that, or unknown.

    ``frame`` are the terms that may go with the claim's value: its own, and what its pronouns stand for.
    Another part's value is given only where the claim has every word that tells that part from the others,
    lacks those of the part with its own value, and has no word that the sentence has not: whoever words it
    freely may mean either.
    """
    said = _said_with(view, value, frame)
    rivals = [v for v in sentence.facts.values if _of_a_sort(value, v) or agree(value, v)]
    spans = _parts(sentence, rivals)
    own = [number for number, rival in enumerate(rivals) if agree(value, rival)]
    if said is None or spans is None or len(own) != 1:
        return Belongs.UNKNOWN
    (at,) = own
    telling = _telling(sentence, rivals, spans)
    if not all(telling):
        return Belongs.UNKNOWN
    has = telling[at] & said
    others = [terms for number, terms in enumerate(telling) if number != at]
    several = sum(_of_a_sort(value, v) for v in view.values) > 1
    anywhere = said if several or not _goes_on_about(view, value) else frozenset(view.terms)
    if has and (all(terms.isdisjoint(anywhere) for terms in others) or (at > 0 and has == telling[at])):
        return Belongs.OWN
    # What stands before the first value may be said of all: to have some of it is not to mean the first.
    lacking = has != telling[at] if at == 0 else telling[at].isdisjoint(said if several else view.terms)
    if not lacking or not _in_its_words(view, sentence, said):
        return Belongs.UNKNOWN
    meant = [number for number, terms in enumerate(telling) if number != at and terms <= said]
    return rivals[meant[0]] if len(meant) == 1 else Belongs.UNKNOWN


def _goes_on_about(view: ClaimView, value: Value) -> bool:
    """Whether a claim says its value of what comes after, too: "12 euros, even for children"."""
    part = part_of(view, value)
    return not _MORE_OF_IT.isdisjoint(view.terms[part.stop :]) or len(view.terms) == part.stop


def _said_with(view: ClaimView, value: Value, frame: Collection[int]) -> frozenset[int] | None:
    """The terms of the claim that go with a value, those of other values among them ("on Sundays"); None
    where it has several of the sort and it is not plain where their parts meet.

    "It rose by 5 % in Europe but fell in Asia" says nothing of Asia that goes with its value.
    """
    rivals = [v for v in view.values if _of_a_sort(value, v)]
    if len(rivals) > 1:
        spans = _parts(view, rivals)
        return None if spans is None else _telling(view, rivals, spans, shared=True)[rivals.index(value)]
    near = {view.terms[i] for i in part_of(view, value)}
    beside = (tokens_within(view.starts, v.start, v.end) for v in view.values if v is not value)
    own = {view.terms[i] for i in tokens_within(view.starts, value.start, value.end)}
    said = (near & frozenset(frame)) | (near & {view.terms[i] for span in beside for i in span} - own)
    return frozenset(said) | (frozenset(frame) & view.antecedents.keys())


def part_of(view: ClaimView, value: Value) -> range:
    """The tokens of a claim between the commas and "and"s around a value, with a short lead-in."""
    first, last = 0, len(view.text)
    for meeting in _MEETING.finditer(view.text):
        if meeting.end() <= value.start and len(_content(view, first, meeting.start())) > _LEAD_IN:
            first = meeting.end()
        elif meeting.start() >= value.end:
            last = meeting.start()
            break
    return tokens_within(view.starts, first, last)


def _content(view: ClaimView, start: int, end: int) -> set[int]:
    return {view.terms[i] for i in tokens_within(view.starts, start, end)} - STOP_TERMS


def _of_a_sort(value: Value, other: Value) -> bool:
    """Whether two values may be alternatives, as comparable ones are, and also "60 days" and "two years",
    and figures of nothing named, which say different things in different sentences."""
    if comparable(value, other):
        return True
    if value.kind is not other.kind:
        return False
    if value.kind is ValueKind.NUMBER:
        return value.noun is None and other.noun is None
    return (
        value.kind is ValueKind.QUANTITY
        and value.per == other.per
        and {BY_NAME[each.unit or "time"].dimension for each in (value, other)} <= _DURATIONS
    )


def _parts(text: ClaimView | Sentence, rivals: Sequence[Value]) -> list[range] | None:
    """The tokens of each value's part; None where it is not plain where they meet."""
    if len(rivals) < 2:
        return None
    cuts = [0]
    for first, second in pairwise(rivals):
        cut = _cut(text, first.end, second.start)
        if cut is None:
            return None
        cuts.append(cut)
    cuts.append(len(text.text))
    return [tokens_within(text.starts, start, end) for start, end in pairwise(cuts)]


def _cut(text: ClaimView | Sentence, start: int, end: int) -> int | None:
    """Where between two values the part of the second begins; None where there is more than one such place:
    "20 mg and children, on average, 5 mg"."""
    meetings = list(_MEETING.finditer(text.text, start, max(start, end)))
    if not meetings or not _says_nothing(text, meetings[0].end(), meetings[-1].end()):
        return None
    return meetings[0].start()


def _says_nothing(text: ClaimView | Sentence, start: int, end: int) -> bool:
    return all(text.terms[i] in STOP_TERMS for i in tokens_within(text.starts, start, end))


def _telling(
    text: ClaimView | Sentence, rivals: Sequence[Value], spans: Sequence[range], *, shared: bool = False
) -> list[frozenset[int]]:
    """The terms of each part that no other part has (with ``shared`` all), without those of its value."""
    told = []
    for rival, span in zip(rivals, spans, strict=True):
        inside = tokens_within(text.starts, rival.start, rival.end)
        terms = {text.terms[i] for i in span if i not in inside} - STOP_TERMS
        told.append(terms - PRICING if rival.kind is ValueKind.MONEY else terms)
    if shared:
        return [frozenset(terms) for terms in told]
    return [frozenset(terms.difference(*(other for other in told if other is not terms))) for terms in told]


def _in_its_words(view: ClaimView, sentence: Sentence, said: Collection[int]) -> bool:
    """Whether the claim has no word of its own beside the value."""
    return all(term in sentence.known or term in STOP_TERMS or term in view.antecedents for term in said)
