"""What keeps a sentence from counting as evidence by itself: another context gives another value for the same
thing, or the document takes it back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from guardrail.claims.detector import DENYING_LABEL, fold
from guardrail.claims.phrases import pattern
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import words
from guardrail.figures import Figure, FigureCheck, FigureSource, Kind, State
from guardrail.figures.agreement import agrees, compatible, of_a_sort
from guardrail.judges.local.search import PRONOUNS, Candidates, ClaimView

_MOST_FIGURES: Final = 8  # of a claim
_LEAST: Final = 2  # contexts that can disagree
_OPENING: Final = 2  # words within which a claim's subject is a pronoun, if it is one
_MANY: Final = 12  # figures of a sentence; one of more is a list, whose values are of several things
_BESIDE: Final = 2  # sentences around one that tell what it is of
_HOLDING: Final = 2  # sentences with a claim's figure, beside one with another, that are looked at
_MISSING: Final = 0.35  # of what is said around the claim's value, that may be missing around the other


@dataclass(frozen=True, slots=True)
class Rival:
    """A sentence of another context than that which backs ``check``, and its other value for the same."""

    check: FigureCheck
    sentence: int
    figure: Figure

    def said_of(self, claim: str) -> str:
        """The claim with the other value."""
        own = self.check.figure
        return claim[: own.start] + self.figure.text + claim[own.end :]


def rivals_of(
    view: ClaimView,
    checks: Sequence[FigureCheck],
    found: Candidates,
    source: FigureSource,
    evidence: EvidenceIndex,
) -> Iterator[Rival]:
    """What may be other values for what a claim says and a context backs, the likeliest first.

    Each is of the same sort and stands in a sentence that speaks of the same, in a context that has the
    claim's value nowhere; the context that has it doesn't have the other one, too. Names and figures around
    the claim's value are around the other one.
    """
    contexts = evidence.layout.sentences.context
    names = _names(view.text)
    comparable = len(evidence.contexts) >= _LEAST and _is_told(view.text)
    for check in filter(_decides, checks[:_MOST_FIGURES]) if comparable else ():
        figure, home = check.figure, contexts[check.sentence or 0]
        inside = {term for at, term, _ in words(view.text) if figure.start <= at < figure.end}
        near = _around(evidence, check.sentence or 0)
        said = {term: view.content[term] for term in near & view.content.keys() - inside}
        if any(term in found.present and not _stands_in(evidence, term, home) for term in names - inside):
            continue  # it is of something else, wherever that has it
        for match in found.sentences:
            sentence = source.sentence(match.number)
            if contexts[match.number] == home or not match.terms - inside or len(sentence.figures) > _MANY:
                continue
            others = [f for f in sentence.figures if _is_other(check, f)]
            others = [f for f in others if not any(agrees(each.figure, f) for each in checks)]
            missing = said.keys() - _around(evidence, match.number)
            unsaid = sum(said[term] for term in missing)
            if not others or missing & names or unsaid > _MISSING * sum(said.values()):
                continue
            if _has(source, figure, contexts[match.number], contexts):
                continue
            new = [other for other in others if not _has(source, other, home, contexts)]
            if len(new) == 1 and not sentence.one_of_two(new[0]):
                yield Rival(check, match.number, new[0])


def backed_elsewhere(
    view: ClaimView,
    checks: Sequence[FigureCheck],
    source: FigureSource,
    evidence: EvidenceIndex,
    gone: frozenset[int],
) -> Iterator[Rival]:
    """The figures of a claim with which one context is at odds and that another context has, where the names
    of the claim stand, too, in sentences other than ``gone``."""
    contexts = evidence.layout.sentences.context
    names = _names(view.text)
    for check in checks[:_MOST_FIGURES] if _is_told(view.text) else ():
        if check.state is not State.CONFLICT or check.sentence is None or check.source is None:
            continue
        inside = {term for at, term, _ in words(view.text) if check.figure.start <= at < check.figure.end}
        holding = source.holding(check.figure)
        if any(contexts[number] == contexts[check.sentence] for number in holding):
            continue
        for number in holding[:_HOLDING]:
            own = source.backing(check.figure, number)
            if own is not None and number not in gone and names - inside <= _around(evidence, number):
                backed = replace(check, state=State.FOUND, sentence=number, source=own)
                yield Rival(backed, check.sentence, check.source)


def _decides(check: FigureCheck) -> bool:
    """Whether a context backs a figure of which one thing has one."""
    figure = check.figure
    if check.state is not State.FOUND or check.sentence is None or check.source is None or figure.name:
        return False
    counts = figure.kind is not Kind.NUMBER or (figure.noun is not None and not figure.fraction)
    return counts and figure.kind not in (Kind.ORDINAL, Kind.IDENTIFIER, Kind.VERSION)


def _is_other(check: FigureCheck, other: Figure) -> bool:
    """Whether a figure may be another value for the same: as much a limit, and of the same rate."""
    figure, own = check.figure, check.source or check.figure
    limits = bool(own.bound.direction) == bool(other.bound.direction)
    return limits and own.per == other.per and of_a_sort(figure, other) and not compatible(figure, other)


def _has(source: FigureSource, figure: Figure, context: int, contexts: Sequence[int]) -> bool:
    holding = (number for number in source.holding(figure) if contexts[number] == context)
    return any(source.backing(figure, number) is not None for number in holding)


def _names(text: str) -> set[int]:
    """The words of a claim that name something: with a capital or a digit."""
    return {term for at, term, _ in words(text) if text[at].isdigit() or (at > 0 and text[at].isupper())}


def _is_told(text: str) -> bool:
    """Whether a claim itself says what it is of: no pronoun stands for that."""
    return all(term not in PRONOUNS for _, term, _ in words(text)[:_OPENING])


def _stands_in(evidence: EvidenceIndex, term: int, context: int) -> bool:
    """Whether a context has a word."""
    layout = evidence.layout
    first, last = layout.context_first[context : context + 2]
    positions = layout.positions(term)
    at = bisect_left(positions, first)
    return at < len(positions) and positions[at] < last


def _around(evidence: EvidenceIndex, number: int) -> frozenset[int]:
    """The terms of a sentence and those beside it."""
    layout = evidence.layout
    sentences = layout.sentences
    near = range(max(0, number - _BESIDE), min(len(sentences), number + _BESIDE + 1))
    own = [n for n in near if sentences.context[n] == sentences.context[number]]
    return frozenset(layout.terms[sentences.first[own[0]] : sentences.last[own[-1]]])


# ------------------------------------------------------------------------------------------------- taken back

_AS_MUCH: Final = 0.15  # of a claim, that another sentence may say less and yet say it
_REACH: Final = 600  # characters around a sentence that are looked at
_LABEL: Final = re.compile(r"[ \t]*(?:\[[^\]\n]{1,20}\][ \t]*)?([*_]{0,3}[^\W\d_][\w .'’#-]{0,39}[*_]{0,3}):")
_DENIES: Final = pattern("reply_denies")
_MAY_BE_LABEL: Final = re.compile(r"[^:–—]{1,40}+[:–—]\s")
_NEGATES: Final = re.compile(r"\b(?:not|no|never)\b|n['’]t\b", re.IGNORECASE)
_FALSE: Final = pattern("called_false")
_ENDED: Final = pattern("was_so_until")
_WAS: Final = re.compile(r"\b(?:was|were|had|did|cost|could|used to|[a-z]{3,}ed)\b", re.IGNORECASE)
_NOW: Final = pattern("is_so_now")
_THEN: Final = pattern("was_so_then")


class TakenBack(StrEnum):
    """How a document takes back what it says."""

    FALSE = "The document calls it false"
    DENIED = "Another speaker denies it"
    PAST = "The document says it only of a time that has passed"


class Revoked(NamedTuple):
    """A sentence that says what a claim says, and how the document takes it back."""

    sentence: int
    how: TakenBack


def revoked(
    view: ClaimView,
    checks: Sequence[FigureCheck],
    found: Candidates,
    source: FigureSource,
    evidence: EvidenceIndex,
) -> Revoked | None:
    """The sentence that says what a claim says, where the document takes that back and no other sentence says
    as much of the claim."""
    figures = [check for check in checks if not check.figure.name]
    if not figures:
        most = max(match.coverage for match in found.sentences)
        likely = [match.number for match in found.sentences if match.coverage >= most - _AS_MUCH]
        return _all_revoked(view, likely, evidence)
    for check in figures:
        if check.state is not State.FOUND:
            continue
        holding = [(match, source.backing(check.figure, match.number)) for match in found.sentences]
        most = max((match.coverage for match, own in holding if own is not None), default=0.0)
        likely = [match.number for match, own in holding if own and match.coverage >= most - _AS_MUCH]
        if (gone := _all_revoked(view, likely, evidence, check.figure, source)) is not None:
            return gone
    return None


def taken_back(view: ClaimView, found: Candidates, evidence: EvidenceIndex) -> frozenset[int]:
    """The sentences that a document takes back wholly, for a claim that doesn't say so itself."""
    numbers = (match.number for match in found.sentences)
    return frozenset(n for n in numbers if _taken_back(view.text, n, evidence, None) is not None)


def _all_revoked(
    view: ClaimView,
    numbers: Sequence[int],
    evidence: EvidenceIndex,
    figure: Figure | None = None,
    source: FigureSource | None = None,
) -> Revoked | None:
    first: Revoked | None = None
    for number in numbers:
        own = source.backing(figure, number) if source is not None and figure is not None else None
        how = _taken_back(view.text, number, evidence, own)
        if how is None:
            return None
        first = first or Revoked(number, how)
    return first


def _taken_back(claim: str, number: int, evidence: EvidenceIndex, own: Figure | None) -> TakenBack | None:
    """How a sentence, or its part with a figure, is taken back, if it is; not for a claim that says so."""
    sentences = evidence.layout.sentences
    text = evidence.shown(sentences.context[number])
    start, end = sentences.start[number], sentences.end[number]
    said = text[start:end]
    if _MAY_BE_LABEL.match(said) and DENYING_LABEL.match(fold(said).lstrip(" *_#>-•\"'")):
        how = TakenBack.FALSE
    elif _is_past(said, own) and not _THEN.search(claim):
        how = TakenBack.PAST
    elif _is_denied(text, start, end) and not _NEGATES.search(said):
        how = TakenBack.DENIED
    else:
        return None
    denies = bool(_NEGATES.search(claim)) is not bool(_NEGATES.search(said))
    return None if denies or _FALSE.search(claim) else how


def _is_past(said: str, own: Figure | None) -> bool:
    """Whether a sentence, or its part with a figure, says what was so until then."""
    ended = _ENDED.search(said)
    if ended is None:
        return False
    turn = _NOW.search(said, ended.end())
    past = said[: turn.start()] if turn else said
    within = turn is None if own is None else own.start < len(past)
    return within and bool(ended["label"] or _WAS.search(past))


def _is_denied(text: str, start: int, end: int) -> bool:
    """Whether the next speaker denies what is said in the line of a sentence."""
    begin = text.rfind("\n", max(0, start - _REACH), start) + 1 or max(0, start - _REACH)
    label, after = _LABEL.match(text, begin), text.find("\n", end, end + _REACH)
    if label is None or after < 0:
        return False
    reply = text[after : after + _REACH].lstrip()
    answered = _LABEL.match(reply)
    return bool(answered and answered[1] != label[1] and _DENIES.match(reply, answered.end()))
