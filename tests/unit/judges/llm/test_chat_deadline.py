"""Whatever servers do, in whatever order: the deadline holds, and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from guardrail.errors import JudgeError
from tests.support.llm_server import (
    Act,
    Cut,
    Drip,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    StreamError,
    busy,
    refusing,
    refusing_field,
)
from tests.support.llm_server.behaviours import resolve
from tests.unit.judges.llm.chatting import Asker, chatting, lines, tasks_of_ours

GOOD: Final = lines("c1", "c2")
ACTS: Final[list[Act | Callable[[Recorded], Act]]] = [
    GOOD,
    lines("c1", "c2", pause_s=0.02),
    lines("c1", "c2", ignore_stream=True),
    Reply("nothing usable"),
    Reply(None, refusal="no"),
    Reply(None, choices=[]),
    Status(200, raw="<html>"),
    Status(500),
    Status(401),
    busy(),
    busy("ms", 0.05),
    busy("seconds", 3600),
    busy("date", 3600, code=503),
    Hang(),
    Hang(2, GOOD),
    Drip(),
    Cut(after=0),
    Cut(chunks=2, reply=GOOD),
    Cut(chunks=1, reset=True, reply=GOOD),
    StreamError(1, reply=GOOD),
    refusing("json_schema", then=GOOD),
    refusing_field("stream", then=GOOD),
]

# Far beyond any deadline asked for here: a test double for patience, not a measure of speed.
PATIENCE_S: Final = 60.0


def unruly(seed: int) -> Callable[[Recorded], Act]:
    chooser = random.Random(seed)
    return lambda call: resolve(chooser.choice(ACTS), call)


@pytest.mark.parametrize("seed", range(6))
async def test_questions_end_by_their_deadline_in_answers_or_an_error(seed: int) -> None:
    changes: dict[str, Any] = {
        "max_concurrency": 1 + seed,
        "breaker": {"min_calls": 3, "open_s": 0.05},
        "stall_s": 0.15,
        "max_retries": 3,
    }
    async with (
        LlmServer(unruly(seed)) as first,
        LlmServer(unruly(seed + 100)) as second,
        chatting(first, second, **changes) as chat,
    ):

        async def one(number: int) -> None:
            asker = Asker(chat, response_id=str(number % 5))
            try:
                answers = await asker.ask(seconds=0.5)
            except JudgeError as error:
                assert str(error)  # noqa: PT017  # an error is one of two good ends
                assert asker.heard == []
            else:
                assert set(answers) <= {"c1", "c2"}
                assert len(answers) == len(set(answers)) > 0
                assert set(asker.heard) <= set(answers)
            assert len(asker.heard) == len(set(asker.heard))

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(one(number) for number in range(40)))
            await first.until_in_flight(0)
            await second.until_in_flight(0)
        for endpoint in chat.endpoints:
            assert (endpoint.caller.slots.held, endpoint.caller.slots.waiting) == (0, 0)
        assert tasks_of_ours() == []
