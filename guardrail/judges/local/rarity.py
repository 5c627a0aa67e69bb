"""How much a word says: rare words more than common ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from guardrail.evidence.tokens import term_of_stem

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
