"""The guard: reads responses, has their claims judged, writes deliveries, verdicts, flags and dead letters.

Reading, judging and writing overlap. ``consumers.exactly_once`` and ``consumers.guarantee``
decide when and how outputs are written, and what that guarantees.

No answer may stop the guard. An unusable record becomes a dead letter. An output event that is too large for
a record, such as a case with megabytes of contexts, leaves out some fields and names them. Their content is
still on the topics: contexts in the input, evidence in the verdicts on single claims.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import structlog

from consumers.dead_letters import BadRecords, dead_letter
from consumers.exactly_once import ExactlyOnce
from consumers.guarantee import AtLeastOnce, Guarantee, GuardOptions, Holding, StartStatus
from consumers.outputs import Outputs, trace_context
from consumers.transport import NOT_ASSIGNED, Partition, Record, Restored, Transport
from guardrail import telemetry
from guardrail.engine.engine import Change, Engine, Output
from guardrail.errors import DecodeError, GuardrailError, InputError, NotAllowed
from guardrail.events import InputEvent, Response, ResponseDelta, ResponseStarted, parse_input
from guardrail.judges.base import Judge
from guardrail.routing import PolicyRouter
from guardrail.telemetry import GuardState, PartitionState, state_of
from guardrail.tracing import Traces

log = structlog.get_logger(__name__)


class Intake:
    """Takes the records of all partitions. Never waits."""

    def __init__(self, engine: Engine, options: GuardOptions) -> None:
        self._engine = engine
        self._dead_letters = options.topics.dead_letters
        self._max_record_bytes = options.max_record_bytes
        self._limits = options.limits
        self._producers = options.producers
        self._bad_records: dict[Partition, BadRecords] = {}

    def pauses(self, partition: Partition) -> bool:
        """Whether the next record of the partition has to wait, because too many of it can't be read."""
        return partition in self._bad_records and self._bad_records[partition].pausing

    @property
    def unreadable(self) -> Collection[Partition]:
        """The partitions of which too many records can't be read."""
        return [partition for partition, bad in self._bad_records.items() if bad.too_many]

    def forget(self, partitions: Iterable[Partition]) -> None:
        """They are no longer held."""
        for partition in partitions:
            self._bad_records.pop(partition, None)

    def take(self, holding: Holding, records: Iterable[Record]) -> int:
        """Handle some of these records of one partition completely, in order, whatever they contain: a few
        records, or many small deltas. Returns how much work they were, in characters of text.

        Deltas of one response are joined, whatever stands between them: responses don't wait for each other.
        """
        joined: dict[str, list[tuple[Record, ResponseDelta]]] = {}
        bad_records = self._bad_records.get(holding.partition)
        if bad_records is None:
            bad_records = self._bad_records[holding.partition] = BadRecords(self._limits, holding.partition)
        good = work = 0
        offset: int | None = None
        for record in records:
            offset = record.offset
            try:
                event = parse_input(record.value or b"")
            except DecodeError as error:
                bad_records.good(good)
                bad_records.bad()
                good = 0
                self._hand_over(holding, joined)  # its key may name a response, whose text comes first
                holding.taken(offset, self._unusable(holding, record, error))
                work += WORK_OF_RECORD
            except Exception as error:  # noqa: BLE001 - see _failed
                self._hand_over(holding, joined)
                self._failed(holding, record, error)
                work += WORK_OF_RECORD
            else:
                good += 1
                response_id = event.response_id
                before = joined.get(response_id)
                if isinstance(event, ResponseDelta):
                    if before is not None and event.seq == before[-1][1].seq + 1:
                        before.append((record, event))
                    else:
                        if before is not None:
                            self._hand_over(holding, {response_id: before})
                        joined[response_id] = [(record, event)]
                    work += WORK_OF_DELTA + len(event.text)
                else:
                    if before is not None:
                        self._hand_over(holding, {response_id: joined.pop(response_id)})
                    self._handle(holding, [record], event)
                    holding.taken(offset, response_id)
                    work += WORK_OF_RECORD
            if work >= SLICE or bad_records.too_many:
                break
        if good:
            bad_records.good(good)
        self._hand_over(holding, joined)
        if offset is not None:
            holding.taken(offset, None)
        return work

    def _hand_over(self, holding: Holding, joined: dict[str, list[tuple[Record, ResponseDelta]]]) -> None:
        """Have the deltas handled, those of one response together if they fit it."""
        for response_id, deltas in joined.items():
            if len(deltas) > 1:
                first = deltas[0][1]
                text = "".join([delta.text for _, delta in deltas])
                if self._engine.joins(response_id, first.seq, len(text), holding.partition):
                    whole = first.model_copy(update={"text": text})
                    self._handle(holding, [record for record, _ in deltas], whole)
                    continue
            for record, delta in deltas:
                self._handle(holding, [record], delta)
        joined.clear()

    def _handle(self, holding: Holding, records: Sequence[Record], event: InputEvent) -> None:
        """Have the event of a record handled, or what several deltas are together."""
        record = records[-1]
        try:
            if isinstance(event, ResponseStarted | Response):
                held = event if self._producers is None else self._producers.held(event)
                self._begin(held, record, holding.reading(record.offset))
            else:
                # Joined text is as old as its beginning: it may have waited for the rest.
                late_s = _age_s(records[0])
                lane, born, pieces = record.partition, record.offset, len(records)
                self._engine.handle(event, lane=lane, born=born, late_s=late_s, pieces=pieces)
        except NotAllowed as error:
            self._refuse(holding, record, error, event.response_id)
        except InputError as error:
            self._dead_letter(holding, record, error, holding.reading(record.offset))
        except Exception as error:  # noqa: BLE001 - see _failed
            for each in records:
                self._failed(holding, each, error)

    def _failed(self, holding: Holding, record: Record, error: Exception) -> None:
        """One record that we fail on must not stop all others for ever."""
        # No traceback: it may quote the record.
        log.error("guard.internal_error", error=type(error).__name__, offset=record.offset)
        internal = InputError("internal_error", f"{type(error).__name__} while taking this record")
        holding.taken(record.offset, self._unusable(holding, record, internal))

    def _begin(self, event: ResponseStarted | Response, record: Record, reading: StartStatus) -> None:
        """A response begins, now or before a restart."""
        headers, lane, born = trace_context(record.headers), record.partition, record.offset
        if reading is StartStatus.DECIDED:
            self._engine.skip(event, headers, lane=lane, born=born)
        elif reading is not StartStatus.OVER or self._engine.knows(event.response_id):
            # If it was over while its id is in flight again, this is a second start, which has the same
            # effect as the first time.
            self._engine.handle(event, headers, lane=lane, born=born, late_s=_age_s(record))

    def _unusable(self, holding: Holding, record: Record, error: InputError) -> str | None:
        """Dead-letter the record, and end the response that its key names. Returns that response's id."""
        try:
            key = (record.key or b"").decode()
        except UnicodeDecodeError:
            key = ""
        response_id = key if 0 < len(key) <= 256 else None
        self._refuse(holding, record, error, response_id)
        return response_id

    def _refuse(self, holding: Holding, record: Record, error: InputError, response_id: str | None) -> None:
        """Dead-letter the record, and end its response, so that nobody waits for it in vain."""
        reading = holding.reading(record.offset)
        self._dead_letter(holding, record, error, reading)
        if response_id is None:
            return
        if reading in {StartStatus.FIRST, StartStatus.AGAIN} or self._engine.knows(response_id):
            self._engine.reject(
                response_id,
                error.reason,
                trace_context(record.headers),
                lane=record.partition,
                born=record.offset,
            )

    def _dead_letter(self, holding: Holding, record: Record, error: InputError, reading: StartStatus) -> None:
        if reading is not StartStatus.FIRST:
            return  # was written before the restart
        telemetry.DEAD_LETTERS.labels(error.reason).inc()
        log.warning(
            "guard.dead_letter",
            reason=error.reason,
            error=str(error),
            topic=record.partition.topic,
            partition=record.partition.index,
            offset=record.offset,
        )
        holding.put([dead_letter(self._dead_letters, record, error, self._max_record_bytes)])


def _age_s(record: Record) -> float:
    """Seconds since it was written; 0 for a record without a timestamp, or of a clock that is ahead."""
    return max(0.0, time.time() - record.timestamp_ms / 1000) if record.timestamp_ms > 0 else 0.0


SLICE: Final = 1_000
"""Work before other tasks have their turn, in characters of text: a few milliseconds, as so many deltas are
worth joining."""
TURN: Final = 125
"""For so much of it they have one."""
WORK_OF_RECORD: Final = 125
"""What a record is in this, but a delta: a claim has so many characters."""
WORK_OF_DELTA: Final = 4
"""And a delta beside its text."""
CLOSING_SHARE: Final = 0.6
"""Of the time to leave in: put by for leaving the group and closing, when the last step takes too long."""
WAITING_TOLD_S: Final = 3.0


class Waiting:
    """Tells when the guard begins to read, and once of each wait before that, if it is a long one."""

    def __init__(self, hint: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds."""
        self._hint = hint
        self._clock = clock
        self._reads = False
        self._since = clock()
        self._told = False

    def look(self, waits_for: str, partitions: int) -> None:
        """``waits_for`` is empty when the guard reads."""
        now = self._clock()
        if not waits_for:
            if not self._reads:
                self._reads = True
                log.info("guard.ready", partitions=partitions)
            return
        if self._reads:
            self._reads, self._told, self._since = False, False, now
        if not self._told and now - self._since >= WAITING_TOLD_S:
            self._told = True
            hint = {"hint": self._hint} if self._hint and waits_for == NOT_ASSIGNED else {}
            log.info("guard.waiting", waits_for=waits_for, **hint)


def _admitted(holding: Holding, records: deque[tuple[Holding, Record]]) -> Iterator[Record]:
    """The first records, taken from ``records``, of those that were read for this holding."""
    while records and records[0][0] is holding:
        _, record = records.popleft()
        if holding.admits(record):
            yield record


class GuardConsumer:
    """One member of the group of guards, on any transport."""

    def __init__(
        self,
        transport: Transport,
        judge: Judge,
        router: PolicyRouter,
        options: GuardOptions,
        *,
        judges: Mapping[str, Judge] | None = None,
        traces: Traces | None = None,
        waiting_hint: str | None = None,
    ) -> None:
        """``judges`` are those that policies name; ``judge`` is for all others. ``waiting_hint`` tells in
        the log why waiting for partitions may take long.
        """
        self._transport = transport
        self._options = options
        self._outputs = Outputs(options.topics, transport.group, options.max_record_bytes, traces)
        self._leave_timeout_s = options.leave_timeout_ms / 1000
        self._not_stopped_at = 0.0
        """When ``stop`` was last seen not to be set: the time to leave in counts from there."""
        self._guarantee: Guarantee
        on_change: Callable[[Change], None] | None = None
        if options.delivery_guarantee == "exactly_once":
            self._guarantee = lanes = ExactlyOnce(transport, options, self._outputs.max_value_bytes)
            on_change = lanes.changed
        else:
            self._guarantee = AtLeastOnce(transport, commit_interval_ms=options.commit_interval_ms)
        self._engine = Engine(
            judge,
            router,
            emit=self._emit,
            on_closed=self._guarantee.closed,
            on_change=on_change,
            limits=options.limits,
            judges=judges,
        )
        self._intake = Intake(self._engine, options)
        self._guarantee.attach(self._engine, self._take_waited)
        self._paused: frozenset[Partition] = frozenset()
        self._full_since: float | None = None
        self._untaken: dict[Partition, deque[tuple[Holding, Record]]] = {}
        """Records that were read before it showed that the judge is behind, or that too many of their
        partition can't be read; none of a partition without any."""
        self._read_until: dict[Partition, float] = {}
        self._waiting = Waiting(waiting_hint)

    def use(self, router: PolicyRouter, judges: Mapping[str, Judge] | None = None) -> None:
        """Use ``router`` from the next response on; responses in flight keep their policies.

        ``judges`` are added to those that policies can name. Raises ConfigError, and changes nothing, if a
        policy names a judge that doesn't exist.
        """
        self._engine.use(router, judges)

    def waits_for(self) -> str:
        """Why the guard is not ready yet, in words; empty if it is ready."""
        if waits_for := self._transport.waits_for():
            return waits_for
        restoring = sum(not holding.ready for holding in self._guarantee.holdings().values())
        restoring += len(self._guarantee.recovering())
        return f"the sessions of {restoring} partitions are being restored" if restoring else ""

    def note(self) -> str:
        """What is wrong while the guard is ready, in words; empty if nothing is."""
        unreadable = sorted(f"{held.topic}-{held.index}" for held in self._intake.unreadable)
        told = "read slowly, as too many records can't be read: "
        return told + ", ".join(unreadable) if unreadable else ""

    def state(self) -> GuardState:
        """What the guard currently holds."""
        unreadable = self._intake.unreadable
        held = [
            PartitionState(*at, holding.ready, at in self._paused, self._lag(at, holding), at in unreadable)
            for at, holding in self._guarantee.holdings().items()
        ]
        recovering = [
            PartitionState(*at, ready=False, paused=False, lag=None) for at in self._guarantee.recovering()
        ]
        return state_of(self._engine, self._oldest_s(), (*held, *recovering), ready=not self.waits_for())

    def _lag(self, held: Partition, holding: Holding) -> int | None:
        unread = self._transport.unread(held)
        if unread is None:
            return None
        return unread + len(holding.waiting) + len(self._untaken.get(held, ()))

    def _oldest_s(self) -> float | None:
        """How long ago the oldest text that waits was written, wherever it is; None while sessions are being
        restored, or partitions assigned.
        """
        held = self._guarantee.holdings()
        unassigned = not held and not self._guarantee.recovering()
        if not all(holding.ready for holding in held.values()) or (unassigned and self.waits_for()):
            return None
        ages = [self._engine.oldest_held_s()]
        ages += [_age_s(holding.waiting[0]) for holding in held.values() if holding.waiting]
        ages += [_age_s(records[0][1]) for records in self._untaken.values()]
        ages += [time.time() - since for partition, since in self._read_until.items() if partition in held]
        since = self._guarantee.unwritten_since
        return max(0.0, *ages, 0.0 if since is None else time.monotonic() - since)

    def _note_reading(self, records: Sequence[Record]) -> None:
        """Keep until when, in Unix seconds, everything written has been read, for partitions where something
        has not: what is not, was written later than the last record, and than the last moment without any.
        """
        for record in records:
            self._read_until[record.partition] = time.time() - _age_s(record)
        for partition in self._guarantee.holdings():
            unread = self._transport.unread(partition)
            if unread == 0:
                self._read_until.pop(partition, None)
            elif unread and partition not in self._read_until:
                self._read_until[partition] = time.time()

    async def run(self, stop: asyncio.Event) -> None:
        """Guard until ``stop`` is set, then drain, commit and leave the group.

        Raises TransportError if reading or writing fails permanently, and StateError. The next owner reads
        again what was not committed.
        """
        try:
            async with self._engine, self._guarantee:
                if not await self._started(stop):
                    return
                summaries = self._engine.spawn(self._outputs.responses.summarise(), name="guard-summaries")
                await self._read(stop)
                await self._drain()
                await self._guarantee.close(self._left_s(self._leave_timeout_s * CLOSING_SHARE))
                summaries.cancel()
                self._outputs.responses.summary()
        except BaseExceptionGroup as errors:
            raise _root_cause(errors) from errors
        finally:
            await self._transport.stop(self._left_s() if stop.is_set() else self._leave_timeout_s)
            log.info("guard.stopped")

    async def _started(self, stop: asyncio.Event) -> bool:
        """Connect and join, unless ``stop`` is set first."""
        async with asyncio.TaskGroup() as group:
            start = group.create_task(self._transport.start(self), name="guard-start")
            stopped = group.create_task(stop.wait(), name="guard-stop")
            await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._not_stopped_at = time.monotonic()
            stopped.cancel()
            started = start.done()
            start.cancel()
        return started

    def _left_s(self, but: float = 0.0) -> float:
        """The time left to leave in, minus ``but``."""
        drain_timeout_s = self._options.drain_timeout_ms / 1000
        end = self._not_stopped_at + drain_timeout_s + self._leave_timeout_s - but
        return max(0.0, end - time.monotonic())

    # ---------------------------------------------------------------------------------- reading

    async def _read(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._not_stopped_at = time.monotonic()
            self._waiting.look(self.waits_for(), len(self._guarantee.holdings()))
            timeout_ms = self._options.poll_timeout_ms
            timeout_ms = min(timeout_ms, 20) if self._paused else timeout_ms
            records = await self._transport.poll(timeout_ms, self._options.max_poll_records)
            telemetry.RECORDS.inc(len(records))
            self._note_reading(records)
            # The holdings at this moment: if one is thrown away in the meantime, its records don't belong to
            # its successor, which reads them again.
            holdings = self._guarantee.holdings()
            for record in records:
                if (holding := holdings.get(record.partition)) is not None:
                    self._untaken.setdefault(record.partition, deque()).append((holding, record))
            while not self._to_wait():
                ready = [partition for partition in self._untaken if not self._intake.pauses(partition)]
                if not ready:
                    break
                for partition in ready:
                    # Verdicts and timers need the event loop too, and a transaction many turns of it.
                    for _ in range(1 + self._take_some(partition) // TURN):
                        await asyncio.sleep(0)
            self._regulate()

    def _take_some(self, partition: Partition) -> int:
        """Take records of the partition for once; returns how much work that was."""
        records = self._untaken.get(partition)  # it may have been revoked
        work = 0
        if records and not self._to_wait():
            holding = records[0][0]
            work = self._intake.take(holding, _admitted(holding, records))
        if not records:
            self._untaken.pop(partition, None)
        return work

    def _take_waited(self, holding: Holding, records: Iterable[Record]) -> None:
        """Take records that found their lane full. Where too much of the partition can't be read, they
        wait on, with those that were read after them.
        """
        if self._intake.pauses(holding.partition):
            untaken = self._untaken.setdefault(holding.partition, deque())
            untaken.extendleft((holding, record) for record in reversed(holding.release()))
        else:
            self._intake.take(holding, records)

    def _to_wait(self) -> bool:
        """Whether text must wait for the judge to catch up: the time of its claims would run out."""
        return self._engine.behind and not self._engine.shedding

    def _regulate(self) -> None:
        """Pause partitions that should be read no further for now, and make sure that every pause ends."""
        self._full_since = self._time_of_fullness()
        held = self._guarantee.holdings().keys()
        hot = self._engine.lanes_to_pause(held)
        wanted = {
            *self._guarantee.congested(),
            *(lane for lane in held if lane in hot or self._intake.pauses(lane)),
        }
        resumed = self._paused - wanted
        self._transport.pause(wanted - self._paused)
        self._transport.resume(resumed)
        self._paused = frozenset(wanted)

    def _time_of_fullness(self) -> float | None:
        """Since when nothing under way could make room in the full engine; None: not full."""
        engine = self._engine
        now = time.monotonic()
        if not engine.saturated or engine.shedding:
            return None
        if self._full_since is None or engine.pending_claims or self._guarantee.busy:
            return now  # something under way will make room
        if now - self._full_since < self._options.limits.overload_grace_ms / 1000:
            return self._full_since
        # Only input could end the responses in flight, so reading continues, and new responses are turned
        # away.
        log.warning("guard.overloaded", sessions=engine.sessions)
        telemetry.OVERLOADS.inc()
        engine.shedding = True
        return None

    # ---------------------------------------------------------------------------------- writing

    def _emit(self, outputs: Sequence[Output]) -> None:
        """Hand what one step of a response says to its lane; an event that fits is written out once."""
        lane = outputs[0].lane
        assert isinstance(lane, Partition)  # noqa: S101 - every event is handled with its partition
        self._guarantee.put(lane, self._outputs.records(outputs))
        self._outputs.note(outputs)

    async def _drain(self) -> None:
        """Take no more records; wait for verdicts under way, within the budget, but not for reasons."""
        log.info("guard.draining", sessions=self._engine.sessions, claims=self._engine.pending_claims)
        self._transport.pause(self._guarantee.holdings().keys())
        try:
            async with asyncio.timeout(self._left_s(self._leave_timeout_s)):
                await self._engine.drain()
        except TimeoutError:
            log.warning("guard.drain_timeout", claims=self._engine.pending_claims)
        self._engine.tell_verdicts()

    # ------------------------------------------------------------------------------- assignment

    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None:
        """Part of AssignmentListener."""
        self._paused = self._paused.difference(restored)  # a pause ends with the assignment
        await self._guarantee.assigned(restored)
        telemetry.REBALANCES.labels("assigned").inc()
        log.info("guard.assigned", partitions=[f"{p.topic}-{p.index}" for p in sorted(restored)])

    async def on_revoked(self, partitions: Collection[Partition]) -> None:
        """Part of AssignmentListener."""
        await self._guarantee.revoked(partitions)
        self._paused = self._paused.difference(partitions)
        self._intake.forget(partitions)
        for partition in partitions:
            self._untaken.pop(partition, None)
            self._read_until.pop(partition, None)
        telemetry.REBALANCES.labels("revoked").inc()
        log.info("guard.revoked", partitions=[f"{p.topic}-{p.index}" for p in sorted(partitions)])


def _root_cause(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report: one that was raised on purpose if there is one, else the first."""
    found: BaseException = errors.subgroup(GuardrailError) or errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
