"""The cascade judge: two tiers, one deadline, and no verdict that claims more than was checked.

The settings say which judge is first, which is second, and how sure the first must be for its verdict to
stand.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, field_validator, model_validator

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError, JudgeRefused
from guardrail.events import LEFT_OPEN, Finding, Severity, Verdict
from guardrail.evidence.shown import ShownText
from guardrail.figures import FigureSource, SourceText, State, check_figures
from guardrail.figures.agreement import is_plain
from guardrail.frozen import Frozen
from guardrail.judges.base import Gathering, Judge, JudgeRequest, Meter, PacedJudge
from guardrail.judges.streams import ENOUGH, beside, checked, closing, within
from guardrail.log_events import EventLog
from guardrail.printable import escape_controls, shorten
from guardrail.verdicts import HALF_CHECKED, Judgement, checked_in_part, total, unverified

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
Fallback = Literal["local", "unverified"]


class Band(Frozen):
    """How sure the first judge must be for its verdict to stand.

    The band is the range of probabilities of support (0 to 1) between ``reject_support`` and
    ``accept_support``: a claim inside it goes to the second judge.
    """

    reject_support: ClassVar[float] = 0.0
    """A verdict other than SUPPORTED stands up to this probability of support. On claims of real answers no
    probability above 0 was low enough."""

    accept_support: Probability = Field(description="SUPPORTED stands from this probability of support on.")


# On claims of real answers that people rated (benchmarks.cascade_share --lfqa), at least 99 of 100 settled
# claims are right.
DEFAULT_BANDS: Final[Mapping[Severity, Band]] = {
    Severity.MINOR: Band(accept_support=0.8),
    Severity.NORMAL: Band(accept_support=0.92),
    Severity.MAJOR: Band(accept_support=0.94),
    Severity.CRITICAL: Band(accept_support=0.97),
}


class CascadeSettings(Frozen):
    """Which claims the second judge gets, and what happens to them if it can't answer."""

    reserve_ms: ClassVar[int] = 100
    """Time before the claims' deadline at which the second judge is given up, so that the first one's
    verdicts are still in time."""
    least_call_ms: ClassVar[int] = 300
    """With less time than this left the second judge is not asked at all: hardly any would answer."""

    first: Literal["local", "hhem", "classifier"] = Field(
        default="local", description="Judges every claim; configured in its own section of judge."
    )
    second: Literal["llm", "decisions", "hhem", "classifier", "custom", "http"] = Field(
        default="llm", description="Judges the claims that the first can't settle; configured likewise."
    )
    bands: dict[Severity, Band] = Field(
        default_factory=lambda: dict(DEFAULT_BANDS),
        description="By severity: the probability of support from which SUPPORTED stands "
        "(accept_support). Omitted severities keep their defaults.",
    )
    max_wait_ms: ClassVar[int] = 1_500
    """How long an unsettled claim waits for others where ``judge.max_wait_ms`` says nothing: longer than for
    an LLM alone, since few claims are unsettled."""

    on_unavailable: dict[Severity, Fallback] = Field(
        default_factory=dict,
        description="What a claim gets if the second judge should have judged it and didn't (late, "
        "failed, over budget, left out), by severity. local: the first judge's verdict "
        "with its own support, the default. unverified: UNVERIFIED, so that the policy's "
        "on_unverified decides. One word instead of a mapping applies to all severities.",
    )

    @field_validator("bands", mode="before")
    @classmethod
    def _merged(cls, value: Any) -> Any:
        """Given severities over the default ones."""
        return {**DEFAULT_BANDS, **value} if isinstance(value, Mapping) else value

    @field_validator("on_unavailable", mode="before")
    @classmethod
    def _for_all(cls, value: Any) -> Any:
        return {severity.value: value for severity in Severity} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _two(self) -> CascadeSettings:
        if self.first == self.second:
            raise ValueError(f"first and second are both {self.first}; name two different judges")
        return self

    def fallback(self, severity: Severity) -> Fallback:
        """What replaces the second judge's verdict on a claim of that severity."""
        return self.on_unavailable.get(severity, "local")


def settled(judgement: Judgement, severity: Severity, settings: CascadeSettings) -> bool:
    """Whether ``judgement`` stands. One that is unchecked, partly checked or without a probability never
    does, because the bands were fitted on complete judgements of the first judge.
    """
    support = judgement.support
    if judgement.verdict is Verdict.UNVERIFIED or support is None or judgement.degraded_from:
        return False
    if judgement.verdict is Verdict.CONTRADICTED and severity is Severity.CRITICAL:
        # The gravest case: a wrong dosage shown, or a correct one withheld. The second judge confirms or
        # overturns it, and if it can't answer, the verdict stands.
        return False
    band = settings.bands[severity]
    if judgement.verdict is Verdict.SUPPORTED:
        return support >= band.accept_support
    return support <= band.reject_support


_log = EventLog(__name__)
_LEFT_OPEN: Final = frozenset({Finding.JUDGE_REFUSED, Finding.JUDGE_UNCLEAR})
_NAME = "cascade"
_WHY_CHARS = 200
_GRACE_S = 0.05
_TURN_S = 0.02
_LAST_WORD_S = 0.03
_DOUBTED = 0.5


class _Tier:
    """One of the judges, asked once: its judgements, and why it gives none on the other claims."""

    def __init__(
        self,
        judge: Judge,
        request: JudgeRequest,
        seconds: float,
        *,
        least_s: float = float("-inf"),
        grace_s: float = 0.0,
    ) -> None:
        """The judge isn't asked with less than ``least_s`` seconds left; it gets ``grace_s`` extra seconds
        for its last judgements.
        """
        self.name = judge.name
        self.meter = Meter(request.meter)
        self.found: dict[str, Judgement] = {}
        self.missing = "left out of the reply"
        self.refused = False
        self.attempts = 1
        self._judge = judge
        self._request = replace(request, meter=self.meter, gathering=None)
        self._seconds = seconds
        self._least_s = least_s
        self._grace_s = grace_s

    async def judgements(self) -> AsyncIterator[Judgement]:
        """The judgements as they come. Raises only cancellation."""
        if self._seconds < self._least_s:
            self.missing, self.attempts = "not asked: too little time was left", 0
            return
        said = within(self._seconds + self._grace_s, checked(self._judge, self._request))
        try:
            async with closing(said):
                async for judgement in said:
                    self.found[judgement.claim_id] = judgement
                    yield judgement
        except TimeoutError:
            self.missing, self.attempts = "late", self.meter.usage.judge_calls or 1
        except JudgeError as error:
            self.missing, self.attempts = str(error), self.meter.attempts
            self.refused = isinstance(error, JudgeRefused)
        except Exception as error:  # noqa: BLE001 - a faulty tier must not take the other's verdicts with it
            _log.error("judge.faulty", judge=self.name, error=type(error).__name__)
            self.missing = f"{type(error).__name__} in the judge"


class CascadeJudge:
    """A Judge. Each judgement bears the name of the tier that gave it.

    If a verdict of the first judge replaces one of the second, its ``degraded_from`` names the second judge
    and why it didn't answer; the support stays the first judge's.
    """

    def __init__(
        self,
        first: Judge,
        second: Judge,
        settings: CascadeSettings | None = None,
        *,
        max_wait_ms: int | None = None,
    ) -> None:
        """The cascade owns both judges: ``aclose`` closes them. ``max_wait_ms`` is ``judge.max_wait_ms``."""
        self._first = first
        self._second = second
        self._settings = settings or CascadeSettings()
        self._max_wait_ms = self._settings.max_wait_ms if max_wait_ms is None else max_wait_ms

    @property
    def name(self) -> str:
        """``cascade``; judgements bear the names of the tiers."""
        return _NAME

    @property
    def max_wait_s(self) -> float:
        """How long unsettled claims wait for others before the second judge is asked; 0: not at all."""
        return self._max_wait_ms / 1000

    def wait_s(self, more: int = 0) -> float:
        """That of the first judge; 0 if it doesn't know its pace."""
        return self._first.wait_s(more) if isinstance(self._first, PacedJudge) else 0.0

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """The first judge judges all claims; unsettled ones go to the second in one call, now or later."""
        gathering = request.gathering
        own = {} if gathering is None else dict(gathering.known)
        fresh = {claim_id: claim for claim_id, claim in request.claims.items() if claim_id not in own}
        open_ = dict(request.claims)
        first = self._first_tier(request, fresh, _turn_within_s(gathering))
        if fresh:
            async with closing(first.judgements()) as judgements:
                async for judgement in judgements:
                    if settled(judgement, fresh[judgement.claim_id].severity, self._settings):
                        del open_[judgement.claim_id]
                        yield judgement
        if not open_:
            return
        for claim_id in fresh:
            own[claim_id] = first.found.get(claim_id) or unverified(
                claim_id, first.name, f"{first.name}: {first.missing}", attempts=first.attempts
            )
        doubtful = [own[claim_id] for claim_id in open_]
        if gathering is not None and gathering.defer(doubtful, urgent=_urgent(doubtful)):
            return
        second = self._second_tier(request, dict(open_), first.meter)
        over = asyncio.Event()
        async with beside(self._look_again(request, own, open_, over)) as looking:
            async with closing(second.judgements()) as judgements:
                async for judgement in judgements:
                    if judgement.verdict is not Verdict.UNVERIFIED and not _unfounded(judgement):
                        claim = open_.pop(judgement.claim_id)
                        yield _with_findings(judgement, own[judgement.claim_id], claim, request.question)
            over.set()
            if open_:
                own.update(await looking)
        for claim_id, claim in open_.items():
            stands = settled(own[claim_id], claim.severity, self._settings)
            yield own[claim_id] if stands else self._degraded(claim, own[claim_id], second)

    async def aclose(self) -> None:
        """Close both, the second even if closing the first fails."""
        try:
            await self._first.aclose()
        finally:
            await self._second.aclose()

    def _first_tier(
        self, request: JudgeRequest, claims: dict[str, Claim], turn_within_s: float | None = None
    ) -> _Tier:
        asked = replace(request, claims=claims, turn_within_s=turn_within_s)
        return _Tier(self._first, asked, request.deadline - time.monotonic())

    def _second_tier(self, request: JudgeRequest, claims: dict[str, Claim], first: Meter) -> _Tier:
        """The grace lets the last judgements of a judge that keeps its deadline get through."""
        reserve_s = self._settings.reserve_ms / 1000
        deadline = request.deadline - reserve_s
        asked = replace(request, claims=claims, deadline=deadline, spent=total(request.spent, first.usage))
        return _Tier(
            self._second,
            asked,
            deadline - time.monotonic(),
            least_s=self._settings.least_call_ms / 1000,
            grace_s=min(reserve_s / 2, _GRACE_S),
        )

    async def _look_again(
        self,
        request: JudgeRequest,
        own: dict[str, Judgement],
        open_: dict[str, Claim],
        over: asyncio.Event,
    ) -> dict[str, Judgement]:
        """Full judgements of the first judge on claims that it has so far only checked in part.

        It makes them if the second judge has not answered, or half of its time is gone: there has to be a
        full verdict in case it never answers.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((request.deadline - time.monotonic()) / 2):
                await over.wait()
        claims = {claim_id: claim for claim_id, claim in open_.items() if own[claim_id].degraded_from}
        if not claims:
            return {}
        # Leave time for the results to get through before the claims are given up.
        # Nothing else comes after it, so it has what time is left.
        left = replace(request, deadline=request.deadline - _LAST_WORD_S, since=None)
        again = self._first_tier(left, claims)
        async with closing(again.judgements()) as judgements:
            return {
                each.claim_id: each async for each in judgements if each.verdict is not Verdict.UNVERIFIED
            }

    def _degraded(self, claim: Claim, own: Judgement, second: _Tier) -> Judgement:
        """The judgement for a claim on which the second judge should have given a verdict and didn't."""
        given = second.found.get(own.claim_id)
        attempts = second.attempts if given is None else given.attempts
        why = second.missing if given is None else given.reasoning or "could not verify this claim"
        # It may have asked another judge instead, which is then the one that failed.
        who = (given.judge if given is not None else "") or second.name
        path = (*(given.degraded_from if given is not None else ()), _named(who, why))
        attempts += own.attempts
        # Whoever leaves it open on purpose says so: that the first judge finds it right does not answer that.
        refused = (Finding.JUDGE_REFUSED,) if second.refused else ()
        left_open = refused if given is None else tuple(each for each in given.findings if each in _LEFT_OPEN)
        reason = ""
        if own.unanswered:
            reason = f"neither judge could check it; {path[-1]}"
            path = (_named(own.judge, own.reasoning), *path)
        elif self._settings.fallback(claim.severity) == "unverified":
            reason = f"{path[-1]}; a {claim.severity.value} claim needs it"
        if reason:
            open_ = unverified(
                own.claim_id,
                who,
                reason,
                attempts=attempts,
                degraded_from=path,
            )
            return open_ if own.unanswered else replace(open_, findings=left_open)
        if own.verdict is Verdict.SUPPORTED and own.degraded_from:  # neither judge has checked it fully
            own = checked_in_part(own)
        # Once more, it would cost another call of the second judge.
        return replace(
            own,
            attempts=attempts,
            degraded_from=(*own.degraded_from, *path),
            findings=tuple(dict.fromkeys((*own.findings, *left_open))),
            hurried=False,
        )


def _turn_within_s(gathering: Gathering | None) -> float | None:
    """How long to wait for the first judge before it checks claims only in part.

    Not at all if other claims go to the second judge now: waiting could save a claim, but no call.
    """
    if gathering is None:
        return None
    return 0.0 if gathering.known and not gathering.may_defer() else _TURN_S


def _urgent(open_: Sequence[Judgement]) -> bool:
    """Whether to ask the second judge before more claims come.

    Yes if the first judge finds a claim more likely wrong than right, which readers should know soon, or if
    so many claims are waiting that the last of them would wait for a long reply.
    """
    return any(map(_is_doubted, open_)) or len(open_) >= ENOUGH


def _is_doubted(judgement: Judgement) -> bool:
    """A claim that is supported as far as it was checked is not doubted."""
    least = HALF_CHECKED if Finding.CHECKED_IN_PART in judgement.findings else _DOUBTED
    return judgement.support is not None and judgement.support < least


def _unfounded(judgement: Judgement) -> bool:
    """Whether the second judge supports a claim without a quote and without being sure, like an LLM that
    names a sentence that doesn't exist. The first judge's verdict is worth more.
    """
    unsure = judgement.confidence < _DOUBTED
    return judgement.verdict is Verdict.SUPPORTED and not judgement.evidence and unsure


def _with_findings(judgement: Judgement, own: Judgement, claim: Claim, question: str) -> Judgement:
    """The second judge's verdict with the first judge's exact findings, unless the second overrules them by
    supporting the claim with quotes that contain its figures. That contexts disagree stays: quotes of one
    side don't settle it.
    """
    unsettled = LEFT_OPEN | {Finding.CHECKED_IN_PART}  # which the second judge settles
    exact = [finding for finding in own.findings if finding not in unsettled]
    if not exact:
        return judgement
    if judgement.verdict is Verdict.SUPPORTED and _quotes_figures(judgement, own, claim, question):
        exact = [finding for finding in exact if finding is Finding.CONTEXTS_DISAGREE]
    return replace(
        judgement,
        findings=tuple(dict.fromkeys((*judgement.findings, *exact))),
        conflicting_contexts=judgement.conflicting_contexts or own.conflicting_contexts,
    )


def _quotes_figures(judgement: Judgement, own: Judgement, claim: Claim, question: str) -> bool:
    """Whether the figures for which the first judge found no support are in the second judge's quotes or
    follow from them. Merely quoting some sentence is not enough.
    """
    quotes = [SourceText(e.context_id, *e.span, ShownText(e.quote).text) for e in judgement.evidence]
    text, lead_in = claim.prose.text, claim.lead_in
    checks = check_figures(text, FigureSource(quotes), range(len(quotes)), question, lead_in)
    doubted = own.unsupported_spans or ((0, len(text)),)
    return bool(quotes) and all(
        check.state in (State.FOUND, State.DERIVED)
        and (check.source is None or is_plain(check.figure, check.source))
        for check in checks
        if not check.figure.name
        and any(start < check.figure.end and check.figure.start < end for start, end in doubted)
    )


def _named(judge: str, why: str) -> str:
    """One entry of ``degraded_from``: which judge, and why it didn't answer."""
    return shorten(escape_controls(f"{judge}: {why}"), _WHY_CHARS)
