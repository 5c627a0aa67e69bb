"""Constants that are other ones, for tests that can't wait so long or fill so much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

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
    return value if field is None else _changed(field.annotation, value)


def _changed(annotation: Any, value: Any) -> Any:
    """``value``, or where constants stand in it, the section or sections by name that have them."""
    if not isinstance(value, Mapping):
        return value
    if get_origin(annotation) is dict:
        return {name: _changed(get_args(annotation)[1], below) for name, below in value.items()}
    if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
        return value
    below = {name: _below(annotation, name, each) for name, each in value.items()}
    inside = any(isinstance(each, BaseModel) for each in below.values())
    return made(annotation, **value) if inside or value.keys() & annotation.__class_vars__ else below


def make_retries_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between calls to other machines are as good as none."""
    for name in ("first_s", "longest_s"):
        monkeypatch.setattr(f"guardrail.calls.RETRIES.{name}", 0.001)
