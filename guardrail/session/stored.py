"""A session that is stored as it goes, and that another process can resume.

``guardrail.session.state`` defines the formats. The stored state grows with the text and no faster: each
piece of text, segment, claim and verdict is written once, and only while it can still matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

from guardrail.claims.cutter import ClaimCutter, CutSegment, Cutter, ResumingCutter
from guardrail.claims.model import Claim, Segment
from guardrail.events import ClaimVerdict, Context, Evidence, Interruption, Response, ResponseHead
from guardrail.policy import Policy
from guardrail.session.effects import AskJudge, Effect
from guardrail.session.machine import HeldSegment, Pending, Session
from guardrail.session.outputs import Deliveries
from guardrail.session.state import MOST, STATE_VERSION, SessionState, read_state, salvage
from guardrail.verdicts import Judgement

Facts = dict[str, Any]
"""Names and JSON-able values."""

# Defaults, which need not be written.
_AT_FIRST: Final[Facts] = {
    "next_seq": 0,
    "chars": None,
    "cut": [0, 0, 0],
    "resolved": 0,
    "delivered": 0,
    "released": 0,
    "worst": ["release", ""],
    "incomplete": None,
    "judging_stopped": None,
    "ended_at": None,
    "stopped_at": None,
    "decided": False,
    "ended": False,
    "text_ended_ms": None,
    "first_verdict_ms": None,
    "excused_ms": 0,
    "usage": {},
}


_ONCE: Final = frozenset(("text_ended_ms", "first_verdict_ms"))


class Journal:
    """What is new about one session, and what has been stored already."""

    __slots__ = ("_claims", "_known", "_number", "_parts", "_ready", "_replaced", "cut", "verdicts")

    def __init__(self) -> None:
        # New since the last write; the session adds to these as it goes.
        self.cut: list[CutSegment] = []
        self.verdicts: list[ClaimVerdict] = []
        self._number = 0
        self._known = dict(_AT_FIRST)
        self._claims: set[int] = set()  # written as claims without a verdict
        self._parts = self._ready = self._replaced = 0  # how many of each are written

    def take_up(
        self, number: int, known: Facts, claims: Iterable[int], parts: int, deliveries: Deliveries
    ) -> None:
        """Continue after ``number`` writes, which contain ``known`` and leave ``claims`` without a
        verdict.
        """
        self._number = number
        self._known.update(known)
        self._claims.update(claims)
        self._note_lengths(parts, deliveries)

    def forget(self) -> None:
        """The session is decided: nothing that led to it matters any more."""
        self.cut.clear()
        self.verdicts.clear()
        self._claims.clear()

    def write(
        self,
        standing: Facts,
        parts: Sequence[str],
        contexts: Sequence[Context],
        deliveries: Deliveries,
        is_open: Callable[[Segment], bool],
        is_pending: Callable[[Claim], bool],
    ) -> Facts | None:
        """What is new, or None. ``standing``: the current values of simple fields."""
        known = self._known
        facts: Facts = {
            name: value
            for name, value in standing.items()
            # A time doesn't change; only its conversion may come out differently.
            if value != known[name] and (name not in _ONCE or known[name] is None)
        }
        self._known.update(facts)
        text = "".join(parts[self._parts :])
        new: Facts = {
            "text": text,
            "segments": [_segment(cut.segment) for cut in self.cut if is_open(cut.segment)],
            "claims": [_claim(claim) for cut in self.cut for claim in cut.claims if is_pending(claim)],
            "verdicts": [self._verdict(verdict, contexts) for verdict in self.verdicts],
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
        if self._known["decided"]:
            return None
        self._known["decided"] = True
        return {"v": STATE_VERSION, "number": 0, "next_seq": next_seq, "decided": True}

    def _note_lengths(self, parts: int, deliveries: Deliveries) -> None:
        self._parts = parts
        self._ready, self._replaced = len(deliveries.ready), len(deliveries.replaced)

    def _verdict(self, verdict: ClaimVerdict, contexts: Sequence[Context]) -> Facts:
        facts: Facts = {"claim": verdict.index}
        if verdict.index in self._claims:
            self._claims.discard(verdict.index)
        else:
            facts |= _place(verdict.segment, verdict.span, verdict.severity, verdict.severity_reasons)
        facts |= {
            "verdict": verdict.verdict.value,
            "confidence": verdict.confidence,
            "support": verdict.support,
            "judge": verdict.judge,
            "latency_ms": verdict.latency_ms,
        }
        if verdict.contradiction is not None:
            facts["contradiction"] = verdict.contradiction
        if verdict.findings:
            facts["findings"] = [finding.value for finding in verdict.findings]
        if verdict.evidence:
            facts["evidence"] = [_evidence(evidence, contexts) for evidence in verdict.evidence]
        if verdict.conflicting_contexts:
            facts["conflicts"] = [_context(name, contexts) for name in verdict.conflicting_contexts]
        if verdict.reasoning:
            facts["reasoning"] = verdict.reasoning
        if verdict.unsupported_spans:
            facts["unsupported"] = [list(span) for span in verdict.unsupported_spans]
        if verdict.parts:
            facts["parts"] = [[part.text, part.verdict.value] for part in verdict.parts]
        if verdict.attempts != 1:
            facts["attempts"] = verdict.attempts
        if verdict.degraded_from:
            facts["degraded_from"] = list(verdict.degraded_from)
        if verdict.usage is not None:
            facts["usage"] = verdict.usage.model_dump(exclude_defaults=True)
        return facts


def _segment(segment: Segment) -> Facts:
    facts: Facts = {
        "index": segment.index,
        "kind": segment.kind.value,
        "span": [segment.start, segment.end],
        "body": list(segment.body),
    }
    return facts | {"header": True} if segment.header else facts


def _claim(claim: Claim) -> Facts:
    facts = {"index": claim.index}
    facts |= _place(claim.segment, (claim.start, claim.end), claim.severity, claim.severity_reasons)
    return facts | {"lead_in": claim.lead_in} if claim.lead_in else facts


def _place(segment: int, span: tuple[int, int], severity: str, reasons: tuple[str, ...]) -> Facts:
    facts: Facts = {"segment": segment, "span": list(span), "severity": str(severity)}
    return facts | {"reasons": list(reasons)} if reasons else facts


def _evidence(evidence: Evidence, contexts: Sequence[Context]) -> Any:
    """The quote's position in the contexts; the quote itself if that doesn't reproduce it."""
    start, end = evidence.span
    for number, context in enumerate(contexts):
        if context.id == evidence.context_id and context.text[start:end] == evidence.quote:
            return [number, start, end]
    return evidence.model_dump(mode="json")


def _context(name: str, contexts: Sequence[Context]) -> int | str:
    return next((number for number, context in enumerate(contexts) if context.id == name), name)


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
    ) -> Self:
        """The session whose captures, in order, are ``progress``.

        ``started_at`` is when it began, on the clock of ``now``; ``reading`` converts Unix milliseconds to
        readings of that clock. ``excused_s``: how long nobody held the session, which its deadline doesn't
        count; what was excused before is in ``progress``. Raises UnreadableSession, and StateError for state
        of a newer version.
        """
        state = read_state(head, policy, progress)
        return cls._of(
            state,
            head,
            policy,
            new_cutter,
            started_at,
            now,
            reading,
            max_answer_chars=max_answer_chars,
            challenger=challenger,
            excused_s=excused_s,
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
        """What can be salvaged of a session whose state is unreadable. Unless it is decided, end it."""
        state = salvage(progress, UNREADABLE)
        return cls._of(
            state, head, policy, new_cutter, now, now, lambda _: now, max_answer_chars=max_answer_chars
        )

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
        position = self._cutter.position
        first_open = self._queue[0].segment.index if self._queue else position.segments
        after_end = self._observing and self._text_ended_at is not None
        ended_at = None if self._uncut else self._text_ended_at  # whoever resumes it has to cut the rest
        standing: Facts = {
            "next_seq": self.next_seq,
            "chars": self.answer_chars if after_end else None,
            "cut": list(position),
            "resolved": first_open,
            "delivered": self._out.seq,
            "released": self._out.released_end,
            "worst": [self._decider.worst.value, self._decider.worst_rule],
            "incomplete": self._incomplete_rule,
            "judging_stopped": self._judging_stopped,
            **self._interruptions(),
            "decided": self.decided,
            "ended": self.input_ended,
            "text_ended_ms": None if ended_at is None else unix_ms(ended_at),
            "first_verdict_ms": None if self._first_verdict_at is None else unix_ms(self._first_verdict_at),
            "excused_ms": self._excused_ms,
            "usage": self.usage.model_dump(exclude_defaults=True),
        }
        whole = isinstance(self.head, Response)  # whose text is in the head
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
        challenger: Policy | None = None,
        excused_s: float = 0.0,
    ) -> Self:
        cutter = ResumingCutter(new_cutter, state.text, state.cut)
        session = cls(
            head, policy, cutter, now=started_at, max_answer_chars=max_answer_chars, challenger=challenger
        )
        if head.deadline_ms is not None:
            session._excused_ms = min(MOST, state.excused_ms + round(excused_s * 1000))
            session._due += session._excused_ms / 1000
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
        self._decider.worst, self._decider.worst_rule = state.worst
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
        resolved = range(state.cut.segments - len(state.open))
        self._resolved += [(state.kinds.get(segment), claims[segment]) for segment in resolved]
        if state.incomplete_rule is not None:
            after, forced = state.ended_at or (len(resolved), False)
            self._ended_early = Interruption(rule=state.incomplete_rule, after=after, forced=forced)
        if state.judging_stopped is not None:
            self._stopped = Interruption(rule=state.judging_stopped, after=state.stopped_at or 0)

    def _interruptions(self) -> Facts:
        """How the response went, as far as only the verdict's record and a challenger need to know."""
        ended, stopped = self._ended_early, self._stopped
        return {
            "ended_at": None if ended is None else [ended.after, ended.forced],
            "stopped_at": None if stopped is None else stopped.after,
        }
