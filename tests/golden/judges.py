"""Judges that the cases name as factories: the server of the case, asked over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from guardrail import JudgeSettings, build_judge
from guardrail.judges import Judgement, JudgeRequest, closing

SERVER: Final[ContextVar[str]] = ContextVar("golden_server")


class Named:
    """The judge behind HTTP, by the name that it has in what was recorded."""

    def __init__(self, name: str) -> None:
        self.name = name
        http = {"url": f"{SERVER.get()}/chat/completions"}
        values = {"kind": "http", "http": http, "cache": {"ttl_seconds": 0}}
        self._judge = build_judge(JudgeSettings.model_validate(values))

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async with closing(self._judge.judge(request)) as judgements:
            async for each in judgements:
                yield replace(each, judge=self.name)

    async def aclose(self) -> None:
        await self._judge.aclose()


def scripted() -> Named:
    return Named("command:scripted")


def own() -> Named:
    return Named("command:own")
