"""``guardrail serve`` as operators run it: a process, signals, and a real Kafka beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from guardrail.events import GROUP_HEADER, FlaggedCase, ResponseVerdict, parse_output
from tests.conftest import own_broker
from tests.integration.test_shutdown import chat, configuration
from tests.support.chat_upstream import ChatUpstream, events
from tests.support.kafka_broker import free_ports
from tests.support.programs import running
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
                assert 'guardrail_published_events_total{outcome="lost"} 0.0' in await told("metrics")

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
