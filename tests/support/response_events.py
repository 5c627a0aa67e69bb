"""What the Responses API sends, whole and streamed, and how a client reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

TEXTS = {"output_text": "text", "refusal": "refusal"}
TYPED: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
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


def response(*items: Any, status: Any = "completed", **more: Any) -> dict[str, Any]:
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


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream that is well formed in itself."""
    *frames, rest = text.split("\n\n")
    assert rest == ""
    events = []
    for frame in frames:
        if not frame.startswith(":"):
            name, data = frame.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {events[-1]['type']}"
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    return events


def text_of(events: list[dict[str, Any]]) -> str:
    """All text, which must be the same wherever it stands."""
    deltas: dict[tuple[int, int], str] = {}
    items: dict[int, Any] = {}
    for each in events:
        TYPED.validate_python(each)
        place = (each.get("output_index", 0), each.get("content_index", 0))
        part = each.get("part") or each
        said = str(part.get("refusal", part.get("text")))
        match each["type"]:
            case "response.output_item.added":
                assert place[0] not in items
                items[place[0]] = {**each["item"]}
            case "response.content_part.added":
                assert each["item_id"] == items[place[0]]["id"]
                deltas[place] = said
            case "response.output_text.delta" | "response.refusal.delta":
                assert each["item_id"] == items[place[0]]["id"]
                deltas[place] += each["delta"]
            case "response.output_text.done" | "response.refusal.done" | "response.content_part.done":
                assert said == deltas[place]
            case "response.output_item.done":
                assert each["item"]["id"] == items[place[0]]["id"]
                items[place[0]] = each["item"]
    last = events[-1]["response"]
    Response.model_validate(last)
    assert last["output"] == [items[at] for at in sorted(items)]
    for (at, number), text in deltas.items():
        assert words_of({"output": [items[at]]})[number] == text
    return "".join(deltas.values())


def words_of(told: dict[str, Any]) -> list[str]:
    parts = [part for item in told["output"] for part in item.get("content", ())]
    return [part["refusal" if part["type"] == "refusal" else "text"] for part in parts]
