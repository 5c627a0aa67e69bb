"""The settings of ``guardrail serve``."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from guardrail.chat import ContextSource
from guardrail.errors import ConfigError, install_hint
from guardrail.frozen import Frozen
from guardrail.policy import MissingContexts
from guardrail.secrets import Secret

DialectName = Literal["litellm", "kong", "portkey", "agentgateway", "nemo"]
"""Other gateways whose questions this one understands."""
NOT_INSTALLED: Final = f"serve: Starlette and uvicorn are not installed; {install_hint('serve')}"


class ServeSettings(Frozen):
    """The gateway in front of a model."""

    silence_s: ClassVar[float] = 10.0
    """While text is held for so long, a stream gets a comment, so that nothing between takes it for dead."""
    slow_s: ClassVar[float] = 15.0
    """A client that for so long sends no whole head, or body, or takes nothing of what waits for it, is cut
    off."""
    idle_s: ClassVar[float] = 60.0
    """A connection of /v1/guard on which nothing is under way, and to which nothing comes for so long, is
    closed."""
    most_answers: ClassVar[int] = 1_000
    """Answers under way on one such connection, so that it leaves room for others."""
    most_choices: ClassVar[int] = 8
    """Choices of one completion (``n``): each is an answer for the judge."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on. Another than this machine's needs keys.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(default=8800, description="Port to listen on.")
    upstream: str = Field(
        default="https://api.openai.com/v1",
        description="Base URL of the OpenAI-compatible API that writes the answers.",
    )
    upstream_key: Secret | None = Field(
        default=None,
        description="Key for the upstream. Without it the caller's Authorization is passed on; with it, that "
        "header holds the gateway's own key.",
    )
    keys: Secret | None = Field(
        default=None,
        description="Who may call: {file: PATH} or {env: VARIABLE} of a YAML list of keys, hashed "
        "(docs/serve.md). Without it anybody on this machine may.",
    )
    contexts_from: tuple[ContextSource, ...] = Field(
        default=("extension", "blocks", "documents"),
        description="Where a request's documents may stand: the field guardrail, grounding_source blocks of "
        "system and developer messages, the field documents, or what file searches of /v1/responses found.",
    )
    tools: tuple[str, ...] = Field(
        default=(), description="Names of tools whose results are documents, such as search."
    )
    missing_contexts: Literal["refuse", "pass", "judge"] = Field(
        default="refuse",
        description="What happens to the claims of an answer without documents. refuse: it is blocked. pass: "
        "it is shown, and the reply says not-checked. judge: the policy's rules decide.",
    )
    publish: bool = Field(
        default=False,
        description="Write verdicts and flagged cases to Kafka as well, to kafka.topics, as guardrail run "
        "does. No answer waits for it.",
    )
    dialects: tuple[DialectName, ...] = Field(
        default=(),
        description="Other gateways that may ask about answers, each in its own form (docs/gateways.md).",
    )
    max_body_bytes: Annotated[int, Field(gt=0)] = Field(
        default=8 * 1024 * 1024,
        description="Largest body of a request, and of a whole answer of the upstream.",
    )
    answer_timeout_ms: Annotated[int, Field(gt=0)] = Field(
        default=600_000, description="Longest time for an answer, streams included."
    )
    certificate: Path | None = Field(
        default=None, description="PEM file with the certificate chain, for TLS; null: TLS ends in front."
    )
    private_key: Path | None = Field(default=None, description="PEM file with the certificate's key.")

    @field_validator("upstream")
    @classmethod
    def _is_url(cls, value: str) -> str:
        parts = urlsplit(value)
        endpoint = parts.path.rstrip("/").endswith("/completions")
        more = endpoint or parts.query or parts.fragment or parts.port == 0
        if parts.scheme not in {"http", "https"} or not parts.hostname or more:
            raise ValueError("it is no base URL; write http(s)://HOST[:PORT]/v1")
        if parts.username or parts.password:
            raise ValueError("it holds a user name or password; give the key as serve.upstream_key")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _closed(self) -> ServeSettings:
        from consumers.settings import is_loopback

        if self.keys is None and not is_loopback(self.host):
            raise ValueError(
                f"host {self.host} is not this machine's alone, and there are no keys; name a file of keys "
                "as serve.keys: {file: PATH}, or listen on 127.0.0.1"
            )
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError("certificate and private_key go together; give both or neither")
        return self

    @property
    def told(self) -> str:
        """In a line, where it listens and in front of what."""
        return f"{self.host}:{self.port}, in front of {self.upstream}"

    def read_upstream_key(self) -> str | None:
        """The gateway's own key for the upstream. Raises ConfigError."""
        if self.upstream_key is None:
            return None
        return self.upstream_key.read("serve.upstream_key", "upstream's key", for_header=True)

    def notes(self) -> list[str]:
        """A line for each thing that ``guardrail serve`` would refuse here."""
        from guardrail.doctor import refused

        def keys() -> None:
            try:
                from consumers.gateway.admission import read_keys
            except ImportError:
                raise ConfigError(NOT_INSTALLED) from None
            read_keys(self.keys)

        def certificate() -> None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            try:
                if self.certificate is not None:
                    context.load_cert_chain(self.certificate, self.private_key)
            except OSError as error:
                if not isinstance(error, ssl.SSLError):
                    return  # of files that can't be opened ``unreadable_files`` tells
                why = error.reason
                raise ConfigError(
                    f"serve.certificate: it can't be used with serve.private_key: {why}; give PEM files that "
                    "belong together"
                ) from None

        if self == ServeSettings():
            return []  # most guards run without it, and its packages may not be there
        return [*refused(keys), *refused(self.read_upstream_key), *refused(certificate)]

    @property
    def missing(self) -> MissingContexts | None:
        """None where the policy decides."""
        if self.missing_contexts == "judge":
            return None
        return MissingContexts("flag" if self.missing_contexts == "pass" else "refuse")
