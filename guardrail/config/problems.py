"""Describes what is wrong with a configuration, so that everything can be fixed at once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import EnumType
from typing import Any, Final

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from guardrail.errors import ConfigError, said_wrong
from guardrail.leaves import ITEM, NAME, Loc, Place, kinds, places
from guardrail.printable import escape_controls, shorten
from guardrail.secrets import Secret

# Not "tokens", which are counted, nor "tokenizer".
_SECRET_NAME: Final = re.compile(r"password|secret|token(?!s|izer)|api_?key|credential", re.IGNORECASE)
# Any text below these may be a secret: a gateway's key, a server's option.
_SECRET_SECTIONS: Final = frozenset({"headers", "extra_headers", "extra_body"})
_WITH_AT: Final = re.compile(r"\S*@\S*")
_QUERY: Final = re.compile(r"(?<=\?)(?<!\(\?)[^\s?'\"]*=[^\s'\"]*")
_NOT_SHOWN: Final = "(a value with '@' is not shown)"
_VALUE_CHARS: Final = 80
_BOUNDS: Final = {
    "greater_than_equal": "give {ge} or more:",
    "greater_than": "give more than {gt}:",
    "less_than_equal": "give {le} or less:",
    "less_than": "give less than {lt}:",
}
_WRITE: Final = {
    "bool_type": "write true or false:",
    "bool_parsing": "write true or false:",
    "int_type": "write a whole number:",
    "int_parsing": "write a whole number:",
    "int_from_float": "write a whole number:",
    "float_type": "write a number:",
    "float_parsing": "write a number:",
    "string_type": "write text:",
    "path_type": "write a path:",
    "tuple_type": "write a list, an item on a line after '- ':",
    "list_type": "write a list, an item on a line after '- ':",
    "missing": "add it:",
}
_LIST_TYPES: Final = {"tuple_type", "list_type"}
_SECTION_TYPES: Final = {"model_type", "model_attributes_type", "dict_type"}
_SECTION_NAMES: Final = 3
_CLOSE: Final = 0.75  # how similar two spellings must be for one to count as a typo for the other


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong setting. ``path`` is dotted, and empty if the whole source is wrong."""

    path: str
    wrong: str
    remedy: str
    value: str | None = None
    where: str | None = None

    def __str__(self) -> str:
        setting = self.path if self.value is None else f"{self.path} = {self.value}"
        return (
            ": ".join(part for part in (self.where, setting, self.wrong) if part)
            + f"\n  remedy: {self.remedy}"
        )


class SettingsError(ConfigError):
    """One or more settings are wrong; ``problems`` and the message list all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


def dotted(loc: Loc) -> str:
    """A path as messages show it: ``policies.default.rules.0``."""
    return ".".join(escape_controls(str(part)) for part in loc)


def explain(
    root: type[BaseModel],
    error: ValidationError,
    where: Callable[[Loc], str | None],
    is_repeated: Callable[[Loc], bool] = lambda _: False,
    more: Iterable[PydanticCustomError] = (),
) -> list[Problem]:
    """The problems in a failed validation of ``root``; ``where`` returns the source of a path. Leaves out
    paths that repeat another's value, because the problem is reported there. ``more`` are errors that the
    validation may not have come to; each has its path.
    """
    errors = [details for details in error.errors(include_url=False) if not is_repeated(details["loc"])]
    misnamed = {details["loc"][:-1] for details in errors if details["loc"][-1:] == ("[key]",)}
    found = [
        _explain_one(root, details, where)
        for details in errors
        # If a section has a wrong name, missing settings in it follow from that.
        if details["loc"][-1:] == ("[key]",) or not _stands_in(details["loc"], misnamed)
    ]
    told = {problem.path for problem in found}
    for each in more:
        details = ErrorDetails(type=each.type, loc=(), msg=each.message(), input=None, ctx=each.context or {})
        problem = _explain_one(root, details, where)
        found += [] if problem.path in told else [problem]
    return found


def _stands_in(loc: Loc, sections: Collection[Loc]) -> bool:
    return any(loc[:end] in sections for end in range(1, len(loc) + 1))


def _explain_one(root: type[BaseModel], details: ErrorDetails, where: Callable[[Loc], str | None]) -> Problem:
    context = details.get("ctx") or {}
    loc: Loc = context.get("path", details["loc"])
    value = context.get("value", details["input"])
    if details["type"] == "unknown_policy":
        wrong = f"no policy has this name; there are: {escape_controls(', '.join(context['names']))}"
        remedy = _close(value, context["names"]) or "correct it, or add the policy to policies"
        return Problem(dotted(loc), wrong, remedy, value=_show(value, loc, None), where=where(loc))
    if details["type"] == "extra_forbidden":
        return Problem(dotted(loc), "no such setting", _suggest(root, loc), where=where(loc))
    name_is_wrong = loc[-1:] == ("[key]",)
    if name_is_wrong:
        loc = loc[:-1]
    place = Place((), root).at(loc)
    field = place and place.field
    wrong = escape_controls(_without_logins(said_wrong(details), value))
    wrong, _, told = wrong.partition("; ")
    section = None if told else _section(place, details["type"])
    if section:
        found = "a list" if isinstance(value, list | tuple) else "a single value"
        wrong = f"expected a mapping of settings, found {found}"
    elif details["type"] in _LIST_TYPES:
        found = "a mapping" if isinstance(value, Mapping) else "a single value"
        wrong = f"expected a list, found {found}"
    elif wrong and details["type"] != "value_error":
        wrong = wrong[0].lower() + wrong[1:]
    remedy = told or section or _remedy(details["type"], value, context, field)
    shown = None if name_is_wrong else _show(value, loc, field)
    return Problem(dotted(loc), wrong, remedy, value=shown, where=where(loc))


def _section(place: Place | None, kind: str) -> str | None:
    """What to write if settings are expected and something else was given."""
    if kind not in _SECTION_TYPES or place is None or not place.path:
        return None
    names = list(place.fields)
    if not names:
        return "write 'NAME: VALUE' lines under it, indented; or leave it out"
    more = ", …" if len(names) > _SECTION_NAMES else ""
    shown = ", ".join(names[:_SECTION_NAMES])
    return f"write 'NAME: VALUE' lines under it, indented (names: {shown}{more}); or leave it out"


def _remedy(kind: str, value: Any, context: Mapping[str, Any], field: FieldInfo | None) -> str:
    hints = [_BOUNDS[kind].format_map(context)] if kind in _BOUNDS else []
    if kind == "string_type" and isinstance(value, bool | int | float):
        hints.append(f'put it in quotes: "{value}":')
    elif kind in {"literal_error", "enum"}:
        known = re.findall(r"'([^']+)'", str(context.get("expected", "")))
        close = _close(str(value), known)
        hints.append(f"{f'{close} Or' if close else ''} write one of {', '.join(known)}:".lstrip())
    elif kind == "missing" and field is not None and isinstance(field.annotation, EnumType):
        hints.append(f"add it, one of {', '.join(str(member.value) for member in field.annotation)}:")
    elif kind in _WRITE:
        hints.append(_WRITE[kind])
    if field is not None and field.description:
        hints.append(escape_controls(field.description))
    if field is not None and not field.is_required():
        default = field.get_default(call_default_factory=False)
        if isinstance(default, str | int | float):
            hints.append(f"(default: {default})")
    return " ".join(hints).rstrip(":") or "see 'guardrail config schema' for what may stand here"


def _show(value: Any, loc: Loc, field: FieldInfo | None) -> str | None:
    """The given value, short and without secrets; None for whole sections."""
    if value is None:
        return "null"
    if isinstance(value, BaseModel | Mapping):
        return None
    named = [str(part) for part in loc]
    if _is_secret(field) or _SECRET_SECTIONS.intersection(named) or _SECRET_NAME.search("".join(named[-1:])):
        return "(hidden)"
    shown = escape_controls(repr(value) if isinstance(value, str) else str(value))
    return _NOT_SHOWN if "@" in shown else shorten(_QUERY.sub("(hidden)", shown), _VALUE_CHARS)


def _without_logins(message: str, value: Any) -> str:
    """The message without anything that contains an @, which may follow a password, even without a scheme and
    in a URL's query.
    """
    message = message.replace(_NOT_SHOWN, "\0")
    if isinstance(value, str) and "@" in value:
        message = message.replace(repr(value), "\0").replace(value, "\0")
    return _WITH_AT.sub(_NOT_SHOWN, _QUERY.sub("(hidden)", message)).replace("\0", _NOT_SHOWN)


def _is_secret(field: FieldInfo | None) -> bool:
    if field is None:
        return False
    return any(kind in {Secret, SecretStr} for kind in kinds(field.annotation))


def _suggest(root: type[BaseModel], loc: Loc) -> str:
    place = Place((), root).at(loc[:-1])
    known = place.fields if place is not None else {}
    name = str(loc[-1])
    close = _close(name, list(known), dotted(loc[:-1]))
    if close:
        return close
    elsewhere = [each.path for each in places(Place((), root)) if each.path[-1] == name]
    found = [path for path in elsewhere if not {NAME, ITEM}.intersection(path)]
    if found:
        return f"did you mean {dotted(min(found, key=len))}?"
    return f"known here: {', '.join(known)}" if known else "take it out"


def _close(name: str, known: Sequence[str], section: str = "") -> str | None:
    folded = {candidate.lower(): candidate for candidate in known}
    name = name.lower().replace("-", "_")
    found = difflib.get_close_matches(name, folded, n=1, cutoff=0.6)
    # "delete" is as similar to "release" as "model" is to "model_name", and means the opposite.
    ratio = difflib.SequenceMatcher(a=found[0], b=name).ratio() if found else 0.0
    if not found or (ratio < _CLOSE and not found[0].startswith(name)):
        return None
    return f"did you mean {section + '.' if section else ''}{folded[found[0]]}?"
