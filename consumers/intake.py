"""Takes records: decodes them, hands events to the engine, and makes dead letters of what can't be used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from consumers import transport
from consumers.bad_records import BadRecords
from consumers.dead_letters import dead_letter
from consumers.guarantee import Holding
from consumers.offsets import Reading
from consumers.transport import Partition, Record
from guardrail.engine import Engine, Headers
from guardrail.errors import DecodeError, InputError
from guardrail.events import Response, ResponseStarted, parse_input
from guardrail.kafka_settings import Topics
from guardrail.limits import Limits

TRACE_HEADERS: Final = ("traceparent", "tracestate")
MAX_TRACE_BYTES: Final = 512
MAX_HEADERS: Final = 64

log = structlog.get_logger(__name__)


class Intake:
    """One for all partitions. Never waits."""

    def __init__(
        self,
        engine: Engine,
        topics: Topics,
        limits: Limits,
        *,
        max_record_bytes: int,
        changed: Callable[[Partition, str], None],
    ) -> None:
        """``changed`` is told of a response that a record of another partition has changed."""
        self._engine = engine
        self._changed = changed
        self._dead_letters = topics.dead_letters
        self._max_record_bytes = max_record_bytes
        self._bad_records = BadRecords(limits, topics.responses)

    def take(self, holding: Holding, record: Record) -> None:
        """Handle one record to the end, whatever it holds.

        Raises TooManyBadRecords; the record does not count as taken then.
        """
        reading = holding.reading(record.offset)
        response_id: str | None = None
        try:
            event = parse_input(record.value or b"")
            self._bad_records.good()
            response_id = event.response_id
            if isinstance(event, ResponseStarted | Response):
                self._begin(event, record, reading)
            else:
                self._engine.handle(event, lane=record.partition, born=record.offset)
        except DecodeError as error:
            self._bad_records.bad()
            response_id = self._unusable(holding, record, error, reading)
        except InputError as error:
            self._dead_letter(holding, record, error, reading)
        except Exception as error:  # noqa: BLE001 - one record that we fail on must not stop all others for ever
            # No traceback: it may quote the record.
            log.error("guard.internal_error", error=type(error).__name__, offset=record.offset)  # noqa: TRY400
            internal = InputError("internal_error", f"{type(error).__name__} while taking this record")
            response_id = self._unusable(holding, record, internal, reading)
        lane = None if response_id is None else self._engine.lane_of(response_id)
        if response_id is not None and lane != record.partition:
            if isinstance(lane, Partition):
                self._changed(lane, response_id)  # it was ended by an event that came on the wrong partition
            response_id = None  # not in flight on this one
        holding.taken(record.offset, response_id)

    def _begin(self, event: ResponseStarted | Response, record: Record, reading: Reading) -> None:
        """A response begins, here or before a restart."""
        headers, lane, born = _trace(record.headers), record.partition, record.offset
        if reading is Reading.DECIDED:
            self._engine.pass_over(event, headers, lane=lane, born=born)
        elif reading is not Reading.OVER or self._engine.knows(event.response_id):
            # One that was over while its id is in flight is a second start, which does now what it did then.
            self._engine.handle(event, headers, lane=lane, born=born)

    def _unusable(self, holding: Holding, record: Record, error: InputError, reading: Reading) -> str | None:
        """Dead-letter it, and end the response that its key names: nobody is to wait for it in vain."""
        self._dead_letter(holding, record, error, reading)
        try:
            response_id = (record.key or b"").decode()
        except UnicodeDecodeError:
            return None
        if not 0 < len(response_id) <= 256:
            return None
        if reading in {Reading.FIRST, Reading.AGAIN} or self._engine.knows(response_id):
            self._engine.reject(
                response_id,
                error.reason,
                _trace(record.headers),
                lane=record.partition,
                born=record.offset,
            )
        return response_id

    def _dead_letter(self, holding: Holding, record: Record, error: InputError, reading: Reading) -> None:
        if reading is not Reading.FIRST:
            return  # was written before the restart
        log.warning(
            "guard.dead_letter",
            reason=error.reason,
            topic=record.partition.topic,
            partition=record.partition.index,
            offset=record.offset,
        )
        holding.put(dead_letter(self._dead_letters, record, error, self._max_record_bytes))


def _trace(headers: transport.Headers) -> Headers:
    """The W3C trace context, carried from the input to every output; one that can't be one is not."""
    found: dict[str, tuple[str, bytes]] = {}
    for name, value in headers[:MAX_HEADERS]:
        if value is not None and name.lower() in TRACE_HEADERS and len(value) <= MAX_TRACE_BYTES:
            found.setdefault(name.lower(), (name, value))
    return tuple(found.values())
