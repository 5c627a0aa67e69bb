"""``guardrail serve`` as operators run it: a process, signals, and a real Kafka beside it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from guardrail.events import GROUP_HEADER, FlaggedCase, ResponseVerdict, parse_output
from tests.conftest import own_broker
from tests.integration.test_shutdown import chat, configuration
from tests.support.chat_upstream import ChatUpstream, events
from tests.support.kafka_broker import free_ports
from tests.support.programs import running, until
from tests.support.transports import committed

PLANS = "The basic plan costs $49 a month."
RIGHT = "The basic plan costs $49 a month. "
WRONG = "The basic plan costs $79 a month. "
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def asked(**more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "What does it cost?"}]
    return {"model": "m", "messages": messages, "guardrail": {"contexts": [PLANS]}, "stream": True, **more}


@pytest.mark.kafka
async def test_verdicts_and_cases_are_on_kafka_and_no_answer_waits_for_it(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    port, ops_port = free_ports(2)
    with own_broker(request.config, port=port) as kafka:
        config = configuration(kafka.bootstrap_servers)
        topics = config["kafka"]["topics"]
        async with chat(config), ChatUpstream() as upstream, httpx2.AsyncClient(timeout=60) as client:
            upstream.streams(events(RIGHT, WRONG))
            config["serve"] = {"port": 0, "upstream": upstream.url, "publish": True}
            with running(tmp_path, config, "serve", ops_port=ops_port) as gateway:
                serving = (await gateway.logs("serve.listening"))["port"]
                await gateway.logs("serve.publishing")

                async def answered() -> str:
                    url = f"http://127.0.0.1:{serving}/v1/chat/completions"
                    return (await client.post(url, json=asked(), headers={"traceparent": TRACE})).text

                async def told(path: str) -> str:
                    return (await client.get(f"http://127.0.0.1:{ops_port}/{path}")).text

                assert "content_filter" in await answered()
                await until_on(kafka.bootstrap_servers, topics["flagged"], 1)
                assert await told("readyz") == "ok\n"

                await asyncio.to_thread(kafka.kill)
                for _ in range(3):
                    assert "content_filter" in await answered()
                await until_told(told, "readyz", "ok, but verdicts are not published")
                await asyncio.to_thread(kafka.start)
                await until_told(told, "readyz", "ok\n")
                metrics = await told("metrics")
                assert 'guardrail_published_events_total{outcome="lost"} 0.0' in metrics
                assert "guardrail_sessions 0.0" in metrics

                assert "content_filter" in await answered()
                assert await gateway.ends() == 0  # which writes what waits
            cases = await committed(kafka.bootstrap_servers, topics["flagged"])
            verdicts = await committed(kafka.bootstrap_servers, topics["verdicts"])
            assert await committed(kafka.bootstrap_servers, topics["deliveries"]) == []
    read = [parse_output(each.value or b"") for each in cases]
    assert len({each.response_id for each in read}) == 5
    for event, record in zip(read, cases, strict=True):
        assert isinstance(event, FlaggedCase)
        assert (record.key, event.contexts[0].text) == (event.response_id.encode(), PLANS)
        assert dict(record.headers) == {
            "traceparent": TRACE.encode(),
            GROUP_HEADER: config["kafka"]["group_id"].encode(),
        }
    decided = [parse_output(each.value or b"") for each in verdicts]
    assert {each.response_id for each in decided if isinstance(each, ResponseVerdict)} == {
        each.response_id for each in read
    }


async def until_on(bootstrap: str, topic: str, number: int) -> None:
    """Wait for as many records."""
    while len(await committed(bootstrap, topic)) < number:  # noqa: ASYNC110 - Kafka is looked at
        await asyncio.sleep(0.1)


async def until_told(told: Any, path: str, text: str) -> None:
    """Wait until it begins so; all of it, where a line ends."""
    while not (said := await told(path)).startswith(text) or said != text == "ok\n":  # noqa: ASYNC110
        await asyncio.sleep(0.1)


@asynccontextmanager
async def balanced(*ports: int) -> AsyncIterator[int]:
    """A port of which each connection goes to the first of these that takes it."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in ports:
            with suppress(ConnectionError):
                there = await asyncio.open_connection("127.0.0.1", port)
                async with asyncio.TaskGroup() as group:
                    group.create_task(pump(reader, there[1]))
                    group.create_task(pump(there[0], writer))
                return
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_rolling_restart_breaks_no_answer_that_ends_in_time(tmp_path: Path) -> None:
    ops_port, *_ = free_ports(1)
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(ChatUpstream())
        upstream.streams(events(*[RIGHT] * 20))
        upstream.holds_before = 10
        config = {"serve": {"port": 0, "upstream": upstream.url}}
        old = stack.enter_context(running(tmp_path, config, "serve", ops_port=ops_port))
        new = stack.enter_context(running(tmp_path, config, "serve"))
        ports = [(await each.logs("serve.listening"))["port"] for each in (old, new)]
        port = await stack.enter_async_context(balanced(*ports))
        client = await stack.enter_async_context(httpx2.AsyncClient(timeout=60))

        async def answered() -> tuple[int, str]:
            # Each on a connection of its own, as callers are.
            headers = {"Connection": "close"}
            url = f"http://127.0.0.1:{port}/v1/chat/completions"
            reply = await client.post(url, json=asked(), headers=headers)
            return reply.status_code, reply.text

        async def readiness() -> tuple[int, str]:
            reply = await client.get(f"http://127.0.0.1:{ops_port}/readyz")
            return reply.status_code, reply.text.strip()

        assert await readiness() == (200, "ok")
        before = [asyncio.create_task(answered()) for _ in range(20)]
        await until(lambda: len(upstream.asked) == 20)
        ending = asyncio.create_task(old.ends())
        await old.logs("guard.stopping")
        assert await readiness() == (503, "waits: it drains")
        await refused(ports[0])
        after = [asyncio.create_task(answered()) for _ in range(5)]
        await until(lambda: len(upstream.asked) == 25)
        assert not any(each.done() for each in (*before, *after, ending))
        upstream.going_on.set()
        for status, text in await asyncio.gather(*before, *after):
            assert (status, text.endswith("data: [DONE]\n\n")) == (200, True)
            assert text.count("$49") == 20
        assert await ending == 0
        assert "guard.stopped" in old.events()
    assert [len(each.lines("serve.request")) for each in (old, new)] == [20, 5]


async def refused(port: int) -> None:
    """Wait until nobody listens there."""
    with suppress(ConnectionRefusedError):
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await asyncio.sleep(0.02)


async def test_keys_are_read_anew_and_a_wrong_file_changes_nothing(tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    keys.write_text(yaml.safe_dump([entry("first")]))
    config = {"serve": {"port": 0, "keys": {"file": str(keys)}}}
    with running(tmp_path, config, "serve") as gateway:
        port = (await gateway.logs("serve.listening"))["port"]
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:

            async def knows(key: str) -> bool:
                return (
                    await client.get("/openapi.json", headers={"x-guardrail-key": key})
                ).status_code == 200

            assert (await knows("first"), await knows("second")) == (True, False)
            keys.write_text("- {name: second, sha256: wrong}")
            failed = await gateway.logs("config.reload_failed")
            assert (failed["path"], "sha256" in str(failed["errors"])) == (str(keys), True)
            assert (await knows("first"), await knows("second")) == (True, False)
            keys.write_text(yaml.safe_dump([entry("second")]))
            assert (await gateway.logs("serve.keys_reloaded"))["changed"] == ["first", "second"]
            assert (await knows("first"), await knows("second")) == (False, True)
            gateway.config.write_text(
                yaml.safe_dump({**config, "policies": {"default": {"mode": "observe"}}})
            )
            assert (await gateway.logs("config.reloaded"))["changed"] == ["policies"]


def entry(key: str) -> dict[str, str]:
    return {"name": key, "sha256": hashlib.sha256(key.encode()).hexdigest()}
