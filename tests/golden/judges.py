"""Judges that the cases name as factories: the server of the case, asked over HTTP."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from guardrail.judges.custom import HttpJudgeSettings
from guardrail.judges.http_judge import HttpJudge

SERVER: Final[ContextVar[str]] = ContextVar("golden_server")


def scripted() -> HttpJudge:
    return _named("command:scripted")


def own() -> HttpJudge:
    return _named("command:own")


def _named(name: str) -> HttpJudge:
    """The judge by the name that it has in what was recorded."""
    judge = HttpJudge(HttpJudgeSettings(url=f"{SERVER.get()}/chat/completions"))
    judge.name = name
    return judge
