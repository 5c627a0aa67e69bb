"""Text to segments to claims: where the stream is cut, what needs checking, and what a mistake would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.claims.citations import Citation as Citation
    from guardrail.claims.citations import CitationReader as CitationReader
    from guardrail.claims.cutter import MAX_LEAD_IN_CHARS as MAX_LEAD_IN_CHARS
    from guardrail.claims.cutter import ClaimCutter as ClaimCutter
    from guardrail.claims.cutter import CutSegment as CutSegment
    from guardrail.claims.links import KnownLinks as KnownLinks
    from guardrail.claims.model import Claim as Claim
    from guardrail.claims.model import Segment as Segment
    from guardrail.claims.segmenter import Segmenter as Segmenter
    from guardrail.claims.severity import BuiltinSeverityRater as BuiltinSeverityRater

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
