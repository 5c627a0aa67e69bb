"""A claim against one sentence that says nearly the same: what turns it round, what is put in its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.judges.local.alignment import Aligner, Alignment
from guardrail.judges.local.candidates import Match
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.polarity import denying_signs, left_open, negates, negations, opposition
from guardrail.judges.local.rebuttal import REPORTED, Rebuttal, rebuttal
from guardrail.judges.local.source import Sentence, Source, is_number, tokens_within, words_between
from guardrail.judges.local.stance import ChargeView, Polarity, charge, polarity, restricted
from guardrail.values import Value, ValueKind, agree

_VERBATIM: Final = 0.85
_RENAMED_WORDS: Final = 2
_OF_PLACE: Final = frozenset({"n", "ns", "an", "ans", "ian", "ians", "ese"})
_FINAL_VOWELS: Final = "aeiouy"
_ALIGNED_TOKENS: Final = 80
_REACH_BEFORE, _REACH_AFTER = 3, 2  # tokens around the aligned stretch that still belong to it


PLACES: Final = frozenset(
    """
    africa albania algeria america angola arabia argentina armenia asia australia austria bolivia bosnia
    brazil bulgaria burma california cambodia canada chile china colombia croatia cuba ecuador egypt
    estonia ethiopia europe georgia ghana haiti hawaii hungary india indonesia iran italy jamaica japan
    jordan kenya korea latvia lebanon liberia libya lithuania macedonia malaysia malta mexico moldova
    mongolia morocco namibia nepal nigeria norway palestine paraguay persia portugal prussia romania
    russia rwanda scandinavia serbia siberia sicily slovakia slovenia sudan syria taiwan tanzania
    tasmania texas tibet trinidad tunisia uganda ukraine uruguay venezuela vienna vietnam zambia
    """.split()  # noqa: SIM905
)
"""Places whose people are named after them by an ending: "Trinidad", "Trinidadian". "Julia" has none."""


class Turn(StrEnum):
    """How a claim may say another thing than a sentence of nearly the same words."""

    NEGATION = "negation"
    ANTONYM = "antonym"
    NAME = "name"
    QUANTIFIER = "quantifier"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A claim laid along one sentence.

    ``coverage`` is the share of the claim's words by rarity. ``turn`` is what sets them apart, with the
    words of both sides; ``claim_start`` is where the claim's begin, None where it has none. ``negated`` is
    +1 where only the claim negates, -1 where only the sentence does, else 0. ``swapped`` is the rarity of the
    claim's words that stand where the sentence has others. ``charge`` is what both say that the same thing
    costs. ``renamed``: the sentence has all of the claim but its name. ``rebuttal`` tells where the source
    takes back what the sentence reports.
    """

    sentence: Sentence
    coverage: float
    alignment: Alignment
    turn: Turn | None
    claim_words: str
    claim_start: int | None
    source_words: str
    negated: int
    swapped: float
    charge: ChargeView | None
    renamed: bool
    rebuttal: Rebuttal | None = None


def compare_all(view: ClaimView, source: Source, matches: Iterable[Match]) -> list[Comparison]:
    """Compare a claim with each of its candidate sentences."""
    aligner = Aligner(view.terms[:_ALIGNED_TOKENS])
    compared = [_compare(view, source.sentence(match.number), match, aligner) for match in matches]
    return [
        replace(each, rebuttal=rebuttal(view, source, each.sentence)) if each.coverage >= REPORTED else each
        for each in compared
    ]


def _compare(view: ClaimView, sentence: Sentence, match: Match, aligner: Aligner) -> Comparison:
    alignment = aligner.align(sentence.terms)
    first, last = alignment.source_span
    first, last = _reached(sentence, first, last)
    terms = sentence.known
    negated = _negated(view, sentence, first, last, alignment)
    swapped = sum(
        view.content.get(term, 0.0)
        for ours, _ in alignment.swaps
        for term in {view.terms[i] for i in ours}
        if term not in terms and term not in STOP_TERMS
    )
    turn, start, ours, theirs, renamed = None, None, "", "", False
    opposed = opposition(view.surfaces, view.terms, sentence.terms[first:last], view.value_tokens)
    if opposed is not None:
        denying = negates(view.terms[opposed[0]]) or negates(sentence.terms[first + opposed[1]])
        # A negation and an antonym cancel out, unless they are the same word: "with" and "without".
        if bool(negated) is denying:
            turn, start, ours = Turn.ANTONYM, view.starts[opposed[0]], view.surfaces[opposed[0]]
            theirs = sentence.words(first + opposed[1], first + opposed[1] + 1)
    elif negated:
        turn = Turn.NEGATION
    elif figures := _other_number(view, sentence, alignment):
        turn, (start, ours, theirs) = Turn.NUMBER, figures
    elif limited := restricted(view, sentence):
        turn, (start, ours, theirs) = Turn.QUANTIFIER, limited
    elif other := _other_name(view, sentence, alignment, terms):
        turn, (start, ours, theirs) = Turn.NAME, other
    elif other := _renamed(view, sentence, terms):
        turn, renamed, (start, ours, theirs) = Turn.NAME, True, other
    return Comparison(
        sentence,
        match.coverage,
        alignment,
        turn,
        ours,
        start,
        theirs,
        negated,
        swapped,
        charge(view, sentence),
        renamed,
    )


def _negated(view: ClaimView, sentence: Sentence, first: int, last: int, alignment: Alignment) -> int:
    """As in Comparison: by clauses where they speak of the same matter, else by what stands around the words
    that both share."""
    side = polarity(view, sentence)
    if side is Polarity.SAME:
        return 0
    ours = negations(view.terms) + denying_signs(view.text)
    theirs = negations(sentence.terms) + denying_signs(sentence.text)
    if ours == theirs and alignment.in_order >= _VERBATIM:
        return 0  # the same words but for a comma or two
    choice = left_open(sentence.terms)
    if choice is not None and choice in view.terms and ours == theirs - 1:
        return 0  # "it is unknown whether", "it may": the claim leaves it open, too
    if side is Polarity.OTHER:
        return 1 if any(clause.denied for clause in view.clauses) else -1
    gap = ours - negations(sentence.terms[first:last])
    if gap > 0 and theirs >= ours:
        return 0
    return (gap > 0) - (gap < 0)


def _reached(sentence: Sentence, first: int, last: int) -> tuple[int, int]:
    """The aligned stretch with a few tokens around it, as far as the clause goes."""
    for _ in range(_REACH_BEFORE):
        if first == 0 or _clause_ends(sentence, first - 1):
            break
        first -= 1
    for _ in range(_REACH_AFTER):
        if last == 0 or last >= len(sentence.terms) or _clause_ends(sentence, last - 1):
            break
        last += 1
    return first, last


def _clause_ends(sentence: Sentence, token: int) -> bool:
    """Whether punctuation parts a token from the next."""
    between = sentence.text[sentence.starts[token] : sentence.starts[token + 1]]
    return any(c in ",;:.!?()|" for c in between)


def _other_number(view: ClaimView, sentence: Sentence, alignment: Alignment) -> tuple[int, str, str] | None:
    """The first number of a claim that is otherwise the sentence, with its start, where that has another
    number."""
    if alignment.in_order < _VERBATIM:
        return None
    for ours, theirs in alignment.swaps:
        if not all(is_number(view.surfaces[i], view.terms[i]) for i in ours):
            continue
        figures = [j for j in theirs if _numeric(sentence, j)]
        if len(figures) != len(theirs):
            continue
        claimed = _values_at(view.values, view.starts, ours)
        said = _values_at(sentence.facts.values, sentence.starts, theirs)
        if any(agree(one, other) for one in claimed for other in said):
            continue
        return (
            view.starts[ours.start],
            words_between(view.text, view.starts, ours.start, ours.stop),
            sentence.words(theirs.start, theirs.stop),
        )
    return None


def _numeric(sentence: Sentence, token: int) -> bool:
    return is_number(
        sentence.text[sentence.starts[token] : sentence.starts[token] + 1], sentence.terms[token]
    )


def _values_at(values: Sequence[Value], starts: Sequence[int], tokens: range) -> list[Value]:
    return [v for v in values if set(tokens_within(starts, v.start, v.end)) & set(tokens)]


def _other_name(
    view: ClaimView, sentence: Sentence, alignment: Alignment, terms: frozenset[int]
) -> tuple[int, str, str] | None:
    """The first name of the claim that stands where the sentence names another, with its start, and that
    other."""
    verbatim = alignment.in_order >= _VERBATIM  # then what stands elsewhere in the sentence is no excuse
    for ours, theirs in alignment.swaps:
        named = [i for i in ours if i in view.name_tokens and (verbatim or view.terms[i] not in terms)]
        if not named:
            continue
        others = [
            j
            for j in theirs
            if sentence.text[sentence.starts[j]].isupper()
            and j > 0
            and sentence.terms[j] not in STOP_TERMS
            and (verbatim or sentence.terms[j] not in view.terms)
        ]
        if others:
            mine = words_between(view.text, view.starts, named[0], named[-1] + 1)
            other = sentence.words(others[0], others[-1] + 1)
            if not _one_name(mine, other):
                return view.starts[named[0]], mine, other
    return None


def _renamed(view: ClaimView, sentence: Sentence, terms: frozenset[int]) -> tuple[int, str, str] | None:
    """The claim's one name, with its start, and the sentence's, where that has all of the claim but the name.

    Unlike ``_other_name`` it holds in whatever order: "X gave the speech", "the speech was given by Y".
    """
    names = [value for value in view.values if value.kind is ValueKind.NAME]
    if len(names) != 1 or not view.name_tokens or any(view.terms[i] in terms for i in view.name_tokens):
        return None
    named = {view.terms[i] for i in view.name_tokens}
    rest = view.content.keys() - named
    if len(rest) < _RENAMED_WORDS or not rest <= terms:
        return None
    others = [
        value
        for value in sentence.facts.values
        if value.kind is ValueKind.NAME
        and len(value.words) == len(names[0].words)
        and not any(
            sentence.terms[i] in view.terms for i in tokens_within(sentence.starts, value.start, value.end)
        )
    ]
    if len(others) != 1 or _one_name(names[0].text, others[0].text):
        return None
    return names[0].start, names[0].text, others[0].text


def _one_name(one: str, other: str) -> bool:
    """Whether two names are one: "Cuba" and "Cuban", "Saint" and "St.", "EU" and "European Union"."""
    if _abbreviates(one, other) or _abbreviates(other, one):
        return True
    plain = ("".join(c for c in name.casefold() if c.isalnum()) for name in (one, other))
    short, long = sorted(plain, key=len)
    if short == long or (short, long) == ("st", "saint"):
        return True
    if short not in PLACES:
        return False
    root = short.rstrip(_FINAL_VOWELS)
    return any(long.removeprefix(stem) in _OF_PLACE for stem in (short, root) if long.startswith(stem))


def _abbreviates(one: str, other: str) -> bool:
    """Whether a name is the capitals of another, or of its last part: "NYC" of "York City"."""
    letters = one.replace(".", "")
    capitals = "".join(word[0] for word in other.split() if word[0].isupper())
    return letters.isupper() and letters.isalpha() and len(capitals) > 1 and letters.endswith(capitals)
