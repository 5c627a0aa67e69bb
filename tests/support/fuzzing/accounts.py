"""Keeps the accounts of a fuzzed engine: what every event came to, and whether that was right.

An independent, simple model of the protocol (which delta is the next one, what is over, what is known) says
what may become of an event before the engine is asked. A ``Violation`` is a fault in one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from guardrail.claims import BuiltinSeverityRater, CitationReader, ClaimCutter, KnownLinks
from guardrail.engine import MAX_SEQ, Output, digest
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    InputEvent,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.policy import Policy
from guardrail.session import Channel

BEGAN: Final = "began a response"
TOOK_EFFECT: Final = "took effect"
PASSED_OVER: Final = "passed over after the decision"
REPEATED: Final = "a repeated one"


class Violation(AssertionError):
    """A promise was broken. The message quotes the fuzzer's own texts only."""


def require(holds: bool, promise: str, about: object = "") -> None:
    """Raise Violation unless ``holds``; unlike assert also under ``python -O``."""
    if not holds:
        raise Violation(f"{promise}: {about}" if about != "" else promise)


@dataclass(slots=True)
class Life:
    """One response from its start to its end, as the outside sees it."""

    response_id: str
    policy: Policy
    digest: bytes
    lane: str
    born: int
    contexts: tuple[Context, ...] = ()
    last_event_at: float = 0.0
    earliest_end: float = 0.0
    next_seq: int = 0
    text: str = ""
    reading: bool = True
    input_ended: bool = False
    completed: bool = False
    closed: bool = False
    miscounted: bool = False
    """Fewer deltas than ``next_seq`` may be known to have been read."""
    spoilt: bool = False
    """What was stored of it has been tampered with: it must end, but what it says is not checked."""
    lost: bool = False
    """It could not be restored at all."""
    shown: list[DeliverySegment] = field(default_factory=list)
    verdicts: dict[str, ClaimVerdict] = field(default_factory=dict)
    final: DeliveryCompleted | DeliveryBlocked | None = None
    verdict: ResponseVerdict | None = None
    case: FlaggedCase | None = None

    @property
    def observing(self) -> bool:
        return self.policy.mode == "observe"

    @property
    def covered(self) -> int:
        """Code points of the text that have left."""
        return self.shown[-1].span[1] if self.shown else 0

    @property
    def touched(self) -> bool:
        """Has anything been said of it?"""
        return bool(self.shown or self.verdicts or self.final or self.verdict)

    def noted(self, now: float) -> None:
        """An event of it was taken: its time limit begins anew."""
        self.last_event_at = now
        self.earliest_end = now + self.policy.incomplete_timeout_ms / 1000

    def restored(self, now: float) -> None:
        """Another engine has it: its time limit may have begun anew, or gone on."""
        self.last_event_at = now
        # What was read of a decided response is not stored: nothing comes of it any more.
        self.miscounted |= self.final is not None and not self.observing

    def overdue(self, now: float) -> tuple[bool, bool]:
        """May it have timed out, and must it have?"""
        if self.input_ended:
            return True, True
        return now >= self.earliest_end, now >= self.last_event_at + self.policy.incomplete_timeout_ms / 1000

    def end_input(self) -> None:
        self.reading, self.input_ended = False, True

    # ------------------------------------------------------------------------------- outputs

    def said(self, output: Output) -> None:
        """Check one output against everything that came before it."""
        event, channel = output.event, output.channel
        require(not self.closed, "nothing comes after the end", event)
        require(output.lane == self.lane, "an output is of its response's lane", event)
        if self.spoilt:
            if isinstance(event, DeliveryCompleted | DeliveryBlocked):
                self.final, self.reading = event, False
            return
        if isinstance(event, DeliverySegment):
            require(channel is Channel.DELIVERIES, "channel", event)
            self._show(event)
        elif isinstance(event, DeliveryCompleted | DeliveryBlocked):
            require(channel is Channel.DELIVERIES, "channel", event)
            require(self.final is None, "one final delivery", event)
            require(event.seq == len(self.shown), "deliveries are numbered without gaps", event)
            self.final, self.reading = event, False
        elif isinstance(event, ClaimVerdict):
            require(self.verdict is None, "no verdict on a claim after that on the response", event)
            require(event.claim_id not in self.verdicts, "one verdict a claim", event)
            start, end = event.span
            require(self.text[start:end] == event.text, "a claim stands in the text", event)
            self.verdicts[event.claim_id] = event
        elif isinstance(event, ResponseVerdict):
            require(self.verdict is None, "one verdict on the response", event)
            self.verdict = event
        else:
            require(self.case is None and isinstance(event, FlaggedCase), "one case", event)
            self.case = event if isinstance(event, FlaggedCase) else None

    def _show(self, event: DeliverySegment) -> None:
        require(self.final is None, "nothing is delivered after the final event", event)
        require(event.seq == len(self.shown), "deliveries are numbered without gaps", event)
        start, end = event.span
        require(start == self.covered and start <= end <= len(self.text), "no gap, no overlap", event)
        original = self.text[start:end]
        if event.decision is Decision.REDACT:
            require(self.policy.redaction() in event.text, "redacted", event)
        else:
            require(event.text == original, "released text is the text", event)
        if not self.observing:
            require(event.decision is not Decision.BLOCK, "what is blocked does not leave", event)
            require(set(event.claim_ids) <= self.verdicts.keys(), "no text before its verdicts", event)
        self.shown.append(event)

    # ----------------------------------------------------------------------------------- end

    def check_end(self, rater: BuiltinSeverityRater) -> None:
        """It is over: exactly one end, everything shown was verified, and nothing is missing."""
        if self.lost:
            return
        require(self.closed, "every response ends", self.response_id)
        if self.spoilt:
            return
        final, verdict = self.final, self.verdict
        if final is None or verdict is None:
            raise Violation(f"every response has a final delivery and a verdict: {self}")
        require((self.case is not None) == (verdict.decision is not Decision.RELEASE), "a case", self)
        require(len(verdict.claims) == sum(verdict.counts.model_dump().values()), "counts", self)
        if self.observing:
            require(isinstance(final, DeliveryCompleted), "observing never blocks", self)
            require("".join(event.text for event in self.shown) == self.text, "all was shown", self)
        else:
            blocked = isinstance(final, DeliveryBlocked)
            require(blocked == (verdict.decision is Decision.BLOCK), "block and verdict agree", self)
            require(blocked or self.covered == len(self.text), "a completed answer is whole", self)
            require(not blocked or self.policy.mode != "hold" or not self.shown, "all or nothing", self)
            self._check_verified(rater)
        require(not verdict.complete or self.completed, "complete only when the text was", self)

    def _check_verified(self, rater: BuiltinSeverityRater) -> None:
        """Cut the text anew: every claim in what left has a verdict under which it may leave."""
        if not self.shown:
            return
        links = KnownLinks(self.contexts)
        citations = CitationReader(self.contexts, links)
        bound = self.policy.max_segment_chars
        cutter = ClaimCutter(rater, citations=citations, links=links, max_segment_chars=bound)
        by_span = {verdict.span: verdict for verdict in self.verdicts.values()}
        redacted = {event.span for event in self.shown if event.decision is Decision.REDACT}
        for segment, claims in (*cutter.feed(self.text), *cutter.finish()):
            if segment.end > self.covered:
                return
            for claim in claims:
                verdict = by_span.get((claim.start, claim.end))
                if verdict is None:
                    raise Violation(f"unverified text was released: {claim.text!r} of {self}")
                decision, _ = self.policy.decide_claim(verdict)
                require(decision is not Decision.BLOCK, "a blocked claim was released", verdict)
                hidden = (segment.start, segment.end) in redacted
                require(decision is not Decision.REDACT or hidden, "a redacted claim was shown", verdict)


def rejected(life: Life) -> None:
    """An unusable event opened and closed this life: nothing is kept but its id."""
    if life.closed:
        life.next_seq = MAX_SEQ
    life.reading = False


Text = ResponseDelta | ResponseCompleted | ResponseAborted
TOO_LARGE = "contexts_too_large"
TOO_LONG = "answer_too_long"
FINISHED = "response_finished"
UNKNOWN = "unknown_response"
GAP = "sequence_gap"
WRONG_LANE = "wrong_partition"


def expected(
    event: InputEvent,
    life: Life | None,
    finished: Life | None,
    now: float,
    max_answer_chars: int,
    forgets: bool,
) -> set[str]:
    """The outcomes that are right; more than one only where time or a bound on memory leaves it open.

    ``life`` is the response in flight, ``finished`` the last one with this id that is over. ``forgets``:
    finished ids may have been forgotten by now.
    """
    if isinstance(event, ResponseStarted | Response):
        return _for_start(event, life, finished, forgets)
    if life is not None:
        may_be_over, must_be_over = life.overdue(now)
        found = set() if must_be_over else _in_flight(event, life, max_answer_chars)
        return found | (_ended(event, life) if may_be_over else set())
    outcomes: set[str] = set()
    if finished is None or forgets:
        outcomes.add(UNKNOWN)
    if finished is not None:
        outcomes |= _ended(event, finished)
    return outcomes


def _for_start(
    event: ResponseStarted | Response, life: Life | None, finished: Life | None, forgets: bool
) -> set[str]:
    outcomes: set[str] = set()
    known = life or finished
    if known is not None:
        wrong = "duplicate_start" if life is not None else FINISHED
        outcomes.add(REPEATED if known.digest == digest(event) else wrong)
    if known is None or (life is None and forgets):
        outcomes |= {BEGAN, TOO_LARGE}
        if isinstance(event, Response):
            outcomes.add(TOO_LONG)
    return outcomes


def _in_flight(event: Text, life: Life, max_answer_chars: int) -> set[str]:
    if isinstance(event, ResponseAborted):
        return {TOOK_EFFECT}
    if isinstance(event, ResponseCompleted):
        return {GAP} if life.reading and event.seq != life.next_seq else {TOOK_EFFECT}
    if event.seq < life.next_seq:
        return {REPEATED}
    if not life.reading:
        return {PASSED_OVER}
    if event.seq > life.next_seq:
        return {GAP}
    return {TOO_LONG} if len(life.text) + len(event.text) > max_answer_chars else {TOOK_EFFECT}


def _ended(event: Text, life: Life) -> set[str]:
    if not isinstance(event, ResponseDelta):
        return {REPEATED}
    if event.seq >= life.next_seq:
        return {FINISHED}
    return {REPEATED, FINISHED} if life.miscounted else {REPEATED}


def happened(event: Text, life: Life, outcome: str, now: float) -> None:
    """Carry the outcome over into the model, except the text, which is put there before."""
    if outcome == FINISHED:
        life.end_input()
    elif isinstance(event, ResponseCompleted) and outcome in {GAP, TOOK_EFFECT} and not life.input_ended:
        # A response that ended early ignores what was sent of it, also what comes late.
        life.next_seq = max(life.next_seq, event.seq)
        life.end_input()
    elif outcome in {GAP, TOO_LONG, WRONG_LANE}:
        life.reading = False
    elif outcome in {TOOK_EFFECT, PASSED_OVER}:
        if isinstance(event, ResponseDelta):
            life.next_seq = event.seq + 1
            life.noted(now)
        else:
            life.end_input()
    elif life.miscounted:
        # To the engine it may have been a new one, so that the time limit begins anew.
        life.last_event_at = now
