"""A gateway on a real socket, in front of a scripted upstream, with a judge that knows one wrong word."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from consumers.gateway import Gateway, ServeSettings, serving
from guardrail import Guard, Policy
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import ChatUpstream

Opens = Callable[..., Awaitable[httpx2.AsyncClient]]


@pytest.fixture
async def upstream() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as server:
        yield server


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge({"wrong": "CONTRADICTED", "odd": "UNSUPPORTED"})


@pytest.fixture
async def gateway(upstream: ChatUpstream, judge: ScriptedJudge) -> AsyncIterator[Opens]:
    """Opens a gateway with these settings; gives a client of it."""
    async with AsyncExitStack() as stack:

        async def opens(policy: Policy | None = None, **settings: Any) -> httpx2.AsyncClient:
            serve = ServeSettings(**{"upstream": upstream.url, "port": 0, **settings})
            guard = await stack.enter_async_context(Guard(judge, policy))
            made = await stack.enter_async_context(Gateway(serve, guard))
            port = await stack.enter_async_context(serving(made.app, serve, 1))
            client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60)
            return await stack.enter_async_context(client)

        yield opens
