"""Texts for readers: a single one, or one for each language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Message = str | dict[str, str]
"""A text for readers; or one for each language, by BCP 47 tag, with one for all others under ``default``."""

_TAG: Final = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8})*", re.IGNORECASE)
_ANY_LANGUAGE: Final = "default"


def message_in(message: Message, language: str | None) -> str:
    """The text for readers of ``language``, a BCP 47 tag: the one for that tag, else for a shorter prefix
    (RFC 4647, "lookup": ``de-CH`` finds ``de``), else the default.
    """
    if isinstance(message, str):
        return message
    by_tag = {tag.lower(): text for tag, text in message.items()}
    parts = (language or "").lower().replace("_", "-").split("-")
    for end in range(len(parts), 0, -1):
        text = by_tag.get("-".join(parts[:end]))
        if text is not None:
            return text
    return by_tag[_ANY_LANGUAGE]


def checked_message(value: Any) -> Any:
    """The value, if it is a message. Raises ValueError with the remedy."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - pydantic turns a ValueError into a problem with its place
            "this is not text; write one, or texts by language: {default: TEXT, de: TEXT}"
        )
    for tag, text in value.items():
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise ValueError(
                f"{tag!r} is not a language; write tags such as de or pt-BR, and default for all others"
            )
        if not isinstance(text, str):
            raise ValueError(f"the text for {tag!r} is none; put it in quotes")  # noqa: TRY004
    if _ANY_LANGUAGE not in value:
        raise ValueError("there is no text for other languages; add it under default")
    if len({tag.lower() for tag in value}) < len(value):
        raise ValueError("two texts are for one language; tags differ by more than capitals")
    return value
