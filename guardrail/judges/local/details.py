"""The claim's values (numbers, dates, money, contacts) against those of the sentences that speak of the
same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of
from guardrail.judges.local.alternatives import PRICING, Belongs, belonging, part_of
from guardrail.judges.local.claim_view import PRONOUNS, ClaimView
from guardrail.judges.local.polarity import negations
from guardrail.judges.local.source import NUMBER_WORDS, Sentence, Source, tokens_within
from guardrail.values import Bound, MatchState, Value, ValueKind, agree, comparable

_NEARNESS: Final = 0.9  # what a word counts less for each word between it and the value
_ELSEWHERE: Final = 0.25  # of a word that stands by another value of the same sort
_SENTENCES_WITH_THE_NUMBER: Final = 6
_READINGS: Final = 24  # occurrences of a figure that are looked at
_MARGIN: Final = 0.15  # of the frame, by which another value must be said before the claim's own is doubted
_OPPOSING_FRAME: Final = 0.75
_SAME_MATTER: Final = 0.65  # of what stands around a figure, for another after the same word to oppose it
_AFTER: Final = frozenset(term_of(word) for word in "for to in on at by during".split())  # noqa: SIM905
_WRITTEN_WITHOUT_FIGURES: Final = frozenset({ValueKind.EMAIL, ValueKind.URL, ValueKind.IDENTIFIER})
_FIGURE: Final = re.compile(r"\d|[½¼¾⅓⅔]")
_TURNED_ROUND: Final = {
    Bound.OVER: Bound.AT_MOST,
    Bound.AT_LEAST: Bound.UNDER,
    Bound.UNDER: Bound.AT_LEAST,
    Bound.AT_MOST: Bound.OVER,
}
_DAY: Final = r"(?:\w+\.? ){0,2}\d{3,4}|\w+ \d{1,2}, \d{4}"
_LIFE: Final = re.compile(rf"\s*(?:{_DAY})\s*[–—-]\s*(?:{_DAY})\s*")
_OPENING: Final = 2  # terms within which a sentence's subject is a pronoun, if it is one
_LINKS: Final = frozenset(term_of(word) for word in ("and", "or"))
_RATE: Final = frozenset(term_of(word) for word in ("a", "an", "per", "each", "every"))  # "110 euros a night"
_TIMES: Final = frozenset(
    term_of(word)
    for word in "second minute hour day night week month quarter year".split()  # noqa: SIM905
)
_RESPECTIVELY: Final = term_of("respectively")


class State(StrEnum):
    """FOUND: a source says it of the same thing. CONFLICT: a source says another. ABSENT: none says it."""

    FOUND = "found"
    CONFLICT = "conflict"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """What became of one value of the claim.

    ``frame`` is how much of what the claim says around the value stands in the deciding sentence, 0..1; for
    ABSENT, in the best sentence. ``margin`` is how far it is ahead of the best sentence that decides
    otherwise.
    """

    value: Value
    state: State
    frame: float
    sentence: Sentence | None = None
    source: Value | None = None
    opposing: tuple[Sentence, ...] = ()


def check_values(view: ClaimView, source: Source, candidates: Iterable[int]) -> list[ValueCheck]:
    """One check for each value of the claim that is not a name; names are compared word by word
    elsewhere."""
    checked = [value for value in view.values if value.kind is not ValueKind.NAME]
    if not checked:
        return []
    numbers = list(dict.fromkeys(candidates))
    telling = [value for value in checked if not _names_a_thing(view, value)]
    taken = {i for value in telling for i in tokens_within(view.starts, value.start, value.end)}
    return [_check(view, source, value, numbers, taken) for value in checked]


def _names_a_thing(view: ClaimView, value: Value) -> bool:
    """Whether a value is a part of a name: "the DW-450 runs for 3 hours", "the Aero 300 for 8"."""
    if value.kind is ValueKind.IDENTIFIER:
        return True
    at = tokens_within(view.starts, value.start, value.end).start - 1
    return value.kind is ValueKind.NUMBER and at > 0 and view.surfaces[at][0].isupper()


def settled_terms(view: ClaimView, checks: Iterable[ValueCheck]) -> frozenset[int]:
    """The terms of the values that a source has, in whatever form: "2 million euros" is "EUR 2,000,000".

    With a price goes the word that says it is one: "Pro: $49" says what Pro costs.
    """
    found = [check.value for check in checks if check.state is State.FOUND]
    spans = [tokens_within(view.starts, value.start, value.end) for value in found]
    settled = frozenset(view.terms[i] for span in spans for i in span)
    if any(value.kind is ValueKind.MONEY for value in found):
        settled |= PRICING.intersection(view.terms)
    return settled


def _check(view: ClaimView, source: Source, value: Value, numbers: list[int], taken: set[int]) -> ValueCheck:
    """Reads the sentences from the one that says most of the value's frame downwards, as far as it
    matters."""
    frame = _frame(view, value, taken)
    ranked = []
    for number in _with_the_number(view, source, value, numbers):
        terms = _spoken_of(view, source, number)
        ranked.append((sum(weight for term, weight in frame.items() if term in terms), number))
    ranked.sort(key=lambda item: -item[0])
    conflict: tuple[float, Sentence, Value] | None = None
    found: tuple[float, Sentence, Value] | None = None
    opposing: list[Sentence] = []
    for said, number in ranked:
        if found is not None and said < _OPPOSING_FRAME:
            break
        decided = conflict is not None and said <= conflict[0] - _MARGIN and found is None
        if decided and conflict is not None and not _names_only(view, conflict[1], frame):
            break
        sentence = source.sentence(number)
        state, other = _in_sentence(view, value, sentence, frame)
        if other is None:
            continue
        if state is State.FOUND:
            found = found or (said, sentence, other)
        else:
            conflict = conflict or (said, sentence, other)
            if said >= _OPPOSING_FRAME:
                opposing.append(sentence)
    if conflict is not None and found is not None and _names_only(view, conflict[1], frame):
        conflict = None
    if conflict is not None and (found is None or conflict[0] >= found[0] + _MARGIN):
        return ValueCheck(value, State.CONFLICT, conflict[0], conflict[1], conflict[2])
    if found is not None:
        return ValueCheck(value, State.FOUND, found[0], found[1], found[2], tuple(opposing))
    if value.kind is ValueKind.NUMBER and value.noun is None:
        near = {view.terms[i] for i in part_of(view, value)} & frame.keys()
        whole = sum(frame[term] for term in near)
        for _, number in ranked:
            sentence = source.sentence(number)
            said = sum(frame[term] for term in near & sentence.known)
            other = _after_the_same_word(view, value, sentence) if said >= _SAME_MATTER * whole else None
            if other is not None:
                return ValueCheck(value, State.CONFLICT, said / (whole or 1.0), sentence, other)
    return ValueCheck(value, State.ABSENT, ranked[0][0] if ranked else 0.0)


def _names_only(view: ClaimView, sentence: Sentence, frame: dict[int, float]) -> bool:
    """Whether a sentence has no more of what a claim says the value of than names: of one thing many values
    are told."""
    names = {view.terms[i] for i in view.name_tokens}
    return (frame.keys() & sentence.known) <= names


def _spoken_of(view: ClaimView, source: Source, number: int) -> frozenset[int]:
    """The terms of a sentence; where it opens with a pronoun, also what that may stand for of the sentence
    before: names that the claim has, and what a pronoun of the claim stands for: "It is for three users." may
    be of the same plan.
    """
    sentence = source.sentence(number)
    if PRONOUNS.isdisjoint(sentence.terms[:_OPENING]):
        return sentence.known
    contexts = source.layout.sentences.context
    if number == 0 or contexts[number - 1] != contexts[number]:
        return sentence.known
    meant = view.antecedents.keys() | {view.terms[i] for i in view.name_tokens}
    return sentence.known | (source.sentence(number - 1).known & meant)


def _frame(view: ClaimView, value: Value, taken: set[int]) -> dict[int, float]:
    """What the claim says the value of: its other words, and what a pronoun stands for; the weights sum
    to 1.

    Nearer words count more, and those that stand by another value of the same sort much less.
    """
    own = tokens_within(view.starts, value.start, value.end)
    near = _territory_in_claim(view, value)
    weights = dict(view.antecedents)
    for i, term in enumerate(view.terms):
        if i in taken or i in own or term not in view.content or term in STOP_TERMS:
            continue
        if value.kind is ValueKind.MONEY and term in PRICING:
            continue
        distance = own.start - i if i < own.start else i - own.stop + 1
        weight = view.content[term] * _NEARNESS**distance * (1.0 if near is None or i in near else _ELSEWHERE)
        weights[term] = max(weights.get(term, 0.0), weight)
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()} if total else {}


def _territory_in_claim(view: ClaimView, value: Value) -> range | None:
    """The tokens of the claim that belong to a value, where it has several of the sort; else None."""
    rivals = [other for other in view.values if comparable(value, other)]
    if len(rivals) < 2:
        return None
    spans = [tokens_within(view.starts, other.start, other.end) for other in rivals]
    own = tokens_within(view.starts, value.start, value.end)
    if _values_come_first(view, spans):
        territory = range(
            own.stop, min((s.start for s in spans if s.start > own.start), default=len(view.terms))
        )
    else:
        territory = range(max((s.stop for s in spans if s.stop <= own.start), default=0), own.start)
    return territory if any(view.terms[i] not in STOP_TERMS for i in territory) else None


def _with_the_number(view: ClaimView, source: Source, value: Value, numbers: list[int]) -> list[int]:
    """The candidates, and where the value's own figures stand: it may be said in a sentence with other
    words."""
    extra: dict[int, None] = {}
    for i in tokens_within(view.starts, value.start, value.end):
        positions = source.layout.positions(view.terms[i]) if view.surfaces[i][0].isdigit() else ()
        extra.update((n, None) for p in positions[:_READINGS] for n in source.layout.sentences.holding(p))
    known = set(numbers)
    return numbers + [n for n in extra if n not in known][:_SENTENCES_WITH_THE_NUMBER]


def _in_sentence(
    view: ClaimView, value: Value, sentence: Sentence, frame: dict[int, float]
) -> tuple[State, Value | None]:
    if not _may_hold(sentence, value):
        return State.ABSENT, None
    values, matcher = sentence.facts
    match = matcher.match(value)
    if match.state is MatchState.FOUND and match.source is not None:
        other = _exchanged(view, value, match.source, values) or _said_of_another(
            view, value, sentence, frame
        )
        return (State.CONFLICT, other) if other else (State.FOUND, match.source)
    if match.state is MatchState.CONFLICT:
        rivals = [v for v in values if comparable(value, v)]
        if (same := _denied_limit(view, value, sentence, rivals)) is not None:
            return State.FOUND, same
        # What another value of the claim says is no rival of this one: "from the 4th to the 29th" is at odds
        # with the end of "from the 4th to the 22nd", not with its start.
        own = [v for v in rivals if not _also_said(view, value, v)]
        return State.CONFLICT, _nearest(sentence, own or rivals, frame)
    return State.ABSENT, None


def _after_the_same_word(view: ClaimView, value: Value, sentence: Sentence) -> Value | None:
    """The one other figure of nothing named where the claim has its own: "serves six" beside "serves four",
    "opens at 9" beside "opens at 11"."""
    before = _words_before(view, value)
    at = tokens_within(view.starts, value.start, value.end).start - len(before)
    label = at <= 0 or view.surfaces[at][0].isupper() or STOP_TERMS.issuperset(view.terms[:at])
    if label or not value.text.isalnum():
        return None  # "Highway 6 is closed", "rated 7.8"
    others = [
        other
        for other in sentence.facts.values
        if before
        and other.kind is value.kind
        and other.noun is None
        and other.bound is value.bound
        and other.upper is None
        and other.text.isalnum()
        and _words_before(sentence, other) == before
        and _denied(sentence, other) == _denied(view, value)
    ]
    return others[0] if len(others) == 1 else None


def _words_before(text: ClaimView | Sentence, value: Value) -> tuple[int, ...]:
    """The terms before a value back to the first that says something; empty where none of two does."""
    at = tokens_within(text.starts, value.start, value.end).start
    for first in range(at - 1, max(at - 3, -1), -1):
        if text.terms[first] not in STOP_TERMS:
            return tuple(text.terms[first:at])
    return ()


def _denied_limit(view: ClaimView, value: Value, sentence: Sentence, rivals: list[Value]) -> Value | None:
    """The limit that the claim says by denying its opposite: "do not fill it more than half" is "at most
    half"."""
    if (_denied(view, value) == _denied(sentence, rivals[0])) if rivals else True:
        return None
    turned = replace(value, bound=_TURNED_ROUND.get(value.bound, value.bound))
    return next((v for v in rivals if turned.bound is not value.bound and agree(turned, v)), None)


def _denied(text: ClaimView | Sentence, value: Value) -> bool:
    """Whether a value stands in a clause that denies something."""
    own = tokens_within(text.starts, value.start, value.end)
    return any(c.denied for c in text.clauses if c.first < own.stop and own.start < c.last)


def _may_hold(sentence: Sentence, value: Value) -> bool:
    """Whether a sentence can have a value of the kind at all: reading values is what costs most."""
    if value.kind in _WRITTEN_WITHOUT_FIGURES:
        return True
    return _FIGURE.search(sentence.text) is not None or not NUMBER_WORDS.isdisjoint(sentence.known)


def _nearest(sentence: Sentence, rivals: list[Value], frame: dict[int, float]) -> Value:
    return max(
        rivals,
        key=lambda v: (
            sum(frame.get(t, 0.0) for t in _territory(sentence, v, rivals, after=False)),
            -v.start,
        ),
    )


def _exchanged(view: ClaimView, value: Value, found: Value, values: Sequence[Value]) -> Value | None:
    """The number that the sentence gives of what the claim counts, where the claim has exchanged two: "12
    cycles (3 doses)" for "3 cycles (12 doses)"."""
    if value.noun is None or found.noun is None or found.noun == value.noun:
        return None
    if not any(other.noun == found.noun and not agree(other, found) for other in view.values):
        return None
    own = [v for v in values if v.noun == value.noun]
    return None if any(agree(value, v) for v in own) else next(iter(own), None)


def _said_of_another(
    view: ClaimView, value: Value, sentence: Sentence, frame: dict[int, float]
) -> Value | None:
    """The value that the sentence gives for the claim's subject, where the claim has one it gives for
    another.

    "Basic costs $29, Pro $49" has both prices; which belongs to what is told by the parts of the sentence,
    and where they don't tell by the words between the prices. Lists that name the subjects first and the
    values after are left alone.
    """
    if _RESPECTIVELY in sentence.terms:
        return None
    found = belonging(view, value, sentence, frame)
    if isinstance(found, Value):
        return None if _date_of_life(sentence.text, found) else found
    return None if found is Belongs.OWN else _told_between(view, value, sentence, frame)


def _told_between(view: ClaimView, value: Value, sentence: Sentence, frame: dict[int, float]) -> Value | None:
    """The value of the claim's subject, by the words between the values; None if it is the claim's own, or
    these don't tell."""
    rivals = [v for v in sentence.facts.values if comparable(value, v) or agree(value, v)]
    if len(rivals) < 2:
        return None
    spans = [tokens_within(sentence.starts, v.start, v.end) for v in rivals]
    after = _values_come_first(sentence, spans)
    near = _territory_in_claim(view, value)
    said = frame.keys() if near is None else {view.terms[i] for i in near}
    counts: dict[int, int] = {}
    for term in sentence.terms:
        counts[term] = counts.get(term, 0) + 1
    subject: Value | None = None
    for rival in rivals:
        territory = _territory(sentence, rival, rivals, after=after)
        rate = after and len(territory) > 1 and territory[0] in _RATE and territory[1] in _TIMES
        territory = territory[2:] if rate else territory
        telling = {term for term in territory if counts[term] == 1 and term not in STOP_TERMS}
        if value.kind is ValueKind.MONEY:
            telling -= PRICING
        if agree(value, rival):
            if _modified_alike(view, value, sentence, rival, rivals):
                return None
            if (telling <= said and (telling or not rate)) or _one_of_two(sentence, telling, said):
                return None  # all that tells this value from the others is in the claim
        elif (
            subject is None
            and telling
            and (telling <= said or (_one_of_two(sentence, telling, said) and not negations(view.terms)))
            and not _said_in_another_unit(view, value, rival)
            and not (near is None and _also_said(view, value, rival))
            and not _date_of_life(sentence.text, rival)
        ):
            subject = rival
    return subject


def _modified_alike(
    view: ClaimView, value: Value, sentence: Sentence, found: Value, rivals: Iterable[Value]
) -> bool:
    """Whether both count things of one sort that no rival counts: "110,000 Japanese Americans"."""
    kind = _modifier(view, value)
    return kind is not None and [r for r in rivals if _modifier(sentence, r) == kind] == [found]


def _modifier(text: ClaimView | Sentence, value: Value) -> int | None:
    """The term between a number and what it counts, if there is one."""
    after = tokens_within(text.starts, value.start, value.end).stop
    if value.noun is None or after + 1 >= len(text.terms) or text.terms[after] in STOP_TERMS:
        return None
    return text.terms[after] if text.terms[after + 1] == term_of(value.noun) else None


def _one_of_two(sentence: Sentence, telling: set[int], said: Collection[int]) -> bool:
    """Whether all that the claim lacks of ``telling`` stands beside what it has: "in Zurich and London"."""
    lacking = telling - set(said)
    return len(lacking) == 1 and any(
        link in _LINKS and {before, after} <= telling and len({before, after} & lacking) == 1
        for before, link, after in zip(sentence.terms, sentence.terms[1:], sentence.terms[2:], strict=False)
    )


def _date_of_life(text: str, value: Value) -> bool:
    """Whether a date is one of two in brackets, as behind a person's name: of nothing else that is told."""
    first, last = text.rfind("(", 0, value.start), text.find(")", value.end)
    if value.kind is not ValueKind.DATE or first < 0 or last < 0 or ")" in text[first : value.start]:
        return False
    return _LIFE.fullmatch(text, first + 1, last) is not None


def _also_said(view: ClaimView, value: Value, rival: Value) -> bool:
    """Whether another value of the claim says what the rival says."""
    return any(other is not value and agree(other, rival) for other in view.values)


def _said_in_another_unit(view: ClaimView, value: Value, rival: Value) -> bool:
    """Whether the claim gives both values, each for its own: "36 hours, spread over four days"."""
    return any(other.unit != value.unit and agree(other, rival) for other in view.values)


def _values_come_first(text: ClaimView | Sentence, spans: Iterable[range]) -> bool:
    """Whether a text gives values before what they are of: "$29 for Basic and $49 for Pro".

    "35 minutes at 45 °C" gives one value after the other.
    """
    return any(
        span.stop < len(text.terms)
        and text.terms[span.stop] in _AFTER
        and not text.text[text.starts[span.stop + 1] : text.starts[span.stop + 1] + 1].isdigit()
        for span in spans
        if span.stop + 1 < len(text.terms)
    )


def _territory(sentence: Sentence, value: Value, rivals: list[Value], *, after: bool) -> tuple[int, ...]:
    """The terms between a value and the rival before it (or after it)."""
    own = tokens_within(sentence.starts, value.start, value.end)
    if after:
        following = [v.start for v in rivals if v.start > value.start]
        last = tokens_within(sentence.starts, 0, min(following)).stop if following else len(sentence.terms)
        return sentence.terms[own.stop : last]
    before = [v.end for v in rivals if v.end <= value.start]
    first = tokens_within(sentence.starts, 0, max(before)).stop if before else 0
    return sentence.terms[first : own.start]
