"""The Responses API through the gateway, over a socket: what leaves, in which form, and what doesn't."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agents
import httpx2
import openai
import pytest
from openai.types.responses import Response

from guardrail import Policy
from guardrail.testing import ScriptedJudge
from tests.support.chat_upstream import DONE, ChatUpstream
from tests.support.response_events import (
    call,
    event,
    events_of,
    message,
    response,
    search,
    stream,
    text_of,
    words_of,
)
from tests.unit.gateway.chats import ODD, RIGHT, WRONG
from tests.unit.gateway.conftest import Opens
from tests.unit.gateway.test_completions import WITHHELD

RESPONSES = "/v1/responses"
SHOWN = "The basic plan costs $49 a month."
MISSING = "the documents that it should rest on were not given"


def ask(**more: Any) -> dict[str, Any]:
    """A request with a document."""
    given = {"contexts": [{"id": "plans", "text": SHOWN}]}
    return {"model": "any-model", "input": "What does it cost?", "guardrail": given, **more}


async def streamed(client: httpx2.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    reply = await client.post(RESPONSES, json=ask(stream=True, **more))
    assert reply.status_code == 200, reply.text
    return events_of(reply.text)


async def whole(client: httpx2.AsyncClient, **more: Any) -> dict[str, Any]:
    reply = await client.post(RESPONSES, json=ask(**more))
    assert reply.status_code == 200, reply.text
    Response.model_validate(reply.json())
    told: dict[str, Any] = reply.json()
    return told


USAGE = {
    "input_tokens": 4,
    "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 9,
}


async def test_a_right_answer_leaves_as_it_came(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(stream(message(RIGHT), cut=7, usage={**USAGE, "note": WRONG}))
    events = await streamed(client, temperature=0.5, instructions="Be brief.")
    assert text_of(events) == RIGHT
    assert [each["type"] for each in events[:4]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    last = events[-1]["response"]
    assert events[-1]["type"] == "response.completed"
    assert (last["id"], last["model"], last["created_at"]) == ("resp_1", "any-model", 7)
    assert (last["status"], last["usage"], last["temperature"]) == ("completed", USAGE, 0.5)
    assert last["instructions"] == "Be brief."
    assert last["guardrail"]["decision"] == "release"
    assert upstream.asked[0][3] == {
        "model": "any-model",
        "input": "What does it cost?",
        "stream": True,
        "temperature": 0.5,
        "instructions": "Be brief.",
        "store": False,
    }
    upstream.answers(response(message(RIGHT), usage=USAGE))
    reply = await client.post(RESPONSES, json=ask(temperature=0.5, instructions="Be brief."))
    told = reply.json()
    assert {**told, "guardrail": None} == {**last, "guardrail": None}
    assert told["guardrail"]["decision"] == reply.headers["x-guardrail-decision"] == "release"
    assert float(reply.headers["x-guardrail-score"]) == pytest.approx(told["guardrail"]["score"], abs=1e-4)


async def test_a_block_ends_the_response_as_incomplete(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    items = [
        call(),
        message(RIGHT, item_id="one"),
        message(RIGHT + WRONG, item_id="two"),
        call(id="fc_2"),
        message(RIGHT),
    ]
    upstream.streams(stream(*items, cut=9))
    events = await streamed(client)
    assert text_of(events) == f"{RIGHT}{RIGHT}\n\n{WITHHELD}"
    last = events[-1]["response"]
    assert (events[-1]["type"], last["status"]) == ("response.incomplete", "incomplete")
    assert last["incomplete_details"] == {"reason": "content_filter"}
    assert [each["id"] for each in last["output"]] == ["fc_1", "one", "two"]
    assert last["output"][-1]["status"] == "incomplete"
    first, second = last["guardrail"]
    assert (first["decision"], first["output_index"]) == ("release", 1)
    assert (second["decision"], second["replace_all"], second["output_index"]) == ("block", True, 2)
    assert [each["verdict"] for each in second["flagged"]] == ["CONTRADICTED"]

    upstream.answers(response(*items, usage=USAGE))
    reply = await client.post(RESPONSES, json=ask())
    told = reply.json()
    assert words_of(told) == [RIGHT, WITHHELD]
    assert (told["status"], told["incomplete_details"]) == ("incomplete", {"reason": "content_filter"})
    assert [each["id"] for each in told["output"]] == ["fc_1", "one", "two"]
    assert (told["usage"], reply.headers["x-guardrail-decision"]) == (USAGE, "block")
    assert "replace_all" not in reply.text


async def test_what_is_under_way_at_a_block_is_told_as_incomplete(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway()
    begun, under_way, *rest = stream(message(WRONG))
    under_way = event("response.output_item.added", output_index=1, item=call("", status="in_progress"))
    upstream.streams([begun, under_way, *rest])
    events = await streamed(client)
    assert text_of(events) == WITHHELD
    first, second = events[-1]["response"]["output"]
    assert (first["type"], first["status"], second["status"]) == ("function_call", "incomplete", "incomplete")


async def test_a_redaction_stands_in_the_place_of_the_text(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway(Policy(rules=("verdict UNSUPPORTED: redact",)))
    mended = f"{RIGHT}[removed: not backed by the sources] {RIGHT}"
    upstream.streams(stream(message(RIGHT + ODD + RIGHT)))
    events = await streamed(client)
    assert text_of(events) == mended
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["guardrail"]["flagged"][0]["decision"] == "redact"
    assert "odd" not in json.dumps(events)
    upstream.answers(response(message(RIGHT + ODD + RIGHT)))
    assert words_of(await whole(client)) == [mended]


async def test_parts_of_a_message_are_guarded_each_for_itself(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    refused = {"type": "refusal", "refusal": WRONG}
    for items, texts in (
        ([message(RIGHT, ODD)], [RIGHT, ODD]),
        ([message(refused)], [WITHHELD]),
        ([message({"type": "refusal", "refusal": RIGHT})], [RIGHT]),
        ([message(RIGHT, refused, RIGHT)], [RIGHT, WITHHELD]),
        ([message({"type": "reasoning_text", "text": WRONG}, RIGHT)], [RIGHT]),
        ([message()], []),
        ([message("")], []),
    ):
        upstream.streams(stream(*items, cut=5))
        events = await streamed(client)
        assert text_of(events) == "".join(texts)
        assert words_of(events[-1]["response"]) == texts
        upstream.answers(response(*items))
        assert words_of(await whole(client)) == texts


@pytest.mark.parametrize("rules", [(), ("verdict CONTRADICTED: redact",)])
async def test_a_program_gets_its_answer_whole_or_as_a_refusal(
    gateway: Opens, upstream: ChatUpstream, rules: tuple[str, ...]
) -> None:
    client = await gateway(Policy(rules=rules) if rules else None)
    form = {"format": {"type": "json_schema", "name": "plan", "schema": {"type": "object"}}}
    for text, kind in ((RIGHT, "output_text"), (WRONG, "refusal")):
        upstream.streams(stream(message(text)))
        events = await streamed(client, text=form)
        text_of(events)
        upstream.answers(response(message(text)))
        for told in (events[-1]["response"], await whole(client, text=form)):
            assert told["output"][0]["content"][0]["type"] == kind
            assert (told["status"] == "completed") is (kind == "output_text")
    upstream.answers(response(message(RIGHT + WRONG)))
    assert (await whole(client, text=form))["output"][0]["content"][0]["type"] == "refusal"
    upstream.answers(response(message(WRONG)))
    assert (await whole(client, text={"format": {"type": "text"}}))["output"][0]["content"][0][
        "type"
    ] != "refusal"


async def test_calls_of_tools_wait_for_the_text_before_them(
    gateway: Opens, upstream: ChatUpstream, judge: ScriptedJudge
) -> None:
    client = await gateway()
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "run", "input": "x = 1"}
    items = [message(RIGHT), call(), custom]
    upstream.streams(stream(*items))
    judge.gate.clear()
    request = asyncio.ensure_future(streamed(client))
    await asyncio.sleep(0.1)
    judge.gate.set()
    events = await request
    kinds = [each["type"] for each in events]
    assert kinds.index("response.output_text.done") < kinds.index("response.function_call_arguments.delta")
    done = [each["arguments"] for each in events if each["type"] == "response.function_call_arguments.done"]
    assert done == ['{"q": "plans"}']
    text_of(events)
    assert events[-1]["response"]["output"][1:] == items[1:]
    upstream.answers(response(*items[1:]))
    told = await whole(client, guardrail={})
    assert told["output"] == items[1:]
    assert "guardrail" not in told


DROPPED = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": WRONG}],
        "content": [WRONG],
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": WRONG}},
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "code": WRONG,
        "outputs": [{"type": "logs", "logs": WRONG}],
    },
    {"type": "image_generation_call", "id": "ig_1", "result": "aGVsbG8=", "revised_prompt": WRONG},
    {"type": "computer_call", "id": "cu_1", "call_id": "x", "action": {"type": "type", "text": WRONG}},
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "x",
        "arguments": WRONG,
        "output": WRONG,
        "server_label": "y",
    },
    {"type": "mcp_list_tools", "id": "mcpl_1", "tools": [{"name": "x", "description": WRONG}]},
    {"type": "shell_call", "id": "sh_1", "action": {"commands": [WRONG]}},
    {"type": "apply_patch_call", "id": "ap_1", "operation": {"diff": WRONG}},
    {"type": "function_call_output", "id": "fo_1", "output": WRONG},
    {
        "type": "of_a_later_release",
        "id": "x",
        "text": WRONG,
        "content": [{"type": "output_text", "text": WRONG}],
    },
]
"""Items that never leave."""
AMONG = [
    event("response.reasoning_summary_text.delta", output_index=0, delta=WRONG),
    event("response.reasoning_text.done", output_index=11, text=WRONG),
    event("response.code_interpreter_call_code.delta", output_index=2, delta=WRONG),
    event("response.audio.transcript.delta", delta=WRONG),
    event("response.mcp_call_arguments.delta", output_index=5, delta=WRONG),
    event("response.output_text.annotation.added", output_index=11, annotation={"title": WRONG}),
    event("response.function_call_arguments.delta", output_index=11, delta=WRONG),
    event("response.function_call_arguments.delta", output_index=0, delta=WRONG),
    event("response.custom_tool_call_input.done", output_index=77, input=WRONG),
    event("response.queued", response={"output": [message(WRONG)]}),
    event(WRONG),
    event("keepalive", text=WRONG),
    event("response.of_a_later_release", text=WRONG, part={"text": WRONG}),
]
"""Events that never leave."""


async def test_what_nobody_has_checked_is_dropped(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    part = {
        "type": "output_text",
        "text": RIGHT,
        "annotations": [{"title": WRONG}],
        "logprobs": [{"token": WRONG}],
    }
    last = {
        **message(part, {"type": "output_audio", "transcript": WRONG}),
        "note": WRONG,
        "phase": "final_answer",
    }
    items = [*DROPPED, last]
    echo: dict[str, Any] = {
        "instructions": WRONG,
        "metadata": {"x": WRONG},
        "output_text": WRONG,
        "reasoning": {"summary": WRONG},
    }
    told = response(*items, error=None, usage={**USAGE, "note": WRONG}, **echo)
    frames = [each for each in stream(message(part)) if b"content_part.added" not in each]
    frames[2:2] = [
        event(f"response.output_item.{state}", output_index=at, item=each)
        for at, each in enumerate(DROPPED)
        for state in ("added", "done")
    ]
    body = b"".join(frames).replace(
        b'"output_index": 0, "item_id": "msg_1"', b'"output_index": 11, "item_id": "x y"'
    )
    body = body.replace(
        b'"output_index": 0, "item": {"type": "message"', b'"output_index": 11, "item": {"type": "message"'
    )
    *frames, _ = body.split(b"\n\n")
    upstream.streams(
        [
            b"\n\n".join(frames[:-2]) + b"\n\n",
            *AMONG,
            frames[-2] + b"\n\n",
            event("response.completed", response=told),
        ]
    )
    events = await streamed(client)
    assert text_of(events) == RIGHT
    assert "wrong" not in json.dumps(events)
    assert len(events[-1]["response"]["output"]) == 1
    upstream.answers(told)
    reply = await whole(client)
    assert (words_of(reply), reply["output"][0]["phase"]) == ([RIGHT], "final_answer")
    assert "wrong" not in json.dumps(reply)


async def test_sealed_reasoning_passes_for_the_next_request(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    told = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": WRONG}]}
    for sealed, passes in (("gAAAAAB_-x==", True), (WRONG, False), ("", False), (None, False)):
        items = [{**told, "encrypted_content": sealed}, call()]
        upstream.streams(stream(*items))
        events = await streamed(client, include=["reasoning.encrypted_content"])
        text_of(events)
        expected: Any = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}
        assert (events[-1]["response"]["output"][0] == expected) is passes
        upstream.answers(response(*items))
        assert ((await whole(client))["output"][0] == expected) is passes


async def test_an_answer_that_is_asked_for_as_a_call_is_said_to_be_unchecked(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway()
    upstream.streams(stream(call()))
    events = await streamed(client, tool_choice={"type": "function", "name": "look_up"})
    assert events[-1]["response"]["guardrail"]["decision"] == "not-checked"
    upstream.answers(response(call()))
    assert (await whole(client, tool_choice="required"))["guardrail"]["decision"] == "not-checked"
    assert "guardrail" not in await whole(client)


# ---------------------------------------------------------------------------------------- documents


def told_by_tool(name: str, kind: str = "function_call") -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "What does it cost?"},
        {"type": kind, "call_id": "call_1", "name": name, "arguments": "{}", "input": ""},
        {"type": f"{kind}_output", "call_id": "call_1", "output": SHOWN},
    ]


BLOCK = {"type": "grounding_source", "text": SHOWN}


async def test_documents_come_from_where_the_settings_say(
    gateway: Opens, upstream: ChatUpstream, judge: ScriptedJudge
) -> None:
    places: dict[str, dict[str, Any]] = {
        "extension": {"guardrail": {"contexts": [SHOWN]}},
        "blocks": {"input": [{"role": "developer", "content": [BLOCK]}, {"role": "user", "content": "?"}]},
        "documents": {"documents": [{"title": "Plans", "text": SHOWN}]},
        "file_search": {"input": [search(SHOWN), {"role": "user", "content": "?"}]},
        "tools": {"input": told_by_tool("search")},
    }
    for allowed in (*places, "none"):
        sources = [] if allowed in {"tools", "none"} else [allowed]
        client = await gateway(contexts_from=sources, tools=["search"] if allowed == "tools" else [])
        for place, request in places.items():
            upstream.streams(stream(message(RIGHT)))
            text = text_of(await streamed(client, **{"guardrail": {}, **request}))
            assert (text == RIGHT) is (place == allowed), (allowed, place)
            assert (MISSING in text) is (place != allowed)


@pytest.mark.parametrize(
    "given",
    [
        SHOWN,
        [{"role": "user", "content": [BLOCK, {"type": "input_text", "text": SHOWN}]}],
        [{"role": "user", "content": SHOWN}, message(SHOWN), {"role": "assistant", "content": [BLOCK]}],
        [{"role": "system", "content": SHOWN}],
        [{**message(), "content": [BLOCK]}],
        told_by_tool("another"),
        told_by_tool("another", "custom_tool_call"),
        [*told_by_tool("another")[:2], *told_by_tool("search")[1:]],
        [{"type": "function_call_output", "call_id": "never called", "name": "search", "output": SHOWN}],
        [{"role": "tool", "tool_call_id": "call_1", "content": SHOWN}, *told_by_tool("search")[:-1]],
        [{"type": "web_search_call", "results": [{"text": SHOWN}]}],
        [{"role": "user", "type": "message", "results": [{"text": SHOWN}], "content": "x"}],
        [BLOCK, SHOWN, [BLOCK], None, {"type": ["message"], "role": "system", "content": [BLOCK]}],
    ],
)
async def test_what_users_and_models_said_is_no_evidence(
    gateway: Opens, upstream: ChatUpstream, given: Any
) -> None:
    client = await gateway(
        tools=["search"], contexts_from=["extension", "blocks", "documents", "file_search"]
    )
    upstream.streams(stream(message(RIGHT)))
    more = {"messages": [{"role": "system", "content": [BLOCK]}], "instructions": SHOWN}
    assert MISSING in text_of(await streamed(client, input=given, guardrail={}, **more))


async def test_blocks_reach_the_model_as_text(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.answers(response(message(RIGHT)))
    await whole(client, input=[{"role": "system", "content": [BLOCK]}, {"role": "user", "content": "?"}])
    asked = upstream.asked[0][3]
    assert asked["input"][0]["content"] == [{"type": "input_text", "text": SHOWN}]
    assert "guardrail" not in asked


async def test_what_a_file_search_finds_is_a_document_of_what_comes_after(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway(contexts_from=["file_search"])
    tools = [{"type": "file_search", "vector_store_ids": ["vs_1"]}]
    items = [message("Hello!"), search(SHOWN, "It has 3 seats."), message(RIGHT, item_id="two")]
    for include in (None, ["file_search_call.results"]):
        upstream.streams(stream(*items))
        events = await streamed(client, tools=tools, include=include, guardrail={})
        assert text_of(events) == f"Hello!{RIGHT}"
        assert upstream.asked[-1][3]["include"] == ["file_search_call.results"]
        upstream.answers(response(*items))
        told = await whole(client, tools=tools, include=include, guardrail={})
        for output in (events[-1]["response"]["output"], told["output"]):
            assert output[1].get("results") == (items[1]["results"] if include else None)
            assert output[1]["queries"] == []  # in the model's words
        assert (SHOWN in json.dumps(events[:-1])) is (RIGHT in json.dumps(events[:-1]))
    kinds = [each["type"] for each in events]
    assert "response.file_search_call.searching" in kinds
    upstream.streams(stream(message(RIGHT), search(SHOWN)))
    assert MISSING in text_of(await streamed(client, tools=tools, guardrail={}))
    client = await gateway()
    upstream.streams(stream(*items))
    assert MISSING in text_of(await streamed(client, tools=tools, guardrail={}))
    assert "include" not in upstream.asked[-1][3]


# ------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"background": True}, "background: an answer of the background"),
        ({"store": True}, "store: a stored answer"),
        ({"previous_response_id": "resp_0"}, "previous_response_id: the gateway keeps no answers"),
        ({"conversation": {"id": "conv_1"}}, "conversation: the gateway keeps no answers"),
        ({"input": [{"type": "item_reference", "id": "msg_0"}]}, "item_reference: the gateway keeps"),
        ({"input": [{"id": "msg_0"}]}, "item_reference: the gateway keeps"),
        ({"input": [{"type": None, "id": "msg_0"}]}, "item_reference: the gateway keeps"),
        ({"top_logprobs": 3}, "log probabilities"),
        ({"include": ["message.output_text.logprobs"]}, "include: only"),
        ({"include": [{"a": 1}]}, "include: only"),
        ({"include": "x"}, "include: give a list"),
        ({"tools": [{"type": "mcp"}]}, "tools: only function, custom"),
        ({"tools": [{"type": "code_interpreter"}]}, "tools: only"),
        ({"tools": [{"type": "namespace", "tools": [{"type": "shell"}]}]}, "tools: only"),
        ({"tools": ["x", {"type": []}]}, "tools: only"),
        ({"tools": {}}, "tools: give a list"),
        ({"input": 7}, "input: give a text or a list"),
        ({"stream": "yes"}, "stream: give true or false"),
        ({"model": None}, "model: give"),
        ({"guardrail": {"contextes": []}}, "guardrail.contextes"),
    ],
)
async def test_a_request_that_can_not_be_guarded(
    gateway: Opens, upstream: ChatUpstream, more: dict[str, Any], why: str
) -> None:
    client = await gateway(contexts_from=["extension", "file_search"])
    reply = await client.post(RESPONSES, json=ask(**more))
    assert (reply.status_code, why in reply.json()["error"]["message"]) == (400, True), reply.text
    assert upstream.asked == []


async def test_an_error_of_the_upstream_keeps_its_status_and_body(
    gateway: Opens, upstream: ChatUpstream
) -> None:
    client = await gateway()
    told = {"error": {"message": "slow down", "code": "rate_limit"}}
    for streams in (False, True):
        upstream.answers(told, "429 Too Many Requests")
        reply = await client.post(RESPONSES, json=ask(stream=streams))
        assert (reply.status_code, reply.json()) == (429, told)


@pytest.mark.parametrize(
    "body",
    [
        {"object": "chat.completion", "choices": []},
        response(message(WRONG), status="failed", error={"code": "server_error", "message": WRONG}),
        response(status="in_progress"),
        response(status=["completed"]),
        {**response(), "output": None},
        [],
        response(*[call()] * 1_001),
    ],
)
async def test_a_whole_answer_of_no_known_form_is_withheld(
    gateway: Opens, upstream: ChatUpstream, body: Any
) -> None:
    client = await gateway()
    upstream.answers(body)
    reply = await client.post(RESPONSES, json=ask())
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "upstream_failed")
    assert "wrong" not in reply.text


ITEM = {"output_index": 0, "item": {"type": "message"}}
ENDS: list[list[bytes]] = [
    [],
    [DONE],
    [b'data: {"type": "response.output_text.delta", "output_index": 0, "del'],
    [b"data: {broken\n\n"],
    [b"data: [1]\n\n"],
    [event("error", code="server_error", message=WRONG)],
    [b'data: {"error": {"message": "wrong"}}\n\n'],
    [event("response.failed", response=response(message(WRONG), status="failed", error={"message": WRONG}))],
    [event("response.output_item.added", **ITEM)],
    [event("response.output_item.done", output_index=1, item=message(WRONG))],
    [event("response.output_item.added", output_index=1_000, item=call())],
    [event("response.output_text.delta", output_index="0", delta=WRONG)],
    [event("response.output_text.delta", output_index=-1, delta=WRONG)],
    [event("response.output_text.delta", output_index=True, delta=WRONG)],
    [
        event("response.output_item.done", output_index=0, item=message(RIGHT + RIGHT, WRONG)),
        event("response.completed", response=response()),
    ],
    [event("response.output_item.done", output_index=0, item=call())],
    [
        event("response.output_item.done", output_index=0, item=message()),
        event("response.output_text.delta", delta=WRONG),
    ],
    [
        event("response.output_item.added", output_index=4, item=call()),
        event("response.output_text.delta", output_index=4, delta=WRONG),
    ],
    [
        event("response.output_text.done", output_index=0, content_index=0),
        event("response.output_text.delta", output_index=0, content_index=0, delta=WRONG),
    ],
    [b"data: " + b"x" * 2_000_000 + b"\n\n"],
    [event("response.function_call_arguments.delta", output_index=5, delta="x" * 600_000)] * 3,
]


@pytest.mark.parametrize("end", ENDS)
async def test_a_stream_that_breaks_off_ends_as_an_error(
    gateway: Opens, upstream: ChatUpstream, end: list[bytes]
) -> None:
    client = await gateway(max_body_bytes=100_000)
    begun = stream(message(RIGHT + RIGHT))[:5]
    upstream.streams([*begun, event("response.output_item.added", output_index=5, item=call()), *end])
    reply = await client.post(RESPONSES, json=ask(stream=True))
    last = events_of(reply.text)[-1]
    assert (last["type"], last["code"], last["error"]["code"]) == (
        "error",
        "upstream_failed",
        "upstream_failed",
    )
    assert "wrong" not in reply.text
    assert "[DONE]" not in reply.text
    assert "response.completed" not in reply.text


async def test_held_text_keeps_the_connection_alive(
    gateway: Opens, upstream: ChatUpstream, judge: ScriptedJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.gateway.settings.ServeSettings.silence_s", 0.01)
    client = await gateway()
    judge.gate.clear()
    upstream.streams(stream(message(RIGHT)))
    async with client.stream("POST", RESPONSES, json=ask(stream=True)) as reply:
        text = ""
        async for piece in reply.aiter_text():
            text += piece
            if text.count(": held\n\n") >= 3 and not judge.gate.is_set():
                assert "basic" not in text
                judge.gate.set()
    assert text_of(events_of(text)) == RIGHT


async def test_a_client_that_goes_ends_the_upstreams_answer(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(stream(message(RIGHT)))
    upstream.holds_before = 6
    with pytest.raises((httpx2.ReadTimeout, httpx2.ReadError)):
        await client.post(RESPONSES, json=ask(stream=True), timeout=0.3)
    await upstream.left.wait()


async def test_an_end_that_the_upstream_says_is_kept(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    for reason, told in (("max_output_tokens", {"reason": "max_output_tokens"}), (WRONG, None)):
        more: dict[str, Any] = {"incomplete_details": {"reason": reason}}
        upstream.streams(
            [
                each
                for each in stream(message(RIGHT), call(), status="incomplete", **more)
                if b"item.done" not in each
            ]
        )
        events = await streamed(client)
        assert text_of(events) == RIGHT
        last = events[-1]["response"]
        assert (events[-1]["type"], last["incomplete_details"]) == ("response.incomplete", told)
        assert [each["status"] for each in last["output"]] == ["incomplete", "incomplete"]
        assert last["output"][1]["arguments"] == call()["arguments"]


async def test_characters_may_come_in_halves(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    frames = stream(message("Fine \ud83d\ude00. Alone: \ud83d"), cut=6)
    upstream.streams(frames)
    assert text_of(await streamed(client)).startswith("Fine \U0001f600. Alone:")


async def test_openais_client_reads_it(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    guarded = openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="of-the-caller", max_retries=0)
    asked: dict[str, Any] = ask()
    extra = {"guardrail": asked.pop("guardrail")}
    async with guarded:
        upstream.streams(stream(message(RIGHT), call(), cut=9, usage=USAGE))
        async with guarded.responses.stream(**asked, extra_body=extra) as helper:
            text = ""
            async for each in helper:
                if each.type == "response.output_text.delta":
                    text += each.delta
                    assert each.snapshot == text
            last = await helper.get_final_response()
        assert (text, last.output_text, last.usage and last.usage.total_tokens) == (RIGHT, RIGHT, 9)
        assert (last.model_extra or {})["guardrail"]["decision"] == "release"

        upstream.streams(stream(message(RIGHT + WRONG)))
        async for event_ in await guarded.responses.create(**asked, stream=True, extra_body=extra):
            final = event_
        assert final.type == "response.incomplete"
        assert final.response.output_text == f"{RIGHT}\n\n{WITHHELD}"
        assert final.response.incomplete_details is not None
        assert final.response.incomplete_details.reason == "content_filter"

        upstream.answers(response(message(WRONG)))
        raw = await guarded.responses.with_raw_response.create(**asked, extra_body=extra)
        assert raw.headers["x-guardrail-decision"] == "block"
        assert raw.parse().output_text == WITHHELD

        upstream.streams(stream(message(RIGHT))[:5])
        with pytest.raises(openai.APIError, match="broke off"):
            async for _ in await guarded.responses.create(**asked, stream=True, extra_body=extra):
                pass
    assert upstream.asked[0][2]["authorization"] == "Bearer of-the-caller"


async def test_an_agent_of_openais_calls_its_tools_through_it(gateway: Opens, upstream: ChatUpstream) -> None:
    """With another base URL and nothing else; what its tool finds is the document."""
    client = await gateway(tools=["look_up"])

    @agents.function_tool
    def look_up(q: str) -> str:
        """Finds the prices."""
        answers(message(RIGHT + WRONG if q == "odd" else RIGHT))
        return SHOWN

    def answers(*items: Any) -> None:
        upstream.streams(stream(*items, usage=USAGE))

    asked = openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="x", max_retries=0)
    async with asked:
        model = agents.OpenAIResponsesModel("any-model", asked)
        agent = agents.Agent(name="prices", model=model, tools=[look_up])
        for query in ("plans", "odd"):
            answers(message("Hello!"), call(json.dumps({"q": query})))
            run = agents.Runner.run_streamed(
                agent, "What?", run_config=agents.RunConfig(tracing_disabled=True)
            )
            if query == "plans":
                async for _ in run.stream_events():
                    pass
                assert run.final_output == RIGHT
            else:
                with pytest.raises(agents.ModelBehaviorError, match="content_filter"):
                    async for _ in run.stream_events():
                        pass
