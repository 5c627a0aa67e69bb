"""A cutter that goes on where an earlier process had stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from guardrail.claims.cutter import ClaimCutter, CutPosition, CutSegment

_NOWHERE: Final = CutPosition(0, 0, 0)


class ResumingCutter:
    """Cuts the rest of a text of which the first segments are known.

    Nothing is cut before the next text comes, so that many responses are taken up at little cost. Then the
    text so far is cut anew, for what its rest leans on: headings, lists, open fences, sentences before.
    Segments that end at or before ``position`` are dropped. Should none end there, because the text was cut
    by another version of this program, what follows is cut as if it stood alone. Either way the segments go
    on at ``position``, and the indexes of segments and claims count on from it.
    """

    __slots__ = ("_cutter", "_lacking", "_new_cutter", "_position", "_text")

    def __init__(self, new_cutter: Callable[[], ClaimCutter], text: str, position: CutPosition) -> None:
        self._new_cutter = new_cutter
        self._text = text
        self._position = position
        self._cutter: ClaimCutter | None = None
        self._lacking = _NOWHERE  # what to add to what the cutter says

    @property
    def position(self) -> CutPosition:
        """How far the text is cut."""
        if self._cutter is None:
            return self._position
        chars, segments, claims = self._cutter.position
        lacking = self._lacking
        return CutPosition(chars + lacking.chars, segments + lacking.segments, claims + lacking.claims)

    def feed(self, text: str) -> list[CutSegment]:
        """As ClaimCutter has it."""
        if self._cutter is not None:
            return self._moved(self._cutter.feed(text))
        known, cutter = self._resume()
        return known + self._moved(cutter.feed(text))

    def finish(self) -> list[CutSegment]:
        """As ClaimCutter has it."""
        if self._cutter is not None:
            return self._moved(self._cutter.finish())
        known, cutter = self._resume()
        return known + self._moved(cutter.finish())

    def release(self) -> None:
        """As ClaimCutter has it."""
        if self._cutter is not None:
            self._cutter.release()

    def _resume(self) -> tuple[list[CutSegment], ClaimCutter]:
        """Cut what there is, and find the place to go on at. With the segments that are final behind it."""
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
