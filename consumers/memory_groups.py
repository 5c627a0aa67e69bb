"""Consumer groups of the in-process broker: membership, eager rebalance, committed positions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

from consumers.transport import Commit, Partition

Change = Callable[[Collection[Partition]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Member:
    """One member: the partitions it subscribes to, what it holds, and how to tell it."""

    name: str
    subscribed: tuple[Partition, ...]
    assigned: Change
    revoked: Change
    failed: Callable[[BaseException], None]
    """Takes what ``assigned`` or ``revoked`` raised; the rebalance goes on without this member's consent."""
    held: tuple[Partition, ...] = ()
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the member is being told, so that leaving waits for its listener to come back."""


class Group:
    """Members share partitions by range: partition i of all topics goes to the same member.

    Every change of membership starts one rebalance in a background task: all members give up all they
    hold, side by side, and are then assigned anew. Changes during a rebalance lead to another one.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.committed: dict[Partition, Commit] = {}
        self.epochs: dict[Partition, int] = {}
        """Of each partition, the epoch of its latest holder: whoever holds an older one is fenced."""
        self._members: list[Member] = []
        self._changed = False
        self._task: asyncio.Task[None] | None = None

    def join(self, member: Member) -> None:
        """Add a member; it is told its partitions by the rebalance that follows."""
        self._members.append(member)
        self._start_rebalance()

    async def leave(self, member: Member) -> None:
        """Remove a member without telling it. Returns when its listener is no longer running."""
        if member in self._members:
            self._members.remove(member)
        async with member.telling:
            member.held = ()
        self._start_rebalance()
        if not self._members and self._task is not None:
            await self._task

    def fence(self, partition: Partition) -> int:
        """Raise the epoch of a partition, which shuts out every holder so far; returns the new one."""
        epoch = self.epochs[partition] = self.epochs.get(partition, 0) + 1
        return epoch

    def _start_rebalance(self) -> None:
        self._changed = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._rebalance(), name=f"rebalance {self.group_id}")

    async def _rebalance(self) -> None:
        while self._changed:
            self._changed = False
            await asyncio.gather(*(self._revoke(member) for member in tuple(self._members)))
            if not self._changed:
                shares = assign_ranges(self._members)
                await asyncio.gather(*(self._assign(member, share) for member, share in shares))

    async def _revoke(self, member: Member) -> None:
        async with member.telling:
            if member not in self._members or not member.held:
                return
            held, member.held = member.held, ()
            await _tell(member, member.revoked, held)

    async def _assign(self, member: Member, share: tuple[Partition, ...]) -> None:
        async with member.telling:
            if member not in self._members or not share:
                return
            member.held = share
            await _tell(member, member.assigned, share)


async def _tell(member: Member, change: Change, partitions: Collection[Partition]) -> None:
    try:
        await change(partitions)
    except Exception as error:  # noqa: BLE001 - the member's own code: its next poll raises it
        member.failed(error)


def assign_ranges(members: Sequence[Member]) -> list[tuple[Member, tuple[Partition, ...]]]:
    """Split each topic into contiguous ranges, one per subscribed member in order of name.

    The first members get one more where the number of partitions does not divide (Kafka's RangeAssignor).
    """
    shares: dict[Member, list[Partition]] = {member: [] for member in members}
    topics = sorted({partition.topic for member in members for partition in member.subscribed})
    for topic in topics:
        takers = sorted(
            (
                member
                for member in members
                if any(partition.topic == topic for partition in member.subscribed)
            ),
            key=lambda member: member.name,
        )
        partitions = sorted({p for member in takers for p in member.subscribed if p.topic == topic})
        share, extra = divmod(len(partitions), len(takers))
        first = 0
        for position, member in enumerate(takers):
            size = share + (position < extra)
            shares[member].extend(partitions[first : first + size])
            first += size
    return [(member, tuple(share)) for member, share in shares.items()]
