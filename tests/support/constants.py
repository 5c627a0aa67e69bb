"""Constants that are other ones, for tests that can't wait so long or fill so much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

_M = TypeVar("_M", bound=BaseModel)


def made(kind: type[_M], /, **values: Any) -> _M:
    """``kind`` with these values; those that are constants of the class are set in a subclass of it.

    What stands in sections below is taken likewise: ``made(Settings, limits={"resume_at": 0.5})``.
    """
    constants = {name: value for name, value in values.items() if name in kind.__class_vars__}
    if constants:
        kind = type(kind.__name__, (kind,), {"__module__": kind.__module__, **constants})
    fields = {name: _below(kind, name, value) for name, value in values.items() if name not in constants}
    return kind.model_validate(fields)


def _below(kind: type[BaseModel], name: str, value: Any) -> Any:
    field = kind.model_fields.get(name)
    section = None if field is None else field.annotation
    if not isinstance(value, Mapping) or not isinstance(section, type) or not issubclass(section, BaseModel):
        return value
    return made(section, **value) if _has_constants(section, value) else value


def _has_constants(section: type[BaseModel], values: Mapping[str, Any]) -> bool:
    below = {name: field.annotation for name, field in section.model_fields.items()}
    return any(
        name in section.__class_vars__
        or (
            isinstance(value, Mapping)
            and isinstance(inner := below.get(name), type)
            and issubclass(inner, BaseModel)
            and _has_constants(inner, value)
        )
        for name, value in values.items()
    )


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between calls to other machines are as good as none."""
    for name in ("first_s", "longest_s"):
        monkeypatch.setattr(f"guardrail.calls.RETRIES.{name}", 0.001)
