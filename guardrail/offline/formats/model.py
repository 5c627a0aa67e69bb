"""What the readers of formats pass on: rows as they stand in a file, and the words for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from guardrail.errors import DecodeError
from guardrail.printable import escape_controls, shorten

Format = Literal[
    "auto", "guardrail", "ragas", "deepeval", "haystack", "promptfoo", "ragtruth", "openinference", "langfuse"
]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file: its fields, or why it has none.

    ``place`` is for messages, ``name`` for the id of an answer that has none, ``size`` in bytes.
    """

    place: str
    name: str
    size: int
    fields: Fields | None
    problem: str = ""


_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def kind_of(value: Any) -> str:
    """What a value is, in the words of JSON; never the value itself."""
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def named(names: object) -> str:
    """A name from a file, fit for a message."""
    return repr(shorten(escape_controls(str(names)), 40))


def wrong(field: str, value: Any, remedy: str) -> DecodeError:
    """The error of a field whose value is of the wrong kind."""
    return DecodeError("invalid_sample", f"{field}: {kind_of(value)}; {remedy}")


def missing(field: str, remedy: str) -> DecodeError:
    """The error of a field that is not there."""
    return DecodeError("invalid_sample", f"{field}: missing; {remedy}")
