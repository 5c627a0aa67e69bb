"""Exactly once: what a step holds, what is stored, and what becomes of steps that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker
from consumers.transport import Partition, Record, Restored
from guardrail.errors import TransportUnavailable
from guardrail.events import DeliveryBlocked, DeliverySegment, Event, ResponseCompleted, ResponseStarted
from guardrail.judges import Judge
from guardrail.limits import Limits
from guardrail.partitioning import partition_of
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.constants import made
from tests.support.faulty_transport import Fault, FaultyTransport
from tests.support.guards import (
    TOPICS,
    Reader,
    events_of,
    guard_on,
    member_of,
    new_broker,
    running,
    running_guard,
    send,
    until,
)
from tests.support.judges import GatedJudge, WordJudge

FAITHFUL = "Paris is in France. Rome is in Italy. "
PARTITION = Partition(TOPICS.responses, 0)
ALONE = {"finished", "policy"}


def make_guard(transport: FaultyTransport, judge: Judge | None = None, **options: Any) -> GuardConsumer:
    return guard_on(transport, judge, **{"commit_gap_ms": 0, "commit_interval_ms": 1, **options})


@asynccontextmanager
async def faulty_guard(
    broker: MemoryBroker, faults: Iterable[Fault] = (), judge: Judge | None = None, **options: Any
) -> AsyncIterator[FaultyTransport]:
    transport = member_of(FaultyTransport, broker)
    planned = iter(faults)
    transport.next_fault = lambda: next(planned, None)
    async with running(make_guard(transport, judge, **options)):
        yield transport


def state(broker: MemoryBroker) -> dict[str, Any]:
    records = broker.records(TOPICS.sessions)
    return {
        (record.key or b"").decode().removeprefix("guard/"): json.loads(record.value or b"null")
        for record in records
    }


def kinds(broker: MemoryBroker) -> set[str]:
    return {key.partition("/")[0] for key in state(broker)}


def key_on(index: int) -> str:
    """An id whose events are in this one of two partitions."""
    return next(key for n in range(20) if partition_of((key := f"r{n}").encode(), 2) == index)


def segments(read: Reader, response_id: str) -> list[int]:
    events = read.events(TOPICS.deliveries)
    return [e.seq for e in events if isinstance(e, DeliverySegment) and e.response_id == response_id]


async def test_a_step_holds_outputs_state_and_position_together() -> None:
    broker = new_broker(1)
    events = events_of("r", FAITHFUL)
    async with faulty_guard(broker) as transport:
        send(broker, events[:7])  # the first sentence, and a bit
        await until(
            lambda: (
                broker.lag("guard", TOPICS.responses) == 0
                and len(Reader(broker).events(TOPICS.deliveries)) == 1
            )
        )
    for _, records, changes, commit in transport.steps:
        text = "".join(
            increment.get("text", "")
            for change in changes
            if change.key.startswith(b"progress/") and change.value is not None
            for increment in json.loads(change.value)["sessions"].values()
        )
        assert records or text, "no step without anything to say"
        assert commit.offset <= 7
    stored = state(broker)
    assert stored["head/0/r"]["head"]["event"]["response_id"] == "r"
    assert stored["head/0/r"]["policy"] == next(key for key in stored if key.startswith("policy/"))[7:]


async def test_what_is_stored_grows_with_the_text_and_holds_nothing_twice() -> None:
    broker = new_broker(1)
    text = "".join(f"Sentence number {n} is quite plain. " for n in range(60))
    events = events_of("r", text, complete=False)
    async with faulty_guard(broker, commit_interval_ms=1) as transport:
        for event in events:
            send(broker, [event])
            await asyncio.sleep(0)
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    written = [change for step in transport.steps for change in step[2] if change.value is not None]
    assert len({change.key for change in written}) == len(written), "no key is written twice"
    texts = [
        increment.get("text", "")
        for change in written
        if change.key.startswith(b"progress/")
        for increment in json.loads(change.value or b"")["sessions"].values()
    ]
    assert "".join(texts) == text


async def test_a_response_that_begins_and_ends_within_a_step_is_remembered_and_not_stored() -> None:
    broker = new_broker(1)
    send(broker, events_of("r", "Hello! "))
    async with faulty_guard(broker) as transport:
        await until(lambda: bool(Reader(broker).finals("r")))
    assert kinds(broker) == {"finished"}
    [[_, _, changes, _]] = transport.steps
    assert [entry[0] for entry in json.loads(changes[0].value or b"")["responses"]] == ["r"]


async def test_nothing_but_policies_is_left_when_finished_responses_are_forgotten() -> None:
    broker = new_broker(1)
    async with faulty_guard(broker, limits=made(Limits, finished_response_ttl_ms=50)):
        send(broker, events_of("r", FAITHFUL)[:5])
        await until(lambda: "head" in kinds(broker))
        send(broker, events_of("r", FAITHFUL)[5:])
        await until(lambda: kinds(broker) == {"policy"})


async def test_finished_responses_stored_are_bounded_in_number() -> None:
    broker = new_broker(1)
    async with faulty_guard(broker, limits=made(Limits, finished_responses_remembered=5)):
        for n in range(40):
            send(broker, events_of(f"r{n}", "Hello! "))
            await until(lambda n=n: bool(Reader(broker).finals(f"r{n}")))  # type: ignore[misc]
    stored = [
        entry
        for key, value in state(broker).items()
        if key.startswith("finished/")
        for entry in value["responses"]
    ]
    assert "r39" in [entry[0] for entry in stored]
    assert len(stored) <= 6


async def test_a_late_duplicate_is_recognised_after_a_failure_and_a_restart() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with faulty_guard(broker, [None, "before"]):
        send(broker, events_of("r", "Hello! "))
        await until(lambda: bool(read.finals("r")))
        send(broker, events_of("r", "Hello! "))
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    async with faulty_guard(broker):
        send(broker, events_of("r", "Hello! "))
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert len(read.finals("r")) == 1
    assert not read.dead_letters()


async def test_claims_judged_before_a_restart_are_not_asked_again() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    asked: list[str] = []

    class Counting(WordJudge):
        async def judge(self, request):  # type: ignore[no-untyped-def]
            asked.extend(claim.text for claim in request.claims.values())
            async for each in super().judge(request):
                yield each

    async with faulty_guard(broker, judge=Counting()):
        send(broker, events_of("r", FAITHFUL)[:7])
        await until(lambda: segments(read, "r") == [0])
    async with faulty_guard(broker, judge=Counting()):
        send(broker, events_of("r", FAITHFUL)[7:])
        await until(lambda: bool(read.verdicts()))
    assert len(asked) == len(set(asked)) == 2
    assert segments(read, "r") == [0, 1]


async def test_a_response_ends_under_the_policy_that_it_began_with() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with faulty_guard(broker):
        send(broker, events_of("r", FAITHFUL)[:5])
        await until(lambda: "head" in kinds(broker))
    async with faulty_guard(broker, router=PolicyRouter.single(Policy(version="2", mode="hold"))):
        send(broker, events_of("r", FAITHFUL)[5:])
        send(broker, events_of("later", FAITHFUL))
        await until(lambda: len(read.verdicts()) == 2)
    versions = {name: verdict.policy.version for name, verdict in read.verdicts().items()}
    assert versions == {"r": "1", "later": "2"}


async def test_of_a_blocked_response_next_to_nothing_is_stored_while_its_text_goes_on() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    events = events_of("r", "It is 500 mg wrong. More.", complete=False)
    events[0] = ResponseStarted(response_id="r", question="Why? " * 4_000)

    def stored() -> int:
        return sum(len(r.value or b"") for r in broker.records(TOPICS.sessions) if b"/0/r" in (r.key or b""))

    async with faulty_guard(broker, max_record_bytes=14_096):
        send(broker, events[:2])
        await until(lambda: stored() > 12_000)
        send(broker, events[2:9])
        await until(lambda: bool(read.finals("r")))
    assert stored() < 500
    async with faulty_guard(broker, max_record_bytes=14_096):
        send(broker, [*events, ResponseCompleted(response_id="r", seq=len(events) - 1)])
        await until(lambda: kinds(broker) <= ALONE)
    assert (len(read.finals("r")), read.dead_letters()) == (1, [])


async def test_a_stuck_partition_does_not_hold_up_the_others() -> None:
    broker = new_broker(2)
    read = Reader(broker)
    recovering, back = asyncio.Event(), asyncio.Event()

    class Stuck(FaultyTransport):
        async def recover(self, partition: Partition) -> Restored:
            recovering.set()
            await back.wait()
            return await super().recover(partition)

    transport = member_of(Stuck, broker)
    faults: list[Fault] = ["before"]
    transport.next_fault = lambda: faults.pop() if faults else None
    async with running(make_guard(transport)):
        send(broker, events_of(key_on(0), FAITHFUL))
        await recovering.wait()
        send(broker, events_of(key_on(1), FAITHFUL))
        await until(lambda: bool(read.finals(key_on(1))))
        assert not read.finals(key_on(0))
        back.set()
        await until(lambda: bool(read.finals(key_on(0))))
    assert segments(read, key_on(0)) == segments(read, key_on(1)) == [0, 1]


async def test_the_last_step_is_committed_when_the_guard_stops_and_when_a_partition_moves() -> None:
    broker = new_broker(2)
    read = Reader(broker)
    ids = [f"r{n}" for n in range(8)]
    async with running_guard(broker, WordJudge(), commit_interval_ms=60_000):
        for name in ids:
            send(broker, events_of(name, FAITHFUL)[:5])
        await asyncio.sleep(0.02)
        async with running_guard(broker, WordJudge(), commit_interval_ms=60_000):
            await asyncio.sleep(0.02)
            for name in ids:
                send(broker, events_of(name, FAITHFUL)[5:])
            await until(lambda: len(read.verdicts()) == len(ids))
    assert {name: segments(read, name) for name in ids} == {name: [0, 1] for name in ids}
    assert broker.lag("guard", TOPICS.responses) == 0


async def test_a_guard_whose_last_step_hangs_leaves_all_the_same() -> None:
    broker = new_broker(1)
    hanging = asyncio.Event()

    class Hanging(FaultyTransport):
        async def transact(self, partition, records, state, commit) -> None:  # type: ignore[no-untyped-def]
            hanging.set()
            await asyncio.Event().wait()

    stop = asyncio.Event()
    hung = make_guard(member_of(Hanging, broker), drain_timeout_ms=20, leave_timeout_ms=100)
    guard = asyncio.ensure_future(hung.run(stop))
    send(broker, events_of("r", FAITHFUL))
    await hanging.wait()
    stop.set()
    await guard
    async with faulty_guard(broker):
        await until(lambda: bool(Reader(broker).verdicts()))
    assert segments(Reader(broker), "r") == [0, 1]


async def test_a_guard_gives_up_when_no_step_of_a_partition_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.exactly_once.MOST_FAILURES", 3)
    broker = new_broker(1)
    transport = member_of(FaultyTransport, broker)
    transport.next_fault = lambda: "before"
    send(broker, events_of("r", FAITHFUL))
    with pytest.raises(TransportUnavailable, match="3 steps"):
        await make_guard(transport).run(asyncio.Event())
    assert not Reader(broker).events(TOPICS.deliveries)


@pytest.mark.parametrize("damage", [b"rubbish", b"{}", b'{"v":1}'])
async def test_a_head_that_cannot_be_read_ends_its_response_and_no_other(damage: bytes) -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with faulty_guard(broker):
        send(broker, [ResponseStarted(response_id="hit"), *events_of("spared", FAITHFUL)[:5]])
        await until(lambda: sum(key.startswith("head/") for key in state(broker)) == 2)
    broker.append(TOPICS.sessions, b"guard/head/0/hit", damage)
    async with faulty_guard(broker):
        send(broker, [ResponseCompleted(response_id="hit", seq=0), *events_of("spared", FAITHFUL)[5:]])
        await until(lambda: len(read.verdicts()) == 2)
    [final] = read.finals("hit")
    assert isinstance(final, DeliveryBlocked)
    assert read.verdicts()["hit"].rule == "session_state_unreadable"
    assert segments(read, "spared") == [0, 1]
    assert kinds(broker) <= ALONE


async def test_progress_that_cannot_be_read_ends_the_responses_it_may_be_of() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    async with faulty_guard(broker):
        send(broker, events_of("hit", FAITHFUL)[:5])
        await until(lambda: "progress/0" in state(broker))
    broker.append(TOPICS.sessions, b"guard/progress/0", b"rubbish")
    async with faulty_guard(broker):
        send(broker, events_of("later", FAITHFUL))
        send(broker, events_of("hit", FAITHFUL)[5:])
        await until(lambda: len(read.verdicts()) == 2)
    assert read.verdicts()["hit"].rule == "session_state_unreadable"
    assert read.shown("later") == FAITHFUL
    assert kinds(broker) <= ALONE


async def test_an_event_on_another_partition_ends_its_response_and_spoils_no_state() -> None:
    broker = new_broker(2)
    read = Reader(broker)
    events = events_of(key_on(0), FAITHFUL)
    async with faulty_guard(broker):
        send(broker, events[:5])
        await until(lambda: "head" in kinds(broker))
        broker.append(TOPICS.responses, key_on(1).encode(), events[5].to_json())
        await until(lambda: bool(read.finals(key_on(0))))
        send(broker, events[5:])
        await until(lambda: kinds(broker) <= ALONE)
    assert read.finals(key_on(0))[0].rule == "wrong_partition"


async def test_an_end_that_came_by_another_partition_is_stored_though_it_has_no_output() -> None:
    broker = new_broker(2)
    judge = GatedJudge()
    events = events_of(key_on(0), FAITHFUL, complete=False)
    router = PolicyRouter.single(Policy(on_incomplete="flag"))
    async with faulty_guard(broker, judge=judge, router=router):
        send(broker, events)
        await until(lambda: "progress" in kinds(broker))
        assert "wrong_partition" not in str(state(broker))
        broker.append(TOPICS.responses, key_on(1).encode(), events[2].to_json())
        await until(lambda: "wrong_partition" in str(state(broker)))
        judge.gate.set()


async def test_a_step_is_bounded_and_records_that_find_its_lane_full_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumers.exactly_once.MAX_OUTPUTS", 3)
    broker = new_broker(1)
    for n in range(30):
        broker.append(TOPICS.responses, None, f"rubbish {n}".encode())
    async with faulty_guard(broker, limits=made(Limits, bad_record_share=1)) as transport:
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert [len(records) for _, records, _, _ in transport.steps] == [3] * 10
    expected = [f"rubbish {n}".encode() for n in range(30)]
    assert [letter.value for letter in Reader(broker).dead_letters()] == expected


async def test_records_that_wait_in_a_full_lane_wait_for_an_unreadable_partition_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("consumers.exactly_once.MAX_OUTPUTS", 3)
    monkeypatch.setattr("consumers.dead_letters.BAD_RECORD_PAUSE_S", 3600.0)
    broker = new_broker(1)
    for n in range(30):
        broker.append(TOPICS.responses, None, f"rubbish {n}".encode())
    limits = made(Limits, bad_record_min=5)
    with capture_logs():
        async with running_guard(broker, WordJudge(), limits=limits) as guard:
            await until(lambda: broker.lag("guard", TOPICS.responses) == 25)
            (partition,) = guard.state().partitions
            assert (partition.unreadable, partition.paused, partition.lag) == (True, True, 25)
    monkeypatch.setattr("consumers.dead_letters.BAD_RECORD_PAUSE_S", 0.0)
    with capture_logs():
        async with running_guard(broker, WordJudge(), limits=limits):
            await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    expected = [f"rubbish {n}".encode() for n in range(30)]
    assert [letter.value for letter in Reader(broker).dead_letters()] == expected


async def test_cancelled_at_any_moment_nothing_is_doubled_or_lost() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    send(broker, events_of("r", FAITHFUL))
    for ticks in range(60):
        guard = asyncio.ensure_future(make_guard(member_of(FaultyTransport, broker)).run(asyncio.Event()))
        for _ in range(ticks):
            await asyncio.sleep(0)
        guard.cancel()
        with pytest.raises(asyncio.CancelledError):
            await guard
    async with faulty_guard(broker):
        await until(lambda: bool(read.verdicts()))
    assert segments(read, "r") == [0, 1]
    assert len(read.finals("r")) == 1


async def test_a_judge_that_hangs_does_not_keep_a_partition_from_moving() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    judge = GatedJudge()
    guard = make_guard(member_of(FaultyTransport, broker), judge, revoke_timeout_ms=20, drain_timeout_ms=20)
    async with running(guard):
        send(broker, events_of("r", FAITHFUL))
        await judge.asked.wait()
    async with faulty_guard(broker):
        await until(lambda: bool(read.verdicts()))
    assert read.shown("r") == FAITHFUL


async def test_what_an_at_least_once_guard_noted_as_over_does_not_begin_again() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    judge = GatedJudge()
    open_events, over = events_of("open", FAITHFUL), events_of("over", "Hello! ")
    async with running_guard(broker, judge, drain_timeout_ms=1, delivery_guarantee="at_least_once"):
        send(broker, [*open_events[:7], *over])
        await judge.asked.wait()
        await until(lambda: bool(read.finals("over")))
    assert broker.lag("guard", TOPICS.responses) > 0
    async with faulty_guard(broker, [None, "before"]):
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    async with faulty_guard(broker):
        send(broker, open_events[7:])
        await until(lambda: bool(read.finals("open")))
    assert read.shown("open") == FAITHFUL
    assert len(read.finals("over")) == 1
    assert not read.dead_letters()


class HeldTransport(FaultyTransport):
    """A member whose steps wait for a gate each partition has, and which tells what the guard has taken."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gates = [asyncio.Event(), asyncio.Event()]
        self.held: set[int] = set()
        self.taken = 0
        self._polled = 0

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        self.taken = self._polled  # whoever asks for more has taken what there was
        records = await super().poll(timeout_ms, max_records)
        self._polled += len(records)
        return records

    async def transact(self, partition: Partition, *step: Any) -> None:
        self.held.add(partition.index)
        await self.gates[partition.index].wait()
        await super().transact(partition, *step)


async def test_an_id_that_ends_on_one_partition_and_begins_on_another_is_stored_with_the_latter() -> None:
    broker = new_broker(2)
    transport = member_of(HeldTransport, broker)
    on_first, on_second = key_on(0).encode(), key_on(1).encode()
    second_life = events_of("twice", FAITHFUL)

    async def feed(key: bytes, events: list[Event]) -> None:
        for event in events:
            broker.append(TOPICS.responses, key, event.to_json())
        await until(lambda: transport.taken == len(broker.records(TOPICS.responses)))

    async with running(make_guard(transport)):
        await feed(on_first, events_of(key_on(0), "Hello! "))
        await feed(on_second, events_of(key_on(1), "Hello! "))
        await until(lambda: transport.held == {0, 1})  # from here on, both lanes gather
        await feed(on_first, events_of("twice", "Hello! "))
        await feed(on_second, second_life[:-3])
        transport.gates[0].set()
        await until(lambda: len([step for step in transport.steps if step[0].index == 0]) == 2)
        transport.gates[1].set()
    read = Reader(broker)
    async with faulty_guard(broker):
        for event in second_life[-3:]:
            broker.append(TOPICS.responses, on_second, event.to_json())
        await until(lambda: len(read.finals("twice")) == 2 or bool(read.dead_letters()))
    assert read.dead_letters() == []
    assert read.shown("twice") == FAITHFUL
