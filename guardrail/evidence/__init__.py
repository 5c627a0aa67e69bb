"""Contexts to passages: search, turns of conversations, and quotes checked against the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.evidence.index import EvidenceIndex, find_quote
    from guardrail.evidence.sentences import sentence_spans

__all__ = [
    "EvidenceIndex",
    "find_quote",
    "sentence_spans",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.evidence.index": ("EvidenceIndex", "find_quote"),
            "guardrail.evidence.sentences": ("sentence_spans",),
        },
    )
