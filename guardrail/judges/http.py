"""What judges behind HTTP have in common: URLs, headers, certificates, and replies of bounded length."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import SecretStr

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.secrets import read_secret

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
        raise ValueError("must hold no user or password; use headers or token_file")
    return url


def request_headers(
    headers: Mapping[str, SecretStr], token_file: Path | None, section: str
) -> dict[str, str]:
    """The headers of every request, as text. Raises ConfigError for a token that can't be read."""
    sent = {name: value.get_secret_value() for name, value in headers.items()}
    if token_file is not None:
        token = read_secret(token_file, f"{section}.token_file", "token", for_header=True)
        sent["Authorization"] = f"Bearer {token}"
    return sent | {"Content-Type": "application/json", "Accept-Encoding": "identity"}


def tls(cafile: Path | None, section: str) -> ssl.SSLContext | bool:
    """What a client verifies servers with. Raises ConfigError for a file that holds no certificates."""
    if cafile is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(cafile))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"{section}.cafile: {cafile} can't be used ({type(error).__name__}); give a PEM file"
        ) from None


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
