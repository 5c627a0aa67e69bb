"""A guard whose Kafka goes, comes back, and comes back empty: it says so once, and goes on by itself."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import httpx2
import pytest
from aiokafka import AIOKafkaProducer

from consumers.cases import CaseFilter, open_store
from consumers.kafka import connect_admin
from consumers.settings import KafkaSettings
from tests.conftest import own_broker
from tests.integration.test_shutdown import EVENTS, answered_once, chat, configuration
from tests.support.cases import flagged_case
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.programs import call, running, until

pytestmark = pytest.mark.kafka


@pytest.fixture
def port() -> int:
    (found,) = free_ports(1)
    return found


def broker(request: pytest.FixtureRequest, port: int) -> KafkaBroker:
    return own_broker(request.config, port=port)


async def test_a_broker_that_goes_and_comes_back_is_told_once_each(
    request: pytest.FixtureRequest, port: int, tmp_path: Path
) -> None:
    with broker(request, port) as kafka:
        config = configuration(kafka.bootstrap_servers)
        (ops_port,) = free_ports(1)

        async def told(path: str) -> str:
            async with httpx2.AsyncClient() as client:
                return (await client.get(f"http://127.0.0.1:{ops_port}/{path}")).text

        async with chat(config) as side:
            with running(tmp_path, config, ops_port=ops_port) as guard:
                assert (await guard.logs("guard.ready"))["partitions"] == 2
                assert "guardrail_kafka_away 0.0" in await told("metrics")
                await asyncio.to_thread(kafka.kill)
                away = await guard.logs("guard.kafka_away")
                assert away["servers"] == kafka.bootstrap_servers
                assert "guardrail_kafka_away 1.0" in await told("metrics")
                assert (await told("readyz")).strip() == "waits: Kafka: no broker answers"
                assert (await told("livez")).strip() == "ok", "a restart gains nothing"
                await asyncio.to_thread(kafka.start)
                await guard.logs("guard.kafka_back")
                assert "guardrail_kafka_away 0.0" in await told("metrics")
                await side.send(EVENTS)
                await answered_once(side)
                assert len(guard.lines("guard.kafka_away")) == len(guard.lines("guard.kafka_back")) == 1
                between = [line["event"] for line in guard.lines()]
                at, end = between.index("guard.kafka_away"), between.index("guard.kafka_back")
                quiet = [
                    line for line in guard.lines()[at:end] if line.get("logger", "").startswith("aiokafka")
                ]
                assert quiet == []


async def test_a_broker_that_comes_back_without_topics(
    request: pytest.FixtureRequest, port: int, tmp_path: Path
) -> None:
    config = configuration(f"127.0.0.1:{port}")
    with broker(request, port) as kafka:
        async with chat(config):
            pass  # makes the topics
        with running(tmp_path, config) as guard:
            await guard.logs("guard.ready")
            await asyncio.to_thread(kafka.kill)
            await guard.logs("guard.kafka_away")
            with broker(request, port) as empty:
                missing = await guard.logs("guard.topics_missing")
                wanted = {topic for name, topic in config["kafka"]["topics"].items() if name != "labels"}
                assert set(missing["topics"]) == wanted
                remedy = f"guardrail topics create -c {guard.config} --bootstrap-servers 127.0.0.1:{port}"
                assert missing["remedy"] == f"make them with: {remedy}"
                made = await asyncio.to_thread(call, *remedy.split()[1:], "--partitions", "2")
                assert made.returncode == 0, made.stderr
                await guard.logs("guard.topics_back")
                await guard.logs("guard.ready", times=2)
                async with chat(config) as side:
                    await side.send(EVENTS)
                    await answered_once(side)
                assert len(guard.lines("guard.topics_missing")) == 1
                assert empty.bootstrap_servers == kafka.bootstrap_servers


async def test_the_subscriber_to_cases_stores_on_where_a_broker_comes_back_without_topics(
    request: pytest.FixtureRequest, port: int, tmp_path: Path
) -> None:
    config = configuration(f"127.0.0.1:{port}")
    url = f"sqlite:///{tmp_path}/cases.db"
    config["flagged"] = {"store": url}
    with broker(request, port) as kafka:
        async with chat(config):
            pass  # makes the topics
        with running(tmp_path, config, "flagged") as subscriber:
            await subscriber.logs("flagged.started")
            await asyncio.to_thread(kafka.kill)
            away = await subscriber.logs("guard.kafka_away")
            assert away["effect"].startswith("no case is stored")
            with broker(request, port):
                missing = await subscriber.logs("guard.topics_missing")
                assert missing["topics"] == [config["kafka"]["topics"]["flagged"]]
                remedy = missing["remedy"].removeprefix("make them with: guardrail ")
                made = await asyncio.to_thread(call, *remedy.split(), "--partitions", "2")
                assert made.returncode == 0, made.stderr
                await subscriber.logs("guard.topics_back")
                async with AIOKafkaProducer(bootstrap_servers=f"127.0.0.1:{port}") as producer:
                    for number in range(5):
                        body = flagged_case(number).to_json()
                        await producer.send_and_wait(config["kafka"]["topics"]["flagged"], body)
                await until(lambda: sum(line["new"] for line in subscriber.lines("flagged.stored")) == 5)
                async with open_store(url, "store", create=False) as store:
                    assert await store.count(CaseFilter()) == 5
                assert len(subscriber.lines("guard.topics_missing")) == 1


async def test_the_successor_of_a_guard_that_was_killed_says_what_it_waits_for(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    config = configuration(kafka_bootstrap)
    config["kafka"]["client"]["session_timeout_ms"] = 60_000  # longer than a guard takes to start anywhere
    async with chat(config):
        with running(tmp_path, config) as first:
            await first.logs("guard.ready")
            first.process.kill()
        with running(tmp_path, config) as second:
            waiting = await second.logs("guard.waiting")
            assert waiting["waits_for"].startswith("partitions")
            assert "session_timeout_ms, 60000 ms" in waiting["hint"]
            assert "kafka.group_instance_id" in waiting["hint"]
            await second.logs("guard.ready")


async def test_bootstrap_servers_that_say_nothing_leave_time_for_the_one_that_answers(
    kafka_bootstrap: str,
) -> None:
    """As behind a firewall: connections to two of three brokers open, and nothing comes."""

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with contextlib.AsyncExitStack() as stack:
        silent = []
        for _ in range(2):
            server = await asyncio.start_server(listen, "127.0.0.1", 0)
            stack.callback(server.close)
            silent.append(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        admin = await connect_admin(KafkaSettings(bootstrap_servers=",".join([*silent, kafka_bootstrap])))
        stack.push_async_callback(admin.close)
        assert (await admin.describe_cluster())["brokers"]
