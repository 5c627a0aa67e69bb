"""What the tests of the gateway ask, and how they read what comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2

COMPLETIONS = "/v1/chat/completions"
RIGHT = "The basic plan costs $49 a month. "
WRONG = "The wrong plan costs $79 a month. "
ODD = "The odd plan has 3 seats. "


def ask(**more: Any) -> dict[str, Any]:
    """A request with a document."""
    return {
        "model": "any-model",
        "messages": [{"role": "user", "content": "What does it cost?"}],
        "guardrail": {"contexts": [{"id": "plans", "text": "The basic plan costs $49 a month."}]},
        **more,
    }


def with_keys(folder: Path, **entries: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with a file of these entries, by their keys."""
    hashed = [
        {"name": key, "sha256": sha256(key.encode()).hexdigest(), **more} for key, more in entries.items()
    ]
    (folder / "keys.yaml").write_text(json.dumps(hashed), "utf-8")
    return {"keys": {"file": str(folder / "keys.yaml")}}


def chunks_of(text: str) -> list[dict[str, Any]]:
    """The chunks of a stream that ended in order."""
    *frames, done, rest = text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(frame.removeprefix("data: ")) for frame in frames if not frame.startswith(":")]


def text_of(chunks: list[dict[str, Any]], index: int = 0) -> str:
    parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == index]
    return "".join(part["delta"].get("content") or "" for part in parts)


def finish_of(chunks: list[dict[str, Any]], index: int = 0) -> Any:
    parts = [part for chunk in chunks for part in chunk["choices"] if part["index"] == index]
    (finish,) = [part["finish_reason"] for part in parts if part["finish_reason"]]
    return finish


async def streamed(client: httpx2.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    reply = await client.post(COMPLETIONS, json=ask(stream=True, **more))
    assert reply.status_code == 200, reply.text
    return chunks_of(reply.text)
