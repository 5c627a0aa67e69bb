"""The stand-in LLM server speaks what the real client understands, streamed and not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest

from tests.support.llm_server import (
    Outcome,
    Recorded,
    Reply,
    Status,
    Wire,
    busy,
    cut_off,
    duplicated,
    event,
    extra,
    fenced,
    malformed,
    member,
    missing,
    obliging,
    refusing,
    refusing_field,
    swapped,
    verdicts,
    wrong_enum,
)
from tests.support.llm_server.wire import Wait, steps
from tests.unit.support.asking_llm import ask, pieces, serving

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
ASKED = ["c1", "c2", "c3"]
TONGUES = "Straße, 日本語, कानून, עברית, 🏳️‍🌈."


@BOTH
async def test_a_completion(stream: bool) -> None:
    async with serving() as (server, client):
        heard = await ask(client, stream=stream)
    assert heard.text == verdicts(*(member(label) for label in ASKED))
    assert (heard.finish_reason, heard.refusal, heard.model) == ("stop", "", "m")
    assert (heard.usage.total_tokens, heard.usage.prompt_tokens_details.cached_tokens) == (120, 64)
    assert [call.outcome for call in server.calls] == [Outcome.ANSWERED]


async def test_a_stream_is_a_role_deltas_the_end_and_the_usage() -> None:
    async with serving(Reply("abcdefgh", wire=Wire(chunk_chars=3))) as (_, client):
        heard = await ask(client, stream=True)
    first, *deltas, last, counted = heard.chunks
    assert first.choices[0].delta.role == "assistant"
    assert [chunk.choices[0].delta.content for chunk in deltas] == ["abc", "def", "gh"]
    assert [chunk.choices[0].finish_reason for chunk in (first, *deltas, last)] == [None] * 4 + ["stop"]
    assert (counted.choices, counted.usage.completion_tokens) == ([], 20)
    assert {(chunk.id, chunk.object) for chunk in heard.chunks} == {("chatcmpl-0", "chat.completion.chunk")}


async def test_a_stream_has_no_usage_that_was_not_asked_for() -> None:
    async with serving() as (server, client):
        heard = await ask(client, stream=True, stream_options=openai.omit)
    assert heard.usage is None
    assert heard.chunks[-1].choices[0].finish_reason == "stop"
    assert not server.calls[0].wants_usage


async def test_the_usage_may_come_with_the_finish_reason() -> None:
    async with serving(Reply("x", wire=Wire(usage_with_finish=True))) as (_, client):
        last = (await ask(client, stream=True)).chunks[-1]
    assert (last.choices[0].finish_reason, last.usage.total_tokens) == ("stop", 120)


@BOTH
async def test_usage_may_be_absent(stream: bool) -> None:
    async with serving(Reply("x", usage=None)) as (_, client):
        heard = await ask(client, stream=stream)
    assert (heard.text, heard.usage) == ("x", None)


@BOTH
@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(Wire(split_bytes=1), id="bytes"),
        pytest.param(Wire(split_bytes=7, newline="\r\n"), id="pieces-crlf"),
        pytest.param(Wire(chunk_chars=1, newline="\r"), id="characters-cr"),
        pytest.param(Wire(events_per_write=3), id="in-threes"),
        pytest.param(Wire(events_per_write=None, ping_every=1), id="at-once-pings"),
        pytest.param(Wire(first_pause_s=0.001, pause_s=0.001, ping_every=2), id="slow-pings"),
        pytest.param(Wire(close_framed=True), id="ended-by-the-connection"),
        pytest.param(Wire(done=False), id="not-done"),
        pytest.param(Wire(insert={0: ": ok\n\n", 2: "event: note\nid: 7\nretry: 10\n"}), id="fields"),
    ],
)
async def test_however_it_is_cut_up_the_text_is_the_same(wire: Wire, stream: bool) -> None:
    async with serving(Reply(TONGUES, wire=wire)) as (server, client):
        heard = await ask(client, stream=stream)
    assert (heard.text, heard.finish_reason, heard.usage.total_tokens) == (TONGUES, "stop", 120)
    await server.calls[0].ended.wait()
    assert server.calls[0].outcome is Outcome.ANSWERED


@BOTH
async def test_half_a_surrogate_pair_goes_over_escaped(stream: bool) -> None:
    async with serving(Reply("a\ud83d")) as (_, client):
        assert (await ask(client, stream=stream)).text == "a\ud83d"


async def test_pieces_end_within_characters() -> None:
    async with serving(Reply("é" * 50, wire=Wire(split_bytes=1))) as (_, client):
        got = await pieces(client)
    assert max(map(len, got)) == 1
    assert b"".join(got).decode().count("é") == 50


async def test_several_events_come_in_one_piece() -> None:
    async with serving(Reply("abcdef", wire=Wire(chunk_chars=1, events_per_write=None))) as (_, client):
        assert [piece.count(b"data: ") for piece in await pieces(client)] == [9]


async def test_line_ends_and_comments() -> None:
    async with serving(Reply("abcd", wire=Wire(chunk_chars=1, newline="\r\n", ping_every=2))) as (_, client):
        got = b"".join(await pieces(client))
    lines = got.split(b"\r\n")
    assert b"\n" not in b"".join(lines)
    assert lines.count(b": ping") == 4  # ahead of every second of seven chunks
    assert lines[-3:] == [b"data: [DONE]", b"", b""]


@BOTH
def test_pauses(stream: bool) -> None:
    """Ahead of the head, and between the writes of the body, not after the last."""
    body = {"model": "m", "stream": stream, "messages": [{"content": "?"}]}
    wire = Wire(chunk_chars=10_000, split_bytes=None if stream else 200, first_pause_s=3.0, pause_s=2.0)
    plan = list(steps(Reply("x", wire=wire), Recorded({}, body)))
    assert plan[0] == Wait(3.0)
    sent = [step for step in plan[2:] if not isinstance(step, bytes) or step != b"0\r\n\r\n"]
    assert [isinstance(step, Wait) for step in sent] == [index % 2 == 1 for index in range(len(sent))]
    assert set(sent[1::2]) == {Wait(2.0)}


@BOTH
@pytest.mark.parametrize(
    ("content", "labels"),
    [
        (missing, ["c1", "c2"]),
        (extra, [*ASKED, "c9999", "", "claim"]),
        (duplicated, [*ASKED, "c1"]),
        (swapped, ["c3", "c2", "c1"]),
        (wrong_enum, ASKED),
    ],
)
async def test_ids_and_verdicts_that_models_get_wrong(content: Any, labels: list[str], stream: bool) -> None:
    async with serving(Reply(content)) as (_, client):
        said = json.loads((await ask(client, stream=stream)).text)["verdicts"]
    assert [one["id"] for one in said] == labels
    if content is not missing and content is not extra:
        assert len({one["verdict"] for one in said}) == 2


@BOTH
async def test_text_that_is_not_quite_json(stream: bool) -> None:
    cut = Reply(cut_off, finish_reason="length")
    async with serving(Reply(malformed), cut, Reply(fenced())) as (_, client):
        wrong, cut_short, in_fence = [await ask(client, stream=stream) for _ in range(3)]
    for heard in (wrong, cut_short, in_fence):
        with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
            json.loads(heard.text)
    assert cut_short.finish_reason == "length"
    assert json.loads(in_fence.text.split("```")[1].removeprefix("json"))["verdicts"]


@BOTH
async def test_refusals_and_filters(stream: bool) -> None:
    refused, filtered = Reply(None, refusal="I can't."), Reply("It is", finish_reason="content_filter")
    async with serving(refused, filtered) as (_, client):
        heard = await ask(client, stream=stream)
        assert (heard.refusal, heard.text) == ("I can't.", "")
        heard = await ask(client, stream=stream)
        assert (heard.finish_reason, heard.text) == ("content_filter", "It is")


@BOTH
async def test_choices_may_be_empty(stream: bool) -> None:
    async with serving(Reply(None, choices=[])) as (_, client):
        heard = await ask(client, stream=stream)
    assert (heard.text, heard.finish_reason) == ("", None)
    assert heard.usage.total_tokens == 120


@BOTH
async def test_choices_may_be_given(stream: bool) -> None:
    given = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "so"}}
    async with serving(Reply(None, choices=[given])) as (_, client):
        assert (await ask(client, stream=stream)).text == "so"


@BOTH
@pytest.mark.parametrize(
    ("form", "header", "value"),
    [
        ("none", "retry-after", None),
        ("seconds", "retry-after", "2"),
        ("ms", "retry-after-ms", "2000"),
        ("date", "retry-after", " GMT"),
    ],
)
async def test_busy(form: Any, header: str, value: str | None, stream: bool) -> None:
    async with serving(busy(form, 2.0), Reply("x")) as (server, client):
        with pytest.raises(openai.RateLimitError) as caught:
            await ask(client, stream=stream)
        assert (await ask(client, stream=stream)).text == "x"
    found = caught.value.response.headers.get(header)
    assert found is value if value is None else str(found).endswith(value)
    assert caught.value.code == "rate_limit_exceeded"
    assert server.connections == 1


@BOTH
@pytest.mark.parametrize("trouble", [Status(500), busy("seconds", 1, code=503)], ids=["500", "503"])
async def test_broken(trouble: Status, stream: bool) -> None:
    async with serving(trouble) as (_, client):
        with pytest.raises(openai.InternalServerError) as caught:
            await ask(client, stream=stream)
    assert caught.value.status_code == trouble.code
    assert caught.value.response.headers.get("retry-after") == trouble.headers.get("Retry-After")


@pytest.mark.parametrize("name", ["stream", "stream_options"])
async def test_a_field_may_be_refused(name: str) -> None:
    async with serving(refusing_field(name)) as (_, client):
        with pytest.raises(openai.BadRequestError, match=f"'{name}' is not supported") as caught:
            await ask(client, stream=True)
        assert (caught.value.param, caught.value.code) == (name, "unsupported_parameter")
        if name == "stream_options":
            assert (await ask(client, stream=True, stream_options=openai.omit)).text
        assert (await ask(client, stream=False)).text


@BOTH
async def test_refusals_of_the_server_go_together(stream: bool) -> None:
    """json_schema is refused first, then seed; what is left is answered."""
    choosy = refusing("json_schema", then=refusing_field("seed", then=Reply("x")))
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    async with serving(choosy) as (server, client):
        with pytest.raises(openai.BadRequestError, match="json_schema"):
            await ask(client, stream=stream, response_format=form, seed=1)
        with pytest.raises(openai.BadRequestError, match="seed"):
            await ask(client, stream=stream, seed=1)
        assert (await ask(client, stream=stream)).text == "x"
    assert [call.response_format for call in server.calls] == ["json_schema", None, None]


async def test_a_stream_that_is_none() -> None:
    """Some servers answer a request for a stream with plain JSON; the client finds no event in it."""
    async with serving(Reply("x", wire=Wire(ignore_stream=True))) as (_, client):
        assert (await ask(client, stream=True)).chunks == []


@pytest.mark.parametrize(
    "wrong", ["data: {no json\n\n", "data: \n\n", "data: {\n\n", 'data: {"a":\n\ndata: 1}\n\n']
)
async def test_events_that_are_no_json(wrong: str) -> None:
    async with serving(Reply("x" * 64, wire=Wire(insert={3: wrong}))) as (_, client):
        with pytest.raises(json.JSONDecodeError):
            await ask(client, stream=True)


async def test_any_event_can_be_put_in() -> None:
    first = event({"id": "", "object": "", "created": 0, "model": "", "choices": [], "usage": None})
    async with serving(Reply("x", wire=Wire(insert={0: first, 9: event("[DONE]")}))) as (_, client):
        heard = await ask(client, stream=True)
    assert heard.chunks[0].choices == []
    assert heard.text == "x"


async def test_a_behaviour_may_depend_on_the_call() -> None:
    async with serving(lambda call: Reply(f"{call.number}: {call.asked} {call.streamed}")) as (_, client):
        assert (await ask(client, stream=False)).text == "0: ['c1', 'c2', 'c3'] False"
        assert (await ask(client, stream=True)).text == "1: ['c1', 'c2', 'c3'] True"


@BOTH
async def test_calls_at_once_are_counted(stream: bool) -> None:
    go = asyncio.Event()
    async with serving(Reply(obliging, wire=Wire(hold_after=0, until=go))) as (server, client):
        asking = [asyncio.create_task(ask(client, stream=stream)) for _ in range(4)]
        await server.until_calls(4)
        assert server.in_flight == 4
        go.set()
        await asyncio.gather(*asking)
        await server.until_in_flight(0)
        await ask(client, stream=stream)
    assert server.most_in_flight == 4
    assert [call.in_flight for call in server.calls] == [1, 2, 3, 4, 1]
    assert [call.number for call in server.calls] == [0, 1, 2, 3, 4]
    assert [what for what, _ in server.log[:4]] == ["arrived"] * 4
    assert server.log[-2:] == [("arrived", 4), ("answered", 4)]
    assert all(call.ended_at is not None and call.ended_at >= call.arrived_at for call in server.calls)


async def test_headers_and_body_are_kept() -> None:
    async with serving() as (server, client):
        await ask(client, stream=True, extra_headers={"X-Team": "a"}, temperature=0)
    (call,) = server.calls
    assert (call.headers["x-team"], call.headers["authorization"]) == ("a", "Bearer k")
    assert (call.body["temperature"], call.body["stream"], call.wants_usage) == (0, True, True)
    assert call.bytes_sent > 0
