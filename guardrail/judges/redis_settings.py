"""Settings of the verdict cache that guards share through Redis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from guardrail.errors import ConfigError
from guardrail.judges.secret_files import read_secret

_LEAST_KEY_CHARS = 16


class RedisSettings(BaseModel):
    """Where the server is, how long it may take, and what proves that a verdict was written by a guard."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(
        default="redis://localhost:6379/0",
        description="redis://, rediss:// (TLS) or unix:// URL, without a password.",
    )
    username: str | None = Field(default=None, description="User at the server (ACL).")
    password: SecretStr | None = Field(
        default=None, description="Password at the server. Better in a file or in the environment."
    )
    password_file: Path | None = Field(
        default=None, description="File that holds the password (a mounted secret); read at start."
    )
    signing_key: SecretStr | None = Field(
        default=None,
        description="Secret that all guards share; entries are signed with it (HMAC-SHA256), and others "
        "ignored. Without one, whoever can write to the server can give verdicts.",
    )
    signing_key_file: Path | None = Field(
        default=None, description="File that holds the signing key; read at start."
    )
    prefix: str = Field(default="guardrail:verdict:", description="Begin of all keys.")
    timeout_ms: Annotated[int, Field(gt=0, le=1_000)] = Field(
        default=10,
        description="Longest time for one look-up or one write, connecting included; after it the guard goes "
        "on without.",
    )
    max_connections: Annotated[int, Field(gt=0)] = Field(
        default=32, description="Connections; when all are busy it goes on without."
    )
    pause_ms: Annotated[int, Field(ge=0)] = Field(
        default=5_000, description="How long the server is left alone after three failures in a row."
    )

    @field_validator("url")
    @classmethod
    def _no_password(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            if parts.scheme != "unix":
                parts.port  # noqa: B018 - it raises for what is no port
        except ValueError:  # its message may repeat a password
            raise ValueError(
                "url has no usable host and port; write it as redis://HOST:PORT/0, PORT from 1 to 65535"
            ) from None
        if parts.password or "password" in parse_qs(parts.query, keep_blank_values=True):
            raise ValueError("url holds a password; give it as password_file")
        if parts.scheme not in {"redis", "rediss", "unix"}:
            # What stands before an @ may be a password, with a scheme or without.
            shown = "(a value with '@' is not shown)" if "@" in value else repr(value)
            raise ValueError(f"url {shown} is no Redis URL; write it as redis://HOST:PORT/0")
        return value

    def resolve_password(self) -> str | None:
        """The password, None without one. Raises ConfigError when its file can't be read."""
        return _secret(self.password, self.password_file, "password_file")

    def resolve_signing_key(self) -> bytes | None:
        """The key to sign with, None without one. Raises ConfigError when it is short or can't be read."""
        key = _secret(self.signing_key, self.signing_key_file, "signing_key_file")
        if key is not None and len(key) < _LEAST_KEY_CHARS:
            raise ConfigError(
                f"judge.cache.redis.signing_key: {len(key)} characters are too few to be secret; give "
                f"{_LEAST_KEY_CHARS} or more, as `openssl rand -hex 32` makes them"
            )
        return None if key is None else key.encode()


def _secret(value: SecretStr | None, path: Path | None, name: str) -> str | None:
    if value is not None:
        return value.get_secret_value()
    if path is None:
        return None
    return read_secret(path, f"judge.cache.redis.{name}", "secret")
