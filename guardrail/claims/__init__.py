"""Text to segments to claims: where the stream is cut, what needs checking, and what a mistake would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.claims.citations import Citation, CitationReader
    from guardrail.claims.cutter import MAX_LEAD_IN_CHARS, ClaimCutter, CutSegment, Cutter, SeverityRater
    from guardrail.claims.links import KnownLinks
    from guardrail.claims.model import Claim, Segment
    from guardrail.claims.segmenter import Segmenter
    from guardrail.claims.severity import BuiltinSeverityRater

__all__ = [
    "MAX_LEAD_IN_CHARS",
    "BuiltinSeverityRater",
    "Citation",
    "CitationReader",
    "Claim",
    "ClaimCutter",
    "CutSegment",
    "Cutter",
    "KnownLinks",
    "Segment",
    "Segmenter",
    "SeverityRater",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.claims.citations": ("Citation", "CitationReader"),
            "guardrail.claims.cutter": (
                "MAX_LEAD_IN_CHARS",
                "ClaimCutter",
                "CutSegment",
                "Cutter",
                "SeverityRater",
            ),
            "guardrail.claims.links": ("KnownLinks",),
            "guardrail.claims.model": ("Claim", "Segment"),
            "guardrail.claims.segmenter": ("Segmenter",),
            "guardrail.claims.severity": ("BuiltinSeverityRater",),
        },
    )
