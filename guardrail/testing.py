"""Tests of a chat service without Kafka: the guard in memory, a scripted judge, and a check of events.

::

    async with MemoryGuard(ScriptedJudge({"30 days": "CONTRADICTED"})) as guard:
        async with GuardClient(transport=guard.transport()) as client:
            ...  # the chat service under test, on this client
        assert check_events(guard.records("responses")) == []

This is the production guard with its sessions, policies and transactions; only the broker and, if you like,
the judge are replaced. Like the command line, this module is outside the library and may import
``consumers``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self
from uuid import uuid4

import structlog

from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from consumers.transport import Record
from guardrail.client.transport import DeliveryRecord, OutgoingRecord
from guardrail.errors import InputError, TransportError, TransportUnavailable
from guardrail.events import (
    AnyOutputEvent,
    Event,
    InputEvent,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    Usage,
    Verdict,
    parse_input,
    parse_output,
)
from guardrail.judges.base import Judge, JudgeRequest
from guardrail.limits import Limits
from guardrail.partitioning import partition_of
from guardrail.policy import Policy
from guardrail.printable import escape_controls, shorten
from guardrail.routing import PolicyRouter
from guardrail.verdicts import Judgement

__all__ = ["MemoryBroker", "MemoryClientTransport", "MemoryGuard", "ScriptedJudge", "check_events"]

TopicName = Literal["responses", "deliveries", "verdicts", "flagged", "dead_letters"]
Script = Mapping[str, Verdict | str] | Callable[[str], Verdict | str]

_SUPPORT: Final = {
    Verdict.SUPPORTED: 0.97,
    Verdict.PARTIALLY_SUPPORTED: 0.5,
    Verdict.UNSUPPORTED: 0.05,
    Verdict.CONTRADICTED: 0.02,
    Verdict.UNVERIFIED: None,
}


class ScriptedJudge:
    """A judge whose verdicts the test defines.

    ``script`` is a table, whose first key that occurs in the claim (ignoring case) gives the verdict, or a
    function from the claim's text to the verdict. Other claims get ``otherwise``. Verdicts are ``Verdict``
    members or their names; another name raises ValueError. ``claims`` are the texts it was asked about.

    While ``gate`` is not set it doesn't answer: ``judge.gate.clear()`` makes a judge that hangs.
    """

    name = "scripted"

    def __init__(self, script: Script | None = None, *, otherwise: Verdict | str = Verdict.SUPPORTED) -> None:
        self._otherwise = Verdict(otherwise)
        self._rule: Callable[[str], Verdict | str]
        if callable(script):
            self._rule = script
        else:
            table = [(part.casefold(), Verdict(verdict)) for part, verdict in (script or {}).items()]
            self._rule = lambda claim: next(
                (verdict for part, verdict in table if part in claim.casefold()), self._otherwise
            )
        self.claims: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Part of ``guardrail.Judge``."""
        request.meter.admit()
        request.meter.add(Usage(judge_calls=1))
        await self.gate.wait()
        for claim_id, claim in request.claims.items():
            text = claim.prose.text
            self.claims.append(text)
            verdict = Verdict(self._rule(text))
            contradiction = 0.97 if verdict is Verdict.CONTRADICTED else 0.01
            yield Judgement(
                claim_id,
                verdict,
                0.0 if verdict is Verdict.UNVERIFIED else 0.97,
                _SUPPORT[verdict],
                self.name,
                contradiction=None if verdict is Verdict.UNVERIFIED else contradiction,
                reasoning="as the script says",
            )

    async def aclose(self) -> None:
        """Nothing to release."""


class MemoryClientTransport:
    """``guardrail.client.ClientTransport`` on a broker in memory, with Kafka's partitioning."""

    def __init__(
        self,
        broker: MemoryBroker,
        responses_topic: str = "rag.responses",
        deliveries_topic: str = "rag.deliveries",
        *,
        reply_partitions: Sequence[int] | None = None,
    ) -> None:
        """``reply_partitions``: the partitions of the deliveries that this client reads at first; None for
        all.
        """
        self._broker = broker
        self._responses = responses_topic
        self._deliveries = deliveries_topic
        self._chosen = reply_partitions
        self._positions: dict[int, int] = {}
        self._stopped = True

    async def start(self) -> None:
        """Part of ClientTransport."""
        self._broker.topic(self._responses)
        logs = self._broker.topic(self._deliveries).partitions
        chosen = range(len(logs)) if self._chosen is None else self._chosen
        self._positions = {number: logs[number].end for number in chosen}
        self._stopped = False

    async def stop(self, within_s: float) -> None:
        """Part of ClientTransport."""
        del within_s
        self._stopped = True

    def mint(self) -> str:
        """Part of ClientTransport."""
        while True:
            response_id = uuid4().hex
            if self._place(response_id) in self._positions:
                return response_id

    async def open(self, response_id: str) -> None:
        """Part of ClientTransport."""
        number = self._place(response_id)
        if number not in self._positions:
            self._positions[number] = self._broker.topic(self._deliveries).partitions[number].end

    def close(self, response_id: str) -> None:
        """Part of ClientTransport."""

    def lane(self, response_id: str) -> int:
        """Part of ClientTransport."""
        return self._place(response_id)

    async def publish(self, records: Sequence[OutgoingRecord]) -> Sequence[TransportError | None]:
        """Part of ClientTransport."""
        if self._stopped:
            return [TransportError("the client is closed")] * len(records)
        await asyncio.sleep(0)  # other tasks run while a broker is asked
        outcome: list[TransportError | None] = []
        for record in records:
            try:
                self._broker.append(self._responses, record.key, record.value, record.headers)
                outcome.append(None)
            except TransportUnavailable as error:
                outcome.append(error)
        return outcome

    async def poll(self, timeout_ms: int) -> Sequence[DeliveryRecord]:
        """Part of ClientTransport."""
        topic = self._broker.topic(self._deliveries)
        found = self._fetch()
        if not found:
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    await topic.appended(asyncio.Event())
            except TimeoutError:
                return []
            found = self._fetch()
        await asyncio.sleep(0)
        return found

    def _place(self, response_id: str) -> int:
        return partition_of(response_id.encode(), len(self._broker.topic(self._deliveries).partitions))

    def _fetch(self) -> list[DeliveryRecord]:
        logs = self._broker.topic(self._deliveries).partitions
        found: list[Record] = []
        for number, position in self._positions.items():
            log = logs[number]
            found += log.read(position, None)
            self._positions[number] = log.end
        return [DeliveryRecord.of(record.key, record.value, record.headers) for record in found]


class MemoryGuard:
    """The production guard on a broker in memory, as ``async with``.

    ``judge`` defaults to the local judge. Pass ``policy`` for a single policy, or ``router`` to choose by
    route and tenant. Delivery is exactly once, as on Kafka.
    """

    def __init__(
        self,
        judge: Judge | None = None,
        policy: Policy | None = None,
        *,
        router: PolicyRouter | None = None,
        limits: Limits | None = None,
        partitions: int = 3,
    ) -> None:
        if policy is not None and router is not None:
            raise ValueError("give policy or router, not both: the router chooses among its own policies")
        self.topics = Topics()
        self.broker = MemoryBroker(
            dict.fromkeys(self.topics.names(), partitions), compacted=[self.topics.sessions]
        )
        self._judge = judge
        self._own_judge: Judge | None = None
        self._router = router or PolicyRouter.single(policy or Policy())
        self._limits = limits
        self._stop = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._quiet = False

    async def __aenter__(self) -> Self:
        if not structlog.is_configured():
            # Unconfigured, it prints everything on stdout, among what the service under test prints.
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
            self._quiet = True
        if self._judge is None:
            self._judge = self._own_judge = await asyncio.to_thread(_local_judge)
        self._group = await asyncio.TaskGroup().__aenter__()
        await self.restart()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        group, self._group = self._group, None
        try:
            if group is not None:
                await group.__aexit__(None, None, None)
        finally:
            if self._quiet:
                structlog.reset_defaults()
            if self._own_judge is not None:
                await self._own_judge.aclose()

    async def restart(self) -> None:
        """Stop the guard, as a deployment does, and start another one that continues its answers."""
        if self._group is None or self._judge is None:
            raise RuntimeError("the guard is not running: use it as 'async with MemoryGuard() as guard:'")
        self._stop.set()
        self._stop = asyncio.Event()
        transport = MemoryTransport(
            self.broker, "guardrail", self.topics.responses, sessions_topic=self.topics.sessions
        )
        guard = GuardConsumer(
            transport,
            self._judge,
            self._router,
            GuardOptions(
                limits=self._limits or Limits(),
                topics=self.topics,
                poll_timeout_ms=20,
                drain_timeout_ms=1_000,
            ),
        )
        self._group.create_task(guard.run(self._stop), name="memory guard")

    def transport(self, reply_partitions: Sequence[int] | None = None) -> MemoryClientTransport:
        """For a ``GuardClient`` that talks to this guard; a new one for each client."""
        return MemoryClientTransport(
            self.broker, self.topics.responses, self.topics.deliveries, reply_partitions=reply_partitions
        )

    def records(self, topic: TopicName) -> list[Record]:
        """All records of a topic, partition after partition, for ``check_events`` or for inspection."""
        return self.broker.records(getattr(self.topics, topic))

    def outputs(self, topic: TopicName) -> list[AnyOutputEvent]:
        """The events that the guard wrote to a topic."""
        return [parse_output(record.value or b"") for record in self.records(topic)]


def _local_judge() -> Judge:
    from guardrail.judges.local import LocalJudge

    return LocalJudge()


# ------------------------------------------------------------------------------------ check_events


class _Seen:
    """What has been seen of one response so far."""

    __slots__ = ("deltas", "ended", "text")

    def __init__(self) -> None:
        self.deltas = 0
        self.ended = ""
        self.text = False


def check_events(records: Iterable[object], *, complete: bool = True) -> list[str]:
    """Describes what is wrong with the events that a chat service wrote to ``rag.responses``.

    ``records`` in the order of each partition: those of a ``MemoryGuard``, aiokafka's ``ConsumerRecord``,
    pairs of key and value, or values alone (bytes, str or events; their keys are then not checked). Pass
    ``complete=False`` while answers may still be under way: a missing end is then not a problem.

    It finds what makes the guard refuse an event or end an answer early (a value that is not an event, a key
    that is not the id, a missing start, gaps and repeats in ``seq``, a wrong count, text after the end,
    contexts with the same id), and what is allowed but rarely intended (no end, no contexts, an empty
    context, question or text). The problems name ids and numbers, and quote no text.
    """
    problems: list[str] = []
    told: dict[str, _Seen] = {}
    for place, record in enumerate(records):
        key, value = _key_and_value(record)
        try:
            event = value if isinstance(value, Event) else parse_input(value)
        except InputError as error:
            problems.append(f"record {place}: {error.reason}: {error}")
            continue
        if not isinstance(event, InputEvent):
            problems.append(f"record {place}: a {type(event).__name__} is not an input of the guard")
            continue
        name = _name(event.response_id)
        if key is not None and key != event.response_id.encode():
            problems.append(
                f"record {place}: the key is not the response_id {name}, so its events may be parted"
            )
        problems += [f"{name}: {problem}" for problem in _problems_of(event, told)]
    if complete:
        problems += [
            f"{_name(response_id)}: has no response.completed or response.aborted; the guard waits for it"
            for response_id, one in told.items()
            if not one.ended
        ]
    return problems


def _problems_of(event: InputEvent, told: dict[str, _Seen]) -> list[str]:
    known = told.get(event.response_id)
    if isinstance(event, ResponseStarted | Response):
        if known is not None:
            return [f"a second {event.type}; every answer needs an id of its own"]
        known = told[event.response_id] = _Seen()
        if isinstance(event, Response):
            known.ended = event.type
            known.text = bool(event.answer.strip())
        return [
            *_problems_of_head(event),
            *([] if known.text or not known.ended else ["the answer is empty"]),
        ]
    if known is None:
        told[event.response_id] = known = _Seen()
        known.deltas = event.seq if isinstance(event, ResponseDelta) and event.seq else 0
        first = [f"{event.type} comes without a response.started before it"]
    else:
        first = []
    if known.ended:
        return [*first, f"{event.type} comes after {known.ended}"]
    if isinstance(event, ResponseDelta):
        return [*first, *_problems_of_delta(event, known)]
    known.ended = event.type
    if event.seq is not None and event.seq != known.deltas:
        first.append(f"{event.type} says {event.seq} deltas were sent, {known.deltas} were")
    if isinstance(event, ResponseCompleted) and not known.text:
        first.append("the answer is empty")
    return first


def _problems_of_head(head: ResponseStarted | Response) -> list[str]:
    problems = []
    if not head.contexts:
        problems.append("has no contexts, so nothing of it will be supported")
    ids = [context.id for context in head.contexts]
    repeated = sorted({one for one in ids if ids.count(one) > 1})
    problems += [f"several contexts have the id {_name(one)}" for one in repeated]
    problems += [f"context {_name(one.id)} is empty" for one in head.contexts if not one.text.strip()]
    if not head.question.strip():
        problems.append("has no question")
    return problems


def _problems_of_delta(delta: ResponseDelta, known: _Seen) -> list[str]:
    problems = []
    if delta.seq < known.deltas:
        problems.append(f"delta {delta.seq} comes again; the guard takes the first one")
    elif delta.seq > known.deltas:
        problems.append(f"delta {delta.seq} comes where {known.deltas} is next; the guard ends the answer")
    known.deltas = max(known.deltas, delta.seq + 1)
    known.text = known.text or bool(delta.text.strip())
    if not delta.text:
        problems.append(f"delta {delta.seq} is empty")
    return problems


def _key_and_value(record: Any) -> tuple[bytes | None, Any]:
    if isinstance(record, bytes | str | Event):
        return None, record
    if isinstance(record, tuple) and len(record) == 2:
        key, value = record
    else:
        key, value = getattr(record, "key", None), getattr(record, "value", record)
    if not isinstance(value, bytes | bytearray | str | Event | None):
        raise TypeError(
            f"a record is a {type(value).__name__}: give bytes, a text (json.dumps of a mapping), an event, "
            "a ConsumerRecord or a pair of key and value"
        )
    return (key.encode() if isinstance(key, str) else key or b""), b"" if value is None else value


def _name(response_id: str) -> str:
    return repr(shorten(escape_controls(response_id), 80))
