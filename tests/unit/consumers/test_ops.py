"""Health and metrics over HTTP, and what the log says of responses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from structlog.testing import capture_logs

from consumers.dead_letters import REASONS
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.ops import Health, OpsServer, ResponseLog
from consumers.transport import Partition, Restored
from guardrail import telemetry
from guardrail.errors import ConfigError, StepFailed
from guardrail.events import Response
from guardrail.limits import Limits
from guardrail.policy import Policy
from tests.support.guards import (
    TOPICS,
    DeliveryGuarantee,
    events_of,
    guard_on,
    member,
    member_of,
    new_broker,
    running_guard,
    send,
    until,
)
from tests.support.judges import GatedJudge

WRONG = "Paris is in France. It costs wrong $79. Oslo is in Norway. "


async def ask(port: int, request: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    await writer.drain()
    reply = (await reader.read()).decode()
    writer.close()
    head, _, body = reply.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def get(port: int, path: str, method: str = "GET", body: str = "") -> tuple[int, str]:
    return await ask(
        port, f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


async def test_probes_say_what_is_waited_for() -> None:
    health = Health()
    async with OpsServer(health).listening("127.0.0.1", 0) as port:
        assert port is not None
        assert await get(port, "/livez") == (200, "ok\n")
        assert (await get(port, "/startupz"))[0] == 503
        assert await get(port, "/readyz") == (503, "waits: the guard starts\n")
        health.started, health.waits_for = True, lambda: ""
        assert (await get(port, "/startupz"))[0] == 200
        assert await get(port, "/readyz?verbose") == (200, "ok\n")
        health.note = lambda: "one is slow"
        assert await get(port, "/readyz") == (200, "ok, but one is slow\n")


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        ("nonsense\r\n\r\n", 400),
        ("POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n" + "x" * 9999, 413),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: " + "a" * 40_000 + "\r\n\r\n", 431),
    ],
)
async def test_requests_that_can_not_be_answered_are_refused(request_text: str, status: int) -> None:
    async with OpsServer(Health()).listening("127.0.0.1", 0) as port:
        assert port is not None
        assert (await ask(port, request_text))[0] == status


async def test_a_client_that_never_ends_its_request_does_not_keep_the_guard_from_ending() -> None:
    async with asyncio.timeout(5), OpsServer(Health()).listening("127.0.0.1", 0) as port:
        assert port is not None
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /livez HT")
        await writer.drain()
        await get(port, "/livez")  # the first one is being read by now
    writer.close()


async def test_a_port_that_is_taken_is_logged_and_nothing_else() -> None:
    async with OpsServer(Health()).listening("127.0.0.1", 0) as port:
        with capture_logs() as logs:
            async with OpsServer(Health()).listening("127.0.0.1", port) as second:
                assert second is None
    assert [event["event"] for event in logs] == ["ops.not_listening"]
    assert "ops.port" in logs[0]["remedy"]


async def test_reload_is_answered_with_what_came_of_it() -> None:
    async def reload() -> str:
        raise ConfigError("guardrail.yaml:3: no such setting")

    async with OpsServer(Health(), reload).listening("127.0.0.1", 0) as port:
        assert port is not None
        assert await get(port, "/reload", "POST") == (422, "guardrail.yaml:3: no such setting\n")
    async with OpsServer(Health()).listening("127.0.0.1", 0) as port:
        assert port is not None
        assert (await get(port, "/reload", "POST"))[0] == 409


async def test_a_reload_that_takes_long_is_answered_before_the_caller_loses_patience() -> None:
    done = asyncio.Event()

    async def reload() -> str:
        await done.wait()
        return "unchanged"

    async with OpsServer(Health(), reload, reload_s=0.01).listening("127.0.0.1", 0) as port:
        assert port is not None
        status, said = await get(port, "/reload", "POST")
        assert status == 503
        assert "config.reload_failed" in said


async def test_the_log_level_changes_while_it_runs() -> None:
    ours = logging.getLogger("guardrail")
    async with OpsServer(Health()).listening("127.0.0.1", 0) as port:
        assert port is not None
        assert await get(port, "/loglevel", "PUT", "debug") == (200, "debug\n")
        assert ours.level == logging.DEBUG
        assert (await get(port, "/loglevel", "PUT", "loud"))[0] == 422
        assert ours.level == logging.DEBUG


def value(name: str, **labels: str) -> float:
    return telemetry.REGISTRY.get_sample_value(name, labels) or 0.0


async def test_what_a_guard_did_and_holds_is_in_the_metrics_and_the_log() -> None:
    def blocked() -> float:
        return value("guardrail_responses_total", policy="default", decision="block", complete="false")

    before = {
        "blocked": blocked(),
        "released": value("guardrail_segments_total", decision="release"),
        "dead": value("guardrail_dead_letters_total", reason="invalid_json"),
    }
    broker = new_broker(2)
    with capture_logs() as logs:
        async with reading_guard(broker) as guard:
            open_answer = events_of("open", "Paris is in France. ")
            send(broker, [*events_of("wrong", WRONG), *open_answer[:-1]])
            broker.append(TOPICS.responses, b"bad", b"{")
            await until(lambda: blocked() > before["blocked"])
            await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
            telemetry.serve_state(guard.state)
            try:
                assert value("guardrail_sessions") == 1
                assert value("guardrail_ready") == 1
                assert value("guardrail_partitions", state="ready") == 2
                assert value("guardrail_partition_lag_records", topic=TOPICS.responses, partition="0") == 0
                assert telemetry.REGISTRY.get_sample_value("guardrail_oldest_unreleased_seconds") is not None
            finally:
                telemetry.serve_state(None)
    assert value("guardrail_segments_total", decision="release") == before["released"] + 1
    assert value("guardrail_dead_letters_total", reason="invalid_json") == before["dead"] + 1
    told = {event["response_id"]: event for event in logs if event["event"] == "guard.response"}
    assert told["wrong"]["decision"] == "block"
    assert told["wrong"]["rule"]
    assert told["wrong"]["deciding_claim"] == 2, "its number, no text"
    assert "France" not in str(logs)
    rules = {"policy": "default", "rule": "on_unverified: fail_closed", "decision": "block"}
    begun = telemetry.REGISTRY.get_sample_value("guardrail_decisions_total", rules)
    assert begun is not None, "with the policy's first answer, not with the first that could not be checked"
    summary = [event for event in logs if event["event"] == "guard.summary"]
    assert summary[-1]["responses"] >= 1


async def test_gauges_of_a_guard_that_waits_for_partitions_are_absent_where_unknown() -> None:
    guard = guard_on(new_broker(1))
    telemetry.serve_state(guard.state)
    try:
        assert telemetry.REGISTRY.get_sample_value("guardrail_oldest_unreleased_seconds") is None
        assert value("guardrail_sessions") == 0
        assert value("guardrail_ready") == 0
    finally:
        telemetry.serve_state(None)


def test_counters_begin_with_0_where_their_labels_are_known() -> None:
    """Prometheus sees no increase in a series that is born with its first count."""
    begun: list[tuple[str, dict[str, str]]] = [
        *(("guardrail_dead_letters_total", {"reason": reason}) for reason in REASONS),
        *(("guardrail_blocks_total", {"shown": shown}) for shown in ("true", "false")),
        ("guardrail_unverified_total", {"reason": "no verdict in time"}),
        ("guardrail_rebalances_total", {"event": "revoked"}),
    ]
    absent = [one for one in begun if telemetry.REGISTRY.get_sample_value(*one) is None]
    assert not absent


HOUR_S = 3_600
PARTITION = Partition(TOPICS.responses, 0)


@asynccontextmanager
async def reading_guard(*place: Any, **options: Any) -> AsyncIterator[GuardConsumer]:
    """One that has its partitions."""
    async with running_guard(*place, **options) as guard:
        await until(lambda: not guard.waits_for())
        yield guard


def send_late(broker: MemoryBroker, response_id: str, text: str) -> None:
    """An hour after it was written, says its timestamp."""
    written_ms = int((time.time() - HOUR_S) * 1000)
    for event in events_of(response_id, text):
        broker.append(TOPICS.responses, response_id.encode(), event.to_json(), timestamp_ms=written_ms)


def oldest_s(guard: GuardConsumer) -> float:
    age = guard.state().oldest_held_s
    assert age is not None
    return age


@pytest.mark.parametrize("mode", ["stream", "hold"])
async def test_the_oldest_text_counts_from_when_it_was_written(mode: Literal["stream", "hold"]) -> None:
    judge, broker = GatedJudge(), new_broker(1)
    decided = telemetry.WRITTEN_TO_DECIDED_SECONDS._sum.get()
    async with reading_guard(broker, judge, Policy(mode=mode)) as guard:
        assert oldest_s(guard) == 0
        send_late(broker, "late", "Paris is in France. ")
        await judge.asked.wait()
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
        assert oldest_s(guard) >= HOUR_S
        judge.gate.set()
        await until(lambda: oldest_s(guard) == 0)
    assert telemetry.WRITTEN_TO_DECIDED_SECONDS._sum.get() >= decided + HOUR_S


async def test_text_that_is_held_to_the_end_waits_from_its_end_on() -> None:
    judge, broker = GatedJudge(), new_broker(1)
    judge.gate.set()
    async with reading_guard(broker, judge, Policy(mode="hold")) as guard:
        send(broker, events_of("slow", "Paris is in France. It is old. ", complete=False))
        await until(lambda: bool(judge.requests) and guard.state().pending_claims == 0)
        await until(lambda: oldest_s(guard) == 0)  # its writer is slow, not the guard
        assert guard.state().sessions == 1


async def test_what_is_not_read_was_written_after_what_was() -> None:
    class Behind(MemoryTransport):
        more = 5

        def unread(self, partition: Partition) -> int | None:
            return None if (unread := super().unread(partition)) is None else unread + self.more

    broker = new_broker(1)
    transport = member_of(Behind, broker)
    async with reading_guard(transport) as guard:
        send_late(broker, "late", "Paris is in France. ")
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0 and not guard.state().sessions)
        assert oldest_s(guard) >= HOUR_S
        assert guard.state().partitions[0].lag == 5
        transport.more = 0
        await until(lambda: oldest_s(guard) == 0)


async def test_what_was_read_and_not_taken_up_counts_as_lag() -> None:
    """The judge is behind after the first few."""
    judge, broker = GatedJudge(), new_broker(1)
    transport = member(broker)
    limits = Limits(max_concurrent_judgements=1)
    async with reading_guard(transport, judge, limits=limits) as guard:
        for number in range(40):
            whole = Response(response_id=f"r{number}", answer="Paris is in France.")
            broker.append(TOPICS.responses, b"r", whole.to_json())
        await until(lambda: guard.state().judge_behind and transport.unread(PARTITION) == 0)
        lag, judging_started = guard.state().partitions[0].lag, guard.state().sessions
        assert 0 < judging_started < 40
        assert lag == 40 - judging_started
        judge.gate.set()
        await until(lambda: guard.state().partitions[0].lag == 0)


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
async def test_text_that_cannot_be_written_keeps_ageing(guarantee: DeliveryGuarantee) -> None:
    written = asyncio.Event()

    class Stuck(MemoryTransport):
        async def transact(self, *step: Any) -> None:
            if step[1]:
                await written.wait()
            await super().transact(*step)

        async def publish(self, *writing: Any) -> None:
            if writing[0]:
                await written.wait()
            await super().publish(*writing)

    broker = new_broker(1)
    async with reading_guard(member_of(Stuck, broker), delivery_guarantee=guarantee) as guard:
        send(broker, events_of("r", "Paris is in France. "))
        await until(lambda: not guard.state().sessions and oldest_s(guard) > 0)
        before = oldest_s(guard)
        await until(lambda: oldest_s(guard) > before)
        written.set()
        await until(lambda: oldest_s(guard) == 0)


async def test_a_partition_that_is_taken_up_anew_counts_as_restoring() -> None:
    failed, back = asyncio.Event(), asyncio.Event()

    class Fails(MemoryTransport):
        async def transact(self, *step: Any) -> None:
            if not failed.is_set():
                failed.set()
                raise StepFailed("no answer")
            await super().transact(*step)

        async def recover(self, partition: Partition) -> Restored:
            await back.wait()
            return await super().recover(partition)

    broker = new_broker(1)
    async with reading_guard(member_of(Fails, broker)) as guard:
        send(broker, events_of("r", "Paris is", complete=False))  # nothing to release yet
        await failed.wait()
        await until(lambda: bool(guard.waits_for()))
        assert guard.waits_for() == "the sessions of 1 partitions are being restored"
        assert [partition.ready for partition in guard.state().partitions] == [False]
        assert oldest_s(guard) > 0
        back.set()
        await until(lambda: not guard.waits_for() and oldest_s(guard) == 0)


def test_a_summary_is_logged_only_where_something_came() -> None:
    with capture_logs() as logs:
        ResponseLog().summary()
    assert logs == []


def test_labels_from_outside_are_bounded() -> None:
    label = telemetry._Bounded()
    values = {label(f"rule {number}") for number in range(3 * telemetry.MOST_VALUES)}
    assert len(values) == telemetry.MOST_VALUES + 1
    assert telemetry.OTHER in values
    assert label("rule 0") == "rule 0"


def test_every_metric_says_what_it_counts_and_in_which_unit() -> None:
    for family in telemetry.REGISTRY.collect():
        if family.name.startswith("process_"):
            continue  # the Prometheus client's own
        assert family.name.startswith("guardrail_")
        assert family.documentation.endswith(".")
        if family.name.endswith("_seconds"):
            assert "second" in family.documentation.lower() or "Unix" in family.documentation
