"""What of the contexts is looked at for a claim: sentences that hold most of it, and windows around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from guardrail.claims.detector import fold
from guardrail.claims.model import read_prose
from guardrail.claims.phrases import pattern
from guardrail.claims.phrases import words as phrases
from guardrail.claims.sentences import CLOSERS, TERMINATORS
from guardrail.claims.silence import Silence
from guardrail.evidence.index import EvidenceIndex, Layout, as_copied
from guardrail.evidence.sentences import speaker_of
from guardrail.evidence.tokens import CITATION, STOP_TERMS, term_of, term_of_stem, terms_of, words
from guardrail.figures import FigureCheck

UNLISTED: Final = 1.0


class Rarity:
    """Weights in 0..1 of common words; every word that is not listed has weight 1.

    The list is ``log(sentences / sentences with the word)`` over the training texts, divided by the value
    at the end of the list.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        """``weights`` by stem."""
        self._weights = {term_of_stem(word): weight for word, weight in weights.items()}

    def of(self, term: int) -> float:
        """The weight of a term."""
        return self._weights.get(term, UNLISTED)


@lru_cache(maxsize=1)
def load_rarity() -> Rarity:
    """The rarity that ships with the package."""
    return Rarity(json.loads(Path(__file__).with_name("rarity.json").read_text(encoding="utf-8")))


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
    content = {term: rarity.of(term) for term in terms if term not in STOP_TERMS}
    if not content:  # "He did." has nothing else to go by
        content = dict.fromkeys(terms, _CLOSING_WEIGHT)
    asked = _topic_of(question) | _topic_of(lead_in)
    return ClaimView(
        text=text,
        terms=terms,
        content=content,
        hints={term: rarity.of(term) for term in asked if term not in content},
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
    for numbers, best in (
        *((_with_neighbours_that_lean(evidence, chosen, most), chosen[0]) for most in TOGETHER_WORDS),
        *_around_each(evidence, matches),
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

_IDLE: Final = STOP_TERMS | {term_of(word) for word in phrases("idle_topics")}
_MENTIONED: Final = 0.55  # of a topic, by rarity, in one sentence


def mentioned(silence: Silence, evidence: EvidenceIndex, rarity: Rarity) -> int | None:
    """A sentence that speaks of one of the topics that the documents are said to be silent on; None where
    none does."""
    layout = evidence.layout
    for topic in silence.topics:
        terms = {term for _, term, _ in words(topic)} - _IDLE
        total = sum(rarity.of(term) for term in terms)
        held: dict[int, float] = {}
        for term in terms:
            for number in layout.sentences.holding_any(layout.positions(term)):
                held[number] = held.get(number, 0.0) + rarity.of(term)
        best = max(held, key=lambda number: held[number], default=None)
        if best is not None and held[best] >= _MENTIONED * total:
            return best
    return None


# -------------------------------------------------------------------------------------------- word for word

_MOST_JOINED: Final = 4  # sentences, or pieces of a long one, that a claim may be
_LEAST_OF_A_PART: Final = 0.2  # of the claim, that one of them holds
_FEWEST_WORDS: Final = 3
_FEWEST_CHARS: Final = 6  # in scripts without spaces
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
DENIALS: Final = re.compile(rf"\b(?:{'|'.join(sorted(phrases('denials') | phrases('foreign_denials')))})\b")
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


def word_for_word(
    view: ClaimView,
    lead_in: str,
    found: Candidates,
    figures: Sequence[FigureCheck],
    evidence: EvidenceIndex,
    rarity: Rarity,
) -> tuple[int, int, int] | None:
    """``(context, start, end)`` of the sentence of the contexts that the claim is, letter for letter but for
    what copying changes; None where there is none, or it needn't say the same there.

    The sentence counts whole: a part of one may lack a "not" or an "if". It doesn't count where a pronoun or
    a missing subject leaves open what it is about, where what stands around it takes it back, dates it,
    labels it or reports it, or where another sentence gives it another value.
    """
    claim = _as_said(view.text)
    if not _says_of_what(view.text) or _told_otherwise(view, found, figures, evidence):
        return None
    layout = evidence.layout
    for match in found.sentences:
        if match.coverage < _LEAST_OF_A_PART:
            continue
        for first, last in _runs(layout, match.number):
            context, start, end = (
                layout.sentences.context[first],
                layout.sentences.start[first],
                layout.sentences.end[last],
            )
            if not len(claim) <= end - start <= len(view.text) + _MARKUP_CHARS:
                continue
            said = read_prose(evidence.shown(context)[start:end]).text
            if _as_said(said) == claim and _counts(evidence, first, last, lead_in, rarity):
                return context, start, end
    return None


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


def _told_otherwise(
    view: ClaimView, found: Candidates, figures: Sequence[FigureCheck], evidence: EvidenceIndex
) -> bool:
    """Whether a sentence says the claim with other values, those aside that name what it is about ("Item 31
    costs $5"): of the same thing, or of one that neither names.
    """
    said = words(view.text)
    named = [(check.figure.start, check.figure.end) for check in figures if check.figure.name]
    values = [at for at, _, surface in said if surface[0].isdigit()]
    for (_, term, surface), (at, _, _) in pairwise(said):
        if at in values[:-1] and surface[0].isupper() and term not in STOP_TERMS:
            named.append((at, at + 1))
    layout = evidence.layout
    for match in found.sentences:
        start, end = layout.sentences.start[match.number], layout.sentences.end[match.number]
        other = words(evidence.shown(layout.sentences.context[match.number])[start:end])
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


def _runs(layout: Layout, number: int) -> Iterator[tuple[int, int]]:
    """The sentence, alone and with its neighbours; none that begins or ends within a sentence."""
    contexts, starts, ends = layout.sentences.context, layout.sentences.start, layout.sentences.end
    for first in range(number, max(-1, number - _MOST_JOINED), -1):
        for last in range(number, min(len(contexts), first + _MOST_JOINED)):
            if not contexts[first] == contexts[number] == contexts[last]:
                break
            before, behind = first - 1, last + 1  # pieces of a long sentence overlap
            if _follows(contexts, first) and ends[before] > starts[first]:
                break
            if behind < len(contexts) and _follows(contexts, behind) and starts[behind] < ends[last]:
                continue
            yield first, last


def _counts(evidence: EvidenceIndex, first: int, last: int, lead_in: str, rarity: Rarity) -> bool:
    """Whether sentences of a context say there what they say by themselves, and below ``lead_in`` in the
    answer.
    """
    sentences = evidence.layout.sentences
    text = evidence.shown(sentences.context[first])
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
        return False  # a title, or a line that is no sentence
    if (
        "|" in before
        or "|" in behind
        or _CROSSED.search(before + behind)
        or (line_at + _BESIDE_CHARS >= start and _LABEL.match(before))
        or _inside_quotes(before)
    ):
        return False
    if speaker_of(sentences, evidence.turns, first) is not None:
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
    if any(_OUT_OF_FORCE.search(each) or DENIALS.search(each) for each in heads):
        return False
    given = _terms(f"{lead_in} {text[start:end]}")
    if any(not _terms(each) <= given for each in leads):
        return False
    return _of_the_same(evidence, lead_in, " ".join((text[start:end], previous, *heads)), rarity)


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
    return terms_of(text) - _IDLE


def _of_the_same(evidence: EvidenceIndex, lead_in: str, around: str, rarity: Rarity) -> bool:
    """Whether what leads in to a claim speaks of what its sentence speaks of in the document, where it stands
    ``around``; words such as "details" and "prices" speak of nothing.
    """
    folded = fold(lead_in)
    if _TAKEN_BACK.search(folded) or DENIALS.search(folded):
        return False
    return not any(
        evidence.layout.contains(term) or rarity.of(term) >= _TELLING
        for term in _terms(lead_in) - _terms(around) - _FRAMES
    )
