"""Questions for the tests of how models are asked: a reply is labels, one a line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from guardrail.calls import AdaptiveLimit, Caller, FairSlots
from guardrail.errors import JudgeReplyError
from guardrail.judges import Meter
from guardrail.judges.llm.chat import Chat, Question
from guardrail.judges.llm.reply import Answer
from tests.support.llm_server import LlmServer, Reply, Wire
from tests.unit.judges.doubles import Clock as Clock
from tests.unit.judges.llm.asking import settings

MINUTE = 60.0


class Lines:
    """Reads replies that hold a label in each line. A line is complete with its end."""

    def __init__(self) -> None:
        self._rest = ""
        self._found = False

    def feed(self, text: str) -> list[Answer]:
        *lines, self._rest = (self._rest + text).split("\n")
        answers = [Answer(line) for line in lines if line.startswith("c")]
        self._found = self._found or bool(answers)
        return answers

    def finish(self, *, cut: bool = False) -> list[Answer]:
        if not self._found:
            raise JudgeReplyError("nothing usable")
        return []


@dataclass
class Asker:
    """One question put to a chat, and what was heard early, call by call of ``heard``."""

    chat: Chat
    heard: list[str] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    response_id: str = "r1"

    def __post_init__(self) -> None:
        messages = [{"role": "user", "content": "Give the verdicts on c1, c2, as one JSON object"}]
        self.question = Question(messages, {"type": "object"}, Lines, self._hear, Meter(), self.response_id)

    async def ask(self, seconds: float = MINUTE) -> list[str]:
        """The labels of the answers."""
        answers = await self.chat.ask(self.question, asyncio.get_running_loop().time() + seconds)
        return [answer.label for answer in answers]

    def _hear(self, answers: Sequence[Answer]) -> None:
        self.heard += [answer.label for answer in answers]
        self.news.set()


def lines(*labels: str, **wire: Any) -> Reply:
    """A reply of which each delta is a whole line. Chunk 0 has the role, then comes one for each label."""
    return Reply("".join(f"{label}\n" for label in labels), wire=Wire(**{"chunk_chars": 3} | wire))


@asynccontextmanager
async def chatting(
    server: LlmServer,
    *fallbacks: LlmServer,
    clock: Clock | None = None,
    reserve: float = Chat.reserve,
    breaker: Mapping[str, float] = MappingProxyType({}),
    latency_tolerance: float = AdaptiveLimit.latency_tolerance,
    max_queue: int | None = None,
    **changes: Any,
) -> AsyncIterator[Chat]:
    """A chat with ``server`` whose fallbacks are the models fallback-1, … on servers of their own.

    The numbers of what holds calls back are the package's, where none are given.
    """
    changes.setdefault(
        "fallbacks",
        [{"model": f"fallback-{n}", "base_url": other.url} for n, other in enumerate(fallbacks, 1)],
    )
    chat = Chat(settings(server, **changes))
    numbers = {"reserve": reserve, "latency_tolerance": latency_tolerance, **breaker}
    for each in chat.endpoints:
        if clock is not None:
            each.caller = Caller(each.name, each.settings.model, each.settings.max_concurrency, clock)
        for part in (chat, each.caller.breaker, each.caller.limit):
            for name in numbers.keys() & vars(type(part)).keys():
                setattr(part, name, numbers[name])
        if max_queue is not None:
            each.caller.slots = FairSlots(lambda found=each: found.caller.limit.limit, max_queue)  # type: ignore[misc]
    try:
        yield chat
    finally:
        await chat.aclose()


def tasks_of_ours() -> list[str]:
    """Names of the tasks under way whose code is the package's."""
    return [
        str(task)
        for task in asyncio.all_tasks()
        if "/guardrail/judges/" in getattr(getattr(task.get_coro(), "cr_code", None), "co_filename", "")
    ]
