"""The cascade judge: two tiers, one deadline, and no verdict better than what was checked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError
from guardrail.events import Usage, Verdict
from guardrail.judges.base import (
    Gathering,
    Judge,
    Judgement,
    JudgeReply,
    JudgeRequest,
    ToldUsage,
    attempts_of,
    reconcile,
    told_usage,
    total,
    unverified,
)
from guardrail.judges.cascade.bands import settled
from guardrail.judges.cascade.settings import CascadeSettings
from guardrail.printable import escape_controls, shorten

_log = logging.getLogger(__name__)
_NAME = "cascade"
_WHY_CHARS = 200
_GRACE_S = 0.05
_TURN_S = 0.02
_LAST_WORD_S = 0.03
_DOUBTED = 0.5
_ENOUGH = 4


@dataclass(slots=True)
class _Answers:
    """What one tier said of the claims it was asked, and why it did not of the others."""

    found: dict[str, Judgement] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    missing: str = ""
    attempts: int = 0


class CascadeJudge:
    """A Judge. Each judgement bears the name of the tier that gave it.

    A verdict of the first judge that stands in for one of the second names the second, and what kept it from
    answering, in ``degraded_from``; its support stays what the first judge found.
    """

    def __init__(
        self,
        first: Judge,
        second: Judge,
        settings: CascadeSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Both judges become the cascade's: ``aclose`` closes them. ``clock`` is that of deadlines."""
        self._first = first
        self._second = second
        self._settings = settings or CascadeSettings()
        self._clock = clock

    @property
    def name(self) -> str:
        """``cascade``; judgements bear the names of the tiers."""
        return _NAME

    @property
    def max_wait_s(self) -> float:
        """How long claims that the first judge can't settle gather for the second; 0: not at all."""
        return self._settings.max_wait_ms / 1000

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """All claims by the first judge, those it can't settle by the second, in one call, now or later."""
        announced: dict[str, Judgement] = {}
        gathering = request.gathering
        known = {} if gathering is None else gathering.known
        fresh = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id not in known}
        first = await self._ask_first(request, fresh, announced, _turn_within_s(gathering))
        first.found.update(known)
        open_ids = [
            claim_id
            for claim_id, claim in request.claims.items()
            if claim_id in known
            or (
                claim_id not in announced
                and not settled(first.found[claim_id], claim.severity, self._settings)
            )
        ]
        for claim_id in request.claims:
            if claim_id not in open_ids and claim_id not in announced:
                _announce(request, first.found[claim_id], announced)
        if not open_ids:
            return JudgeReply(tuple(announced[claim_id] for claim_id in request.claims), first.usage)
        if gathering is not None:
            open_ = tuple(first.found[claim_id] for claim_id in open_ids)
            if gathering.may_put_off(_urgent(open_)):
                return JudgeReply(tuple(announced.values()), first.usage, open_)
            gathering.going()
        first, second = await self._ask_on(request, open_ids, first, announced)
        judgements = {
            claim_id: announced.get(claim_id) or self._degraded(request, claim_id, first, second)
            for claim_id in request.claims
        }
        return JudgeReply(tuple(judgements.values()), total(first.usage, second.usage))

    async def aclose(self) -> None:
        """Close both, the second also when closing the first fails."""
        try:
            await self._first.aclose()
        finally:
            await self._second.aclose()

    async def _ask_first(
        self,
        request: JudgeRequest,
        claims: dict[str, Claim],
        announced: dict[str, Judgement] | None,
        turn_within_s: float | None,
    ) -> _Answers:
        """What the first judge says of ``claims``, of each something; what it is sure of is ``announced``,
        unless that is None."""
        if not claims:
            return _Answers()

        def heard(judgement: Judgement) -> None:
            claim = claims.get(judgement.claim_id)
            if announced is None or claim is None or judgement.claim_id in announced:
                return
            sound = _sound(judgement, claim, self._first.name)
            if sound is not None and settled(sound, claim.severity, self._settings):
                _announce(request, sound, announced)

        asked = replace(
            request, claims=claims, on_judgement=heard, gathering=None, turn_within_s=turn_within_s
        )
        answers = await _ask(self._first, asked, request.deadline - self._clock(), Usage())
        for claim_id in claims:
            if claim_id not in answers.found:
                reason = f"{self._first.name}: {answers.missing or 'no verdict'}"
                answers.found[claim_id] = unverified(
                    claim_id, self._first.name, reason, attempts=answers.attempts
                )
        return answers

    async def _ask_second(
        self, request: JudgeRequest, open_ids: list[str], first: _Answers, announced: dict[str, Judgement]
    ) -> _Answers:
        deadline = request.deadline - self._settings.reserve_ms / 1000
        left = deadline - self._clock()
        if left * 1000 < self._settings.least_call_ms:
            return _Answers(missing="not asked: too little time was left")

        def heard(judgement: Judgement) -> None:
            if judgement.claim_id in open_ids and judgement.claim_id not in announced:
                sound = _sound(judgement, request.claims[judgement.claim_id], self._second.name)
                if sound is not None:
                    _announce(request, _with_findings(sound, first), announced)

        asked = replace(
            request,
            claims={claim_id: request.claims[claim_id] for claim_id in open_ids},
            deadline=deadline,
            spent=total(request.spent, first.usage),
            on_judgement=heard,
            gathering=None,
        )
        # A judge that keeps its deadline says at it what it knows and what that took; that must get through.
        seconds = left + min(self._settings.reserve_ms / 2000, _GRACE_S)
        answers = await _ask(self._second, asked, seconds, Usage())
        for claim_id in open_ids:
            given = answers.found.get(claim_id)
            if given is not None and given.verdict is not Verdict.UNVERIFIED and claim_id not in announced:
                _announce(request, _with_findings(given, first), announced)
        return answers

    async def _ask_on(
        self, request: JudgeRequest, open_ids: list[str], first: _Answers, announced: dict[str, Judgement]
    ) -> tuple[_Answers, _Answers]:
        """What both judges say in the end of the claims that the first left open.

        Claims that the first has looked at in part only it reads when the second has not answered, or half of
        its time is gone: there has to be a whole verdict, should it never answer.
        """
        over = asyncio.Event()
        half = (request.deadline - self._clock()) / 2
        spent = {"again": Usage(), "second": Usage()}

        def tells(whose: str) -> JudgeRequest:
            """The request, with what both calls have consumed so far told as one."""

            def tell(usage: Usage) -> None:
                spent[whose] = usage
                if request.on_usage is not None:
                    request.on_usage(total(first.usage, *spent.values()))

            return replace(request, on_usage=tell)

        async def look_again() -> _Answers:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(half):
                    await over.wait()
            claims = {
                claim_id: request.claims[claim_id]
                for claim_id in open_ids
                if claim_id not in announced and first.found[claim_id].degraded_from
            }
            # What it says by then must get through before the claims are given up.
            within = replace(tells("again"), deadline=request.deadline - _LAST_WORD_S)
            return await self._ask_first(within, claims, None, None)

        async with asyncio.TaskGroup() as group:
            looking = group.create_task(look_again())
            second = await self._ask_second(tells("second"), open_ids, first, announced)
            over.set()
            if all(claim_id in announced for claim_id in open_ids):
                looking.cancel()
        again = _Answers(usage=spent["again"]) if looking.cancelled() else looking.result()
        found = dict(first.found)
        for claim_id, judgement in again.found.items():
            if judgement.verdict is not Verdict.UNVERIFIED:
                found[claim_id] = judgement
                if claim_id not in announced and settled(
                    judgement, request.claims[claim_id].severity, self._settings
                ):
                    _announce(request, judgement, announced)
        return replace(first, found=found, usage=total(first.usage, again.usage)), second

    def _degraded(self, request: JudgeRequest, claim_id: str, first: _Answers, second: _Answers) -> Judgement:
        """What a claim gets that the second judge should have given a verdict on and did not."""
        own = first.found[claim_id]
        given = second.found.get(claim_id)
        attempts = second.attempts if given is None else given.attempts
        why = second.missing or "no verdict on this claim"
        if given is not None:
            why = given.reasoning or "could not verify this claim"
        # It may have asked another in its stead, which is then the one that failed.
        who = (given.judge if given is not None else "") or self._second.name
        path = (*(given.degraded_from if given is not None else ()), _named(who, why))
        if own.verdict is Verdict.UNVERIFIED:
            reason = f"neither judge could check it; {path[-1]}"
            return unverified(
                claim_id,
                who,
                reason,
                attempts=own.attempts + attempts,
                degraded_from=(_named(own.judge, own.reasoning), *path),
            )
        if self._settings.fallback(request.claims[claim_id].severity) == "unverified":
            reason = f"{path[-1]}; a {request.claims[claim_id].severity.value} claim needs it"
            return unverified(claim_id, who, reason, attempts=own.attempts + attempts, degraded_from=path)
        return replace(
            own, attempts=own.attempts + attempts, degraded_from=(*own.degraded_from, *path), usage=own.usage
        )


def _turn_within_s(gathering: Gathering | None) -> float | None:
    """How long the first judge may be waited for before it looks at claims in part only.

    Not at all where others go to the second judge now: it could save a claim, but no call.
    """
    if gathering is None:
        return None
    return 0.0 if gathering.known and not gathering.may_put_off(False) else _TURN_S


def _urgent(open_: Sequence[Judgement]) -> bool:
    """Shall the second judge be asked before more claims come?

    It shall where the first finds a claim more likely wrong than right, since that should be known soon, and
    where so many have gathered that whoever waits for the last of them would wait for a long reply.
    """
    doubted = any(each.support is not None and each.support < _DOUBTED for each in open_)
    return doubted or len(open_) >= _ENOUGH


async def _ask(judge: Judge, request: JudgeRequest, seconds: float, spent: Usage) -> _Answers:
    """The sound judgements of ``judge`` within the time; never raises but for cancellation.

    ``spent`` is what the cascade had consumed for the request before.
    """
    told = ToldUsage(request.on_usage, before=spent)
    try:
        async with asyncio.timeout(seconds):
            reply = await judge.judge(replace(request, on_usage=told))
    except TimeoutError:
        return _Answers(usage=told.last, missing="late", attempts=told.last.judge_calls or 1)
    except JudgeError as error:
        return _Answers(usage=told_usage(error) or told.last, missing=str(error), attempts=attempts_of(error))
    except Exception as error:  # noqa: BLE001 - a faulty tier must not take the other's verdicts with it
        _log.error("faulty judge %r: %s", judge.name, type(error).__name__)
        return _Answers(usage=told.last, missing=f"{type(error).__name__} in the judge", attempts=1)
    given = {judgement.claim_id for judgement in reply.judgements}
    asked = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id in given}
    return _Answers(reconcile(asked, reply, judge.name), reply.usage, "left out of the reply", attempts=1)


def _sound(judgement: Judgement, claim: Claim, judge: str) -> Judgement | None:
    """An early judgement that can stand by itself, None for what the whole reply has to tell."""
    sound = reconcile({judgement.claim_id: claim}, JudgeReply((judgement,)), judge)[judgement.claim_id]
    return None if sound.verdict is Verdict.UNVERIFIED else sound


def _with_findings(judgement: Judgement, first: _Answers) -> Judgement:
    """The second judge's verdict with what the first found out exactly, unless the second lifts it."""
    found = first.found[judgement.claim_id].findings
    if not found or judgement.verdict is Verdict.SUPPORTED:
        return judgement
    return replace(judgement, findings=tuple(dict.fromkeys((*judgement.findings, *found))))


def _announce(request: JudgeRequest, judgement: Judgement, announced: dict[str, Judgement]) -> None:
    """Tell what is final, once: the reply repeats it, whatever comes later."""
    announced[judgement.claim_id] = judgement
    if request.on_judgement is not None and judgement.verdict is not Verdict.UNVERIFIED:
        request.on_judgement(judgement)


def _named(judge: str, why: str) -> str:
    """A line of ``degraded_from``: who, and why not."""
    return shorten(escape_controls(f"{judge}: {why}"), _WHY_CHARS)
