"""What is found out about a claim before anything is decided, and those parts of it that need no verifier."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from guardrail.claims.model import Claim
from guardrail.claims.phrases import pattern
from guardrail.events import Evidence, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import terms_of, words
from guardrail.figures import FigureCheck, FigureSource, SourceText, State
from guardrail.judges.local.combiner import Read, best_of
from guardrail.judges.local.doubts import Revoked, Rival
from guardrail.judges.local.reader import unsupported_spans
from guardrail.judges.local.records import CellCheck
from guardrail.judges.local.search import Candidates, ClaimView

MARKED: Final = 0.5  # how surely the verifier finds a word unsupported, that it counts as marked
_FINITE: Final = pattern("finite")
_JOINING: Final = re.compile(r"(?:[,;]\s+|\s+)(?:and|but|while|whereas|whilst)\s+|;\s+", re.IGNORECASE)
_SEVERAL: Final = 2
_MOST_FACTS: Final = 4
_FACT_SPACES: Final = 2
_SAME_MATTER: Final = 0.5  # of what a question or data says around a figure, that its sentence says too
_ALL_BUT: Final = 0.8  # of a claim, in a sentence that says or denies it
_FEW_MORE: Final = 2  # words
_FEW_WORDS: Final = 12


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything found out about one claim. ``start``: where what is examined begins in its text.
    ``features`` are those of words and figures and, where the verifier has read, of what it ``read``.
    ``left_out`` says what there was no time to read, ``cells`` what the cells of a table say otherwise,
    ``standing`` where the claim stands word for word, ``(context, start, end)``: then nothing is read;
    ``rival`` that another context has another value, and ``revoked`` that the document takes back what backs
    the claim."""

    view: ClaimView
    found: Candidates
    evidence: EvidenceIndex
    figures: Sequence[FigureCheck]
    features: dict[str, float]
    start: int = 0
    read: Sequence[Read] = ()
    left_out: str | None = None
    cells: Sequence[CellCheck] = ()
    standing: tuple[int, int, int] | None = None
    rival: Rival | None = None
    revoked: Revoked | None = None

    def quote(self, number: int) -> Evidence:
        """A sentence of the contexts."""
        return quoted_sentence(self.evidence, number)

    @property
    def has_wrong_figures(self) -> bool:
        """Whether a figure is in conflict with the sources, or in none, whatever the language."""
        wrong = (State.CONFLICT, State.ABSENT)
        return any(check.state in wrong and not check.figure.name for check in self.figures) or any(
            cell.sure for cell in self.cells
        )

    @property
    def has_right_figures(self) -> bool:
        """Whether all figures of the claim stand in the sources, of the same matter as far as words tell."""
        if self.cells or self.rival or self.revoked:
            return False
        return bool(self.figures) and all(
            check.state is State.FOUND and check.frame >= _SAME_MATTER and not check.owned
            for check in self.figures
        )

    @property
    def _most_contradicting(self) -> Read:
        return max(self.read, key=lambda each: each.reading.contradiction)

    @property
    def says_otherwise(self) -> bool:
        """Whether it is a window that contradicts the claim: beside it the verifier finds that likeliest.
        Without the verifier all there is are the words of the best sentence."""
        if not self.read:
            return True
        reading = self._most_contradicting.reading
        return reading.contradiction > max(reading.support, 1.0 - reading.support - reading.contradiction)

    def coverage(self, number: int) -> float:
        """How much of the claim a sentence has, by rarity."""
        return next((m.coverage for m in self.found.sentences if m.number == number), 0.0)

    def best_sentence(self, verdict: Verdict) -> int:
        """The best sentence of the window that decides.

        Of one that contradicts the claim that is the sentence with most of what the verifier does not mark:
        of "the hall was designed by Ann Lee" the one on who designed it, not one that has her name.
        """
        if not self.read:
            return self.found.sentences[0].number
        contradicts = verdict is Verdict.CONTRADICTED
        read = self._most_contradicting if contradicts else best_of(self.read)
        within = [match for match in self.found.sentences if match.number in read.window.sentences]
        if contradicts and (marked := _marked_terms(self.view, read)):
            within.sort(key=lambda match: -self.view.share(match.terms - marked))
        return within[0].number if within else read.window.best

    def deciding_texts(self, verdict: Verdict) -> Iterator[str]:
        """The sentence that decides and, where one was read, the window."""
        yield self.quote(self.best_sentence(verdict)).quote
        if self.read:
            contradicts = verdict is Verdict.CONTRADICTED
            yield (self._most_contradicting if contradicts else best_of(self.read)).window.text

    def context_of_few_words(self, verdict: Verdict) -> str:
        """The context of the sentence that decides, if that has few words: they may be names, which tell no
        language ("Spanish Beginners: Wednesdays, tutor Diego Ferrán"). Else nothing."""
        number = self.best_sentence(verdict)
        few = self.quote(number).quote.count(" ") < _FEW_WORDS
        return self.evidence.shown(self.evidence.layout.sentences.context[number]) if few else ""


def _marked_terms(view: ClaimView, read: Read) -> frozenset[int]:
    """The terms of the words that the verifier marks, beside one window."""
    spans = unsupported_spans(view.text, read.reading.tokens, MARKED)
    starts = [start for start, _ in spans]
    return frozenset(
        term
        for at, term, _ in words(view.text)
        if (last := bisect_right(starts, at)) and at < spans[last - 1][1]
    )


def quoted_sentence(evidence: EvidenceIndex, number: int) -> Evidence:
    """A sentence of the contexts, by its number."""
    sentences = evidence.layout.sentences
    return evidence.quote(sentences.context[number], sentences.start[number], sentences.end[number])


def figures_of(evidence: EvidenceIndex) -> FigureSource:
    """The figures of the contexts, read once for all claims of a response."""
    return evidence.kept(FigureSource, lambda: FigureSource(list(_sentences(evidence))))


def _sentences(evidence: EvidenceIndex) -> Iterator[SourceText]:
    """The sentences of the contexts, as the figures check takes them."""
    sentences = evidence.layout.sentences
    last, ended = -1, 0
    for context, start, end in zip(sentences.context, sentences.start, sentences.end, strict=True):
        text = evidence.shown(context)
        before = text[ended:start] if context == last else "\n\n"
        yield SourceText(evidence.contexts[context].id, start, end, text[start:end], before)
        last, ended = context, end


def cited_contexts(claim: Claim, evidence: EvidenceIndex) -> frozenset[int]:
    """The numbers of the contexts that the claim cites."""
    if not claim.citations:
        return frozenset()
    ids = {context_id for citation in claim.citations for context_id in citation.context_ids}
    return frozenset(number for number, context in enumerate(evidence.contexts) if context.id in ids)


def is_denied_elsewhere(view: ClaimView, found: Candidates, source: FigureSource) -> bool:
    """Whether one sentence has nearly all words of a claim, and few others, and denies it, and another has
    it: two documents that disagree in words."""
    told = [source.sentence(m.number) for m in found.sentences if m.coverage >= _ALL_BUT]
    own = terms_of(view.text)
    return len({sentence.denials % 2 for sentence in told if len(sentence.terms - own) <= _FEW_MORE}) > 1


def facts_of(text: str) -> list[tuple[int, int]]:
    """The stretches of a claim that state something each, where it has several; else none. Linear."""
    borders = [(0, 0), *(match.span() for match in _JOINING.finditer(text)), (len(text), len(text))]
    stretches = [(end, begin) for (_, end), (begin, _) in pairwise(borders)]
    if len(stretches) < _SEVERAL or len(stretches) > _MOST_FACTS:
        return []
    parts = [text[start:end].lower() for start, end in stretches]
    stating = all(part.count(" ") >= _FACT_SPACES and _FINITE.search(part) for part in parts)
    return stretches if stating else []
