"""Replies that are streamed: read as they come, refused, cut, stalled, odd."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail.errors import JudgeReplyError, JudgeUnavailable
from tests.support.llm_server import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    LlmServer,
    Outcome,
    Recorded,
    Reply,
    Status,
    StreamError,
    event,
    refusing_field,
)
from tests.unit.judges.llm.chatting import Asker, chatting, lines

GOOD = lines("c1", "c2")


async def test_answers_are_heard_while_the_reply_is_written() -> None:
    go = asyncio.Event()
    async with LlmServer(lines("c1", "c2", hold_after=2, until=go)) as server, chatting(server) as chat:
        asker = Asker(chat)
        task = asyncio.create_task(asker.ask())
        await asker.news.wait()
        assert asker.heard == ["c1"]
        assert not task.done()
        go.set()
        assert await task == ["c1", "c2"]
    assert asker.heard == ["c1", "c2"]
    assert asker.spent.answered_by == "llm:test"
    assert asker.spent.models == []


async def test_a_stream_is_asked_for_with_its_usage_and_counted() -> None:
    class Prices:
        def cost_usd(self, model: str, read: int, cached: int, written: int) -> float:
            assert (model, read, cached, written) == ("test", 100, 64, 20)
            return 0.25

    async with LlmServer(GOOD) as server, chatting(server, prices=Prices()) as chat:
        asker = Asker(chat)
        await asker.ask()
    spent, (call,) = asker.spent, server.calls
    assert call.streamed
    assert call.wants_usage
    assert spent.calls == 1
    assert (spent.input_tokens, spent.cached_input_tokens, spent.output_tokens) == (100, 64, 20)
    assert spent.cost_usd == 0.25


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        [],
        {"prompt_tokens": "5"},
        {"prompt_tokens": -5},
        {"prompt_tokens": 10**400},
        {"prompt_tokens_details": 3},
    ],
)
async def test_a_usage_that_makes_no_sense_is_none(usage: Any) -> None:
    async with LlmServer(Reply("c1\n", usage=usage)) as server, chatting(server) as chat:
        asker = Asker(chat)
        assert await asker.ask() == ["c1"]
    assert asker.spent.calls == 1
    assert asker.spent.input_tokens == asker.spent.output_tokens == 0


async def test_connections_are_used_again() -> None:
    async with LlmServer(GOOD) as server, chatting(server) as chat:
        for _ in range(5):
            await Asker(chat).ask()
    assert server.connections == 1


@pytest.mark.parametrize("status", [400, 404, 422, 500, 501])
async def test_a_server_that_refuses_streams_is_asked_for_whole_replies_from_then_on(status: int) -> None:
    async with (
        LlmServer(refusing_field("stream", status, GOOD)) as server,
        chatting(server, max_retries=0) as chat,
    ):
        assert await Asker(chat).ask() == ["c1", "c2"]
        assert await Asker(chat).ask() == ["c1", "c2"]
    assert [call.streamed for call in server.calls] == [True, False, False]
    assert "stream_options" not in server.calls[-1].body


async def test_a_server_that_refuses_the_usage_still_streams() -> None:
    behaviour = refusing_field("stream_options", then=GOOD)
    async with LlmServer(behaviour) as server, chatting(server, max_retries=0) as chat:
        asker = Asker(chat)
        await asker.ask()
        await Asker(chat).ask()
    assert [(call.streamed, call.wants_usage) for call in server.calls] == [
        (True, True),
        (True, False),
        (True, False),
    ]
    assert asker.heard == ["c1", "c2"]
    assert asker.spent.calls == 2
    assert asker.spent.input_tokens == 0


async def test_a_server_that_takes_no_notice_of_stream_is_not_asked_for_one_again() -> None:
    """Its silence while it writes would be taken for a stall."""
    behaviour = lines("c1", ignore_stream=True)
    async with LlmServer(behaviour) as server, chatting(server) as chat:
        assert await Asker(chat).ask() == ["c1"]
        assert await Asker(chat).ask() == ["c1"]
    assert [call.streamed for call in server.calls] == [True, False]


async def test_streams_can_be_switched_off() -> None:
    async with LlmServer(GOOD) as server, chatting(server) as chat:
        chat.endpoints[0].dialect.take_whole_replies()
        assert await Asker(chat).ask() == ["c1", "c2"]
    assert "stream" not in server.calls[0].body


@pytest.mark.parametrize(
    "wire",
    [
        {"split_bytes": 1},
        {"split_bytes": 7, "newline": "\r\n"},
        {"newline": "\r"},
        {"ping_every": 1},
        {"events_per_write": None},
        {"pause_s": 0.001},
        {"done": False},
        {"usage_with_finish": True},
        {"close_framed": True},
        {"insert": {1: "event: note\nid: 5\nretry: 3\n\n", 2: event({"choices": []})}},
    ],
    ids=str,
)
async def test_streams_of_all_makes_are_read(wire: dict[str, Any]) -> None:
    async with LlmServer(lines("c1", "c2", "c3", **wire)) as server, chatting(server, max_retries=0) as chat:
        asker = Asker(chat)
        assert await asker.ask() == ["c1", "c2", "c3"]
    assert asker.spent.output_tokens == 20


BROKEN: list[tuple[str, Act, Act]] = [
    # with one answer complete, and with none
    ("cut", Cut(chunks=2, reply=GOOD), Cut(chunks=1, reply=GOOD)),
    ("cut inside an event", Cut(chunks=2, inside=True, reply=GOOD), Cut(chunks=1, inside=True, reply=GOOD)),
    ("ended in order", lines("c1", "c2", end_after=2), lines("c1", "c2", end_after=1)),
    (
        "closed",
        lines("c1", "c2", end_after=2, close_framed=True),
        lines("c1", "c2", end_after=1, close_framed=True),
    ),
    ("error", StreamError(after=2, reply=GOOD), StreamError(after=1, reply=GOOD)),
    ("error and done", StreamError(2, done=True, reply=GOOD), StreamError(1, done=True, reply=GOOD)),
    ("not JSON", lines("c1", "c2", insert={2: event("{]")}), lines("c1", "c2", insert={1: event("{]")})),
    ("no object", lines("c1", "c2", insert={2: event([1])}), lines("c1", "c2", insert={1: event([1])})),
    ("stalled", Hang(2, GOOD), Hang(1, GOOD)),
]


@pytest.mark.parametrize(("kept", "lost"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
async def test_of_a_reply_that_breaks_off_what_was_complete_is_kept_else_it_is_asked_for_again(
    kept: Act, lost: Act
) -> None:
    async with LlmServer(kept) as server, chatting(server, stall_s=1.0) as chat:
        asker = Asker(chat)
        assert await asker.ask() == ["c1"]
        assert (asker.heard, asker.spent.calls) == (["c1"], 1)
    async with LlmServer(lost, GOOD) as server, chatting(server, stall_s=1.0) as chat:
        asker = Asker(chat)
        assert await asker.ask() == ["c1", "c2"]
        assert asker.spent.calls == 2


@pytest.mark.parametrize(
    "early",
    [lines("c1", end_after=1), lines("c1", end_after=1, close_framed=True), Cut(chunks=1, reply=GOOD)],
    ids=["in order", "closed", "cut"],
)
async def test_a_stream_that_ends_early_is_a_failure_of_the_server(early: Act) -> None:
    async with LlmServer(early) as server, chatting(server, max_retries=0) as chat:
        with pytest.raises(JudgeUnavailable, match=r"the connection to 127\.0\.0\.1:\d+ was cut"):
            await Asker(chat).ask()


@pytest.mark.parametrize(
    "trouble", [Hang(), Hang(0), Drip()], ids=["before the head", "after it", "comments"]
)
async def test_a_stream_without_a_token_is_ended_and_tried_again(trouble: Behaviour) -> None:
    async with (
        LlmServer(trouble, GOOD) as server,
        chatting(server, stall_s=0.3) as chat,
    ):
        assert await Asker(chat).ask() == ["c1", "c2"]
        await server.calls[0].ended.wait()
    assert server.calls[0].outcome is Outcome.LEFT


async def test_a_slow_stream_is_no_stalled_one() -> None:
    """All of it takes longer than the bound, each token less."""
    labels = [f"c{number}" for number in range(40)]
    slow = Reply("".join(f"{label}\n" for label in labels), wire=lines(pause_s=0.05).wire)
    async with (
        LlmServer(slow) as server,
        chatting(server, stall_s=1.5, max_retries=0) as chat,
    ):
        assert await Asker(chat).ask() == labels


async def test_at_the_deadline_what_was_complete_is_returned() -> None:
    async with LlmServer(Hang(2, GOOD)) as server, chatting(server) as chat:
        asker = Asker(chat)
        assert await asker.ask(seconds=1.0) == ["c1"]
        await server.given_up.wait()


async def test_a_filter_that_strikes_late_leaves_what_was_complete() -> None:
    filtered = Reply("c1\nc2", finish_reason="content_filter", wire=GOOD.wire)
    async with LlmServer(filtered) as server, chatting(server) as chat:
        assert await Asker(chat).ask() == ["c1"]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (Reply(None, choices=[]), "no choices"),
        (Reply(None, choices=["?"]), "no choices"),
        (Reply(""), "is empty"),
        (Reply(None, finish_reason="length"), "raise judge.llm.max_output_tokens"),
        (Reply("no label at all"), "nothing usable"),
        (Status(200, raw="<html>"), "not JSON"),
        (Status(200, headers={"Content-Type": "text/html"}, raw="<html>"), "check judge.llm.base_url"),
        (Status(200, raw='{"choices": [{"message": 5}]}'), "no choices"),
        (Status(200, raw='{"choices": ' + "[" * 100_000), "not JSON"),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
async def test_a_reply_that_can_not_be_used_is_reported(
    behaviour: Behaviour, message: str, *, streamed: bool
) -> None:
    async with (
        LlmServer(behaviour) as server,
        chatting(server, max_retries=1) as chat,
    ):
        if not streamed:
            chat.endpoints[0].dialect.take_whole_replies()
            message = message.replace("check judge.llm.base_url", "not JSON")
        with pytest.raises(JudgeReplyError, match=message):
            await Asker(chat).ask()
    assert len(server.calls) == 2


async def test_errors_within_a_stream_are_not_quoted() -> None:
    secret = {"message": "sk-secret: It costs $50.", "code": "sk-secret", "type": "sk-secret"}
    async with (
        LlmServer(StreamError(1, secret, reply=GOOD)) as server,
        chatting(server, max_retries=0) as chat,
    ):
        asker = Asker(chat)
        with pytest.raises(JudgeUnavailable, match="reported an error within the reply") as caught:
            await asker.ask()
    assert "sk-secret" not in repr(caught.value) + repr(asker.spent)


async def test_a_reply_beyond_all_bounds_is_left() -> None:
    def endless(call: Recorded) -> Act:
        return Reply("x", wire=lines(insert={1: "data: " + "x" * 2_000_000}).wire)

    async with LlmServer(endless) as server, chatting(server, max_retries=0) as chat:
        with pytest.raises(JudgeReplyError, match="more than 1000000 characters"):
            await Asker(chat).ask()
