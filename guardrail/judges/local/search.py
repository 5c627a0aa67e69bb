"""What of the contexts is looked at for a claim: sentences that hold most of it, and windows around them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from guardrail.claims.phrases import words as phrases
from guardrail.claims.silence import Silence
from guardrail.evidence.index import EvidenceIndex, Layout
from guardrail.evidence.sentences import speaker_of
from guardrail.evidence.tokens import STOP_TERMS, term_of, term_of_stem, terms_of, words


class Rarity(dict[int, float]):
    """Weights in 0..1 of common words, by term; every word that is not listed has weight 1."""

    def __missing__(self, term: int) -> float:
        return 1.0


@lru_cache(maxsize=1)
def load_rarity() -> Rarity:
    """The rarity that ships with the package: ``log(sentences / sentences with the word)`` over the training
    texts, divided by the value at the end of the list."""
    listed = json.loads(Path(__file__).with_name("rarity.json").read_text(encoding="utf-8"))
    return Rarity({term_of_stem(word): weight for word, weight in listed.items()})


# ---------------------------------------------------------------------------------------------------- a claim

_TEXTS_REMEMBERED: Final = 512
_CLOSING_WEIGHT: Final = 0.35
PRONOUNS: Final = frozenset(
    term_of(word)
    for word in "it its he him his she her they them their this that these those".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class ClaimView:
    """The tokens of one claim. ``content`` maps each term that says what the claim is about to its rarity.

    ``terms`` has one entry a token of ``text``. ``hints`` are terms of the
    question and the lead-in, for finding the place that the claim speaks of, never for supporting it.
    ``weight`` is the sum of all rarities of ``content``.
    """

    text: str
    terms: tuple[int, ...]
    content: dict[int, float]
    hints: dict[int, float]
    weight: float

    def share(self, terms: frozenset[int]) -> float:
        """How much of the claim's content ``terms`` hold, by rarity, 0..1."""
        total = self.weight
        return sum(self.content[term] for term in terms & self.content.keys()) / total if total else 0.0


def view_of(text: str, question: str, lead_in: str, rarity: Rarity) -> ClaimView:
    """The view of a claim; linear in its length."""
    tokens = words(text)
    terms = tuple(term for _, term, _ in tokens)
    content = {term: rarity[term] for term in terms if term not in STOP_TERMS}
    if not content:  # "He did." has nothing else to go by
        content = dict.fromkeys(terms, _CLOSING_WEIGHT)
    asked = _topic_of(question) | _topic_of(lead_in)
    return ClaimView(
        text=text,
        terms=terms,
        content=content,
        hints={term: rarity[term] for term in asked if term not in content},
        weight=sum(content.values()),
    )


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _topic_of(text: str) -> frozenset[int]:
    """What a question or lead-in is about: the claims of a response share it."""
    return terms_of(text) - STOP_TERMS


# -------------------------------------------------------------------------------------------------- sentences

_HINT_WEIGHT: Final = 0.2
_CITED_WEIGHT: Final = 0.25
_LENGTH_PENALTY: Final = 0.002  # a token; settles ties for the sentence that says little else
_LEAST: Final = 3  # sentences that are wanted where few share a word with the claim


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence and what of the claim stands in it: ``coverage`` is the share by rarity, 0..1."""

    number: int
    terms: frozenset[int]
    coverage: float
    rank: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Best first. ``present`` are the content terms of the claim that stand anywhere in the contexts."""

    sentences: tuple[Match, ...]
    present: frozenset[int]

    @property
    def shared(self) -> bool:
        """Whether any of the sentences holds a word of the claim."""
        return any(match.terms for match in self.sentences)


def find_candidates(
    layout: Layout, view: ClaimView, most: int, *, cited: frozenset[int] = frozenset()
) -> Candidates:
    """The best ``most`` sentences for a claim, by the rarity-weighted share of its words that they hold;
    those of ``cited`` contexts, by their numbers, ahead of others that hold as much.

    Where fewer than three hold any of its words, those that have most of the question's come after them, and
    where none does, those that come first, as a retriever ranks: an answer may use words of its own. Time
    grows with the number of occurrences of the claim's words in the contexts.
    """
    sentences = layout.sentences
    held: dict[int, list[int]] = {}
    present = set()
    for term in view.content:
        positions = layout.positions(term)
        if positions:
            present.add(term)
        for number in sentences.holding_any(positions):
            held.setdefault(number, []).append(term)
    hints: dict[int, float] = {}
    for term, weight in view.hints.items():
        for number in sentences.holding_any(layout.positions(term)):
            hints[number] = hints.get(number, 0.0) + weight
    total = view.weight or 1.0
    hint_total = sum(view.hints.values()) or 1.0
    ranked = []
    for number, terms in held.items():
        coverage = sum([view.content[term] for term in terms]) / total
        rank = coverage - _LENGTH_PENALTY * (sentences.last[number] - sentences.first[number])
        rank += _HINT_WEIGHT * hints.get(number, 0.0) / hint_total
        if sentences.context[number] in cited:
            rank += _CITED_WEIGHT
        ranked.append((-rank, number, coverage))
    ranked.sort()
    best = [Match(n, frozenset(held[n]), coverage, -rank) for rank, n, coverage in ranked[:most]]
    if len(best) < _LEAST:
        likely = sorted(hints.keys() - held.keys(), key=lambda number: (-hints[number], number))
        if not best:
            likely += [n for n in range(min(_LEAST, len(sentences))) if n not in hints]
        best += [Match(n, frozenset(), 0.0, -1.0) for n in likely[: min(_LEAST, most) - len(best)]]
    return Candidates(tuple(best), frozenset(present))


# ---------------------------------------------------------------------------------------------------- windows

SHORT_WORDS: Final = 100  # contexts that are read as they are
WINDOW_WORDS: Final = 60
TOGETHER_WORDS: Final = (80, 130)
"""Most words that are read together: first what mostly suffices, then all of what holds the claim."""
MOST_WINDOWS: Final = len(TOGETHER_WORDS) + 1
_TOGETHER: Final = 3  # most sentences that are read together for a claim of up to
_WORDS_A_SENTENCE: Final = 8  # times as many words; longer ones may have more
_LEAST_GAIN: Final = 0.03
"""Share of the claim's words that a further sentence must bring, once those before it have ``_ENOUGH``."""
_ENOUGH: Final = 0.7
_ANSWERS: Final = PRONOUNS | {
    term_of(word)
    for word in "no not none neither but however yet instead actually fact wrong false".split()  # noqa: SIM905
}
"""What a sentence begins with that leans on the one before it, or takes it back."""
_OPENING: Final = 3


@dataclass(frozen=True, slots=True)
class WindowText:
    """Sentences that are read together: their numbers, which ascend, and their text, white space folded.

    ``best`` is the sentence that it was chosen for.
    """

    text: str
    sentences: tuple[int, ...]
    best: int


def windows_of(
    view: ClaimView, evidence: EvidenceIndex, matches: Sequence[Match], without: frozenset[int] = frozenset()
) -> Iterator[WindowText]:
    """The windows of a claim, in the order in which they are worth reading, no text twice, and none with the
    sentences ``without``.

    ``matches`` are the sentences found for it, best first; at least one. Short contexts are one window. Of
    long ones the first holds the sentences that have most of the claim between them, with the sentences that
    they lean on, as far as there is room, and the second has more room; the last is the best sentence with
    its neighbours, ``WINDOW_WORDS`` words or one sentence.
    """
    layout = evidence.layout
    if len(layout.terms) <= SHORT_WORDS:
        everything = [number for number in range(len(layout.sentences)) if number not in without]
        yield WindowText(_joined(evidence, everything), tuple(everything), matches[0].number)
        return
    seen: set[tuple[int, ...]] = set()
    chosen = _together(view, matches)
    around = _around(evidence, matches[0].number), matches[0].number
    for numbers, best in (
        *((_with_neighbours_that_lean(evidence, chosen, most), chosen[0]) for most in TOGETHER_WORDS),
        around,
    ):
        key = tuple(number for number in numbers if number not in without)
        if key not in seen:
            seen.add(key)
            yield WindowText(_joined(evidence, key), key, best)


def _together(view: ClaimView, matches: Sequence[Match]) -> list[int]:
    """The sentences that hold most of the claim together, best first: each adds most to those before it."""
    most = max(_TOGETHER, len(view.terms) // _WORDS_A_SENTENCE)
    held: frozenset[int] = frozenset()
    left = list(matches)
    numbers: list[int] = []
    while left and len(numbers) < most:
        best = max(left, key=lambda match: (view.share(held | match.terms), match.rank))
        share = view.share(held)
        if numbers and share >= _ENOUGH and view.share(held | best.terms) < share + _LEAST_GAIN:
            break
        left.remove(best)
        numbers.append(best.number)
        held |= best.terms
    return numbers


def _with_neighbours_that_lean(evidence: EvidenceIndex, numbers: Sequence[int], most: int) -> list[int]:
    """The sentences, before those that open with a pronoun the one it may stand for, and behind each the one
    that leans on it; ascending, and no more than ``most`` words or one sentence."""
    layout = evidence.layout
    sentences = layout.sentences
    held: list[int] = []
    words = 0
    for number in numbers:  # the best come first, should the room end
        wanted = [number]
        if _leans(layout.terms, sentences.first[number]) and follows(sentences.context, number):
            wanted.append(number - 1)
        after = number + 1
        if (
            after < len(sentences)
            and follows(sentences.context, after)
            and _leans(layout.terms, sentences.first[after])
        ):
            wanted.append(after)
        for each in wanted:
            length = sentences.last[each] - sentences.first[each]
            if each not in held and (not held or words + length <= most):
                held.append(each)
                words += length
    return sorted(held)


def _leans(terms: Sequence[int], first: int) -> bool:
    return not _ANSWERS.isdisjoint(terms[first : first + _OPENING])


def follows(contexts: Sequence[int], number: int) -> bool:
    return number > 0 and contexts[number - 1] == contexts[number]


def window_around(evidence: EvidenceIndex, number: int) -> WindowText:
    """The window of a sentence with its neighbours."""
    numbers = _around(evidence, number)
    return WindowText(_joined(evidence, numbers), tuple(numbers), number)


def _around(evidence: EvidenceIndex, number: int) -> list[int]:
    """The sentence with its neighbours in the same context, as many as make up a window."""
    sentences = evidence.layout.sentences
    first = last = number
    held = sentences.last[number] - sentences.first[number]
    growing = True
    while growing:
        growing = False
        for at in (first - 1, last + 1):
            if 0 <= at < len(sentences) and sentences.context[at] == sentences.context[number]:
                length = sentences.last[at] - sentences.first[at]
                if held + length <= WINDOW_WORDS:
                    first, last = min(first, at), max(last, at)
                    held += length
                    growing = True
    return list(range(first, last + 1))


def spans_of(evidence: EvidenceIndex, numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """``(context, start, end)`` of what is read of sentences, whose numbers ascend; of a conversation with
    the name of who speaks."""
    sentences = evidence.layout.sentences
    spans: list[tuple[int, int, int]] = []
    for number in numbers:
        context, start, end = sentences.context[number], sentences.start[number], sentences.end[number]
        speaker = speaker_of(sentences, evidence.turns, number)
        if speaker and (not spans or (context, speaker[0]) > (spans[-1][0], spans[-1][2])):
            spans.append((context, *speaker))
        if spans and spans[-1][0] == context and start < spans[-1][2]:  # pieces of one long sentence
            spans[-1] = context, spans[-1][1], max(end, spans[-1][2])
        else:
            spans.append((context, start, end))
    return spans


def _joined(evidence: EvidenceIndex, numbers: Sequence[int]) -> str:
    return " ".join(
        " ".join(evidence.shown(context)[start:end].split())
        for context, start, end in spans_of(evidence, numbers)
    )


# ---------------------------------------------------------------------------------------------------- silence

IDLE: Final = STOP_TERMS | {term_of(word) for word in phrases("idle_topics")}
_MENTIONED: Final = 0.55  # of a topic, by rarity, in one sentence


def mentioned(silence: Silence, evidence: EvidenceIndex, rarity: Rarity) -> int | None:
    """A sentence that speaks of one of the topics that the documents are said to be silent on; None where
    none does."""
    layout = evidence.layout
    for topic in silence.topics:
        terms = {term for _, term, _ in words(topic)} - IDLE
        total = sum(rarity[term] for term in terms)
        held: dict[int, float] = {}
        for term in terms:
            for number in layout.sentences.holding_any(layout.positions(term)):
                held[number] = held.get(number, 0.0) + rarity[term]
        best = max(held, key=lambda number: held[number], default=None)
        if best is not None and held[best] >= _MENTIONED * total:
            return best
    return None
