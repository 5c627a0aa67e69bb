"""Portkey's real gateway asks ours by its webhook guardrail, as docs/gateways.md has it.

``make clients-test`` installs that and runs this; pytest collects it only by name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from consumers.gateway import Gateway, ServeSettings, serving
from guardrail import Guard, Policy
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import ChatUpstream, completion, events
from tests.support.docs import ROOT, blocks
from tests.support.kafka_broker import free_ports
from tests.unit.gateway.chats import ODD, RIGHT, WRONG, ask

SERVER = ROOT / "build/portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
POLICY = Policy(rules=("verdict UNSUPPORTED: redact", "verdict CONTRADICTED: block"), redaction_text="[cut]")
pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="Portkey's gateway is not installed")


class Place:
    """Portkey's gateway in front of a model, with ours beside it."""

    def __init__(self, client: httpx2.AsyncClient, model: ChatUpstream, webhook: str) -> None:
        self.model = model
        self._client = client
        self._hooks = blocks("gateways.md", "json")[0].replace("http://127.0.0.1:8800", webhook)

    async def ask(
        self, text: str, *, stream: bool = False, deny: bool = True, key: str = "KEY"
    ) -> httpx2.Response:
        """What a client gets where the model writes this."""
        if stream:
            self.model.streams(events(text))
        else:
            told = {"role": "assistant", "content": text, "reasoning_content": "It may be $99."}
            self.model.answers(completion(told))
        hooks = json.loads(
            self._hooks.replace('"deny": true', f'"deny": {json.dumps(deny)}').replace("KEY", key)
        )
        config = {"provider": "openai", "api_key": "any", "custom_host": self.model.url, **hooks}
        headers = {"x-portkey-config": json.dumps(config)}
        return await self._client.post("/v1/chat/completions", headers=headers, json=ask(stream=stream))


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    (port,) = free_ports(1)
    async with AsyncExitStack() as stack:
        judge = ScriptedJudge({"wrong": "CONTRADICTED", "odd": "UNSUPPORTED"})
        serve = ServeSettings(
            port=0,
            dialects=("portkey",),
            keys=json.dumps([{"name": "portkey", "sha256": hashlib.sha256(b"KEY").hexdigest()}]),
        )
        guard = await stack.enter_async_context(Guard(judge, POLICY))
        gateway = await stack.enter_async_context(Gateway(serve, guard))
        ours = await stack.enter_async_context(serving(gateway.app, serve, 1))
        model = await stack.enter_async_context(ChatUpstream())
        client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30)
        await stack.enter_async_context(client)
        process = await asyncio.create_subprocess_exec("node", SERVER, f"--port={port}", "--headless")
        stack.push_async_callback(process.wait)
        stack.callback(process.kill)
        for _ in range(200):
            try:
                await client.get("/")
                break
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
        yield Place(client, model, f"http://127.0.0.1:{ours}")


def text_of(reply: httpx2.Response) -> Any:
    (choice,) = reply.json()["choices"]
    return choice["message"]["content"]


async def test_what_is_backed_passes_alone(place: Place) -> None:
    reply = await place.ask(RIGHT)
    assert (reply.status_code, text_of(reply)) == (200, RIGHT)
    assert "$99" not in reply.text
    assert "guardrail" not in place.model.asked[0][3]


async def test_what_is_wrong_is_denied_or_replaced(place: Place) -> None:
    reply = await place.ask(WRONG)
    assert reply.status_code == 446
    assert "choices" not in reply.json()
    assert WRONG not in reply.text
    reply = await place.ask(WRONG, deny=False)
    # 1.15.2 fails where it would answer 246.
    assert reply.status_code == 500 or text_of(reply) == str(POLICY.fallback_message)
    assert "$79" not in reply.text


async def test_a_wrong_key_denies(place: Place) -> None:
    reply = await place.ask(RIGHT, key="another")
    assert (reply.status_code, "know this key" in reply.text) == (446, True)
    assert place.model.asked == []


async def test_a_redaction_stands_in_the_texts_place(place: Place) -> None:
    reply = await place.ask(ODD)
    assert (reply.status_code, text_of(reply).strip()) == (200, "[cut]")


async def test_a_stream_is_refused_before_the_model_is_asked(place: Place) -> None:
    reply = await place.ask(RIGHT, stream=True)
    assert (reply.status_code, "hands no stream" in reply.text) == (446, True)
    assert place.model.asked == []
