"""The fault proxy does to connections what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxy import FaultProxy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def ended(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1) == b""
    except ConnectionError:
        return True


@asynccontextmanager
async def echo_behind_proxy() -> AsyncIterator[tuple[FaultProxy, Callable[[], Awaitable[Streams]]]]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    opened: list[asyncio.StreamWriter] = []
    async with FaultProxy(server.sockets[0].getsockname()[:2]) as proxy:

        async def connect() -> Streams:
            streams = await asyncio.open_connection("127.0.0.1", proxy.port)
            opened.append(streams[1])
            return streams

        yield proxy, connect
        for writer in opened:
            writer.close()
    server.close()


async def test_forwards_both_ways_in_order() -> None:
    async with echo_behind_proxy() as (_, connect):
        reader, writer = await connect()
        payload = bytes(range(256)) * 4_000
        writer.write(payload)
        assert await reader.readexactly(len(payload)) == payload


async def test_latency_delays_and_keeps_order() -> None:
    async with echo_behind_proxy() as (proxy, connect):
        reader, writer = await connect()
        proxy.slow(0.05)
        began = asyncio.get_running_loop().time()
        for number in range(20):
            writer.write(bytes([number]))
            await writer.drain()
        assert await reader.readexactly(20) == bytes(range(20))
        assert asyncio.get_running_loop().time() - began >= 0.1, "once each way"


async def test_bandwidth_is_bounded() -> None:
    async with echo_behind_proxy() as (proxy, connect):
        reader, writer = await connect()
        proxy.narrow(100_000)
        began = asyncio.get_running_loop().time()
        writer.write(b"x" * 10_000)
        await reader.readexactly(10_000)
        assert asyncio.get_running_loop().time() - began >= 0.1


async def test_black_hole_keeps_what_was_sent_until_it_heals() -> None:
    async with echo_behind_proxy() as (proxy, connect):
        reader, writer = await connect()
        writer.write(b"before")
        assert await reader.readexactly(6) == b"before"
        proxy.silence()
        writer.write(b"during")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await reader.read(1)
        proxy.heal()
        assert await reader.readexactly(6) == b"during"


async def test_reset_breaks_the_chosen_connections_only() -> None:
    async with echo_behind_proxy() as (proxy, connect):
        pairs = [await connect() for _ in range(3)]
        for reader, writer in pairs:
            writer.write(b"x")
            await reader.readexactly(1)
        assert proxy.reset(lambda number: number != 1) == 2
        ends = 0
        for reader, writer in pairs:
            writer.write(b"y")
            ends += await ended(reader)
        assert ends == 2
        assert proxy.connections == 1


async def test_refuses_new_connections_and_survives_a_target_that_is_away() -> None:
    async with echo_behind_proxy() as (proxy, connect):
        proxy.refuse()
        reader, _ = await connect()
        assert await ended(reader)
        proxy.heal()
        reader, writer = await connect()
        writer.write(b"back")
        assert await reader.readexactly(4) == b"back"
        proxy.target = ("127.0.0.1", 1)
        reader, _ = await connect()
        assert await ended(reader)
