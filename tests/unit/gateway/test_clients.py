"""The programs of docs/clients.md, as they stand there, against a gateway on a socket."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.gateway import asyncapi
from guardrail import Policy
from tests.support.chat_upstream import ChatUpstream, events
from tests.support.docs import DOCS, ROOT, Block, code_blocks
from tests.support.response_events import message, stream
from tests.unit.gateway.chats import ODD, RIGHT, WRONG
from tests.unit.gateway.conftest import Opens

PACKAGES = ROOT / "examples" / "clients"
BLOCKS = {block.name.partition(":")[2]: block for block in code_blocks([DOCS / "clients.md"])}
WITHHELD = "This answer was withheld"
WANTED = bool(os.environ.get("GUARDRAIL_TEST_CLIENTS"))
"""Set by scripts/clients-test.sh, which sees to what they need."""
PROGRAMS = {"javascript": "node", "go": "go", "bash": "bash", "python": sys.executable}


async def output_of(block: Block, port: int | None, folder: Path) -> str:
    """What the program prints. It is skipped where its language is not there."""
    if not WANTED and (block.language in {"javascript", "go"} or shutil.which("curl") is None):
        pytest.skip("make clients-test runs it")
    names = {"javascript": "main.mjs", "go": "main.go", "python": "main.py", "bash": "main.sh"}
    file = folder / names[block.language]
    assert "http://127.0.0.1:8800" in block.text or "ws://127.0.0.1:8800" in block.text
    file.write_text(block.text.replace("127.0.0.1:8800", f"127.0.0.1:{port}"), "utf-8")
    if block.language == "javascript":
        (folder / "node_modules").symlink_to(PACKAGES / "node_modules")
    arguments = {"go": ["run"], "bash": ["-eu"]}.get(block.language, [])
    environment = {**os.environ, "OPENAI_API_KEY": "of-the-caller", "AI_SDK_LOG_WARNINGS": "false"}
    process = await asyncio.create_subprocess_exec(
        PROGRAMS[block.language], *arguments, str(file), cwd=folder, env=environment, stdout=subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


def texts_in(said: str) -> tuple[str, str]:
    """The text of the events that a program prints as they come, and what is decided."""
    frames = [line.removeprefix("data: ") for line in said.splitlines() if "{" in line]
    chunks = [json.loads(frame) for frame in frames]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [chunk])]
    text = "".join(
        (each.get("delta") or {}).get("content") or each.get("message") or shown(each) for each in choices
    )
    told = [each.get("guardrail", each).get("decision") for each in chunks]
    return text, [each for each in told if each][-1]


def shown(event: dict[str, str]) -> str:
    return event["text"] if event.get("type") == "delivery.segment" else ""


OF_CHATS = ["javascript:0", "javascript:1", "javascript:2", "go:0", "bash:0"]


@pytest.mark.parametrize("name", OF_CHATS)
@pytest.mark.parametrize("blocked", [True, False], ids=["blocked", "redacted"])
async def test_completions(
    gateway: Opens, upstream: ChatUpstream, tmp_path: Path, name: str, blocked: bool
) -> None:
    client = await gateway(Policy(rules=("verdict CONTRADICTED: block", "verdict UNSUPPORTED: redact")))
    texts = [RIGHT, WRONG] if blocked else [RIGHT, ODD, "It is good."]
    responses = name == "javascript:1"
    upstream.streams(stream(message("".join(texts))) if responses else events(*texts))
    said = await output_of(BLOCKS[name], client.base_url.port, tmp_path)
    if name in {"go:0", "bash:0"}:
        text, decision = texts_in(said)
    else:
        text, _, last = said.strip().rpartition("\n")
        decision, _, finish = last.partition(", ")
        if responses:
            assert finish == ("incomplete" if blocked else "completed")
        else:
            assert finish.replace("-", "_") == ("content_filter" if blocked else "stop")
    assert decision == ("block" if blocked else "redact")
    assert text.startswith(RIGHT)
    assert (WITHHELD in text) is blocked
    assert "79" not in text
    assert "3 seats" not in text
    assert blocked or "It is good." in text


@pytest.mark.parametrize("name", ["javascript:3", "python:0", "go:1", "bash:1"])
async def test_answers_that_are_written_elsewhere(gateway: Opens, tmp_path: Path, name: str) -> None:
    client = await gateway()
    said = await output_of(BLOCKS[name], client.base_url.port, tmp_path)
    if name in {"go:1", "bash:1"}:
        text, decision = texts_in(said)
        assert decision == "block"
        said = text
    else:
        assert said.strip().endswith("block")
    assert RIGHT.strip() in said
    assert WITHHELD in said
    assert "79" not in said


async def test_the_asyncapi_documents_are_valid(tmp_path: Path) -> None:
    program = """
        import { readFileSync } from "node:fs";
        import { Parser } from "@asyncapi/parser";
        for (const file of process.argv.slice(2)) {
          const { document, diagnostics } = await new Parser().parse(readFileSync(file, "utf8"));
          const wrong = diagnostics.filter(({ severity }) => severity < 2);
          if (!document || wrong.length) throw new Error(JSON.stringify(wrong));
        }
    """
    if not WANTED:
        pytest.skip("make clients-test runs it")
    (tmp_path / "node_modules").symlink_to(PACKAGES / "node_modules")
    (tmp_path / "check.mjs").write_text(program, "utf-8")
    (tmp_path / "asyncapi.json").write_text(json.dumps(asyncapi()), "utf-8")
    files = [str(tmp_path / "asyncapi.json"), str(DOCS / "asyncapi.yaml")]
    process = await asyncio.create_subprocess_exec("node", "check.mjs", *files, cwd=tmp_path)
    assert await process.wait() == 0
