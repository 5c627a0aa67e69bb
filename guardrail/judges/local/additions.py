"""Items that a claim adds to what its sources list: "a laptop, a monitor *and a headset*"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.clauses import Clause
from guardrail.judges.local.compare import Comparison
from guardrail.judges.local.source import Sentence


def _terms(text: str) -> frozenset[int]:
    return frozenset(term_of(word) for word in text.split())


_JOINING: Final = _terms("and or with plus including")
_AFTER_ITEM: Final = _terms(
    "and or with plus including on in at for to from by during within per until before after if when while "
    "because unless that which who be have do can may must should will"
)
_TOLD: Final = 0.6  # of what the claim says of an item, by rarity
_RELATIVES: Final = _terms("who whose which where")
_TELLING: Final = 0.6  # rarity from which on a word is not filler
_SHARE: Final = 0.5  # of an item's words, by rarity, that must be missing


def unmentioned_item(view: ClaimView, present: frozenset[int]) -> str | None:
    """The head of the first joined item that no context mentions.

    ``present`` are the terms that some context has.
    """
    for item in _items(view):
        head = item[-1]
        if view.terms[head] in present:
            continue
        weights = {view.terms[i]: view.content[view.terms[i]] for i in item}
        missing = [weight for term, weight in weights.items() if term not in present]
        if max(missing) >= _TELLING and sum(missing) >= _SHARE * sum(weights.values()):
            return view.surfaces[head]
    return None


def denied_item(view: ClaimView, compared: Sequence[Comparison]) -> tuple[str, Comparison] | None:
    """The head of a joined item that the sentences name only where they deny something."""
    for item in _items(view):
        head = item[-1]
        term = view.terms[head]
        if view.content[term] < _TELLING or any(
            clause.denied for clause in view.clauses if clause.first <= head < clause.last
        ):
            continue
        naming = [
            (clause.denied and not _told_of(view, comparison.sentence, clause), comparison)
            for comparison in compared
            for clause in comparison.sentence.clauses
            if term in clause.terms
        ]
        if naming and all(denied for denied, _ in naming):
            return view.surfaces[head], naming[0][1]
    return None


def _told_of(view: ClaimView, sentence: Sentence, clause: Clause) -> bool:
    """Whether what follows a clause says of its end what the claim says: "all but the twins, who are ill" of
    "the twins are ill"."""
    if clause.last >= len(sentence.terms) or sentence.terms[clause.last] not in _RELATIVES:
        return False
    rest = {term: weight for term, weight in view.content.items() if term not in clause.terms}
    said = rest.keys() & set(sentence.terms[clause.last :])
    return bool(rest) and sum(rest[term] for term in said) >= _TOLD * sum(rest.values())


def _items(view: ClaimView) -> Iterator[list[int]]:
    """The content tokens of each stretch after a joining word, up to where the next part begins."""
    for at, joining in enumerate(view.terms):
        if joining not in _JOINING:
            continue
        item: list[int] = []
        for i in range(at + 1, len(view.terms)):
            if view.terms[i] in _AFTER_ITEM:
                break
            if view.terms[i] in view.content and view.terms[i] not in STOP_TERMS:
                item.append(i)
            end = view.starts[i + 1] if i + 1 < len(view.starts) else len(view.text)
            if any(c in ",;:.!?()" for c in view.text[view.starts[i] : end]):
                break
        if item and not view.value_tokens.intersection(item):
            yield item
