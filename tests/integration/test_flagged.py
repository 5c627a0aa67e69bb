"""``guardrail flagged`` on a real Kafka: every case stored, once, whatever fails or is killed."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from aiokafka import AIOKafkaProducer

from consumers.cases import CaseFilter, CaseRow, CaseStore, NewCase, open_store
from consumers.flagged import FlaggedSubscriber, Webhook, group_of, read_cases
from consumers.reading import Range, open_topic
from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from guardrail.errors import CaseStoreError
from tests.support.cases import flagged_case
from tests.support.kafka_broker import free_ports
from tests.support.kafka_guards import in_a_file, own_settings
from tests.support.programs import running
from tests.support.webhook_server import WebhookServer

pytestmark = pytest.mark.kafka

KEY = bytes(range(32))


class Side:
    """A flagged topic of its own, and a transactional writer, as the guard is one."""

    def __init__(self, settings: KafkaSettings, url: str) -> None:
        self.settings = settings
        self.url = url
        self.producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap_servers, transactional_id=settings.group_id
        )

    async def write(self, *values: bytes, abort: bool = False) -> None:
        await self.producer.begin_transaction()
        for number, value in enumerate(values):
            await self.producer.send_and_wait(self.settings.topics.flagged, value, key=b"%d" % number)
        await (self.producer.abort_transaction() if abort else self.producer.commit_transaction())

    async def write_cases(self, *numbers: int, abort: bool = False) -> None:
        await self.write(*(flagged_case(number).to_json() for number in numbers), abort=abort)

    async def stored(self, least: int) -> Sequence[CaseRow]:
        """The cases in the store, once there are so many."""
        async with asyncio.timeout(60), open_store(self.url, "store", create=True) as store:
            while True:
                rows = await store.newest(CaseFilter(), 999)
                if len(rows) >= least:
                    return rows

    async def committed(self) -> int:
        from aiokafka.admin import AIOKafkaAdminClient

        admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.bootstrap_servers)
        await admin.start()
        try:
            found = await admin.list_consumer_group_offsets(group_of(self.settings))
            return sum(max(0, one.offset) for one in found.values())
        finally:
            await admin.close()


@pytest.fixture
async def side(kafka_bootstrap: str, tmp_path: Path) -> AsyncIterator[Side]:
    made = Side(own_settings(kafka_bootstrap), f"sqlite:///{tmp_path}/cases.db")
    await create_topics(made.settings, partitions=2, replication_factor=1)
    await made.producer.start()
    yield made
    await made.producer.stop()


@asynccontextmanager
async def subscribed(
    side: Side, store: CaseStore, webhook: Webhook | None = None, retries_s: Sequence[float] = (0.01,) * 3
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    subscriber = FlaggedSubscriber(side.settings, store, webhook=webhook, retries_s=retries_s)
    async with asyncio.TaskGroup() as group:
        group.create_task(subscriber.run(stop))
        yield
        stop.set()


async def test_committed_cases_are_stored_once_and_what_is_none_is_passed_over(side: Side) -> None:
    await side.write_cases(1, 2)
    await side.write_cases(7, abort=True)
    await side.write(b"not json", b'{"type":"case.flagged","schema":99}', b"")
    await side.write_cases(2, 3)
    async with open_store(side.url, "store", create=True) as store:
        async with subscribed(side, store):
            rows = await side.stored(3)
        assert {row.id for row in rows} == {"case-1", "case-2", "case-3"}
        assert {row.webhook for row in rows} == {"none"}
        before = await side.committed()
        await side.write_cases(4)
        async with subscribed(side, store):
            assert len(await side.stored(4)) == 4
        assert await side.committed() > before > 0


async def test_nothing_is_committed_that_the_store_did_not_take(side: Side) -> None:
    class Full:
        def __init__(self, store: CaseStore, fails: int) -> None:
            self.store = store
            self.fails = fails

        async def add(self, cases: Sequence[NewCase], *, notify: bool) -> int:
            self.fails -= 1
            if self.fails >= 0:
                raise CaseStoreError("disk full")
            return await self.store.add(cases, notify=notify)

    await side.write_cases(1, 2, 3)
    async with open_store(side.url, "store", create=True) as store:
        with pytest.raises(ExceptionGroup) as raised:
            async with subscribed(side, Full(store, 99)):  # type: ignore[arg-type]
                await asyncio.Event().wait()
        assert raised.group_contains(CaseStoreError, match="disk full")
        assert await side.committed() == 0
        async with subscribed(side, Full(store, 2)):  # type: ignore[arg-type]
            assert len(await side.stored(3)) == 3


async def test_a_webhook_that_fails_keeps_no_case_from_being_stored(side: Side) -> None:
    async with WebhookServer([0, 500, 500]) as server, open_store(side.url, "store", create=True) as store:
        webhook = Webhook(store, server.url, KEY)
        async with subscribed(side, store, webhook):
            await side.write_cases(1, 2, 3)
            await side.stored(3)
            await server.got(3)
            await side.write_cases(4)
            await side.stored(4)
            await server.got(4)
        await webhook.aclose()
        rows = {row.id: row for row in await store.newest(CaseFilter(), 9)}
        assert rows["case-4"].webhook == "sent"
        assert {rows[f"case-{number}"].webhook for number in (1, 2, 3)} == {"pending"}


async def ops_page(port: int, path: str) -> str:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://127.0.0.1:{port}{path}")).raise_for_status().text


async def test_a_process_that_is_killed_goes_on_where_it_was(side: Side, tmp_path: Path) -> None:
    """Killed twice while cases come, then ended by SIGTERM: all are stored and posted."""
    secret = "whsec_" + base64.b64encode(KEY).decode()
    async with WebhookServer() as server:
        [port] = free_ports(1)
        config = {
            "kafka": in_a_file(side.settings, session_timeout_ms=6_000, heartbeat_interval_ms=1_000),
            "flagged": {"store": side.url, "webhook_url": server.url, "webhook_secret": secret},
        }
        told = ""
        for number in range(3):
            with running(tmp_path, config, "flagged", ops_port=port) as subscriber:  # killed at its end
                await side.write_cases(*range(20 * number, 20 * number + 20))
                await side.stored(20 * number + 20)
                await server.got(1)
                if number == 2:
                    # The first processes' leases end by themselves; those posts aren't waited for.
                    await server.got(20 * number)
                    metrics = await ops_page(port, "/metrics")
                    assert (await ops_page(port, "/readyz")).strip() == "ok"
                    assert await subscriber.ends() == 0
            told += str(subscriber.lines())
        assert re.search(r'guardrail_cases_total\{outcome="stored"\} [1-9]', metrics)
        assert re.search(r'guardrail_webhook_posts_total\{outcome="sent"\} [1-9]', metrics)
        rows = await side.stored(60)
        assert {row.id for row in rows} == {f"case-{number}" for number in range(60)}
        posted = {post.headers["webhook-id"] for post in server.posts}
        assert {row.id for row in rows if row.webhook == "sent"} <= posted
    assert "flagged.started" in told
    assert "Returns" not in told
    assert secret not in told


async def test_cases_are_read_from_the_topic_alone(side: Side) -> None:
    await side.write_cases(1, 2)
    await side.write(b"not json")
    await side.write_cases(3, abort=True)
    found = [case.case.id async for case in read_cases(side.settings)]
    assert sorted(found) == ["case-1", "case-2"]


@pytest.mark.parametrize("held", [20_000, 2])
async def test_what_is_there_is_read_by_time_and_then_what_comes(
    side: Side, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Kafka gives one partition after the other. Where not all of it may be held, all of it comes still."""
    monkeypatch.setattr("consumers.reading._MOST_HELD", held)
    topic = side.settings.topics.flagged
    async with AIOKafkaProducer(bootstrap_servers=side.settings.bootstrap_servers) as producer:

        async def write(at_ms: int, partition: int) -> None:
            await producer.send_and_wait(topic, b"%d" % at_ms, partition=partition, timestamp_ms=at_ms)

        for partition in (0, 1):
            for number in range(5):
                await write(1_700_000_000_000 + 2 * number + partition, partition)
        async with open_topic(side.settings, topic, part=Range(since_ms=1_700_000_000_001)) as reader:
            following = reader.follow()
            async with aclosing(following), asyncio.timeout(60):
                there = [(await anext(following)).timestamp_ms - 1_700_000_000_000 for _ in range(9)]
                await write(1_600_000_000_000, 0)
                assert (await anext(following)).value == b"1600000000000"
    assert sorted(there) == list(range(1, 10))
    assert held < 9 or there == sorted(there)
