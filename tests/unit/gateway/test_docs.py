"""What docs/serve.md and the quickstart show of the gateway does what they say."""

from __future__ import annotations

import asyncio
import json
import shutil
from typing import Any

import httpx2
import pytest

from tests.support.chat_upstream import ChatUpstream, completion, events
from tests.support.docs import ROOT, code_blocks
from tests.support.response_events import message, response
from tests.unit.gateway.chats import RIGHT, WRONG
from tests.unit.gateway.conftest import Opens

BLOCKS = {
    block.name: block.text
    for name in ("serve.md", "quickstart.md")
    for block in code_blocks([ROOT / "docs" / name])
}


async def printed_by(block: str, client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-caller")
    program = BLOCKS[block].replace("http://127.0.0.1:8800", str(client.base_url).rstrip("/"))
    assert str(client.base_url).rstrip("/") in program
    printed: list[str] = []
    # Logs are on the real output.
    names = {"print": lambda *texts, end="\n": printed.append(" ".join(texts) + end)}
    await asyncio.to_thread(exec, compile(program, "docs/serve.md", "exec"), names)
    return "".join(printed)


async def test_openais_client_in_ten_lines(
    gateway: Opens, upstream: ChatUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await gateway()
    upstream.streams(events(RIGHT, WRONG))
    printed = await printed_by("docs/serve.md:python:0", client, monkeypatch)
    assert printed.startswith(f"{RIGHT}\n\nThis answer was withheld")
    upstream.answers(response(message(RIGHT)))
    assert await printed_by("docs/serve.md:python:1", client, monkeypatch) == f"{RIGHT} release\n"


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")


async def curled(client: httpx2.AsyncClient, page: str) -> Any:
    """What the page's one line of curl is told."""
    (line,) = [text for name, text in BLOCKS.items() if name.startswith(page) and text.startswith("curl ")]
    line = line.replace("http://127.0.0.1:8800", str(client.base_url).rstrip("/"))
    asked = await asyncio.create_subprocess_shell(f"{line.strip()} --silent", stdout=asyncio.subprocess.PIPE)
    told, _ = await asked.communicate()
    return json.loads(told)


@needs_curl
async def test_curl_in_two(gateway: Opens) -> None:
    assert (await curled(await gateway(), "docs/serve.md"))["type"] == "verdict.response"


@needs_curl
async def test_the_quickstarts_base_url(gateway: Opens, upstream: ChatUpstream) -> None:
    upstream.answers(completion(WRONG))
    told = await curled(await gateway(), "docs/quickstart.md")
    assert told["guardrail"]["decision"] == "block"
    assert told["choices"][0]["finish_reason"] == "content_filter"
