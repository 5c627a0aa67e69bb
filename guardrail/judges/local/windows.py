"""What of the contexts is read for a claim: the sentences that hold most of it, then windows around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import term_of
from guardrail.evidence.turns import speaker_of
from guardrail.judges.local.candidates import Match
from guardrail.judges.local.claim_view import PRONOUNS, ClaimView

SHORT_WORDS: Final = 100  # contexts that are read as they are
WINDOW_WORDS: Final = 60
MOST_AROUND: Final = 1
TOGETHER_WORDS: Final = (80, 130)
"""Most words that are read together: first what mostly suffices, then all of what holds the claim."""
MOST_WINDOWS: Final = len(TOGETHER_WORDS) + MOST_AROUND
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
class Window:
    """Sentences that are read together: their numbers, which ascend, and their text, white space folded.

    ``best`` is the sentence that it was chosen for.
    """

    text: str
    sentences: tuple[int, ...]
    best: int


def windows_of(view: ClaimView, evidence: EvidenceIndex, matches: Sequence[Match]) -> Iterator[Window]:
    """The windows of a claim, in the order in which they are worth reading, no text twice.

    ``matches`` are the sentences found for it, best first; at least one. Short contexts are one window. Of
    long ones the first holds the sentences that have most of the claim between them, with the sentences that
    they lean on, as far as there is room, and the second has more room; the last is the best sentence with
    its neighbours, ``WINDOW_WORDS`` words or one sentence.
    """
    layout = evidence.layout
    if len(layout.terms) <= SHORT_WORDS:
        everything = range(len(layout.sentences))
        yield Window(_joined(evidence, everything), tuple(everything), matches[0].number)
        return
    seen: set[tuple[int, ...]] = set()
    chosen = _together(view, matches)
    for numbers, best in (
        *((_with_neighbours_that_lean(evidence, chosen, most), chosen[0]) for most in TOGETHER_WORDS),
        *_around_each(evidence, matches),
    ):
        key = tuple(numbers)
        if key not in seen:
            seen.add(key)
            yield Window(_joined(evidence, numbers), key, best)


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
        if _leans(layout.terms, sentences.first[number]) and _follows(sentences.context, number):
            wanted.append(number - 1)
        after = number + 1
        if (
            after < len(sentences)
            and _follows(sentences.context, after)
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


def _follows(contexts: Sequence[int], number: int) -> bool:
    return number > 0 and contexts[number - 1] == contexts[number]


def _around_each(evidence: EvidenceIndex, matches: Sequence[Match]) -> Iterator[tuple[list[int], int]]:
    """Windows around sentences, the best first; none around a sentence that a window before it holds."""
    covered: set[int] = set()
    count = 0
    for match in matches:
        if match.number in covered:
            continue
        numbers = _around(evidence, match.number)
        covered.update(numbers)
        yield numbers, match.number
        count += 1
        if count == MOST_AROUND:
            return


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
