"""Segments with their claims, as the text streams: what a session asks judges about and releases.

``ResumingCutter`` continues where an earlier process stopped.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

from guardrail.claims.assent import answer_in, answers, asked_of
from guardrail.claims.citations import Citation, CitationReader
from guardrail.claims.detector import (
    ASKS,
    Assertion,
    FencedProse,
    FoundStatement,
    Statement,
    asserts,
    classify,
    has_figure,
    presupposes,
    repeats,
)
from guardrail.claims.links import KnownLinks
from guardrail.claims.model import Claim, Prose, Segment, claim_prose
from guardrail.claims.phrases import pattern, words
from guardrail.claims.segmenter import DEFAULT_MAX_SEGMENT_CHARS, Segmenter
from guardrail.claims.severity import words_of
from guardrail.events import SegmentKind, Severity, Span
from guardrail.figures.tables import TOTAL

# Looking up a module-level name is faster than a member of an enumeration.
_CLAIM: Final = Statement.CLAIM
_SENTENCE, _LIST_ITEM, _TABLE_ROW = SegmentKind.SENTENCE, SegmentKind.LIST_ITEM, SegmentKind.TABLE_ROW

# Reasons for severity that a heading, an offer or a link has without stating anything.
_IDLE_REASONS: Final = frozenset(
    ("contact", "name", "number", "period", "percentage", "permission", "negation", "superlative")
)
_CODE: Final = SegmentKind.CODE
_UNASKED: Final = frozenset({Statement.QUESTION, Statement.ABSTENTION, Statement.OFFER})
_WITH_FIGURES: Final = _UNASKED | {Statement.STRUCTURE, Statement.LEAD_IN, Statement.META}
_NAMED: Final = re.compile(r"[^\W\d_]{3,}")
_MOST_OF_A_MENTION: Final = Severity.MAJOR
_rank: Final = attrgetter("rank")

MOST_CLAIMS: Final = 1_000
"""Claims of one response that are judged, those of a very long report. What follows them is cut coarsely:
each claim costs a judge tens of milliseconds or tokens, and other answers as much time."""
_COARSELY: Final = 2_000
"""Least characters of a segment then."""
MAX_LEAD_IN_CHARS: Final = 400
_MAX_LEAD_IN_SENTENCES: Final = 4
_MOST_LINES: Final = 16  # that a total may be of
_WORDS_OF_A_TOTAL: Final = 12
_MOST_OF_A_LINE: Final = 80  # characters; items that are added up are short
_DIGIT: Final = re.compile(r"\d")

# A sentence that begins with one of these words or phrases, or is this short, needs the preceding text to be
# understood.
_DEPENDENT_WORDS: Final = words("dependent_words")
_DEPENDENT_PHRASES: Final = pattern("dependent_phrases")
_PHRASE_BEGINS: Final = frozenset(("the", "for", "in", "as", "after", "at", "if", "when"))
_FRAGMENT_WORDS: Final = 4
_COLONS: Final = (":", "：")
_CLOSING: Final = " \"'”’»)]*_`~}[0123456789¹²³"
_ENDS_SENTENCE: Final = tuple(".!?…。！？।॥؟۔:：")


_Rating = tuple[Severity, tuple[str, ...]]


class SeverityRater(Protocol):
    """Says how much a wrong claim would cost."""

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        """Severity of a claim that reads ``text``, and the reasons for it."""
        ...


class CutSegment(NamedTuple):
    """A final segment and the claims in it."""

    segment: Segment
    claims: tuple[Claim, ...]


class CutPosition(NamedTuple):
    """How far a text is cut: the characters, segments and claims of its final segments."""

    chars: int
    segments: int
    claims: int


class ClaimCutter:
    """Cuts one response into segments and claims. Call ``feed`` any number of times, then ``finish`` once.

    Behind the first ``MOST_CLAIMS`` claims, segments are joined to pieces of some size, each one claim.
    """

    def __init__(
        self,
        rater: SeverityRater,
        *,
        max_segment_chars: int = DEFAULT_MAX_SEGMENT_CHARS,
        citations: CitationReader | None = None,
        links: KnownLinks | None = None,
        question: str = "",
    ) -> None:
        """``question`` is the user's: an answer may say no more than yes to it."""
        self._segmenter = Segmenter(max_segment_chars=max_segment_chars)
        self._take = self._segmenter.feed
        self._rater = rater
        self._citations = citations
        self._links = links
        self._claims = 0
        self._surroundings = _Surroundings()
        self._users = frozenset(words_of(question))
        self._asked = asked_of(question)  # the question before the next segment
        self._fence = FencedProse()
        self._joined: list[str] = []  # behind the last claim that is judged
        self._at: CutPosition | None = None  # how far the text is cut, from there on

    @property
    def position(self) -> CutPosition:
        """How far the text is cut."""
        return self._at or CutPosition(*self._segmenter.position, self._claims)

    def feed(self, text: str) -> list[CutSegment]:
        """Take a piece of text; returns the segments that are now final, with their claims; usually none."""
        segments = self._take(text)
        return self._cut_all(segments) if segments else []

    def finish(self) -> list[CutSegment]:
        """The rest, once the text is complete. Call once."""
        cut = self._cut_all(self._segmenter.finish())
        return [*cut, self._join()] if self._joined else cut

    def _cut_all(self, segments: Sequence[Segment]) -> list[CutSegment]:
        cut: list[CutSegment] = []
        for segment in segments:
            if self._claims < MOST_CLAIMS:
                cut.append(self._cut(segment))
                continue
            if self._at is None:
                self._at = CutPosition(segment.start, segment.index, self._claims)
            self._joined.append(segment.text)
            if segment.end - self._at.chars >= _COARSELY:
                cut.append(self._join())
        return cut

    def _join(self) -> CutSegment:
        """One segment of all that is left to cut."""
        assert self._at is not None  # noqa: S101 - so far the text was cut, since something is left
        text = "".join(self._joined)
        self._joined.clear()
        start, index, number = self._at
        raw = text.strip()
        low = len(text) - len(text.lstrip())
        body = low, low + len(raw)
        if not raw:
            self._at = CutPosition(start + len(text), index + 1, number)
            return CutSegment(Segment(index, SegmentKind.BLANK, text, start, (0, 0)), ())
        severity, reasons = self._rater.rate(raw, _SENTENCE)
        unread = Prose(raw, (0,), ())  # by any judge
        claim = Claim(number, index, raw, start + low, start + body[1], severity, reasons, prose=unread)
        self._at = CutPosition(start + len(text), index + 1, number + 1)
        return CutSegment(Segment(index, _SENTENCE, text, start, body), (claim,))

    def release(self) -> None:
        """Drop the contexts: no more text matters."""
        if self._links:
            self._links.release()

    def _cut(self, segment: Segment) -> CutSegment:
        low, high = segment.body
        body = _Body(segment.text[low:high], low, self._citations)
        foreign = self._leads_away(segment, body.prose)
        if self._citations and not foreign and _defines(segment, self._citations):
            self._fence.leave()
            self._surroundings.note(segment, "", Statement.CITATION, depends=False)
            return CutSegment(segment, ())
        said = body.said(segment, self._surroundings.title if segment.kind is _LIST_ITEM else "")
        if not foreign and said.statement is not _CLAIM and any(each.tells for each in body.citations):
            body = _Body(body.raw, low, None)  # nothing but the marks states anything
            said = FoundStatement(_CLAIM, 0, len(body.prose.text))
        surely = Assertion.STRONG
        if foreign:
            # Whatever it says, the verdict must report where it leads.
            kind = segment.kind if said.statement is _CLAIM else _SENTENCE
            said = FoundStatement(_CLAIM, 0, len(body.prose.text))
            rated: _Rating | None = self._rater.rate(body.prose.text, kind)
        elif said.statement is _CLAIM:
            rated = self._rater.rate(body.prose.text[said.start : said.end], segment.kind)
        else:
            surely = self._surely(segment, body.prose.text, said.statement)
            rated = self._review(body.prose.text, surely)
        if rated is None and segment.kind is _CODE:
            fenced = self._fence.find(body.raw)
            if fenced:
                body = _Body(body.raw[fenced[0] : fenced[1]], low + fenced[0], self._citations)
                surely = fenced[2]
                theirs = (
                    surely is Assertion.MENTION and has_figure(body.raw) and repeats(body.raw, self._users)
                )
                rated = None if theirs else self._review(body.prose.text, surely)
        if segment.kind is not _CODE:
            self._fence.leave()
        claims: tuple[Claim, ...] = ()
        # An answer or a question needs nothing before it here: it responds to the user's question.
        depends = False
        statement = said.statement
        text = body.prose.text
        asked, body = self._assent(segment, body, rated=rated is not None)
        if asked:
            rated = self._rater.rate(asked, _SENTENCE)
        if segment.kind is not SegmentKind.BLANK and (rated or statement is not Statement.GREETING):
            self._asked = text.strip() if statement is not _CLAIM and text.rstrip().endswith(ASKS) else ""
        if rated:
            frame = ""
            if not asked and statement is _CLAIM and (said.start or said.end < len(text)):
                frame = text[: said.start].strip()
                body = body.part(said.start, said.end, self._citations)
            mentions = not asked and surely is Assertion.MENTION
            statement = _CLAIM
            stated = body.prose.text
            depends = segment.kind is not _TABLE_ROW and _depends(stated)
            lead_in = self._surroundings.lead_in(segment, stated, depends=depends)
            claims = (
                Claim(
                    index=self._claims,
                    segment=segment.index,
                    text=body.raw,
                    start=segment.start + body.start,
                    end=segment.start + body.start + len(body.raw),
                    severity=min(rated[0], _MOST_OF_A_MENTION, key=_rank) if mentions else rated[0],
                    severity_reasons=rated[1],
                    lead_in=asked or (_join([lead_in, frame]) if frame and depends else lead_in),
                    mentions=mentions,
                    citations=body.citations,
                    prose=body.prose,
                ),
            )
            self._claims += 1
        self._surroundings.note(segment, text, statement, depends=depends)
        return CutSegment(segment, claims)

    def _leads_away(self, segment: Segment, prose: Prose) -> bool:
        """Whether it has a link that no context has. Code contains no links."""
        if self._links is None or not prose.links or segment.kind is _CODE:
            return False
        return self._links.any_foreign(prose.links)

    def _surely(self, segment: Segment, text: str, statement: Statement) -> Assertion:
        """How surely a segment states something that is exempted by its wording."""
        surely = asserts(text, statement)
        if statement in _UNASKED and presupposes(text, self._users):
            return Assertion.STRONG
        if segment.kind is SegmentKind.HEADING and surely is Assertion.SOME:
            return Assertion.STRONG  # a heading with a main clause is a sentence, whatever it is about
        if surely < Assertion.STRONG and statement in _WITH_FIGURES and self._tells_figures(segment, text):
            return Assertion.STRONG if statement is Statement.STRUCTURE else Assertion.MENTION
        return surely

    def _tells_figures(self, segment: Segment, text: str) -> bool:
        """Whether a text has an amount, a date, a time or a contact that the user has not given; in a header
        beside a name, or it is of the column."""
        cells = segment.body_text.split("|") if segment.header else [text]
        telling = (cell for cell in cells if has_figure(cell) and (not segment.header or _NAMED.search(cell)))
        return any(telling) and not repeats(text, self._users)

    def _assent(self, segment: Segment, body: _Body, *, rated: bool) -> tuple[str, _Body]:
        """The question that the segment answers with no more than yes or no, and the part that does: where
        nothing is ``rated`` in it, it may go on with what states nothing."""
        text = body.prose.text
        if answers(self._asked, text or body.raw) is not None:
            return self._asked, body
        if rated or segment.kind is not _SENTENCE:
            return "", body
        head = answer_in(self._asked, text)
        return ("", body) if head is None else (self._asked, body.part(*head, self._citations))

    def _review(self, text: str, surely: Assertion) -> _Rating | None:
        """The rating of a text that was exempted, if it is a claim after all."""
        if surely is Assertion.NONE:
            return None
        # Read as a sentence: headings and code have no severity of their own.
        severity, reasons = self._rater.rate(text, _SENTENCE)
        known = severity.rank >= Severity.MAJOR.rank and not _IDLE_REASONS.issuperset(reasons)
        return (severity, reasons) if known or surely >= Assertion.MENTION else None


def _defines(segment: Segment, finder: CitationReader) -> bool:
    """Whether an item is a footnote that only names its source: "[^1]: Price list"."""
    low, high = segment.body
    if segment.kind is not _LIST_ITEM or "]" not in segment.text[:low]:
        return False
    found = finder.find(segment.text[:high])
    return len(found) == 1 and found[0].span[0] < low and found[0].span[1] == high


class _Body:
    """A part of a segment, raw and as prose. ``start`` is its position in the segment."""

    __slots__ = ("citations", "prose", "raw", "start")

    def __init__(self, raw: str, start: int, finder: CitationReader | None) -> None:
        self.raw = raw
        self.start = start
        self.citations: tuple[Citation, ...] = finder.find(raw) if finder is not None else ()
        self.prose = claim_prose(raw, self.citations)

    def said(self, segment: Segment, title: str) -> FoundStatement:
        """What it states, below ``title``."""
        prose = self.prose
        return classify(
            prose.text,
            segment.kind,
            header=segment.header,
            linked=_linked(prose) if prose.links else (),
            cited=bool(self.citations),
            title=title,
        )

    def part(self, start: int, end: int, finder: CitationReader | None) -> _Body:
        """The part that reads ``prose.text[start:end]``."""
        first, last = self.prose.raw_span(start, end)
        if end == len(self.prose.text):
            last = len(self.raw)
        return _Body(self.raw[first:last], self.start + first, finder)


def _linked(prose: Prose) -> list[Span]:
    """The parts of the prose that are texts of links, or addresses."""
    found: list[Span] = []
    at = 0
    for link in prose.links:
        start = bisect_left(prose.offsets, link.span[0], at, len(prose.text))
        at = bisect_left(prose.offsets, link.span[1], start, len(prose.text))
        found.append((start, at))
    return found


class _Surroundings:
    """The preceding text, as far as a claim may need it to be understood."""

    def __init__(self) -> None:
        self._heading = ""
        self._list_lead_in = ""
        # The items that the current one may be nested in: their indentation and text.
        self._items: list[tuple[int, str]] = []
        self._in_item = False
        self._answered = False
        self._table_header = ""
        self._sentences: list[tuple[str, bool]] = []
        self._lines: list[str] = []
        self._previous: Segment | None = None

    @property
    def title(self) -> str:
        """The title of a list."""
        return self._list_lead_in or self._heading

    def lead_in(self, segment: Segment, stated: str, *, depends: bool) -> str:
        """What the claim of this segment, which reads ``stated``, needs: in text order, bounded. A total
        needs the lines that it adds up.
        """
        short = stated.count(" ") < _WORDS_OF_A_TOTAL
        if short and len(self._lines) > 1 and TOTAL.search(stated.lower()):
            return _join(self._lines, "\n")
        if segment.kind is _TABLE_ROW:
            header = "" if self._starts_table(segment) else self._table_header
            return _join([self._heading, header])
        if segment.kind is _LIST_ITEM:
            indentation = self._items[-1][0] if self._in_item and self._items else _indentation(segment)
            above = [text for indented, text in self._items if indented < indentation]
            before = self._before(segment, depends=depends) if self._in_item else []
            return _join([self._heading, self._list_lead_in, *above, *before])
        return _join(self._before(segment, depends=depends))

    def _before(self, segment: Segment, *, depends: bool) -> list[str]:
        """The preceding sentences, back to one that stands on its own."""
        needed: list[str] = []
        depends = depends or self._answered or self._continues()
        for text, text_depends in reversed(self._sentences):
            if not depends or len(needed) == _MAX_LEAD_IN_SENTENCES:
                break
            needed.append(text)
            depends = text_depends
        if depends and segment.kind is _SENTENCE:
            needed.append(self._heading)
        needed.reverse()
        return needed

    def _starts_table(self, segment: Segment) -> bool:
        previous = self._previous
        return previous is None or previous.kind is not _TABLE_ROW or "\n" in segment.text[: segment.body[0]]

    def _continues(self) -> bool:
        """Whether the segment continues a sentence that was cut at the bound."""
        previous = self._previous
        if previous is None or previous.text.endswith("\n"):
            return False
        return not previous.text.rstrip(_CLOSING).endswith(_ENDS_SENTENCE)

    def note(self, segment: Segment, body: str, statement: Statement, *, depends: bool) -> None:
        """Remember a segment for those that follow it."""
        kind = segment.kind
        if kind is not SegmentKind.HEADING and len(body) <= _MOST_OF_A_LINE and _DIGIT.search(body):
            self._lines.append(body)
            del self._lines[:-_MOST_LINES]
        if kind is SegmentKind.HEADING:
            self._heading, self._list_lead_in = body, ""
            self._lines.clear()
            self._items.clear()
            self._sentences.clear()
        elif kind is _TABLE_ROW:
            if self._starts_table(segment):
                self._table_header = body if segment.header else ""
            self._sentences.clear()
        elif kind is _SENTENCE:
            self._items.clear()
            self._list_lead_in = body if body.endswith(_COLONS) else ""
            self._remember(body, depends=depends)
        elif kind is _LIST_ITEM:
            if not self._in_item:
                self._sentences.clear()
                indentation = _indentation(segment)
                while self._items and self._items[-1][0] >= indentation:
                    self._items.pop()
                self._items.append((indentation, body))
            self._remember(body, depends=depends)
        self._in_item = kind is _LIST_ITEM and not segment.text.endswith("\n")
        if kind is not SegmentKind.BLANK:
            self._previous = segment
            self._answered = statement is Statement.ANSWER

    def _remember(self, body: str, *, depends: bool) -> None:
        self._sentences.append((body, depends))
        if len(self._sentences) > _MAX_LEAD_IN_SENTENCES:
            del self._sentences[0]


def _indentation(segment: Segment) -> int:
    """Columns before a list item's marker."""
    lead = segment.text[: segment.body[0]]
    line = lead[lead.rfind("\n") + 1 :].expandtabs(4)
    return len(line) - len(line.lstrip())


def _depends(body: str) -> bool:
    """Whether a claim with this body needs the preceding text to be understood."""
    said = body.split(None, _FRAGMENT_WORDS)
    # Scripts without spaces have one "word" per sentence.
    if len(said) < _FRAGMENT_WORDS and (len(body) < 8 or body.isascii()):
        return True
    first = said[0].strip("\"'“”‘’«»*_([{,.;:¿¡").lower().replace("’", "'")
    if first in _DEPENDENT_WORDS or first.partition("'")[0] in _DEPENDENT_WORDS:
        return True
    if first not in _PHRASE_BEGINS:
        return False
    return _DEPENDENT_PHRASES.match(" ".join(said[:3]).lower().lstrip("\"'“‘«*_([")) is not None


def _join(parts: list[str], between: str = " ") -> str:
    text = between.join(part for part in parts if part)
    if len(text) <= MAX_LEAD_IN_CHARS:
        return text
    tail = text[-MAX_LEAD_IN_CHARS:]
    return tail[tail.find(between) + 1 :]


_NOWHERE: Final = CutPosition(0, 0, 0)


class ResumingCutter:
    """Cuts the rest of a text whose first segments are known.

    It cuts nothing before the next text comes, so that resuming many responses costs little. Then it cuts the
    text so far again, for the context that the rest needs: headings, lists, open fences, preceding sentences.
    It drops segments that end at or before ``position``. If none ends there, because another version of this
    program cut the text, what follows is cut as if it stood alone. In both cases the segments continue at
    ``position``, and the indexes of segments and claims continue from it.
    """

    __slots__ = ("_cutter", "_lacking", "_new_cutter", "_position", "_text")

    def __init__(self, new_cutter: Callable[[], ClaimCutter], text: str, position: CutPosition) -> None:
        self._new_cutter = new_cutter
        self._text = text
        self._position = position
        self._cutter: ClaimCutter | None = None
        self._lacking = _NOWHERE  # what to add to the cutter's numbers

    @property
    def position(self) -> CutPosition:
        """How far the text is cut."""
        if self._cutter is None:
            return self._position
        chars, segments, claims = self._cutter.position
        lacking = self._lacking
        return CutPosition(chars + lacking.chars, segments + lacking.segments, claims + lacking.claims)

    def feed(self, text: str) -> list[CutSegment]:
        """Like ClaimCutter.feed."""
        known, cutter = self._resumed()
        return known + self._moved(cutter.feed(text))

    def finish(self) -> list[CutSegment]:
        """Like ClaimCutter.finish."""
        known, cutter = self._resumed()
        return known + self._moved(cutter.finish())

    def release(self) -> None:
        """Like ClaimCutter.release."""
        if self._cutter is not None:
            self._cutter.release()

    def _resumed(self) -> tuple[list[CutSegment], ClaimCutter]:
        """What cuts the rest. The first time it cuts the text so far, and finds where to continue: with the
        final segments after that."""
        if self._cutter is not None:
            return [], self._cutter
        at = self._position
        cutter = self._cutter = self._new_cutter()
        cut = cutter.feed(self._text)
        before = [piece for piece in cut if piece.segment.end <= at.chars]
        reached = before[-1].segment.end if before else 0
        if reached == at.chars:
            claims = sum(len(piece.claims) for piece in before)
            self._lacking = CutPosition(0, at.segments - len(before), at.claims - claims)
            cut = cut[len(before) :]
        else:
            cutter = self._cutter = self._new_cutter()
            self._lacking = at
            cut = cutter.feed(self._text[at.chars :])
        self._text = ""
        return self._moved(cut), cutter

    def _moved(self, cut: list[CutSegment]) -> list[CutSegment]:
        lacking = self._lacking
        if not cut or lacking == _NOWHERE:
            return cut
        chars, segments, claims = lacking
        return [
            CutSegment(
                replace(segment, index=segment.index + segments, start=segment.start + chars),
                tuple(
                    replace(
                        claim,
                        index=claim.index + claims,
                        segment=claim.segment + segments,
                        start=claim.start + chars,
                        end=claim.end + chars,
                    )
                    for claim in found
                ),
            )
            for segment, found in cut
        ]


Cutter = ClaimCutter | ResumingCutter
"""Cuts one response, or the rest of one, into segments and claims."""
