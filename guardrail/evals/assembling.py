"""Whole answers from the events of a topic, those that were streamed put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from guardrail.errors import DecodeError
from guardrail.evals.results import BadSample, Sample
from guardrail.events import (
    FlaggedCase,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    parse_input,
    parse_output,
)

MAX_OPEN_CHARS: Final = 256 * 1024 * 1024


@dataclass(slots=True)
class _Open:
    """An answer whose text is still coming."""

    head: ResponseStarted
    place: str
    texts: list[str] = field(default_factory=list)
    chars: int = 0


class Assembler:
    """Takes the records of input or flagged topics, each response's in order, and gives whole answers.

    Memory is bounded: past ``max_chars`` of answers that are not complete, the oldest is given up.
    """

    def __init__(self, max_chars: int = MAX_OPEN_CHARS) -> None:
        self._max_chars = max_chars
        self._open: dict[str, _Open] = {}
        self._chars = 0
        self.begun_before = 0
        """Events of answers whose beginning was not in the range."""

    def add(self, value: bytes, place: str) -> Iterator[Sample | BadSample]:
        """What one record completes. ``place`` is where it stands."""
        try:
            event = parse_input(value)
        except DecodeError as error:
            yield self._output(value, place, error)
            return
        if isinstance(event, Response):
            yield Sample(event, place=place)
        elif isinstance(event, ResponseStarted):
            if event.response_id in self._open:
                yield self._give_up(event.response_id, "began a second time before it was complete")
            opened = _Open(event, place)
            opened.chars = len(event.question) + sum(len(each.text) for each in event.contexts)
            self._open[event.response_id] = opened
            self._chars += opened.chars
        elif event.response_id not in self._open:
            self.begun_before += 1
        else:
            yield from self._go_on(event)
        while self._chars > self._max_chars and len(self._open) > 1:
            yield self._give_up(next(iter(self._open)), "did not end while much else came; it was given up")

    def end(self) -> Iterator[BadSample]:
        """What never became complete."""
        for response_id in list(self._open):
            yield self._give_up(response_id, "had no end in the range; read further with --until")

    def _go_on(
        self, event: ResponseDelta | ResponseCompleted | ResponseAborted
    ) -> Iterator[Sample | BadSample]:
        opened = self._open[event.response_id]
        if isinstance(event, ResponseDelta):
            if event.seq == len(opened.texts):
                opened.texts.append(event.text)
                opened.chars += len(event.text)
                self._chars += len(event.text)
            elif event.seq > len(opened.texts):
                yield self._give_up(event.response_id, f"delta {len(opened.texts)} is missing")
        elif isinstance(event, ResponseAborted):
            yield self._give_up(event.response_id, "was aborted, so its text is not whole")
        elif event.seq != len(opened.texts):
            yield self._give_up(event.response_id, f"{event.seq} deltas were sent, {len(opened.texts)} came")
        else:
            self._close(event.response_id)
            head = opened.head.model_dump(exclude={"type"}, by_alias=True)
            yield Sample(Response(**head, answer="".join(opened.texts)), place=opened.place)

    def _give_up(self, response_id: str, why: str) -> BadSample:
        opened = self._close(response_id)
        return BadSample(opened.place, f"the answer that began here {why}", opened.chars)

    def _close(self, response_id: str) -> _Open:
        opened = self._open.pop(response_id)
        self._chars -= opened.chars
        return opened

    def _output(self, value: bytes, place: str, error: DecodeError) -> Sample | BadSample:
        try:
            case = parse_output(value)
        except DecodeError:
            return BadSample(place, str(error), len(value))
        if not isinstance(case, FlaggedCase):
            return BadSample(place, f"type '{case.type}': not an answer; read rag.responses or rag.flagged")
        if "contexts" in case.omitted or "answer" in case.omitted:
            return BadSample(place, "a flagged case without its documents can't be judged")
        told = (
            "response_id",
            "question",
            "contexts",
            "answer",
            "route",
            "tenant",
            "generator_model",
            "metadata",
        )
        return Sample(Response(**{name: getattr(case, name) for name in told}), place=place)
