"""A session that is stored as it goes, and that another process can resume.

``guardrail.session.state`` defines the formats. The stored state grows with the text and no faster: each
piece of text, segment, claim and verdict is written once, and only while it can still matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from guardrail.claims.cutter import ClaimCutter, CutPosition, CutSegment, Cutter, ResumingCutter
from guardrail.claims.model import Claim, Segment
from guardrail.events import ClaimVerdict, Context, Interruption, Response, ResponseHead
from guardrail.policy import Policy
from guardrail.session.effects import AskJudge, Effect
from guardrail.session.machine import HeldSegment, Pending, Session
from guardrail.session.outputs import Deliveries
from guardrail.session.state import MOST, STATE_VERSION, SessionState, Standing, read_state, salvage
from guardrail.verdicts import Judgement

Facts = dict[str, Any]
"""Names and JSON-able values."""


class Journal:
    """What is new about one session, and what has been stored already."""

    __slots__ = ("_claims", "_known", "_number", "_parts", "_ready", "_replaced", "cut", "verdicts")

    def __init__(self) -> None:
        # New since the last write; the session adds to these as it goes.
        self.cut: list[CutSegment] = []
        self.verdicts: list[tuple[Claim, Judgement, float]] = []
        """With the latency in milliseconds."""
        self._number = 0
        self._known = Standing()
        self._claims: set[int] = set()  # written as claims without a verdict
        self._parts = self._ready = self._replaced = 0  # how many of each are written

    def take_up(self, state: SessionState, parts: int, deliveries: Deliveries) -> None:
        """Continue after the records of ``state``."""
        self._number = state.records
        self._known = state.standing
        self._claims.update(claim.index for held in state.open for claim in held.pending)
        self._note_lengths(parts, deliveries)

    def forget(self) -> None:
        """The session is decided: nothing that led to it matters any more."""
        self.cut.clear()
        self.verdicts.clear()
        self._claims.clear()

    def write(
        self,
        standing: Standing,
        parts: Sequence[str],
        contexts: Sequence[Context],
        deliveries: Deliveries,
        is_open: Callable[[Segment], bool],
        is_pending: Callable[[Claim], bool],
    ) -> Facts | None:
        """What is new, or None."""
        facts = standing.since(self._known)
        self._known = standing
        text = "".join(parts[self._parts :])
        new: Facts = {
            "text": text,
            "segments": [_segment(cut.segment) for cut in self.cut if is_open(cut.segment)],
            "claims": [_claim(claim) for cut in self.cut for claim in cut.claims if is_pending(claim)],
            "verdicts": [self._verdict(*said, contexts) for said in self.verdicts],
            "ready": [
                [segment.index, decision.value, rule]
                for segment, decision, rule, _, _ in deliveries.ready[self._ready :]
            ],
            "replaced": [list(span) for span in deliveries.replaced[self._replaced :]],
            "kinds": [
                [cut.segment.index, cut.segment.kind.value] for cut in self.cut if not is_open(cut.segment)
            ],
        }
        self._claims.update(claim["index"] for claim in new["claims"])
        self.cut.clear()
        self.verdicts.clear()
        self._note_lengths(len(parts), deliveries)
        facts.update((name, value) for name, value in new.items() if value)
        if not facts:
            return None
        written = {"v": STATE_VERSION, "number": self._number, **facts}
        self._number += 1
        return written

    def write_silent(self, next_seq: int) -> Facts | None:
        """That there is no more output: written once, in place of all earlier records."""
        if self._known.decided:
            return None
        self._known.decided = True
        return {"v": STATE_VERSION, "number": 0, "next_seq": next_seq, "decided": True}

    def _note_lengths(self, parts: int, deliveries: Deliveries) -> None:
        self._parts = parts
        self._ready, self._replaced = len(deliveries.ready), len(deliveries.replaced)

    def _verdict(
        self, claim: Claim, judgement: Judgement, latency_ms: float, contexts: Sequence[Context]
    ) -> Facts:
        facts: Facts = {"claim": claim.index, "latency_ms": latency_ms}
        if claim.index in self._claims:
            self._claims.discard(claim.index)
        else:
            facts |= _place(claim)
        return facts | judgement.pack(contexts, claim.start)


def _segment(segment: Segment) -> Facts:
    facts: Facts = {
        "index": segment.index,
        "kind": segment.kind.value,
        "span": [segment.start, segment.end],
        "body": list(segment.body),
    }
    return facts | {"header": True} if segment.header else facts


def _claim(claim: Claim) -> Facts:
    facts = {"index": claim.index} | _place(claim)
    return facts | {"lead_in": claim.lead_in} if claim.lead_in else facts


def _place(claim: Claim) -> Facts:
    span, severity = [claim.start, claim.end], str(claim.severity)
    facts: Facts = {"segment": claim.segment, "span": span, "severity": severity}
    return facts | {"reasons": list(claim.severity_reasons)} if claim.severity_reasons else facts


UNREADABLE: Final = "session_state_unreadable"


class StoredSession(Session):
    """``capture`` returns what is new since the last time; ``restored`` makes the session from all captures.

    A restored session continues as the captured one would have: releases and judgements stand, and ``resume``
    asks again only about claims without a verdict. Given the same events it has the same effects, times
    apart.
    """

    __slots__ = ("_excused_ms", "_journal")

    def __init__(
        self,
        head: ResponseHead,
        policy: Policy,
        cutter: Cutter,
        *,
        now: float,
        max_answer_chars: int,
        challenger: Policy | None = None,
    ) -> None:
        super().__init__(
            head, policy, cutter, now=now, max_answer_chars=max_answer_chars, challenger=challenger
        )
        self._journal = Journal()
        self._excused_ms = 0  # how far the deadline has been put off

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
        challenger: Policy | None = None,
        excused_s: float = 0.0,
        unreadable: bool = False,
    ) -> Self:
        """The session whose captures, in order, are ``progress``.

        ``started_at`` is when it began, on the clock of ``now``; ``reading`` converts Unix milliseconds to
        readings of that clock. ``excused_s``: how long nobody held the session, which its deadline doesn't
        count; what was excused before is in ``progress``. Of an ``unreadable`` one it is what can be
        salvaged; unless that is decided, end it. Raises UnreadableSession, and StateError for state of a
        newer version.
        """
        state = salvage(progress, UNREADABLE) if unreadable else read_state(head, policy, progress)
        standing = state.standing
        cutter = ResumingCutter(new_cutter, state.text, CutPosition(*standing.cut))
        session = cls(
            head, policy, cutter, now=started_at, max_answer_chars=max_answer_chars, challenger=challenger
        )
        if head.deadline_ms is not None:
            session._excused_ms = min(MOST, standing.excused_ms + round(excused_s * 1000))
            session._due += session._excused_ms / 1000
        session._stand_at(state, now, reading)
        if not standing.decided:
            session._take_up(state, now)
        session._journal.take_up(state, len(session._parts), session._out)
        return session

    def resume(self, now: float) -> list[Effect]:
        """Ask again about claims without a verdict, and cut the rest of a text that had ended."""
        effects: list[Effect] = []
        if self._pending:
            asked = ((claim_id, pending.claim) for claim_id, pending in self._pending.items())
            effects.append(AskJudge(tuple(asked)))
        if self._reading and (self.input_ended or self._incomplete_rule is not None):
            self._reading = False
            self._text_ended_at = now
            effects += self._end_cutting((), now)
        return effects

    def capture(self, unix_ms: Callable[[float], int]) -> Facts | None:
        """What is new since the last capture, as guardrail.session.state describes it; None: nothing.

        ``unix_ms`` converts a reading of the session's clock to Unix milliseconds.
        """
        journal = self._journal
        if self.silent:
            return journal.write_silent(self.next_seq)
        standing = self._standing(unix_ms)
        first_open = standing.resolved
        whole = isinstance(self.head, Response)  # whose text is in the head
        everything = not self._streaming and not self._observing

        def is_open(segment: Segment) -> bool:
            return everything or segment.index >= first_open

        def is_pending(claim: Claim) -> bool:
            return self._make.claim_id(claim) in self._pending

        parts = () if whole else self._parts
        return journal.write(standing, parts, self.head.contexts, self._out, is_open, is_pending)

    # ----------------------------------------------------------------------------------- inside

    def _standing(self, unix_ms: Callable[[float], int]) -> Standing:
        position = self._cutter.position
        after_end = self._observing and self._text_ended_at is not None
        ended_at = None if self._uncut else self._text_ended_at  # whoever resumes it has to cut the rest
        early, stopped = self._ended_early, self._stopped
        return Standing(
            next_seq=self.next_seq,
            chars=self.answer_chars if after_end else None,
            cut=(position.chars, position.segments, position.claims),
            resolved=self._queue[0].segment.index if self._queue else position.segments,
            delivered=self._out.seq,
            released=self._out.released_end,
            worst=(self._decider.worst, self._decider.worst_rule),
            incomplete=self._incomplete_rule,
            judging_stopped=self._judging_stopped,
            ended_at=None if early is None else (early.after, early.forced),
            stopped_at=None if stopped is None else stopped.after,
            decided=self.decided,
            ended=self.input_ended,
            text_ended_ms=None if ended_at is None else unix_ms(ended_at),
            first_verdict_ms=None if self._first_verdict_at is None else unix_ms(self._first_verdict_at),
            excused_ms=self._excused_ms,
            usage=self.usage,
        )

    def _add_segments(self, cut: Iterable[CutSegment], now: float) -> list[Effect]:
        cut = list(cut)
        self._journal.cut += cut
        return super()._add_segments(cut, now)

    def _verdict_on(self, claim: Claim, judgement: Judgement, latency_ms: float) -> ClaimVerdict:
        verdict = super()._verdict_on(claim, judgement, latency_ms)
        self._journal.verdicts.append((claim, judgement, verdict.latency_ms))
        return verdict

    def _let_go(self) -> None:
        super()._let_go()
        self._journal.forget()

    def _stand_at(self, state: SessionState, now: float, reading: Callable[[int], float]) -> None:
        standing = state.standing
        self.next_seq = standing.next_seq
        self.answer_chars = state.answer_chars
        self.usage = standing.usage
        self.decided = standing.decided
        self.input_ended = standing.ended
        self._decider.worst, self._decider.worst_rule = standing.worst
        self._incomplete_rule = standing.incomplete
        self._judging_stopped = standing.judging_stopped
        self._out.seq, self._out.released_end = standing.delivered, standing.released
        self._last_event_at = now
        if standing.text_ended_ms is not None:
            self._text_ended_at = min(now, reading(standing.text_ended_ms))
        if standing.first_verdict_ms is not None:
            self._first_verdict_at = min(now, reading(standing.first_verdict_ms))
        self._reading = not self.decided and self._text_ended_at is None
        if self.decided:
            self._let_go()

    def _take_up(self, state: SessionState, now: float) -> None:
        if state.text:
            self._parts.append(state.text)
        self._out.ready += state.ready
        self._out.replaced += state.replaced
        self._claims += state.resolved
        self._decider.count(state.resolved)
        self._take_up_course(state)
        due = min(now + self._claim_timeout_s, self._due)
        for found in state.open:
            held = HeldSegment(found.segment, len(found.pending), found.verdicts)
            self._queue.append(held)
            for claim in found.pending:
                self._pending[self._make.claim_id(claim)] = Pending(claim, held, now, due)

    def _take_up_course(self, state: SessionState) -> None:
        claims = Counter(verdict.segment for verdict in state.resolved)
        standing = state.standing
        resolved = range(standing.cut[1] - len(state.open))
        self._resolved += [(state.kinds.get(segment), claims[segment]) for segment in resolved]
        if standing.incomplete is not None:
            after, forced = standing.ended_at or (len(resolved), False)
            self._ended_early = Interruption(rule=standing.incomplete, after=after, forced=forced)
        if standing.judging_stopped is not None:
            self._stopped = Interruption(rule=standing.judging_stopped, after=standing.stopped_at or 0)
