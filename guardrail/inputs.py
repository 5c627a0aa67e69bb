"""Turns what callers of ``Guard`` and ``GuardClient`` pass in into input events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from guardrail.errors import InputError
from guardrail.events import Context, Event, Response, ResponseDelta, ResponseStarted, decode_error

ContextLike = Context | str | Mapping[str, Any]
"""A document: a text, a mapping with ``id`` and ``text``, or a ``Context``."""

_Event = TypeVar("_Event", ResponseStarted, ResponseDelta, Response)


def event_of(kind: type[_Event], response_id: str | None, fields: dict[str, Any]) -> _Event:
    """An event of ``kind``, with a new id if none is given. Raises InputError, which names the field."""
    try:
        return kind.model_validate({"response_id": response_id or uuid4().hex, **fields})
    except ValidationError as error:
        raise decode_error(error) from None


def named_contexts(contexts: Sequence[ContextLike]) -> tuple[Context | Mapping[str, Any], ...]:
    """Contexts as they are; plain texts get the ids c1, c2, …"""
    if isinstance(contexts, str):
        raise TypeError("contexts: give a list of contexts, not one text")
    return tuple(
        Context(id=f"c{number}", text=context) if isinstance(context, str) else context
        for number, context in enumerate(contexts, start=1)
    )


def require_unicode(event: Event) -> bytes:
    """The event as JSON. Raises InputError if a text of it can't be encoded as UTF-8."""
    try:
        return event.to_json()
    except PydanticSerializationError:
        raise InputError(
            "invalid_text", "a text has half of a surrogate pair, which UTF-8 can't hold; join or drop it"
        ) from None


async def one_by_one(texts: Iterable[str]) -> AsyncGenerator[str, None]:
    """The texts of a plain iterable; other tasks get a turn after each."""
    for text in texts:
        yield text
        await asyncio.sleep(0)
