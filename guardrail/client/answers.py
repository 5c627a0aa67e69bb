"""One answer inside the client: a state machine between the token stream, the guard and the reader."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from guardrail.client.transport import Headers, OutgoingRecord
from guardrail.errors import AnswerBlocked, GuardrailError, GuardTimeout, TransportError
from guardrail.events import (
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    Span,
)
from guardrail.inputs import as_json

if TYPE_CHECKING:
    from guardrail.client.client import ClientLane, GuardClient

TimeoutPolicy = Literal["raise", "message", "pass"]
BlockPolicy = Literal["raise", "yield"]

MAX_DELTA_CHARS: Final = 8_000
"""Longer pieces of text are sent as several events, far below every limit on the size of a record."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of an answer, to be shown.

    ``replaces`` is true for one that is shown in place of everything shown so far: a block's message, under
    ``on_block="yield"``. ``decision`` is the guard's: RELEASE, FLAG (show it, marked), REDACT (``text`` is
    the policy's replacement) or BLOCK. It is None, and ``verified`` False, where the guard decided nothing:
    under ``on_timeout="pass"`` the text is the model's, under ``"message"`` it is the client's message.
    ``span`` is the original's place in the text of the model, in code points.
    """

    text: str
    decision: Decision | None
    rule: str | None = None
    verified: bool = True
    replaces: bool = False
    span: Span | None = None
    claim_ids: tuple[str, ...] = ()

    @property
    def flagged(self) -> bool:
        """To be shown, and marked as doubtful."""
        return self.decision is Decision.FLAG

    @property
    def redacted(self) -> bool:
        """The policy's words in place of the model's."""
        return self.decision is Decision.REDACT


_LATE: Final = (GuardTimeout, TransportError)
"""What ``on_timeout`` is for."""


@dataclass(frozen=True, slots=True)
class Patience:
    """What the caller of one answer wants where it is blocked, or where the guard says nothing."""

    on_block: BlockPolicy
    on_timeout: TimeoutPolicy
    timeout_s: float
    stall_timeout_s: float | None
    timeout_message: str
    headers: Headers = ()


class Stream:
    """One answer inside the client: what was taken from the model, what was decided, what was read."""

    def __init__(self, client: GuardClient, head: ResponseStarted | Response, patience: Patience) -> None:
        self.loop = asyncio.get_running_loop()
        self._client = client
        self._head: bytes | None = as_json(head)
        self._patience = patience
        self.response_id = head.response_id
        self.key = head.response_id.encode()
        self.lane: ClientLane | None = None
        self.pump: asyncio.Task[None] | None = None
        self.pulling = False
        """May the pump be cancelled? Not while it closes the source."""
        self.room = asyncio.Event()
        self.group: str | None = None
        """The group of guards that was the first to write about it."""
        self.at_bound = False
        self.input_over = False
        # Code points, from the beginning of the model's text: taken, decided, read by the caller.
        self.pulled = 0
        self.decided = 0
        self._read = 0
        self._texts: list[str] = []  # taken, and to be written
        self._tail = ""  # taken and not decided, where it may have to be passed through
        self._next_seq = 0
        self._end: ResponseCompleted | ResponseAborted | None = None
        self._nothing_to_write = False
        self.next_delivery = 0
        self._pieces: deque[Piece] = deque()
        self.final: DeliveryCompleted | DeliveryBlocked | None = None
        self.failure: GuardrailError | None = None
        self.source_error: Exception | None = None
        self._passing = False
        self._told = False  # the block or the message, which ends the answer
        self.left = False
        self._progress_at = self.loop.time()
        self._reader: asyncio.Future[None] | None = None
        self._whole = isinstance(head, Response)  # told in one event
        if isinstance(head, Response):
            self.pulled = len(head.answer)
            self._tail = head.answer

    @property
    def undecided(self) -> int:
        """Code points taken from the model that the guard has not decided."""
        return self.pulled - self.decided

    @property
    def unread(self) -> int:
        """Code points taken from the model that the caller has not read."""
        return self.pulled - self._read

    @property
    def over(self) -> bool:
        """Is no more text of the model wanted?"""
        return self.left or self.final is not None or (self.failure is not None and not self._passing)

    @property
    def awaited(self) -> bool:
        """Will the guard decide without any more text of the model?"""
        return self.input_over and self.undecided > 0

    # ---------------------------------------------------------------------------------- to write

    def pull(self, text: str) -> None:
        """Text of the model. Raises TypeError and InputError for what can't be text."""
        if not isinstance(text, str):
            raise TypeError(f"deltas: give texts, not {type(text).__name__}")
        if not text or self.over:
            return
        if not text.isascii():
            as_json(ResponseDelta(response_id=self.response_id, seq=0, text=text))
        if not self.undecided:
            self.progressed()
        start, self.pulled = self.pulled, self.pulled + len(text)
        self._texts.append(text)
        if self._passing:
            self.decided = self.pulled
            self._append(self._unverified(text, start))
        else:
            self._client.count(len(text))
            if self._patience.on_timeout == "pass":
                self._tail += text
        self._write_soon()

    def end_input(self, aborted: str | None) -> None:
        """No more text comes, or none is wanted. ``aborted`` is why the answer ends before it is complete."""
        self.end_without_event()
        if self._end is None:
            if aborted is None and not self.over:
                self._end = ResponseCompleted(response_id=self.response_id, seq=0)
            else:
                self._end = ResponseAborted(response_id=self.response_id, reason=aborted or "decided")
                if self.over:
                    self._texts.clear()  # nobody will read it
            self._write_soon()

    def end_without_event(self) -> None:
        """The text is complete, as the head has told."""
        self._client.input_ended(self)
        self.progressed()

    def take(self) -> list[OutgoingRecord]:
        """The events that are to be written now."""
        if self._nothing_to_write:
            return []
        values = []
        if self._head is not None:
            values.append(self._head)
            self._head = None
            self._nothing_to_write = self._whole
        if self._texts:
            text = "".join(self._texts)
            self._texts.clear()
            for start in range(0, len(text), MAX_DELTA_CHARS):
                piece = text[start : start + MAX_DELTA_CHARS]
                delta = ResponseDelta(response_id=self.response_id, seq=self._next_seq, text=piece)
                values.append(delta.to_json())
                self._next_seq += 1
        if self._end is not None and not self._whole:
            values.append(self._end.model_copy(update={"seq": self._next_seq}).to_json())
            self._nothing_to_write = True
        return [OutgoingRecord(self.key, value, self._patience.headers) for value in values]

    def unwritten(self, error: TransportError) -> None:
        """An event could not be written: what would come after it means nothing to the guard."""
        self._nothing_to_write = True
        self.fail(error)

    def _write_soon(self) -> None:
        if self.lane is not None and not self._nothing_to_write:
            self.lane.add(self)

    # ---------------------------------------------------------------------------------- deliveries

    def deliver(self, event: DeliverySegment | DeliveryCompleted | DeliveryBlocked) -> None:
        """What the guard wrote about this answer, in its order; what comes again is dropped by its number."""
        if self.over or (self._passing and not isinstance(event, DeliveryBlocked)):
            return
        if event.seq > self.next_delivery and not isinstance(event, DeliveryBlocked):
            self.fail(
                TransportError(
                    f"delivery {self.next_delivery} of response {self.response_id!r} is missing, number "
                    f"{event.seq} came; make the topic of the deliveries keep records for longer"
                )
            )
        elif not isinstance(event, DeliverySegment):
            self.final = event
            self.decide_all()
            self._stop_pump("decided")
        elif event.seq == self.next_delivery:
            self.next_delivery += 1
            self._decide(event.span[1])
            self._append(
                Piece(event.text, event.decision, event.rule, span=event.span, claim_ids=event.claim_ids)
            )
        self.progressed()
        self.room.set()

    def _decide(self, end: int) -> None:
        newly = min(end, self.pulled) - self.decided
        if newly > 0:
            self.decided += newly
            self._tail = self._tail[newly:]
            self._client.count(-newly)
        if not self.undecided:
            self._client.decided(self)

    def decide_all(self) -> None:
        """No more is expected of the guard."""
        self._decide(self.pulled)

    def _append(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._wake()

    def progressed(self) -> None:
        """The guard has said something, or its time begins."""
        self._progress_at = self.loop.time()
        self._wake()

    def fail(self, failure: GuardrailError) -> None:
        """The rest will not be verified."""
        if self.over or self._passing:
            return
        self.failure = failure
        if self._patience.on_timeout == "pass" and isinstance(failure, _LATE):
            self._passing = True
            tail, start = self._tail, self.decided
            self.decide_all()
            if tail:
                self._append(self._unverified(tail, start))
            self.room.set()
        else:
            self.decide_all()
            self._stop_pump(type(failure).__name__)
        self._wake()

    def give_up(self, failure: GuardrailError, reason: str) -> None:
        """The client closes: end the answer, whatever its policy says."""
        self._passing = False
        if self.final is None:
            self.failure = failure
        self._stop_pump(reason)
        self._client.forget(self)
        self._wake()

    def leave(self) -> None:
        """The caller reads no more."""
        if not self.left:
            self.left = True
            self._pieces.clear()
            self._stop_pump("left by the reader")
            self._client.forget(self)

    def _unverified(self, text: str, start: int) -> Piece:
        return Piece(text, None, self._not_verified(), verified=False, span=(start, start + len(text)))

    def _not_verified(self) -> str:
        return f"not verified: {type(self.failure).__name__}"

    def _stop_pump(self, reason: str) -> None:
        self.end_input(reason)
        if self.pump is not None and self.pulling:
            self.pulling = False
            self.pump.cancel()
        self.room.set()

    # ---------------------------------------------------------------------------------- to read

    async def next(self) -> Piece | None:
        """The next piece, None at the end. Raises what ends the answer otherwise."""
        while True:
            if self.left:
                return None
            if self._pieces:
                piece = self._pieces.popleft()
                if piece.span is not None:
                    self._read = piece.span[1]
                    self.room.set()
                return piece
            if self.final is not None:
                return self._decided(self.final)
            if self._passing:
                if self.input_over:
                    self._close(None)
                    return None
            elif self.failure is not None:
                return self._failed(self.failure)
            await self._changed()

    def _decided(self, final: DeliveryCompleted | DeliveryBlocked) -> Piece | None:
        if isinstance(final, DeliveryBlocked) and not self._told:
            self._told = True
            if self._patience.on_block == "yield":
                return Piece(final.message, Decision.BLOCK, final.rule, replaces=True)
            raise AnswerBlocked(
                self.response_id, final.message, final.rule, final.released_chars, final.score
            ) from self.source_error
        self._close(None)
        return None

    def _failed(self, failure: GuardrailError) -> Piece | None:
        if isinstance(failure, _LATE) and self._patience.on_timeout == "message":
            if self._told:
                self._close(None)
                return None
            self._told = True
            return Piece(self._patience.timeout_message, None, self._not_verified(), verified=False)
        self._close(failure)
        return None

    def _close(self, failure: GuardrailError | None) -> None:
        self._client.forget(self)
        if self.source_error is not None:
            raise self.source_error
        if failure is not None:
            raise failure

    def _deadline(self) -> float | None:
        """When the guard will have said nothing for too long."""
        if self._passing:
            return None
        if self.input_over or self.at_bound:
            return self._progress_at + self._patience.timeout_s
        if self._patience.stall_timeout_s is not None and self.undecided:
            return self._progress_at + self._patience.stall_timeout_s
        return None

    async def _changed(self) -> None:
        """Wait for any news; at the deadline the answer fails."""
        if self._reader is not None:
            raise GuardrailError(f"response {self.response_id!r} is read by another task already")
        self._reader = self.loop.create_future()
        try:
            async with asyncio.timeout_at(self._deadline()):
                await self._reader
        except TimeoutError:
            deadline = self._deadline()
            if deadline is not None and self.loop.time() >= deadline:
                self.fail(self._timeout())
        finally:
            self._reader = None

    def _timeout(self) -> GuardTimeout:
        over = self.input_over or self.at_bound
        waited = self._patience.timeout_s if over else self._patience.stall_timeout_s
        hint = (
            "a bound on undecided text was reached: max_held_chars must be above the longest answer of a "
            "policy that holds"
            if self.at_bound
            else "is 'guardrail run' at work on these topics, and was this id never used before?"
        )
        if others := self._client.skipped:
            hint += (
                f" What the groups {', '.join(others)} wrote was passed over: is the client's group right?"
            )
        return GuardTimeout(
            f"the guard said nothing of response {self.response_id!r} for {waited:g} s; {hint}"
        )

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
