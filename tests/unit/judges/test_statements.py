"""Claims of several statements: which parts they get, and who is asked about these."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.events import ClaimPart
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.judges.statements import StatementsJudge
from tests.support.judges import FaultyJudge, WordJudge, reply_of
from tests.support.llm_server import Reply, member, verdicts
from tests.unit.judges.doubles import request
from tests.unit.judges.llm.asking import judging

S, P, U, C, X = Verdict
TWO = "The hall opened in 1931 and seats 900 people."
TOLD = [("The hall opened in 1931.", S), ("The hall seats 900 people.", S)]


class PartsJudge(WordJudge):
    """Says of every claim what it is made with, and notes what it is asked."""

    def __init__(self, *parts: ClaimPart, verdict: Verdict = C) -> None:
        super().__init__()
        self._changes: dict[str, Any] = {"parts": parts, "verdict": verdict}

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            yield replace(each, **self._changes)


def parts(judgement: Judgement) -> list[tuple[str, Verdict]]:
    return [(part.text, part.verdict) for part in judgement.parts]


async def test_the_parts_of_a_supported_claim_are_supported_and_nobody_is_asked_again() -> None:
    judge = WordJudge()
    (found,) = (await reply_of(StatementsJudge(judge), request(TWO))).judgements
    assert (found.verdict, parts(found)) == (S, TOLD)
    assert len(judge.requests) == 1


async def test_the_parts_of_another_claim_are_read_by_the_same_judge() -> None:
    judge = WordJudge()
    asked = request("The hall opened in 1931 and seats the wrong number.", "The hall is wrong.", "It is old.")
    found = (await reply_of(StatementsJudge(judge), asked)).judgements
    assert [each.verdict for each in found] == [C, C, S]
    assert parts(found[0]) == [("The hall opened in 1931.", S), ("The hall seats the wrong number.", C)]
    assert [each.parts for each in found[1:]] == [(), ()]
    _, again = judge.requests
    assert [claim.text for claim in again.claims.values()] == [text for text, _ in parts(found[0])]
    assert (again.evidence, again.question, again.parts) == (asked.evidence, asked.question, False)


async def test_a_part_that_points_back_is_read_behind_what_it_points_to() -> None:
    judge = WordJudge()
    said = "The halls opened in 1931, but it has the wrong roof."
    (found,) = (await reply_of(StatementsJudge(judge), request(said))).judgements
    first, second = judge.requests[1].claims.values()
    assert (first.lead_in, second.lead_in) == ("", "The halls opened in 1931.")
    assert parts(found) == [("The halls opened in 1931.", S), ("It has the wrong roof.", C)]


async def test_a_claim_that_is_open_has_no_parts() -> None:
    judge = PartsJudge(verdict=X)
    (found,) = (await reply_of(StatementsJudge(judge), request(TWO))).judgements
    assert (found.parts, len(judge.requests)) == ((), 1)


async def test_no_part_has_a_verdict_where_one_could_not_be_judged() -> None:
    class Forgetful(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            async for each in super().judge(request):
                if not each.claim_id.endswith(".0"):
                    yield each

    asked = request("The hall opened in 1931 and seats the wrong number.")
    (found,) = (await reply_of(StatementsJudge(Forgetful()), asked)).judgements
    assert (found.verdict, [verdict for _, verdict in parts(found)]) == (C, [X, X])


async def test_a_judge_that_fails_at_the_parts_has_judged_the_claim() -> None:
    class Tired(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            if self.requests:
                raise JudgeUnavailable("it was too much")
            async for each in super().judge(request):
                yield each

    asked = request("The hall opened in 1931 and seats the wrong number.")
    (found,) = (await reply_of(StatementsJudge(Tired()), asked)).judgements
    assert (found.verdict, [verdict for _, verdict in parts(found)]) == (C, [X, X])


async def test_errors_of_the_judge_are_its_own() -> None:
    def fail(_: JudgeRequest) -> list[Judgement]:
        raise JudgeUnavailable("it is away")

    with pytest.raises(JudgeUnavailable):
        await reply_of(StatementsJudge(FaultyJudge(fail)), request(TWO))


async def test_the_parts_that_a_judge_gives_itself_stand() -> None:
    own = (ClaimPart(text="A.", verdict=S), ClaimPart(text="B.", verdict=C))
    judge = PartsJudge(*own)
    (found,) = (await reply_of(StatementsJudge(judge), request(TWO))).judgements
    assert found.parts == own
    assert [each.parts for each in judge.requests] == [True]


async def test_a_single_part_says_that_the_claim_is_one_statement() -> None:
    judge = PartsJudge(ClaimPart(text=TWO, verdict=C))
    (found,) = (await reply_of(StatementsJudge(judge), request(TWO))).judgements
    assert (found.parts, len(judge.requests)) == ((), 1)


# ------------------------------------------------------------------------------------------ the LLM judge

APART = verdicts(
    member("c1a", "SUPPORTED", evidence=[1], reasoning="The hall opened in 1931."),
    member("c1b", "CONTRADICTED", evidence=[1], reasoning="The hall seats 900 people."),
    member("c1", "CONTRADICTED", evidence=[1], reasoning="It seats 400."),
    member("c2", "UNSUPPORTED", reasoning="Nothing of it."),
)


async def test_an_llm_takes_claims_apart_in_the_call_that_judges_them() -> None:
    async with judging(Reply(APART)) as (judge, server):
        asked = request(TWO, "It was painted in 1950 and sold in 1960.")
        found = (await reply_of(StatementsJudge(judge), asked)).judgements
    assert [parts(each) for each in found] == [[TOLD[0], (TOLD[1][0], C)], []]
    assert [("c1a and c1b" in call.system) for call in server.calls] == [True]


async def test_an_llm_that_is_told_to_leave_claims_whole_is_asked_about_their_parts() -> None:
    whole = verdicts(member("c1", "CONTRADICTED", evidence=[1], reasoning="It seats 400."))
    each = verdicts(member("c1", evidence=[1]), member("c2", "CONTRADICTED", evidence=[1], reasoning="400."))
    async with judging(Reply(whole), Reply(each), decompose=False) as (judge, server):
        (found,) = (await reply_of(StatementsJudge(judge), request(TWO))).judgements
    assert parts(found) == [TOLD[0], (TOLD[1][0], C)]
    assert [("c1a and c1b" in call.system) for call in server.calls] == [False, False]


async def test_without_scores_an_llm_leaves_claims_whole() -> None:
    async with judging(Reply(verdicts(member("c1", evidence=[1])))) as (judge, server):
        (found,) = (await reply_of(judge, request(TWO))).judgements
    assert (found.parts, "c1a and c1b" in server.calls[0].system) == ((), False)
