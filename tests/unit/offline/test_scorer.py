"""Scoring many lines: order, bounds, and what can't be read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from guardrail.errors import InputError, JudgeUnavailable, ProtocolError
from guardrail.events import Context, Decision, Response, ResponseVerdict
from guardrail.judges import Judgement, JudgeRequest
from guardrail.offline.lines import InputLine
from guardrail.offline.scorer import (
    Check,
    ScoredLine,
    checker,
    decode_line,
    judging_everything,
    score_lines,
)
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.judges import WordJudge
from tests.unit.demo.events import case, verdict


def line(number: int, **changes: object) -> InputLine:
    event = {"type": "response", "schema": 1, "response_id": f"r{number}", "answer": "Yes."} | changes
    data = json.dumps(event).encode()
    return InputLine(number, data, len(data))


async def arriving(*lines: InputLine) -> AsyncIterator[InputLine]:
    for each in lines:
        yield each


async def judged_at_once(response: Response) -> ResponseVerdict:
    return verdict(response_id=response.response_id)


async def scored(check: Check, *lines: InputLine, concurrency: int = 4) -> list[ScoredLine]:
    outcomes: list[ScoredLine] = []
    await score_lines(arriving(*lines), check, outcomes.append, concurrency=concurrency)
    return outcomes


def ids(outcomes: list[ScoredLine]) -> list[str | None]:
    return [outcome.verdict.response_id if outcome.verdict else None for outcome in outcomes]


async def test_outcomes_come_in_the_order_of_the_lines_whatever_is_judged_first() -> None:
    second_done = asyncio.Event()

    async def check(response: Response) -> ResponseVerdict:
        if response.response_id == "r1":
            await second_done.wait()
        second_done.set()
        return verdict(response_id=response.response_id)

    assert ids(await scored(check, line(1), line(2), line(3))) == ["r1", "r2", "r3"]


async def test_a_line_that_cannot_be_read_keeps_its_place_and_stops_nobody() -> None:
    outcomes = await scored(judged_at_once, line(1), InputLine(2, b"{", 1), line(3))
    assert ids(outcomes) == ["r1", None, "r3"]
    assert outcomes[1].line == 2
    assert outcomes[1].problem is not None
    assert "not valid JSON" in outcomes[1].problem


async def test_what_the_guard_refuses_is_told_like_a_line_that_cannot_be_read() -> None:
    async def check(response: Response) -> ResponseVerdict:
        raise ProtocolError("contexts_too_large", "contexts: too many characters")

    (outcome,) = await scored(check, line(1))
    assert outcome.problem == "contexts: too many characters"


async def test_no_more_are_judged_at_once_than_allowed() -> None:
    now = most = 0

    async def check(response: Response) -> ResponseVerdict:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now -= 1
        return verdict(response_id=response.response_id)

    await scored(check, *(line(number) for number in range(50)), concurrency=3)
    assert most == 3


async def test_reading_waits_while_the_first_line_is_not_done() -> None:
    """Memory is bounded however long one judgement takes: by the number of lines, and by their bytes."""
    for size, held in ((10, 10**9), (1000, 2500)):
        read = 0
        release = asyncio.Event()

        async def check(response: Response, release: asyncio.Event = release) -> ResponseVerdict:
            await release.wait()
            return verdict(response_id=response.response_id)

        async def many(size: int = size) -> AsyncIterator[InputLine]:
            nonlocal read
            for number in range(1, 201):
                read = number
                yield line(number, answer="x" * size)

        done: list[ScoredLine] = []
        scoring = asyncio.create_task(
            score_lines(many(), check, done.append, concurrency=2, max_held_bytes=held)
        )
        for _ in range(500):
            await asyncio.sleep(0)
        assert read <= (2 * 4 + 3 if held == 10**9 else 4)
        release.set()
        await scoring
        assert len(done) == 200


async def test_an_outcome_is_told_while_the_next_line_is_still_awaited() -> None:
    more = asyncio.Event()
    told = asyncio.Event()

    async def slow() -> AsyncIterator[InputLine]:
        yield line(1)
        await more.wait()

    def on_outcome(outcome: ScoredLine) -> None:
        told.set()

    scoring = asyncio.create_task(score_lines(slow(), judged_at_once, on_outcome, concurrency=2))
    await told.wait()
    assert not scoring.done()
    more.set()
    await scoring


async def test_an_error_of_the_receiver_ends_everything_and_is_raised_as_it_is() -> None:
    def on_outcome(outcome: ScoredLine) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await score_lines(arriving(line(1), line(2)), judged_at_once, on_outcome, concurrency=1)


async def test_no_line_is_no_outcome() -> None:
    assert await scored(judged_at_once) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"not json", "not valid JSON"),
        (b'{"type": "response", "schema": 1, "response_id": "r"}', "answer"),
        (b'{"type": "response", "schema": 2, "response_id": "r", "answer": ""}', "schema"),
        (b'{"type": "other"}', "type 'other'"),
        (b'{"type": ["\\u001b[2J"]}', "x1b[2J"),
        (b"[1]", "no JSON object"),
        (b'{"answer": "a", "contxts": ["b"]}', "contexts: missing"),
        (b'{"type": "case.flagged", "omitted": ["contexts"]}', "without its documents"),
        (
            b'{"type": "response.delta", "schema": 1, "response_id": "r", "seq": 0, "text": "a"}',
            "whole answers",
        ),
        (b'{"type": "response", "answer": "\xff"}', "not UTF-8 (byte 33"),
        ("{}".encode("utf-16"), "not UTF-8 (byte 1 "),
        (b"[" * 100_000, "not valid JSON"),
        (None, "a line may have"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_why(data: bytes | None, words: str) -> None:
    with pytest.raises(InputError) as caught:
        decode_line(InputLine(7, data, 99_999_999))
    assert words in str(caught.value)
    assert "line 1" not in str(caught.value)


def test_everything_wrong_with_a_line_is_told_at_once_and_nothing_of_it_quoted() -> None:
    data = b'{"type": "response", "contexts": [{"id": "x"}, "secret"], "answer": 7, "route": 5}'
    with pytest.raises(InputError) as caught:
        decode_line(InputLine(1, data, len(data)))
    message = str(caught.value)
    for words in (
        "response_id: Field required",
        "contexts.0.text: Field required",
        "contexts.1: ",
        "answer: ",
        "route: ",
    ):
        assert words in message
    assert "secret" not in message


def test_a_flagged_case_can_be_scored_again() -> None:
    flagged = case(Decision.BLOCK).model_copy(
        update={"answer": "Yes.", "contexts": (Context(id="c", text="No."),), "route": "sales"}
    )
    response = decode_line(InputLine(1, flagged.to_json(), 1))
    assert (response.answer, response.route, response.response_id) == ("Yes.", "sales", "r")
    assert response.contexts == flagged.contexts


async def test_a_verdict_bears_the_mode_that_its_policy_has_live() -> None:
    policy = Policy(name="strict", mode="hold")
    check = checker(WordJudge(), PolicyRouter.single(judging_everything(policy)), modes={"strict": "hold"})
    assert (await check(Response(response_id="r", answer="Yes."))).mode == "hold"


def test_offline_every_claim_is_judged_under_the_same_rules() -> None:
    policy = Policy(name="strict", mode="hold", flag_below=0.8, block_below=0.7)
    offline = judging_everything(policy)
    assert offline.mode == "observe"
    assert (offline.name, offline.rules, offline.block_below) == ("strict", policy.rules, 0.7)


async def test_offline_no_claim_is_lost_to_the_clock() -> None:
    """Neither the live limit on a claim nor the response's own deadline leaves a claim unjudged."""

    class DeadlineJudge(WordJudge):
        """Judges as a slow machine would: nothing that is due within the hour."""

        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            if request.deadline - time.monotonic() < 3600:
                raise JudgeUnavailable("too late")
            async for each in super().judge(request):
                yield each

    router = PolicyRouter.single(judging_everything(Policy(claim_timeout_ms=1)))
    check = checker(DeadlineJudge(), router)
    response = decode_line(line(1, answer="The fee is 49 euros. It is paid monthly.", deadline_ms=1))
    judged = await check(response)
    assert len(judged.claims) == 2
    assert judged.counts.unverified == 0
