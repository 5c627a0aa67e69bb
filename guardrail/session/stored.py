"""A session that is stored as it goes, and that another process can resume.

``guardrail.session.state`` defines the formats. The stored state grows with the text and no faster: each
piece of text, segment, claim and verdict is written once, and only while it can still matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, Self

from guardrail.claims.cutter import ClaimCutter, CutPosition, Cutter, ResumingCutter
from guardrail.claims.model import Claim, Segment
from guardrail.events import Context, Interruption, Response, ResponseHead
from guardrail.policy import Policy
from guardrail.session.machine import Ending, HeldSegment, News, Pending, Session
from guardrail.session.outputs import AskJudge, Deliveries, Effect
from guardrail.session.state import MOST, STATE_VERSION, SessionState, Standing, read_state, salvage
from guardrail.verdicts import Judgement

Facts = dict[str, Any]
"""Names and JSON-able values."""


class Journal(News):
    """What is new about one session, which adds to it as it goes, and what has been stored already."""

    __slots__ = ("_claims", "_known", "_number", "_parts", "_ready", "_replaced")

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._known = Standing()
        self._claims: set[int] = set()  # written as claims without a verdict
        self._parts = self._ready = self._replaced = 0  # how many of each are written

    def resume(self, state: SessionState, parts: int, deliveries: Deliveries) -> None:
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
        first_open: int,
        pending: Container[int],
    ) -> Facts | None:
        """What is new, or None. ``first_open``: the first segment that has to be stored; ``pending``: the
        numbers of claims without a verdict.
        """
        held = [cut for cut in self.cut if cut.segment.index >= first_open]
        facts: Facts = {
            "text": "".join(parts[self._parts :]),
            "segments": [_segment(segment) for segment, _ in held],
            "claims": [_claim(claim) for cut in self.cut for claim in cut.claims if claim.index in pending],
            "ready": [
                [segment.index, decision.value, rule]
                for segment, decision, rule, _, _ in deliveries.ready[self._ready :]
            ],
            "replaced": [list(span) for span in deliveries.replaced[self._replaced :]],
            "kinds": [
                [segment.index, segment.kind.value] for segment, _ in self.cut if segment.index < first_open
            ],
        }
        self._note_lengths(len(parts), deliveries)
        self._claims.update(claim["index"] for claim in facts["claims"])
        facts["verdicts"] = [self._verdict(*said, contexts) for said in self.verdicts]
        self.cut.clear()
        self.verdicts.clear()
        facts = {name: value for name, value in facts.items() if value} | standing.since(self._known)
        self._known = standing
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
        self._news = self._journal = Journal()
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
        session._journal.resume(state, len(session._parts), session._out)
        return session

    def resume(self, now: float) -> list[Effect]:
        """Ask again about claims without a verdict, and cut the rest of a text that had ended; tell what only
        waited for reasons."""
        if self._outcome is not None:
            return self.tell_verdict()
        effects: list[Effect] = []
        if self.pending:
            asked = ((claim_id, pending.claim) for claim_id, pending in self.pending.items())
            effects.append(AskJudge(tuple(asked)))
        if self.reading and (self.input_ended or self._incomplete_rule is not None):
            self.reading = False
            self._text_ended_at = now
            effects += self._end_cutting((), now)
        return effects

    def capture(self, unix_ms: Callable[[float], int]) -> Facts | None:
        """What is new since the last capture, as guardrail.session.state describes it; None: nothing.

        ``unix_ms`` converts a reading of the session's clock to Unix milliseconds.
        """
        journal = self._journal
        if self.decided and self.silent:
            return journal.write_silent(self.next_seq)
        standing = self._standing(unix_ms)
        parts = () if isinstance(self.head, Response) else self._parts  # whose text is in the head
        # Until the end a policy that holds needs all segments.
        first_open = standing.resolved if self._streaming or self._observing else 0
        pending = {one.claim.index for one in self.pending.values()}
        return journal.write(standing, parts, self.head.contexts, self._out, first_open, pending)

    # ----------------------------------------------------------------------------------- inside

    def _standing(self, unix_ms: Callable[[float], int]) -> Standing:
        position = self._cutter.position
        after_end = self._observing and self._text_ended_at is not None
        ended_at = None if self.uncut else self._text_ended_at  # whoever resumes it has to cut the rest
        early, stopped, outcome = self._ended_early, self._stopped, self._outcome
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
            outcome=None if outcome is None else (outcome.decision, outcome.rule, outcome.to_the_end),
            decided=self.decided and outcome is None,
            ended=self.input_ended,
            text_ended_ms=None if ended_at is None else unix_ms(ended_at),
            outcome_ms=None if outcome is None else unix_ms(outcome.at),
            first_verdict_ms=None if self._first_verdict_at is None else unix_ms(self._first_verdict_at),
            excused_ms=self._excused_ms,
            usage=self.usage,
        )

    def _release(self) -> None:
        super()._release()
        self._journal.forget()

    def _stand_at(self, state: SessionState, now: float, reading: Callable[[int], float]) -> None:
        standing = state.standing
        self.next_seq = standing.next_seq
        self.answer_chars = state.answer_chars
        self.usage = standing.usage
        if standing.outcome is not None and not standing.decided:
            at = now if standing.outcome_ms is None else min(now, reading(standing.outcome_ms))
            self._outcome = Ending(*standing.outcome, at)
        self.decided = standing.decided or self._outcome is not None
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
        self.reading = not self.decided and self._text_ended_at is None
        if standing.decided:
            self._release()

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
                self.pending[self._make.claim_id(claim)] = Pending(claim, held, now, due)

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
