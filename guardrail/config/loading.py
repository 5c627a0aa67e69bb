"""File, environment and command line into one Settings, or every problem at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from guardrail.config.problems import Loc, SettingsError, dotted, explain, explain_unknown_policy
from guardrail.config.settings import BUILT_IN_POLICY, Settings
from guardrail.config.sources import FileValues, environment_variable, read_environment, read_file


def load_settings(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """The settings of a process. Later sources win: defaults, file, environment, ``overrides``.

    ``overrides`` is nested as the file is (``{"kafka": {"group_id": "a"}}``); the command line gives it.
    Mappings are merged key by key, lists are replaced. Raises SettingsError, a ConfigError, which lists
    every problem with its source, path, value and remedy.
    """
    file = FileValues() if path is None else read_file(path)
    environment = read_environment(file.values)
    given = overrides or {}
    merged = _merge(_merge(file.values, environment), given)

    def where(loc: Loc) -> str | None:
        if _contains(given, loc):
            return "command line"
        if _contains(environment, loc):
            return f"environment variable {environment_variable(loc) or ''}".rstrip()
        return file.where(loc)

    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        problems = explain(Settings, error, where)
        told = {problem.path for problem in problems}
        unknown = [
            explain_unknown_policy(loc, name, known, where)
            for loc, name, known in _unknown_policies(merged)
            if dotted(loc) not in told
        ]
        raise SettingsError(problems + unknown) from None


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
