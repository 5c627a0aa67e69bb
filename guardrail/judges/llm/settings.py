"""Settings of the LLM judge."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from guardrail.judges.http_headers import check_headers
from guardrail.judges.llm.endpoint_settings import (
    OPENAI_BASE_URL,
    ApiKeySettings,
    CircuitBreakerSettings,
    ConcurrencySettings,
    FailoverSettings,
    FallbackSettings,
    HedgingSettings,
    StreamSettings,
    checked_base_url,
    resolve_key,
)
from guardrail.judges.llm.examples import MOST_EXAMPLES, Example, read_examples
from guardrail.judges.llm.extra_body import ExtraBody
from guardrail.judges.llm.templates import PromptFiles


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


class LlmJudgeSettings(ApiKeySettings):
    """Which model judges, how it is reached, and what it may cost in time and tokens."""

    model: Annotated[str, Field(min_length=1)] = Field(
        default="gpt-4.1-mini",
        description="Model to ask; better not the one that writes the answers.",
    )
    base_url: str = Field(
        default=OPENAI_BASE_URL,
        description="Root of an OpenAI-compatible API (OpenAI, vLLM, llama.cpp, Ollama, …), with its /v1. A "
        "query (Azure's ?api-version=…) is sent with every call; it is shown, so it is no place for a key.",
    )
    extra_headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="HTTP headers to add to every call, such as a gateway's routing key.",
    )
    extra_body: ExtraBody = Field(
        default_factory=dict,
        repr=False,
        description="Members to add to the body of every call: reasoning_effort, a server's own options; "
        "none that the judge sends itself.",
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
    concurrency: ConcurrencySettings = Field(
        default_factory=ConcurrencySettings,
        description="How the number of calls that a server bears at once is found, up to max_concurrency.",
    )
    stream: StreamSettings = Field(
        default_factory=StreamSettings, description="Reading replies while they are written."
    )
    hedging: HedgingSettings = Field(
        default_factory=HedgingSettings, description="A second call when the first one is late."
    )
    circuit_breaker: CircuitBreakerSettings = Field(
        default_factory=CircuitBreakerSettings, description="When a server that fails is left alone."
    )
    fallbacks: Annotated[tuple[FallbackSettings, ...], Field(max_length=8)] = Field(
        default=(), description="Models to ask, in this order, when the first one fails or is left alone."
    )
    failover: FailoverSettings = Field(
        default_factory=FailoverSettings, description="How the time is shared between model and fallbacks."
    )

    structured_output: Literal["auto", "json_schema", "json_object", "text"] = Field(
        default="auto",
        description="How the server is held to the form of the reply. auto: by JSON schema, and when it "
        "refuses that, by JSON mode, then by the prompt alone; what it refused is remembered.",
    )
    reply_form: Literal["compact", "verbose"] = Field(
        default="compact",
        description="How verdicts are written. compact: a short text for each; verbose: an object for each, "
        "several times as long, and always used with reasoning before and with decompose.",
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
        default=3, description="Most sentences asked for as evidence per claim; neighbours make one quote."
    )
    unquoted_support: Literal["lower_confidence", "unverified"] = Field(
        default="lower_confidence",
        description="What becomes of SUPPORTED when no sentence that was named for it was shown: half the "
        "confidence, or UNVERIFIED.",
    )
    verdicts: Literal["four", "binary"] = Field(
        default="four",
        description="Verdicts to choose among: all four, or SUPPORTED and UNSUPPORTED alone.",
    )
    conflicts: bool = Field(
        default=True,
        description="Ask for the contexts that contradict a claim which another one supports.",
    )
    confidence: bool = Field(
        default=True,
        description="Ask how sure the model is of each verdict, in the compact form only where it is less "
        "than 90 % sure; without it each counts as 0.9.",
    )
    decompose: bool = Field(
        default=False,
        description="Have claims of several statements taken apart, pronouns resolved, in the same call. The "
        "verdict on the claim is then reckoned from those on its parts.",
    )
    ask_again: bool = Field(
        default=True,
        description="Ask once more, for those alone, when a reply lacks verdicts that were asked for and "
        "there is time left.",
    )
    prompts: PromptFiles = Field(
        default_factory=PromptFiles, description="Prompts of your own, in files, instead of the package's."
    )
    examples: (
        Annotated[
            tuple[Example, ...],
            Field(max_length=MOST_EXAMPLES),
            BeforeValidator(read_examples, json_schema_input_type=tuple[Example, ...] | Path),
        ]
        | None
    ) = Field(
        default=None,
        description="Examples of verdicts for the prompt, as a list or the path of a YAML file with one; "
        "[] for none, left out for those of the package.",
    )

    @field_validator("base_url")
    @classmethod
    def _url(cls, value: str) -> str:
        return checked_base_url(value)

    @field_validator("extra_headers")
    @classmethod
    def _headers(cls, value: dict[str, SecretStr]) -> dict[str, SecretStr]:
        check_headers(value)
        return value

    def resolve_api_key(self, place: str = "judge.llm") -> str:
        """The key to send. Raises ConfigError, which says where a key was looked for, never the key."""
        return resolve_key(self, self.base_url, place)

    def models(self) -> tuple[LlmJudgeSettings, ...]:
        """Settings for each model in the order in which they are asked: this one, then its fallbacks."""
        return (
            self,
            *(self.model_copy(update=fallback.changes(self.base_url)) for fallback in self.fallbacks),
        )
