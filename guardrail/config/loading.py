"""Joins file, environment and command line into Settings, or tells every problem at once.

Paths in a configuration file are relative to that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin, overload

from pydantic import BaseModel, ValidationError

from guardrail.config.problems import Loc, SettingsError, dotted, explain, explain_unknown_policy
from guardrail.config.settings import BUILT_IN_POLICY, SECTIONS_OF_OTHERS, Settings
from guardrail.config.sources import FileValues, environment_variable, read_environment, read_file
from guardrail.errors import ConfigError
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


_SETTING: Final = re.compile(r"([a-z_]+)(?:\.[\w-]+)+(?=[ :.])")

_S = TypeVar("_S", bound=Settings)


@overload
def load_settings(path: Path | str | None = None, overrides: Mapping[str, Any] | None = None) -> Settings: ...


@overload
def load_settings(
    path: Path | str | None = None, overrides: Mapping[str, Any] | None = None, *, kind: type[_S]
) -> _S: ...


def load_settings(
    path: Path | str | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    kind: type[Settings] = Settings,
) -> Settings:
    """The settings of a process. Later sources win: defaults, file, environment, ``overrides``.

    ``kind`` is the class with the sections to read; this package's own when left out, and then the section
    ``kafka``, which ``consumers.settings`` reads, is passed over.

    ``overrides`` is nested as the file is (``{"kafka": {"group_id": "a"}}``); the command line gives it.
    Mappings are merged key by key, lists are replaced. Relative paths in the file are relative to its folder,
    those of other sources to the current one. Raises SettingsError, a ConfigError, which lists every problem
    with its source, path, value and remedy.
    """
    sources = _read(kind, None if path is None else Path(path), overrides)
    merged = _merge(_merge(sources.file.values, sources.environment), sources.given)
    for section in SECTIONS_OF_OTHERS - kind.model_fields.keys():
        merged.pop(section, None)
    try:
        return kind.model_validate(merged)
    except ValidationError as error:
        problems = explain(kind, error, sources.where)
        told = {problem.path for problem in problems}
        unknown = [
            explain_unknown_policy(loc, name, known, sources.where)
            for loc, name, known in _unknown_policies(merged)
            if dotted(loc) not in told
        ]
        raise SettingsError(problems + unknown) from None


def with_places(
    error: ConfigError,
    path: Path | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    kind: type[Settings] = Settings,
) -> ConfigError:
    """The error with the source of each setting that a line of its message begins with.

    It is for what shows only when settings that are right by themselves are put to use: a judge without its
    model, a budget without a price. Arguments as for ``load_settings``.
    """
    if isinstance(error, SettingsError):
        return error
    sources = _read(kind, path, overrides)
    return ConfigError("\n".join(sources.placed(line) for line in str(error).split("\n")))


@dataclass(frozen=True, slots=True)
class _Sources:
    kind: type[Settings]
    file: FileValues
    environment: Mapping[str, Any]
    given: Mapping[str, Any]

    def where(self, loc: Loc) -> str | None:
        """What gave the setting at ``loc``."""
        if _contains(self.given, loc):
            return "command line"
        if _contains(self.environment, loc):
            return f"environment variable {environment_variable(loc) or ''}".rstrip()
        return self.file.where(loc)

    def placed(self, line: str) -> str:
        begin = _SETTING.match(line)
        if begin is None or begin[1] not in self.kind.model_fields:
            return line
        loc: Loc = tuple(int(part) if part.isdigit() else part for part in begin[0].split("."))
        # A section that is nowhere given has no place, and its file as a whole would be a poor one.
        longest = next((loc[:end] for end in range(len(loc), 0, -1) if self._given(loc[:end])), None)
        where = None if longest is None else self.where(longest)
        return line if where is None else f"{where}: {line}"

    def _given(self, loc: Loc) -> bool:
        return any(_contains(each, loc) for each in (self.given, self.environment, self.file.values))


def _read(kind: type[Settings], path: Path | None, overrides: Mapping[str, Any] | None) -> _Sources:
    file = FileValues()
    if path is not None:
        file = read_file(path)
        # Absolute without following links: mounted files are links to elsewhere, beside which nothing is.
        file = replace(file, values=anchored(file.values, kind, path.absolute().parent))
    return _Sources(kind, file, read_environment(kind, file.values), overrides or {})


def _unknown_policies(values: Mapping[str, Any]) -> Iterator[tuple[Loc, str, list[str]]]:
    """Every policy that is named and not there, with its place and the names that are.

    Settings can tell only the first, and only when all else is right; here nothing else needs to be.
    """
    policies = values.get("policies") or {}
    if not isinstance(policies, Mapping):
        return
    known = sorted({BUILT_IN_POLICY, *map(str, policies)})
    routes = values.get("routes")
    named: list[tuple[Loc, Any]] = [
        (("routes", i, "policy"), route.get("policy"))
        for i, route in enumerate(routes if isinstance(routes, list | tuple) else ())
        if isinstance(route, Mapping)
    ]
    for loc, name in [*named, (("default_policy",), values.get("default_policy"))]:
        if isinstance(name, str) and name and name not in known:
            yield loc, name, known


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = (
            _merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def _contains(values: Any, loc: Loc) -> bool:
    """Is the setting at ``loc``, or the list it stands in, given by ``values``?"""
    if not loc:
        return False
    for part in loc:
        if isinstance(values, Mapping):
            if part not in values:
                return False
            values = values[part]
        else:
            return True
    return True
