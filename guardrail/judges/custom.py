"""Judges of one's own: an object that a function makes, or the settings of an HTTP endpoint."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from guardrail.errors import ConfigError
from guardrail.judges.base import Judge
from guardrail.judges.http import HttpHeaders, HttpUrl


class HttpJudgeSettings(BaseModel):
    """An endpoint that gets claims and contexts as JSON, and answers with verdicts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_concurrency: ClassVar[int] = 64
    """Most requests at once, as for a model server; others wait their turn, within their deadline."""

    url: HttpUrl | None = Field(default=None, description="Endpoint that gets requests by POST.")
    headers: HttpHeaders = Field(
        default_factory=dict,
        description="HTTP headers to add; a value is text, {file: PATH} or {env: VARIABLE}.",
    )


def load_factory(factory: str) -> Any:
    """What ``factory`` (``package.module:make``) names, imported. Raises ConfigError."""
    name, _, attribute = factory.partition(":")
    try:
        return getattr(importlib.import_module(name), attribute)
    except Exception as error:  # a module may raise anything while it is imported
        raise ConfigError(
            f"judge.factory: {factory} can't be imported ({type(error).__name__}: {error}); install it where "
            "the guard runs, or put its folder on PYTHONPATH"
        ) from error


def make_judge(factory: str) -> Judge:
    """The judge that ``factory`` makes, which is called without arguments. Raises ConfigError."""
    make = load_factory(factory)
    try:
        judge = make()
    except Exception as error:
        raise ConfigError(f"judge.factory: {factory} failed ({type(error).__name__}: {error})") from error
    if not isinstance(judge, Judge):
        wrong = f"{factory} made a {type(judge).__name__}, which has no name, judge and aclose"
        raise ConfigError(f"judge.factory: {wrong}; return a guardrail.judges.Judge")
    return judge
