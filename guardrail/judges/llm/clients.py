"""The HTTP client of a model's server."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Final

import httpx2
import openai

from guardrail.judges.llm.endpoint_settings import NO_KEY, split_base_url
from guardrail.judges.llm.settings import LlmJudgeSettings

_CONNECT_TIMEOUT_S: Final = 5.0

# Beyond the calls in flight: connections of calls that were given up and are being closed.
_SPARE_CONNECTIONS: Final = 8


def make_client(settings: LlmJudgeSettings, place: str = "judge.llm") -> openai.AsyncOpenAI:
    """A client without retries, with a bounded pool of connections. The caller closes it.

    Of the environment it takes proxies (``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``, ``NO_PROXY``) and
    certificates (``SSL_CERT_FILE``, ``SSL_CERT_DIR``), which are the operator's ways to reach any server, and
    nothing that would be sent to one. Raises ConfigError, which names ``place``, when a key is missing.
    """
    total = settings.timeout_ms / 1000
    connections = settings.max_concurrency + _SPARE_CONNECTIONS
    timeout = openai.Timeout(total, connect=min(total, _CONNECT_TIMEOUT_S))
    base_url, query = split_base_url(settings.base_url)
    return _Client(
        api_key=settings.resolve_api_key(place),
        base_url=base_url,
        default_query=query,
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(
            base_url=base_url,
            # Where a redirect leads nobody has configured; headers that hold keys would go there too.
            follow_redirects=False,
            timeout=timeout,
            event_hooks={"request": [_without_placeholder]},
            limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
            verify=_tls(),
        ),
    )


class _Client(openai.AsyncOpenAI):
    """Sends what is configured.

    The client takes headers, an organization and a project from OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and
    OPENAI_PROJECT_ID, for whichever server, and an Authorization among them ahead of the key it was given.
    """

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"guardrail openai/{openai.__version__}",
        }


async def _without_placeholder(request: httpx2.Request) -> None:
    """Where no key is configured none is sent: a server that takes one in another header may read it."""
    if request.headers.get("authorization") == f"Bearer {NO_KEY}":
        del request.headers["authorization"]


@cache
def _tls() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes tens of milliseconds."""
    return httpx2.create_ssl_context()
