"""Which examples a verifier is trained on, in what shares, and what of their contexts it reads."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.candidates import find_candidates
from guardrail.judges.local.claim_view import view_of
from guardrail.judges.local.fitted import DEFAULT_TOKENS
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.readings import sentence_alone, sentence_choices, together, worth_reading
from guardrail.judges.local.verification import OF_ITSELF
from training.chat_wording import chat_worded, spans_in
from training.examples import Example

REPEATED: Final[Mapping[str, int]] = {
    "attribution-bench": 2,
    "begin": 2,
    "check-covid": 2,
    "fever-symmetric": 2,
    "fool-me-twice": 2,
    "summedits": 2,
    "synthetic-addition": 2,
    "synthetic-name": 2,
    "wice": 2,
    "written-forms-additions": 12,
    "written-passages-answers": 3,
    "written-passages-findings": 3,
    "written-passages-joined": 3,
    "written-passages-roles": 3,
    "written-passages-taken_back": 4,
    "written-passages-webpages": 3,
}
"""Small sets that look like answers, or teach what others don't, are read more than once, by how their names
begin."""

_SHORT_WORDS: Final = 70  # contexts that are read as they are
_SENTENCES: Final = 8
_TOKENS_A_WORD: Final = 1.35  # in the mean, of English text
_FIRST_READING: Final = 0.7  # of pairs whose example has two readings
_NEARLY: Final = 0.9  # of what the sentences together have of the claim, for one of them to be read alone
_CHAT: Final = 0.2  # of claims are worded as chat assistants do


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """What the model reads and is to say. ``contradicted`` and ``spans``: None where nobody knows."""

    dataset: str
    claim: str
    premise: str
    supported: bool
    contradicted: bool | None
    spans: tuple[tuple[int, int], ...] | None


def training_pairs(
    examples: Iterable[Example], rarity: Rarity, *, pairs: int | None, seed: int
) -> list[TrainingPair]:
    """At most ``pairs`` of them, every data set cut in proportion.

    Examples that are held out have no part. Of long contexts one reading is drawn, as the judge reads them.
    """
    random_ = random.Random(seed)
    by_set: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        if not example.held_out:
            by_set[example.dataset].extend([example] * _times(example.dataset))
    total = sum(map(len, by_set.values()))
    share = 1.0 if pairs is None else min(1.0, pairs / max(1, total))
    chosen = [
        example
        for _, found in sorted(by_set.items())
        for example in random_.sample(found, round(share * len(found)))
    ]
    random_.shuffle(chosen)
    return [_pair(example, rarity, random_) for example in chosen]


def _times(dataset: str) -> int:
    return next((times for name, times in REPEATED.items() if dataset.startswith(name)), 1)


def _pair(example: Example, rarity: Rarity, random_: random.Random) -> TrainingPair:
    spans = () if example.supported else example.spans
    claim = example.claim
    if random_.random() < _CHAT:
        claim = chat_worded(claim, random_)
        spans = spans_in(example.claim, claim, spans)
    found = readings(example, rarity)
    premise = found[0] if len(found) == 1 or random_.random() < _FIRST_READING else found[1]
    return TrainingPair(example.dataset, claim, premise, example.supported, example.contradicted, spans)


def readings(example: Example, rarity: Rarity) -> list[str]:
    """What of the contexts is read for the claim, as the judge reads it: the best sentences together, and the
    best one alone where that has nearly as much of the claim."""
    if sum(text.count(" ") for text in example.contexts) <= _SHORT_WORDS:
        return [" ".join(example.contexts)]
    index = EvidenceIndex(
        [Context(id=f"c{number}", text=text) for number, text in enumerate(example.contexts)]
    )
    claim = Claim(0, 0, example.claim, 0, len(example.claim), Severity.NORMAL, lead_in=example.lead_in)
    view = view_of(claim, example.question, rarity)
    matches = find_candidates(index.layout, view, _SENTENCES, 1, in_other_words=True).sentences
    if not matches:
        return [" ".join(example.contexts[0].split()[:_SHORT_WORDS])]
    chosen = together(view, matches)
    held = frozenset(chain.from_iterable(match.terms for match in chosen))
    alone = sentence_alone(index, matches[0].number)
    own = _TOKENS_A_WORD * len(view.terms)
    room = (max(DEFAULT_TOKENS, OF_ITSELF * own) - own) / _TOKENS_A_WORD
    texts = [text for text, _ in sentence_choices(index, worth_reading(view, chosen))]
    several = next((text for text in texts if text.count(" ") < room), alone)
    if several == alone or view.share(matches[0].terms) < _NEARLY * view.share(held):
        return [several]  # alone, the best sentence would say less than the label is about
    return [several, alone]
