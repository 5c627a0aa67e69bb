"""What of the contexts the verifier reads for a claim: few tokens, those that decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import term_of
from guardrail.evidence.turns import in_turns, speaker_of
from guardrail.judges.local.candidates import Candidates, Match
from guardrail.judges.local.claim_view import PRONOUNS, ClaimView
from guardrail.judges.local.fitted import ReadingKind
from guardrail.judges.local.polarity import NEGATORS
from guardrail.judges.local.rebuttal import reported
from guardrail.judges.local.source import Source

if TYPE_CHECKING:
    from tokenizers import Encoding

SHORT_WORDS: Final = 70  # contexts that are read as they are
PASSAGE_WORDS: Final = 150
MOST_CHARS_A_TOKEN: Final = 40
"""In the mean over a text; one of more is no prose."""
_MOST_WORDS_A_TOKEN: Final = 4  # of scripts without spaces each two characters count as a word
_MOST_WORDS: Final = 4_096
_TOGETHER: Final = 3  # most sentences that are read together for a claim of up to
_WORDS_A_SENTENCE: Final = 8  # times as many words; longer ones may have more
_LEAST_GAIN: Final = 0.03
"""Share of the claim's words that a further sentence must bring: one that brings less costs time, and
distracts. Until the sentences have ``_ENOUGH`` of the words any further one counts: a claim in other words
has few of its source's."""
_ENOUGH: Final = 0.7

_OPENING: Final = 6  # terms within which a sentence says that it is about the one before
_LEANING: Final = PRONOUNS | {
    term_of(word)
    for word in """no not none neither nothing never but however yet instead actually fact there we i you
    wrong false correction""".split()  # noqa: SIM905
}
_TAKING_BACK: Final = NEGATORS | {
    term_of(word)
    for word in """wrong false untrue incorrect mistaken mistake error myth hoax doubt disagree correct
    correction withdrawn withdrew instead longer abolished retracted invented nonsense until""".split()  # noqa: SIM905
}

Encode = Callable[[str], "Encoding"]


@dataclass(frozen=True, slots=True)
class Premise:
    """One thing to read. ``sentences`` are the numbers of the sentences it was chosen for, best first."""

    kind: ReadingKind
    text: str
    tokens: Encoding
    sentences: tuple[int, ...]


def readings_of(
    view: ClaimView,
    evidence: EvidenceIndex,
    found: Candidates,
    kinds: Sequence[ReadingKind],
    encode: Encode,
    *,
    room: int,
    overhead: int,
    tokens: int,
) -> list[Premise]:
    """What is read for a claim, in the order of ``kinds``, no text twice.

    ``room`` is what a premise may have beside the claim, in tokens; ``overhead`` what each costs beside its
    own; ``tokens`` what all of them may cost together. One is read even where it alone costs more, as long
    as it has room. Nothing is ever cut within a sentence: empty where not even the best one has room.
    """
    chosen: list[Premise] = []
    for kind in kinds:
        spare: Premise | None = None
        for text, sentences in _choices(kind, view, evidence, found, _MOST_WORDS_A_TOKEN * room):
            if any(premise.text == text for premise in chosen):
                break
            if len(text) > MOST_CHARS_A_TOKEN * room or text.count(" ") >= room:
                continue  # tokenising it would take longer than reading it is worth
            encoded = encode(text)
            length = len(encoded.ids)
            if length > room:
                continue
            spare = Premise(kind, text, encoded, sentences)
            if length + overhead <= tokens:
                chosen.append(spare)
                tokens -= length + overhead
                break
        else:
            if not chosen and spare is not None:
                chosen.append(spare)
                tokens = 0
    return chosen


def _choices(
    kind: ReadingKind, view: ClaimView, evidence: EvidenceIndex, found: Candidates, most_words: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """``(text, sentences)``, the fullest first, the shortest last."""
    source = Source(evidence)
    best = found.sentences[0].number
    if kind is ReadingKind.SENTENCES:
        chosen = worth_reading(view, together(view, found.sentences))
        yield from sentence_choices(evidence, chosen, most_words)
    elif kind is ReadingKind.PASSAGE:
        for words in (PASSAGE_WORDS, PASSAGE_WORDS // 2):
            numbers = _around(source, best, words)
            yield _joined(source, evidence, numbers), (best,)
    yield _joined(source, evidence, _with_answers(source, [best])), (best,)
    yield sentence_alone(evidence, best), (best,)


def sentence_choices(
    evidence: EvidenceIndex, chosen: Sequence[int], most_words: int = _MOST_WORDS
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """``(text, sentences)`` of sentences that are read together, the fullest first, without the best alone.

    Short contexts as they are; of conversations the turns that answer each other, and before a sentence that
    begins with "it" or "they" the one that says who that is, and after each the one that may take it back
    ("They don't."), if there is room. Turns of more than
    ``most_words`` words are left out: joining them would take longer than their reading is worth.
    """
    source = Source(evidence)
    sentences = source.layout.sentences
    if len(source.layout.terms) <= SHORT_WORDS:
        yield _plain(" ".join(context.text for context in evidence.contexts)), tuple(chosen)
    tried = [sorted(chosen)]  # comes by itself below
    for fuller in (
        in_turns(sentences, evidence.turns, chosen, 1, most_words),
        in_turns(sentences, evidence.turns, chosen, 0, most_words),
        _with_answers(source, _with_antecedents(source, chosen)),
        _with_answers(source, chosen),
        _with_antecedents(source, chosen),
    ):
        if fuller not in tried:
            tried.append(fuller)
            yield _joined(source, evidence, fuller), tuple(chosen)
    for count in range(len(chosen), 1, -1):
        yield _joined(source, evidence, sorted(chosen[:count])), tuple(chosen[:count])


def sentence_alone(evidence: EvidenceIndex, number: int) -> str:
    """A sentence, after the name of who says it."""
    return _joined(Source(evidence), evidence, [number])


def _with_antecedents(source: Source, numbers: Iterable[int]) -> list[int]:
    """The sentences, and before those that begin with a pronoun the ones that they follow; ascending."""
    layout = source.layout
    sentences = layout.sentences
    held = set(numbers)
    for number in tuple(held):
        leans = layout.terms[sentences.first[number]] in PRONOUNS
        if leans and number and sentences.context[number - 1] == sentences.context[number]:
            held.add(number - 1)
    return sorted(held)


def _with_answers(source: Source, numbers: Iterable[int]) -> list[int]:
    """The sentences, and after each that reports something the next one where that may take it back;
    ascending."""
    layout = source.layout
    sentences = layout.sentences
    held = set(numbers)
    for number in tuple(held):
        after = number + 1
        if after < len(sentences) and sentences.context[after] == sentences.context[number]:
            terms = layout.terms[sentences.first[after] : sentences.last[after]]
            answers = not _LEANING.isdisjoint(terms[:_OPENING]) and not _TAKING_BACK.isdisjoint(terms)
            if answers and reported(source.sentence(number)):
                held.add(after)
    return sorted(held)


def together(view: ClaimView, matches: Sequence[Match]) -> list[Match]:
    """The sentences that hold most of the claim together, best first: each one adds most to those before
    it. Three, or more for a long claim."""
    count = max(_TOGETHER, len(view.terms) // _WORDS_A_SENTENCE)
    held: frozenset[int] = frozenset()
    left = list(matches)
    chosen: list[Match] = []
    while left and len(chosen) < count:
        best = max(left, key=lambda match: (view.share(held | match.terms), match.rank))
        left.remove(best)
        chosen.append(best)
        held |= best.terms
    return chosen


def worth_reading(view: ClaimView, chosen: Sequence[Match]) -> list[int]:
    """The numbers of sentences chosen ``together``, up to the first that brings next to nothing new."""
    held: frozenset[int] = frozenset()
    numbers: list[int] = []
    for match in chosen:
        share = view.share(held)
        if numbers and share >= _ENOUGH and view.share(held | match.terms) < share + _LEAST_GAIN:
            break
        numbers.append(match.number)
        held |= match.terms
    return numbers


def _around(source: Source, number: int, words: int) -> list[int]:
    """The sentence with its neighbours in the same context, as many as make up ``words`` words."""
    sentences = source.layout.sentences
    first = last = number
    held = sentences.last[number] - sentences.first[number]
    context = sentences.context[number]
    growing = True
    while growing:
        growing = False
        for at in (first - 1, last + 1):
            if 0 <= at < len(sentences) and sentences.context[at] == context:
                length = sentences.last[at] - sentences.first[at]
                if held + length <= words:
                    first, last = min(first, at), max(last, at)
                    held += length
                    growing = True
    return list(range(first, last + 1))


def _joined(source: Source, evidence: EvidenceIndex, numbers: Sequence[int]) -> str:
    """The text of sentences, whose numbers ascend; pieces of one sentence that overlap are one piece."""
    sentences = source.layout.sentences
    spans: list[tuple[int, int, int]] = []
    for number in numbers:
        speaker = speaker_of(sentences, evidence.turns, number)
        if speaker and (not spans or (sentences.context[number], speaker[0]) > (spans[-1][0], spans[-1][2])):
            spans.append((sentences.context[number], *speaker))
        context, start, end = sentences.context[number], sentences.start[number], sentences.end[number]
        if spans and spans[-1][0] == context and start < spans[-1][2]:
            spans[-1] = context, spans[-1][1], max(end, spans[-1][2])
        else:
            spans.append((context, start, end))
    return " ".join(_plain(evidence.contexts[context].text[start:end]) for context, start, end in spans)


def _plain(text: str) -> str:
    return " ".join(text.split())
