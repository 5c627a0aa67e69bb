"""What consumers.transport promises, of both transports: in process, and over a real Kafka."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from consumers.transport import Commit, OutRecord, Partition, Record, Transport
from guardrail.errors import PartitionLost, TransportError, TransportUnavailable
from tests.support.transports import (
    Harness,
    RecordingListener,
    fill,
    poll_until,
    poll_while,
)


class Members:
    """Started members of a test, all stopped at its end."""

    def __init__(self, harness: Harness, group: str) -> None:
        self._harness = harness
        self._group = group
        self._started: list[Transport] = []

    async def join(self, topic: str, listener: RecordingListener | None = None, **changes: Any) -> Transport:
        member = self._harness.member(topic, self._group, **changes)
        self._started.append(member)
        await member.start(listener or RecordingListener())
        return member

    async def holding(self, topic: str, **changes: Any) -> tuple[Transport, RecordingListener]:
        """One that has its partitions."""
        listener = RecordingListener()
        member = await self.join(topic, listener, **changes)
        await poll_while(member, lambda: not listener.held)
        return member, listener

    async def stop_all(self) -> None:
        for member in self._started:
            await member.stop()


@pytest.fixture
async def members(harness: Harness, group: str) -> AsyncIterator[Members]:
    made = Members(harness, group)
    yield made
    await made.stop_all()


def values(records: Collection[Record] | Collection[OutRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def ends(records: Collection[Record]) -> dict[Partition, Commit]:
    return {record.partition: Commit(record.offset + 1) for record in records}


async def test_order_holds_within_a_key(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic(partitions=4)
    member = await members.join(topic)
    written = await fill(member, topic, 3_000)
    read = await poll_until(member, lambda found: len(found) >= 3_000)
    for key in {record.key for record in written}:
        assert [r.value for r in read if r.key == key] == [r.value for r in written if r.key == key]
    assert len({record.partition for record in read if record.key == b"key-1"}) == 1


async def test_poll_returns_no_more_than_asked_for(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic(partitions=3)
    member = await members.join(topic)
    await fill(member, topic, 500)
    sizes: list[int] = []
    while sum(sizes) < 500:
        sizes.append(len(await member.poll(50, 40)))
    assert max(sizes) <= 40


async def test_poll_comes_back_empty(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    member = await members.join(topic)
    assert list(await member.poll(1, 10)) == []
    await fill(member, topic, 1)
    assert len(await poll_until(member, bool)) == 1
    assert list(await member.poll(1, 10)) == []


async def test_none_empty_and_headers_arrive_as_written(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    member = await members.join(topic)
    headers = (("traceparent", b"00-ab-cd-01"), ("twice", b""), ("twice", b"\x00\xff"), ("ünï", None))
    written = [
        OutRecord(topic, b"k", None),
        OutRecord(topic, None, b"v"),
        OutRecord(topic, b"", b""),
        OutRecord(topic, None, None, headers),
        OutRecord(topic, b"k", b"\x00\xfe\xff" * 10, headers),
    ]
    await member.publish(written, {})
    read = await poll_until(member, lambda found: len(found) >= len(written))
    assert [(r.key, r.value, r.headers) for r in read] == [(r.key, r.value, r.headers) for r in written]
    assert [record.offset for record in read] == [0, 1, 2, 3, 4]
    assert all(record.timestamp_ms > 1_600_000_000_000 for record in read)


async def test_records_larger_than_a_batch_and_a_fetch(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    member = await members.join(topic)
    written = [
        OutRecord(topic, b"k", bytes([number]) * size)
        for number, size in enumerate((10, 3_000_000, 900_000, 5))
    ]
    await member.publish(written, {})
    read = await poll_until(member, lambda found: len(found) >= len(written))
    assert values(read) == values(written)


async def test_one_publish_to_several_topics(harness: Harness, members: Members) -> None:
    topic, other = await harness.create_topic(partitions=2), await harness.create_topic(partitions=3)
    member = await members.join(topic)
    written = [OutRecord((topic, other)[n % 2], b"%d" % (n % 5), b"%d" % n) for n in range(200)]
    await member.publish(written, {})
    for name in (topic, other):
        read = await harness.read_all(name)
        assert sorted(r.value or b"" for r in read) == sorted(
            r.value or b"" for r in written if r.topic == name
        )


async def test_concurrent_publishes_keep_the_order_of_each(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic(partitions=2)
    member = await members.join(topic)

    async def write(writer: int) -> None:
        for step in range(20):
            await member.publish(
                [OutRecord(topic, b"w%d" % writer, b"%d" % (step * 10 + n)) for n in range(10)], {}
            )

    await asyncio.gather(*(write(writer) for writer in range(8)))
    read = await harness.read_all(topic)
    for writer in range(8):
        assert [int(r.value or b"") for r in read if r.key == b"w%d" % writer] == list(range(200))


async def test_pause_and_resume_lose_nothing(harness: Harness, members: Members) -> None:
    """One of two partitions is paused at every other poll; every record still comes once, in order."""
    topic = await harness.create_topic(partitions=2)
    member = await members.join(topic)
    written = await fill(member, topic, 2_000, keys=20)
    read: list[Record] = []
    paused = False
    target = Partition(topic, 0)
    while len(read) < len(written):
        batch = await member.poll(50, 100)
        assert not (paused and any(record.partition == target for record in batch))
        read += batch
        if paused or all(record.partition == target for record in batch):
            member.resume([target]) if paused else member.pause([target])
            paused = not paused
    for key in {record.key for record in written}:
        assert [r.value for r in read if r.key == key] == [r.value for r in written if r.key == key]


async def test_a_paused_partition_stays_silent_and_others_go_on(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic(partitions=2)
    member, _ = await members.holding(topic)
    member.pause([Partition(topic, 0)])
    await fill(member, topic, 400, keys=40)
    others = [r for r in await harness.read_all(topic) if r.partition.index == 1]
    read = await poll_until(member, lambda found: len(found) >= len(others))
    read += await member.poll(50, 1_000)
    assert {record.partition.index for record in read} == {1}
    await poll_while(member, lambda: member.unread(Partition(topic, 0)) != 400 - len(others))
    assert member.unread(Partition(topic, 1)) == 0
    member.resume([Partition(topic, 0)])
    assert len(await poll_until(member, lambda found: len(found) >= 400 - len(others))) == 400 - len(others)


async def test_position_and_metadata_survive_a_restart(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic(partitions=2)
    first = await members.join(topic)
    written = await fill(first, topic, 100)
    read = await poll_until(first, lambda found: len(found) >= 100)
    done = [record for record in read if record.offset < 10]
    note = "ünicode note " * 20
    await first.publish([], {p: Commit(c.offset, note) for p, c in ends(done).items()})
    await first.stop()
    listener = RecordingListener()
    second = await members.join(topic, listener)
    again = await poll_until(second, lambda found: len(found) + len(done) >= 100)
    assert sorted(values(again + done), key=str) == sorted(values(written), key=str)
    assert listener.log[0] == ("assigned", tuple(sorted(ends(done))))
    assert listener.held == {p: Commit(c.offset, note) for p, c in ends(done).items()}


async def test_position_zero_is_a_position(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    first = await members.join(topic)
    await fill(first, topic, 3)
    await poll_until(first, lambda found: len(found) >= 3)
    await first.publish([], {Partition(topic, 0): Commit(0, "from the start")})
    await first.stop()
    listener = RecordingListener()
    second = await members.join(topic, listener)
    assert [r.offset for r in await poll_until(second, lambda found: len(found) >= 3)] == [0, 1, 2]
    assert listener.held == {Partition(topic, 0): Commit(0, "from the start")}


async def test_what_was_not_committed_comes_again(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    first = await members.join(topic)
    written = await fill(first, topic, 50)
    await poll_until(first, lambda found: len(found) >= 50)
    await first.stop()
    second = await members.join(topic)
    assert values(await poll_until(second, lambda found: len(found) >= 50)) == values(written)


async def test_members_share_partitions_and_a_leaving_ones_are_taken_over(
    harness: Harness, members: Members
) -> None:
    topic = await harness.create_topic(partitions=4)
    everything = {Partition(topic, index) for index in range(4)}
    one, two = RecordingListener(), RecordingListener()
    first = await members.join(topic, one)
    await poll_while(first, lambda: set(one.held) != everything)
    second = await members.join(topic, two)
    await poll_while([first, second], lambda: not (one.held and two.held))
    assert not set(one.held) & set(two.held)
    assert {**one.held, **two.held}.keys() == everything
    assert len(one.held) == len(two.held) == 2
    assert one.log[1][0] == "revoked"
    assert set(one.log[1][1]) == everything

    written = await fill(first, topic, 200, keys=50)
    read = await poll_until([first, second], lambda found: len(found) >= 200)
    assert sorted(values(read), key=str) == sorted(values(written), key=str)
    await first.publish([], {p: c for p, c in ends(read).items() if p in one.held})
    await first.stop()
    assert {record.partition for record in read} == everything
    again = await poll_while(second, lambda: set(two.held) != everything)
    more = await fill(second, topic, 100, keys=50, first=200)
    uncommitted = [record for record in read if two.held[record.partition] is None]
    left = len(uncommitted) + len(more) - len(again)
    again += await poll_until(second, lambda found: len(found) >= left)
    assert sorted(values(again), key=str) == sorted(values(uncommitted) + values(more), key=str)


async def test_more_members_than_partitions(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    listeners = [RecordingListener(), RecordingListener()]
    both = [await members.join(topic, listener) for listener in listeners]
    await fill(both[0], topic, 20)
    assert len(await poll_until(both, lambda found: len(found) >= 20)) >= 20
    # The second may join later, and between revoked and assigned nobody holds it.
    await poll_until(both, lambda _: sum(len(listener.held) for listener in listeners) == 1)


async def test_no_record_before_on_assigned_has_returned(harness: Harness, members: Members) -> None:
    """Records are there and fetched already, and still wait for a listener that takes its time."""
    topic = await harness.create_topic()
    filler = await members.join(await harness.create_topic())
    await fill(filler, topic, 100)
    listener = RecordingListener()
    go_on = asyncio.Event()

    async def wait(partitions: Collection[Partition]) -> None:
        await go_on.wait()

    listener.while_assigned = wait
    member = await members.join(topic, listener)
    for _ in range(10):
        assert list(await member.poll(20, 10)) == []
    go_on.set()
    read = await poll_until(member, lambda found: len(found) >= 100)
    assert [record.offset for record in read] == list(range(100))


async def test_pausing_inside_on_assigned_holds_from_the_first_record_on(
    harness: Harness, members: Members
) -> None:
    topic = await harness.create_topic()
    filler = await members.join(await harness.create_topic())
    await fill(filler, topic, 10)
    listener = RecordingListener()
    member = harness.member(topic, f"group-{uuid.uuid4().hex}")

    async def pause(partitions: Collection[Partition]) -> None:
        member.pause(partitions)

    listener.while_assigned = pause
    await member.start(listener)
    try:
        await poll_while(member, lambda: not listener.held)
        assert list(await member.poll(100, 10)) == []
        member.resume(listener.held)
        assert len(await poll_until(member, lambda found: len(found) >= 10)) == 10
    finally:
        await member.stop()


async def test_publish_and_commit_work_in_on_revoked(harness: Harness, members: Members) -> None:
    topic, output = await harness.create_topic(partitions=2), await harness.create_topic()
    one, two = RecordingListener(), RecordingListener()
    first = await members.join(topic, one)
    await fill(first, topic, 40)
    read = await poll_until(first, lambda found: len(found) >= 40)

    async def drain(partitions: Collection[Partition]) -> None:
        last = {p: c for p, c in ends(read).items() if p in partitions}
        await first.publish([OutRecord(output, b"k", b"drained")], last)

    one.while_revoked = drain
    second = await members.join(topic, two)
    assert await poll_while([first, second], lambda: not two.held) == []
    one.while_revoked = None
    assert values(await harness.read_all(output)) == [b"drained"]
    assert {p: c for p, c in two.held.items() if c} == {p: c for p, c in ends(read).items() if p in two.held}


async def test_a_lost_partition_can_not_be_committed(harness: Harness, members: Members) -> None:
    topic, output = await harness.create_topic(partitions=2), await harness.create_topic()
    first, one = await members.holding(topic)
    two = RecordingListener()
    second = await members.join(topic, two)
    await poll_while([first, second], lambda: not (one.held and two.held))
    (lost,) = two.held
    with pytest.raises(PartitionLost, match="not held"):
        await first.publish([OutRecord(output, b"k", b"v")], {lost: Commit(1)})
    assert await harness.read_all(output) == []


async def test_metadata_over_the_limit_is_refused_before_anything_is_written(
    harness: Harness, members: Members
) -> None:
    topic, output = await harness.create_topic(), await harness.create_topic()
    member, _ = await members.holding(topic)
    with pytest.raises(TransportError, match="4096 bytes"):
        await member.publish([OutRecord(output, b"k", b"v")], {Partition(topic, 0): Commit(0, "é" * 2049)})
    assert await harness.read_all(output) == []
    await member.publish([], {Partition(topic, 0): Commit(0, "é" * 2048)})


@pytest.mark.parametrize("hook", ["while_assigned", "while_revoked"])
async def test_what_the_listener_raises_comes_out_of_poll(
    harness: Harness, members: Members, hook: str
) -> None:
    topic = await harness.create_topic()
    listener = RecordingListener()

    async def fail(partitions: Collection[Partition]) -> None:
        raise LookupError("the listener failed")

    setattr(listener, hook, fail)
    member = await members.join(topic, listener)
    if hook == "while_revoked":
        await poll_while(member, lambda: not listener.held)
        await members.join(topic)
    with pytest.raises(LookupError, match="the listener failed"):
        await poll_until(member, lambda found: False)


async def test_a_missing_topic_is_named_with_the_remedy(harness: Harness, group: str) -> None:
    member = harness.member("no-such-topic", group)
    with pytest.raises(TransportUnavailable, match=r"no-such-topic.*create"):
        await member.start(RecordingListener())
    await member.stop()
    with pytest.raises(TransportError):
        await member.poll(1, 1)


async def test_stop_is_safe_before_start_and_twice(harness: Harness, group: str) -> None:
    topic = await harness.create_topic()
    unused = harness.member(topic, group)
    await unused.stop()
    member = harness.member(topic, group)
    await member.start(RecordingListener())
    await member.stop()
    await member.stop()
    for call in (member.poll(1, 1), member.publish([OutRecord(topic, b"k", b"v")], {})):
        with pytest.raises(TransportError, match="stop"):
            await call


async def test_stop_does_not_tell_the_listener(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    member, listener = await members.holding(topic)
    await member.stop()
    assert [what for what, _ in listener.log] == ["assigned"]


async def test_latest_begins_once(harness: Harness, members: Members) -> None:
    """What comes while nobody reads, and what was read and not committed, is there for the successor."""
    topic = await harness.create_topic()
    partition = Partition(topic, 0)
    filler = await members.join(await harness.create_topic())
    await fill(filler, topic, 10)
    for _ in range(2):
        idle, listener = await members.holding(topic, auto_offset_reset="latest")
        assert listener.held == {partition: Commit(10)}
        await idle.stop()
    await fill(filler, topic, 5, first=10)
    expected = [b"value-%d" % number for number in range(10, 15)]
    for _ in range(2):
        successor = await members.join(topic, auto_offset_reset="latest")
        assert values(await poll_until(successor, lambda found: len(found) >= 5)) == expected
        await successor.stop()


async def test_earliest_commits_nothing_by_itself(harness: Harness, members: Members) -> None:
    topic = await harness.create_topic()
    for _ in range(2):
        member, listener = await members.holding(topic)
        assert listener.held == {Partition(topic, 0): None}
        await member.stop()
