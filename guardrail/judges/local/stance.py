"""Whether a sentence takes the other side of a claim: denies it, charges for what is free, restricts it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.clauses import FREE_TERMS, PRICE_TERMS, Charge, Clause, with_conditions
from guardrail.judges.local.source import Sentence

_SAME_MATTER: Final = 0.5  # of a clause of the claim, by rarity, in a clause of the sentence
_AS_GOOD: Final = 0.1
_WEIGHTY: Final = 0.3  # of the claim, by rarity, that its turned clauses hold
_WHOLE: Final = 0.7  # from here on a single short clause decides: "use it if you are allergic"
_NOT_TINY: Final = 0.1
_CORE_TOKENS: Final = 2  # after "free": "free underground parking"
_CORE: Final = 0.9
_NOUN_REACH: Final = 3


def _terms(text: str) -> frozenset[int]:
    return frozenset(term_of(word) for word in text.split())


_UNIVERSAL: Final = _terms("all every each any everyone everybody always both")
_RESTRICTED: Final = _terms("only some certain selected several most few exclusively sometimes solely")
_PLURALS: Final = _terms("all every each any")


class Polarity(StrEnum):
    """SAME and OTHER are of clauses that speak of the same matter; UNKNOWN where there are none."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ChargeView:
    """What claim and sentence say that a thing costs, and how much of the thing the sentence names, 0..1.

    ``named`` are the words of the claim for the thing that the sentence has, ``unnamed`` those that it lacks.
    """

    ours: Charge
    theirs: Charge
    strength: float
    named: frozenset[int]
    unnamed: frozenset[int]


def polarity(view: ClaimView, sentence: Sentence) -> Polarity:
    """Lay each clause of the claim beside the clause of the sentence that holds most of it."""
    turned = known = 0.0
    stated = with_conditions(sentence.clauses)
    matched = [(clause, *_matching(view, clause, sentence.known, stated)) for clause in view.clauses]
    # "Those who do not choose keep it" has one clause for both of "if you do not choose, you keep it": its
    # denial is that of the condition, not of what follows from it.
    whole = {clause.terms for clause in sentence.clauses if clause.denied and not clause.condition}
    conditions = {
        terms
        for clause, _, held in matched
        if clause.condition and clause.denied
        for terms, _ in held
        if terms in whole
    }
    for clause, weight, held in matched:
        known += weight
        theirs = {denied and (clause.condition or terms not in conditions) for terms, denied in held}
        if theirs == {not clause.denied}:
            turned += weight
    total = view.weight
    if turned >= _WEIGHTY * total or (turned >= _NOT_TINY * total and known >= _WHOLE * total):
        return Polarity.OTHER
    return Polarity.SAME if known >= _SAME_MATTER * total else Polarity.UNKNOWN


def _matching(
    view: ClaimView, clause: Clause, said: frozenset[int], stated: Sequence[tuple[frozenset[int], bool]]
) -> tuple[float, list[tuple[frozenset[int], bool]]]:
    """The clause's weight, and what the sentence states of the same matter; 0 where it states nothing."""
    topic = _topic(view, clause, said)
    weight = sum(topic.values())
    if not weight:
        return 0.0, []
    shares = [_share(topic, weight, terms) for terms, _ in stated]
    best = max(shares)
    if best < _SAME_MATTER:
        return 0.0, []
    return weight, [one for one, share in zip(stated, shares, strict=True) if share >= best - _AS_GOOD]


def charge(view: ClaimView, sentence: Sentence) -> ChargeView | None:
    """What both say of the price of the same thing, if both say something."""
    best: ChargeView | None = None
    for clause in view.clauses:
        if clause.charge is None:
            continue
        topic = {t: w for t, w in _topic(view, clause, sentence.known).items() if t not in PRICE_TERMS}
        if not topic:
            topic = {t: view.content[t] for t in view.content if t not in PRICE_TERMS}
        weight = sum(topic.values())
        if not weight:
            continue
        core = _core(view, clause)
        shares = [(_strength(topic, weight, core, other.terms), other.charge) for other in sentence.clauses]
        strongest = max(share for share, _ in shares)
        said = {theirs for share, theirs in shares if share >= strongest - _AS_GOOD} - {None}
        said = said or {theirs for _, theirs in shares} - {None}
        theirs = clause.charge if clause.charge in said else next(iter(said), None)
        if theirs is not None and strongest > (best.strength if best else 0.0):
            named = topic.keys() & sentence.known
            missing = frozenset() if core & named else topic.keys() - named
            best = ChargeView(clause.charge, theirs, strongest, frozenset(named), frozenset(missing))
    return best


def restricted(view: ClaimView, sentence: Sentence) -> tuple[int, str, str] | None:
    """ "all" of what the sentence says of some only, with its start, and the word that it says so with."""
    if not _RESTRICTED.isdisjoint(view.terms):
        return None
    for i, term in enumerate(view.terms):
        if term not in _UNIVERSAL:
            continue
        nouns = [t for t in view.terms[i + 1 : i + 1 + _NOUN_REACH] if t not in STOP_TERMS][:1]
        for clause in sentence.clauses:
            own = sentence.terms[clause.first : clause.last]
            if not _UNIVERSAL.isdisjoint(own) or (term in _PLURALS and not set(nouns) & set(own)):
                continue
            for j, other in enumerate(own):
                if other in _RESTRICTED and set(nouns) & set(
                    own[max(0, j - _NOUN_REACH) : j + 1 + _NOUN_REACH]
                ):
                    at = clause.first + j
                    return view.starts[i], view.surfaces[i], sentence.words(at, at + 1)
    return None


def _topic(view: ClaimView, clause: Clause, said: frozenset[int]) -> dict[int, float]:
    """What a clause is about, by rarity; figures that the sentence may write in another way left out."""
    own = [i for i in range(clause.first, clause.last) if view.terms[i] in clause.terms]
    plain = [i for i in own if i not in view.value_tokens or view.terms[i] in said]
    return {view.terms[i]: view.content[view.terms[i]] for i in plain or own if view.terms[i] in view.content}


def _core(view: ClaimView, clause: Clause) -> frozenset[int]:
    """The thing that "free" stands right before."""
    for i in range(clause.first, clause.last):
        if view.terms[i] in FREE_TERMS:
            following = view.terms[i + 1 : min(clause.last, i + 1 + _CORE_TOKENS)]
            if following and following[0] not in STOP_TERMS:
                return frozenset(t for t in following if t not in STOP_TERMS)
    return frozenset()


def _strength(topic: dict[int, float], weight: float, core: frozenset[int], terms: frozenset[int]) -> float:
    share = _share(topic, weight, terms)
    return max(share, _CORE) if core & terms else share


def _share(topic: dict[int, float], weight: float, terms: Iterable[int]) -> float:
    return sum(topic.get(term, 0.0) for term in terms) / weight
