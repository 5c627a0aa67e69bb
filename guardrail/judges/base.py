"""The Judge protocol: claims with their passages in, judgements out as they become known.

A judge is asked by ``async for judgement in judge.judge(request)``. Each judgement is final, and the stream's
end says that there are no more: a claim without one is UNVERIFIED. A JudgeError ends the stream too, and
leaves standing what came before it. Nothing is reported back through the request but by two objects in it:

- the ``Meter``, in which a judge records what its calls consume and asks whether it may make another. Whoever
  made the meter reads it, however the request ended; a judge around a judge that wants its own count hands on
  a meter of its own, which passes everything on.
- the ``Gathering``, by which a judge may leave claims to the next request.

Who relies on judgements takes them from ``streams.checked``, which checks what a judge says in one place: the
engine for a response, the cascade for its bands, the cache for what it keeps. Other judges around judges pass
on what they hear. A stream that nobody wants any more is closed, which cancels the call behind it. Streams
are joined, bounded in time and closed by the few tools in ``streams``, and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from guardrail.claims.model import Claim
from guardrail.events import Usage
from guardrail.evidence.index import EvidenceIndex
from guardrail.limits import ResponseBudget
from guardrail.verdicts import Judgement, total


class Meter:
    """What one request has consumed so far.

    A judge calls ``admit`` ahead of each of its calls, and ``add`` as it sends one and whenever it knows
    more: the request may be cancelled before its reply tells what it took.
    """

    def __init__(self, parent: Meter | None = None) -> None:
        """Everything is passed on to ``parent``, which may refuse calls as well."""
        self._parent = parent
        self.usage = Usage()
        self.counts = False
        """Whether the judge counts its calls: anything was added, be it nothing."""

    @property
    def attempts(self) -> int:
        """Calls made; 1 for a judge that doesn't count them."""
        return self.usage.judge_calls if self.counts else 1

    def admit(self) -> None:
        """Ask to make one more call. Raises JudgeUnavailable where none may be made."""
        if self._parent is not None:
            self._parent.admit()

    def add(self, usage: Usage, model: str = "") -> None:
        """Record what was consumed since the last time, by ``model`` where the judge has several."""
        self.counts = True
        self.usage = total(self.usage, usage)
        if self._parent is not None:
            self._parent.add(usage, model)


class Gathering(Protocol):
    """Lets a judge put claims off: leave them to the next request, to be judged with what comes by then."""

    @property
    def known(self) -> Mapping[str, Judgement]:
        """What the judge said of claims of this request when it put them off before."""

    def may_put_off(self) -> bool:
        """Whether claims could be put off now."""

    def put_off(self, judgements: Sequence[Judgement], *, urgent: bool = False) -> bool:
        """Put claims off, each with what is known of it, which is no verdict; ``urgent`` ones only for the
        sake of claims that wait already.

        False where they may not be: the judge is to go on, and other requests may be made for the response.
        Until then, or the end of the stream, none is, so that its claims can go together.
        """


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Claims of *one* response, to be judged in one go.

    ``claims`` maps claim ids to claims, in the order of the text. ``evidence`` is the response's prepared
    contexts: passages, search, and the check of quotes; it may be shared between concurrent requests.
    ``deadline`` is a reading of ``time.monotonic()``: nobody waits for a judgement after it. ``spent`` is
    what the response had consumed when the request was made. Without ``gathering`` no claim may be put off.
    Where ``turn_within_s`` is set, another judge can answer better: one at which requests queue takes those
    first that have none, and after that many seconds says what it can tell at once (and in ``degraded_from``
    that it did); with 0 it does so even when it is free. ``budget`` is what the policy allows for judging the
    response, in place of the judge's own bound for one; None: that holds.
    """

    response_id: str
    question: str
    claims: dict[str, Claim]
    evidence: EvidenceIndex
    deadline: float
    generator_model: str | None = None
    tenant: str | None = None
    spent: Usage = field(default_factory=Usage)
    meter: Meter = field(default_factory=Meter)
    gathering: Gathering | None = None
    turn_within_s: float | None = None
    budget: ResponseBudget | None = None


@runtime_checkable
class Judge(Protocol):
    """Anything that gives verdicts.

    ``judge`` answers one request, usually as an async generator. It may be called concurrently, may be
    cancelled at any await and closed at any yield, must not block the event loop, and raises JudgeError when
    it can't answer. ``aclose`` releases what the judge holds; no call follows it.
    """

    @property
    def name(self) -> str: ...

    def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class GatheringJudge(Judge, Protocol):
    """A judge that puts claims off while more text comes, for ``max_wait_s`` seconds each at most."""

    @property
    def max_wait_s(self) -> float: ...
