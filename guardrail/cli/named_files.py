"""The files that settings name, those of parts that are in use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

if TYPE_CHECKING:
    from consumers.settings import Settings

# The one is made when it is needed, the other told of with the program that runs in it.
_FOLDERS: Final = frozenset({"cache_dir", "cwd"})


def unreadable_files(settings: Settings) -> list[tuple[str, str]]:
    """The settings that name a file which can't be opened, with their value, and why."""
    found = []
    for setting, path in _named_files(settings):
        if path.is_dir():
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            found.append((f"{setting} {path}", error.strerror or type(error).__name__))
    return found


def _named_files(settings: Settings) -> Iterator[tuple[str, Path]]:
    from guardrail.judges.factory import uses_local

    judge = settings.judge
    used = judge.kinds()
    yield from _below(settings.kafka, "kafka")
    for kind in sorted(used | {"local"} if uses_local(judge) else used):
        yield from _below(getattr(judge, kind), f"judge.{kind}")
    if "llm" in used and (alternative := judge.alternative_llm()) is not None:
        here = set(_below(judge.llm, ""))  # what it takes over from judge.llm has been named there
        for setting, path in _below(alternative, ""):
            if (setting, path) not in here:
                yield f"judge.self_judging.alternative{setting}", path
    if judge.cache.enabled and used != {"local"}:
        yield from _below(judge.cache, "judge.cache")


def _below(value: Any, name: str) -> Iterator[tuple[str, Path]]:
    if isinstance(value, Path):
        yield name, value
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            if field not in _FOLDERS:
                yield from _below(getattr(value, field), f"{name}.{field}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _below(item, f"{name}.{number}")
