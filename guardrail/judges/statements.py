"""What the claims of an answer state one by one, for scores that count statements.

A judge that takes claims apart in its own call says so itself. Claims that others judge are cut by grammar
(``clauses``), and their parts judged where that can tell anything: all parts of a claim that is supported are
supported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

from guardrail.claims.model import read_prose
from guardrail.claims.phrases import pattern
from guardrail.errors import JudgeError
from guardrail.events import ClaimPart, Verdict
from guardrail.judges.base import Around, JudgeRequest
from guardrail.judges.clauses import statements_in
from guardrail.judges.streams import checked, closing
from guardrail.verdicts import Judgement

_POINTS_BACK: Final = pattern("word_for_word_depends")


class StatementsJudge(Around):
    """A judge around another whose judgements of claims of several statements have ``parts``.

    The verdict on a claim stays what the judge says of the whole. The parts of one that is not supported are
    read by the same judge, each beside the same contexts and question, and behind the first part if it points
    back. All are UNVERIFIED if the judge doesn't judge them all.
    """

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields what the judge yields, with parts."""
        async with closing(self._judge.judge(replace(request, parts=True))) as judgements:
            async for judgement in judgements:
                open_ = judgement.verdict is Verdict.UNVERIFIED or judgement.claim_id not in request.claims
                if not (judgement.parts or open_):
                    judgement = replace(judgement, parts=await self._parts(judgement, request))
                yield judgement if len(judgement.parts) > 1 else replace(judgement, parts=())

    async def _parts(self, judgement: Judgement, request: JudgeRequest) -> tuple[ClaimPart, ...]:
        """The parts of a claim, judged if all can be."""
        claim = request.claims[judgement.claim_id]
        texts = statements_in(claim.prose.text)
        if judgement.verdict is Verdict.SUPPORTED or len(texts) == 1:
            return tuple(ClaimPart(text=text, verdict=judgement.verdict) for text in texts)
        claims = {}
        for number, text in enumerate(texts):
            before = texts[0] if number and _POINTS_BACK.match(text) else ""
            lead_in = f"{claim.lead_in} {before}".strip()
            part = replace(claim, text=text, prose=read_prose(text), lead_in=lead_in)
            claims[f"{judgement.claim_id}.{number}"] = part
        told: dict[str, Verdict] = {}
        try:
            async with closing(checked(self._judge, replace(request, claims=claims, gathering=None))) as said:
                async for each in said:
                    told[each.claim_id] = each.verdict
        except JudgeError:
            told.clear()
        if Verdict.UNVERIFIED in told.values() or len(told) < len(claims):
            told = dict.fromkeys(claims, Verdict.UNVERIFIED)
        return tuple(ClaimPart(text=part.text, verdict=told[name]) for name, part in claims.items())
