"""Hangs, cuts and errors of the stand-in LLM server, as the real client sees them."""

from __future__ import annotations

import asyncio

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.support.llm_server import Behaviour, Cut, Drip, Hang, Outcome, Reply, StreamError, Wire
from tests.unit.support.asking_llm import Heard, ask, hear, pieces, serving

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "?"}]
LETTERS = Reply(
    "abcdefgh", wire=Wire(chunk_chars=2)
)  # in a stream: role, ab, cd, ef, gh, stop, usage, [DONE]


@BOTH
@pytest.mark.parametrize("silence", [Hang(), Hang(0), Hang(2), Drip(0.001)])
async def test_a_caller_who_gives_up_is_seen_and_others_are_answered(
    silence: Behaviour, stream: bool
) -> None:
    async with serving(silence, Reply("x")) as (server, client):
        asking = asyncio.create_task(ask(client, stream=stream))
        await server.until_calls(1)
        assert (await ask(client, stream=stream)).text == "x"
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await server.given_up.wait()
        await server.until_in_flight(0)
    assert [call.outcome for call in server.calls] == [Outcome.LEFT, Outcome.ANSWERED]
    assert server.log == [("arrived", 0), ("arrived", 1), ("answered", 1), ("left", 0)]
    assert server.calls[0].left


@BOTH
@pytest.mark.parametrize("silence", [Hang(), Hang(2), Drip(0.001)])
async def test_a_test_that_ends_first_leaves_nothing_behind(silence: Behaviour, stream: bool) -> None:
    async with serving(silence) as (server, client):
        asking = asyncio.create_task(ask(client, stream=stream))
        await server.until_calls(1)
    assert server.calls[0].outcome is Outcome.STOPPED
    assert not server.given_up.is_set()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.parametrize(("after", "text"), [(1, ""), (2, "ab"), (4, "abcdef")])
async def test_a_stream_that_stops_after_some_chunks(after: int, text: str) -> None:
    async with serving(Hang(after, LETTERS)) as (server, client):
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        heard = ""
        for _ in range(after):
            heard += (await anext(stream)).choices[0].delta.content or ""
        assert heard == text
        assert not server.given_up.is_set()
        await stream.close()
        await server.calls[0].ended.wait()
        assert server.calls[0].left


async def test_a_held_stream_goes_on_when_the_test_says_so() -> None:
    go = asyncio.Event()
    wire = Wire(chunk_chars=2, hold_after=3, until=go)
    async with serving(Reply("abcdefgh", wire=wire)) as (server, client):
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        held = [await anext(stream) for _ in range(3)]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in held) == "abcd"
        assert server.in_flight == 1
        go.set()
        assert [chunk.choices[0].delta.content async for chunk in stream] == ["ef", "gh", None]
    assert server.calls[0].outcome is Outcome.ANSWERED


async def test_a_server_may_keep_a_stream_open_behind_its_done() -> None:
    """The client takes what it has, and gives the connection up."""
    async with serving(Hang(8, LETTERS)) as (server, client):
        heard = await ask(client, stream=True)
        await server.given_up.wait()
    assert (heard.text, heard.finish_reason) == ("abcdefgh", "stop")


@BOTH
@pytest.mark.parametrize("cut", [Cut(after=0), Cut(), Cut(chunks=0), Cut(chunks=0, inside=True)])
async def test_a_connection_that_is_cut(cut: Cut, stream: bool) -> None:
    async with serving(cut, Reply("x")) as (server, client):
        heard = Heard()
        with pytest.raises(openai.APIConnectionError):
            await hear(client, heard, stream=stream)
        assert (await ask(client, stream=stream)).text == "x"
    assert heard == Heard()
    assert [call.outcome for call in server.calls] == [Outcome.CUT, Outcome.ANSWERED]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("chunks", "text"), [(2, "ab"), (5, "abcdefgh")])
async def test_a_stream_that_is_cut_after_some_chunks(chunks: int, text: str, inside: bool) -> None:
    """What was complete has been heard, and nothing of the chunk that was not."""
    heard = Heard()
    async with serving(Cut(chunks=chunks, inside=inside, reply=LETTERS)) as (server, client):
        with pytest.raises(openai.APIConnectionError):
            await hear(client, heard, stream=True)
    assert (heard.text, heard.finish_reason, len(heard.chunks)) == (text, None, chunks)
    assert server.calls[0].outcome is Outcome.CUT


async def test_half_a_chunk_is_sent_before_a_cut_inside_it() -> None:
    async with serving(Cut(chunks=2, inside=True, reply=LETTERS)) as (_, client):
        *whole, half = await pieces(client)
    assert [piece.endswith(b"}\n\n") for piece in whole] == [True, True]
    assert half.startswith(b'data: {"id"')
    assert not half.endswith(b"\n")


@BOTH
@pytest.mark.parametrize(("reset", "cause"), [(True, httpx2.ReadError), (False, httpx2.RemoteProtocolError)])
async def test_a_connection_that_is_reset(reset: bool, cause: type[Exception], stream: bool) -> None:
    async with serving(Cut(chunks=1, reset=reset)) as (server, client):
        with pytest.raises(openai.APIConnectionError) as caught:
            await ask(client, stream=stream)
    assert isinstance(caught.value.__cause__, cause)
    assert server.calls[0].outcome is Outcome.CUT


async def test_without_http_chunks_a_cut_looks_like_an_end() -> None:
    """Which is why a reader must want the finish reason: the client reports nothing."""
    letters = Reply("abcdefgh", wire=Wire(chunk_chars=2, close_framed=True))
    async with serving(Cut(chunks=3, reply=letters)) as (_, client):
        heard = await ask(client, stream=True)
    assert (heard.text, heard.finish_reason) == ("abcd", None)


async def test_a_stream_may_end_early_and_in_order() -> None:
    async with serving(Reply("abcdefgh", wire=Wire(chunk_chars=2, end_after=3))) as (server, client):
        heard = await ask(client, stream=True)
    assert (heard.text, heard.finish_reason, heard.usage) == ("abcd", None, None)
    assert server.calls[0].outcome is Outcome.ANSWERED


@pytest.mark.parametrize("done", [False, True])
async def test_an_error_in_a_stream(done: bool) -> None:
    heard = Heard()
    async with serving(StreamError(3, {"message": "out of memory"}, done=done, reply=LETTERS)) as (_, client):
        with pytest.raises(openai.APIError, match="out of memory") as caught:
            await hear(client, heard, stream=True)
        assert not isinstance(caught.value, openai.APIStatusError | openai.APIConnectionError)
        assert heard.text == "abcd"
        assert b"".join(await pieces(client)).endswith(b"data: [DONE]\n\n") is done
        with pytest.raises(openai.InternalServerError, match="out of memory"):
            await ask(client, stream=False)
