"""Compacted topics of the in-process broker."""

from __future__ import annotations

import pytest

from consumers.memory import CompactedLog, MemoryBroker
from consumers.transport import Partition
from guardrail.errors import TransportError

PLACE = Partition("state", 0)


def written(*changes: tuple[bytes, bytes | None]) -> CompactedLog:
    log = CompactedLog(PLACE)
    for key, value in changes:
        log.append(key, value, (), 1)
    return log


def test_the_latest_value_of_every_key_in_the_order_of_writing() -> None:
    log = written((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"a", b"4"), (b"b", None), (b"d", b""))
    assert list(log.latest().items()) == [(b"c", b"3"), (b"a", b"4"), (b"d", b"")]
    assert [record.offset for record in log.read(0, None)] == [2, 3, 5]
    assert [record.offset for record in log.read(3, 1)] == [3]
    assert log.end == 6


def test_a_key_comes_back_at_the_end_after_its_deletion() -> None:
    log = written((b"a", b"1"), (b"b", b"2"), (b"a", None), (b"a", b"3"))
    assert list(log.latest()) == [b"b", b"a"]


def test_nothing_is_kept_of_dead_keys() -> None:
    log = CompactedLog(PLACE)
    for number in range(10_000):
        log.append(b"%d" % number, b"x" * 100, (), 1)
        log.append(b"same", b"%d" % number, (), 1)
        log.append(b"%d" % number, None, (), 1)
    assert log.latest() == {b"same": b"9999"}
    assert log.end == 30_000


def test_a_compacted_topic_ignores_the_bound_of_its_broker() -> None:
    broker = MemoryBroker({"state": 1, "other": 1}, compacted=["state"], retention_records=2)
    for number in range(100):
        broker.append("state", b"%d" % number, b"v")
        broker.append("other", b"%d" % number, b"v")
    assert len(broker.records("state")) == 100
    assert len(broker.records("other")) < 4


def test_a_record_without_a_key_is_refused() -> None:
    broker = MemoryBroker({"state": 1}, compacted=["state"])
    with pytest.raises(TransportError, match="needs a key"):
        broker.append("state", None, b"v")


def test_a_topic_stays_compacted_or_not() -> None:
    broker = MemoryBroker({"state": 1, "other": 1}, compacted=["state"])
    broker.create_topic("state", compacted=True)
    with pytest.raises(ValueError, match="exists and is not compacted"):
        broker.create_topic("other", compacted=True)
    with pytest.raises(ValueError, match="exists and is compacted"):
        broker.create_topic("state")
