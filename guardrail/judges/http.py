"""Settings that judges behind HTTP have in common: addresses, keys and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, SecretStr

from guardrail.errors import ConfigError
from guardrail.frozen import Frozen
from guardrail.secrets import Secret, check_headers


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


class HttpJudgeSettings(Frozen):
    """An endpoint that gets claims and contexts as JSON, and answers with verdicts."""

    max_concurrency: ClassVar[int] = 64
    """Most requests at once, as for a model server; others wait their turn, within their deadline."""

    url: HttpUrl | None = Field(default=None, description="Endpoint that gets requests by POST.")
    headers: HttpHeaders = Field(
        default_factory=dict,
        description="HTTP headers to add; a value is text, {file: PATH} or {env: VARIABLE}.",
    )


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


# ------------------------------------------------------------------------------------- OpenAI-compatible APIs

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"
OPENAI_KEY_ENV: Final = "OPENAI_API_KEY"

# The client requires a key. Most self-hosted servers don't, and get none.
NO_KEY: Final = "not-needed"


def _checked_base_url(value: str) -> str:
    """The URL without a fragment, which is never sent, and without a trailing slash in its path.

    Raises ValueError, which never repeats a password.
    """
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its message may repeat a password, which looks like a port if it has a slash
        raise ValueError(
            "base_url has no usable host and port; write it as https://HOST[:PORT]/v1, PORT from 1 to 65535"
        ) from None
    if parts.username or parts.password:
        raise ValueError("base_url holds a user name or password; give the key as api_key instead")
    if not usable:
        # A login may come before an @, with or without a scheme.
        shown = "(a value with '@' is not shown)" if "@" in value else repr(value)
        raise ValueError(f"base_url {shown} is not an http(s) URL; write it as https://HOST[:PORT]/v1")
    names = [name for name, _ in _query(parts.query)]
    if len(set(names)) < len(names):
        raise ValueError("base_url gives a parameter of its query twice; leave it there once")
    return parts._replace(path=parts.path.rstrip("/"), fragment="").geturl()


def split_base_url(base_url: str) -> tuple[str, dict[str, str]]:
    """The URL to which paths are appended, and its query parameters, which go after them."""
    parts = urlsplit(base_url)
    return parts._replace(query="").geturl(), dict(_query(parts.query))


def _query(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _checked_headers(headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
    check_headers(headers)
    return headers


BaseUrl = Annotated[str, AfterValidator(_checked_base_url)]
"""The type of settings for the root of an OpenAI-compatible API."""
ModelHeaders = Annotated[dict[str, SecretStr], AfterValidator(_checked_headers)]
"""The type of settings for headers of its calls, each of which is a secret."""


def resolve_api_key(api_key: Secret | None, base_url: str, place: str) -> str:
    """The key to send. Raises ConfigError, which says where a key was looked for, never the key."""
    if api_key is None:
        if urlsplit(base_url).hostname != urlsplit(OPENAI_BASE_URL).hostname:
            return NO_KEY
        api_key = Secret(env=OPENAI_KEY_ENV)
    return api_key.read(f"{place}.api_key", "key", for_header=True)


class PaidModelSettings(Frozen):
    """How a judge reaches a model that is paid by use, and what it sends."""

    section: ClassVar[str]
    max_wait_ms: ClassVar[int] = 1_000
    """How long a claim waits for others where ``judge.max_wait_ms`` says nothing."""
    max_retries: ClassVar[int] = 2
    """Retries where a server is busy, fails or sends an unusable reply: enough for a hiccup. A server that is
    down is the business of the fallbacks and the circuit breaker."""

    base_url: BaseUrl = Field(
        default=OPENAI_BASE_URL,
        description="Root of the API, including /v1. The URL is shown, so don't put a key in it.",
    )
    api_key: Secret | None = Field(
        default=None,
        description=f"Key of the API, better as {{file: PATH}} (a mounted secret) or {{env: VARIABLE}}. If "
        f"omitted: {OPENAI_KEY_ENV} from the environment if base_url is OpenAI's, otherwise no key.",
    )
    extra_headers: ModelHeaders = Field(
        default_factory=dict,
        description="HTTP headers to add to every call, such as a gateway's routing key.",
    )
    max_context_chars: Annotated[int, Field(ge=2_000)] = Field(
        default=120_000,
        description="Most characters of contexts in one call. If there are more, the judge sends the "
        "passages closest to each claim instead, and the reasoning says so.",
    )

    def resolve_api_key(self, place: str = "") -> str:
        """See the function; ``place`` has the settings, if not the section."""
        return resolve_api_key(self.api_key, self.base_url, place or self.section)
