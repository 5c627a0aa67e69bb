"""``guardrail.testing``: the scripted judge, and the check of a chat service's events."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.events import (
    Context,
    Event,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
)
from guardrail.guard import Guard
from guardrail.testing import MemoryGuard, ScriptedJudge, check_events

CONTEXTS = (Context(id="c1", text="A source."),)


def started(response_id: str = "r", **changes: Any) -> ResponseStarted:
    fields: dict[str, Any] = {"question": "?", "contexts": CONTEXTS, **changes}
    return ResponseStarted(response_id=response_id, **fields)


def delta(seq: int, text: str = "text", response_id: str = "r") -> ResponseDelta:
    return ResponseDelta(response_id=response_id, seq=seq, text=text)


def completed(seq: int, response_id: str = "r") -> ResponseCompleted:
    return ResponseCompleted(response_id=response_id, seq=seq)


GOOD = [started(), delta(0), delta(1), completed(2)]


def test_events_as_they_should_be_have_no_problem_in_any_form() -> None:
    class Record:
        def __init__(self, event: Event) -> None:
            self.key, self.value = b"r", event.to_json()

    assert check_events(GOOD) == []
    assert check_events([event.to_json() for event in GOOD]) == []
    assert check_events([event.to_json().decode() for event in GOOD]) == []
    assert check_events([("r", event.to_json()) for event in GOOD]) == []
    assert check_events([Record(event) for event in GOOD]) == []
    assert check_events([Response(response_id="r", question="?", contexts=CONTEXTS, answer="text")]) == []
    assert check_events(GOOD[:2], complete=False) == []
    assert check_events([started(), delta(0), ResponseAborted(response_id="r", seq=1)]) == []


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ([b"{"], "record 0: invalid_json"),
        ([(b"r", None)], "record 0: empty_value"),
        ([b'{"type": "response.begun"}'], "record 0: unknown_type"),
        ([("other", GOOD[0]), *GOOD[1:]], "record 0: the key is not the response_id 'r'"),
        ([delta(0), completed(1)], "'r': response.delta comes without a response.started"),
        ([started(), delta(0), delta(2), completed(3)], "'r': delta 2 comes where 1 is next"),
        ([started(), delta(0), delta(0), completed(1)], "'r': delta 0 comes again"),
        ([started(), delta(0), completed(2)], "'r': response.completed says 2 deltas were sent, 1 were"),
        ([started(), delta(0), completed(1), delta(1)], "'r': response.delta comes after response.completed"),
        ([started(), delta(0), completed(1), completed(1)], "'r': response.completed comes after"),
        ([started(), started(), delta(0), completed(1)], "'r': a second response.started"),
        ([started(), delta(0)], "'r': has no response.completed or response.aborted"),
        ([started(), completed(0)], "'r': the answer is empty"),
        ([started(), delta(0, ""), delta(1), completed(2)], "'r': delta 0 is empty"),
        ([started(contexts=()), delta(0), completed(1)], "'r': has no contexts"),
        ([started(contexts=CONTEXTS * 2), delta(0), completed(1)], "'r': several contexts have the id 'c1'"),
        (
            [started(contexts=(Context(id="c", text=" "),)), delta(0), completed(1)],
            "'r': context 'c' is empty",
        ),
        ([started(question=""), delta(0), completed(1)], "'r': has no question"),
        ([Response(response_id="r", question="?", contexts=CONTEXTS, answer="")], "'r': the answer is empty"),
    ],
)
def test_each_fault_is_found_alone_and_told_in_words(records: list[object], problem: str) -> None:
    [told] = check_events(records)
    assert told.startswith(problem)


def test_no_text_of_a_user_is_told_and_ids_are_escaped() -> None:
    secret = started("\x1b[31m", question="my secret", contexts=(Context(id="a\nb", text=""),))
    told = "\n".join(
        check_events([secret, delta(3, "my secret", "\x1b[31m"), b'{"type": 1, "x": "my secret"}'])
    )
    assert "secret" not in told
    assert "\x1b" not in told
    assert "a\nb" not in told


async def test_the_judge_says_what_its_table_says() -> None:
    judge = ScriptedJudge({"30 DAYS": "CONTRADICTED", "maybe": "UNVERIFIED"}, otherwise="PARTIALLY_SUPPORTED")
    async with Guard(judge) as guard:
        verdict = await guard.check("?", ["A source."], "It takes 30 days. It is maybe good. It is blue.")
    said = [claim.verdict.value for claim in verdict.claims]
    assert said == ["CONTRADICTED", "UNVERIFIED", "PARTIALLY_SUPPORTED"] or said == ["CONTRADICTED"]
    assert judge.claims[0] == "It takes 30 days."


async def test_the_judge_may_be_a_rule() -> None:
    judge = ScriptedJudge(lambda claim: "UNSUPPORTED" if len(claim) > 20 else "SUPPORTED")
    async with Guard(judge) as guard:
        short = await guard.check("?", ["A source."], "It is blue.")
        long = await guard.check("?", ["A source."], "It is blue and it is very large indeed.")
    assert short.claims[0].verdict == "SUPPORTED"
    assert long.claims[0].verdict == "UNSUPPORTED"


def test_a_verdict_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="WRONG"):
        ScriptedJudge({"a": "WRONG"})


async def test_a_guard_in_memory_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await MemoryGuard(ScriptedJudge()).restart()


@pytest.mark.parametrize("record", [{"type": "response.delta"}, (b"r-1", {"type": "response.delta"}), 5])
def test_what_is_no_record_is_refused_in_words(record: object) -> None:
    with pytest.raises(TypeError, match="give bytes, a text"):
        check_events([record])
