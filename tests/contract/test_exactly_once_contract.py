"""What consumers.transport promises of steps, recovery and stored state, of both transports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord, Transport
from guardrail.errors import PartitionLost, TransportError
from tests.support.transports import Harness, RecordingListener, poll_until, poll_while

MEBIBYTE = 1024 * 1024


class Member:
    """A started member with what it was told."""

    def __init__(self, transport: Transport, listener: RecordingListener) -> None:
        self.transport = transport
        self.listener = listener
        self.early: list[Record] = []
        """What polling returned before anybody asked for it."""

    async def read(self, count: int, max_records: int = 500) -> list[Record]:
        """At least so many records, polled or early."""
        early, self.early = self.early, []
        return early + await poll_until(
            self.transport, lambda found: len(early) + len(found) >= count, max_records
        )

    @property
    def state(self) -> Mapping[Partition, dict[bytes, bytes]]:
        return self.listener.state

    @property
    def held(self) -> Mapping[Partition, Commit | None]:
        return self.listener.held


class Site:
    """The topics of one test, and its members, all stopped at its end."""

    def __init__(self, harness: Harness, group: str) -> None:
        self.harness = harness
        self.group = group
        self.topic = self.output = self.sessions = ""
        self._started: list[Transport] = []

    async def create(self, partitions: int = 1) -> None:
        self.topic = await self.harness.create_topic(partitions)
        self.output = await self.harness.create_topic(partitions)
        self.sessions = await self.harness.create_topic(partitions, compacted=True)

    async def join(
        self, listener: RecordingListener | None = None, group: str | None = None, **changes: Any
    ) -> Member:
        transport = self.harness.exact_member(self.topic, self.sessions, group or self.group, **changes)
        self._started.append(transport)
        listener = listener or RecordingListener()
        await transport.start(listener)
        return Member(transport, listener)

    async def holding(self, partitions: int = 1, group: str | None = None, **changes: Any) -> Member:
        """A member that has joined and holds all partitions."""
        member = await self.join(group=group, **changes)
        member.early = await poll_while(member.transport, lambda: len(member.held) < partitions)
        return member

    async def fill(self, count: int, first: int = 0) -> list[bytes]:
        values = [b"in-%d" % number for number in range(first, first + count)]
        await self.harness.write(
            [OutRecord(self.topic, b"key-%d" % (n % 7), value) for n, value in enumerate(values, first)]
        )
        return values

    def out(self, *values: bytes) -> list[OutRecord]:
        return [OutRecord(self.output, b"k", value) for value in values]

    async def written(self) -> list[bytes | None]:
        return [record.value for record in await self.harness.read_all(self.output)]

    async def stop_all(self) -> None:
        for transport in self._started:
            await transport.stop()


@pytest.fixture
async def site(harness: Harness, group: str) -> AsyncIterator[Site]:
    made = Site(harness, group)
    await made.create()
    yield made
    await made.stop_all()


def values(records: Collection[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def changes(**state: bytes | None) -> list[StateRecord]:
    return [StateRecord(key.encode(), value) for key, value in state.items()]


async def beside_recovery(member: Member, partition: Partition) -> list[Record]:
    """What polling returned while a partition without a committed position was recovered."""
    recovery = asyncio.ensure_future(member.transport.recover(partition))
    found = await poll_until(member.transport, lambda _: recovery.done(), max_records=10)
    assert (await recovery).commit is None
    return found


async def test_a_new_partition_has_neither_position_nor_state(site: Site) -> None:
    member = await site.holding()
    partition = Partition(site.topic, 0)
    assert member.held == {partition: None}
    assert member.state == {partition: {}}


async def test_records_state_and_position_of_a_step_are_there_after_a_restart(site: Site) -> None:
    partition = Partition(site.topic, 0)
    await site.fill(10)
    first = await site.holding()
    await first.read(10)
    headers = (("traceparent", b"00-ab-cd-01"), ("twice", b""), ("twice", b"\x00\xff"))
    step = [OutRecord(site.output, b"k", b"\x00v", headers), OutRecord(site.output, None, b"w")]
    await first.transport.transact(partition, step, changes(a=b"1", b=b"\xff"), Commit(4, "ünicode"))
    await first.transport.stop()
    read = await site.harness.read_all(site.output)
    assert [(r.key, r.value, r.headers) for r in read] == [(r.key, r.value, r.headers) for r in step]
    second = await site.holding()
    assert second.held == {partition: Commit(4, "ünicode")}
    assert second.state == {partition: {b"a": b"1", b"b": b"\xff"}}
    read = await second.read(6)
    assert values(read) == [b"in-%d" % number for number in range(4, 10)]


async def test_state_is_restored_with_deletes_and_in_the_order_of_writing(site: Site) -> None:
    partition = Partition(site.topic, 0)
    member = await site.holding()
    await member.transport.transact(partition, [], changes(a=b"1", b=b"1", c=b"1", d=b""), Commit(0))
    await member.transport.transact(partition, [], changes(a=b"2", b=None, gone=None), Commit(0))
    again = [StateRecord(b"e", b"1"), StateRecord(b"b", b"3"), StateRecord(b"e", None)]
    await member.transport.transact(partition, [], again, Commit(0))
    restored = await member.transport.recover(partition)
    expected = [(b"c", b"1"), (b"d", b""), (b"a", b"2"), (b"b", b"3")]
    assert list(restored.state.items()) == expected
    await member.transport.stop()
    second = await site.holding()
    assert list(second.state[partition].items()) == expected


async def test_a_step_may_be_nothing_but_a_position(site: Site) -> None:
    partition = Partition(site.topic, 0)
    member = await site.holding()
    for offset in (0, 3, 3, 5):
        await member.transport.transact(partition, [], [], Commit(offset, f"note {offset}"))
    assert (await member.transport.recover(partition)).commit == Commit(5, "note 5")
    assert await site.written() == []


async def test_a_step_that_is_refused_leaves_nothing(site: Site) -> None:
    partition = Partition(site.topic, 0)
    await site.fill(3)
    member = await site.holding()
    await member.read(3)
    await member.transport.transact(partition, site.out(b"before"), changes(a=b"1"), Commit(1))
    with pytest.raises(TransportError, match="4096 bytes"):
        await member.transport.transact(
            partition, site.out(b"never"), changes(a=b"2", b=b"2"), Commit(2, "é" * 2049)
        )
    restored = await member.transport.recover(partition)
    assert restored.commit == Commit(1)
    assert dict(restored.state) == {b"a": b"1"}
    assert await site.written() == [b"before"]


async def test_recover_returns_to_the_committed_position_and_records_come_again_once(site: Site) -> None:
    partition = Partition(site.topic, 0)
    written = await site.fill(200)
    member = await site.holding()
    read = await member.read(120, max_records=40)
    await member.transport.transact(partition, site.out(b"step"), changes(a=b"1"), Commit(50))
    restored = await member.transport.recover(partition)
    assert restored.commit == Commit(50)
    assert dict(restored.state) == {b"a": b"1"}
    again = await member.read(150, max_records=40)
    assert values(read) == written[: len(read)]
    assert values(again) == written[50:]
    assert list(await member.transport.poll(50, 10)) == []
    await member.transport.transact(partition, site.out(b"next"), [], Commit(200))
    assert await site.written() == [b"step", b"next"]


async def test_recover_without_a_committed_position_returns_to_where_it_began(site: Site) -> None:
    written = await site.fill(20)
    member = await site.holding()
    await member.read(20)
    assert (await member.transport.recover(Partition(site.topic, 0))).commit is None
    assert values(await member.read(20)) == written


async def test_polling_beside_a_recovery_returns_nothing_old_and_other_partitions_go_on(site: Site) -> None:
    await site.create(partitions=2)
    await site.fill(400)
    recovered, other = Partition(site.topic, 0), Partition(site.topic, 1)
    input_ = await site.harness.read_all(site.topic)
    expected = {p: [r.value for r in input_ if r.partition == p] for p in (recovered, other)}
    assert all(expected.values())
    member = await site.holding(partitions=2)
    read = await member.read(30, max_records=10)
    for _ in range(5):
        read += await beside_recovery(member, recovered)
    ends = {p: len(expected[p]) for p in expected}
    read += await poll_until(
        member.transport,
        lambda found: all(last_offset(read + found, p) == ends[p] - 1 for p in ends),
        max_records=10,
    )
    assert [r.value for r in read if r.partition == other] == expected[other]
    # Whatever came of the recovered one came from its beginning on, without a gap, each time anew.
    offsets = [r.offset for r in read if r.partition == recovered]
    begins = [at for at, offset in enumerate(offsets) if offset == 0]
    assert 1 <= len(begins) <= 6
    for begin, end in pairwise([*begins, len(offsets)]):
        assert offsets[begin:end] == list(range(end - begin))


def last_offset(records: Sequence[Record], partition: Partition) -> int:
    return next((record.offset for record in reversed(records) if record.partition == partition), -1)


async def test_a_pause_outlasts_a_recovery(site: Site) -> None:
    partition = Partition(site.topic, 0)
    written = await site.fill(10)
    member = await site.holding()
    await member.read(10)
    member.transport.pause([partition])
    await member.transport.recover(partition)
    assert list(await member.transport.poll(100, 10)) == []
    member.transport.resume([partition])
    assert values(await member.read(10)) == written


async def test_resuming_in_the_middle_of_a_recovery_returns_nothing_early(site: Site) -> None:
    partition = Partition(site.topic, 0)
    written = await site.fill(10)
    member = await site.holding()
    await member.read(10)
    member.transport.pause([partition])
    recovery = asyncio.ensure_future(member.transport.recover(partition))
    await asyncio.sleep(0)
    member.transport.resume([partition])
    early = await poll_until(member.transport, lambda _: recovery.done())
    assert (await recovery).commit is None
    rest = await poll_until(member.transport, lambda found: len(early) + len(found) >= 10)
    assert values(early + rest) == written


async def test_steps_of_several_partitions_side_by_side(site: Site) -> None:
    await site.create(partitions=4)
    member = await site.holding(partitions=4)

    async def steps(index: int) -> None:
        for step in range(15):
            name = b"%d" % index
            out = [OutRecord(site.output, name, b"%d/%d" % (step, n)) for n in range(5)]
            state = [StateRecord(b"last", b"%d" % step), StateRecord(b"step/%d" % step, name)]
            await member.transport.transact(Partition(site.topic, index), out, state, Commit(step))

    await asyncio.gather(*(steps(index) for index in range(4)))
    read = await site.harness.read_all(site.output)
    for index in range(4):
        found = [r.value for r in read if r.key == b"%d" % index]
        assert found == [b"%d/%d" % (step, n) for step in range(15) for n in range(5)]
        restored = await member.transport.recover(Partition(site.topic, index))
        assert restored.commit == Commit(14)
        assert restored.state[b"last"] == b"14"
        assert set(restored.state.values()) == {b"14", b"%d" % index}
        assert len(restored.state) == 16


async def test_a_step_and_a_state_of_several_megabytes(site: Site) -> None:
    partition = Partition(site.topic, 0)
    member = await site.holding()
    large = bytes(range(256)) * (3 * MEBIBYTE // 256)
    many = [b"%06d" % number + large[:50_000] for number in range(60)]
    state = [StateRecord(b"large", large), *(StateRecord(value[:6], value) for value in many)]
    await member.transport.transact(partition, site.out(large, *many, b"last"), state, Commit(7))
    assert await site.written() == [large, *many, b"last"]
    restored = await member.transport.recover(partition)
    assert list(restored.state.items()) == [(b"large", large), *((value[:6], value) for value in many)]
    assert restored.commit == Commit(7)


async def test_a_successor_sees_the_steps_of_a_member_that_never_stopped(site: Site) -> None:
    """The first one neither drains nor leaves: it hears of the rebalance as a live member would."""
    partition = Partition(site.topic, 0)
    written = await site.fill(10)
    first = await site.holding()
    await first.read(10)
    await first.transport.transact(partition, site.out(b"one"), changes(a=b"1"), Commit(6, "note"))
    second = await site.join()
    both = [first.transport, second.transport]
    early = await poll_while(both, lambda: len(first.listener.log) < 2 or not (first.held or second.held))
    holder = second if second.held else first
    holder.early = early
    assert holder.held == {partition: Commit(6, "note")}
    assert holder.state == {partition: {b"a": b"1"}}
    assert values(await holder.read(4)) == written[6:]


async def test_a_step_in_on_revoked_is_what_the_next_holder_finds(site: Site) -> None:
    partition = Partition(site.topic, 0)
    listener = RecordingListener()
    first = await site.join(listener)
    await poll_while(first.transport, lambda: not first.held)

    async def drain(partitions: Collection[Partition]) -> None:
        await first.transport.transact(partition, site.out(b"drained"), changes(a=b"end"), Commit(3, "end"))

    listener.while_revoked = drain
    second = await site.join()
    both: Sequence[Transport] = [first.transport, second.transport]
    await poll_while(both, lambda: len(first.listener.log) < 2 or not (first.held or second.held))
    listener.while_revoked = None
    holder = second if second.held else first
    assert holder.held == {partition: Commit(3, "end")}
    assert holder.state == {partition: {b"a": b"end"}}
    assert await site.written() == [b"drained"]


async def test_a_partition_that_was_given_away_takes_no_step_and_no_recovery(site: Site) -> None:
    await site.create(partitions=2)
    first = await site.holding(partitions=2)
    second = await site.join()
    await poll_while(
        [first.transport, second.transport], lambda: not (len(first.held) == len(second.held) == 1)
    )
    (lost,) = second.held
    with pytest.raises(PartitionLost):
        await first.transport.transact(lost, site.out(b"never"), changes(a=b"1"), Commit(1))
    with pytest.raises(PartitionLost):
        await first.transport.recover(lost)
    await second.transport.transact(lost, site.out(b"mine"), changes(a=b"2"), Commit(2))
    assert await site.written() == [b"mine"]
    assert dict((await second.transport.recover(lost)).state) == {b"a": b"2"}


async def test_steps_need_a_started_transport(site: Site) -> None:
    member = await site.holding()
    await member.transport.stop()
    partition = Partition(site.topic, 0)
    with pytest.raises(TransportError, match="stop"):
        await member.transport.transact(partition, [], [], Commit(0))
    with pytest.raises(TransportError, match="stop"):
        await member.transport.recover(partition)


async def test_stop_in_the_middle_of_a_step_leaves_all_of_it_or_nothing(site: Site) -> None:
    partition = Partition(site.topic, 0)
    member = await site.holding()
    await member.transport.transact(partition, site.out(b"one"), changes(a=b"1"), Commit(1))
    step = asyncio.ensure_future(
        member.transport.transact(partition, site.out(b"two", b"three"), changes(a=b"2"), Commit(2))
    )
    await asyncio.sleep(0)
    await member.transport.stop()
    await asyncio.wait([step])
    second = await site.holding()
    outcome = (second.held[partition], second.state[partition], await site.written())
    done = (Commit(2), {b"a": b"2"}, [b"one", b"two", b"three"])
    undone = (Commit(1), {b"a": b"1"}, [b"one"])
    assert outcome in ([done] if step.exception() is None else [done, undone])


async def test_stop_in_the_middle_of_a_recovery_ends_it(site: Site) -> None:
    member = await site.holding()
    recovery = asyncio.ensure_future(member.transport.recover(Partition(site.topic, 0)))
    await asyncio.sleep(0)
    await member.transport.stop()
    await asyncio.wait([recovery])
    assert recovery.exception() is None or isinstance(recovery.exception(), TransportError)


async def test_a_cancelled_step_is_recovered_like_a_failed_one(site: Site) -> None:
    partition = Partition(site.topic, 0)
    member = await site.holding()
    step = asyncio.ensure_future(
        member.transport.transact(partition, site.out(b"one"), changes(a=b"1"), Commit(1))
    )
    await asyncio.sleep(0)
    step.cancel()
    await asyncio.wait([step])
    restored = await member.transport.recover(partition)
    assert (restored.commit, dict(restored.state), await site.written()) in [
        (Commit(1), {b"a": b"1"}, [b"one"]),
        (None, {}, []),
    ]
    await member.transport.transact(partition, site.out(b"two"), changes(a=b"2"), Commit(2))
    assert (await site.written())[-1] == b"two"


async def test_groups_that_share_a_sessions_topic_leave_each_other_alone(site: Site) -> None:
    await site.fill(2)
    partition = Partition(site.topic, 0)
    first = await site.holding()
    await first.transport.transact(partition, [], changes(a=b"1", b=b"2"), Commit(1))
    second = await site.holding(group=f"{site.group}/b")
    assert second.state[partition] == {}
    assert second.held[partition] is None
    await second.transport.transact(partition, [], changes(a=None, b=b"3"), Commit(2))
    assert (await first.transport.recover(partition)).state == {b"a": b"1", b"b": b"2"}
    assert (await second.transport.recover(partition)).state == {b"b": b"3"}


async def test_latest_begins_once(site: Site) -> None:
    """What comes while nobody reads, and what was read without a step, is there for the successor."""
    partition = Partition(site.topic, 0)
    await site.fill(10)
    for _ in range(2):
        idle = await site.holding(auto_offset_reset="latest")
        assert (idle.held, idle.state) == ({partition: Commit(10)}, {partition: {}})
        await idle.transport.stop()
    written = await site.fill(5, first=10)
    for _ in range(2):
        successor = await site.holding(auto_offset_reset="latest")
        assert values(await successor.read(5)) == written
        restored = await successor.transport.recover(partition)
        assert restored.commit == Commit(10)
        assert values(await successor.read(5)) == written
        await successor.transport.stop()
    last = await site.holding(auto_offset_reset="latest")
    await last.transport.transact(partition, site.out(b"one"), changes(a=b"1"), Commit(12))
    assert values(await last.read(5))
    restored = await last.transport.recover(partition)
    assert (restored.commit, dict(restored.state)) == (Commit(12), {b"a": b"1"})
    assert values(await last.read(3)) == written[2:]


async def test_latest_without_a_position_forgets_the_sessions_of_what_it_skips(
    site: Site, harness: Harness
) -> None:
    """Somebody has deleted the group's position: here, its records have moved to another topic."""
    await site.fill(3)
    former = await site.holding()
    await former.transport.transact(Partition(site.topic, 0), [], changes(a=b"1", b=b"2"), Commit(1))
    await former.transport.stop()
    site.topic = await harness.create_topic()
    partition = Partition(site.topic, 0)
    await site.fill(4)
    skips = await site.holding(auto_offset_reset="latest")
    assert (skips.held, skips.state) == ({partition: Commit(4)}, {partition: {}})
    assert dict((await skips.transport.recover(partition)).state) == {}
    await skips.transport.transact(partition, [], changes(a=b"3"), Commit(4))
    assert dict((await skips.transport.recover(partition)).state) == {b"a": b"3"}


async def test_earliest_without_a_position_hands_on_what_is_stored(site: Site, harness: Harness) -> None:
    former = await site.holding()
    await former.transport.transact(Partition(site.topic, 0), [], changes(a=b"1"), Commit(1))
    await former.transport.stop()
    site.topic = await harness.create_topic()
    partition = Partition(site.topic, 0)
    written = await site.fill(3)
    again = await site.holding()
    assert (again.held, again.state) == ({partition: None}, {partition: {b"a": b"1"}})
    assert values(await again.read(3)) == written
