"""Reads the claims of one request beside windows of their contexts."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from guardrail.claims.phrases import pattern
from guardrail.evidence.tokens import written
from guardrail.figures import Figure, FigureCheck, Kind, State
from guardrail.figures.agreement import dimension, interchangeable, opposed, same_rate
from guardrail.judges.local.combiner import Read
from guardrail.judges.local.search import WindowText
from guardrail.judges.model import Verifier

if TYPE_CHECKING:
    from tokenizers import Encoding

_LEAST_ROOM: Final = 64  # tokens that a claim must leave for a window
_MOST_CHARS_A_TOKEN: Final = 40  # in the mean over a text; one of more is not prose
_MOST_UNKNOWN: Final = 0.5  # of a claim's tokens, in words
_TEXTS_REMEMBERED: Final = 256
_MOST_KNOWN: Final = 8  # figures of a claim
_LEAST_FRAME: Final = 0.25  # of what a claim says around a figure, in the sentence that has it otherwise
_HALVED: Final = re.compile(r"[ap]\.?m\b", re.IGNORECASE)
_EXACT: Final = ("key", "date", "number")
_MOST_LEADING: Final = 200  # characters of a lead-in or question
_FEW_WORDS: Final = 8
_COLON: Final = re.compile(r":\s{1,4}(?=\S)")
_FINITE: Final = pattern("finite")


class WindowReader:
    """The same text is encoded once."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._encoded: dict[str, Encoding] = {}

    def reads(
        self, claim: Reworded, windows: Iterator[WindowText], stopped: Callable[[], bool]
    ) -> Iterator[Read]:
        """What the verifier says of a claim beside one window after the other, for as long as it is asked;
        spans of tokens are those of the claim before it was reworded.

        Nothing where the claim can't be read: it is too long, forges special tokens, or is mostly of words
        that the vocabulary lacks. A window that can't be read is passed over: it forges special tokens, or
        lacks an unknown word of the claim's, which reads as any other. Of windows that are too long the end
        is cut. Ends once ``stopped()``. Raises JudgeError as ``Verifier.read`` does.
        """
        for window, own, text in self._pairs(claim, windows):
            if stopped():
                return
            reading = self._verifier.read(own, text)
            if claim.pieces:
                tokens = [(*claim.in_claim(start, end), mark) for start, end, mark in reading.tokens]
                reading = replace(reading, tokens=tuple(tokens))
            yield Read(window, reading)

    def readable(self, claim: Reworded, windows: Iterator[WindowText]) -> bool:
        """Whether ``reads`` would read any of the windows."""
        return next(self._pairs(claim, windows), None) is not None

    def _pairs(
        self, claim: Reworded, windows: Iterator[WindowText]
    ) -> Iterator[tuple[WindowText, Encoding, Encoding]]:
        """The windows that can be read, each with what the verifier takes: the claim and the window."""
        verifier = self._verifier
        most_chars = _MOST_CHARS_A_TOKEN * verifier.max_tokens
        if len(claim.text) > most_chars:
            return
        own = self._encode(claim.text)
        room = verifier.max_tokens - verifier.overhead - len(own.ids)
        unknown = self._unknown_words(claim.text, own)
        if room < _LEAST_ROOM or verifier.forged(own) or unknown.total() > _MOST_UNKNOWN * len(own.ids):
            return
        for window in windows:
            premise = window.text[:most_chars] + claim.known
            text = self._encode(premise)
            if verifier.forged(text):
                continue
            if unknown and not unknown.keys() <= self._unknown_words(premise, text).keys():
                continue
            if len(text.ids) > room:
                text = verifier.encode(premise)  # cutting changes it, and others read it too
                text.truncate(room)
            yield window, own, text

    def _encode(self, text: str) -> Encoding:
        encoding = self._encoded.get(text)
        if encoding is None:
            if len(self._encoded) >= _TEXTS_REMEMBERED:
                self._encoded.clear()
            encoding = self._encoded[text] = self._verifier.encode(text)
        return encoding

    def _unknown_words(self, text: str, tokens: Encoding) -> Counter[str]:
        words = (text[start:end].casefold() for start, end in self._verifier.unknown(tokens))
        return Counter(word for word in words if any(char.isalnum() for char in word))


def unsupported_spans(
    text: str, tokens: Sequence[tuple[int, int, float]], least: float
) -> list[tuple[int, int]]:
    """The spans of ``text``, a claim, whose words are unsupported with a probability of at least ``least``.

    Code points, ascending, whole words as they are written; neighbouring words are one span.
    """
    words = written(text)
    starts, ends = [start for start, _ in words], [end for _, end in words]
    spans: list[tuple[int, int]] = []
    for start, end, unsupported in tokens:
        first, after = bisect_right(ends, start), bisect_left(starts, end)
        if unsupported < least or end <= start or first >= after:
            continue
        if spans and first <= bisect_left(ends, spans[-1][1]) + 1:
            spans[-1] = spans[-1][0], max(ends[after - 1], spans[-1][1])
        else:
            spans.append((starts[first], ends[after - 1]))
    return spans


@dataclass(frozen=True, slots=True)
class Reworded:
    """A claim as the verifier reads it, and the way back.

    Its figures are written as the sources write them: whether one is the same in another notation ("9 W",
    "nine watts") is found out exactly (``guardrail.figures``), and the verifier, which reads digits badly,
    need not guess it again. Before an item of a list stands what leads in to it.
    """

    text: str
    pieces: tuple[tuple[int, int, int, int], ...]
    """``(start, end, start in the claim, end in the claim)`` of what was put in, ascending."""
    known: str = ""
    """What was found out about its figures, read behind every window: "$588 follows from $49 and 12."."""

    def in_claim(self, start: int, end: int) -> tuple[int, int]:
        """The span of the claim that a span of ``text`` stands for."""
        return self._back(start, last=False), self._back(end, last=True)

    def _back(self, at: int, *, last: bool) -> int:
        shift = 0
        for start, end, own_start, own_end in self.pieces:
            if at < start or (at == start and not last):
                break
            if at < end or (at == end and last):
                return own_end if last else own_start
            shift = own_end - end
        return at + shift


def reworded(
    text: str, checks: Sequence[FigureCheck], lead_in: str = "", question: str = "", *, row: bool = False
) -> Reworded:
    """A claim with those of its figures that a source has in another notation as that source writes them,
    after the end of a lead-in that goes on in it, or the question that a few words answer."""
    before = _leading(lead_in, text) or ("" if lead_in else _asking(question, text))
    parts = [before]
    at, length = 0, len(before)
    pieces = [(0, length, 0, 0)] if before else []
    told = {check.figure: other for check in checks if (other := _as_in_source(check, checks)) is not None}
    written_otherwise = [(figure.start, figure.end, other) for figure, other in told.items()]
    between = _headers(text, lead_in) if row else []
    if before.endswith("'s ") and (colon := _COLON.search(text)):
        between = [(*colon.span(), " is ")]
    for start, end, other in sorted([*written_otherwise, *between]):
        if start < at:
            continue
        parts += (text[at:start], other)
        length += start - at
        pieces.append((length, length + len(other), start, end))
        length += len(other)
        at = end
    return Reworded("".join((*parts, text[at:])), tuple(pieces), _known(checks, told))


def _headers(text: str, lead_in: str) -> list[tuple[int, int, str]]:
    """What is put between the cells of a row of a table, where prose has commas, so that it reads as it is
    said in sentences: "Northgate's day is Tuesday; its bin is green" of "Northgate, Tuesday, green"."""
    heads = lead_in.split(", ")
    commas = list(re.finditer(", ", text))
    if not commas or len(heads) != len(commas) + 1:
        return []
    joints = ("'s", *["; its"] * len(commas))
    parted = zip(commas, joints, heads[1:], strict=False)
    return [(*comma.span(), f"{joint} {head} is ") for comma, joint, head in parted]


def _as_in_source(check: FigureCheck, checks: Sequence[FigureCheck]) -> str | None:
    """How the sources write a figure of a claim; of a time that is calculated, as they write the time before
    it: with hours up to 24."""
    figure, source = check.figure, check.source
    if check.state is State.FOUND and source is not None and interchangeable(figure, source):
        return source.text if figure.text.casefold() != source.text.casefold() else None
    if check.state is not State.DERIVED or figure.kind is not Kind.TIME or not _halved(figure):
        return None
    times = [c.source for c in checks if c.figure in check.operands and c.source is not None]
    if not times or any(time.kind is Kind.TIME and _halved(time) for time in times):
        return None
    hour, minute = divmod(int(figure.values[0]), 60)
    return f"{hour:02}:{minute:02}"


def _halved(time: Figure) -> bool:
    """Whether a time is written with "a.m." or "p.m."."""
    return _HALVED.search(time.text) is not None


def _known(checks: Sequence[FigureCheck], told: Mapping[Figure, str]) -> str:
    """What the sources' figures make of a claim's, in words: the verifier can't calculate or convert."""
    said = []
    for check in checks[:_MOST_KNOWN]:
        figure, source = check.figure, check.source
        if check.state is State.DERIVED and check.operands:
            operands = " and ".join(told.get(operand, _folded(operand)) for operand in check.operands)
            said.append(f" {told.get(figure, _folded(figure))} follows from {operands}.")
        elif source is not None and check.state is State.FOUND and _rounds(figure, source, check.frame):
            said.append(f" {_folded(figure)} is {_folded(source)}.")
    return "".join(said)


def _rounds(figure: Figure, source: Figure, frame: float) -> bool:
    """Whether a figure is a source's with a limit or in another unit: "about 180 °F" of 82 °C."""
    spans = figure.upper is not None or source.upper is not None
    if frame < _LEAST_FRAME or spans or dimension(figure) != dimension(source) or dimension(figure) in _EXACT:
        return False
    other = figure.bound is not source.bound and not opposed(figure, source) and same_rate(figure, source)
    return other and not interchangeable(figure, source)


def _folded(figure: Figure) -> str:
    return " ".join(figure.text.split())


def _leading(lead_in: str, claim: str) -> str:
    """The sentence that an item of a list goes on with ("The ticket includes:"), or whose a value is by the
    heading above it ("Northgate's" of "Day: Tuesday"); else nothing."""
    text = lead_in.rstrip(" *_")
    if text.endswith((":", "：")):
        sentence = re.split(r"(?<=[.!?])\s", text[-_MOST_LEADING:])[-1]
        return f"{sentence[:-1].strip()} "
    heading = text.rsplit("\n", 1)[-1].strip(" *_#")
    if not heading or heading[-1] in ".!?" or heading.count(" ") >= _FEW_WORDS:
        return ""
    fragment = ":" in claim and claim.count(" ") < _FEW_WORDS and not _FINITE.search(claim.lower())
    return f"{heading}'s " if fragment else ""


def _asking(question: str, text: str) -> str:
    """What is asked, where the answer is not a sentence of its own: "$49" is right of one plan only."""
    asked = question.strip()
    if not asked.endswith("?") or len(asked) > _MOST_LEADING:
        return ""
    if text.count(" ") >= _FEW_WORDS or _FINITE.search(text.lower()):
        return ""
    return f"{asked[:-1].strip()}: "
