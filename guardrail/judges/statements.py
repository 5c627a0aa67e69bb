"""What the claims of an answer state one by one, for scores that count statements.

A judge that takes claims apart in its own call says so itself. Claims that others judge are cut by grammar
(``clauses``), and their parts judged where that can tell anything: all parts of a claim that is supported are
supported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from guardrail.claims.model import Claim
from guardrail.errors import JudgeError
from guardrail.events import ClaimPart, Verdict
from guardrail.judges.base import Around, JudgeRequest
from guardrail.judges.clauses import statements_in
from guardrail.judges.streams import checked, closing
from guardrail.verdicts import Judgement


class StatementsJudge(Around):
    """A judge around another whose judgements of claims of several statements have ``parts``.

    The verdict on a claim stays what the judge says of the whole. The parts of one that is not supported are
    read by the same judge, each beside the same contexts and question. A claim keeps no parts where that
    can't be said of each.
    """

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields what the judge yields, with parts."""
        async with closing(self._judge.judge(replace(request, parts=True))) as judgements:
            async for judgement in judgements:
                claim = request.claims.get(judgement.claim_id)
                if judgement.parts or judgement.verdict is Verdict.UNVERIFIED or claim is None:
                    several = len(judgement.parts) > 1
                    yield judgement if several else replace(judgement, parts=())
                    continue
                texts = statements_in(claim.prose.text)
                yield replace(judgement, parts=await self._parts(judgement, claim, texts, request))

    async def _parts(
        self, judgement: Judgement, claim: Claim, texts: Sequence[str], request: JudgeRequest
    ) -> tuple[ClaimPart, ...]:
        if len(texts) < 2:
            return ()
        if judgement.verdict is Verdict.SUPPORTED:
            return tuple(ClaimPart(text=text, verdict=judgement.verdict) for text in texts)
        claims = {
            f"{judgement.claim_id}.{number}": part_of(claim, text) for number, text in enumerate(texts, 1)
        }
        told: dict[str, Verdict] = {}
        try:
            async for part in checked(self._judge, replace(request, claims=claims, gathering=None)):
                told[part.claim_id] = part.verdict
        except JudgeError:
            return ()
        if Verdict.UNVERIFIED in told.values() or len(told) < len(claims):
            return ()
        return tuple(ClaimPart(text=each.text, verdict=told[part_id]) for part_id, each in claims.items())


def part_of(claim: Claim, text: str) -> Claim:
    """The claim of one statement. The markup and the citations of the whole are the whole's."""
    return Claim(
        claim.index, claim.segment, text, claim.start, claim.end, claim.severity, lead_in=claim.lead_in
    )
