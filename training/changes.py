"""What a made pair says of its claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from training.examples import Label

LABELS: Final[dict[str, Label]] = {
    "qualifier": "unsupported",
    "overgeneralisation": "unsupported",
    "absent": "unsupported",
    "word": "unsupported",
    "addition": "partially_supported",
    "merge": "partially_supported",
}
"""The verdict by kind; of the others it is ``contradicted``."""

MIRRORED: Final = frozenset(
    ("number", "date", "unit", "name", "swap", "negation", "antonym", "comparison", "word")
)
"""Kinds where the original is wrong, too, if the changed sentence is what the source says."""


@dataclass(frozen=True, slots=True)
class Change:
    """A changed claim. ``spans``: code points of the claim that its source doesn't support. ``old``: where in
    the sentence it was made from the words stand that were exchanged, or None if that is no single place."""

    claim: str
    kind: str
    spans: tuple[tuple[int, int], ...]
    old: tuple[int, int] | None

    @property
    def label(self) -> Label:
        """The verdict that the claim deserves of its source."""
        return label_of(self.kind)


def label_of(kind: str) -> Label:
    """The verdict on a claim that was made wrong in this way."""
    return LABELS.get(kind, "contradicted")


def replaced(kind: str, sentence: str, span: tuple[int, int], new: str) -> Change:
    """``sentence`` with ``new`` in place of what stands at ``span``."""
    start, end = span
    return Change(sentence[:start] + new + sentence[end:], kind, ((start, start + len(new)),), span)
