"""Asking the stand-in LLM server with the real client, streamed or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from tests.support.llm_server import Behaviour, LlmServer

PROMPT = "Give the verdicts on c1, c2, c3, as one JSON object"


@dataclass(slots=True)
class Heard:
    """What the client made of a reply."""

    text: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: Any = None
    chunks: list[Any] = field(default_factory=list)  # of a stream
    model: str | None = None


@asynccontextmanager
async def serving(*behaviours: Behaviour) -> AsyncIterator[tuple[LlmServer, openai.AsyncOpenAI]]:
    """A server, and a client without retries and without the certificates that take so long to load."""
    async with (
        LlmServer(*behaviours) as server,
        httpx2.AsyncClient(verify=False, trust_env=False) as http,
    ):
        yield server, openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0, http_client=http)


async def ask(client: openai.AsyncOpenAI, *, stream: bool, **changes: Any) -> Heard:
    heard = Heard()
    await hear(client, heard, stream=stream, **changes)
    return heard


async def hear(client: openai.AsyncOpenAI, heard: Heard, *, stream: bool, **changes: Any) -> None:
    """Fills ``heard`` as it comes, so that it holds what was there when an error ended it."""
    create: Any = client.chat.completions.create
    arguments = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], **changes}
    if not stream:
        completion = await create(**arguments)
        heard.usage, heard.model = completion.usage, completion.model
        for choice in completion.choices:
            heard.text += choice.message.content or ""
            heard.refusal += choice.message.refusal or ""
            heard.finish_reason = choice.finish_reason
        return
    arguments.setdefault("stream_options", {"include_usage": True})
    async with await create(stream=True, **arguments) as chunks:
        async for chunk in chunks:
            heard.chunks.append(chunk)
            heard.usage, heard.model = chunk.usage or heard.usage, chunk.model
            for choice in chunk.choices:
                heard.text += choice.delta.content or ""
                heard.refusal += choice.delta.refusal or ""
                heard.finish_reason = choice.finish_reason or heard.finish_reason


async def pieces(client: openai.AsyncOpenAI) -> list[bytes]:
    """The body of a stream, as raw as the client gets it; as far as it came, if it is cut."""
    got: list[bytes] = []
    create: Any = client.chat.completions.with_streaming_response.create
    messages = [{"role": "user", "content": PROMPT}]
    with suppress(httpx2.TransportError):
        async with create(model="m", messages=messages, stream=True) as response:
            async for piece in response.iter_bytes():
                got.append(piece)  # noqa: PERF401 - keeps what came before an error
    return got
