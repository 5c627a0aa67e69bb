"""``guardrail run`` as operators run it: a process, a real Kafka, signals."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from consumers.settings import Topics
from guardrail.events import (
    AnyOutputEvent,
    Context,
    Decision,
    DeliverySegment,
    InputEvent,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    parse_output,
)
from tests.support.llm_server import Hang, LlmServer, Reply, obliging
from tests.support.programs import call, command, environment

pytestmark = pytest.mark.kafka

HEAD: dict[str, Any] = {
    "question": "What does the Pro plan cost?",
    "contexts": (
        Context(id="pricing", text="The Pro plan costs $20 per month. It can be cancelled at any time."),
    ),
}
FAITHFUL = "The Pro plan costs $20 per month."
WRONG = "The Pro plan costs $35 per month."


@pytest.fixture
def config(tmp_path: Path, kafka_bootstrap: str) -> Path:
    """A configuration file with topics and a group of its own."""
    tag = uuid.uuid4().hex
    path = tmp_path / "guardrail.yaml"
    kafka = {
        "bootstrap_servers": kafka_bootstrap,
        "group_id": f"guards-{tag}",
        "topics": {field: f"{field}-{tag}" for field in Topics.model_fields},
    }
    path.write_text(yaml.safe_dump({"kafka": kafka}), encoding="utf-8")
    return path


def add_to(config: Path, **sections: Any) -> None:
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    config.write_text(yaml.safe_dump(settings | sections), encoding="utf-8")


def topics_of(config: Path) -> Topics:
    return Topics.model_validate(yaml.safe_load(config.read_text(encoding="utf-8"))["kafka"]["topics"])


@pytest.fixture
def guard(config: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The topics, and a guard that runs; its log is in ``guard.log``."""
    created = call("topics", "create", "--config", str(config), "--partitions", "2")
    assert created.returncode == 0, created.stderr
    with running(config, tmp_path / "guard.log") as process:
        yield process


@contextmanager
def running(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A guard that runs while the block does."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command("run", "--config", str(config)), stderr=stream, env=environment())
        try:
            yield process
        finally:
            process.kill()
            process.wait(timeout=30)


@asynccontextmanager
async def kafka(bootstrap: str, *topics: str) -> AsyncIterator[tuple[AIOKafkaProducer, AIOKafkaConsumer]]:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    consumer = AIOKafkaConsumer(*topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await producer.start()
    await consumer.start()
    try:
        yield producer, consumer
    finally:
        await consumer.stop()
        await producer.stop()


async def verdict_of(
    consumer: AIOKafkaConsumer, response_id: str
) -> tuple[ResponseVerdict, list[AnyOutputEvent]]:
    """Read until the verdict on a response and its last delivery have come."""
    events: list[AnyOutputEvent] = []
    async for record in consumer:
        event = parse_output(record.value)
        if event.response_id == response_id:
            events.append(event)
        kinds = {each.type for each in events}
        if "verdict.response" in kinds and kinds & {"delivery.completed", "delivery.blocked"}:
            break
    return next(each for each in events if isinstance(each, ResponseVerdict)), events


async def wait_for(process: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(process.wait, 60)


async def test_it_guards_until_sigterm_and_leaves_cleanly(
    config: Path, guard: subprocess.Popen[bytes], kafka_bootstrap: str, tmp_path: Path
) -> None:
    topics = topics_of(config)
    async with kafka(kafka_bootstrap, topics.verdicts, topics.deliveries) as (producer, consumer):
        sent: list[InputEvent] = [
            ResponseStarted(response_id="faithful", **HEAD),
            *(ResponseDelta(response_id="faithful", seq=i, text=char) for i, char in enumerate(FAITHFUL)),
            ResponseCompleted(response_id="faithful", seq=len(FAITHFUL)),
            Response(response_id="wrong", answer=WRONG, **HEAD),
        ]
        for event in sent:
            await producer.send_and_wait(topics.responses, event.to_json(), key=event.response_id.encode())
        verdict, events = await verdict_of(consumer, "faithful")
        assert verdict.decision is Decision.RELEASE
        delivered = [event for event in events if isinstance(event, DeliverySegment)]
        assert "".join(event.text for event in sorted(delivered, key=lambda event: event.seq)) == FAITHFUL
        await consumer.seek_to_beginning()
        verdict, _ = await verdict_of(consumer, "wrong")
        assert verdict.decision is not Decision.RELEASE
    guard.send_signal(signal.SIGTERM)
    assert await wait_for(guard) == 0
    log = (tmp_path / "guard.log").read_text(encoding="utf-8")
    events_logged = [json.loads(line)["event"] for line in log.splitlines()]
    assert {"guard.starting", "guard.assigned", "guard.stopping", "guard.stopped"} <= set(events_logged)
    assert "Pro plan" not in log


async def test_a_standstill_of_the_guard_is_not_charged_to_the_claims_in_flight(
    config: Path, kafka_bootstrap: str, tmp_path: Path
) -> None:
    """The call in flight gets no answer: it has no time left when the guard goes on, but the claim has."""
    topics = topics_of(config)
    assert call("topics", "create", "--config", str(config), "--partitions", "1").returncode == 0
    async with (
        LlmServer(Hang(), Reply(obliging)) as server,  # one after the other
        kafka(kafka_bootstrap, topics.verdicts, topics.deliveries) as (producer, consumer),
    ):
        llm = {"base_url": server.url, "model": "m", "api_key": "none"}
        policy = {"claim_timeout_ms": 4_000, "on_unverified": "fail_closed"}
        add_to(config, judge={"kind": "llm", "llm": llm}, policies={"default": policy})
        with running(config, tmp_path / "guard.log") as frozen:
            event = Response(response_id="faithful", answer=FAITHFUL, **HEAD)
            await producer.send_and_wait(topics.responses, event.to_json(), key=b"faithful")
            await server.until_calls(1)
            frozen.send_signal(signal.SIGSTOP)
            await asyncio.sleep(5.0)
            frozen.send_signal(signal.SIGCONT)
            verdict, _ = await verdict_of(consumer, "faithful")
    assert verdict.decision is Decision.RELEASE
    assert "guard.stood_still" in (tmp_path / "guard.log").read_text(encoding="utf-8")


def change(config: Path, **policy: str) -> None:
    """Give the same configuration a default policy, as editors do: a new file takes the name of the old."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    other = config.with_suffix(".new")
    other.write_text(yaml.safe_dump({**settings, "policies": {"default": {"mode": "hold", **policy}}}))
    other.replace(config)


@asynccontextmanager
async def lines_of(log: Path) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    """The lines of a log as they come."""

    async def lines() -> AsyncIterator[dict[str, Any]]:
        rest = ""
        with log.open(encoding="utf-8") as stream:
            while True:
                rest += stream.read()
                *whole, rest = rest.split("\n")
                for line in whole:
                    yield json.loads(line)
                await asyncio.sleep(0.05)

    found = lines()
    try:
        yield found
    finally:
        await found.aclose()  # type: ignore[attr-defined]


async def test_policies_follow_the_file(config: Path, kafka_bootstrap: str, tmp_path: Path) -> None:
    """Changed while an answer is under way, which keeps its policy; a wrong one changes nothing."""
    assert call("topics", "create", "--config", str(config), "--partitions", "2").returncode == 0
    change(config, version="1")
    topics, log = topics_of(config), tmp_path / "guard.log"
    with running(config, log) as guard:
        async with (
            lines_of(log) as lines,
            kafka(kafka_bootstrap, topics.verdicts, topics.deliveries) as (producer, consumer),
        ):

            async def send(*events: InputEvent) -> None:
                for event in events:
                    key = event.response_id.encode()
                    await producer.send_and_wait(topics.responses, event.to_json(), key=key)

            async def told(name: str) -> dict[str, Any]:
                return await anext(line async for line in lines if line["event"] == name)

            async def version_of(response_id: str) -> str:
                await consumer.seek_to_beginning()
                return (await verdict_of(consumer, response_id))[0].policy.version

            await send(
                ResponseStarted(response_id="begun", **HEAD),
                Response(response_id="first", answer=FAITHFUL, **HEAD),
            )
            assert await version_of("first") == "1"
            change(config, version="2")
            assert (await told("config.reloaded"))["changed"] == ["policies"]
            await send(Response(response_id="second", answer=FAITHFUL, **HEAD))
            assert await version_of("second") == "2"
            change(config, version="3", mode="holt")
            assert "holt" in str((await told("config.reload_failed"))["errors"])
            await send(
                Response(response_id="third", answer=FAITHFUL, **HEAD),
                ResponseDelta(response_id="begun", seq=0, text=FAITHFUL),
                ResponseCompleted(response_id="begun", seq=1),
            )
            assert await version_of("third") == "2"
            assert await version_of("begun") == "1"
        guard.send_signal(signal.SIGTERM)
        assert await wait_for(guard) == 0


def test_topics_may_be_made_again(config: Path) -> None:
    first = call("topics", "create", "--config", str(config), "--partitions", "2")
    second = call("topics", "create", "--config", str(config), "--partitions", "3")
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.count("created") == len(topics_of(config).names()) + 1
    assert "2 partitions instead of 3" in second.stdout


def test_missing_topics_are_one_message_with_the_remedy(config: Path) -> None:
    done = call("run", "--config", str(config), "--log-level", "error")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "guardrail topics create" in done.stderr


def test_more_replicas_than_brokers_is_wrong_usage(config: Path) -> None:
    done = call("topics", "create", "--config", str(config), "--replication-factor", "9")
    assert done.returncode == 2
    assert "--replication-factor" in done.stderr
    assert "Traceback" not in done.stderr
