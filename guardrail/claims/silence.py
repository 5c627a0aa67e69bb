"""What a text says about the documents' silence: "the documents don't mention a trial, but ...".

If it names the topics, that can be checked: it is then a claim, not an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from guardrail.claims.phrases import pattern, patterns, words
from guardrail.events import Span

_SILENT: Final = patterns("silence")
_IDLE: Final = words("idle_topics")
_FINITE: Final = pattern("finite")
_DENIES: Final = pattern("silence_denies")
_SPOKEN_OF_NOWHERE: Final = pattern("silence_words")
_NO_TOPIC: Final = words("silence_idle") | _IDLE
_ASKED: Final = re.compile(r"\byou(?:'re| are|r question is)? ?(?:ask(?:ed|ing)?)? about ([^,;.]{2,200})")
_DEPENDS: Final = re.compile(r"\b(?:that|whether|if) ")
_CLAUSE: Final = re.compile(r"[;:–—]\s|,\s|\bbut\b")
_LINKING: Final = pattern("silence_linking")
_STATING: Final = re.compile(r"\d|\b(?:but|however|though|although|while|yet|so|which|who)\b")
"""What no topic has: a figure, or a statement of its own; save a clause that depends ("that it costs $5")."""
_ITEMS: Final = re.compile(r",|\b(?:or|and|nor)\b")
_SAVE: Final = pattern("silence_save")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_ANY_WORD: Final = re.compile(r"[^\W_]+")
_DIGIT: Final = re.compile(r"\d")
_MOST_CHARS: Final = 1_000
_MOST_CLAUSES: Final = 8


@dataclass(frozen=True, slots=True)
class Silence:
    """``span`` is the clause that says so, ``topics`` are what the documents are said not to mention;
    ``rest`` is the span of anything else that is stated, or None.
    """

    span: Span
    topics: tuple[str, ...]
    rest: Span | None


def silence_of(plain: str) -> Silence | None:
    """What ``plain``, a sentence in lower case, says about the documents' silence; None if it says nothing
    about it, names no topic, or says too much to tell.
    """
    if len(plain) > _MOST_CHARS or not _DENIES.search(plain):
        return None
    borders = [(0, 0), *(match.span() for match in _CLAUSE.finditer(plain)), (len(plain), len(plain))]
    if len(borders) > _MOST_CLAUSES:
        return None
    clauses = [(before[1], behind[0]) for before, behind in pairwise(borders)]
    for start, end in _stretches(plain, clauses):
        clause = plain[start:end].rstrip(" .!")
        match = next((m for m in (silent.fullmatch(clause) for silent in _SILENT) if m), None)
        if match is None or _SAVE.search(clause) or _states(match["topic"]):
            continue
        topics = tuple(item.strip() for item in _ITEMS.split(match["topic"]) if _names_something(item))
        if topics:
            return Silence((start, end), topics, _rest(plain, start, end))
    return _by_words(plain, clauses) if not _SAVE.search(plain) else None


def _states(topic: str) -> bool:
    if _DEPENDS.match(topic) and "," not in topic:
        topic = _DIGIT.sub("", topic)
    return _STATING.search(topic) is not None


def _by_words(plain: str, clauses: Sequence[Span]) -> Silence | None:
    """The silence that the words of one clause express, with neighbouring clauses that state nothing: "no
    elevator, no parking and no dogs".
    """
    for at, (start, end) in enumerate(clauses):
        if not _SPOKEN_OF_NOWHERE.search(plain[start:end].strip(" .!\"'*_")):
            continue
        first = last = at
        while first > 0 and _names_only(plain[slice(*clauses[first - 1])]):
            first -= 1
        while last + 1 < len(clauses) and _names_only(plain[slice(*clauses[last + 1])]):
            last += 1
        whole = clauses[first][0], clauses[last][1]
        asked = _ASKED.search(plain)
        said = asked[1] if asked and not _topics(plain[start:end]) else plain[slice(*whole)]
        topics = _topics(said)
        if topics and (_DEPENDS.search(said) or not _DIGIT.search(said)):
            return Silence(whole, topics, None if asked else _rest(plain, *whole))
    return None


def _names_only(clause: str) -> bool:
    return not _FINITE.search(clause) and not _DIGIT.search(clause)


def _topics(said: str) -> tuple[str, ...]:
    """What is left of each item without the words for silence."""
    items = (
        " ".join(w for w in _ANY_WORD.findall(item) if w not in _NO_TOPIC) for item in _ITEMS.split(said)
    )
    return tuple(item for item in items if _WORD.search(item))


def _names_something(item: str) -> bool:
    return any(word not in _IDLE for word in _WORD.findall(item))


def _rest(plain: str, start: int, end: int) -> Span | None:
    first, last = max((0, start), (end, len(plain)), key=lambda span: span[1] - span[0])
    linking = _LINKING.match(plain, first, last)
    first = linking.end() if linking else first
    stated = plain[first:last]
    return (first, last) if _FINITE.search(stated) or _DIGIT.search(stated) else None


def _stretches(plain: str, clauses: Sequence[Span]) -> Iterator[Span]:
    """Clauses that follow each other, the longest stretch first, without linking words."""
    for width in range(len(clauses), 0, -1):
        for (start, _), (_, end) in zip(clauses, clauses[width - 1 :], strict=False):
            linking = _LINKING.match(plain, start, end)
            yield linking.end() if linking else start, end
