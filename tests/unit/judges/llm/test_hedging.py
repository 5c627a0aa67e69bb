"""A second call for a question, without a server: what is said, and what becomes of the other call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.judges.llm.chat import Announcer, Voice, hedged
from guardrail.judges.llm.endpoint import Outcome
from guardrail.judges.llm.exchange import Failure
from guardrail.judges.llm.reply import Answer

C1, C2 = Answer("c1"), Answer("c2")
C1_AGAIN = Answer("c1", problem="another verdict")
FAILED = Failure(JudgeUnavailable("failed"), retry=True)
Script = Callable[[Voice], Coroutine[Any, Any, Outcome]]


class Calls:
    """Calls that do what they are told, in turn; ``ended`` are the numbers of those that are over."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.begun = 0
        self.ended: list[int] = []
        self.cancelled: list[int] = []

    async def __call__(self, voice: Voice) -> Outcome:
        number, self.begun = self.begun, self.begun + 1
        try:
            return await self.scripts[number](voice)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        finally:
            self.ended.append(number)


async def forever(voice: Voice) -> Outcome:
    await asyncio.Event().wait()
    raise AssertionError


async def answering(voice: Voice) -> Outcome:
    return [C1]


async def failing(voice: Voice) -> Outcome:
    return FAILED


def announcing() -> tuple[Announcer, list[Answer]]:
    heard: list[Answer] = []
    return Announcer(heard.extend), heard


async def test_without_a_delay_there_is_one_call() -> None:
    calls = Calls(answering)
    announcer, _ = announcing()
    assert (await hedged(calls, announcer, None, lambda: True))[1] == [C1]
    assert calls.begun == 1


async def test_a_call_in_time_has_no_rival() -> None:
    calls = Calls(answering)
    announcer, _ = announcing()
    assert (await hedged(calls, announcer, 30.0, lambda: True))[1] == [C1]
    assert calls.begun == 1


async def test_the_sooner_call_is_used_and_the_other_has_ended() -> None:
    calls = Calls(forever, answering)
    announcer, _ = announcing()
    assert (await hedged(calls, announcer, 0.0, lambda: True))[1] == [C1]
    assert calls.cancelled == [0]
    assert sorted(calls.ended) == [0, 1]


async def test_no_second_call_where_none_is_allowed() -> None:
    go = asyncio.Event()

    async def late(voice: Voice) -> Outcome:
        await go.wait()
        return [C1]

    calls = Calls(late)
    announcer, _ = announcing()

    def not_allowed() -> bool:
        go.set()
        return False

    assert (await hedged(calls, announcer, 0.0, not_allowed))[1] == [C1]
    assert calls.begun == 1


async def test_the_call_that_speaks_first_ends_the_other() -> None:
    """Its rival would have been complete earlier, with other verdicts."""
    second_ended = asyncio.Event()

    async def speaks(voice: Voice) -> Outcome:
        voice.say([C1])
        await second_ended.wait()
        return [C1, C2]

    async def silent(voice: Voice) -> Outcome:
        try:
            return await forever(voice)
        finally:
            voice.say([C1_AGAIN])  # it has been given up: nobody hears it
            second_ended.set()

    async def slow_start(voice: Voice) -> Outcome:
        await asyncio.sleep(0.05)
        return await speaks(voice)

    for scripts in ((slow_start, silent), (silent, slow_start)):
        second_ended.clear()
        calls = Calls(*scripts)
        announcer, heard = announcing()
        assert (await hedged(calls, announcer, 0.0, lambda: True))[1] == [C1, C2]
        assert calls.cancelled == [scripts.index(silent)]
        assert heard == [C1]


async def test_a_call_that_spoke_in_time_has_no_rival() -> None:
    async def speaks(voice: Voice) -> Outcome:
        voice.say([C1])
        await asyncio.sleep(0.05)
        return [C1]

    calls = Calls(speaks)
    announcer, _ = announcing()
    assert (await hedged(calls, announcer, 0.0, lambda: True))[1] == [C1]
    assert calls.begun == 1


@pytest.mark.parametrize("scripts", [(failing, answering), (answering, failing)])
async def test_a_call_that_fails_leaves_the_field_to_the_other(scripts: tuple[Script, Script]) -> None:
    begun = asyncio.Event()

    async def first(voice: Voice) -> Outcome:
        await begun.wait()
        return await scripts[0](voice)

    async def second(voice: Voice) -> Outcome:
        begun.set()
        await asyncio.sleep(0.02)
        return await scripts[1](voice)

    calls = Calls(first, second)
    announcer, _ = announcing()
    assert (await hedged(calls, announcer, 0.0, lambda: True))[1] == [C1]


async def test_when_both_fail_it_has_failed() -> None:
    async def late(voice: Voice) -> Outcome:
        await asyncio.sleep(0.02)
        return FAILED

    announcer, _ = announcing()
    assert (await hedged(Calls(late, failing), announcer, 0.0, lambda: True))[1] is FAILED


async def test_cancelling_ends_both_calls() -> None:
    second = asyncio.Event()

    async def begins(voice: Voice) -> Outcome:
        second.set()
        return await forever(voice)

    calls = Calls(forever, begins)
    announcer, _ = announcing()
    task = asyncio.create_task(hedged(calls, announcer, 0.0, lambda: True))
    await second.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(calls.cancelled) == [0, 1]


def test_for_one_claim_one_call_speaks() -> None:
    announcer, heard = announcing()
    first, second = announcer.voice(), announcer.voice()
    first.say([C1])
    second.say([C1_AGAIN, C2])
    assert heard == [C1, C2]


def test_a_later_call_does_not_contradict_what_was_said() -> None:
    """The first call broke off after it had said something, and the second was used."""
    announcer, _ = announcing()
    first, second = announcer.voice(), announcer.voice()
    first.say([C1])
    assert announcer.agreed(second, [C1_AGAIN, C2]) == [C1, C2]


def test_two_verdicts_of_one_call_are_both_passed_on() -> None:
    """They disagree, and the caller believes neither; to drop one would be to believe the other."""
    announcer, heard = announcing()
    voice = announcer.voice()
    voice.say([C1])
    assert announcer.agreed(voice, [C1, C1_AGAIN]) == [C1, C1_AGAIN]
    voice.say([C1_AGAIN])
    assert heard == [C1, C1_AGAIN]
