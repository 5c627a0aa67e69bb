"""Segments and claims, the units that everything else is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from guardrail.claims.citations import Citation
from guardrail.claims.markup import apart
from guardrail.claims.prose import Prose, read_prose
from guardrail.events import SegmentKind, Severity

_UNREAD: Final = Prose("", (0,), ())


@dataclass(frozen=True, slots=True)
class Segment:
    """A contiguous piece of the response. Segments tile the text: joined, they give it back.

    ``start``/``end`` are code points of the response. ``body`` is the part of ``text`` (offsets relative to
    the segment) without surrounding white space and list or heading markers: what a redaction replaces.
    ``header`` marks the first row of a table that a ``|---|`` row follows.
    """

    index: int
    kind: SegmentKind
    text: str
    start: int
    body: tuple[int, int]
    header: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def body_text(self) -> str:
        return self.text[self.body[0] : self.body[1]]


def claim_prose(raw: str, citations: Sequence[Citation]) -> Prose:
    """A claim's text as prose. Its list marker is removed; any other leading number belongs to the sentence.
    A citation that states something is removed too, and marks the text as displaying otherwise than it reads.
    """
    prose = read_prose(raw, [citation.span for citation in citations], begins_line=False)
    telling = [citation.span for citation in citations if citation.tells]
    return replace(prose, deceptive=apart([*prose.deceptive, *telling])) if telling else prose


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable factual statement of a segment.

    ``start``/``end`` are code points of the response. ``lead_in`` contains the preceding sentences (or list
    lead-in, table header) that the claim needs to be understood, as prose; empty if it stands on its own.
    ``text`` is raw; judges read ``prose``, which is derived from it without ``citations``. ``citations`` are
    derived too, with code points of ``text``. ``mentions``: it is a question, an offer or data, of which only
    the figures state anything.
    """

    index: int
    segment: int
    text: str
    start: int
    end: int
    severity: Severity
    severity_reasons: tuple[str, ...] = ()
    lead_in: str = ""
    mentions: bool = field(default=False, compare=False)
    citations: tuple[Citation, ...] = field(default=(), compare=False)
    prose: Prose = field(default=_UNREAD, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.prose is _UNREAD:
            object.__setattr__(self, "prose", claim_prose(self.text, self.citations))
