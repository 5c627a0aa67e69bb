"""Drives a session by hand and checks, after every step, what must always hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import blake2b

from guardrail.claims import Claim, ClaimCutter
from guardrail.decisions import decided_by_score
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    ResponseStarted,
    ResponseVerdict,
    SegmentKind,
    Severity,
    claim_that_decided,
)
from guardrail.judges import Judgement, Verdict
from guardrail.policy import Policy
from guardrail.session import AskJudge, Cancel, Channel, CutOn, Effect, Emit, Explain, Session

VerdictOf = Callable[[Claim], Verdict]


class PlainRater:
    """A severity that follows from the text, so that tests can choose it."""

    def rate(self, text: str, kind: SegmentKind) -> tuple[Severity, tuple[str, ...]]:
        del kind
        if "$" in text or "mg" in text:
            return Severity.CRITICAL, ("price",)
        return Severity.NORMAL, ()


def verdict_by_word(claim: Claim) -> Verdict:
    """The verdict is written in the claim: 'wrong', 'unbacked', 'partly' or nothing."""
    for word, verdict in (
        ("wrong", Verdict.CONTRADICTED),
        ("unbacked", Verdict.UNSUPPORTED),
        ("partly", Verdict.PARTIALLY_SUPPORTED),
    ):
        if word in claim.text:
            return verdict
    return Verdict.SUPPORTED


def verdict_by_hash(claim: Claim) -> Verdict:
    """Any verdict, the same for the same text."""
    return list(Verdict)[blake2b(claim.text.encode(errors="replace"), digest_size=1).digest()[0] % 4]


def judgement(claim_id: str, verdict: Verdict) -> Judgement:
    support = {Verdict.SUPPORTED: 0.95, Verdict.PARTIALLY_SUPPORTED: 0.5, Verdict.UNVERIFIED: None}.get(
        verdict, 0.05
    )
    return Judgement(claim_id, verdict, 0.9, support, "test")


async def later(final: Judgement) -> str:
    """How a judgement has its reason put into words, which sessions of tests only hear of."""
    raise AssertionError(final)


class Driver:
    """A session, the clock, and everything that came out."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        verdict_of: VerdictOf = verdict_by_word,
        deadline_ms: int | None = None,
        max_answer_chars: int = 1_000_000,
        challenger: Policy | None = None,
        language: str | None = None,
        explaining: bool = False,
    ) -> None:
        """``explaining``: the judge gives reasons later."""
        self.now = 0.0
        self._explain = later if explaining else None
        self.unexplained: list[str] = []
        self.policy = policy or Policy()
        head = ResponseStarted(
            response_id="r1",
            question="What?",
            contexts=(Context(id="c1", text="A source."),),
            deadline_ms=deadline_ms,
            metadata={"k": "v"},
            language=language,
        )
        self.session = Session(
            head,
            self.policy,
            ClaimCutter(PlainRater(), max_segment_chars=self.policy.max_segment_chars),
            now=0.0,
            max_answer_chars=max_answer_chars,
            challenger=challenger,
        )
        self.verdict_of = verdict_of
        self.pending: dict[str, Claim] = {}
        self.asked: set[str] = set()
        self.judged_segments: dict[str, int] = {}
        self.text = ""
        self.seq = 0
        self.delivered: list[DeliverySegment] = []
        self.claims: list[ClaimVerdict] = []
        self.final: DeliveryCompleted | DeliveryBlocked | None = None
        self._verdict: ResponseVerdict | None = None
        self._case: FlaggedCase | None = None
        self.cutting = False  # the session waits to be told to cut on

    # what may be done ------------------------------------------------------------------

    def feed(self, text: str) -> None:
        effects = self.session.delta(self.seq, text, self.now)
        if self.session.answer_chars > len(self.text):  # else the response has ended, and ignores it
            self.text += text
        self.seq += 1
        self.apply(effects)

    def complete(self) -> None:
        self.apply(self.session.complete(self.seq, self.now))

    def cut_on(self) -> None:
        """Others had their turn."""
        assert self.cutting
        self.cutting = False
        self.apply(self.session.cut_on(self.now))

    def answer_claims(self, claim_ids: Iterable[str] | None = None) -> None:
        """The judge answers, all or some; also claims that were given up meanwhile."""
        while claim_ids is None and self.cutting:
            self.cut_on()
        ids = list(self.pending if claim_ids is None else claim_ids)
        judgements = [judgement(claim_id, self.verdict_of(self.pending.pop(claim_id))) for claim_id in ids]
        judgements = [replace(each, explain=self._explain) for each in judgements]
        self.apply(self.session.judged(judgements, self.now))
        if claim_ids is None and self.cutting:
            self.answer_claims()  # it had waited for these

    def explain(self, claim_id: str, reason: str = "") -> None:
        """The reason for a verdict comes, or will not."""
        self.unexplained.remove(claim_id)
        self.apply(self.session.explained(claim_id, reason))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.session.next_deadline <= self.now:
            self.apply(self.session.tick(self.now))

    def whole(self, text: str) -> None:
        self.feed(text)
        self.complete()
        self.answer_claims()

    # what must hold --------------------------------------------------------------------

    def apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case AskJudge(claims):
                    assert not self.session.decided
                    for claim_id, claim in claims:
                        assert claim_id not in self.asked, "a claim is asked once"
                        self.asked.add(claim_id)
                        self.pending[claim_id] = claim
                        assert self.text[claim.start : claim.end] == claim.text or claim.text
                case CutOn():
                    assert not self.cutting, "asked for once"
                    self.cutting = True
                case Cancel():
                    self.pending.clear()
                case Explain(claim_id):
                    self.unexplained.append(claim_id)
                case Emit(channel, event):
                    self._emitted(channel, event)

    def _emitted(self, channel: Channel, event: object) -> None:
        match event:
            case DeliverySegment():
                assert channel is Channel.DELIVERIES
                self._check_delivery(event)
                self.delivered.append(event)
            case DeliveryCompleted() | DeliveryBlocked():
                assert channel is Channel.DELIVERIES
                assert self.final is None, "one final delivery"
                assert event.seq == len(self.delivered)
                self.final = event
            case ClaimVerdict():
                assert channel is Channel.VERDICTS
                assert self._verdict is None, "no claim verdict after the response's"
                self.claims.append(event)
            case ResponseVerdict():
                assert channel is Channel.VERDICTS
                assert self._verdict is None, "one verdict on the response"
                self._verdict = event
            case FlaggedCase():
                assert channel is Channel.FLAGGED
                assert self._case is None
                assert self._verdict is not None
                self._case = event
            case _:
                raise AssertionError(event)

    def _check_delivery(self, event: DeliverySegment) -> None:
        assert self.final is None, "nothing is delivered after the end"
        assert event.seq == len(self.delivered)
        assert event.span[0] == (self.delivered[-1].span[1] if self.delivered else 0), "no gap, no overlap"
        original = self.text[event.span[0] : event.span[1]]
        if event.decision is not Decision.REDACT:
            assert event.text == original, "released text is the text"
        assert event.decision is not Decision.BLOCK
        if self.policy.mode == "observe":
            return
        known = {claim.claim_id for claim in self.claims}
        assert set(event.claim_ids) <= known, "no character leaves before its claims have a verdict"
        start, end = event.span
        for claim_id, claim in self.pending.items():
            if claim_id not in known:
                assert not (claim.start < end and start < claim.end), "an unjudged claim was released"

    def check_end(self) -> None:
        """The session is over: one final event, one verdict, a case where something was wrong."""
        assert self.session.decided
        assert self.final is not None
        assert self._verdict is not None
        assert (self._case is not None) == (self.verdict.decision is not Decision.RELEASE)
        blocked = isinstance(self.final, DeliveryBlocked)
        if self.policy.mode == "observe":
            assert not blocked
            assert self.shown == self.text
        else:
            assert blocked == (self.verdict.decision is Decision.BLOCK)
        if isinstance(self.final, DeliveryBlocked):
            assert self.final.released_chars == (self.delivered[-1].span[1] if self.delivered else 0)
            assert self.policy.mode != "hold" or not self.delivered, "all or nothing"
        elif self.policy.mode != "observe":
            assert self.covered == len(self.text)
        if self._case is not None and self.policy.mode == "observe":
            assert self.text.startswith(self.case.answer), "what came after an early end is let through only"
        elif self._case is not None:
            assert self.case.answer == self.text
            assert self.case.delivered == self.shown
        if self._case is not None:
            assert self.case.deciding_claim == self.verdict.deciding_claim
        self._check_deciding_claim(self.verdict)
        assert [claim.index for claim in self.verdict.claims] == sorted(c.index for c in self.verdict.claims)
        assert sum(self.verdict.counts.model_dump().values()) == len(self.verdict.claims)

    def _check_deciding_claim(self, verdict: ResponseVerdict) -> None:
        """A claim is named where one decided, and it is one that decided so."""
        decided = claim_that_decided(verdict)
        by_claim = verdict.rule in {self.policy.unverified_rule, *(rule.name for rule in self.policy.rules)}
        by_claim = by_claim or decided_by_score(verdict.rule)
        assert (decided is not None) == (by_claim and verdict.decision is not Decision.RELEASE)
        assert (decided is not None) == (verdict.deciding_claim is not None)
        if decided is not None and not decided_by_score(verdict.rule):
            assert self.policy.decide_claim(decided) == (verdict.decision, verdict.rule)

    @property
    def told(self) -> bool:
        """Whether the verdict on the response is out."""
        return self._verdict is not None

    @property
    def verdict(self) -> ResponseVerdict:
        assert self._verdict is not None
        return self._verdict

    @property
    def case(self) -> FlaggedCase:
        assert self._case is not None
        return self._case

    @property
    def shown(self) -> str:
        return "".join(event.text for event in self.delivered)

    @property
    def covered(self) -> int:
        return self.delivered[-1].span[1] if self.delivered else 0
