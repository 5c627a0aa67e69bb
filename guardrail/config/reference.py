"""Describes every setting from the models, for docs/settings.md and ``guardrail config show KEY``.

In paths, NAME stands for a name that the user chooses, and N for an item's number.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from guardrail.config.loading import variable_of
from guardrail.config.settings import Settings
from guardrail.errors import ConfigError
from guardrail.leaves import ITEM, NAME, Place
from guardrail.policy import RULE_LISTS
from guardrail.printable import escape_controls

_UNITS: Final = {
    "_ms": "milliseconds",
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_chars": "characters",
    "tokens": "tokens",
    "usd": "US dollars",
}
_SENTENCE: Final = re.compile(r"(?<!e\.g)\. ")
_CLOSE: Final = 0.6


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting or, if ``below`` is not empty, a section, list or mapping that contains settings."""

    path: tuple[str, ...]
    kind: str
    default: str | None
    unit: str | None
    description: str
    below: tuple[Entry, ...] = ()
    listed: bool = True
    """Whether the reference has it: not what a library has, which differs from release to release."""

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    def all(self) -> Iterator[Entry]:
        """This entry and all below it, in order."""
        yield self
        for each in self.below:
            yield from each.all()

    @property
    def is_section(self) -> bool:
        """Whether it is only a container of settings."""
        return self.kind == "section"


def entries(kind: type[Settings]) -> tuple[Entry, ...]:
    """The top-level settings of ``kind``, as in a file."""
    return _Reader(kind).below(Place((), kind), kind().masked())


class _Reader:
    """Walks the classes, and takes what each setting may hold from the JSON Schema that pydantic makes."""

    def __init__(self, kind: type[Settings]) -> None:
        schema = kind.model_json_schema()
        self._definitions: Mapping[str, Any] = {**schema["$defs"], kind.__name__: schema}

    def below(self, section: Place, defaults: Any) -> tuple[Entry, ...]:
        schema = self._definitions[section.section.__name__] if section.section else {}
        values = defaults if isinstance(defaults, Mapping) else {}
        return tuple(
            self._entry(place, raw, values.get(name, _of(raw, name in schema.get("required", ()))))
            for place, (name, raw) in zip(section.below(), schema["properties"].items(), strict=True)
            if place.path != ("policies", NAME, "name")  # which is the key
        )

    def _entry(self, place: Place, raw: Mapping[str, Any], default: Any) -> Entry:
        schema = self._resolved(raw)
        path = tuple(map(str, place.path))
        description = str(raw.get("description") or schema.get("description") or "")
        if place.section is not None:
            return Entry(path, "section", None, None, description, self.below(place, default))
        below: tuple[Entry, ...] = ()
        if path[-1] in RULE_LISTS:
            default = "\n".join(default)
            return Entry(path, self._kind(raw), default or "[]", None, description)
        for item in place.below():
            if item.section is not None:
                below = self.below(item, _of_each(path, default))
        if "properties" in schema:
            below = tuple(
                Entry(
                    (*path, name),
                    self._kind(each),
                    _shown(each["default"]),
                    _unit((name,), each),
                    each["description"],
                    listed=False,
                )
                for name, each in schema["properties"].items()
            )
        if path == ("policies",):
            default = {}  # the built-in policy is what stands in the fields
        return Entry(path, self._kind(raw), _shown(default), _unit(path, schema), description, below)

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        return {**self._definitions[name], **schema} if name else schema

    def _kind(self, raw: Mapping[str, Any]) -> str:
        schema = self._resolved(raw)
        if schema.get("format") == "password":
            return "secret"
        if "enum" in schema:
            return _either([f"`{value}`" for value in schema["enum"]])
        if "anyOf" in schema:
            kinds = [self._kind(each) for each in schema["anyOf"]]
            if kinds[0] == "secret":
                kinds = [kind for kind in kinds if kind in {"secret", "null"}]
            return _either(list(dict.fromkeys(kinds)))
        if schema.get("type") == "array":
            inner = schema.get("items", {})
            return f"a list of {self._kind(inner)}" if inner and "$ref" not in inner else "a list"
        if schema.get("type") == "object":
            return "a mapping"
        named = {
            "boolean": "`true` or `false`",
            "integer": "whole number",
            "number": "number",
            "null": "null",
            "string": "path" if schema.get("format") == "path" else "text",
        }
        return named.get(str(schema.get("type")), "anything") + _bounds(schema)


def _either(kinds: Sequence[str]) -> str:
    *most, last = kinds
    return f"{', '.join(most)} or {last}" if most else last


def _of_each(path: tuple[str, ...], default: Any) -> Any:
    """The defaults of the fields of a mapping's values, if it is not empty; by key if they differ."""
    if path == ("policies",):
        return default["default"]
    if not isinstance(default, Mapping) or not default:
        return None
    fields = next(iter(default.values()))
    return {field: {key: each[field] for key, each in default.items()} for field in fields}


def _of(schema: Mapping[str, Any], required: bool) -> Any:
    return _REQUIRED if required else schema.get("default", {} if schema.get("type") == "object" else [])


_REQUIRED: Final = object()


def _shown(value: Any) -> str | None:
    if value is _REQUIRED:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return text if isinstance(value, str) and not _PLAIN.fullmatch(value) else text.replace('"', "")


_PLAIN: Final = re.compile(r"[A-Za-z][\w.:/-]*")


def _bounds(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    over = schema.get("exclusiveMinimum")
    if least is not None and most is not None:
        return f" ({least:g} to {most:g})"
    if over is not None:
        most = "" if most is None else f", {most:g} or less"
        return f" (more than {over:g}{most})"
    if least is not None:
        return f" ({least:g} or more)"
    return "" if most is None else f" ({most:g} or less)"


def _unit(path: Sequence[str], schema: Mapping[str, Any]) -> str | None:
    if "unit" in schema:
        return str(schema["unit"])
    return next((unit for end, unit in _UNITS.items() if path[-1].endswith(end)), None)


# ---------------------------------------------------------------------------------------- the whole reference

_HEAD: Final = """\
# Settings

<!-- Made by `guardrail config schema reference`; change the models, not this file. -->

All settings stand in one YAML file; leave out what you don't change. Those that are changed most are in
[guardrail.example.yaml](../guardrail.example.yaml). `guardrail config check FILE` finds mistakes and tells
the remedy, `guardrail config show` prints all settings as they hold, and `guardrail config show KEY`
says what one of them is.

- An environment variable wins over the file: `GUARDRAIL_` and the path in capitals, two underscores between
  the levels, as in `GUARDRAIL_KAFKA__GROUP_ID=a`. Lists and mappings are JSON.
- Relative paths in the file are relative to its folder, those in environment variables to the current one.
  What may be something else as well (a classifier's model) is a relative path only where it begins with
  `./` or `../`.
- A secret is the text itself, `{file: PATH}` (a mounted secret) or `{env: VARIABLE}`. Nothing shows its text.
  As environment variables: `GUARDRAIL_KAFKA__SASL_PASSWORD` has the text, and
  `GUARDRAIL_KAFKA__SASL_PASSWORD__FILE` a path.
- In paths, `NAME` stands for a name that you choose and `N` for an item of a list.
"""


def markdown(kind: type[Settings]) -> str:
    """The reference of all settings."""
    lines = [_HEAD]
    top = entries(kind)
    loose = [each for each in top if not each.below]
    for each in top:
        if each.below:
            lines += _chapter(each)
    if loose:
        lines += ["## Others", "", *_table(loose, 0)]
    return "\n".join(lines).rstrip() + "\n"


def _chapter(entry: Entry) -> Iterator[str]:
    level = "##" if len(entry.path) == 1 else "###"
    yield from (
        f"{level} {entry.dotted}",
        "",
        *([_prose(entry.description), ""] if entry.description else []),
    )
    first = entry.below[0].path[:-1]
    if first != entry.path:
        yield from (f"Of each, as `{'.'.join(first)}`:", "")
    apart = [each for each in entry.below if each.is_section and len(entry.path) == 1]
    yield from _table([each for each in entry.below if each not in apart], len(first))
    for each in apart:
        yield from _chapter(each)


def _table(shown: Sequence[Entry], level: int) -> Iterator[str]:
    if not shown:
        return
    yield from ("| setting | holds | default | meaning |", "| --- | --- | --- | --- |")
    for top in shown:
        for each in top.all():
            if each.is_section or not each.listed:
                continue
            unit = f", in {each.unit}" if each.unit else ""
            default = "required"
            if each.default is not None:
                default = "<br>".join(f"`{line}`" for line in each.default.split("\n"))
            name, description = f"`{'.'.join(each.path[level:])}`", _prose(each.description)
            cells = (name, each.kind + unit, default, description)
            yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
    yield ""


def _prose(text: str) -> str:
    return text.replace("<", "&lt;")


# ------------------------------------------------------------------------------------------------ one setting


def describe(kind: type[Settings], path: str) -> str:
    """Describes the setting or section at ``path``. Raises ConfigError, with a similar name, if there is
    none.
    """
    parts = _parts(path)
    top = entries(kind)
    known = [each for one in top for each in one.all()]
    known += [
        replace(each, path=each.below[0].path[:-1], kind="section")
        for each in known
        if each.below and len(each.below[0].path) == len(each.path) + 2
    ]
    found = next((each for each in known if _matches(each.path, parts)), None)
    if found is None:
        raise ConfigError(_unknown(top, known, parts))
    return "\n".join(_description(found, parts))


def in_effect(settings: Settings, path: str) -> Any:
    """What the settings hold at ``path``, secrets masked. Raises LookupError where they hold nothing."""
    place = Place((), None, None, settings.masked())
    for part in _parts(path):
        place = {str(each.path[-1]): each for each in place.below()}[part]
    return place.value


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.strip().split(".") if part)


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if len(pattern) != len(parts):
        return False
    return all(
        one in {part, NAME} or (one == ITEM and part.isdigit())
        for one, part in zip(pattern, parts, strict=True)
    )


def _unknown(top: Sequence[Entry], known: Sequence[Entry], parts: Sequence[str]) -> str:
    path = escape_controls(".".join(parts)) or "(nothing)"
    names = [each.dotted for each in known]
    same = [each for each in names if parts and each.rpartition(".")[2] == parts[-1]]
    close = difflib.get_close_matches(path, same or names, n=3, cutoff=0.0 if same else _CLOSE)
    remedy = (
        f"did you mean {' or '.join(close)}?" if close else f"sections: {', '.join(e.dotted for e in top)}"
    )
    return f"{path}: no such setting; {remedy}"


def _description(entry: Entry, parts: Sequence[str]) -> Iterator[str]:
    yield ".".join(parts)
    if entry.description:
        yield f"  {entry.description}"
    if not entry.is_section:
        unit = f", in {entry.unit}" if entry.unit else ""
        how = "; a secret is text, {file: PATH} or {env: VARIABLE}" if "secret" in entry.kind else ""
        yield f"  holds     {entry.kind.replace('`', '')}{unit}{how}"
        default = "none, it is required" if entry.default is None else entry.default
        yield "  default   " + default.replace("\n", "\n            ")
        whole = entry.path.index(ITEM) if ITEM in entry.path else None
        yield f"  variable  {variable_of(parts[:whole])}{' (the whole list, as JSON)' if whole else ''}"
    below = [each for each in entry.below if each.listed]
    if below:
        yield "  settings in it:"
        for each in below:
            first = _SENTENCE.split(each.description)[0].rstrip(".")
            yield f"    {'.'.join(each.path[len(entry.path) :])}: {first}"
