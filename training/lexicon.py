"""The word lists of ``lexicon.yaml``, which says what each is for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

_LISTS: Final[dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))


def _split(pairs: Iterable[str]) -> list[tuple[str, str]]:
    """``a/b`` -> both."""
    return [(one, other) for one, _, other in (pair.partition("/") for pair in pairs)]


def _both_ways(name: str) -> dict[str, tuple[str, ...]]:
    """The pairs of a list, and all forms of the verbs of its second part, in both directions."""
    verbs = [zip(_forms(one), _forms(other), strict=True) for one, other in _split(_LISTS[f"{name}_verbs"])]
    found: dict[str, list[str]] = {}
    for one, other in [*_split(_LISTS[f"{name}s"]), *(pair for forms in verbs for pair in forms)]:
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return {word: tuple(others) for word, others in found.items()}


def _forms(verb: str) -> tuple[str, str, str, str]:
    """Base, third person, past, -ing of a regular verb."""
    if verb.endswith("e"):
        return verb, verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb, verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    if verb.endswith(("s", "sh", "ch", "x")):
        return verb, verb + "es", verb + "ed", verb + "ing"
    return verb, verb + "s", verb + "ed", verb + "ing"


ANTONYMS: Final = _both_ways("antonym")
ANTONYMS["won"] = ("lost",)  # not the other way: "lost" is many things
COMPARISONS: Final = _both_ways("comparison")
WEAKENED: Final[dict[str, str]] = _LISTS["weakened"]
DOUBTS: Final[tuple[str, ...]] = tuple(_LISTS["doubts"])
SYNONYMS: Final[dict[str, tuple[str, ...]]] = {word: tuple(to) for word, to in _LISTS["synonyms"].items()}
PAST_TO_BASE: Final = dict(_split(_LISTS["past_to_base"]))
PARTICIPLE_TO_PAST: Final = dict(_split(_LISTS["participle_to_past"]))

GAZETTEER: Final[dict[str, tuple[str, ...]]] = {kind: tuple(ns) for kind, ns in _LISTS["gazetteer"].items()}
MONTHS, WEEKDAYS = GAZETTEER["month"], GAZETTEER["weekday"]
SMALL_NUMBERS: Final[tuple[str, ...]] = tuple(_LISTS["small_numbers"])
OVERLAPPING: Final[tuple[set[str], ...]] = tuple(map(set, _LISTS["overlapping"]))
FIRST_NAMES: Final[frozenset[str]] = frozenset(_LISTS["first_names"])
HEADS: Final[frozenset[str]] = frozenset(_LISTS["heads"])
ADDITIONS: Final[tuple[str, ...]] = tuple(_LISTS["additions"])
OPENINGS: Final[tuple[str, ...]] = tuple(_LISTS["openings"])

PEOPLE: Final[tuple[str, ...]] = tuple(_LISTS["people"])
YOU_VERBS: Final[dict[str, str]] = _LISTS["you_verbs"]
LEADS: Final[tuple[str, ...]] = tuple(_LISTS["leads"])
TRAILS: Final[tuple[str, ...]] = tuple(_LISTS["trails"])
PLAIN: Final[dict[str, str]] = _LISTS["plain"]
