"""One call of a judge for a session's claims, whatever it does, and when claims that it put off go again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from guardrail.claims.model import Claim
from guardrail.engine.runs import Run
from guardrail.errors import JudgeError
from guardrail.events import Usage
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import (
    Gathering,
    GatheringJudge,
    Judge,
    Judgement,
    JudgeReply,
    JudgeRequest,
    attempts_of,
    less,
    reconcile,
    told_usage,
    total,
    unverified,
)
from guardrail.judges.taking_in import claims_with_absent_links, take_in
from guardrail.session.machine import Session


class Gatherer:
    """The rules of an engine for claims that gather, of all its responses."""

    def __init__(
        self, judge: Judge, most: int, clock: Callable[[], float], others_may_begin: Callable[[Run], None]
    ) -> None:
        """``most`` claims fit into a call. ``others_may_begin`` is told when a call can't be joined any more,
        once the text of its response has ended."""
        self._max_wait_s = judge.max_wait_s if isinstance(judge, GatheringJudge) else 0.0
        self._most = most
        self._clock = clock
        self._others_may_begin = others_may_begin

    def due(self, run: Run) -> float:
        """When what was put off has to go to the judge; infinity while a call is under way, which looks."""
        if not run.put_off or run.calls:
            return float("inf")
        return run.session.can_wait_until(run.put_off, self._max_wait_s)

    def to_judge(self, run: Run) -> bool:
        """Is there anything that should be put to the judge now?"""
        if run.waiting or not run.put_off or not run.session.reading:
            return bool(run.waiting or run.put_off)
        return run.session.can_wait_until(run.put_off, self._max_wait_s) <= self._clock()

    def gathering(
        self, run: Run, batch: Mapping[str, Claim], known: Mapping[str, Judgement]
    ) -> Gathering | None:
        """What the judge needs to know to put claims of ``batch`` off; None for one that never does."""
        if not self._max_wait_s:
            return None
        session = run.session
        # A call that can take no more claims can't wait for any, nor can one at the end of the text.
        over = len(batch) >= self._most or not session.reading
        until = session.can_wait_until(batch, self._max_wait_s)

        def may_put_off(urgent: bool) -> bool:
            if over or self._clock() >= until:
                return False
            return bool(run.waiting) or (session.reading and not urgent)

        def going() -> None:
            run.sifting.discard(gathering)
            if not session.reading and not run.dropped:
                self._others_may_begin(run)

        gathering = Gathering(known, may_put_off, going)
        run.sifting.add(gathering)
        return gathering


LAST_HELD_S: Final = 0.25
"""What a reply takes to end after its last verdict: a few characters, and the count of its tokens."""
DEADLINE_MARGIN_S: Final = 0.05

# The library logs by the standard means, which are silent about warnings' details until configured; never
# with a traceback of an unknown judge's error, whose message may hold texts.
_log = logging.getLogger(__name__)


async def ask(
    judge: Judge,
    session: Session,
    evidence: EvidenceIndex,
    batch: dict[str, Claim],
    now: float,
    heard: Callable[[Judgement], None],
    gathering: Gathering | None = None,
) -> tuple[list[Judgement], list[Judgement]]:
    """One judgement for each claim of ``batch``, which the session awaits; the second list has those that are
    put off, with what is known of them.

    What the call consumes is in the session's usage from when the judge tells of it on: the call may be
    cancelled by the very verdict that decides the response, which is to say what it took all the same.
    ``heard`` is called with those that come before the judge's reply is whole, which are final; the last one
    waits a moment for the reply, so that the response is mostly not decided before it is known what it took.
    ``now`` is a reading of the session's clock. Claims that the judge has no verdict for in time, or at all,
    are UNVERIFIED; nothing but cancellation is raised.
    """
    session.taken_up(batch)
    due = {claim_id: session.due(claim_id) for claim_id in batch}
    # Of claims that gathered the first is given up long before the last.
    deadline = max(due.values()) if gathering is None else min(due.values())
    name = judge.name
    early = _Early(batch, {claim_id: at - now for claim_id, at in due.items()}, name, heard)
    request = JudgeRequest(
        response_id=session.head.response_id,
        question=session.head.question,
        claims=batch,
        evidence=evidence,
        deadline=deadline,
        generator_model=session.head.generator_model,
        tenant=session.head.tenant,
        spent=session.usage,
        on_judgement=early.hear,
        on_usage=(meter := _Meter(session)).read,
        gathering=gathering,
    )
    put_off: list[Judgement] = []
    may_put_off = gathering is not None and gathering.may_put_off(False)
    try:
        async with asyncio.timeout(deadline - now):
            early.absent_links = await claims_with_absent_links(batch, evidence)
            reply = await judge.judge(request)
        meter.read(reply.usage)
        put_off = early.put_off(reply) if may_put_off else []
        left = {each.claim_id for each in put_off}
        asked = {claim_id: claim for claim_id, claim in batch.items() if claim_id not in left}
        found = list(reconcile(asked, reply, name).values())
    except TimeoutError:
        found = [unverified(claim_id, name, "no verdict in time") for claim_id in batch]
    except JudgeError as error:
        reason = f"{type(error).__name__}: {error}"
        _log.warning("judge failed: %s", reason)
        if (usage := told_usage(error)) is not None:
            meter.read(usage)
        attempts = attempts_of(error)
        found = [unverified(claim_id, name, reason, attempts=attempts) for claim_id in batch]
    except Exception as error:  # noqa: BLE001 - a faulty judge must not take others down
        _log.error("faulty judge %r: %s", name, type(error).__name__)
        found = [unverified(claim_id, name, f"{type(error).__name__} in the judge") for claim_id in batch]
    finally:
        early.close()
    found = [take_in(one, batch[one.claim_id], early.absent_links) for one in found]
    last = early.last
    return [last if last and last.claim_id == one.claim_id else one for one in found], put_off


class _Meter:
    """Keeps what one call has consumed so far in the usage of its session; others may be under way."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._counted = Usage()

    def read(self, usage: Usage) -> None:
        """``usage`` is all that the call has consumed."""
        self._session.usage = total(less(self._session.usage, self._counted), usage)
        self._counted = usage


class _Early:
    """Passes on what a judge says before its reply.

    What is then the last open claim of the call is held for ``LAST_HELD_S``, and never until it is given up:
    a verdict that is known must not be lost to a reply that does not end. What can't stand by itself is left
    to the whole reply, and to ``reconcile``.
    """

    def __init__(
        self,
        claims: dict[str, Claim],
        left_s: dict[str, float],
        name: str,
        heard: Callable[[Judgement], None],
    ) -> None:
        """``left_s``: the seconds after which each claim of the call is given up."""
        self._claims = claims
        self._open = left_s
        self._name = name
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self.absent_links: frozenset[str] = frozenset()
        self.last: Judgement | None = None

    def hear(self, judgement: Judgement) -> None:
        claim_id = judgement.claim_id
        if claim_id not in self._open:
            return
        asked = {claim_id: self._claims[claim_id]}
        sound = reconcile(asked, JudgeReply((judgement,)), self._name)[claim_id]
        if sound.verdict is not judgement.verdict:
            return
        sound = take_in(sound, self._claims[claim_id], self.absent_links)
        given_up_at = self._began_at + self._open.pop(claim_id)
        if self._open:
            self._heard(sound)
        else:
            self.last = sound
            at = min(self._loop.time() + LAST_HELD_S, given_up_at - DEADLINE_MARGIN_S)
            self._timer = self._loop.call_at(at, self._heard, sound)

    def put_off(self, reply: JudgeReply) -> list[Judgement]:
        """Those of the claims put off that have no verdict after all."""
        told = {judgement.claim_id for judgement in reply.judgements}
        return [each for each in reply.put_off if each.claim_id in self._open and each.claim_id not in told]

    def close(self) -> None:
        """The call is over: what was held is in its result."""
        if self._timer is not None:
            self._timer.cancel()
