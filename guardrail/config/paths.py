"""Paths in a configuration file, which are relative to that file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel

from guardrail.judges.classifier.settings import ClassifierSettings
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.self_judging import SelfJudgingSettings

# Text that is a path only where it looks like one: "acme/model" is an id on the hub, "check" is in PATH.
_NAMES_OR_PATHS: Final = ((ClassifierSettings, "model"), (ClassifierSettings, "tokenizer"))
_PROGRAM: Final = (CommandJudgeSettings, "argv")
_PATH_BEGINS: Final = ("./", "../")
# A mapping of any values for pydantic, since what is left out is as in judge.llm.
_ALTERNATIVE: Final = (SelfJudgingSettings, "alternative", LlmJudgeSettings)


def anchored(values: Any, annotation: Any, folder: Path) -> Any:
    """``values`` as a file gives them for ``annotation``, relative paths in them seen from ``folder``.

    Nothing is checked: what doesn't fit its type stays what it is, for the validation to refuse.
    """
    kinds = list(_kinds(annotation))
    if isinstance(values, str):
        return str(folder / values) if values and Path in kinds else values
    if isinstance(values, Mapping):
        model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if model is not None:
            return {name: _of_field(model, name, value, folder) for name, value in values.items()}
        below = next((get_args(kind)[1] for kind in kinds if get_origin(kind) is dict), None)
        return values if below is None else {key: anchored(it, below, folder) for key, it in values.items()}
    if isinstance(values, list):
        below = next((get_args(kind)[0] for kind in kinds if get_origin(kind) is tuple), None)
        return values if below is None else [anchored(item, below, folder) for item in values]
    return values


def _of_field(model: type[BaseModel], name: Any, value: Any, folder: Path) -> Any:
    field = model.model_fields.get(name) if isinstance(name, str) else None
    if field is None:
        return value
    if any(issubclass(model, owner) and name == one for owner, one in _NAMES_OR_PATHS):
        return _named(value, folder)
    if issubclass(model, _PROGRAM[0]) and name == _PROGRAM[1] and isinstance(value, list):
        return [*(_named(program, folder) for program in value[:1]), *value[1:]]
    holder, alternative, stands_for = _ALTERNATIVE
    if issubclass(model, holder) and name == alternative:
        return anchored(value, stands_for, folder)
    return anchored(
        value, Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation, folder
    )


def _named(value: Any, folder: Path) -> Any:
    return str(folder / value) if isinstance(value, str) and value.startswith(_PATH_BEGINS) else value


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that may stand there, of a union each; also what a validator takes in another's stead."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        yield from _kinds(inner)
        for each in metadata:
            taken = getattr(each, "json_schema_input_type", None)
            if get_origin(taken) in {Union, UnionType} or isinstance(taken, type):
                yield from _kinds(taken)
    elif origin in {Union, UnionType}:
        for each in get_args(annotation):
            yield from _kinds(each)
    else:
        yield annotation
