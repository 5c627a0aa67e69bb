"""Segments and claims, the units that everything else is about, and claims as judges read them.

What counts is what readers would see: ``Prose`` is a raw text without markup, citations and invisible
characters, with offsets back. Markdown and HTML are removed, links keep their text, entities and escapes
become the characters they stand for, wide letters and odd spaces become plain ones; bullets, item numbers,
pictures and citation marks are removed. Text without any of that stays unchanged.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Final

from guardrail.claims.citations import Citation
from guardrail.claims.links import Link, find_addresses, find_targets, leads_away
from guardrail.claims.markup import ENTITY, ReadCharacters, apart, may_be_marked, misleading, read_markup
from guardrail.events import SegmentKind, Severity, Span

# What markup hides may be markup again, "&amp;lt;", but no writer nests it more deeply than this.
_MOST_READINGS: Final = 4
_MAX_LINKS: Final = 64
_LINK_SIGNS: Final = ("@", "://", "](", "w.", "W.")
_LINKING: Final = re.compile(r"<[A-Za-z]|(?:script|data|file):", re.IGNORECASE)
_DOMAIN: Final = re.compile(r"\.[A-Za-z]{2}")
_AROUND_WORDS: Final = " \t\n,;:.!?()"
_SIGN: Final = re.compile(r"(?<=\d)[.,](?=\d)|[^\W_]|\s")


@dataclass(frozen=True, slots=True)
class Prose:
    """A text as it reads.

    ``offsets`` has the code point of the raw text for each one of ``text``, never descending, and one for its
    end; ``ends`` has where each ends in the raw text. ``links`` are all links and addresses, ``deceptive``
    the parts that look different from what they say, both in the raw text.
    """

    text: str
    offsets: Sequence[int]
    ends: Sequence[int]
    links: tuple[Link, ...] = ()
    deceptive: tuple[Span, ...] = ()

    def raw_span(self, start: int, end: int) -> Span:
        """The span in the raw text of ``text[start:end]``; 0 <= start <= end <= len(text)."""
        first = self.offsets[start]
        return first, self.ends[end - 1] if end > start else first

    def raw_spans(self, raw: str, start: int, end: int) -> list[Span]:
        """Like ``raw_span``, in ``raw``, in pieces: separate if words between them are not shown, such as the
        address of a link.
        """
        borders = [
            at
            for at in range(start + 1, end)
            if self.offsets[at] > self.ends[at - 1] + 1
            and any(sign.isalnum() for sign in raw[self.ends[at - 1] : self.offsets[at]])
        ]
        if not borders:
            return [self.raw_span(start, end)]
        words = ((a, b) for a, b in pairwise((start, *borders, end)) if self.text[a:b].strip(_AROUND_WORDS))
        return [
            self.raw_span(
                b - len(self.text[a:b].lstrip(_AROUND_WORDS)), a + len(self.text[a:b].rstrip(_AROUND_WORDS))
            )
            for a, b in words
        ]


def read_prose(raw: str, citations: Sequence[Span] = (), *, begins_line: bool = True) -> Prose:
    """``raw`` as prose, without the spans of ``citations``. Linear in its length.

    ``begins_line``: a leading number with a full stop is an item's marker. Reading the result again changes
    nothing.
    """
    offsets: Sequence[int]
    ends: Sequence[int]
    if citations or may_be_marked(raw):
        text, starts, ends = _read(raw, citations, begins_line=begins_line)
        offsets, ends = (*starts, len(raw)), tuple(ends)
    else:
        text, offsets, ends = raw, range(len(raw) + 1), range(1, len(raw) + 1)
    deceptive = _deceptive(raw)
    prose = Prose(text, offsets, ends, (), deceptive)
    links = _links(raw, prose, citations)
    return Prose(text, prose.offsets, prose.ends, links, deceptive) if links else prose


def _read(
    raw: str, citations: Sequence[Span], *, begins_line: bool
) -> tuple[str, Sequence[int], Sequence[int]]:
    """Read until nothing changes any more."""
    text, starts, ends = _step(read_markup(raw, citations, begins_line=begins_line))
    for _ in range(_MOST_READINGS):
        if not may_be_marked(text):
            return text, starts, ends
        again, inner_starts, inner_ends = _step(read_markup(text, (), begins_line=begins_line))
        if again == text:
            return text, starts, ends
        starts, ends = [starts[i] for i in inner_starts], [ends[i - 1] for i in inner_ends]
        text = again
    # Markup within markup within markup: take its words, which are plain text.
    kept = [match.start() for match in _SIGN.finditer(text)]
    kept = [
        at for i, at in enumerate(kept) if not text[at].isspace() or (i and not text[kept[i - 1]].isspace())
    ]
    plain = "".join(" " if text[at].isspace() else text[at] for at in kept)
    return plain, [starts[at] for at in kept], [ends[at] for at in kept]


def _step(reading: ReadCharacters) -> tuple[str, list[int], list[int]]:
    return "".join(reading.chars), reading.starts, reading.ends


def _deceptive(raw: str) -> tuple[Span, ...]:
    """In the raw text, and in what its entities stand for."""
    if "&" not in raw or not ENTITY.search(raw):
        return misleading(raw)
    pieces: list[str] = []
    places: list[Span] = []
    last = 0
    for match in ENTITY.finditer(raw):
        pieces.append(raw[last : match.start()])
        places += ((i, i + 1) for i in range(last, match.start()))
        signs = html.unescape(match[0])
        pieces.append(signs)
        places += [match.span()] * len(signs)
        last = match.end()
    pieces.append(raw[last:])
    places += ((i, i + 1) for i in range(last, len(raw)))
    found = misleading("".join(pieces))
    return apart([(places[start][0], places[end - 1][1]) for start, end in found])


def _may_link(text: str) -> bool:
    return (
        any(sign in text for sign in _LINK_SIGNS)
        or (("<" in text or ":" in text) and _LINKING.search(text) is not None)
        or (text.find(".", 0, -2) >= 0 and _DOMAIN.search(text) is not None)
    )


def _links(raw: str, prose: Prose, citations: Sequence[Span]) -> tuple[Link, ...]:
    """The targets of links, and the addresses in the text or in a citation."""
    if not _may_link(raw) and (prose.text is raw or not _may_link(prose.text)):
        return ()
    targets = list(find_targets(raw))
    bare = (Link(prose.raw_span(*link.span), link.target) for link in find_addresses(prose.text))
    cited = (
        Link((start + link.span[0], start + link.span[1]), link.target)
        for start, end in citations
        for link in find_addresses(raw[start:end])
    )
    found: list[Link] = []
    taken = apart([link.span for link in targets])
    for link in chain(bare, cited):
        if not any(start <= link.span[0] and link.span[1] <= end for start, end in taken):
            found.append(link)
        if len(found) == _MAX_LINKS:
            break
    if len(targets) > _MAX_LINKS:  # those to other hosts matter most
        targets.sort(key=lambda link: not leads_away(link.target))
    found += targets[:_MAX_LINKS]
    return tuple(sorted(dict.fromkeys(found), key=lambda link: link.span))


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
