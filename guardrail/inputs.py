"""Turns what callers of ``Guard`` and ``GuardClient`` pass in into input events."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from guardrail.errors import DecodeError, InputError
from guardrail.events import (
    Context,
    Event,
    Response,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
    decode_error,
)

ContextLike = Context | str | Mapping[str, Any]
"""A document: a text, a mapping with ``text`` and mostly ``id``, or a ``Context``."""

_Event = TypeVar("_Event", ResponseStarted, ResponseDelta, Response)


def event_of(kind: type[_Event], response_id: str | None, fields: dict[str, Any]) -> _Event:
    """An event of ``kind``, with an id of its own where none is given.

    Raises InputError naming the field, and TypeError for one that there is not: misspelt, ``route`` would
    silently choose the default policy.
    """
    if not fields.keys() <= kind.model_fields.keys():
        raise TypeError(_unknown(kind, fields))
    try:
        return kind.model_validate({"response_id": response_id or uuid4().hex, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "model_type" and first["loc"][0] == "contexts":
            found = type(first["input"]).__name__
            where = ".".join(map(str, first["loc"]))
            raise DecodeError(
                "invalid_event", f"{where}: give a text, or a mapping with id and text, not a {found}"
            ) from None
        raise decode_error(error) from None


def _unknown(kind: type[Event], fields: Mapping[str, Any]) -> str:
    known = [name for name in kind.model_fields if name not in {"type", "schema_version"}]
    name = next(name for name in fields if name not in kind.model_fields)
    close = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
    return f"{name!r} is not a field of a response; {remedy}"


def named_contexts(contexts: Sequence[ContextLike]) -> tuple[Context | Mapping[str, Any], ...]:
    """Contexts as they are; those without an id, and mere texts, are named c1, c2, …"""
    if isinstance(contexts, str | Mapping) or not isinstance(contexts, Iterable):
        what = "one text" if isinstance(contexts, str) else type(contexts).__name__
        raise TypeError(f"contexts: give a list of contexts, not {what}")
    return tuple(_named(context, f"c{number}") for number, context in enumerate(contexts, start=1))


def _named(context: ContextLike, name: str) -> Context | Mapping[str, Any]:
    if isinstance(context, str):
        return Context(id=name, text=context)
    if isinstance(context, Mapping) and "id" not in context:
        return {**context, "id": name}
    return context


def as_json(event: Event) -> bytes:
    """The event as JSON. Raises InputError if a text of it can't be encoded as UTF-8, or if its metadata,
    which take any value, can't be written as JSON that a guard would read.
    """
    if isinstance(event, ResponseHead) and event.metadata:
        try:
            from_json(to_json({"metadata": event.metadata}))  # as deep as in the event
        except ValueError as error:
            told = str(error).partition(" at line ")[0].rpartition("Error: ")[2]
            raise InputError(
                "invalid_event",
                f"metadata: {told}; give texts, numbers, lists and mappings of them, nested less than 200 "
                "deep, whole numbers of at most 4,300 digits",
            ) from None
    try:
        return event.to_json()
    except PydanticSerializationError:
        raise InputError(
            "invalid_text", "a text has half of a surrogate pair, which UTF-8 can't hold; join or drop it"
        ) from None


def token_stream(deltas: AsyncIterable[str] | Iterable[str]) -> AsyncIterable[str]:
    """The texts as they come; of a plain iterable other tasks get a turn after each. Raises TypeError for one
    text, which is an iterable of texts, too.
    """
    if isinstance(deltas, str):
        raise TypeError("deltas: give an iterable of texts, not one text; check() takes a whole answer")
    return deltas if isinstance(deltas, AsyncIterable) else _one_by_one(deltas)


async def _one_by_one(texts: Iterable[str]) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text
        await asyncio.sleep(0)
