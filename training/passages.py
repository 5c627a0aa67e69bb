"""What pairs are made from: sentences with the passage they stand in, from freely licensed texts."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from training.perturb import names_of
from training.perturb_meaning import clauses_of
from training.rows import LICENCES, Row, is_held_out

_SPOKEN: Final = frozenset(("summedits-qmsumm",))
"""Transcripts of meetings: hardly a sentence of theirs can stand as a claim."""
_OTHER_WORDS: Final = frozenset(("wikisplit", "fever", "fool-me-twice", "fever-symmetric"))
"""Data sets whose supported claims say in other words what their source says."""
_NO_TEXTS: Final = frozenset(
    (
        "attribution-bench",
        "breaking-nli",
        "check-covid",
        "counterfactual-nli",
        "evidence-inference",
        "help",
        "med",
        "multinli",
        "paws",
        "taxinli",
        "vitaminc-real",
        "vitaminc-synthetic",
    )
)
"""Data sets whose premises are captions, speech or pages of the web, or the same sentence many times
over."""
_SPLIT: Final = frozenset(("wikisplit",))
"""Data sets that say a sentence in several shorter ones."""
_LEAST_WORDS: Final = 60
_PASSAGE_WORDS: Final = (40, 180)
_NOISE: Final = re.compile(
    r"[|#{}<>@=_\\*^~•©»→]|https?:|www\.|\.\.\.|…|(?i:\b(?:click|subscribe|cookies?|copyright|read more"
    r"|sign up|log ?in|"
    r"retrieved|advertisement|newsletter|javascript|wayback|isbn|doi)\b)|\?|!| [a-z] [a-z] |\.[A-Z]"
    r"|[a-z][A-Z]{2}"
)
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|can|could|would|may|must|should|did|does|do|became|won|made|took"
    r"|led|said|wrote|began|left|went|held|[a-z]{2,}ed|[a-z]{3,}s)\b"
)
_TOKENISED: Final = (
    (re.compile(r" ([,.;:!?%)\]])"), r"\1"), (re.compile(r"([(\[$€£]) "), r"\1"),
    (re.compile(r" (['’](?:s|re|ve|ll|d|m|t)|n['’]t)\b"), r"\1"), (re.compile(r"(?<=s) ['’](?= [a-z])"), "'"),
    (re.compile(r"(?<=\w) ([-–/]) (?=\w)"), r"\1"), (re.compile(r"\" ([^\"]+?) \""), r'"\1"'),
    (re.compile(r"-LRB-\s*"), "("), (re.compile(r"\s*-RRB-"), ")"), (re.compile(r" ''|`` ?"), '"'),
    (re.compile(r"(?<=\d), (?=\d{3}\b(?![, ]* \d{4}))"), ","), (re.compile(r"\[\d+ ?\]"), ""),
    (re.compile(r"\(\s*[,;]?\s*\)"), ""), (re.compile(r"  +"), " "),
)  # fmt: skip


def detokenised(text: str) -> str:
    """Text as written, from text with blanks between its tokens."""
    if not re.search(r" [,.;:)]| '[a-z]|\w - \w|-LRB-|``|\[\d", text):
        return text
    for pattern, to in _TOKENISED:
        text = pattern.sub(to, text)
    return text


def claimable(sentence: str) -> bool:
    """Whether a sentence of any text, also of a web page, is a whole statement."""
    words = sentence.split()
    if not (5 <= len(words) <= 38 and sentence[0].isupper() and sentence.endswith(".")):
        return False
    if _NOISE.search(sentence) or sentence.count('"') % 2 or sentence.count("(") != sentence.count(")"):
        return False
    if sum(w[0].islower() for w in words) < 0.4 * len(words) or sentence.count(",") > 5:
        return False
    return bool(_VERB.search(sentence)) and not re.match(
        r"(?:And|But|Or|So|Which|Because|Figure|Table)\b", sentence
    )


@dataclass(frozen=True, slots=True)
class Document:
    """The sentences of one text, and what can be borrowed from it."""

    dataset: str
    held_out: bool
    sentences: tuple[str, ...]
    names: tuple[str, ...]
    clauses: tuple[str, ...]

    @property
    def licence(self) -> str:
        """Of the data set that the text is from."""
        return LICENCES[self.dataset]


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence of a document, or a claim that says in other words what the sentence says."""

    document: Document
    at: int
    claim: str = ""
    siblings: tuple[str, ...] = field(default=())
    parts: tuple[str, ...] = ()
    """Sentences that together say what the sentence says, in other words."""

    @property
    def sentence(self) -> str:
        """The sentence as it stands in its document."""
        return self.document.sentences[self.at]


def documents_of(text: str, dataset: str) -> Document:
    """A text cut in sentences."""
    clean = " ".join(text.split())
    sentences = tuple(
        detokenised(clean[a:b]) for a, b in zip(*sentence_spans(clean), strict=True) if b - a > 3
    )
    names = tuple(names_of(" ".join(sentences)))
    return Document(dataset, is_held_out(text), sentences, names, tuple(clauses_of(sentences)))


def sources(rows: Iterable[Row]) -> list[Source]:
    """Everything that pairs can be made from, in the order of the rows."""
    texts: dict[str, str] = {}
    reworded: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.dataset not in LICENCES or row.dataset in _SPOKEN:
            continue
        for text in row.contexts:
            texts.setdefault(text, row.dataset)
        if row.dataset in _OTHER_WORDS and row.supported and len(row.contexts) == 1:
            reworded[row.contexts[0]].append(row.claim)
    found: list[Source] = []
    for text, dataset in texts.items():
        if dataset in _NO_TEXTS or text.count(" ") < 5:
            continue
        document = documents_of(text, dataset)
        good = [i for i, s in enumerate(document.sentences) if claimable(s)]
        found.extend(Source(document, i) for i in good)
        if len(document.sentences) == 1 and good:
            claims = dict.fromkeys(detokenised(claim) for claim in reworded.get(text, ()))
            found.extend(
                Source(document, 0, claim) for claim in claims if claimable(claim) or claimable(claim + ".")
            )
            if dataset in _SPLIT and len(claims) > 1 and _says(" ".join(claims), document.sentences[0]):
                found.append(Source(document, 0, parts=tuple(claims)))
    return _with_siblings(found)


def _with_siblings(found: list[Source]) -> list[Source]:
    """Sources of a single sentence get neighbours: other sentences about what theirs is about."""
    count: Counter[str] = Counter()
    for source in found:
        count.update(topics(source.sentence))
    by_topic: dict[tuple[bool, str], list[str]] = defaultdict(list)
    alone = [s for s in found if len(s.document.sentences) == 1]
    for source in alone:
        for topic in topics(source.sentence):
            if 1 < count[topic] <= 60:
                by_topic[source.document.held_out, topic].append(source.sentence)
    result = []
    for source in found:
        if len(source.document.sentences) > 1:
            result.append(source)
            continue
        siblings: dict[str, None] = {}
        for topic in sorted(topics(source.sentence), key=lambda t: (count[t], t)):
            for sentence in by_topic.get((source.document.held_out, topic), ())[:8]:
                if sentence != source.sentence and not covers(sentence, source.sentence):
                    siblings[sentence] = None
            if len(siblings) > 10:
                break
        result.append(replace(source, siblings=tuple(siblings)))
    return result


def topics(sentence: str) -> set[str]:
    """Names and long words: what a text is about."""
    return {w for w in re.findall(r"[A-Za-z]{4,}", sentence) if w[0].isupper() or len(w) > 7}


def covers(passage: str, claim: str) -> bool:
    """Whether most words that carry meaning of a claim stand in a passage: it may say the same."""
    words = set(re.findall(r"[a-z\d]{4,}", claim.lower()))
    said = set(re.findall(r"[a-z\d]{4,}", passage.lower()))
    return len(words & said) >= 0.6 * len(words)


def _says(text: str, sentence: str) -> bool:
    """Whether a text has nearly all words and all numbers of a sentence."""
    words, said = (re.findall(r"[a-z]{4,}|\d+", t.lower()) for t in (sentence, text))
    missing = set(words) - set(said)
    return len(missing) <= 0.12 * len(set(words)) and not any(word.isdigit() for word in missing)


def neighbours(source: Source, pool: Sequence[str], random_: random.Random) -> tuple[list[str], list[str]]:
    """What stands before and behind the sentence in the passage that a pair shows: mostly 40 to 180 words,
    sometimes two or three sentences, sometimes nothing."""
    way = random_.random()
    if way < 0.13:
        return [], []
    sentences = source.document.sentences
    if len(sentences) == 1:
        others = list(source.siblings[:8])
        random_.shuffle(others)
        others = others[: random_.randint(0, 4)] + random_.sample(pool, min(6, len(pool)))
        at = random_.randint(0, len(others))
        sentences, at = (*others[:at], source.sentence, *others[at:]), at
    else:
        at = source.at
    if way < 0.28:
        before = random_.randint(0, 2)
        return list(sentences[max(0, at - before) : at]), list(sentences[at + 1 : at + 3 - before])
    least, most = _PASSAGE_WORDS
    wanted = random_.randint(least, most)
    begin, end, words = at, at + 1, len(sentences[at].split())
    while words < wanted and (begin > 0 or end < len(sentences)):
        if begin > 0 and (end == len(sentences) or random_.random() < 0.5):
            if words + len(sentences[begin - 1].split()) > most:
                break
            begin -= 1
            words += len(sentences[begin].split())
        else:
            if words + len(sentences[end].split()) > most:
                break
            words += len(sentences[end].split())
            end += 1
    return list(sentences[begin:at]), list(sentences[at + 1 : end])
