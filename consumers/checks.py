"""What every transport checks before it writes anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from consumers.transport import Commit, Partition
from guardrail.errors import PartitionLost, TransportError

MAX_METADATA_BYTES: Final = 4096
"""Kafka's default ``offset.metadata.max.bytes``."""


def check_commits(commits: Mapping[Partition, Commit], held: Collection[Partition]) -> None:
    """Raise PartitionLost or TransportError for a position that could not be committed."""
    for partition, commit in commits.items():
        if partition not in held:
            raise PartitionLost(
                f"{partition.topic}[{partition.index}] is not held by this member (any more); "
                "nothing was written"
            )
        if (
            len(commit.metadata) * 4 > MAX_METADATA_BYTES
            and len(commit.metadata.encode()) > MAX_METADATA_BYTES
        ):
            raise TransportError(
                f"the metadata of {partition.topic}[{partition.index}] is over {MAX_METADATA_BYTES} bytes; "
                "nothing was written"
            )
