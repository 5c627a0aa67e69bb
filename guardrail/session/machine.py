"""The state machine of one response: events in, effects out. It does no I/O and has no clock.

Life of a session::

    text ──cut──> segments ──Judge──> verdicts ──in text order──> release | redact | flag | block

Segments are resolved strictly in text order, each as soon as all its claims have a verdict and all earlier
segments are resolved. The decisions therefore depend only on the text and the verdicts, not on the order in
which verdicts arrive: the same answer gives the same delivery on every transport and at every speed.

Invariants (tests/property/test_session_properties.py):
- in ``hold`` and ``stream`` mode no text is released before the claims of its segment have a verdict;
- the released text is, redactions apart, a prefix of the response's text;
- in ``observe`` mode all text is released at once, whatever the judge says;
- every session ends with exactly one of ``delivery.completed`` and ``delivery.blocked``, and exactly one
  ``verdict.response``; nothing is delivered after them.

Reasons that come after their verdicts delay neither these nor any delivery: only the final verdict waits for
them, a moment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import ClassVar, Final

from guardrail.claims.cutter import MOST_CLAIMS, CutSegment, Cutter
from guardrail.claims.model import Claim, Segment
from guardrail.decisions import Decider, on_incomplete, redecide
from guardrail.errors import ProtocolError
from guardrail.events import (
    ChallengerDecision,
    ClaimVerdict,
    Decision,
    Interruption,
    ResponseHead,
    SegmentKind,
    Usage,
    Verdict,
)
from guardrail.policy import FailPolicy, Policy
from guardrail.session.outputs import (
    AskJudge,
    Cancel,
    Channel,
    CutOn,
    Deliveries,
    Effect,
    Emit,
    Explain,
    OutputEvents,
    timings,
)
from guardrail.verdicts import Judgement, better_of, beyond_most, unverified

_NOTHING: Final[list[Effect]] = []
# Looking up a module-level name is faster than a member of an enumeration.
_RELEASE, _BLOCK = Decision.RELEASE, Decision.BLOCK
_UNVERIFIED = Verdict.UNVERIFIED
_VERDICTS = Channel.VERDICTS
OBSERVED: Final = "observe mode"
_WAITED: Final = 0.25
_LEFT_TO_ASK_AGAIN: Final = 0.2  # of a claim's time
_TO_EXPLAIN: Final = (Verdict.PARTIALLY_SUPPORTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
REASONS_WITHIN_S: Final = 3.0
"""How long the final verdict waits for reasons, once everything is delivered."""
MOST_REASONS: Final = 8
"""Of a response, for its first claims that aren't supported: each is a call of a chat model."""


@dataclass(slots=True)
class HeldSegment:
    """A segment that is not resolved yet, and the verdicts on its claims so far."""

    segment: Segment
    missing: int
    verdicts: list[ClaimVerdict] = field(default_factory=list)
    cut_at: float | None = None  # unknown if another process cut it
    late_s: float = 0.0  # how long before that it had been written


@dataclass(slots=True)
class Pending:
    """A claim without a verdict. ``taken``: the judge is working on it, and it no longer waits behind
    others. ``hurried`` is what a judge said who had too little time, and is asked again, since ``again_at``.
    """

    claim: Claim
    held: HeldSegment
    asked_at: float
    due: float
    taken: bool = False
    hurried: Judgement | None = None
    again_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of a response whose final verdict waits for reasons, and when."""

    decision: Decision
    rule: str
    to_the_end: bool
    at: float


class News:
    """What was cut and judged since it was last written down; verdicts with their latency in ms."""

    __slots__ = ("cut", "verdicts")

    def __init__(self) -> None:
        self.cut: list[CutSegment] = []
        self.verdicts: list[tuple[Claim, Judgement, float]] = []


class Session:
    """One response from its start to its final events.

    Methods take ``now``, seconds on any monotonic clock, and return the effects to carry out, in order. They
    raise ProtocolError for an event that does not fit and leave the session unchanged; the caller then ends
    it with ``end_early``. A ``challenger`` decides on the same verdicts, and the final
    verdict reports its decision.
    """

    MOST_CUT_CHARS: ClassVar = 500
    """Of a text, at a time, before others have their turn: a few milliseconds of work,"""
    MOST_CUT_CLAIMS: ClassVar = 5
    """and claims of a longer text, which may have one in every four characters."""
    _PIECES: ClassVar = 25
    """That so many characters of a longer text are cut in, until there are as many claims."""
    MOST_AHEAD: ClassVar = 200
    """Claims without a verdict from which on no more is cut: more than a judge is asked at a time, and a
    small part of those that may wait in all, so that one long answer doesn't keep others from being read."""

    __slots__ = (
        "_challenger",
        "_claim_timeout_s",
        "_claims",
        "_cut",
        "_cut_later",
        "_cutter",
        "_decider",
        "_due",
        "_ended_early",
        "_ended_late_s",
        "_first_verdict_at",
        "_heard_at",
        "_incomplete_rule",
        "_judging_stopped",
        "_keep",
        "_last_event_at",
        "_make",
        "_max_answer_chars",
        "_news",
        "_observing",
        "_out",
        "_outcome",
        "_parts",
        "_queue",
        "_reasons",
        "_resolved",
        "_stopped",
        "_streaming",
        "_text_ended_at",
        "answer_chars",
        "decided",
        "head",
        "input_ended",
        "late_s",
        "next_seq",
        "pending",
        "policy",
        "reading",
        "started_at",
        "uncut",
        "usage",
    )

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
        self.head = head
        self.policy = policy
        self.decided = False  # the last delivery is out, and the final verdict, unless it waits for reasons
        self.input_ended = False  # no more text can come
        self.next_seq = 0
        self.answer_chars = 0
        self.usage = Usage()
        self._make = OutputEvents(head.response_id, policy)
        self._cutter = cutter
        self._cut = cutter.feed
        self._max_answer_chars = max_answer_chars
        self._parts: list[str] = []
        self._keep = self._parts.append
        self.uncut: deque[str] = deque()
        """What is not cut of the text so far, in pieces."""
        self._cut_later = False  # when there are fewer claims ahead
        self._queue: deque[HeldSegment] = deque()
        self.pending: dict[str, Pending] = {}
        """Claims without a verdict, by id, in the order of the text."""
        self._claims: list[ClaimVerdict] = []
        self._decider = Decider(policy)
        self._challenger = challenger
        # Kind and number of claims of each resolved segment.
        self._resolved: list[tuple[SegmentKind | None, int]] = []
        self._reasons: dict[str, str | None] = {}  # that come after their verdicts, by claim; None: not yet
        self._outcome: Ending | None = None
        self._ended_early: Interruption | None = None
        self._stopped: Interruption | None = None
        self._incomplete_rule: str | None = None
        self._out = Deliveries(self._make, policy.redaction(head.language))
        self._judging_stopped: str | None = None
        self.started_at = now
        self._last_event_at = now
        self._text_ended_at: float | None = None
        self._ended_late_s = 0.0
        self.late_s = 0.0
        """How long ago the latest input had been written when it was read."""
        self._first_verdict_at: float | None = None
        self._heard_at = float("-inf")  # when the judge last gave a verdict
        self._due = now + head.deadline_ms / 1000 if head.deadline_ms is not None else float("inf")
        self.reading = True
        """Whether more text to judge is expected: neither decided nor at the end of the text."""
        self._news: News | None = None  # kept by a session that is stored
        # Read for every segment, and slower to read from the policy.
        self._claim_timeout_s = policy.claim_timeout_ms / 1000
        self._streaming = policy.mode == "stream"
        self._observing = policy.mode == "observe"

    # ------------------------------------------------------------------------------------ state

    @property
    def closed(self) -> bool:
        """No more input or output."""
        return self.decided and self.input_ended and self._outcome is None

    @property
    def delivered(self) -> bool:
        """No more delivery, whatever input comes."""
        return self.decided and not self._observing

    @property
    def concluded(self) -> bool:
        """The final verdict is out, and what led to it is dropped."""
        return self.decided and self._outcome is None

    @property
    def silent(self) -> bool:
        """No more output, whatever input comes."""
        return self.delivered and self._outcome is None

    @property
    def next_deadline(self) -> float:
        """When ``tick`` must be called at the latest, as things stand; infinity if never."""
        due = self._reasons_due
        for first in self.pending.values():
            # Claims are asked in order with the same time limit, so the first is due first.
            due = first.due if first.taken else self._due_at(first)
            break
        if not self.input_ended:
            due = min(due, self._last_event_at + self.policy.incomplete_timeout_ms / 1000)
        return due

    @property
    def _reasons_due(self) -> float:
        """Until when the final verdict waits for reasons."""
        return float("inf") if self._outcome is None else self._outcome.at + REASONS_WITHIN_S

    @property
    def oldest_held_at(self) -> float | None:
        """Since when the oldest unreleased text waits: since it was written, in hold mode since the text's
        end was. None if there is none, or if that is unknown.
        """
        if self._observing or self.decided:
            return None
        if self.policy.mode == "hold":
            return None if self._text_ended_at is None else self._text_ended_at - self._ended_late_s
        if not self._queue or self._queue[0].cut_at is None:
            return None
        return self._queue[0].cut_at - self._queue[0].late_s

    def judging_started(self, claim_ids: Iterable[str]) -> tuple[dict[str, float], float]:
        """The judge has started on these claims, which are awaited: their time starts now.

        Returns when each of them expires, and when the time of the first began to run.
        """
        due: dict[str, float] = {}
        since = float("inf")
        for claim_id in claim_ids:
            one = self.pending[claim_id]
            due[claim_id] = one.due = self._due_at(one)
            one.taken = True
            since = min(since, max(one.asked_at, one.again_at, one.due - self._claim_timeout_s))
        return due, since

    def _due_at(self, pending: Pending) -> float:
        """When a claim expires. The time of a claim that waits behind others of its response counts from the
        latest verdict on them: a long answer is no reason to give up on a judge that is making progress.
        """
        if pending.taken:
            return pending.due
        return min(max(pending.due, self._heard_at + self._claim_timeout_s), self._due)

    def can_wait_until(self, claim_ids: Iterable[str], max_wait_s: float) -> float:
        """Until when all of these claims may wait to be judged together with others: ``max_wait_s`` from when
        each was cut, but only as long as three quarters of its time are left for judging.
        """
        pending = [self.pending[claim_id] for claim_id in claim_ids if claim_id in self.pending]
        waits = (one.asked_at + min(max_wait_s, (one.due - one.asked_at) * _WAITED) for one in pending)
        return min(waits, default=float("inf"))

    # ------------------------------------------------------------------------------------ input

    def joins(self, seq: int, chars: int) -> bool:
        """Whether pieces of text from ``seq`` on, so many characters, may be given as one: they fit, and
        nobody sees where one ends.
        """
        fits = self.answer_chars + chars <= self._max_answer_chars
        return seq == self.next_seq and self.reading and fits and not self._observing

    def delta(self, seq: int, text: str, now: float, pieces: int = 1) -> list[Effect]:
        """A piece of text, or several that ``joins`` allows. Ignores a repeated ``seq``; a gap raises
        ProtocolError.
        """
        if seq != self.next_seq or not self.reading:
            return self._pass_over(seq, text, now)
        answer_chars = self.answer_chars + len(text)
        if answer_chars > self._max_answer_chars:
            raise ProtocolError(
                "answer_too_long",
                f"the response is longer than {self._max_answer_chars:,} characters, the most of one answer",
            )
        self.next_seq = seq + pieces
        self._last_event_at = now
        self.answer_chars = answer_chars
        self._keep(text)
        if self.uncut or len(text) > self.MOST_CUT_CHARS or len(self.pending) >= self.MOST_AHEAD:
            return self._put_off(text, now)
        cut = self._cut(text)
        if self._observing:
            return self._let_through(text, cut, now)
        return self._add_segments(cut, now) if cut else _NOTHING

    def cut_on(self, now: float) -> list[Effect]:
        """Cut the next piece of text that arrived faster than it is cut: the response to ``CutOn``."""
        if not self.uncut:
            return _NOTHING
        if len(self.pending) >= self.MOST_AHEAD:
            self._cut_later = True
            return _NOTHING
        cut = []
        chars = claims = 0
        while self.uncut and chars < self.MOST_CUT_CHARS and claims < self.MOST_CUT_CLAIMS:
            piece = self.uncut.popleft()
            more = self._cut(piece)
            cut += more
            chars += len(piece)
            claims += sum(len(found.claims) for found in more)
        if self.uncut:
            return [*self._add_segments(cut, now), CutOn()]
        if self._text_ended_at is None:
            return self._add_segments(cut, now)
        return self._end_cutting(cut, now)

    def complete(self, seq: int, now: float) -> list[Effect]:
        """The text is complete after ``seq`` deltas."""
        if self.input_ended:
            return _NOTHING
        ended_early = not self.reading
        if not ended_early and seq != self.next_seq:
            raise ProtocolError(
                "sequence_gap",
                f"response.completed says {seq} deltas were sent, {self.next_seq} have been read",
            )
        self.input_ended = True
        if ended_early:
            self.next_seq = max(self.next_seq, seq)
            return self._end_delivery()
        return self._end_text(now)

    def answer(self, text: str, now: float) -> list[Effect]:
        """The whole text at once."""
        return [*self.delta(0, text, now), *self.complete(1, now)]

    def abort(self, now: float) -> list[Effect]:
        """The generator gave up."""
        if self.input_ended:
            return _NOTHING
        self.input_ended = True
        return self.end_early("aborted", now) if self.reading else self._end_delivery()

    def end_early(self, rule: str, now: float, *, force_block: bool = False) -> list[Effect]:
        """Judge no more text; the policy's ``on_incomplete`` decides what happens to the text that arrived.

        Later input is ignored, or released unjudged by a policy that observes. ``force_block`` blocks
        whatever the policy says.
        """
        if not self.reading:
            return _NOTHING
        self._incomplete_rule = rule
        self._ended_early = Interruption(rule=rule, after=len(self._resolved), forced=force_block)
        decision = on_incomplete(self.policy, forced=force_block)
        self._decider.note(decision, rule)
        if decision is _BLOCK and not self._observing:
            self._text_ended_at = now
            return self._block(rule, now, technical=True)
        return self._end_text(now)

    def excuse(self, seconds: float, now: float) -> None:
        """For so long no text could be read: a response is not incomplete for that."""
        self._last_event_at = min(now, self._last_event_at + seconds)

    def stood(self, seconds: float) -> None:
        """For so long the clock stood still while the text went on to age."""
        self.late_s += seconds
        self._ended_late_s += seconds
        for held in self._queue:
            if held.cut_at is not None:
                held.cut_at -= seconds

    def stop_output(self) -> None:
        """The response was decided before a restart: read its input to the end without any output."""
        self.decided = True
        self.reading = False
        self.pending.clear()
        self._outcome = None

    def stop_judging(self, reason: str, now: float) -> list[Effect]:
        """Ask no judge for this response, now or later: its claims are UNVERIFIED for ``reason``."""
        if self.decided:
            return _NOTHING
        self._judging_stopped = reason
        self._stopped = Interruption(rule=reason, after=len(self._resolved))
        if self.policy.on_unverified is FailPolicy.FAIL_CLOSED and not self._observing:
            return self._block(reason, now, technical=True)
        return self._give_up(list(self.pending), reason, now)

    def judged(self, judgements: Iterable[Judgement], now: float) -> list[Effect]:
        """Verdicts arrived. Those for claims that are not awaited are ignored."""
        effects: list[Effect] = []
        for judgement in judgements:
            if self.decided:
                break
            self._resolve(judgement, now, effects)
        if self._cut_later and len(self.pending) < self.MOST_AHEAD and not self.decided:
            self._cut_later = False
            effects.append(CutOn())
        return effects

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: expire overdue claims, and end a response that gets no input."""
        effects: list[Effect] = []
        overdue = [claim_id for claim_id, pending in self.pending.items() if self._due_at(pending) <= now]
        if overdue:
            effects += self._give_up(overdue, "no verdict in time", now)
        if now >= self._reasons_due:
            effects += self.tell_verdict()
        if not self.input_ended and now >= self._last_event_at + self.policy.incomplete_timeout_ms / 1000:
            self.input_ended = True
            effects += self.end_early("timed out", now) if self.reading else self._end_delivery()
        return effects

    def explained(self, claim_id: str, reason: str) -> list[Effect]:
        """The reason for a verdict has come, or will not (empty)."""
        if claim_id in self._reasons:
            self._reasons[claim_id] = reason
        return self.tell_verdict() if self._all_explained else _NOTHING

    # ----------------------------------------------------------------------------------- inside

    @property
    def _all_explained(self) -> bool:
        return None not in self._reasons.values()

    def _pass_over(self, seq: int, text: str, now: float) -> list[Effect]:
        """A delta that is not the next one: expected after a block, wrong after completion."""
        if seq < self.next_seq:
            return _NOTHING
        if self.reading:
            raise ProtocolError("sequence_gap", f"delta {self.next_seq} was expected, {seq} came")
        if self.input_ended:
            raise ProtocolError("response_finished", f"delta {seq} came after the end of the response")
        self.next_seq = seq + 1
        self._last_event_at = now
        if not self._observing or self._text_ended_at is None:
            return _NOTHING
        self.answer_chars += len(text)
        return self._let_through(text, (), now)

    def _put_off(self, text: str, now: float) -> list[Effect]:
        """Cut a long text piece by piece, so that it doesn't block other responses."""
        effects = self._let_through(text, (), now) if self._observing else []
        if not self.uncut:
            effects.append(CutOn())
        most = -(-self.MOST_CUT_CHARS // self._PIECES)
        self.uncut.extend(text[at : at + most] for at in range(0, len(text), most))
        return effects

    def _let_through(self, text: str, cut: Sequence[CutSegment], now: float) -> list[Effect]:
        effects: list[Effect] = []
        if text:
            span = (self.answer_chars - len(text), self.answer_chars)
            effects.append(self._out.deliver(text, span, None, _RELEASE, OBSERVED, ()))
        return effects + self._add_segments(cut, now) if cut else effects

    def _end_text(self, now: float) -> list[Effect]:
        self.reading = False
        self._text_ended_at, self._ended_late_s = now, self.late_s
        effects = self._end_delivery()
        return effects if self.uncut else [*effects, *self._end_cutting((), now)]

    def _end_cutting(self, cut: Iterable[CutSegment], now: float) -> list[Effect]:
        """The whole text has been passed to the cutter; take ``cut`` and the cutter's last segments."""
        effects = self._add_segments([*cut, *self._cutter.finish()], now)
        if not self.decided:
            self._advance(effects, now)
        return effects

    def _end_delivery(self) -> list[Effect]:
        """Under a policy that observes, release text until no more can come."""
        if not self._observing or not self.input_ended or self._text_ended_at is None:
            return _NOTHING
        rule = f"{OBSERVED}: {self._incomplete_rule}" if self._incomplete_rule else OBSERVED
        return [self._out.completed(_RELEASE, rule, None)]

    def _add_segments(self, cut: Sequence[CutSegment], now: float) -> list[Effect]:
        if self._news is not None:
            self._news.cut += cut
        effects: list[Effect] = []
        asked: list[tuple[str, Claim]] = []
        beyond: list[str] = []
        due = min(now + self._claim_timeout_s, self._due)
        for segment, claims in cut:
            held = HeldSegment(segment, len(claims), cut_at=now, late_s=self.late_s)
            self._queue.append(held)
            for claim in claims:
                claim_id = self._make.claim_id(claim)
                self.pending[claim_id] = Pending(claim, held, now, due)
                if claim.index < MOST_CLAIMS:
                    asked.append((claim_id, claim))
                else:
                    beyond.append(claim_id)
        if (asked or beyond) and self._judging_stopped is not None:
            unasked = [claim_id for claim_id, _ in asked]
            return self._give_up([*unasked, *beyond], self._judging_stopped, now)
        if asked:
            effects.append(AskJudge(tuple(asked)))
        if beyond:
            effects += self.judged([beyond_most(claim_id, MOST_CLAIMS) for claim_id in beyond], now)
        if not self.decided and (not self._queue or self._queue[0].missing == 0):
            self._advance(effects, now)
        return effects

    def _give_up(self, claim_ids: list[str], reason: str, now: float) -> list[Effect]:
        return self.judged([unverified(claim_id, "guardrail", reason) for claim_id in claim_ids], now)

    def _resolve(self, judgement: Judgement, now: float, effects: list[Effect]) -> None:
        pending = self.pending.get(judgement.claim_id)
        if pending is None:
            return
        if pending.hurried is not None:
            judgement = better_of(pending.hurried, judgement)
        elif judgement.hurried:
            left_s = self._due_at(pending) - now
            if left_s >= _LEFT_TO_ASK_AGAIN * self._claim_timeout_s and self._judging_stopped is None:
                pending.hurried, pending.again_at = judgement, now
                effects.append(AskJudge(((judgement.claim_id, pending.claim),)))
                return
        del self.pending[judgement.claim_id]
        latency_ms = (now - pending.asked_at) * 1000
        verdict = self._make.claim_verdict(
            judgement.claim_id, pending.claim, judgement, latency_ms, self.head.contexts
        )
        if self._news is not None:
            self._news.verdicts.append((pending.claim, judgement, verdict.latency_ms))
        if self._first_verdict_at is None:
            self._first_verdict_at = now
        # Nearly all are answered, which the verdict says without a call.
        if judgement.verdict is not _UNVERIFIED or not judgement.unanswered:
            self._heard_at = now
        held = pending.held
        held.verdicts.append(verdict)
        held.missing -= 1
        effects.append(Emit(_VERDICTS, verdict))
        explain = judgement.explain
        if explain is not None and judgement.verdict in _TO_EXPLAIN and len(self._reasons) < MOST_REASONS:
            self._reasons[judgement.claim_id] = None
            effects.append(Explain(judgement.claim_id, partial(explain, judgement)))
        if held.missing == 0 and self._queue[0].missing == 0:
            self._advance(effects, now)

    def _advance(self, effects: list[Effect], now: float) -> None:
        """Resolve the segments at the head of the queue, and the response when none is left."""
        while self._queue and self._queue[0].missing == 0:
            held = self._queue.popleft()
            if len(held.verdicts) > 1:
                held.verdicts.sort(key=lambda verdict: verdict.index)
            self._claims += held.verdicts
            decision, rule = self._decider.segment(held.segment.kind, held.verdicts)
            self._resolved.append((held.segment.kind, len(held.verdicts)))
            if decision is _BLOCK and not self._observing:
                effects += self._block(rule, now, technical=rule == self.policy.unverified_rule)
                return
            if not self._observing:
                ids = tuple([verdict.claim_id for verdict in held.verdicts])
                shown_rule = None if decision is _RELEASE else rule
                if self._streaming:
                    effects.append(self._out.release(held.segment, decision, shown_rule, ids, held.cut_at))
                else:
                    self._out.ready.append((held.segment, decision, shown_rule, ids, held.cut_at))
        if self._text_ended_at is not None and not self._queue and not self.uncut and not self.decided:
            self._finish(effects, now)

    def _finish(self, effects: list[Effect], now: float) -> None:
        decision, rule = self._decider.end()
        if self._observing:
            self._conclude(decision, rule, effects, now)
            return
        if decision is _BLOCK:
            effects += self._block(rule, now, technical=False, to_the_end=True)
            return
        effects += [self._out.release(*ready) for ready in self._out.ready]
        effects.append(self._out.completed(decision, rule, self._decider.score))
        self._conclude(decision, rule, effects, now)

    def _block(self, rule: str, now: float, *, technical: bool, to_the_end: bool = False) -> list[Effect]:
        """``technical``: the block says nothing about the answer, for instance because no judge was
        available.
        """
        effects: list[Effect] = []
        if self.pending:
            effects.append(Cancel())
        message = self.policy.blocked_message(self.head.language, technical=technical)
        effects.append(self._out.blocked(rule, message, self._decider.score))
        self._conclude(_BLOCK, rule, effects, now, to_the_end=to_the_end)
        return effects

    def _conclude(
        self, decision: Decision, rule: str, effects: list[Effect], now: float, *, to_the_end: bool = True
    ) -> None:
        """Everything is delivered: the final verdict follows, at once unless it waits for reasons."""
        self.decided = True
        self.reading = False
        self.uncut.clear()
        self.pending.clear()
        if self._reasons:
            told = {claim.claim_id for claim in self._claims}
            self._reasons = {each: reason for each, reason in self._reasons.items() if each in told}
        self._outcome = Ending(decision, rule, to_the_end, now)
        if self._all_explained:
            effects += self.tell_verdict()

    def tell_verdict(self) -> list[Effect]:
        """The final verdict, if only reasons are missing, and the case if anything was wrong; then drop what
        they needed.
        """
        outcome = self._outcome
        if outcome is None:
            return _NOTHING
        self._outcome = None
        claims = (
            [_with_reason(each, self._reasons) for each in self._claims] if self._reasons else self._claims
        )
        verdict = self._make.response_verdict(
            claims,
            self._decider.score,
            outcome.decision,
            outcome.rule,
            complete=outcome.to_the_end and self._incomplete_rule is None,
            usage=self.usage,
            timings=timings(self.started_at, self._first_verdict_at, self._text_ended_at, outcome.at, claims),
            challenger=self._challenged(outcome.to_the_end),
            head=self.head,
            kinds=[kind for kind, _ in self._resolved],
            judged_to_end=outcome.to_the_end,
            ended_early=self._ended_early,
            judging_stopped=self._stopped,
        )
        effects: list[Effect] = [Emit(_VERDICTS, verdict)]
        if outcome.decision is not _RELEASE:
            answer = "".join(self._parts)
            case = self._make.flagged_case(self.head, answer, self._out.shown(answer), verdict)
            effects.append(Emit(Channel.FLAGGED, case))
        self._release()
        return effects

    def _challenged(self, to_the_end: bool) -> ChallengerDecision | None:
        """The challenger's decision on the verdicts so far."""
        challenger = self._challenger
        if challenger is None:
            return None
        claims = iter(self._claims)
        found = redecide(
            challenger,
            [(kind, list(islice(claims, number))) for kind, number in self._resolved],
            ended_early=self._ended_early,
            judging_stopped=self._stopped,
        )
        return ChallengerDecision(
            policy=challenger.ref,
            decision=found.decision,
            rule=found.rule,
            score=found.score,
            complete=to_the_end or found.early,
        )

    def _release(self) -> None:
        """Drop everything that led to the decision."""
        self._parts.clear()
        self.uncut.clear()
        self._queue.clear()
        self.pending.clear()
        self._claims = []
        self._reasons.clear()
        self._resolved.clear()
        self._out.ready.clear()
        self._cutter.release()
        self.head = self.head.model_copy(update={"contexts": (), "question": "", "metadata": {}})


def _with_reason(claim: ClaimVerdict, reasons: Mapping[str, str | None]) -> ClaimVerdict:
    """The verdict with the reason that came after it before what the judge said."""
    reason = reasons.get(claim.claim_id)
    return claim.model_copy(update={"reasoning": f"{reason} {claim.reasoning}"}) if reason else claim
