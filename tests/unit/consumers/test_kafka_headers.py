"""Batches that the client library can't decode are read, and all others exactly as it reads them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException, KafkaError
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from consumers.kafka.workarounds import TolerantRecords, decoded, patch_client_library
from tests.support.odd_headers import Content, raw_batch

TP = TopicPartition("in", 0)
PLAIN: Content = (b"k", b"plain", [(b"h", b"1")])
ODD: Content = (b"k", b"odd", [(b"a\xffb", b"\xfe"), (b"\xc3\xbc", None)])
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4

contents = st.tuples(
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=20).map(str.encode), st.none() | st.binary(max_size=20)), max_size=4),
)


def tolerant(
    data: bytes,
    offset: int = 0,
    *,
    aborted: Sequence[tuple[int, int]] = (),
    key_deserializer: Callable[[bytes], str] | None = None,
    check_crcs: bool = True,
) -> PartitionRecords:
    """What a fetch from ``offset`` gives; ``aborted`` are producers and where their transactions began."""
    return PartitionRecords(
        TP, TolerantRecords(data), aborted, offset, key_deserializer, None, check_crcs, READ_COMMITTED
    )


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
def test_a_name_that_is_not_utf8_is_escaped_and_all_else_is_kept(codec: int) -> None:
    many = [PLAIN, ODD, PLAIN, *[ODD] * 20]
    data = raw_batch(many, 5, codec=codec)
    with pytest.raises((UnicodeDecodeError, CorruptRecordException)):
        list(DefaultRecordBatch(data))
    reading = tolerant(data, 5)
    found = list(reading)
    assert [record.offset for record in found] == list(range(5, 5 + len(many)))
    assert [(record.key, record.value) for record in found] == [(key, value) for key, value, _ in many]
    assert [record.timestamp for record in found] == list(range(1_000, 1_000 + len(many)))
    assert found[0].headers == (("h", b"1"),)
    assert found[1].headers == ((r"a\xffb", b"\xfe"), ("ü", None))
    assert reading.next_fetch_offset == 5 + len(many)


def test_reading_goes_on_behind_it_and_may_begin_within_its_batch() -> None:
    first = raw_batch([PLAIN, PLAIN])
    rest = raw_batch([ODD, PLAIN], 2) + raw_batch([ODD], 4) + raw_batch([PLAIN], 7)
    assert [record.offset for record in tolerant(first + rest)] == [0, 1, 2, 3, 4, 7]
    assert [record.offset for record in tolerant(rest, 3)] == [3, 4, 7]
    reading = tolerant(first + rest)
    positions = [reading.next_fetch_offset for _ in reading]
    assert positions == [1, 2, 3, 4, 5, 8]


def test_aborted_records_stay_invisible() -> None:
    """Producer 1 aborts what it wrote at 0 and 3; 2 and 5 are committed."""
    marker = bytearray(raw_batch([(b"\x00\x00\x00\x00", b"", [])], 4, producer_id=1))
    marker[22] |= 0x20  # a control record, of type abort
    data = b"".join(
        [
            raw_batch([ODD, PLAIN], 0, producer_id=1),
            raw_batch([ODD], 2, producer_id=2),
            raw_batch([ODD], 3, producer_id=1),
            bytes(marker),
            raw_batch([ODD, PLAIN], 5, producer_id=1),
        ]
    )
    reading = tolerant(data, aborted=[(1, 0)], check_crcs=False)  # the marker has none of its own
    assert [record.offset for record in reading] == [2, 5, 6]
    assert reading.next_fetch_offset == 7


@pytest.mark.parametrize("aborted", [[], [(1, 0)]])
def test_a_control_batch_that_was_cleaned_is_skipped(aborted: list[tuple[int, int]]) -> None:
    """Of a compacted topic Kafka keeps the last batch of each producer id, its marker gone."""
    cleaned = bytearray(raw_batch([], 4, producer_id=1))
    cleaned[22] |= 0x20
    data = bytes(cleaned) + raw_batch([PLAIN], 5, producer_id=2)
    with pytest.raises(KafkaError, match="did not contain any records"):
        list(PartitionRecords(TP, MemoryRecords(data), aborted, 0, None, None, False, READ_COMMITTED))
    reading = tolerant(data, aborted=aborted, check_crcs=False)
    assert [record.offset for record in reading] == [5]
    assert reading.next_fetch_offset == 6
    alone = tolerant(bytes(cleaned), aborted=aborted, check_crcs=False)
    assert list(alone) == []
    assert alone.next_fetch_offset == 5


def test_a_batch_that_is_damaged_is_refused_as_before() -> None:
    data = bytearray(raw_batch([ODD]))
    data[-2] ^= 1
    with pytest.raises(CorruptRecordException, match="CRC"):
        list(tolerant(bytes(data)))


def test_a_record_that_ends_early_is_refused() -> None:
    whole = raw_batch([ODD])
    for end in range(62, len(whole)):
        with pytest.raises(CorruptRecordException):
            list(decoded(_DefaultRecordBatchPy(whole[:end])))


def test_an_error_that_is_no_names_is_raised_and_not_met_again_for_ever() -> None:
    """A deserialiser of the consumer can raise the same."""
    reading = tolerant(raw_batch([(b"\xff", b"", [])]), key_deserializer=bytes.decode)
    with pytest.raises(UnicodeDecodeError):
        list(reading)


@given(st.lists(st.lists(contents, min_size=1, max_size=5), max_size=4), st.sampled_from([0, GZIP, LZ4]))
def test_what_the_library_can_read_is_read_alike(batches: list[list[Content]], codec: int) -> None:
    parts: list[bytes] = []
    offset = 0
    for records in batches:
        parts.append(raw_batch(records, offset, codec=codec))
        offset += len(records)
    data = b"".join(parts)
    strict = PartitionRecords(TP, MemoryRecords(data), None, 0, None, None, True, READ_COMMITTED)
    assert list(tolerant(data)) == list(strict)


def test_the_library_reads_with_it_from_the_first_client_on() -> None:
    patch_client_library()
    module: Any = fetcher
    assert module.MemoryRecords is TolerantRecords


def test_it_holds_where_the_library_is_not_compiled() -> None:
    """Its decoder in Python says that the record is corrupt."""
    code = (
        "from aiokafka.record.default_records import DefaultRecordBatch as batch\n"
        "from tests.unit.consumers import test_kafka_headers as here\n"
        "assert batch is here._DefaultRecordBatchPy\n"
        "here.test_a_name_that_is_not_utf8_is_escaped_and_all_else_is_kept(here.GZIP)\n"
    )
    environment = {**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
