"""The Judge protocol: claims with their passages in, judgements out as they become known.

Use a judge with ``async for judgement in judge.judge(request)``. Each judgement is final. The end of the
stream means that there are no more, and a claim without a judgement is UNVERIFIED. A JudgeError ends the
stream too, and leaves earlier judgements standing. A request reports back through two objects only:

- the ``Meter``, in which a judge records what its calls consume, and which it asks before each further call.
  The meter's owner reads it, however the request ended. A judge that wraps another and wants its own count
  passes on its own meter, which forwards everything.
- the ``Gathering``, with which a judge may leave claims to the next request.

Code that relies on judgements takes them from ``streams.checked``, which validates them in one place: the
engine for a response, the cascade for its bands, the cache for its entries. Other wrapping judges pass
judgements on unchanged. Closing an unwanted stream cancels the call behind it. The tools in ``streams``, and
nothing else, merge streams, bound them in time and close them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, runtime_checkable

from guardrail.claims.model import Claim
from guardrail.events import Usage, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.limits import ResponseBudget
from guardrail.verdicts import Judgement, total


class Meter:
    """What one request has consumed so far.

    A judge calls ``admit`` before each of its calls, and ``add`` when it sends one and whenever it knows
    more: the request may be cancelled before its reply reports any usage.
    """

    def __init__(self, parent: Meter | None = None) -> None:
        """Everything is forwarded to ``parent``, which may also refuse calls."""
        self._parent = parent
        self.usage = Usage()
        self.counts = False
        """Whether the judge counts its calls: anything was added, be it nothing."""

    @property
    def attempts(self) -> int:
        """Calls made; 1 for a judge that doesn't count them."""
        return self.usage.judge_calls if self.counts else 1

    def admit(self) -> None:
        """Ask to make one more call. Raises JudgeUnavailable if that isn't allowed."""
        if self._parent is not None:
            self._parent.admit()

    def add(self, usage: Usage, model: str = "") -> None:
        """Record usage since the last time, by ``model`` if the judge has several."""
        self.counts = True
        self.usage = total(self.usage, usage)
        if self._parent is not None:
            self._parent.add(usage, model)


class Gathering(Protocol):
    """Lets a judge put claims off, so that the next request judges them together with later ones."""

    @property
    def known(self) -> Mapping[str, Judgement]:
        """What the judge said about claims of this request when it put them off earlier."""

    def may_defer(self) -> bool:
        """Whether claims could be put off now."""

    def defer(self, judgements: Sequence[Judgement], *, urgent: bool = False) -> bool:
        """Put claims off, each with the preliminary judgement known so far; ``urgent`` ones only for the sake
        of claims that are already waiting.

        Returns False if they can't be put off: the judge must go on, and other requests may be made for the
        response. Otherwise no other request is made until then or until the stream ends, so that its claims
        can go together.
        """


MOST_QUESTION_CHARS: Final = 20_000
"""Characters of a question that judges read: with more of them it is a document, pasted in."""
_LEFT_OUT: Final = "\n[…]\n"


def question_to_judge(question: str) -> str:
    """The question as judges read it: of a very long one the beginning and the end, where people ask."""
    if len(question) <= MOST_QUESTION_CHARS:
        return question
    half = (MOST_QUESTION_CHARS - len(_LEFT_OUT)) // 2
    return f"{question[:half]}{_LEFT_OUT}{question[-half:]}"


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Claims of *one* response, to be judged together.

    ``question`` has at most ``MOST_QUESTION_CHARS``. ``claims`` maps claim ids to claims, in text order.
    ``evidence`` is the response's prepared contexts: passages, search, and the check of quotes; concurrent
    requests may share it. ``deadline`` is a reading of
    ``time.monotonic()`` after which nobody waits for a judgement. ``spent`` is what the response had consumed
    when the request was made. Without ``gathering`` no claim may be put off.

    ``turn_within_s`` is set if another judge can give a better answer. A judge with a queue then serves
    requests without it first, and after that many seconds returns what it can tell at once (and says so in
    ``degraded_from``); with 0 it does so even if it is free. ``budget`` is the policy's budget for judging
    the response; None: no bound.

    ``since``, a reading of the same clock, is when the time of the first of the claims began: they may have
    waited for a turn since then. None: it begins now.

    ``parts``: the statements of each claim are wanted. A judge that takes claims apart in the same call gives
    every claim its ``parts``, one of a single statement that one.
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
    since: float | None = None
    parts: bool = False

    @property
    def has_contexts(self) -> bool:
        """Whether there is any text to judge by."""
        return any(context.text.strip() for context in self.evidence.contexts)


@runtime_checkable
class Judge(Protocol):
    """Anything that gives verdicts.

    ``judge`` answers one request, usually as an async generator. It may be called concurrently, may be
    cancelled at any await and closed at any yield, must not block the event loop, and raises JudgeError if it
    can't answer. ``aclose`` releases what the judge holds; no call follows it.
    """

    @property
    def name(self) -> str: ...

    def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class GatheringJudge(Judge, Protocol):
    """A judge that puts claims off while more text comes, each for at most ``max_wait_s`` seconds."""

    @property
    def max_wait_s(self) -> float: ...


@runtime_checkable
class PacedJudge(Judge, Protocol):
    """A judge that knows its own pace, because its claims wait for a processor of this machine.

    ``wait_s`` is how long the last of ``more`` further claims would wait for its verdict, in seconds, were
    they asked now and read wholly.
    """

    def wait_s(self, more: int = 0) -> float: ...


class Around:
    """What a judge around another has of it: its name, how long it lets claims wait, and its end."""

    def __init__(self, judge: Judge, max_wait_s: float | None = None) -> None:
        """Takes over ``judge``, and closes it. ``max_wait_s``: how long claims may wait for others, if not as
        long as the judge lets them; 0: not at all.
        """
        self._judge = judge
        own = judge.max_wait_s if isinstance(judge, GatheringJudge) else 0.0
        self.max_wait_s = own if max_wait_s is None else max_wait_s

    @property
    def name(self) -> str:
        return self._judge.name

    async def aclose(self) -> None:
        """Close the judge."""
        await self._judge.aclose()


def without_contexts(request: JudgeRequest, judge: str, attempts: int = 0) -> Iterator[Judgement]:
    """The judgements where there are no contexts, and nobody is asked."""
    told = "There are no contexts to support it."
    for claim_id in request.claims:
        yield Judgement(claim_id, Verdict.UNSUPPORTED, 1.0, 0.0, judge, reasoning=told, attempts=attempts)


# How far full confidence in a verdict moves the probability of support away from 1/2.
_SWING: Final = {
    Verdict.SUPPORTED: 0.5,
    Verdict.PARTIALLY_SUPPORTED: -0.1,
    Verdict.UNSUPPORTED: -0.4,
    Verdict.CONTRADICTED: -0.5,
}


def support_of(verdict: Verdict, confidence: float) -> float | None:
    """The probability that a claim is supported, from a verdict and the model's confidence in it.

    ``1/2 + swing(verdict) * confidence``: zero confidence says nothing, whatever the verdict; full confidence
    gives 1.0 for SUPPORTED, 0.4 for PARTIALLY_SUPPORTED (a part of it is not), 0.1 for UNSUPPORTED (the model
    may have overlooked it) and 0.0 for CONTRADICTED. Monotone and fixed, not yet fitted to data.
    """
    swing = _SWING.get(verdict)
    return None if swing is None else round(0.5 + swing * confidence, 6)
