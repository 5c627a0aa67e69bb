"""The words that severity is told by: ``severity.yaml`` of this package, read once.

A word or phrase bears *marks*: the name of a reason, when it is enough for it; that after a "~", when it only
touches the topic; or what else it contributes to a claim ("modals", "medical", "chatter" ...).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import yaml

from guardrail.events import Severity

#: Lists of words whose mark is the list's name.
_CONTRIBUTING: Final = tuple(
    "modals addressed medical directions counts perhaps_counts calendar chatter".split()  # noqa: SIM905
)
_WORD: Final = re.compile(r"[^\W_]++(?:'[^\W_]++)*+")


class Reason(NamedTuple):
    """A built-in reason: the severity it sets, and what it means."""

    severity: Severity
    description: str


class Lexicon(NamedTuple):
    """Reasons in the order of report; marks by word; phrases and their marks by the word to find them by.

    A phrase stands with a space on either side, its words as ``words_of`` cuts them.
    """

    reasons: dict[str, Reason]
    lifting: frozenset[str]
    words: dict[str, frozenset[str]]
    phrases: dict[str, tuple[tuple[str, str], ...]]
    units: dict[str, frozenset[str]]
    lists: dict[str, frozenset[str]]


def words_of(text: str) -> list[str]:
    """The words and figures of ``text`` in lower case, cut at hyphens and all other signs but apostrophes."""
    if "’" in text:
        text = text.replace("’", "'")
    return _WORD.findall(text.lower())


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The built-in lexicon."""
    data = yaml.safe_load((files(__package__) / "severity.yaml").read_text(encoding="utf-8"))
    words: dict[str, set[str]] = {}
    phrases: dict[str, list[tuple[str, str]]] = {}
    for mark, entry in _marked(data):
        parts = words_of(entry)
        if len(parts) == 1:
            words.setdefault(parts[0], set()).add(mark)
        elif parts:  # found by the longest word, which is mostly the rarest
            phrases.setdefault(max(parts, key=len), []).append((f" {' '.join(parts)} ", mark))
    return Lexicon(
        {name: Reason(Severity(severity), means) for name, (severity, means) in data["reasons"].items()},
        frozenset(data["lifting"]),
        {word: frozenset(marks) for word, marks in words.items()},
        {key: tuple(group) for key, group in phrases.items()},
        {name: frozenset(units) for name, units in data["units"].items()},
        {name: frozenset(_entries(data[name])) for name in (*_CONTRIBUTING, "clock", "due", "german")},
    )


def _marked(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every word or phrase of a claim that says something, after its mark."""
    for reason, phrases in data["keywords"].items():
        yield from ((reason, entry) for entry in _entries(phrases))
    for reason, phrases in data["topics"].items():
        yield from ((f"~{reason}", entry) for entry in _entries(phrases))
    for name in _CONTRIBUTING:
        yield from ((name, entry) for entry in _entries(data[name]))


def _entries(phrases: str) -> Iterable[str]:
    return (phrase.strip() for phrase in phrases.split(","))
