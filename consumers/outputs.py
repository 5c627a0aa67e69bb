"""What a guard says as it leaves: as the records of its topics, and counted, logged and traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import structlog

from consumers import transport
from consumers.ops import ResponseLog
from consumers.settings import Topics
from consumers.transport import OutRecord
from guardrail import telemetry
from guardrail.engine.engine import Headers, Output
from guardrail.events import GROUP_HEADER, ClaimVerdict, FlaggedCase, OutputEvent, ResponseVerdict
from guardrail.session.outputs import Channel
from guardrail.tracing import Traces

log = structlog.get_logger(__name__)

_KEPT_CHARS: Final = 10_000


def value_within(event: OutputEvent, max_bytes: int) -> tuple[bytes, tuple[str, ...]]:
    """The event as JSON of at most ``max_bytes``, and the names of the fields that had to be left out."""
    value = event.to_json()
    omitted: tuple[str, ...] = ()
    for name, changes in _smaller(event):
        if len(value) <= max_bytes:
            break
        omitted = (*omitted, name)
        event = event.model_copy(update={**changes, "omitted": omitted})
        value = event.to_json()
    return value, omitted


def _smaller(event: OutputEvent) -> Iterator[tuple[str, dict[str, Any]]]:
    """The fields to leave out, starting with what is easiest to find elsewhere."""
    if isinstance(event, FlaggedCase):
        yield "contexts", {"contexts": tuple(c.model_copy(update={"text": ""}) for c in event.contexts)}
    if isinstance(event, FlaggedCase | ResponseVerdict):
        yield "claims.evidence", {"claims": tuple(_bare(claim) for claim in event.claims)}
        yield "claims", {"claims": ()}
    if isinstance(event, ResponseVerdict):
        yield "hallucinated_claims", {"hallucinated_claims": ()}
    if isinstance(event, ClaimVerdict):
        yield "evidence", {"evidence": ()}
    if isinstance(event, FlaggedCase):
        yield "metadata", {"metadata": {}, "contexts": ()}
        texts = {name: getattr(event, name)[:_KEPT_CHARS] for name in ("question", "answer", "delivered")}
        yield "rest of the texts", texts


def _bare(claim: ClaimVerdict) -> ClaimVerdict:
    return claim.model_copy(update={"evidence": (), "omitted": ("evidence",)})


_TRACE_HEADERS: Final = ("traceparent", "tracestate")
_MAX_TRACE_BYTES: Final = 512
_MAX_HEADERS: Final = 64


def trace_context(headers: transport.Headers) -> Headers:
    """The W3C trace context, carried from the input to every output, unless it is malformed."""
    found: dict[str, tuple[str, bytes]] = {}
    for name, value in headers[:_MAX_HEADERS]:
        if value is not None and name.lower() in _TRACE_HEADERS and len(value) <= _MAX_TRACE_BYTES:
            found.setdefault(name.lower(), (name, value))
    return tuple(found.values())


_ROOM_FOR_HEADERS: Final = 4_096


class Outputs:
    """What becomes of the events of a guard, whatever carries its input."""

    def __init__(self, topics: Topics, group: str, max_record_bytes: int, traces: Traces | None) -> None:
        self.max_value_bytes = max_record_bytes - _ROOM_FOR_HEADERS
        self.responses = ResponseLog()
        self._topic_of = {
            Channel.DELIVERIES: topics.deliveries,
            Channel.VERDICTS: topics.verdicts,
            Channel.FLAGGED: topics.flagged,
        }
        self._group_header = (GROUP_HEADER, group.encode())
        self._traces = traces

    def records(self, outputs: Sequence[Output], *, deliveries: bool = True) -> list[OutRecord]:
        """They as records, with or without the deliveries; an event that fits is written out once."""
        records: list[OutRecord] = []
        for output in outputs:
            if output.channel is Channel.DELIVERIES and not deliveries:
                continue
            event = output.event
            value = event.to_json()
            if len(value) > self.max_value_bytes:
                value, omitted = value_within(event, self.max_value_bytes)
                telemetry.OVERSIZED.inc()
                log.warning("guard.event_too_large", response_id=event.response_id, omitted=omitted)
            headers = (*output.headers, self._group_header)
            key = event.response_id.encode()
            records.append(OutRecord(self._topic_of[output.channel], key, value, headers))
        return records

    def note(self, outputs: Sequence[Output]) -> None:
        """Count them, log how answers were decided, and make their spans."""
        for output in outputs:
            telemetry.count_output(output.event, output.waited_s, output.late_s)
            if isinstance(output.event, ResponseVerdict):
                self.responses.on_verdict(output.event, output.headers)
            if self._traces is not None:
                self._traces.on_event(output.event, output.headers)
