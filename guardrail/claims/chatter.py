"""Tells chatter, which states nothing about the world, from what may state something, by its words.

Each word of a sentence, together with the one before it, has a fitted weight: positive if it speaks for a
statement. What counts is the stretch of words that speaks for one most, so that no amount of courtesy around
a statement hides it. Words that chatter doesn't use all speak for a statement, unknown ones included.
``training/chatter_fit.py`` fits the weights (``data/chatter.json``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Final

from guardrail.shipped import shipped_text

_TOKEN: Final = re.compile(
    r"[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+(?:['’][^\W_]+)*"
    r"|[,;:!?，；：！？、—–]"
)
START: Final = "^"
KINDS: Final = ("<word>", "<name>", "<figure>", "<character>")
"""What words are looked up as that are not known."""
_WIDE: Final = str.maketrans("，；：！？、’", ",;:!?,'")


def tokens_of(text: str) -> Iterator[str]:
    """The words of ``text`` as written, its signs, and the characters of Chinese and Japanese one by one."""
    return (found[0] for found in _TOKEN.finditer(text))


def known_as(token: str, known: Collection[str], *, first: bool = False) -> str:
    """What a token is looked up as: itself, or the kind of word that it is."""
    low = token.lower()
    if not low.isascii():
        low = low.translate(_WIDE)
    if low in known:
        return low
    word, name, figure, character = KINDS
    if low[0].isdecimal():
        return figure
    if not low[0].isascii() and len(low) == 1:
        return character
    return name if token[0].isupper() and not first else word


_data: Final = json.loads(shipped_text("guardrail.claims", "data", "chatter.json"))
_weights: Final[dict[str, float]] = _data["weights"]
_MOST: Final[float] = _data["most"]
_UNKNOWN: Final = frozenset(KINDS)
_FEWEST: Final = 2  # words


def evidence(text: str, weights: Mapping[str, float], enough: float = inf) -> float:
    """How much the stretch of ``text`` that speaks most for a statement weighs. Linear in its length.

    Reads on only until it weighs more than ``enough``.
    """
    before, run, most, known = START, 0.0, 0.0, weights.get
    for i, token in enumerate(tokens_of(text)):
        word = known_as(token, weights, first=not i)
        run = max(0.0, run) + known(word, 0.0) + known(f"{before} {word}", 0.0)
        most, before = max(most, run), word
        if most > enough:
            return most
    return most + max(0.0, known(f"{before} $", 0.0))


def is_chatter(text: str) -> bool:
    """Whether a sentence is nothing but chatter. A single word is never told, nor is one with a word that
    chatter doesn't use."""
    if evidence(text, _weights, _MOST) > _MOST:
        return False
    words = [known_as(token, _weights, first=not i) for i, token in enumerate(tokens_of(text))]
    return len(words) >= _FEWEST and _UNKNOWN.isdisjoint(words)
