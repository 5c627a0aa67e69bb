"""Maps keys to partitions by the rule of every Kafka client's default partitioner.

All records of a response must be in one partition, whoever writes them, and the sessions topic is
co-partitioned with the input. The hash therefore has to be the Java client's, bit for bit.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """MurmurHash2 with 32 bits and Kafka's seed, as in ``org.apache.kafka.common.utils.Utils.murmur2``."""
    length = len(data)
    words = length // 4
    hashed = _SEED ^ length
    for word in struct.unpack_from(f"<{words}I", data):
        mixed = (word * _MULTIPLIER) & _MASK
        mixed ^= mixed >> 24
        hashed = ((hashed * _MULTIPLIER) & _MASK) ^ ((mixed * _MULTIPLIER) & _MASK)
    tail = data[words * 4 :]
    if tail:
        hashed = ((hashed ^ int.from_bytes(tail, "little")) * _MULTIPLIER) & _MASK
    hashed ^= hashed >> 13
    hashed = (hashed * _MULTIPLIER) & _MASK
    return hashed ^ (hashed >> 15)


def partition_of(key: bytes, partitions: int) -> int:
    """Index of the partition for ``key`` among ``partitions``."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


cached_partition_of = lru_cache(maxsize=65_536)(partition_of)
"""For whoever sends: a response has hundreds of deltas with the same key, and the hash is the most expensive
part of sending a small record.
"""
