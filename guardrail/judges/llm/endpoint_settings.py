"""Settings of how a model is reached, and of what holds when it is slow, busy or down."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from guardrail.errors import ConfigError
from guardrail.judges.http_headers import check_headers
from guardrail.judges.llm.extra_body import ExtraBody
from guardrail.judges.secret_files import read_secret

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY_ENV: Final = "OPENAI_API_KEY"

# The client wants a key; servers of one's own mostly don't, and are sent none.
NO_KEY: Final = "not-needed"

Share = Annotated[float, Field(gt=0, lt=1)]
Milliseconds = Annotated[int, Field(gt=0)]


class ApiKeySettings(BaseModel):
    """Where the key of an API is: in one place at most."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_key: SecretStr | None = Field(
        default=None, description="Key of the API. Better in a file or in the environment."
    )
    api_key_file: Path | None = Field(
        default=None, description="File that holds the key (a mounted secret); read at start."
    )
    api_key_env: str | None = Field(
        default=None,
        description=f"Environment variable that holds the key; {OPENAI_KEY_ENV} when base_url is OpenAI's "
        "and no other source is named. Elsewhere a key is sent only if one is named here.",
    )

    @model_validator(mode="after")
    def _one_key(self) -> ApiKeySettings:
        given = [
            name for name in ("api_key", "api_key_file", "api_key_env") if getattr(self, name) is not None
        ]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are both given; name the key in one place only")
        return self


def checked_base_url(value: str) -> str:
    """The URL without a trailing slash ahead of its query, or a fragment, which is never sent.

    Raises ValueError, which never repeats a password.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its message may repeat a password: what a password with a slash leaves is no port
        raise ValueError(
            "base_url has no usable host and port; write it as https://HOST[:PORT]/v1, PORT from 1 to 65535"
        ) from None
    if parts.username or parts.password:
        raise ValueError("base_url holds a user name or password; give the key as api_key_file instead")
    if not usable:
        # What stands before an @ may be a login, with a scheme or without.
        shown = "(a value with '@' is not shown)" if "@" in value else repr(value)
        raise ValueError(f"base_url {shown} is no http(s) URL; write it as https://HOST[:PORT]/v1")
    names = [name for name, _ in _query(parts.query)]
    if len(set(names)) < len(names):
        raise ValueError("base_url gives a parameter of its query twice; leave it there once")
    return parts._replace(path=parts.path.rstrip("/"), fragment="").geturl()


def split_base_url(base_url: str) -> tuple[str, dict[str, str]]:
    """The URL that paths are added to, and the parameters of its query, which belong behind them."""
    parts = urlsplit(base_url)
    return parts._replace(query="").geturl(), dict(_query(parts.query))


def _query(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def resolve_key(keys: ApiKeySettings, base_url: str, place: str = "judge.llm") -> str:
    """The key to send. Raises ConfigError, which says where a key was looked for, never the key."""
    if keys.api_key is not None:
        return keys.api_key.get_secret_value()
    if keys.api_key_file is not None:
        return read_secret(keys.api_key_file, f"{place}.api_key_file", "key", for_header=True)
    is_openai = urlsplit(base_url).hostname == urlsplit(OPENAI_BASE_URL).hostname
    variable = keys.api_key_env or (OPENAI_KEY_ENV if is_openai else None)
    if variable is None:
        return NO_KEY
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"{place}.api_key_env: the environment variable {variable} is not set; set it, or name a "
            f"file that holds the key as {place}.api_key_file"
        )
    return key


class FallbackSettings(ApiKeySettings):
    """A model to ask when those before it fail. What is left out is as for the first model.

    Headers, members of the body and keys are not taken over by another server, nor is a body by another
    model: what they hold is meant for the first.
    """

    model: Annotated[str, Field(min_length=1)] = Field(description="Model to ask.")
    base_url: str | None = Field(
        default=None, description="Root of the API; left out, the first model's server."
    )
    extra_headers: dict[str, SecretStr] | None = Field(
        default=None, description="HTTP headers to add; left out, the first model's on the same server."
    )
    extra_body: ExtraBody = Field(
        default_factory=dict,
        repr=False,
        description="Members to add to the body of every call; none that the judge sends itself.",
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        default=0.0, description="Sampling temperature; null leaves it out, for models that refuse it."
    )
    attempt_timeout_ms: Milliseconds | None = Field(
        default=None, description="Longest time for one call; left out, as for the first model."
    )

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return None if value is None else checked_base_url(value)

    @field_validator("extra_headers")
    @classmethod
    def _headers(cls, value: dict[str, SecretStr] | None) -> dict[str, SecretStr] | None:
        check_headers(value or {})
        return value

    def changes(self, first_base_url: str) -> dict[str, Any]:
        """What differs from the first model's settings, by the names of ``LlmJudgeSettings``."""
        same_server = self.base_url in {None, first_base_url}
        changed: dict[str, Any] = {
            "model": self.model,
            "base_url": self.base_url or first_base_url,
            "extra_body": self.extra_body,
            "temperature": self.temperature,
        }
        own_key = any(key is not None for key in (self.api_key, self.api_key_file, self.api_key_env))
        if own_key or not same_server:
            changed |= {name: getattr(self, name) for name in ApiKeySettings.model_fields}
        if self.extra_headers is not None or not same_server:
            changed["extra_headers"] = self.extra_headers or {}
        if self.attempt_timeout_ms is not None:
            changed["attempt_timeout_ms"] = self.attempt_timeout_ms
        return changed


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StreamSettings(_Settings):
    """Reading replies while they are written."""

    mode: Literal["auto", "never"] = Field(
        default="auto",
        description="auto: replies are streamed, unless the server refuses, which is remembered.",
    )
    stall_timeout_ms: Milliseconds | None = Field(
        default=10_000,
        description="Longest silence of a stream, ahead of its first token too, after which it is ended and "
        "what was complete is used. Comments that keep a connection open count as silence. null: no bound.",
    )


class HedgingSettings(_Settings):
    """A second call for the same question when the first one is late; the sooner one is used."""

    enabled: bool = Field(default=False, description="Send second calls. They cost tokens.")
    quantile: Share = Field(
        default=0.95, description="Of the recent times to a first verdict: when the second call is sent."
    )
    min_samples: Annotated[int, Field(ge=1)] = Field(
        default=20, description="Recent calls that must have been timed before any second call is sent."
    )
    max_share: Share = Field(
        default=0.1, description="Most second calls, as a share of the calls: a slow server is not flooded."
    )


class CircuitBreakerSettings(_Settings):
    """When a server that fails is left alone for a while, and how it is tried again."""

    enabled: bool = Field(default=True, description="Leave a failing server alone.")
    failure_rate: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.5, description="Share of failed calls in the window from which on no more are sent."
    )
    window_ms: Milliseconds = Field(default=30_000, description="Calls that ended so long ago count.")
    min_calls: Annotated[int, Field(ge=1)] = Field(
        default=10, description="Calls in the window from which on their failures are judged."
    )
    open_ms: Milliseconds = Field(
        default=10_000, description="Time for which no call is sent, after which a few are as a probe."
    )
    probes: Annotated[int, Field(ge=1)] = Field(
        default=2,
        description="Calls sent as a probe. All must succeed; one failure leaves the server alone again.",
    )


class ConcurrencySettings(_Settings):
    """How the number of calls in flight that a server bears is found; max_concurrency is its upper bound."""

    min: Annotated[int, Field(ge=1)] = Field(
        default=1, description="Calls in flight that are always allowed, whatever the server answers."
    )
    initial: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Calls in flight allowed at the start; null: max_concurrency."
    )
    decrease: Share = Field(
        default=0.7, description="Factor of the limit after a 429, a 503 or a timeout, once per round."
    )
    latency_tolerance: Annotated[float, Field(gt=1)] | None = Field(
        default=4.0,
        description="The limit also shrinks when the time to the first token is so many times its lowest "
        "recent level, as it is where the server queues. null: it doesn't.",
    )
    max_queue: Annotated[int, Field(ge=0)] = Field(
        default=1_000, description="Calls waiting for their turn; more are given up at once."
    )


class FailoverSettings(_Settings):
    """How the time is shared out between a model and its fallbacks."""

    reserve: Share = Field(
        default=0.4,
        description="Share of the time left that is kept for the fallbacks while a model before them is "
        "asked.",
    )
