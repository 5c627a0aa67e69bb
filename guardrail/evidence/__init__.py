"""Contexts to passages: search, turns of conversations, and quotes checked against the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.evidence.index import EvidenceIndex as EvidenceIndex
    from guardrail.evidence.index import find_quote as find_quote
    from guardrail.evidence.sentences import sentence_spans as sentence_spans

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
