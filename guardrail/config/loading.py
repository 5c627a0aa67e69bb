"""Merges a YAML file, the environment and the command line into Settings, or reports every problem at once.

The bytes of a file are read once, so that everything that looks at them sees the same ones: a pipe
(``--config <(sops -d guardrail.yaml)``) gives its content only to the first reader. Paths in a configuration
file are relative to that file.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import select
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar, overload

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError as EnvDecodeError

from guardrail.config.problems import (
    Problem,
    SettingsError,
    dotted,
    explain,
)
from guardrail.config.settings import (
    BUILT_IN_POLICY,
    ENV_DELIMITER,
    ENV_PREFIX,
    SECTIONS_OF_OTHERS,
    Settings,
    cycles,
    is_inherited,
    merged,
    unknown_policy,
)
from guardrail.errors import ConfigError
from guardrail.judges.model import ClassifierSettings
from guardrail.leaves import Loc, Place, kinds, mapped
from guardrail.printable import escape_controls
from guardrail.routing import policy_names

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
PIPE_S: Final = 60.0
"""How long the program at the other end of a pipe may take to write all of it."""

_BEGIN: Final = "check the path, or begin with 'guardrail config show > guardrail.yaml'; no file is needed"
MAX_VALUES: Final = 100_000
"""Values in a file, those that an alias repeats counted every time: a few lines can stand for billions."""

_DECISIVE: Final = ("policies", "routes", "default_policy", "challengers")
"""Sections that decide about answers: without a value they are more likely cut off than meant."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of a settings file at one moment. ``regular``: reading its path again gives its content
    then; a pipe has no other.
    """

    path: Path
    data: bytes
    regular: bool = True

    @classmethod
    def read(cls, path: Path, *, pipe_s: float = PIPE_S) -> Self:
        """Read a file, or a pipe until its end. Raises SettingsError, also if it is neither, is larger than
        4 MiB, or if nobody has written all of a pipe within ``pipe_s``. At 0 a pipe is refused.
        """
        try:
            # A pipe that nobody writes to would keep the process in open().
            with open(path, "rb", opener=_without_waiting) as stream:
                mode = os.fstat(stream.fileno()).st_mode
                if stat.S_ISREG(mode):
                    return cls(path, _bounded(path, stream.read(MAX_FILE_BYTES + 1)))
                if not stat.S_ISFIFO(mode) or not pipe_s or not hasattr(select, "poll"):
                    raise _file_problem(path, "is not a regular file", "name a file")
                return cls(path, _bounded(path, _read_pipe(path, stream.fileno(), pipe_s)), regular=False)
        except FileNotFoundError:
            raise _file_problem(path, "does not exist", _BEGIN) from None
        except OSError as error:
            raise _file_problem(path, f"can't be read: {error.strerror}", "make it readable") from None


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _bounded(path: Path, data: bytes) -> bytes:
    if len(data) > MAX_FILE_BYTES:
        raise _file_problem(path, "is larger than 4 MiB", "is it a configuration file?")
    return data


def _read_pipe(path: Path, descriptor: int, limit_s: float) -> bytes:
    until = time.monotonic() + limit_s
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    data = b""
    while len(data) <= MAX_FILE_BYTES:
        left_s = until - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            wrong = f"is a pipe, and what is written to it did not end within {limit_s:g} s"
            raise _file_problem(path, wrong, "look at the program that writes it, or name a file")
        part = os.read(descriptor, 65_536)
        if not part:
            break
        data += part
    return data


def _file_problem(path: Path, wrong: str, remedy: str) -> SettingsError:
    return SettingsError([Problem("", f"the file {wrong}", remedy, where=str(path))])


@dataclass(frozen=True, slots=True)
class FileValues:
    """The contents of a YAML file, and the line (from 1) of each setting."""

    path: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[Loc, int] = field(default_factory=dict)

    def where(self, loc: Loc) -> str | None:
        """``FILE:LINE`` of a setting, or of its section; None if no file was read."""
        if self.path is None:
            return None
        for end in range(len(loc), 0, -1):
            if loc[:end] in self.lines:
                return f"{self.path}:{self.lines[loc[:end]]}"
        return str(self.path)


class _Loader(yaml.SafeLoader):
    """Dates stay text: ``version: 2026-01-01`` is a name here, not a date."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - yaml's own attribute, replaced, never changed
        first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def parse(file: SettingsFile) -> FileValues:
    """Read YAML. Raises SettingsError if it is none, is empty, or gives a key twice."""
    path = file.path
    loader = None
    try:
        loader = _Loader(file.data)
        node = loader.get_single_node()
        if node is None:
            raise _empty(path)
        lines, problems = _survey(node, path)
        if problems:
            raise SettingsError(problems)
        if _expanded(node, {}) > MAX_VALUES:
            wrong = f"stands for more than {MAX_VALUES} values, aliases (*NAME) written out"
            raise _file_problem(path, wrong, "write values out, or repeat less")
        values = loader.construct_document(node)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise SettingsError([_not_yaml(path, error)]) from None
    finally:
        if loader is not None:
            loader.dispose()
    if values is None:
        raise _empty(path)
    if not isinstance(values, dict):
        raise _file_problem(
            path, "is not a mapping", "write 'section:' lines, as 'guardrail config show' does"
        )
    odd = [escape_controls(str(key)) for key in values if not isinstance(key, str)]
    if odd:
        raise SettingsError(
            [Problem(key, "no such setting", "section names are words", where=str(path)) for key in odd]
        )
    found = FileValues(path, values, lines)
    if cut_off := [name for name in _DECISIVE if name in values and values[name] is None]:
        wrong, remedy = "nothing stands below it", "write what is missing, or take the line out"
        raise SettingsError([Problem(name, wrong, remedy, where=found.where((name,))) for name in cut_off])
    return found


def _empty(path: Path) -> SettingsError:
    """Defaults must not take the place of strict policies when a disk was full or a copy was cut."""
    remedy = "write the settings that are meant, or '{}' if none are; no file is needed for the defaults"
    return _file_problem(path, "holds no settings", remedy)


def _not_yaml(path: Path, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark is not None else str(path)
    said = (
        getattr(error, "problem", None)
        or getattr(error, "reason", None)
        or str(error)
        or type(error).__name__
    )
    remedy = "correct the line; a text with a colon and a space in it needs quotes around it"
    return Problem("", f"not valid YAML: {escape_controls(str(said))}", remedy, where=where)


def _expanded(node: yaml.Node, counts: dict[int, int]) -> int:
    """How many values a node stands for once its aliases are written out; all above MAX_VALUES are alike.

    Every node is counted once and its count is then reused, so this is fast where expanding is not. A node
    that contains itself is left for yaml to reject.
    """
    if id(node) not in counts:
        counts[id(node)] = 1
        below = sum(_expanded(child, counts) for child in _children(node))
        counts[id(node)] = min(MAX_VALUES + 1, 1 + below)
    return counts[id(node)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _survey(root: yaml.Node, path: Path) -> tuple[dict[Loc, int], list[Problem]]:
    """The line of every key, and keys given twice in one mapping. Without recursion, visiting each node
    once.
    """
    lines: dict[Loc, int] = {}
    problems: list[Problem] = []
    seen: set[int] = set()
    todo: list[tuple[yaml.Node, Loc]] = [(root, ())]
    while todo:
        node, loc = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                lines[(*loc, i)] = item.start_mark.line + 1
                todo.append((item, (*loc, i)))
        elif isinstance(node, yaml.MappingNode):
            first: dict[Any, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value == "<<" or not isinstance(key.value, str):
                    continue
                here = (*loc, key.value)
                if key.value in first:
                    wrong = f"given twice, first on line {first[key.value]}"
                    problems.append(Problem(dotted(here), wrong, "keep one of them", where=f"{path}:{line}"))
                first.setdefault(key.value, line)
                lines[here] = line
                todo.append((value, here))
    return lines, problems


def read_environment(kind: type[Settings], file_values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings from environment variables: ``GUARDRAIL_KAFKA__GROUP_ID=a`` is kafka.group_id.

    Lists and mappings are JSON. Variables that only share the prefix (``GUARDRAIL_SERVICE_HOST``, which
    Kubernetes sets for a service called guardrail) are ignored; what looks like a misspelt setting is not.
    Raises SettingsError.
    """
    problems = [problem for name in sorted(os.environ) if (problem := _misspelt(kind, name)) is not None]
    values: dict[str, Any] = {}
    try:
        values = EnvSettingsSource(kind)()
    except EnvDecodeError:
        problems += [
            _env_problem(name, "write lists and mappings as JSON", "not valid JSON")
            for name in _broken_json(kind)
        ]
    if problems:
        raise SettingsError(problems)
    return _restore_names(values, file_values)


def variable_of(loc: Sequence[str | int]) -> str:
    """The name of the environment variable that sets ``loc``."""
    return ENV_PREFIX + ENV_DELIMITER.join(re.sub(r"\W", "_", str(part)).upper() for part in loc)


def environment_variable(loc: Loc) -> str | None:
    """The existing variable that sets ``loc``, its section, or else something in it, if there is one."""
    names = {name.upper(): name for name in os.environ}
    for end in range(len(loc), 0, -1):
        found = names.get(variable_of(loc[:end]))
        if found is not None:
            return found
    below = ENV_PREFIX + ENV_DELIMITER.join((*(str(part).upper() for part in loc), ""))
    return next((names[name] for name in sorted(names) if name.startswith(below)), None)


def _misspelt(kind: type[Settings], name: str) -> Problem | None:
    if not name.upper().startswith(ENV_PREFIX):
        return None
    rest = name[len(ENV_PREFIX) :].lower()
    known = Place((), kind).fields
    head, delimiter, _ = rest.partition(ENV_DELIMITER)
    if head in known or head in SECTIONS_OF_OTHERS:
        return None
    for section in known:
        inner = rest.removeprefix(section + "_")
        if inner != rest and inner.partition(ENV_DELIMITER)[0] in Place((), kind).step(section).fields:
            right = ENV_PREFIX + (section + ENV_DELIMITER + inner).upper()
            return _env_problem(name, f"write {right}, with two underscores between the levels")
    close = difflib.get_close_matches(head, known, n=1, cutoff=0.6 if delimiter else 0.85)
    if close:
        return _env_problem(name, f"did you mean {ENV_PREFIX}{close[0].upper()}{delimiter}…?")
    return _env_problem(name, f"the sections are {', '.join(known)}") if delimiter else None


def _env_problem(name: str, remedy: str, wrong: str = "no such setting") -> Problem:
    return Problem(escape_controls(name), wrong, remedy, where="environment variable")


def _broken_json(kind: type[Settings]) -> list[str]:
    """Variables without valid JSON for a section, list or mapping."""
    broken = []
    for name, value in sorted(os.environ.items()):
        if name.upper().startswith(ENV_PREFIX):
            head, *below = name[len(ENV_PREFIX) :].lower().split(ENV_DELIMITER)
            if head in kind.model_fields and (not below or value.lstrip()[:1] in {"{", "["}):
                try:
                    json.loads(value)
                except ValueError:
                    broken.append(name)
    return broken


def _restore_names(values: dict[str, Any], file_values: Mapping[str, Any]) -> dict[str, Any]:
    """Give policies the spelling that variable names can't express (case, dashes)."""
    policies = values.get("policies")
    if not isinstance(policies, dict):
        return values
    in_file = file_values.get("policies")
    spelt = (
        {re.sub(r"\W", "_", str(key)).lower(): key for key in in_file} if isinstance(in_file, dict) else {}
    )
    restored = {spelt.get(key, key): policy for key, policy in policies.items()}
    return values | {"policies": restored}


def anchored(values: dict[str, Any], kind: type[BaseModel], folder: Path) -> Any:
    """``values`` of a file for ``kind``, with relative paths resolved from ``folder``.

    Checks nothing: what doesn't fit its type is left for the validation to reject.
    """

    def resolved(leaf: Place) -> Any:
        given = leaf.value
        if not isinstance(given, str) or not given:
            return given
        if leaf.field is ClassifierSettings.model_fields["model"]:
            is_path = given.startswith(("./", "../"))  # "acme/model" is an id on the hub
        else:
            is_path = Path in kinds(leaf.kind)
        return str(folder / given) if is_path else given

    return mapped(values, resolved, kind)


_SETTING: Final = re.compile(r"([a-z_]+)(?:\.[\w-]+)+(?=[ :.])")

_S = TypeVar("_S", bound=Settings)


@overload
def load_settings(
    path: Path | str | SettingsFile | None = None, overrides: Mapping[str, Any] | None = None
) -> Settings: ...


@overload
def load_settings(
    path: Path | str | SettingsFile | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    kind: type[_S],
) -> _S: ...


def load_settings(
    path: Path | str | SettingsFile | None = None,
    overrides: Mapping[str, Any] | None = None,
    *,
    kind: type[Settings] = Settings,
) -> Settings:
    """The settings of a process. Later sources win: defaults, file, environment, ``overrides``.

    ``path`` may be a pipe; a SettingsFile has been read before. A file without any settings is an error.

    ``kind`` is the class with the sections to read; it defaults to this package's own, and then the section
    ``kafka``, which ``consumers.settings`` reads, is ignored.

    ``overrides`` is nested like the file (``{"kafka": {"group_id": "a"}}``); it comes from the command line.
    Mappings are merged key by key, lists are replaced. Relative paths in the file are relative to its folder,
    those from other sources to the current one. Raises SettingsError, a ConfigError, which lists every
    problem with its source, path, value and remedy.
    """
    sources = _read(kind, Path(path) if isinstance(path, str) else path, overrides)
    values = merged(merged(sources.file.values, sources.environment), sources.given)
    for section in SECTIONS_OF_OTHERS - kind.model_fields.keys():
        values.pop(section, None)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        policies = values.get("policies")
        more = (*_unknown_policies(kind, values), *cycles(policies))
        where, is_repeated = sources.where, partial(is_inherited, policies)
        raise SettingsError(explain(kind, error, where, is_repeated, more)) from None


def with_places(
    error: ConfigError,
    path: Path | SettingsFile | None,
    overrides: Mapping[str, Any] | None = None,
    *,
    kind: type[Settings] = Settings,
) -> ConfigError:
    """The error with the source of each setting that begins a line of its message.

    It is for problems that appear only when individually valid settings are used: a judge without its model,
    a budget without a price. Arguments as for ``load_settings``.
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
        """The source of the setting at ``loc``."""
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
        # A section that is nowhere given has no place, and naming the whole file would not help.
        longest = next((loc[:end] for end in range(len(loc), 0, -1) if self._given(loc[:end])), None)
        where = None if longest is None else self.where(longest)
        return line if where is None else f"{where}: {line}"

    def _given(self, loc: Loc) -> bool:
        return any(_contains(each, loc) for each in (self.given, self.environment, self.file.values))


def _read(
    kind: type[Settings], path: Path | SettingsFile | None, overrides: Mapping[str, Any] | None
) -> _Sources:
    file = FileValues()
    if path is not None:
        read = path if isinstance(path, SettingsFile) else SettingsFile.read(path)
        path, file = read.path, parse(read)
        # Absolute without following links: mounted files are links into another folder, which has none of
        # their neighbours.
        file = replace(file, values=anchored(file.values, kind, path.absolute().parent))
    return _Sources(kind, file, read_environment(kind, file.values), overrides or {})


def _unknown_policies(kind: type[Settings], values: Mapping[str, Any]) -> Iterator[PydanticCustomError]:
    """An error for every policy that is named and doesn't exist.

    Settings can report only the first one, and only if everything else is valid; here nothing else needs to
    be.
    """
    policies = values.get("policies") or {}
    if not isinstance(policies, Mapping):
        return
    known = {BUILT_IN_POLICY, *map(str, policies)}
    for place in policy_names(dict(values), kind):
        if isinstance(place.value, str) and place.value and place.value not in known:
            yield unknown_policy(place.path, place.value, known)


def _contains(values: Any, loc: Loc) -> bool:
    """Whether ``values`` has the setting at ``loc``, or the list that contains it."""
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
