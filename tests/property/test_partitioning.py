"""Our partition of a key is the one of every other Kafka client."""

from __future__ import annotations

from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from guardrail.partitioning import murmur2, partition_of


@given(st.binary(max_size=200), st.integers(1, 300))
def test_agrees_with_the_partitioner_of_aiokafka(key: bytes, partitions: int) -> None:
    everything = list(range(partitions))
    assert partition_of(key, partitions) == DefaultPartitioner()(key, everything, everything)


def test_agrees_with_java() -> None:
    """Values from org.apache.kafka.common.utils.UtilsTest.testMurmur2, as unsigned."""
    java = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert {key: murmur2(key) for key in java} == {key: value & 0xFFFFFFFF for key, value in java.items()}
