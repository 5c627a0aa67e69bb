"""Settings of the decisions judge: which model it asks, how it reaches it, and with which options."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from guardrail.frozen import Frozen
from guardrail.judges.http import OPENAI_BASE_URL, BaseUrl, ModelHeaders, resolve_api_key
from guardrail.secrets import Secret

Form = Literal["four", "three", "two"]
"""Of the options that a model chooses among."""


class DecisionsSettings(Frozen):
    """A model that answers with probabilities."""

    max_wait_ms: ClassVar[int] = 1_000
    """How long a claim waits for others where ``judge.max_wait_ms`` says nothing."""
    max_retries: ClassVar[int] = 2
    max_concurrency: ClassVar[int] = 64
    """Most concurrent calls; fewer if the server turns out to take fewer."""

    transport: Literal["openai", "systemone", "logprobs"] = Field(
        default="openai",
        description="openai: /decisions (OpenAI, Fireworks). systemone: /systemone (TypeSafe Jev, "
        "OpenRouter, Upstage, Cloudflare Clef, open servers). logprobs: the next token of any chat server "
        "that gives top_logprobs (vLLM, llama.cpp, OpenAI's models that do not reason), one call a claim.",
    )
    base_url: BaseUrl = Field(
        default=OPENAI_BASE_URL,
        description="Root of the API, including /v1. The URL is shown, so don't put a key in it.",
    )
    model: Annotated[str, Field(min_length=1)] = Field(default="gpt-6-luna", description="Model to ask.")
    api_key: Secret | None = Field(
        default=None,
        description="Key of the API, like judge.llm.api_key.",
    )
    extra_headers: ModelHeaders = Field(
        default_factory=dict,
        description="HTTP headers to add to every call, such as a gateway's routing key.",
    )
    options: Form = Field(
        default="four",
        description="What the model chooses among. four: supported, partly supported, not in the documents, "
        "contradicted. three: without partly. two: supported or not.",
    )
    max_context_chars: Annotated[int, Field(ge=2_000)] = Field(
        default=120_000,
        description="Most characters of contexts in one call. If there are more, the passages closest to the "
        "claims are sent instead, and the reasoning says so.",
    )
    reasoning: Literal["none", "not_supported"] = Field(
        default="none",
        description="not_supported: the model of judge.llm says in words why a claim is not supported, after "
        "the verdict. The reason stands in verdict.response and in the case, if it comes within 3 s of the "
        "last delivery, and delays nothing else.",
    )
    fallback: Literal["none", "llm", "local"] = Field(
        default="none",
        description="Which judge, configured in its own section, answers when this one can't. none: the "
        "policy's on_unverified decides.",
    )

    @model_validator(mode="after")
    def _where(self) -> Self:
        """OpenAI's own model answers its own wire only, and documents go to no server that nobody named."""
        if self.transport == "systemone" and "base_url" not in self.model_fields_set:
            raise ValueError("base_url is not set; transport systemone needs that of its vendor or server")
        if self.transport != "openai" and "model" not in self.model_fields_set:
            raise ValueError(f"model is not set; transport {self.transport} needs the name of one")
        return self

    def resolve_api_key(self, place: str = "judge.decisions") -> str:
        """The key to send. Raises ConfigError, which says where a key was looked for, never the key."""
        return resolve_api_key(self.api_key, self.base_url, place)
