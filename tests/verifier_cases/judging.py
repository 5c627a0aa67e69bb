"""What a judge makes of the cases of this folder, claim by claim."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from guardrail.claims.model import Claim
from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judge, Judgement, JudgeRequest
from tests.verifier_cases.cases import Located


class Judged(NamedTuple):
    """A case, and the judgement on its claim."""

    located: Located
    judgement: Judgement

    @property
    def right(self) -> bool:
        """Whether the judge tells supported from not supported as the label does."""
        return (self.judgement.verdict is Verdict.SUPPORTED) == (self.located.case.label == "supported")


async def judged(judge: Judge, cases: Iterable[Located]) -> list[Judged]:
    """Each case with the judge's word on it: a request of its own, its passages the only contexts.

    Raises what the judge raises.
    """
    found = []
    for located in cases:
        case = located.case
        claim = Claim(0, 0, case.claim, 0, len(case.claim), case.severity)
        evidence = EvidenceIndex([Context(id=f"p{n}", text=t) for n, t in enumerate(located.contexts, 1)])
        reply = await judge.judge(JudgeRequest("r", "", {"c": claim}, evidence, time.monotonic() + 60))
        (judgement,) = reply.judgements
        found.append(Judged(located, judgement))
    return found
