"""What judges behind HTTP have in common: URLs, headers, and replies of bounded length."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.secrets import Secret, check_headers

_PIECES: Final = 1_000
_SMALL: Final = 16  # what makes more work than this many bytes or characters counts as several pieces


def check_url(url: str) -> str:
    """``url``, if it is one that can be asked. Raises ValueError, which doesn't show it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be a URL with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must hold no user or password; use headers")
    return url


def _can_be_sent(headers: dict[str, Secret]) -> dict[str, Secret]:
    check_headers({name: each.text or SecretStr("") for name, each in headers.items()})
    return headers


HttpUrl = Annotated[str, AfterValidator(check_url)]
"""The type of settings for a server's address."""
HttpHeaders = Annotated[dict[str, Secret], AfterValidator(_can_be_sent)]
"""The type of settings for headers of every request."""


def request_headers(headers: Mapping[str, Secret], section: str) -> dict[str, str]:
    """The headers of every request, as text. Raises ConfigError for one that can't be read or sent."""
    sent = {
        name: each.read(f"{section}.headers.{name}", "header's value", for_header=True)
        for name, each in headers.items()
    }
    try:
        check_headers({name: SecretStr(value) for name, value in sent.items()})
    except ValueError as error:
        raise ConfigError(f"{section}.headers: {error}") from None
    return sent | {"Content-Type": "application/json", "Accept-Encoding": "identity"}


class Turns:
    """Lets other tasks run while a reply is read: one read of a socket may hold thousands of its pieces,
    which then come without a wait in between.
    """

    def __init__(self) -> None:
        self._pieces = 0

    async def after(self, size: int) -> None:
        """A piece of so many bytes or characters was read."""
        self._pieces += 1 + size // _SMALL
        if self._pieces >= _PIECES:
            self._pieces = 0
            await asyncio.sleep(0)


async def read_body(response: Any, limit: int) -> bytes:
    """The body of a streamed response. Raises JudgeReplyError if it is compressed or longer than ``limit``
    bytes.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise JudgeReplyError("the endpoint compressed its reply, which it was not asked to")
    body = bytearray()
    turns = Turns()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit:
            raise JudgeReplyError(f"the reply is longer than {limit:,} bytes")
        await turns.after(len(chunk))
    return bytes(body)
