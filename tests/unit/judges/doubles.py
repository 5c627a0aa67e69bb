"""Judges that say what a test tells them to, and requests for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence

from guardrail.claims import Claim
from guardrail.events import Context, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict

CALL = Usage(judge_calls=1, input_tokens=100, output_tokens=10)
CONTEXTS = ("The basic plan costs $50 a month.", "Support is open from 9 to 17 on weekdays.")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def judgement(
    claim_id: str = "k0",
    verdict: Verdict = Verdict.SUPPORTED,
    support: float | None = 0.9,
    *,
    judge: str = "llm:m",
    confidence: float = 0.9,
) -> Judgement:
    return Judgement(claim_id, verdict, confidence, support, judge, usage=None)


def claim(text: str, index: int = 0, lead_in: str = "", severity: Severity = Severity.NORMAL) -> Claim:
    return Claim(index, index, text, 0, len(text), severity, lead_in=lead_in)


def request(
    *claims: str | Claim,
    severities: Sequence[Severity] = (),
    contexts: Sequence[str | Context] = CONTEXTS,
    seconds: float = 60.0,
    response_id: str = "r1",
    tenant: str | None = None,
    question: str = "What does it cost?",
    spent: Usage | None = None,
) -> JudgeRequest:
    """Claims get the ids k0, k1, …; contexts the ids doc-0, doc-1, …; severity is NORMAL unless given."""
    given = [*severities, *[Severity.NORMAL] * len(claims)]
    return JudgeRequest(
        response_id,
        question,
        {
            f"k{n}": item if isinstance(item, Claim) else claim(item, n, severity=given[n])
            for n, item in enumerate(claims)
        },
        EvidenceIndex(
            [
                item if isinstance(item, Context) else Context(id=f"doc-{number}", text=item)
                for number, item in enumerate(contexts)
            ]
        ),
        time.monotonic() + seconds,
        tenant=tenant,
        spent=spent or Usage(),
    )


class ScriptedJudge:
    """Answers by the claim's text; a text that it has no line for is left out of the reply.

    A line is a judgement (its claim id is replaced) or a verdict. ``error`` is raised in place of the rest,
    ``gate`` is waited for first; ``early`` are the texts that are judged before the gate. ``usage`` is what a
    call takes of ``model``, told after the gate; None: it counts nothing.
    """

    def __init__(
        self,
        script: Mapping[str, Judgement | Verdict] | None = None,
        *,
        name: str = "llm:m",
        error: Exception | None = None,
        gate: asyncio.Event | None = None,
        early: Sequence[str] = (),
        usage: Usage | None = CALL,
        model: str = "",
    ) -> None:
        self.script = dict(script or {})
        self._name = name
        self.error = error
        self.gate = gate
        self.early = tuple(early)
        self.usage = usage
        self.model = model
        self.requests: list[JudgeRequest] = []
        self.started = asyncio.Event()
        self.cancelled = 0
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def asked(self) -> list[list[str]]:
        """The texts of the claims, call by call."""
        return [[claim.text for claim in request.claims.values()] for request in self.requests]

    def _said(self, request: JudgeRequest, only: Sequence[str] | None = None) -> list[Judgement]:
        found = []
        for claim_id, claim in request.claims.items():
            line = self.script.get(claim.text)
            if line is None or (only is not None and claim.text not in only):
                continue
            if isinstance(line, Verdict):
                support = None if line is Verdict.UNVERIFIED else 0.9 if line is Verdict.SUPPORTED else 0.1
                line = Judgement("", line, 0.9, support, self._name)
            values = {name: getattr(line, name) for name in Judgement.__dataclass_fields__}
            found.append(Judgement(**values | {"claim_id": claim_id}))
        return found

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.requests.append(request)
        self.started.set()
        for early in self._said(request, self.early):
            yield early
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if self.usage is not None:
            request.meter.add(self.usage, self.model)
        if self.error is not None:
            raise self.error
        for each in self._said(request):
            if request.claims[each.claim_id].text not in self.early:
                yield each

    async def aclose(self) -> None:
        self.closed = True
