"""Settings of the LLM judge."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from guardrail.errors import ConfigError

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY_ENV: Final = "OPENAI_API_KEY"

# The client wants a key; servers of one's own mostly don't, and ignore what they get.
_NO_KEY: Final = "not-needed"


class OutputMode(StrEnum):
    """How the server is asked to keep to the reply's form, from strictest to loosest."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


class Reasoning(StrEnum):
    """Where the model gives its reasons. Tokens written are what the delay is made of."""

    BEFORE = "before"
    AFTER = "after"
    NOT_SUPPORTED = "not_supported"
    NONE = "none"


class LlmJudgeSettings(BaseModel):
    """Which model judges, how it is reached, and what it may cost in time and tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Annotated[str, Field(min_length=1)] = Field(
        default="gpt-4.1-mini",
        description="Model to ask; better not the one that writes the answers.",
    )
    base_url: str = Field(
        default=OPENAI_BASE_URL,
        description="Root of an OpenAI-compatible API (OpenAI, vLLM, llama.cpp, Ollama, …), with its /v1.",
    )
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
    extra_headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="HTTP headers to add to every call, such as a gateway's routing key.",
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="Members to add to the body of every call: reasoning_effort, a server's own options.",
    )
    system_role: Literal["system", "developer", "user"] = Field(
        default="system",
        description="Role of the instructions; user puts them ahead of the data in one message, for models "
        "that have no system role.",
    )

    timeout_ms: Annotated[int, Field(gt=0)] = Field(
        default=30_000,
        description="Longest time for the verdicts of one request, retries and waits included. The deadline "
        "of the claims ends it earlier.",
    )
    attempt_timeout_ms: Annotated[int, Field(gt=0)] | None = Field(
        default=None,
        description="Longest time for one call, after which it is tried again; left out, a call may take all "
        "the time there is.",
    )
    max_retries: Annotated[int, Field(ge=0, le=20)] = Field(
        default=2,
        description="Calls after the first when the server is busy, fails or replies with what can't be "
        "used. The API client's own retries are off.",
    )
    backoff_initial_ms: Annotated[int, Field(gt=0)] = Field(
        default=250, description="Bound of the random wait before the first retry; doubles with each."
    )
    backoff_max_ms: Annotated[int, Field(gt=0)] = Field(
        default=4_000, description="Upper bound of that wait. A server's Retry-After is obeyed beyond it."
    )
    max_concurrency: Annotated[int, Field(gt=0)] = Field(
        default=64, description="Calls in flight at once; more wait their turn, within their deadline."
    )

    structured_output: Literal["auto", "json_schema", "json_object", "text"] = Field(
        default="auto",
        description="How the server is held to the form of the reply. auto: by JSON schema, and when it "
        "refuses that, by JSON mode, then by the prompt alone; what it refused is remembered.",
    )
    reasoning: Reasoning = Field(
        default=Reasoning.NOT_SUPPORTED,
        description="Reasons before each verdict, after it, after it and only for what is not supported, or "
        "none. Fewer words are faster.",
    )
    max_output_tokens: Annotated[int, Field(ge=64)] = Field(
        default=4_096, description="Most tokens of one reply; verdicts complete by then are used."
    )
    output_tokens_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        default="max_completion_tokens",
        description="Name of that bound in the API; older servers know max_tokens.",
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        default=0.0, description="Sampling temperature; null leaves it out, for models that refuse it."
    )
    seed: int | None = Field(default=None, description="Sampling seed, where the server knows one.")

    max_context_chars: Annotated[int, Field(ge=2_000)] = Field(
        default=120_000,
        description="Most characters of contexts in one call. When there are more, the passages closest to "
        "each claim are sent in their stead, and the reasoning says so.",
    )
    passages_per_claim: Annotated[int, Field(ge=1, le=50)] = Field(
        default=6, description="Most passages per claim when the contexts don't fit."
    )
    max_quotes: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2, description="Most quotes of evidence asked for per claim."
    )
    unquoted_support: Literal["lower_confidence", "unverified"] = Field(
        default="lower_confidence",
        description="What becomes of SUPPORTED when no quote that was given stands in the contexts: half the "
        "confidence, or UNVERIFIED.",
    )

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"base_url {value!r} is no http(s) URL; write it as https://HOST[:PORT]/v1")
        if parts.username or parts.password:
            raise ValueError("base_url holds a user name or password; give the key as api_key_file instead")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _one_key(self) -> LlmJudgeSettings:
        given = [
            name for name in ("api_key", "api_key_file", "api_key_env") if getattr(self, name) is not None
        ]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are both given; name the key in one place only")
        return self

    def resolve_api_key(self) -> str:
        """The key to send. Raises ConfigError, which says where a key was looked for, never the key."""
        if self.api_key is not None:
            return self.api_key.get_secret_value()
        if self.api_key_file is not None:
            try:
                key = self.api_key_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
                raise ConfigError(
                    f"judge.llm.api_key_file: {self.api_key_file} can't be read ({reason}); "
                    "mount the secret there or correct the path"
                ) from None
            if not key:
                raise ConfigError(
                    f"judge.llm.api_key_file: {self.api_key_file} is empty; put the key into it"
                )
            return key
        is_openai = urlsplit(self.base_url).hostname == urlsplit(OPENAI_BASE_URL).hostname
        variable = self.api_key_env or (OPENAI_KEY_ENV if is_openai else None)
        if variable is None:
            return _NO_KEY
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ConfigError(
                f"judge.llm.api_key_env: the environment variable {variable} is not set; set it, or name a "
                "file that holds the key as judge.llm.api_key_file"
            )
        return key
