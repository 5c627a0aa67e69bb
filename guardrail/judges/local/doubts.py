"""Which sentences count as evidence by themselves, and which don't: one that a claim is word for word; one
for whose thing another context gives another value; one that its document takes back.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from guardrail.claims.detector import DENYING_LABEL, fold
from guardrail.claims.model import read_prose
from guardrail.claims.phrases import pattern
from guardrail.claims.phrases import words as phrases
from guardrail.claims.sentences import CLOSERS, TERMINATORS
from guardrail.evidence.index import EvidenceIndex, as_copied
from guardrail.evidence.sentences import speaker_of
from guardrail.evidence.tokens import CITATION, STOP_TERMS, term_of, terms_of, words
from guardrail.figures import Figure, FigureCheck, FigureSource, Kind, State
from guardrail.figures.agreement import agrees, compatible, of_a_sort
from guardrail.judges.local.search import IDLE, PRONOUNS, Candidates, ClaimView, Match, Rarity, follows

_MOST_FIGURES: Final = 8  # of a claim
_LEAST: Final = 2  # contexts that can disagree
_OPENING: Final = 2  # words within which a claim's subject is a pronoun, if it is one
_MANY: Final = 12  # figures of a sentence; one of more is a list, whose values are of several things
_BESIDE: Final = 2  # sentences around one that tell what it is of
_HOLDING: Final = 2  # sentences with a claim's figure, beside one with another, that are looked at
_MISSING: Final = 0.35  # of what is said around the claim's value, that may be missing around the other
_AS_MUCH: Final = 0.15  # of a claim, that another sentence may say less and yet say it
_REACH: Final = 600  # characters around a sentence that are looked at
_SPEAKER: Final = re.compile(
    r"[ \t]*(?:\[[^\]\n]{1,20}\][ \t]*)?([*_]{0,3}[^\W\d_][\w .'’#-]{0,39}[*_]{0,3}):"
)
_DENIES: Final = pattern("reply_denies")
_MAY_BE_LABEL: Final = re.compile(r"[^:–—]{1,40}+[:–—]\s")
_NEGATES: Final = re.compile(r"\b(?:not|no|never)\b|n['’]t\b", re.IGNORECASE)
_FALSE: Final = pattern("called_false")
_ENDED: Final = pattern("was_so_until")
_WAS: Final = re.compile(r"\b(?:was|were|had|did|cost|could|used to|[a-z]{3,}ed)\b", re.IGNORECASE)
_NOW: Final = pattern("is_so_now")
_THEN: Final = pattern("was_so_then")

# Of sentences that a claim is word for word.
_MOST_JOINED: Final = 4  # sentences, or pieces of a long one, that a claim may be
_LEAST_OF_A_PART: Final = 0.2  # of the claim, that one of them holds
_FEWEST_WORDS: Final = 3
_FEWEST_CHARS: Final = 6  # in scripts without spaces
_LONG_WORD: Final = re.compile(r"[A-Za-z]{4,}")
_PLACES: Final = 32  # where a claim may begin that are looked at
_MARKUP_CHARS: Final = 200  # that a sentence may be longer than the claim
_BESIDE_CHARS: Final = 400  # on its line, in which cells, a label and quotes are looked for
_ABOVE_CHARS: Final = 3000  # in which what a sentence stands under is looked for
_MOST_HEADS: Final = 3  # lines above it that are no sentences
_LONGEST_HEAD: Final = 120
_CLOSES: Final = " \t\r\n\"'’‘“*_`" + CLOSERS
_ASKING: Final = ("?", "？", "؟")
_COLONS: Final = (":", "：")
_DEPENDS: Final = pattern("word_for_word_depends", "word_for_word_without_subject")
_TAKEN_BACK: Final = pattern("word_for_word_taken_back")
_OUT_OF_FORCE: Final = pattern("word_for_word_out_of_force")
_DENIALS: Final = re.compile(rf"\b(?:{'|'.join(sorted(phrases('denials') | phrases('foreign_denials')))})\b")
_CROSSED: Final = re.compile("[❌✗✘✖❎]")
_ITEM: Final = re.compile(r"[ \t>]*(?:[-*+•·–—▪◦‣●○∙]|\(?\d{1,3}[.)]|[A-Za-z]\))[ \t]+")
_LABEL: Final = re.compile(r"\W{0,6}[^\W\d_][^.!?:：\n]{0,40}[:：](?!\d)")
_QUOTES: Final = (("«", "»"), ("「", "」"), ("『", "』"), ("“", "”"))
_STRAIGHT_OPENS: Final = re.compile(r'(?<!\S)[(\[]?"(?=\S)')
_WITHOUT_STOPS: Final = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff]")  # Thai, Lao, Khmer
_DENSE: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]")
_HIRAGANA: Final = re.compile(r"[\u3041-\u309f]")
_HANGUL: Final = re.compile(r"[\uac00-\ud7af]")
_FRAMES: Final = frozenset(term_of(word) for word in phrases("word_for_word_frames"))
_TELLING: Final = 0.55  # rarity of a word that may name what a claim is about


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
    def _names_its_subject(self) -> bool:
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
        comparable = len(self.evidence.contexts) >= _LEAST and self._names_its_subject
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
        for check in checks[:_MOST_FIGURES] if self._names_its_subject else ():
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

    # ----------------------------------------------------------------------------------------- word for word

    def word_for_word(
        self, checks: Sequence[FigureCheck], lead_in: str, rarity: Rarity
    ) -> tuple[int, int, int] | None:
        """``(context, start, end)`` of the sentence of the contexts that the claim is, letter for letter but
        for what copying changes; None where there is none, or it needn't say the same there.

        The sentence counts whole: a part of one may lack a "not" or an "if". It doesn't count where a pronoun
        or a missing subject leaves open what it is about, where what stands around it takes it back, dates
        it, labels it or reports it, or where another sentence gives it another value.
        """
        claim = _as_said(self.view.text)
        if not _says_of_what(self.view.text):
            return None
        sentences = self.evidence.layout.sentences
        long_words = _long_words(self.view.text)
        for match in self.found.sentences:
            if match.coverage < _LEAST_OF_A_PART:
                continue
            for first, last in self._runs(match.number):
                context, start, end = self._contexts[first], sentences.start[first], sentences.end[last]
                if not len(claim) <= end - start <= len(self.view.text) + _MARKUP_CHARS:
                    continue
                said = self.evidence.shown(context)[start:end]
                if not all(word in said for word in long_words):  # which is soon found out
                    continue
                said = read_prose(said).text
                if _as_said(said) == claim and self._counts(first, last, lead_in, rarity):
                    return None if self._says_otherwise(checks) else (context, start, end)
        return None

    def _says_otherwise(self, checks: Sequence[FigureCheck]) -> bool:
        """Whether a sentence says the claim with other values, those aside that name what it is about ("Item
        31 costs $5"): of the same thing, or of one that neither names.
        """
        said = self._tokens
        named = [(check.figure.start, check.figure.end) for check in checks if check.figure.name]
        values = [at for at, _, surface in said if surface[0].isdigit()]
        for (_, term, surface), (at, _, _) in pairwise(said):
            if at in values[:-1] and surface[0].isupper() and term not in STOP_TERMS:
                named.append((at, at + 1))
        sentences = self.evidence.layout.sentences
        for match in self.found.sentences:
            start, end = sentences.start[match.number], sentences.end[match.number]
            other = words(self.evidence.shown(self._contexts[match.number])[start:end])
            if len(other) != len(said):
                continue
            pairs = [pair for pair in zip(said, other, strict=True) if pair[0][1] != pair[1][1]]
            if pairs and all(
                ours[2][0].isdigit()
                and theirs[2][0].isdigit()
                and not any(begin <= ours[0] < stop for begin, stop in named)
                for ours, theirs in pairs
            ):
                return True
        return False

    def _runs(self, number: int) -> Iterator[tuple[int, int]]:
        """The sentence, alone and with its neighbours; none that begins or ends within a sentence."""
        sentences = self.evidence.layout.sentences
        contexts, starts, ends = sentences.context, sentences.start, sentences.end
        for first in range(number, max(-1, number - _MOST_JOINED), -1):
            for last in range(number, min(len(contexts), first + _MOST_JOINED)):
                if not contexts[first] == contexts[number] == contexts[last]:
                    break
                before, behind = first - 1, last + 1  # pieces of a long sentence overlap
                if follows(contexts, first) and ends[before] > starts[first]:
                    break
                if behind < len(contexts) and follows(contexts, behind) and starts[behind] < ends[last]:
                    continue
                yield first, last

    def _counts(self, first: int, last: int, lead_in: str, rarity: Rarity) -> bool:
        """Whether sentences of a context say there what they say by themselves, and below ``lead_in`` in the
        answer.
        """
        sentences = self.evidence.layout.sentences
        text = self.evidence.shown(sentences.context[first])
        start, end = sentences.start[first], sentences.end[last]
        left = max(0, start - _ABOVE_CHARS)
        line_at = max(left, text.rfind("\n", left, start) + 1)
        before = text[max(line_at, start - _BESIDE_CHARS) : start]
        behind = text[end : end + _BESIDE_CHARS].partition("\n")[0]
        above = text[max(0, start - _LONGEST_HEAD) : start].rstrip() if text[start].islower() else ""
        if above and not _ended(above):
            return False  # the sentence began on the line above
        if not _ended(text[start:end]) and (
            before.strip() or behind.strip() or not _WITHOUT_STOPS.search(text, start, end)
        ):
            return False  # a title, or a line that is not a sentence
        if (
            "|" in before
            or "|" in behind
            or _CROSSED.search(before + behind)
            or (line_at + _BESIDE_CHARS >= start and _LABEL.match(before))
            or _inside_quotes(before)
        ):
            return False
        if speaker_of(sentences, self.evidence.turns, first) is not None:
            return False
        previous, following = (
            fold(text[sentences.start[number] : sentences.end[number]])
            if 0 <= number < len(sentences) and sentences.context[number] == sentences.context[first]
            else ""
            for number in (first - 1, last + 1)
        )
        heads, leads = _above(text, line_at, item=_ITEM.match(text, line_at, end) is not None)
        if any(_TAKEN_BACK.search(each) for each in (previous, following, *heads)):
            return False
        if any(_OUT_OF_FORCE.search(each) or _DENIALS.search(each) for each in heads):
            return False
        given = _terms(f"{lead_in} {text[start:end]}")
        if any(not _terms(each) <= given for each in leads):
            return False
        return self._of_the_same(lead_in, " ".join((text[start:end], previous, *heads)), rarity)

    def _of_the_same(self, lead_in: str, around: str, rarity: Rarity) -> bool:
        """Whether what leads in to a claim speaks of what its sentence speaks of in the document, where it
        stands ``around``; words such as "details" and "prices" speak of nothing.
        """
        folded = fold(lead_in)
        if _TAKEN_BACK.search(folded) or _DENIALS.search(folded):
            return False
        return not any(
            self.evidence.layout.positions(term) or rarity[term] >= _TELLING
            for term in _terms(lead_in) - _terms(around) - _FRAMES
        )


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
    label, after = _SPEAKER.match(text, begin), text.find("\n", end, end + _REACH)
    if label is None or after < 0:
        return False
    reply = text[after : after + _REACH].lstrip()
    answered = _SPEAKER.match(reply)
    return bool(answered and answered[1] != label[1] and _DENIES.match(reply, answered.end()))


def may_stand_in(claim: str, text: str) -> bool:
    """Whether a text has the long words of a claim, in their order and near each other, as one has in which
    that stands word for word. Cheap.
    """
    first, *others = _long_words(claim) or [""]
    at, room = text.find(first), len(claim) + _MARKUP_CHARS
    for _ in range(_PLACES):
        if at < 0:
            return False
        end = at + len(first)
        for word in others:
            end = text.find(word, end, at + room) + len(word)
            if end < len(word):
                break
        else:
            return True
        at = text.find(first, at + 1)
    return True


def _long_words(claim: str) -> list[str]:
    return _LONG_WORD.findall(_as_said(claim), 1)


def _as_said(text: str) -> str:
    """A sentence to compare: without the marks of citations and the full stop at its end; the case of its
    first letter doesn't count.
    """
    text = as_copied(text)
    for mark in reversed(list(CITATION.finditer(text))):
        if text[mark.end() :].strip(TERMINATORS + " "):
            break
        text = text[: mark.start()] + text[mark.end() :]
    text = text.rstrip(TERMINATORS + " ")
    return text[:1].lower() + text[1:]


def _says_of_what(text: str) -> bool:
    """Whether a sentence is one that says itself what it is about, as far as its first word and its particles
    tell.
    """
    said = text.strip(" \"'“‘«»*_([¿¡")
    if said.endswith(_ASKING) or _DEPENDS.match(said):
        return False
    if _HIRAGANA.search(said):
        return any(particle in said for particle in "はがも")
    if _DENSE.search(said):
        return len(said) >= _FEWEST_CHARS
    if _HANGUL.search(said):
        return any(word.rstrip(",")[-1:] in tuple("은는이가도") for word in said.split()[:-1])
    return len(said.split()) >= _FEWEST_WORDS


def _ended(text: str) -> bool:
    bare = CITATION.sub("", text).rstrip(_CLOSES)
    return bare.endswith(tuple(TERMINATORS)) and not bare.endswith(_ASKING)


def _inside_quotes(before: str) -> bool:
    """Whether a quote is open behind ``before``: it closes later than the last one that did."""
    if (low := before.rfind("„")) >= 0 and low > max(before.rfind("“"), before.rfind("”")):
        return True
    pairs = _QUOTES if low < 0 else _QUOTES[:-1]
    straight = [mark.start() for mark in _STRAIGHT_OPENS.finditer(before)]
    return any(before.rfind(opens) > before.rfind(closes) for opens, closes in pairs) or (
        bool(straight) and '"' not in before[straight[-1] + 1 :]
    )


def _above(text: str, line_at: int, *, item: bool) -> tuple[list[str], list[str]]:
    """The lines above one that are no sentences, folded: titles and labels, and those of them with a colon
    that lead in to the line or to its list.
    """
    heads: list[str] = []
    leads: list[str] = []
    directly = True
    for line in reversed(text[max(0, line_at - _ABOVE_CHARS) : line_at].split("\n")):
        bare = line.strip()
        if not bare:
            continue
        listed = _ITEM.match(line) is not None
        if directly and item and not listed and _ended(bare):
            heads.append(fold(bare))  # "None of the following is true."
        if directly and item and not listed and bare.rstrip(_CLOSES).endswith(_ASKING):
            leads.append(bare)  # "Which of these is right?"
        if bare.rstrip(_CLOSES).endswith(_COLONS):
            heads.append(fold(bare))
            if directly:
                leads.append(bare)
        elif not listed and len(bare) <= _LONGEST_HEAD and not _ended(bare):
            heads.append(fold(bare))
        directly = directly and item and listed
        if len(heads) == _MOST_HEADS:
            break
    opening = text[: min(line_at, _LONGEST_HEAD)].partition("\n")[0]
    return ([*heads, fold(opening)] if opening and not _ended(opening) else heads), leads


def _terms(text: str) -> frozenset[int]:
    return terms_of(text) - IDLE
