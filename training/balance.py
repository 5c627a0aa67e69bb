"""Examples cut down until the words that a claim shares with its contexts tell nothing of its label.

Who writes wrong claims beside a source keeps its words, who writes right ones looks for others: a verifier
trained on such claims as they are takes a copied sentence for a lie.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from guardrail.evidence.tokens import STOP_TERMS, words
from training.examples import Example

_STEPS: Final = 10


def shared_words(claim: str, contexts: Iterable[str]) -> float:
    """The share of the claim's distinct words, but stop words, that the contexts have; 0..1."""
    terms = _terms(claim)
    terms = terms - STOP_TERMS or terms
    held = frozenset(chain.from_iterable(map(_terms, contexts)))
    return len(terms & held) / max(1, len(terms))


def balanced(examples: Iterable[Example], *, seed: int) -> Iterator[Example]:
    """As many supported claims as others among those that share about as many words with their contexts (to
    a tenth), of each ``source`` and either side of the split; what is over is left out, drawn at random."""
    random_ = random.Random(seed)
    alike: dict[tuple[str, bool, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    every = list(examples)
    for number, example in enumerate(every):
        step = round(_STEPS * shared_words(example.claim, example.contexts))
        right, other = alike[example.source, example.held_out, step]
        (right if example.supported else other).append(number)
    kept: set[int] = set()
    for sides in alike.values():
        count = min(map(len, sides))
        for side in sides:
            kept.update(random_.sample(side, count))
    yield from (example for number, example in enumerate(every) if number in kept)


def _terms(text: str) -> frozenset[int]:
    return frozenset(term for _, term, _ in words(text))
