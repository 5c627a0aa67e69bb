"""Settings of the decisions judge: which model it asks, how it reaches it, and with which options."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from guardrail.judges.http import PaidModelSettings

Form = Literal["four", "three", "two"]
"""Of the options that a model chooses among."""


class DecisionsSettings(PaidModelSettings):
    """A model that answers with probabilities."""

    section: ClassVar[str] = "judge.decisions"
    max_concurrency: ClassVar[int] = 64
    """Most concurrent calls; fewer if the server turns out to take fewer."""

    transport: Literal["openai", "systemone", "logprobs"] = Field(
        default="openai",
        description="openai: /decisions (OpenAI, Fireworks). systemone: /systemone (TypeSafe Jev, "
        "OpenRouter, Upstage, Cloudflare Clef, open servers). logprobs: the next token of any chat server "
        "that gives top_logprobs (vLLM, llama.cpp, OpenAI's models that do not reason), one call a claim.",
    )
    model: Annotated[str, Field(min_length=1)] = Field(default="gpt-6-luna", description="Model to ask.")
    options: Form = Field(
        default="four",
        description="What the model chooses among. four: supported, partly supported, not in the documents, "
        "contradicted. three: without partly. two: supported or not.",
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
