"""Words without support, from what a judge says of a claim to where they stand in the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from guardrail.events import ClaimVerdict, DeliverySegment, FlaggedCase, ResponseVerdict
from guardrail.judges import Judgement, JudgeRequest
from guardrail.policy import Policy
from tests.support.engine_bench import Bench, bench
from tests.support.judges import WordJudge

ANSWER = "\U0001f600 Hello. Paris is in France. It costs wrong **$79** in _Köln_."
"""The last claim is CONTRADICTED. The first character is one code point, and two of UTF-16."""


class Marking(WordJudge):
    """Marks ``words`` of each claim that it does not find supported, or ``spans``, whatever these are."""

    def __init__(self, words: tuple[str, ...] = (), spans: Any = None) -> None:
        super().__init__()
        self._words, self._spans = words, spans

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            yield self._marked(each, request)

    def _marked(self, judgement: Judgement, request: JudgeRequest) -> Judgement:
        text = request.claims[judgement.claim_id].prose.text
        spans = tuple((text.find(word), text.find(word) + len(word)) for word in self._words)
        return replace(judgement, unsupported_spans=spans if self._spans is None else self._spans)


async def judged(judge: WordJudge, mode: str = "stream", rules: Any = ()) -> Bench:
    policy = Policy.model_validate({"mode": mode, "rules": rules, "block_below": 0.0, "flag_below": 1.0})
    async with bench(judge, policy) as found:
        found.start()
        for seq, at in enumerate(range(0, len(ANSWER), 7)):
            found.delta(seq, ANSWER[at : at + 7])
        found.complete(seq + 1)
        await found.until(lambda: "r1" in found.closed)
    return found


def words(claim: ClaimVerdict) -> list[str]:
    assert all(claim.span[0] <= start < end <= claim.span[1] for start, end in claim.unsupported_spans)
    return [ANSWER[start:end] for start, end in claim.unsupported_spans]


@pytest.mark.parametrize("mode", ["hold", "stream", "observe"])
async def test_they_are_places_in_the_answer_in_every_event(mode: str) -> None:
    found = await judged(Marking(("$79", "wrong")), mode)
    told: list[ClaimVerdict] = found.of(ClaimVerdict)
    assert {claim.index: words(claim) for claim in told} == {0: [], 1: ["wrong", "$79"]}
    [verdict] = found.of(ResponseVerdict)
    [case] = found.of(FlaggedCase)
    assert case.answer == ANSWER
    assert verdict.claims == case.claims == tuple(sorted(told, key=lambda claim: claim.index))


async def test_they_change_nothing_that_is_decided() -> None:
    """A redaction replaces the claim's segment, not the words in it."""
    rules = [{"verdict": ["CONTRADICTED"], "action": "redact"}]
    marked, plain = await judged(Marking(("$79",)), rules=rules), await judged(WordJudge(), rules=rules)
    texts = [[event.text for event in found.of(DeliverySegment)] for found in (marked, plain)]
    assert texts[0] == texts[1]
    assert "$79" not in "".join(texts[0])


@pytest.mark.parametrize("spans", [((5, 10_000),), ((7, 2),), "no spans", [None], 7])
async def test_what_makes_no_sense_costs_no_verdict(spans: Any) -> None:
    found = await judged(Marking(spans=spans))
    told: list[ClaimVerdict] = found.of(ClaimVerdict)
    assert [claim.verdict.value for claim in told] == ["SUPPORTED", "CONTRADICTED"]
    assert [claim.unsupported_spans for claim in told] == [(), ()]
