"""What keeps a sentence from counting as evidence by itself: another context gives another value for the same
thing, or the document takes it back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, NamedTuple

from guardrail.claims.detector import DENYING_LABEL, fold
from guardrail.claims.phrases import pattern
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import words
from guardrail.figures import Figure, FigureCheck, FigureSource, Kind, State
from guardrail.figures.agreement import agrees, compatible, of_a_sort
from guardrail.judges.local.search import PRONOUNS, Candidates, ClaimView, Match

_MOST_FIGURES: Final = 8  # of a claim
_LEAST: Final = 2  # contexts that can disagree
_OPENING: Final = 2  # words within which a claim's subject is a pronoun, if it is one
_MANY: Final = 12  # figures of a sentence; one of more is a list, whose values are of several things
_BESIDE: Final = 2  # sentences around one that tell what it is of
_HOLDING: Final = 2  # sentences with a claim's figure, beside one with another, that are looked at
_MISSING: Final = 0.35  # of what is said around the claim's value, that may be missing around the other
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


@dataclass(frozen=True)
class Doubts:
    """A claim beside what was ``found`` for it, of which not all counts."""

    view: ClaimView
    found: Candidates
    source: FigureSource
    evidence: EvidenceIndex

    @cached_property
    def gone(self) -> frozenset[int]:
        """The sentences that a document takes back wholly, for a claim that doesn't say so itself."""
        numbers = (match.number for match in self.found.sentences)
        return frozenset(number for number in numbers if self._taken_back(number) is not None)

    @cached_property
    def standing(self) -> tuple[Match, ...]:
        """The sentences but for those; all where none is left."""
        left = tuple(match for match in self.found.sentences if match.number not in self.gone)
        return left or self.found.sentences

    @property
    def _contexts(self) -> Sequence[int]:
        return self.evidence.layout.sentences.context

    @cached_property
    def _tokens(self) -> list[tuple[int, int, str]]:
        return words(self.view.text)

    @cached_property
    def _names(self) -> set[int]:
        """The words of the claim that name something: with a capital or a digit."""
        text = self.view.text
        return {term for at, term, _ in self._tokens if text[at].isdigit() or (at > 0 and text[at].isupper())}

    @cached_property
    def _is_told(self) -> bool:
        """Whether the claim itself says what it is of: no pronoun stands for that."""
        return all(term not in PRONOUNS for _, term, _ in self._tokens[:_OPENING])

    def _inside(self, figure: Figure) -> set[int]:
        return {term for at, term, _ in self._tokens if figure.start <= at < figure.end}

    # ------------------------------------------------------------------------------------------ other values

    def rivals(self, checks: Sequence[FigureCheck]) -> Iterator[Rival]:
        """What may be other values for what the claim says and a context backs, the likeliest first.

        Each is of the same sort and stands in a sentence that speaks of the same, in a context that has the
        claim's value nowhere; the context that has it doesn't have the other one, too. Names and figures
        around the claim's value are around the other one.
        """
        view, contexts, names = self.view, self._contexts, self._names
        comparable = len(self.evidence.contexts) >= _LEAST and self._is_told
        for check in filter(_decides, checks[:_MOST_FIGURES]) if comparable else ():
            figure, home = check.figure, contexts[check.sentence or 0]
            inside = self._inside(figure)
            near = self._around(check.sentence or 0)
            said = {term: view.content[term] for term in near & view.content.keys() - inside}
            if any(term in self.found.present and not self._stands_in(term, home) for term in names - inside):
                continue  # it is of something else, wherever that has it
            for match in self.standing:
                sentence = self.source.sentence(match.number)
                context = contexts[match.number]
                if context == home or not match.terms - inside or len(sentence.figures) > _MANY:
                    continue
                others = [f for f in sentence.figures if _is_other(check, f)]
                others = [f for f in others if not any(agrees(each.figure, f) for each in checks)]
                missing = said.keys() - self._around(match.number)
                unsaid = sum(said[term] for term in missing)
                if not others or missing & names or unsaid > _MISSING * sum(said.values()):
                    continue
                if self._has(figure, context):
                    continue
                new = [other for other in others if not self._has(other, home)]
                if len(new) == 1 and not sentence.one_of_two(new[0]):
                    yield Rival(check, match.number, new[0])

    def backed_elsewhere(self, checks: Sequence[FigureCheck]) -> Iterator[Rival]:
        """The figures of the claim with which one context is at odds and that another context has, where the
        names of the claim stand, too, in sentences that it doesn't take back."""
        for check in checks[:_MOST_FIGURES] if self._is_told else ():
            if check.state is not State.CONFLICT or check.sentence is None or check.source is None:
                continue
            names = self._names - self._inside(check.figure)
            holding = self.source.holding(check.figure)
            if any(self._contexts[number] == self._contexts[check.sentence] for number in holding):
                continue
            for number in holding[:_HOLDING]:
                own = self.source.backing(check.figure, number)
                if own is not None and number not in self.gone and names <= self._around(number):
                    backed = replace(check, state=State.FOUND, sentence=number, source=own)
                    yield Rival(backed, check.sentence, check.source)

    def _has(self, figure: Figure, context: int) -> bool:
        holding = (number for number in self.source.holding(figure) if self._contexts[number] == context)
        return any(self.source.backing(figure, number) is not None for number in holding)

    def _stands_in(self, term: int, context: int) -> bool:
        """Whether a context has a word."""
        layout = self.evidence.layout
        first, last = layout.context_first[context : context + 2]
        positions = layout.positions(term)
        at = bisect_left(positions, first)
        return at < len(positions) and positions[at] < last

    def _around(self, number: int) -> frozenset[int]:
        """The terms of a sentence and those beside it."""
        layout = self.evidence.layout
        sentences = layout.sentences
        near = range(max(0, number - _BESIDE), min(len(sentences), number + _BESIDE + 1))
        own = [n for n in near if sentences.context[n] == sentences.context[number]]
        return frozenset(layout.terms[sentences.first[own[0]] : sentences.last[own[-1]]])

    # -------------------------------------------------------------------------------------------- taken back

    def revoked(self, checks: Sequence[FigureCheck]) -> Revoked | None:
        """The sentence that says what the claim says, where the document takes that back and no other
        sentence says as much of the claim."""
        values = [check for check in checks if not check.figure.name]
        figures = [check.figure for check in values if check.state is State.FOUND] if values else [None]
        return next((lost for figure in figures if (lost := self._all_revoked(figure)) is not None), None)

    def _all_revoked(self, figure: Figure | None) -> Revoked | None:
        """The first of the sentences that say most of the claim, and back its figure, if none stands."""
        said: list[tuple[Match, Figure | None]] = [(match, None) for match in self.found.sentences]
        if figure is not None:
            backing = ((match, self.source.backing(figure, match.number)) for match, _ in said)
            said = [(match, own) for match, own in backing if own is not None]
        most = max((match.coverage for match, _ in said), default=0.0)
        first: Revoked | None = None
        for match, own in said:
            if match.coverage < most - _AS_MUCH:
                continue
            how = self._taken_back(match.number, own)
            if how is None:
                return None
            first = first or Revoked(match.number, how)
        return first

    def _taken_back(self, number: int, own: Figure | None = None) -> TakenBack | None:
        """How a sentence, or its part with a figure, is taken back; not for a claim that says so itself."""
        claim, sentences = self.view.text, self.evidence.layout.sentences
        text = self.evidence.shown(sentences.context[number])
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
