"""Runs a session by a script, with the process ending and starting anew wherever the script says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from guardrail.claims import CitationReader, Claim, ClaimCutter
from guardrail.errors import ProtocolError
from guardrail.events import Finding, Response, ResponseHead, ResponseStarted
from guardrail.judges import Evidence, Judgement, Usage
from guardrail.policy import Policy
from guardrail.session import AskJudge, Cancel, Effect, Emit, Explain, StoredSession
from guardrail.verdicts import spans_within
from tests.support.sessions import PlainRater, judgement, later, verdict_by_hash

MAX_ANSWER_CHARS = 120
UNIX_AT_START = 1_700_000_000


@dataclass
class Step:
    """One thing that happens, and what the process does after it: nothing, capture, or end and restart."""

    what: str
    number: int = 0
    then: str = ""


@dataclass
class Restartable:
    """One session, what came of it, and what was written down of it."""

    head: ResponseHead
    policy: Policy
    chunks: list[str]
    challenger: Policy | None = None
    explaining: bool = False
    """The judge gives reasons later. A process that ends takes those along that have not come."""
    now: float = 5.0
    seq: int = 0
    pending: dict[str, Claim] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)
    effects: list[Any] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    restarts: int = 0
    # The monotonic clock of each process has another origin.
    clock_origin: float = 0.0

    def __post_init__(self) -> None:
        self.head_json = self.head.to_json()
        self.session = StoredSession(
            self.head,
            self.policy,
            self._cutter(),
            now=self.now,
            max_answer_chars=MAX_ANSWER_CHARS,
            challenger=self.challenger,
        )

    def _cutter(self) -> ClaimCutter:
        citations = CitationReader(self.head.contexts)
        return ClaimCutter(PlainRater(), citations=citations, max_segment_chars=self.policy.max_segment_chars)

    # what happens ----------------------------------------------------------------------

    def run(self, steps: list[Step]) -> None:
        for step in steps:
            if not self.session.closed:
                self.happen(step)
            if step.then == "capture":
                self.capture()
            elif step.then == "restart":
                self.capture()
                self.restart()

    def happen(self, step: Step) -> None:
        session = self.session
        now = self.now - self.clock_origin
        try:
            match step.what:
                case "feed" if self.chunks and not session.input_ended:
                    effects = session.delta(self.seq, self.chunks.pop(0), now)
                    self.seq += 1
                case "repeat" if self.seq:
                    effects = session.delta(step.number % self.seq, "again", now)
                case "gap" if not session.input_ended:
                    effects = session.delta(self.seq + 1, "later. ", now)
                case "answer" if isinstance(self.head, Response) and not session.input_ended:
                    effects = session.answer(self.head.answer, now)
                case "complete" if not isinstance(self.head, Response):
                    effects = session.complete(self.seq, now)
                case "abort":
                    effects = session.abort(now)
                case "overload":
                    effects = session.stop_judging("overloaded", now)
                case "end":
                    effects = session.end_early("poison", now)
                case "verdict" if self.pending:
                    ids = list(self.pending)
                    effects = self.judged([ids[step.number % len(ids)]], now)
                case "verdicts" if self.pending:
                    effects = self.judged(list(self.pending), now)
                case "explain" if self.unexplained:
                    number = step.number % len(self.unexplained)
                    effects = session.explained(self.unexplained.pop(number), "")
                case "later" | "late":
                    self.now += 30.0 if step.what == "later" else 100_000.0
                    effects = session.tick(self.now - self.clock_origin)
                case _:
                    return
        except ProtocolError as error:
            effects = session.end_early(error.reason, now)
        self.apply(effects)

    def judged(self, claim_ids: list[str], now: float) -> list[Effect]:
        found = [self.judgement(claim_id) for claim_id in claim_ids]
        self.session.usage = Usage(judge_calls=self.session.usage.judge_calls + 1)
        return self.session.judged(found, now)

    def judgement(self, claim_id: str) -> Judgement:
        claim = self.pending.pop(claim_id)
        plain = judgement(claim_id, verdict_by_hash(claim))
        evidence: tuple[Evidence, ...] = ()
        if claim.index % 3 == 0:
            evidence = (Evidence(context_id="c2", quote="other", span=(3, 8)),)
        elif claim.index % 3 == 1:  # of a judge that does not keep to the rules
            evidence = (Evidence(context_id="nowhere", quote="quote", span=(0, 3)),)
        return Judgement(
            claim_id,
            plain.verdict,
            plain.confidence,
            plain.support,
            "test",
            evidence=evidence,
            conflicting_contexts=("c1", "nowhere") if claim.index % 2 else (),
            reasoning=f"reason {claim.index}",
            unsupported_spans=spans_within(
                claim.text, [(0, 1), (2, len(claim.text))] if claim.index % 2 else []
            ),
            contradiction=0.25 if claim.index % 2 else None,
            findings=(Finding.FIGURE_ABSENT, Finding.LINK_ABSENT) if claim.index % 3 else (),
            explain=later if self.explaining else None,
        )

    def apply(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case AskJudge(claims):
                    self.pending.update(claims)
                    self.effects.append(effect)
                case Cancel():
                    self.pending.clear()
                    self.effects.append("cancel")
                case Explain(claim_id, _):
                    self.unexplained.append(claim_id)
                case Emit(channel, event):
                    self.effects.append((channel, without_times(event.model_dump())))
        self.pending = {name: claim for name, claim in self.pending.items() if name in self.session.pending}

    # what the process does -------------------------------------------------------------

    def unix_ms(self, reading: float) -> int:
        return round((reading + self.clock_origin + UNIX_AT_START) * 1000)

    def capture(self) -> None:
        if self.session.closed:
            return
        new = self.session.capture(self.unix_ms)
        if new is not None:
            self.progress.append(new)
        assert self.session.capture(self.unix_ms) is None, "nothing is written twice"

    def restart(self) -> None:
        """All that is left is what was written down."""
        if self.session.closed:
            return
        self.restarts += 1
        started_at = self.session.started_at + self.clock_origin
        self.clock_origin = self.now - 2.0  # the new process has just begun
        kind = Response if isinstance(self.head, Response) else ResponseStarted
        self.session = StoredSession.restored(
            kind.model_validate_json(self.head_json),
            type(self.policy).model_validate_json(self.policy.model_dump_json()),
            json.loads(json.dumps(self.progress)),
            new_cutter=self._cutter,
            started_at=started_at - self.clock_origin,
            now=self.now - self.clock_origin,
            reading=lambda unix_ms: unix_ms / 1000 - UNIX_AT_START - self.clock_origin,
            max_answer_chars=MAX_ANSWER_CHARS,
            challenger=self.challenger,
        )
        self.unexplained.clear()
        effects = self.session.resume(self.now - self.clock_origin)
        if self.explaining:
            self.apply([effect for effect in effects if isinstance(effect, Emit)])
            effects = [effect for effect in effects if not isinstance(effect, Emit)]
        asked = [claim for effect in effects for claim in asked_by(effect)]
        assert dict(asked) == self.pending, "what was pending is asked again, and nothing else"
        assert [name for name, _ in asked] == list(self.pending)


def asked_by(effect: Effect) -> tuple[tuple[str, Claim], ...]:
    assert isinstance(effect, AskJudge), "restoring emits nothing"
    return effect.claims


def without_times(found: dict[str, Any]) -> dict[str, Any]:
    """All but how long it took."""
    found.pop("timings", None)
    found.pop("latency_ms", None)
    for claim in found.get("claims", ()):
        claim.pop("latency_ms", None)
    return found
