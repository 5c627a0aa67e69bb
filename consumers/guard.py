"""The guard: reads responses, has their claims judged, writes deliveries, verdicts, flags and dead letters.

Reading, judging and writing overlap. Delivery is at least once: a position is committed only after
everything that came of the records before it has been written, and only up to the start of the oldest
response in flight, which is read again from its start after a restart. Outputs have deterministic ids, so
what is written twice is recognised.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Final

import structlog

from consumers.dead_letters import dead_letter
from consumers.fitting import value_within
from consumers.offsets import OffsetTracker, Reading
from consumers.transport import Commit, OutRecord, Partition, Record, Transport
from guardrail.effects import Channel
from guardrail.engine import Engine, Headers, Output
from guardrail.errors import DecodeError, InputError, PartitionLost, TransportError
from guardrail.events import Response, ResponseStarted, parse_input
from guardrail.judges.base import Judge
from guardrail.kafka_settings import Topics
from guardrail.limits import Limits
from guardrail.routing import PolicyRouter

TRACE_HEADERS: Final = frozenset({"traceparent", "tracestate"})
MAX_TRACE_BYTES: Final = 512
MAX_HEADERS: Final = 64
MAX_OUTBOX: Final = 20_000
SLICE: Final = 250
ROOM_FOR_HEADERS: Final = 4_096

log = structlog.get_logger(__name__)


class GuardConsumer:
    """One member of the group of guards, on any transport."""

    def __init__(
        self,
        transport: Transport,
        judge: Judge,
        router: PolicyRouter,
        *,
        limits: Limits | None = None,
        topics: Topics | None = None,
        poll_timeout_ms: int = 100,
        max_poll_records: int = 2_000,
        commit_interval_ms: int = 500,
        drain_timeout_ms: int = 10_000,
        max_record_bytes: int = 8 * 1024 * 1024,
    ) -> None:
        self._transport = transport
        self._limits = limits or Limits()
        self._topics = topics or Topics()
        self._poll_timeout_ms = poll_timeout_ms
        self._max_poll_records = max_poll_records
        self._commit_interval_s = commit_interval_ms / 1000
        self._max_record_bytes = max_record_bytes
        self._drain_timeout_s = drain_timeout_ms / 1000
        self._engine = Engine(judge, router, emit=self._emit, on_closed=self._on_closed, limits=self._limits)
        self._topic_of = {
            Channel.DELIVERIES: self._topics.deliveries,
            Channel.VERDICTS: self._topics.verdicts,
            Channel.FLAGGED: self._topics.flagged,
        }
        self._tracker = OffsetTracker()
        self._revoking: set[Partition] = set()
        self._outbox: list[OutRecord] = []
        self._has_output = asyncio.Event()
        self._outbox_taken = asyncio.Event()
        self._writing = asyncio.Lock()
        self._paused_since: float | None = None
        self._closing = False
        # Records were taken from the outbox and not acknowledged: from then on no position is safe.
        self._unwritten = False

    @property
    def paused(self) -> bool:
        """Is reading paused because a bound of ``limits`` is reached?"""
        return self._paused_since is not None

    async def run(self, stop: asyncio.Event) -> None:
        """Guard until ``stop`` is set, then drain, commit and leave the group.

        Raises TransportError when reading or writing fails; what was not committed is read again by
        whoever takes over.
        """
        try:
            async with self._engine:
                if not await self._started(stop):
                    return
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._write(), name="guard-writer")
                    await self._read(stop)
                    await self._drain()
                    # Not cancelled: what it is writing at this moment would be lost, and yet committed.
                    self._closing = True
                    self._has_output.set()
        except BaseExceptionGroup as errors:
            raise _root_cause(errors) from errors
        finally:
            await self._transport.stop()
            log.info("guard.stopped")

    async def _started(self, stop: asyncio.Event) -> bool:
        """Connect and join, unless ``stop`` is set first."""
        async with asyncio.TaskGroup() as group:
            start = group.create_task(self._transport.start(self), name="guard-start")
            stopped = group.create_task(stop.wait(), name="guard-stop")
            await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            started = start.done()
            start.cancel()
        return started

    # ---------------------------------------------------------------------------------- reading

    async def _read(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            records = await self._transport.poll(self._poll_timeout(), self._max_poll_records)
            for start in range(0, len(records), SLICE):
                for record in records[start : start + SLICE]:
                    self._take(record)
                # Verdicts and timers are waiting for the loop too.
                await asyncio.sleep(0)
            self._regulate()
            while len(self._outbox) > MAX_OUTBOX:
                self._outbox_taken.clear()
                await self._outbox_taken.wait()

    def _poll_timeout(self) -> int:
        return self._poll_timeout_ms if self._paused_since is None else min(self._poll_timeout_ms, 20)

    def _take(self, record: Record) -> None:
        """Handle one record to the end, whatever it holds. Never waits."""
        partition = record.partition
        if partition not in self._tracker.partitions or partition in self._revoking:
            return  # read by its new owner, from the committed position
        reading = self._tracker.reading(partition, record.offset)
        response_id: str | None = None
        try:
            event = parse_input(record.value or b"")
            if isinstance(event, ResponseStarted | Response):
                response_id = event.response_id
                self._begin(event, record, reading)
            else:
                self._engine.handle(event)
        except DecodeError as error:
            response_id = self._unusable(record, error, reading)
        except InputError as error:
            self._dead_letter(record, error, reading)
        except Exception as error:  # noqa: BLE001 - one record that we fail on must not stop all others for ever
            # No traceback: it may quote the record.
            log.error("guard.internal_error", error=type(error).__name__, offset=record.offset)  # noqa: TRY400
            internal = InputError("internal_error", f"{type(error).__name__} while taking this record")
            response_id = self._unusable(record, internal, reading)
        if response_id is not None and self._engine.knows(response_id):
            self._tracker.open(partition, response_id, record.offset)
        self._tracker.read(partition, record.offset)

    def _begin(self, event: ResponseStarted | Response, record: Record, reading: Reading) -> None:
        """A response begins, here or before a restart."""
        if reading is Reading.DECIDED:
            self._engine.pass_over(event, _trace(record.headers))
        elif reading is not Reading.OVER or self._engine.knows(event.response_id):
            # One that was over while its id is in flight is a second start, which does now what it did then.
            self._engine.handle(event, _trace(record.headers))

    def _unusable(self, record: Record, error: InputError, reading: Reading) -> str | None:
        """Dead-letter it, and end the response that its key names: nobody is to wait for it in vain."""
        self._dead_letter(record, error, reading)
        try:
            response_id = (record.key or b"").decode()
        except UnicodeDecodeError:
            return None
        if not 0 < len(response_id) <= 256:
            return None
        if reading in {Reading.FIRST, Reading.AGAIN} or self._engine.knows(response_id):
            self._engine.reject(response_id, error.reason, _trace(record.headers))
        return response_id

    def _dead_letter(self, record: Record, error: InputError, reading: Reading) -> None:
        if reading is not Reading.FIRST:
            return  # was written before the restart
        log.warning(
            "guard.dead_letter",
            reason=error.reason,
            topic=record.partition.topic,
            partition=record.partition.index,
            offset=record.offset,
        )
        self._put(dead_letter(self._topics.dead_letters, record, error, self._max_record_bytes))

    def _regulate(self) -> None:
        """Pause reading while the engine is saturated, and see that a pause ends."""
        engine = self._engine
        now = time.monotonic()
        if self._paused_since is None:
            if engine.saturated and not engine.shedding:
                self._transport.pause(self._tracker.partitions)
                self._paused_since = now
        elif not engine.saturated:
            self._resume()
        elif engine.pending_claims or self._outbox:
            self._paused_since = now  # something under way will make room
        elif now - self._paused_since >= self._limits.overload_grace_ms / 1000:
            # Only input could end the responses in flight, so it is read, and new ones are turned away.
            log.warning("guard.overloaded", sessions=engine.sessions)
            engine.shedding = True
            self._resume()

    def _resume(self) -> None:
        self._paused_since = None
        self._transport.resume(self._tracker.partitions)

    # ---------------------------------------------------------------------------------- writing

    def _emit(self, output: Output) -> None:
        event = output.event
        value, omitted = value_within(event, self._max_record_bytes - ROOM_FOR_HEADERS)
        if omitted:
            log.warning("guard.event_too_large", response_id=event.response_id, omitted=omitted)
        topic = self._topic_of[output.channel]
        self._put(OutRecord(topic, event.response_id.encode(), value, output.headers))

    def _put(self, record: OutRecord) -> None:
        self._outbox.append(record)
        self._has_output.set()

    def _on_closed(self, response_id: str) -> None:
        # What it emitted is in the outbox, and commits are taken together with the outbox.
        self._tracker.close(response_id)

    async def _write(self) -> None:
        """Write what comes up, in order; at the end, once more, everything there is."""
        last_commit = time.monotonic()
        while not self._closing:
            due = max(0.0, last_commit + self._commit_interval_s - time.monotonic())
            try:
                async with asyncio.timeout(due):
                    await self._has_output.wait()
            except TimeoutError:
                pass
            commit = time.monotonic() - last_commit >= self._commit_interval_s
            await self._flush(commit=commit)
            if commit:
                last_commit = time.monotonic()
        await self._flush(commit=True)

    async def _flush(self, *, commit: bool, partitions: Collection[Partition] | None = None) -> None:
        """Write what there is; with ``commit``, the positions that this makes safe."""
        async with self._writing:
            if self._unwritten:
                raise TransportError("an earlier write failed or was cut off; nothing more is written")
            records, self._outbox = self._outbox, []
            self._has_output.clear()
            self._outbox_taken.set()
            commits = self._tracker.commits(self._engine.decided, partitions) if commit else {}
            if not records and not commits:
                return
            self._unwritten = True
            try:
                await self._transport.publish(records, commits)
            except PartitionLost as error:
                # Whoever holds the partition now reads on from its last position. The records may or may
                # not have been written; written twice they are recognised, never written they would be lost.
                log.warning("guard.partition_lost", error=str(error))
                await self._transport.publish(records, {})
            else:
                self._tracker.committed(commits)
            self._unwritten = False

    async def _drain(self) -> None:
        """Take nothing more; wait for verdicts that are under way, within the budget."""
        log.info("guard.draining", sessions=self._engine.sessions, claims=self._engine.pending_claims)
        self._transport.pause(self._tracker.partitions)
        try:
            async with asyncio.timeout(self._drain_timeout_s):
                await self._engine.drain()
        except TimeoutError:
            log.warning("guard.drain_timeout", claims=self._engine.pending_claims)

    # ------------------------------------------------------------------------------- assignment

    async def on_assigned(self, committed: Mapping[Partition, Commit | None]) -> None:
        """Part of AssignmentListener."""
        self._revoking.difference_update(committed)
        self._tracker.assign(committed)
        if self._paused_since is not None:
            self._transport.pause(committed.keys())
        log.info("guard.assigned", partitions=[f"{p.topic}-{p.index}" for p in sorted(committed)])

    async def on_revoked(self, partitions: Collection[Partition]) -> None:
        """Part of AssignmentListener. Responses in flight are left to the next owner, from their start."""
        self._revoking.update(partitions)
        await self._flush(commit=True, partitions=partitions)
        dropped = self._tracker.revoke(partitions)
        self._engine.discard(dropped)
        log.info(
            "guard.revoked",
            partitions=[f"{p.topic}-{p.index}" for p in sorted(partitions)],
            responses_handed_over=len(dropped),
        )


def _trace(headers: Headers) -> Headers:
    """The W3C trace context, carried from the input to every output; one that can't be one is not."""
    return tuple(
        (name, value)
        for name, value in headers[:MAX_HEADERS]
        if name.lower() in TRACE_HEADERS and len(value) <= MAX_TRACE_BYTES
    )


def _root_cause(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error worth telling: a TransportError where there is one, else the first."""
    found: BaseException = errors.subgroup(TransportError) or errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
