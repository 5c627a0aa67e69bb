"""What was found out about a claim -> its verdict, with the reason in one sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.events import Evidence, Span, Verdict
from guardrail.judges.local.additions import denied_item, unmentioned_item
from guardrail.judges.local.candidates import Candidates
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.clauses import Charge
from guardrail.judges.local.compare import Comparison, Turn
from guardrail.judges.local.details import State, ValueCheck, settled_terms
from guardrail.judges.local.necessity import demanded
from guardrail.judges.local.source import Sentence, tokens_within
from guardrail.values import Value, ValueKind

_VALUE_FRAME: Final = 0.4
_TURN_COVERAGE: Final = {
    Turn.NEGATION: 0.75,
    Turn.ANTONYM: 0.6,
    Turn.NAME: 0.55,
    Turn.QUANTIFIER: 0.6,
    Turn.NUMBER: 0.6,
}
_TURN_IN_ORDER: Final = {
    Turn.NEGATION: 0.6,
    Turn.ANTONYM: 0.5,
    Turn.NAME: 0.6,
    Turn.QUANTIFIER: 0.4,
    Turn.NUMBER: 0.85,
}
_CONFLICTING_COVERAGE: Final = 0.75
_SPELLED_FRAME: Final = 0.7
_ALL: Final = 0.999
_RENAMED: Final = 0.35
_SAME_WORDS: Final = 0.9
_SAME_WORDS_IN_ORDER: Final = 0.25
_ONE_FACT: Final = 14  # content words up to which a claim is taken to state one matter
_CHARGED: Final = 0.5  # of the words for what is free or charged for, by rarity, in the sentence that says so
_CHARGE_WORDS: Final = {Charge.FREE: "free", Charge.PAID: "charged for"}
_COPIED: Final = 0.85  # of a claim's words, in the order of a sentence
_NAMED: Final = re.compile(r"[^\W\d_]{4,}(?:-[^\W\d_]+)*-\d{1,2}|[^\W\d_]+-[^\W\d_]+-\d{1,2}")
_HOUR: Final = re.compile(
    r"\b(?:at|by|from|until|till|before|after|around|about|it) (\d{1,2})(?=[.,;!?)]|$)", re.IGNORECASE
)
_MARGIN: Final = 0.1
_MOST_QUOTED: Final = 60  # characters of words that are quoted in a reason
_CAP_ABSENT: Final = 0.3
_LEAST_BELOW: Final = 0.01

NO_WORD_SHARED: Final = "No source shares a word with the claim."


@dataclass(frozen=True, slots=True)
class Lines:
    """From which probability on a claim is called supported, and partially supported."""

    supported: float
    partially_supported: float
    least_share: float = 0.6
    """Of a claim, by rarity, that its sources must mention before it can be supported."""
    contradicted: float | None = None
    """From which probability of contradiction by the verifier on; None: its word is not enough."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the verifier saw: its highest probability of contradiction, the sentence it read then, and the
    words of the claim that it finds no support for."""

    contradiction: float
    against: Evidence
    unsupported: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All of a judgement but who asked and who answered."""

    verdict: Verdict
    confidence: float
    support: float
    evidence: tuple[Evidence, ...]
    conflicting_contexts: tuple[str, ...]
    reasoning: str


def decide(
    view: ClaimView,
    found: Candidates,
    compared: Sequence[Comparison],
    values: Sequence[ValueCheck],
    support: float,
    lines: Lines,
    seen: Seen | None = None,
) -> Outcome:
    """Deterministic findings first (another value, a turned sentence, a value in no source), then the
    lines."""
    for check in values:
        if _says_another(check) and check.sentence and check.source:
            reason = f"The claim says {_quoted(check.value, check.source)}, "
            reason += f"the source says {_quoted(check.source, check.value)}."
            return _contradicted(support, lines, check.frame, (check.sentence.evidence,), reason)
    against = (
        _taken_back(compared, support, lines)
        or _turned_round(compared, values, support, lines)
        or _demanded(view, compared, support, lines)
    )
    if against is not None:
        return against
    one_fact = len(view.content) <= _ONE_FACT
    charged = _charged(compared, values) if one_fact else None
    if charged is not None:
        ours, theirs, strength, sentence = charged
        reason = f"The claim says it is {ours}, the source says it is {theirs}."
        return _contradicted(support, lines, strength, (sentence.evidence,), reason)
    proof = _proof(compared, values)
    for check in values:
        if _in_no_source(check, view, found.present, compared):
            support = min(_below(lines.partially_supported, support), _CAP_ABSENT)
            reason = f"{_quoted(check.value)} is in no source."
            return Outcome(Verdict.UNSUPPORTED, 1.0 - support, support, proof, (), reason)
    present = found.present | settled_terms(view, values)
    missing = _missing_words(view, present)
    # Of claims that share no word with a source most are about something else.
    partially = lines.partially_supported if found.shared else lines.supported
    as_read = support
    if view.share(present) < lines.least_share:
        support = _below(lines.supported, support)
    elif _spelled_out(view, values):
        support = max(support, min(0.99, lines.supported + _MARGIN))
    opposed = _excluded(view, compared, support, lines) or _opposed(seen, support, lines)
    if opposed is not None:
        return opposed
    # A summary in words of its own has words that no source has; one item more in a copy is another matter.
    listed = one_fact or any(c.alignment.in_order >= _COPIED for c in compared)
    added = unmentioned_item(view, present) if listed else None
    # Where the verifier is sure, an item without a word in common is named in other words twice as often
    # as it is added.
    sure = seen is not None and support >= lines.supported + _MARGIN
    if added is not None and support >= lines.supported and not sure:
        support = max(lines.partially_supported, _below(lines.supported, support))
        reason = f"The sources say part of it; they do not mention '{added}'."
        return Outcome(Verdict.PARTIALLY_SUPPORTED, 1.0 - support, support, proof, (), reason)
    if support >= lines.supported:
        return Outcome(
            Verdict.SUPPORTED,
            support,
            support,
            proof,
            _conflicting(compared, values, proof),
            _support_reason(compared),
        )
    if as_read >= partially and support >= lines.partially_supported:
        reason = (
            f"The sources say part of it; they do not mention {missing}."
            if missing
            else f"The sources say part of it{_unsaid(seen, '; they do not say')}."
        )
        return Outcome(Verdict.PARTIALLY_SUPPORTED, 1.0 - support, support, proof, (), reason)
    if not found.shared:
        return Outcome(Verdict.UNSUPPORTED, 1.0 - support, support, (), (), NO_WORD_SHARED)
    reason = (
        f"The sources do not mention {missing}."
        if missing
        else f"The sources have its words but do not say {_unsaid(seen) or 'it'}."
    )
    return Outcome(Verdict.UNSUPPORTED, 1.0 - support, support, proof, (), reason)


def wrong_details(
    view: ClaimView, found: Candidates, compared: Sequence[Comparison], values: Sequence[ValueCheck]
) -> list[Span]:
    """Where the details of the claim stand that a source says otherwise, or none says, in its code points.

    Each is enough for a verdict that isn't SUPPORTED. A claim that is the opposite of a source by a negation
    has none: the words that it shares with the source are not what is wrong.
    """
    wrong = [
        (check.value.start, check.value.end)
        for check in values
        if _says_another(check) or _in_no_source(check, view, found.present, compared)
    ]
    turned = _turned(compared, values)
    if turned is not None and turned.claim_start is not None:
        wrong.append((turned.claim_start, turned.claim_start + len(turned.claim_words)))
    return wrong


def _says_another(check: ValueCheck) -> bool:
    """Whether a sentence about the same thing gives another value than the claim."""
    return check.state is State.CONFLICT and check.frame >= _VALUE_FRAME


def _excluded(
    view: ClaimView, compared: Sequence[Comparison], support: float, lines: Lines
) -> Outcome | None:
    """The verdict on a claim of one fact that names what a source leaves out of it."""
    if len(view.content) > _ONE_FACT or support < lines.partially_supported:
        return None
    denied = denied_item(view, compared)
    if denied is None:
        return None
    word, naming = denied
    reason = f"The source excludes '{word}'."
    return _contradicted(support, lines, naming.coverage, (naming.sentence.evidence,), reason)


def _opposed(seen: Seen | None, support: float, lines: Lines) -> Outcome | None:
    """The verdict where nothing supports the claim and the verifier reads the opposite."""
    if seen is None or lines.contradicted is None or support >= lines.supported:
        return None
    if seen.contradiction < lines.contradicted:
        return None
    return _contradicted(
        support, lines, 2 * seen.contradiction - 1, (seen.against,), "A source says otherwise."
    )


def _unsaid(seen: Seen | None, before: str = "") -> str:
    """The longest words that the verifier finds no support for, quoted, after ``before``; else nothing."""
    words = sorted(seen.unsupported, key=len, reverse=True)[:2] if seen is not None else []
    quoted = " or ".join(f"'{word}'" for word in words if len(word) <= _MOST_QUOTED)
    return f"{before} {quoted}".lstrip() if quoted else ""


def _spelled_out(view: ClaimView, values: Sequence[ValueCheck]) -> bool:
    """Whether the sentences that give the claim's values for what it says them of have all its words, too."""
    if not values or any(check.state is not State.FOUND or check.frame < _SPELLED_FRAME for check in values):
        return False
    said = frozenset(term for check in values if check.sentence for term in check.sentence.terms)
    return view.share(said | settled_terms(view, values)) > _ALL


def _contradicted(
    support: float, lines: Lines, strength: float, proof: tuple[Evidence, ...], reason: str
) -> Outcome:
    """``support`` stays what it is, below the line: rules and combiner may disagree, and who goes by the
    probability (a cascade, a reviewer) is to see that."""
    return Outcome(
        Verdict.CONTRADICTED,
        min(0.99, 0.5 + strength / 2),
        _below(lines.supported, support),
        proof,
        (),
        reason,
    )


def _below(line: float, support: float) -> float:
    return min(support, max(0.0, line - _LEAST_BELOW))


def _turned_round(
    compared: Sequence[Comparison], values: Sequence[ValueCheck], support: float, lines: Lines
) -> Outcome | None:
    """The verdict on a claim of which a sentence says the opposite."""
    turned = _turned(compared, values)
    if turned is None:
        return None
    proof = (turned.sentence.evidence,)
    return _contradicted(support, lines, turned.coverage, proof, _turn_reason(turned))


def _turned(compared: Sequence[Comparison], values: Sequence[ValueCheck]) -> Comparison | None:
    """The sentence that says the opposite, if none says as much of the claim without doing so."""
    clean = max((c.coverage for c in compared if c.turn is None), default=0.0)
    for comparison in compared:
        turn = comparison.turn
        if (
            turn is not None
            and comparison.coverage >= (_RENAMED if comparison.renamed else _TURN_COVERAGE[turn])
            and comparison.alignment.in_order >= _least_in_order(comparison, turn)
            and comparison.coverage > clean
            and not (turn is Turn.NEGATION and _limit_denied(comparison, values))
        ):
            return comparison
    return None


def _taken_back(compared: Sequence[Comparison], support: float, lines: Lines) -> Outcome | None:
    """The verdict on a claim that the source reports and takes back, if no other sentence says as much of
    it."""
    clean = max((c.coverage for c in compared if c.rebuttal is None), default=0.0)
    found = next((c.rebuttal for c in compared if c.rebuttal is not None and c.coverage > clean), None)
    if found is None:
        return None
    if not found.left_open:
        reason = "The source says so only to rebut it."
        return _contradicted(support, lines, found.share, found.proof, reason)
    support = min(support, _CAP_ABSENT)
    reason = "The source reports it and leaves it open."
    return Outcome(Verdict.UNSUPPORTED, 1.0 - support, support, found.proof, (), reason)


def _demanded(
    view: ClaimView, compared: Sequence[Comparison], support: float, lines: Lines
) -> Outcome | None:
    """The verdict on a claim of one fact, that something need not be done, where a source demands it."""
    found = demanded(view, compared) if len(view.content) <= _ONE_FACT else None
    if found is None:
        return None
    sentence, whole = found
    if whole:
        reason = "The claim says that it need not be done, the source that it must."
        return _contradicted(support, lines, _ALL, (sentence.evidence,), reason)
    support = min(_below(lines.partially_supported, support), _CAP_ABSENT)
    reason = "No source says that it need not be done, and one says what must."
    return Outcome(Verdict.UNSUPPORTED, 1.0 - support, support, (sentence.evidence,), (), reason)


def _least_in_order(comparison: Comparison, turn: Turn) -> float:
    """Word for word the same, in any order ("may be used by children"), can hardly be of other things."""
    if turn is Turn.NAME and comparison.renamed:
        return 0.0
    if turn is Turn.NEGATION and comparison.coverage >= _SAME_WORDS:
        return _SAME_WORDS_IN_ORDER
    return _TURN_IN_ORDER[turn]


def _limit_denied(comparison: Comparison, values: Sequence[ValueCheck]) -> bool:
    """Whether the one denial is a limit put the other way: "not more than" and "at most"."""
    return any(
        check.state is State.FOUND
        and check.sentence is not None
        and check.source is not None
        and check.sentence.number == comparison.sentence.number
        and check.value.bound.direction * check.source.bound.direction < 0
        for check in values
    )


def _charged(
    compared: Sequence[Comparison], values: Sequence[ValueCheck]
) -> tuple[str, str, float, Sentence] | None:
    """What the claim calls free and a sentence charges for, or the reverse, if no sentence agrees with it."""
    views = [(c.charge, c.sentence) for c in compared if c.charge is not None]
    agreeing = [view for view, _ in views if view.ours is view.theirs]
    priced = any(check.value.kind is ValueKind.MONEY and check.state is State.FOUND for check in values)
    for view, sentence in views:
        if view.ours is view.theirs or view.strength < _CHARGED or (view.ours is Charge.PAID and priced):
            continue
        # What the sentence does not name may be what makes the difference: "free for customers under 28".
        if all(view.strength > other.strength and not view.unnamed & other.named for other in agreeing):
            return _CHARGE_WORDS[view.ours], _CHARGE_WORDS[view.theirs], view.strength, sentence
    return None


def _turn_reason(comparison: Comparison) -> str:
    if comparison.turn is Turn.NEGATION:
        if comparison.negated > 0:
            return "The claim denies what the source says."
        return "The source denies what the claim says."
    return f"The claim says '{comparison.claim_words}', the source says '{comparison.source_words}'."


def _support_reason(compared: Sequence[Comparison]) -> str:
    best = max(compared, key=lambda c: c.coverage)
    if best.alignment.in_order >= 0.9:
        return "The source says so in nearly the same words."
    return "The sources say so in other words."


def _proof(compared: Sequence[Comparison], values: Sequence[ValueCheck]) -> tuple[Evidence, ...]:
    """The best sentence, and the one that has a value which the best lacks."""
    best = max(compared, key=lambda c: (c.coverage, c.alignment.in_order)).sentence
    proof = [best.evidence]
    for check in values:
        if check.sentence is not None and check.sentence.number != best.number and len(proof) < 3:
            other = check.sentence.evidence
            if other not in proof:
                proof.append(other)
    return tuple(proof)


def _conflicting(
    compared: Sequence[Comparison], values: Sequence[ValueCheck], proof: Sequence[Evidence]
) -> tuple[str, ...]:
    """The ids of contexts that contradict a supported claim, those that support it left out."""
    supporting = {quote.context_id for quote in proof}
    against = [sentence.context_id for check in values for sentence in check.opposing]
    against += [
        c.sentence.context_id
        for c in compared
        if c.turn is not None
        and c.coverage >= _CONFLICTING_COVERAGE
        and c.alignment.in_order >= _TURN_IN_ORDER[c.turn]
    ]
    return tuple(dict.fromkeys(context for context in against if context not in supporting))


def _in_no_source(
    check: ValueCheck, view: ClaimView, present: frozenset[int], compared: Sequence[Comparison]
) -> bool:
    """Whether a value is nowhere to be found, and definite enough that this settles the matter.

    "One of the" is not, nor is a name with a number in it that no source has otherwise (COVID-19); and a
    source's "at 7." may be the claim's "at 7 pm".
    """
    value = check.value
    if check.state is State.FOUND or value.kind in (ValueKind.NAME, ValueKind.ORDINAL):
        return False
    if value.kind is ValueKind.IDENTIFIER and _NAMED.fullmatch(value.text):
        own = tokens_within(view.starts, value.start, value.end)
        return any(view.terms[i] in present for i in own if view.surfaces[i][0].isalpha())
    if value.kind is ValueKind.TIME and value.text.partition(" ")[0].isdigit():
        hours = {hour for c in compared for hour in _HOUR.findall(c.sentence.text)}
        return value.text.partition(" ")[0] not in hours
    return any(c.isdigit() for c in value.text)


def _quoted(value: Value, other: Value | None = None) -> str:
    """The value as written; with its limit in words where that is all that sets it apart from the other."""
    text = " ".join(value.text.split())
    if other is not None and text == " ".join(other.text.split()):
        text = f"{value.bound.value.replace('_', ' ')} {text}"
    return f"'{text}'"


def _missing_words(view: ClaimView, present: frozenset[int]) -> str:
    """The rarest words of the claim that the contexts lack, quoted."""
    weights = {term: weight for term, weight in view.content.items() if term not in present}
    rarest = sorted(weights, key=lambda term: -weights[term])[:2]
    words = [next(s for s, t in zip(view.surfaces, view.terms, strict=True) if t == term) for term in rarest]
    return " or ".join(f"'{word}'" for word in words)
