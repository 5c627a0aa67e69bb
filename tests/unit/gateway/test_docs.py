"""The ten lines of docs/serve.md do what the page says."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest

from tests.support.chat_upstream import ChatUpstream, events
from tests.support.docs import ROOT, code_blocks
from tests.unit.gateway.chats import RIGHT, WRONG
from tests.unit.gateway.conftest import Opens

BLOCKS = {block.name: block.text for block in code_blocks([ROOT / "docs" / "serve.md"])}


async def test_openais_client_in_ten_lines(
    gateway: Opens, upstream: ChatUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-caller")
    client = await gateway()
    upstream.streams(events(RIGHT, WRONG))
    program = BLOCKS["docs/serve.md:python:0"].replace(
        "http://127.0.0.1:8800", str(client.base_url).rstrip("/")
    )
    assert str(client.base_url).rstrip("/") in program

    printed: list[str] = []
    names = {"print": lambda text, end="\n": printed.append(text + end)}  # logs are on the real output
    await asyncio.to_thread(exec, compile(program, "docs/serve.md", "exec"), names)
    assert "".join(printed).startswith(f"{RIGHT}\n\nThis answer was withheld")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
async def test_curl_in_two(gateway: Opens) -> None:
    client = await gateway()
    (line,) = [text for name, text in BLOCKS.items() if text.startswith("curl ")]
    line = line.replace("http://127.0.0.1:8800", str(client.base_url).rstrip("/"))
    asked = await asyncio.create_subprocess_shell(f"{line} --silent", stdout=asyncio.subprocess.PIPE)
    told, _ = await asked.communicate()
    assert json.loads(told)["type"] == "verdict.response"
