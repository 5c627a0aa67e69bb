"""What the Responses API sends, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

TEXTS = {"output_text": "text", "refusal": "refusal"}
HEAD = {"id": "resp_1", "object": "response", "created_at": 7, "model": "any-model", "error": None}


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': 0, **fields})}\n\n".encode()


def message(*texts: Any, item_id: str = "msg_1") -> dict[str, Any]:
    """A message with a part for each text; a part may be given whole."""
    parts = [
        {"type": "output_text", "text": each, "annotations": []} if isinstance(each, str) else each
        for each in texts
    ]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": parts}


def call(arguments: str = '{"q": "plans"}', **more: Any) -> dict[str, Any]:
    told = {"id": "fc_1", "call_id": "call_1", "name": "look_up", "status": "completed"}
    return {"type": "function_call", **told, "arguments": arguments, **more}


def search(*texts: str) -> dict[str, Any]:
    results = [{"file_id": "file-1", "filename": "plans.md", "score": 0.9, "text": each} for each in texts]
    told = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["plans"]}
    return {**told, "results": results}


def response(*items: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    """A whole response."""
    return {**HEAD, "status": status, "incomplete_details": None, "output": list(items), **more}


def stream(*items: dict[str, Any], status: str = "completed", cut: int = 1_000, **more: Any) -> list[bytes]:
    """A whole stream of these items, whose texts come in pieces of ``cut`` characters."""
    begun = {**response(status="in_progress"), "instructions": "of the upstream"}
    return [
        event("response.created", response=begun),
        event("response.in_progress", response=begun),
        *(each for at, item in enumerate(items) for each in item_events(item, at, cut)),
        event(f"response.{status}", response=response(*items, status=status, **more)),
    ]


def item_events(item: dict[str, Any], at: int, cut: int = 1_000) -> Iterator[bytes]:
    place = {"output_index": at, "item_id": item.get("id")}
    begun = {**item, "status": "in_progress"}
    begun |= {
        name: empty for name, empty in (("content", []), ("arguments", ""), ("results", None)) if name in item
    }
    yield event("response.output_item.added", output_index=at, item=begun)
    if item["type"] == "message":
        for number, part in enumerate(each for each in item["content"] if each["type"] in TEXTS):
            kind, name = part["type"], TEXTS[part["type"]]
            here = {**place, "content_index": number}
            yield event("response.content_part.added", **here, part={**part, name: ""})
            for start in range(0, len(part[name]), cut):
                yield event(f"response.{kind}.delta", **here, delta=part[name][start : start + cut])
            yield event(f"response.{kind}.done", **here, **{name: part[name]})
            yield event("response.content_part.done", **here, part=part)
    if item["type"] == "function_call":
        yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
        yield event("response.function_call_arguments.done", **place, arguments=item["arguments"])
    if item["type"] == "file_search_call":
        for state in ("in_progress", "searching", "completed"):
            yield event(f"response.file_search_call.{state}", **place)
    yield event("response.output_item.done", output_index=at, item=item)
