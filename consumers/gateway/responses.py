"""``POST /v1/responses`` under guard: what of a request is refused, and what of a response leaves.

Each text of a message is an answer of its own, judged against what the request gives and what file searches
have found before it. No more is read of the upstream's until a text that has ended is decided, so that all
leaves in its order, and nothing after a block. Items are numbered anew, because some are dropped; what the
end says of them is what has left, never what the upstream says there. A whole response goes the same way.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, cast
from uuid import uuid4

from consumers.gateway import answers
from consumers.gateway.admission import Refused, error_body
from consumers.gateway.answers import (
    DROP,
    UNCHECKED,
    GatewayAnswer,
    GatewayRequest,
    as_json,
    as_number,
    as_numbers,
    as_text,
    as_word,
    extension,
    kept,
    type_of,
    wrong,
)
from consumers.gateway.settings import ServeSettings
from guardrail.chat import (
    APART,
    BLOCK,
    Grounding,
    StreamedChoice,
    UpstreamFailed,
    for_model,
    objects,
    with_results,
)

# ------------------------------------------------------------------------------------------- the table

_KEEPS_NONE: Final = "the gateway keeps no answers: send the earlier items as input, with their documents"
REFUSED: Final[Mapping[str, str]] = {
    "background": "an answer of the background would be fetched without the guard",
    "store": "a stored answer could be fetched without the guard",
    "previous_response_id": _KEEPS_NONE,
    "conversation": _KEEPS_NONE,
    "top_logprobs": "log probabilities spell out what may be withheld",
}
"""Fields of a request that are refused where they ask for something, and why."""
_REFERENCE: Final = "item_reference"
_RESULTS: Final = "file_search_call.results"
_INCLUDES: Final = (_RESULTS, "reasoning.encrypted_content")
"""What a request may include; the rest would be dropped."""
_TOOLS: Final = ("function", "custom", "file_search", "web_search", "web_search_preview")
"""Types of tools that a request may have. Others act on their own and report what nobody checks (mcp,
code_interpreter), give pictures, or need the client to do what nobody has checked (computer, shell).
"""
_ECHOED: Final = (
    *("instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "store"),
    *("temperature", "text", "tool_choice", "tools", "top_p", "truncation"),
)
"""Fields of the request that a response repeats; the upstream's words for them are not taken."""


def _sealed(value: Any) -> Any:
    """What only the upstream can read."""
    return value if isinstance(value, str) and re.fullmatch(r"[\w+/=-]+", value, re.ASCII) else DROP


def _emptied(_: Any) -> list[Any]:
    """A list that clients expect, without what it says."""
    return []


_STATE: Final[Mapping[str, Any]] = {"id": as_word, "status": as_word}
_CALL: Final[Mapping[str, Any]] = {"id": as_word, "call_id": as_word, "name": as_word}
_RESULT: Final = {"file_id": as_word, "filename": as_text, "score": as_number, "text": as_text}
ITEMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "message": {**_STATE, "phase": as_word},
    "function_call": {**_STATE, **_CALL, "arguments": as_text},
    "custom_tool_call": {**_CALL, "input": as_text},
    "file_search_call": {**_STATE, "queries": _emptied, "results": [_RESULT]},
    "reasoning": {"id": as_word, "summary": _emptied, "encrypted_content": _sealed},
    "compaction": {"id": as_word, "encrypted_content": _sealed},
}
"""The items that pass, and what of them: of a message its texts, checked; results of a file search only if
asked for; reasoning only if it is sealed. Items of other types are dropped.
"""
EVENTS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "response.function_call_arguments.delta": ("function_call", {"delta": as_text}),
    "response.function_call_arguments.done": ("function_call", {"arguments": as_text}),
    "response.custom_tool_call_input.delta": ("custom_tool_call", {"delta": as_text}),
    "response.custom_tool_call_input.done": ("custom_tool_call", {"input": as_text}),
    **{
        f"response.file_search_call.{state}": ("file_search_call", {})
        for state in ("in_progress", "searching", "completed")
    },
}
"""The events that pass, the type of item that they must be of, and what they say beside it. Those of items,
parts and texts are written anew; the rest is dropped: reasoning, annotations, speech, pictures.
"""
_HEAD: Final = {"id": as_word, "created_at": as_number, "model": as_word, "service_tier": as_word}
_TEXTS: Final = {"output_text": "text", "refusal": "refusal"}
_LAST: Final = {"usage": as_numbers, "incomplete_details": {"reason": as_word}}
_MOST: Final = 1_000  # items of a response, and parts of an item
_MOST_READ: Final = 16  # times the largest body, since an event says much beside its text

# ------------------------------------------------------------------------------------------- what is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest(GatewayRequest):
    """A request for a response."""

    found: tuple[Mapping[str, Any], ...] | None
    """What file searches found before; None where their results are no documents."""
    shows_results: bool
    echo: Mapping[str, Any]


def response_asked_by(
    request: Any, settings: ServeSettings, scoped: Callable[[Grounding], Grounding]
) -> ResponseRequest:
    """What a request asks; ``scoped`` says for whom. Raises Refused and InputError."""
    given = request.get("input", "") if isinstance(request, Mapping) else None
    if not isinstance(given, str | list):
        raise wrong("input: give a text or a list of items in a JSON object")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    form = request["text"].get("format") if isinstance(request.get("text"), Mapping) else None
    messages = {**request, "messages": list(_messages(items))}
    asked = answers.asked(messages, settings, scoped, REFUSED, form)
    tools, include = _list(request, "tools"), _list(request, "include")
    for name, may_be, found in (("tools", _TOOLS, map(type_of, tools)), ("include", _INCLUDES, include)):
        if not all(each in may_be for each in found):
            raise Refused(400, f"{name}: only {', '.join(may_be)} can be guarded", "not_guarded")
    if any(_input_type(item) == _REFERENCE for item in items):
        raise Refused(400, f"input: {_REFERENCE}: {_KEEPS_NONE}", "not_guarded")
    body = {**for_model(request), "store": False}
    results = None
    if "file_search" in settings.contexts_from:
        searches = (each for each in items if type_of(each) == "file_search_call")
        results = tuple(result for each in searches for result in objects(each, "results"))
        if _RESULTS not in include and any(type_of(tool) == "file_search" for tool in tools):
            body["include"] = [*include, _RESULTS]
    echo = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return ResponseRequest(
        **asked,
        body=json.dumps(body).encode("ascii"),
        found=results,
        shows_results=_RESULTS in include,
        echo=echo | {name: body[name] for name in _ECHOED if name in body},
    )


def _list(found: Any, name: str) -> list[Any]:
    """Raises Refused."""
    value = found.get(name)
    if value is not None and not isinstance(value, list):
        raise wrong(f"{name}: give a list")
    return value or []


def _input_type(item: Any) -> Any:
    """Of an item of the input, where messages and references may do without."""
    if not isinstance(item, Mapping):
        return None
    return item.get("type") or ("message" if "role" in item else _REFERENCE)


def _messages(items: list[Any]) -> Iterator[dict[str, Any]]:
    """The items as messages of a chat, as far as they say anything of documents and of the question."""
    calls: list[Any] = []
    for item in items:
        match _input_type(item):
            case "message":
                yield {"role": item.get("role"), "content": item.get("content")}
            case "function_call" | "custom_tool_call":
                calls.append({"id": item.get("call_id"), "function": {"name": item.get("name")}})
            case "function_call_output" | "custom_tool_call_output":
                if calls:  # all of one turn, of which two may bear one id
                    yield {"role": "assistant", "tool_calls": calls}
                    calls = []
                yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}


# ------------------------------------------------------------------------------------------- the response


@dataclass(slots=True)
class _OutputItem:
    """An item that passes, as the client knows it."""

    index: int
    type: str
    said: dict[str, Any]
    parts: list[_TextPart] = field(default_factory=list)
    ended: bool = False
    done: bool = False

    @property
    def place(self) -> dict[str, Any]:
        return {"item_id": self.said["id"], "output_index": self.index}

    @property
    def body(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": [part.body for part in self.parts]}
        return {**self.said, **(message if self.type == "message" else {})}


class _TextPart(StreamedChoice):
    """A text of a message, as it has left."""

    def __init__(
        self, stream: GuardedResponse, item: _OutputItem, grounding: Grounding, *, refuses: bool
    ) -> None:
        super().__init__(stream, len(stream.choices))
        self.item = item
        self.grounding = grounding
        self.refuses = refuses
        self.kind = ""  # before anything has left
        self.text = self.last = ""
        self.place = {**item.place, "content_index": len(item.parts)}

    @property
    def body(self) -> dict[str, Any]:
        if self.kind == "refusal":
            return {"type": self.kind, "refusal": self.text}
        return {"type": self.kind, "text": self.text, "annotations": [], "logprobs": []}


class GuardedResponse(GatewayAnswer[list[dict[str, Any]]]):
    """A response, whole or streamed. A chunk is the events that leave at once."""

    _asked: ResponseRequest
    _is_whole = False
    """Nobody reads it before its end."""

    def __init__(self, asked: ResponseRequest, *args: Any) -> None:
        super().__init__(asked, *args)
        self._told: list[dict[str, Any]] = []
        self._items: dict[int, _OutputItem] = {}
        self._parts: dict[tuple[int, int], _TextPart] = {}
        self._found = list(asked.found or ())
        self._numbers = count()
        self._last: dict[str, Any] = {"usage": None, "incomplete_details": None}
        self._blocked = self._cut = False
        self._end = ""  # of the upstream: its status

    def frame(self, chunk: list[dict[str, Any]]) -> bytes:
        return b"".join(b"event: %s\ndata: %s\n\n" % (each["type"].encode(), as_json(each)) for each in chunk)

    def failure(self, message: str, code: str) -> bytes:
        # The API's document says the one form, the API sends the other.
        told = error_body(message, code, "server_error")
        return self.frame([self._event("error", code=code, message=message, param=None, **told)])

    def complete(self) -> bool:
        return bool(self._end)

    def enough(self) -> bool:
        return self._blocked or bool(self._end)

    def waits(self) -> bool:
        return super().waits() or any(each.ended and not each.closed for each in self._parts.values())

    # ------------------------------------------------------------------------------- what has come

    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        if self.enough():
            return
        kind, response = chunk.get("type"), chunk.get("response")
        if kind in ("error", "response.failed") or self.read > _MOST_READ * self._settings.max_body_bytes:
            raise UpstreamFailed
        self._begin(response)
        at, part = (answers.index_in(chunk, name, _MOST) for name in ("output_index", "content_index"))
        place = at, part
        match kind:
            case "response.output_item.added":
                if at in self._items:
                    raise UpstreamFailed
                self._item(at, chunk.get("item"))
            case "response.output_text.delta" | "response.refusal.delta":
                self._text(place, kind, chunk.get("delta"), group)
            case "response.output_text.done" | "response.refusal.done" | "response.content_part.done":
                if place in self._parts:
                    self._parts[place].upstream_ended(broken=False)
            case "response.output_item.done":
                self._item_done(at, chunk.get("item"))
            case "response.completed" | "response.incomplete":
                self._end = kind.rpartition(".")[2]
            case str() if kind in EVENTS:
                self._pass(at, kind, chunk)

    def _begin(self, found: Any) -> None:
        """The first event says id, model and time of all."""
        if not self._head:
            own = {"id": f"resp_{uuid4().hex}", "created_at": int(time.time()), "model": self._asked.model}
            self._head = own | kept(found, _HEAD)
            for kind in ("created", "in_progress"):
                self.send([self._event(f"response.{kind}", response=self._response("in_progress"))])
        if found is not None:
            self._last |= kept(found, _LAST)

    def _item(self, at: int, found: Any) -> _OutputItem | None:
        """The item of this place, which begins where there was none; None if it is dropped."""
        kind = type_of(found)
        if at not in self._items and isinstance(kind, str) and kind in ITEMS:
            own = {"id": f"{kind}_{uuid4().hex}", "type": kind}
            said = own | self._kept(found, kind, "in_progress")
            if "encrypted_content" in ITEMS[kind] and "encrypted_content" not in said:
                return None
            item = self._items[at] = _OutputItem(len(self._items), kind, said)
            self.send([self._event("response.output_item.added", output_index=item.index, item=item.body)])
        return self._items.get(at)

    def _kept(self, found: Any, kind: str, status: str) -> dict[str, Any]:
        said = kept({"status": status}, ITEMS[kind]) | kept(found, ITEMS[kind])
        if not self._asked.shows_results:
            said.pop("results", None)
        return said

    def _text(self, place: tuple[int, int], kind: str, text: Any, group: asyncio.TaskGroup) -> None:
        """Text of the part of a message at this place."""
        item = self._item(place[0], {"type": "message"})
        if item is None or item.type != "message" or item.ended:
            raise UpstreamFailed
        if place not in self._parts:
            grounding = with_results(self._asked.grounding, self._found)
            part = _TextPart(self, item, grounding, refuses=kind == "response.refusal.delta")
            self._parts[place] = self.choices[part.index] = part
            item.parts.append(part)
        part = self._parts[place]
        if part.ended:
            raise UpstreamFailed
        if isinstance(text, str) and (text := self._joined(place, text)):
            part.take([("content", text)], None, group)

    def _item_done(self, at: int, found: Any) -> None:
        item = self._item(at, found)
        if item is None or item.ended:
            return
        # Text that has not come as deltas would be missing.
        if type_of(found) != item.type or len(item.parts) < len(list(_texts_of(found))):
            raise UpstreamFailed
        if item.type == "file_search_call" and self._asked.found is not None:
            self._found += objects(found, "results")
        item.said |= {**self._kept(found, item.type, "completed"), "id": item.said["id"]}
        item.ended = True
        for part in item.parts:
            part.upstream_ended(broken=False)
        self.send(self._settled(item))

    def _pass(self, at: int, kind: str, chunk: Mapping[str, Any]) -> None:
        of, rule = EVENTS[kind]
        item, said = self._items.get(at), kept(chunk, rule)
        if item is None or item.ended or item.type != of or said.keys() != rule.keys():
            return
        if kind.endswith(".done"):
            item.said |= said
        self.send([self._event(kind, **item.place, **said)])

    # ------------------------------------------------------------------------------- what leaves

    async def decide(self, choice: StreamedChoice) -> None:
        part = cast("_TextPart", choice)
        await self._decide(part.deltas(), part, part.index, part.grounding)

    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> list[dict[str, Any]]:
        part = cast("_TextPart", self.choices[index])
        events = []
        if not part.kind:
            refuses = part.refuses or (self._asked.structured and self._flagged[index].replaced)
            part.kind = "refusal" if refuses else "output_text"
            events.append(self._event("response.content_part.added", **part.place, part=part.body))
        if text := delta.get("content"):
            part.text, part.last = part.text + text, text
            told = {**part.place, "delta": text, "logprobs": []}
            return [*events, self._event(f"response.{part.kind}.delta", **told)]
        if finish == BLOCK:
            self._blocked = part.item.ended = True
            part.item.said["status"] = "incomplete"
        if told is not None:
            hidden = ("choice", "replace_all") if self._is_whole else ("choice",)
            said = {name: each for name, each in told.items() if name not in hidden}
            self._told.append(extension({**part.place, **said}, self._flagged[index]))
            cut = self._asked.structured and told["decision"] in ("redact", "block")
            self._cut |= cut
            if self._is_whole:  # nobody has seen what the message stands in place of
                part.text = part.last.removeprefix(APART) if finish == BLOCK else part.text
                part.kind = "refusal" if cut else part.kind
        done = {name: each for name, each in part.body.items() if name not in ("type", "annotations")}
        return [
            *events,
            self._event(f"response.{part.kind}.done", **part.place, **done),
            self._event("response.content_part.done", **part.place, part=part.body),
            *self._settled(part.item),
        ]

    def _settled(self, item: _OutputItem) -> list[dict[str, Any]]:
        """That it is done, once the upstream has ended it and all its texts are decided."""
        if item.done or not item.ended or not all(part.closed for part in item.parts):
            return []
        item.done = True
        return [self._event("response.output_item.done", output_index=item.index, item=item.body)]

    def last(self) -> list[dict[str, Any]]:
        status = self._end
        if self._blocked or self._cut:
            status = "incomplete"
            self._last["incomplete_details"] = {"reason": BLOCK}
        events = []
        for item in self._items.values():
            if not item.ended:  # the upstream has not said so, or was left
                item.ended = True
                item.said |= kept({"status": status}, ITEMS[item.type])
            events += self._settled(item)
        response = self._response(status)
        if self._asked.calls and not self._told:
            self._told.append({**UNCHECKED})
        response |= answers.in_reply(self._told)
        return [*events, self._event(f"response.{status}", response=response)]

    def _response(self, status: str) -> dict[str, Any]:
        output = [item.body for item in self._items.values() if item.done]
        own = {"object": "response", "status": status, "error": None, "output": output}
        return {**self._asked.echo, **self._head, **own, **self._last}

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "sequence_number": next(self._numbers), **more}

    # ------------------------------------------------------------------------------- whole

    async def answered(self, found: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if not isinstance(found, Mapping) or not isinstance(found.get("output"), list):
            raise UpstreamFailed
        if found.get("status") not in ("completed", "incomplete"):
            raise UpstreamFailed
        self._is_whole = True
        async with aclosing(self.guarded(_events_of(found))) as chunks:
            *_, last = [chunk async for chunk in chunks if chunk]
        return last[-1]["response"], self._told


async def _events_of(response: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """A whole response as the events of a stream."""
    yield {"response": response}
    for at, item in enumerate(response["output"]):
        yield {"type": "response.output_item.added", "output_index": at, "item": item}
        for number, kind, text in _texts_of(item):
            place = {"output_index": at, "content_index": number}
            yield {"type": f"response.{kind}.delta", **place, "delta": text}
            yield {"type": f"response.{kind}.done", **place}
        yield {"type": "response.output_item.done", "output_index": at, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _texts_of(item: Any) -> Iterator[tuple[int, str, str]]:
    """The texts of a message, by their places and kinds; none of other items."""
    content = item.get("content") if type_of(item) == "message" else None
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind = type_of(part)
        text = part.get(_TEXTS[kind]) if isinstance(kind, str) and kind in _TEXTS else None
        if isinstance(text, str) and text:
            yield number, kind, text
