"""Judges of one's own: an object that a function makes, or the settings of an HTTP endpoint."""

from __future__ import annotations

import importlib
import inspect
import traceback
from pathlib import Path
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
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"judge.factory: {factory} can't be imported ({type(error).__name__}: {error}); install it where "
            "the guard runs, or put its folder on PYTHONPATH"
        ) from error
    except (Exception, SystemExit) as error:  # a module may do anything while it is imported
        raise ConfigError(f"judge.factory: importing {factory} failed ({_where(error)})") from error


def make_judge(factory: str) -> Judge:
    """The judge that ``factory`` makes, which is called without arguments. Raises ConfigError."""
    make = load_factory(factory)
    try:
        judge = make()
    except (Exception, SystemExit) as error:
        raise ConfigError(f"judge.factory: {factory} failed ({_where(error)})") from error
    if isinstance(judge, type):
        wrong = f"the class {judge.__name__}; return an instance"
    elif not isinstance(judge, Judge) or not isinstance(judge.name, str):
        wrong = f"a {type(judge).__name__}, which lacks a name, judge or aclose; return a Judge"
    elif inspect.iscoroutinefunction(judge.judge):
        wrong = f"a {type(judge).__name__} whose judge returns; let it yield each judgement"
    else:
        return judge
    raise ConfigError(f"judge.factory: {factory} made {wrong}")


def _where(error: BaseException) -> str:
    """The kind of the error and the line that raised it. Its text may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} in {Path(frames[-1].filename).name}, line {frames[-1].lineno}"
