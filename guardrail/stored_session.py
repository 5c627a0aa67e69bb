"""A session that can be written down as it goes, and taken up again by another process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from guardrail.claims.cutter import ClaimCutter, CutSegment, Cutter
from guardrail.claims.model import Claim, Segment
from guardrail.claims.resuming import ResumingCutter
from guardrail.effects import Effect, Judge
from guardrail.events import ClaimVerdict, Response, ResponseHead
from guardrail.judges.base import Judgement
from guardrail.policy import Policy
from guardrail.session import Held, Pending, Session
from guardrail.session_journal import Facts, Journal
from guardrail.session_state import SessionState, read_state, salvage

UNREADABLE: Final = "session_state_unreadable"


class StoredSession(Session):
    """``capture`` says what is new since the last time; ``restored`` makes the session of all captures.

    A restored session goes on as the captured one would have: what was released and judged stays so, and
    only claims that had no verdict are asked again, by ``resume``. Given the same events it has the same
    effects, times apart.
    """

    __slots__ = ("_journal",)

    def __init__(
        self, head: ResponseHead, policy: Policy, cutter: Cutter, *, now: float, max_answer_chars: int
    ) -> None:
        super().__init__(head, policy, cutter, now=now, max_answer_chars=max_answer_chars)
        self._journal = Journal()

    @classmethod
    def restored(
        cls,
        head: ResponseHead,
        policy: Policy,
        progress: Sequence[Mapping[str, Any]],
        *,
        new_cutter: Callable[[], ClaimCutter],
        started_at: float,
        now: float,
        reading: Callable[[int], float],
        max_answer_chars: int,
    ) -> Self:
        """The session that ``progress`` was captured of, in this order.

        ``started_at`` is when it began, on the clock of ``now``; ``reading`` turns Unix milliseconds into
        readings of that clock. Raises UnreadableSession, and StateError for state of a newer version.
        """
        state = read_state(head, policy, progress)
        return cls._of(
            state, head, policy, new_cutter, started_at, now, reading, max_answer_chars=max_answer_chars
        )

    @classmethod
    def salvaged(
        cls,
        head: ResponseHead,
        policy: Policy,
        progress: Sequence[Mapping[str, Any]],
        *,
        new_cutter: Callable[[], ClaimCutter],
        now: float,
        max_answer_chars: int,
    ) -> Self:
        """What can be had of a session whose state can't be read. Unless it is decided, end it."""
        state = salvage(progress, UNREADABLE)
        return cls._of(
            state, head, policy, new_cutter, now, now, lambda _: now, max_answer_chars=max_answer_chars
        )

    def resume(self, now: float) -> list[Effect]:
        """Ask again for the claims that have no verdict, and cut what was left of a text that had ended."""
        effects: list[Effect] = []
        if self._pending:
            asked = ((claim_id, pending.claim) for claim_id, pending in self._pending.items())
            effects.append(Judge(tuple(asked)))
        if self._reading and (self.input_ended or self._incomplete_rule is not None):
            self._reading = False
            self._text_ended_at = now
            effects += self._end_cutting((), now)
        return effects

    def capture(self, unix_ms: Callable[[float], int]) -> Facts | None:
        """What is new since the last capture, as guardrail.session_state describes it; None: nothing.

        ``unix_ms`` turns a reading of the session's clock into Unix milliseconds.
        """
        journal = self._journal
        if self.silent:
            return journal.write_silent(self.next_seq)
        position = self._cutter.position
        first_open = self._queue[0].segment.index if self._queue else position.segments
        after_end = self._observing and self._text_ended_at is not None
        ended_at = None if self._uncut else self._text_ended_at  # who takes it up has to cut the rest
        standing: Facts = {
            "next_seq": self.next_seq,
            "chars": self.answer_chars if after_end else None,
            "cut": list(position),
            "resolved": first_open,
            "delivered": self._out.seq,
            "released": self._out.released_end,
            "worst": [self._worst.value, self._worst_rule],
            "incomplete": self._incomplete_rule,
            "judging_stopped": self._judging_stopped,
            "decided": self.decided,
            "ended": self.input_ended,
            "text_ended_ms": None if ended_at is None else unix_ms(ended_at),
            "first_verdict_ms": None if self._first_verdict_at is None else unix_ms(self._first_verdict_at),
            "usage": self.usage.model_dump(exclude_defaults=True),
        }
        whole = isinstance(self.head, Response)  # whose text stands in the head
        everything = not self._streaming and not self._observing

        def is_open(segment: Segment) -> bool:
            return everything or segment.index >= first_open

        def is_pending(claim: Claim) -> bool:
            return self._make.claim_id(claim) in self._pending

        parts = () if whole else self._parts
        return journal.write(standing, parts, self.head.contexts, self._out, is_open, is_pending)

    # ----------------------------------------------------------------------------------- inside

    def _add_segments(self, cut: Iterable[CutSegment], now: float) -> list[Effect]:
        cut = list(cut)
        self._journal.cut += cut
        return super()._add_segments(cut, now)

    def _verdict_on(self, claim: Claim, judgement: Judgement, latency_ms: float) -> ClaimVerdict:
        verdict = super()._verdict_on(claim, judgement, latency_ms)
        self._journal.verdicts.append(verdict)
        return verdict

    def _let_go(self) -> None:
        super()._let_go()
        self._journal.forget()

    @classmethod
    def _of(
        cls,
        state: SessionState,
        head: ResponseHead,
        policy: Policy,
        new_cutter: Callable[[], ClaimCutter],
        started_at: float,
        now: float,
        reading: Callable[[int], float],
        *,
        max_answer_chars: int,
    ) -> Self:
        cutter = ResumingCutter(new_cutter, state.text, state.cut)
        session = cls(head, policy, cutter, now=started_at, max_answer_chars=max_answer_chars)
        session._stand_at(state, now, reading)
        if not state.decided:
            session._take_up(state, now)
        session._journal.take_up(
            state.records,
            state.standing,
            (claim.index for held in state.open for claim in held.pending),
            len(session._parts),
            session._out,
        )
        return session

    def _stand_at(self, state: SessionState, now: float, reading: Callable[[int], float]) -> None:
        self.next_seq = state.next_seq
        self.answer_chars = state.answer_chars
        self.usage = state.usage
        self.decided = state.decided
        self.input_ended = state.input_ended
        self._worst, self._worst_rule = state.worst
        self._incomplete_rule = state.incomplete_rule
        self._judging_stopped = state.judging_stopped
        self._out.seq, self._out.released_end = state.delivered, state.released_end
        self._last_event_at = now
        if state.text_ended_ms is not None:
            self._text_ended_at = min(now, reading(state.text_ended_ms))
        if state.first_verdict_ms is not None:
            self._first_verdict_at = min(now, reading(state.first_verdict_ms))
        self._reading = not self.decided and self._text_ended_at is None
        if self.decided:
            self._let_go()

    def _take_up(self, state: SessionState, now: float) -> None:
        if state.text:
            self._parts.append(state.text)
        self._out.ready += state.ready
        self._out.replaced += state.replaced
        self._claims += state.resolved
        for verdict in state.resolved:
            self._score.add(verdict.severity, verdict.verdict, verdict.support)
        due = min(now + self._claim_timeout_s, self._due)
        for found in state.open:
            held = Held(found.segment, len(found.pending), found.verdicts)
            self._queue.append(held)
            for claim in found.pending:
                self._pending[self._make.claim_id(claim)] = Pending(claim, held, now, due)
