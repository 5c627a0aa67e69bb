"""``GuardClient``: many answers over one transport."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from types import TracebackType
from typing import Any, Final, Self

from guardrail.client.answers import BlockPolicy, Patience, Piece, Stream, TimeoutPolicy
from guardrail.client.transport import ClientTransport, DeliveryRecord
from guardrail.errors import ConfigError, GuardrailError, InputError, TransportError
from guardrail.events import (
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Response,
    ResponseStarted,
    parse_output,
)
from guardrail.inputs import ContextLike, event_of, named_contexts, token_stream
from guardrail.log_events import EventLog

_POLL_MS: Final = 100
_TURN: Final = 64
"""Pieces of text taken from one source before other tasks have their turn for certain."""
_ANSWERS_REMEMBERED: Final = 10_000
_OVERLAP_S: Final = 30.0
"""What a group writes about an answer so long after another is not a second opinion: it judges old answers
anew, as a new group may."""
_CONFLICT_S: Final = 60.0
_FLUSH_S: Final = 2.0
"""For the last events, beyond the time that a closing client gives its answers."""

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class Checked:
    """A whole answer that was checked. ``text`` may be shown: of a blocked one it is the fallback message."""

    response_id: str
    text: str
    pieces: tuple[Piece, ...]
    decision: Decision | None
    rule: str | None
    score: float | None


class GuardClient:
    """Sends answers to the guard and yields what may be shown. Used as ``async with``; see the module."""

    def __init__(
        self,
        bootstrap_servers: str | list[str] | None = None,
        *,
        responses_topic: str = "rag.responses",
        deliveries_topic: str = "rag.deliveries",
        group: str | None = None,
        reply_partitions: int | None = 4,
        on_block: BlockPolicy = "raise",
        on_timeout: TimeoutPolicy = "raise",
        timeout_s: float = 60.0,
        stall_timeout_s: float | None = None,
        timeout_message: str = "The rest of this answer could not be verified in time.",
        max_stream_chars: int = 16_000,
        max_held_chars: int = 100_000,
        max_total_chars: int = 16_000_000,
        coalesce_ms: float = 10.0,
        drain_timeout_s: float = 10.0,
        connect_timeout_s: float = 30.0,
        transport: ClientTransport | None = None,
        **kafka: Any,
    ) -> None:
        """``kafka`` takes any parameter of aiokafka's producer and consumer (security, timeouts, sizes).

        ``group``: the group of guards whose word counts (their ``kafka.group_id``); what others write is
        passed over, with one warning. None: any; where two groups write about one answer, it and all others
        until a minute later end in ConfigError, whatever ``on_timeout`` says.

        ``reply_partitions``: how many partitions of the deliveries this process reads, None for all. Its ids
        hash to these, so where ``rag.responses`` has as many partitions they are also the ones that its
        answers are judged on: processes times ``reply_partitions`` should be well above their number.

        ``on_block``: "raise" AnswerBlocked, or "yield" its message as a last ``Piece`` with ``replaces``.

        ``timeout_s``: how long the guard may say nothing once the text is complete (or at a bound); the
        partitions of a guard that died stand still for about 8 s. ``stall_timeout_s``: how long text may
        wait while the answer is still being written; None for no limit, because a policy that holds says
        nothing until the end. ``on_timeout``, which applies as well where Kafka can't be written to or read:

        - "raise" GuardTimeout or TransportError; what was yielded until then is verified;
        - "message": a last piece with ``timeout_message`` and ``verified`` False, and nothing more;
        - "pass": the rest of the answer unverified, each piece with ``verified`` False. A block that comes
          before its end still counts.

        ``max_stream_chars`` bounds an answer once the guard has released a part of it, ``max_held_chars`` one
        of which nothing was released yet. Under policies that hold the second must be above the longest
        answer (the default is the guard's own bound), and the first above some segments, of up to 600
        characters each. ``max_total_chars`` bounds undecided text of all answers; past it one answer at a
        time goes on, where nothing else could make room.

        ``coalesce_ms``: tokens that come within this time are sent as one event.

        ``transport`` takes the place of Kafka in tests; see ``guardrail.testing``.
        """
        if (bootstrap_servers is None) == (transport is None):
            raise ValueError("give bootstrap_servers for Kafka, or transport instead of it")
        if transport is not None and kafka:
            raise ValueError(f"{', '.join(sorted(kafka))}: parameters of Kafka have no effect on a transport")
        for name, value in (
            ("timeout_s", timeout_s),
            ("max_stream_chars", max_stream_chars),
            ("max_held_chars", max_held_chars),
            ("max_total_chars", max_total_chars),
        ):
            if value <= 0:
                raise ValueError(f"{name} {value}: give more than 0")
        if transport is None:
            assert bootstrap_servers is not None  # noqa: S101 - checked above
            # Imported here: on another transport nobody needs a Kafka client.
            from guardrail.client.kafka import KafkaClientTransport

            transport = KafkaClientTransport(
                bootstrap_servers,
                responses_topic,
                deliveries_topic,
                reply_partitions=reply_partitions,
                connect_timeout_s=connect_timeout_s,
                options=kafka,
            )
        self._transport = transport
        self._groups = _Groups(group)
        self._patience = Patience(on_block, on_timeout, timeout_s, stall_timeout_s, timeout_message)
        self._max_stream_chars = max_stream_chars
        self._max_held_chars = max_held_chars
        self._max_total_chars = max_total_chars
        self._coalesce_s = coalesce_ms / 1000
        self._drain_timeout_s = drain_timeout_s
        self._group: asyncio.TaskGroup | None = None
        self._lanes: dict[int, ClientLane] = {}
        self._lane_tasks: list[asyncio.Task[None]] = []
        self._streams: dict[bytes, Stream] = {}
        self._undecided = 0
        self._waiting: dict[Stream, None] = {}
        """Answers that wait for room among all, in the order in which they came."""
        self._awaited: set[Stream] = set()
        """Complete answers with undecided text: a decision on them will make room."""
        self._favoured: Stream | None = None
        """The one that goes on past the bound on all, to its end."""
        self._closed = True
        self._stopping = False
        self._broken: TransportError | None = None
        self._left = asyncio.Event()

    @property
    def group(self) -> str | None:
        """The group of guards whose word counts; None: any."""
        return self._groups.wanted

    @property
    def skipped(self) -> Sequence[str]:
        """The groups whose deliveries were passed over."""
        return sorted(group or "(unnamed)" for group in self._groups.skipped)

    async def __aenter__(self) -> Self:
        """Connect. Raises ConfigError and TransportUnavailable, which says what to do."""
        if self._group is not None:
            raise GuardrailError("the client is open already; make another one")
        try:
            await self._transport.start()
        except BaseException:
            await self._transport.stop(_FLUSH_S)
            raise
        self._group = await asyncio.TaskGroup().__aenter__()
        self._closed = self._stopping = False
        self._group.create_task(self._read(), name="guard-client reader")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        try:
            await self.aclose(self._drain_timeout_s if kind is None else 0.0)
        finally:
            self._stopping = True
            for task in self._lane_tasks:
                task.cancel()
            try:
                if group is not None:
                    # The error of the block is not the group's: it is raised as it is.
                    await group.__aexit__(None, None, None)
            finally:
                await self._transport.stop(_FLUSH_S)

    async def aclose(self, drain_timeout_s: float | None = None) -> None:
        """Take no new answers, wait for those in flight, and end what is left after ``drain_timeout_s``.

        Their readers get a GuardrailError, and the guard ``response.aborted``. ``async with`` calls it.
        """
        self._closed = True
        within_s = self._drain_timeout_s if drain_timeout_s is None else drain_timeout_s
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._streams:
                    self._left.clear()
                    await self._left.wait()
        closed = GuardrailError("the client was closed before the answer was decided")
        for stream in list(self._streams.values()):
            stream.give_up(closed, "client closed")
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_S):
                await asyncio.gather(*(lane.idle.wait() for lane in self._lanes.values()))

    # ----------------------------------------------------------------------------------- answers

    def guard(
        self,
        question: str,
        contexts: Sequence[ContextLike],
        deltas: AsyncIterable[str] | Iterable[str],
        *,
        route: str | None = None,
        tenant: str | None = None,
        generator_model: str | None = None,
        response_id: str | None = None,
        traceparent: str | None = None,
        on_block: BlockPolicy | None = None,
        on_timeout: TimeoutPolicy | None = None,
        timeout_s: float | None = None,
        stall_timeout_s: float | None = None,
        **head: Any,
    ) -> GuardedAnswer:
        """Guard an answer while it is written: iterate over the result to get the pieces that may be shown.

        ``route``, ``tenant`` and ``generator_model`` choose the policy; ``head`` takes the other fields of
        ``response.started`` (``deadline_ms``, ``metadata``). An id is used once: the guard does not judge an
        answer again under an id that it has finished. ``traceparent`` goes along as a header, and comes with
        all that the guard writes about the answer.

        An error that ``deltas`` raises ends the answer as aborted and is raised again after its last piece.
        Leaving the loop early, or being cancelled in it, ends the answer as aborted, too. Where the loop is
        left by an exception that is kept, ``async with`` the result (or ``aclose`` it) to end it at once.

        Raises InputError, which names the field, for what can't be a response.
        """
        source = token_stream(deltas)
        fields = {
            "question": question,
            "contexts": named_contexts(contexts),
            "route": route,
            "tenant": tenant,
            "generator_model": generator_model,
            **head,
        }
        started = event_of(ResponseStarted, response_id or self._mint(), fields)
        stream = self._stream(
            started,
            traceparent,
            on_block=on_block,
            on_timeout=on_timeout,
            timeout_s=timeout_s,
            stall_timeout_s=stall_timeout_s,
        )
        return GuardedAnswer(self, stream, source)

    async def check(
        self,
        question: str,
        contexts: Sequence[ContextLike],
        answer: str,
        *,
        route: str | None = None,
        tenant: str | None = None,
        generator_model: str | None = None,
        response_id: str | None = None,
        traceparent: str | None = None,
        on_timeout: TimeoutPolicy | None = None,
        timeout_s: float | None = None,
        **head: Any,
    ) -> Checked:
        """Check a whole answer. A block is told in the result, whose text then is the fallback message."""
        fields = {
            "question": question,
            "contexts": named_contexts(contexts),
            "answer": answer,
            "route": route,
            "tenant": tenant,
            "generator_model": generator_model,
            **head,
        }
        whole = event_of(Response, response_id or self._mint(), fields)
        stream = self._stream(
            whole, traceparent, on_block="yield", on_timeout=on_timeout, timeout_s=timeout_s
        )
        pieces = []
        async with GuardedAnswer(self, stream, None) as guarded:
            async for piece in guarded:
                pieces.append(piece)  # noqa: PERF401 - the answer's decision is known after the last one
        last = pieces[-1:] if pieces and pieces[-1].replaces else pieces
        text = "".join(piece.text for piece in last)
        return Checked(whole.response_id, text, tuple(pieces), guarded.decision, guarded.rule, guarded.score)

    # ----------------------------------------------------------------------------------- inside

    def _mint(self) -> str:
        self._require_open()
        return self._transport.mint()

    def _require_open(self) -> None:
        if self._closed:
            raise GuardrailError("the client is not open: use it as 'async with GuardClient(...) as client:'")

    def _stream(self, head: ResponseStarted | Response, traceparent: str | None, **wanted: Any) -> Stream:
        self._require_open()
        changes = {name: value for name, value in wanted.items() if value is not None}
        if traceparent is not None:
            changes["headers"] = (("traceparent", traceparent.encode()),)
        return Stream(self, head, replace(self._patience, **changes))

    async def begin(self, stream: Stream, source: AsyncIterable[str] | None) -> None:
        """Publish the head and start to take text; without a source the head is all."""
        self._require_open()
        if (conflict := self._groups.conflict()) is not None:
            raise conflict
        assert self._group is not None  # noqa: S101 - the client is open
        if stream.key in self._streams:
            raise InputError(
                "duplicate_start", f"response_id {stream.response_id!r} is being guarded already"
            )
        self._streams[stream.key] = stream
        self.count(stream.undecided)
        try:
            if self._broken is not None:
                raise self._broken
            await self._transport.open(stream.response_id)
            self._require_open()
            stream.lane = self._lane_of(self._group, stream.response_id)
            stream.lane.add(stream)
        except TransportError as error:
            stream.unwritten(error)
        if source is None:
            stream.end_without_event()
        elif not stream.over:
            stream.pulling = True
            stream.pump = self._group.create_task(self._pump(stream, source), name="guard-client pump")

    def _lane_of(self, group: asyncio.TaskGroup, response_id: str) -> ClientLane:
        number = self._transport.lane(response_id)
        lane = self._lanes.get(number)
        if lane is None:
            lane = self._lanes[number] = ClientLane(self._transport, self._coalesce_s)
            self._lane_tasks.append(group.create_task(lane.run(), name=f"guard-client lane {number}"))
        return lane

    async def _pump(self, stream: Stream, source: AsyncIterable[str]) -> None:
        """Take text from the caller's stream while there is room. What it raises ends this answer only."""
        turns = count(1)
        try:
            async for text in source:
                stream.pull(text)
                if stream.over:
                    break
                await self._room(stream)
                if not next(turns) % _TURN:
                    await asyncio.sleep(0)  # the source may never wait by itself
            stream.end_input(None)
        except Exception as error:  # noqa: BLE001 - the caller's iterator may raise anything; it is raised again
            stream.source_error = error
            stream.end_input(type(error).__name__)
        finally:
            stream.pulling = False
            if isinstance(source, AsyncGenerator):
                # It is not wanted any more, and what it says to that can't matter to anyone.
                with suppress(Exception):
                    await source.aclose()

    async def _room(self, stream: Stream) -> None:
        """Wait until one more piece of text may be taken for this answer."""
        while not stream.over:
            bound = self._max_stream_chars if stream.next_delivery else self._max_held_chars
            stream.at_bound = stream.unread >= bound
            if not stream.at_bound and self._admits(stream):
                break
            if stream.at_bound:
                stream.progressed()  # no more text can come: from now on the guard's time runs
            else:
                self._waiting[stream] = None
            stream.room.clear()
            try:
                await stream.room.wait()
            finally:
                self._waiting.pop(stream, None)
        stream.at_bound = False
        self._wake_waiting()

    def _admits(self, stream: Stream) -> bool:
        """Is there room among all? Past the bound one answer goes on where no decision will make room.

        Otherwise answers that are held until their end would wait for each other, none of them complete.
        """
        if self._undecided < self._max_total_chars:
            return True
        if self._awaited:
            return False
        if self._favoured is None:
            self._favoured = stream
        return self._favoured is stream

    def _wake_waiting(self) -> None:
        """Let one that waits look again; it wakes the next as it goes on."""
        if not self._waiting:
            return
        if self._undecided < self._max_total_chars or self._favoured is None:
            next(iter(self._waiting)).room.set()
        elif self._favoured in self._waiting:
            self._favoured.room.set()

    async def _read(self) -> None:
        """Hand every delivery to its answer, until the client stops."""
        streams = self._streams
        while not self._stopping:
            try:
                records = await self._transport.poll(_POLL_MS)
            except TransportError as error:
                # Such as an access right taken away: those who wait are told, and it may come back.
                self._broken = error
                for stream in list(streams.values()):
                    stream.fail(error)
                await asyncio.sleep(_POLL_MS / 1000)
                continue
            self._broken = None
            for record in records:
                if not self._groups.obeys(record, streams.get(record.key or b"")):
                    if (conflict := self._groups.conflict()) is not None:
                        for stream in list(streams.values()):
                            stream.fail(conflict)
                    continue
                concerned = streams.get(record.key or b"")
                if concerned is None:
                    continue
                try:
                    event = parse_output(record.value or b"")
                except InputError as error:
                    concerned.fail(TransportError(f"a delivery of this response can't be read: {error}"))
                    continue
                if isinstance(event, DeliverySegment | DeliveryCompleted | DeliveryBlocked):
                    concerned.deliver(event)

    def count(self, change: int) -> None:
        """Undecided text of all answers has changed by so many characters."""
        self._undecided += change
        if change < 0:
            self._wake_waiting()

    def input_ended(self, stream: Stream) -> None:
        """No more text comes for this answer."""
        if stream.input_over:
            return
        stream.input_over = True
        if stream.awaited:
            self._awaited.add(stream)
        if self._favoured is stream:
            self._favoured = None
            self._wake_waiting()

    def decided(self, stream: Stream) -> None:
        """All text of an answer is decided, or will not be."""
        self._awaited.discard(stream)
        self._wake_waiting()

    def forget(self, stream: Stream) -> None:
        """An answer is over: nothing of it is kept."""
        if self._streams.get(stream.key) is not stream:
            return
        del self._streams[stream.key]
        self._transport.close(stream.response_id)
        stream.decide_all()
        self._left.set()


class _Groups:
    """Whose deliveries count."""

    def __init__(self, wanted: str | None) -> None:
        self.wanted = wanted
        self.skipped: set[str | None] = set()
        self._wrote: OrderedDict[bytes | None, tuple[str, float]] = OrderedDict()
        """Which group was the first to write about an answer, of anybody's, and when; of ours in flight, the
        answer itself knows it.
        """
        self._conflict: ConfigError | None = None
        self._conflict_at = 0.0

    def obeys(self, record: DeliveryRecord, stream: Stream | None) -> bool:
        """Whether the delivery counts; ``stream`` is the answer that it is about, if that is one of ours."""
        group = record.group
        if self.wanted is not None:
            if group != self.wanted and group not in self.skipped:
                self.skipped.add(group)
                _log.warning("client.other_group", group=group, obeyed=self.wanted)
            return group == self.wanted
        if group is None:
            return True  # by a guard that does not say, and may be of any group
        now = time.monotonic()
        first, at = self._wrote.setdefault(record.key, (group, now))
        if len(self._wrote) > _ANSWERS_REMEMBERED:
            self._wrote.popitem(last=False)
        if stream is not None:
            stream.group = first = stream.group or first
        elif now - at > _OVERLAP_S:
            return True
        if first == group:
            return True
        if self.conflict() is None:
            _log.error("client.two_groups", groups=[first, group], effect="answers end in an error")
        self._conflict = ConfigError(
            f"group: two groups of guards, {first!r} and {group!r}, write about the same answers; tell "
            "GuardClient whose word counts (group=…), and give the other's outputs topics of their own"
        )
        self._conflict_at = now
        return False

    def conflict(self) -> ConfigError | None:
        """What is wrong, if two groups have written about one answer lately."""
        late = time.monotonic() - self._conflict_at > _CONFLICT_S
        return None if late else self._conflict


class ClientLane:
    """Writes events of its streams, one write after the other; each takes all that came up meanwhile."""

    def __init__(self, transport: ClientTransport, coalesce_s: float) -> None:
        self._transport = transport
        self._coalesce_s = coalesce_s
        self._dirty: dict[Stream, None] = {}
        self._wake = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()

    def add(self, stream: Stream) -> None:
        """This stream has something to write."""
        self._dirty[stream] = None
        self._wake.set()
        self.idle.clear()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._coalesce_s)
            self._wake.clear()
            dirty, self._dirty = self._dirty, {}
            owned = [(stream, record) for stream in dirty for record in stream.take()]
            errors = await self._transport.publish([record for _, record in owned]) if owned else ()
            for (stream, _), error in zip(owned, errors, strict=True):
                if error is not None:
                    stream.unwritten(error)
            if not self._dirty:
                self.idle.set()


class GuardedAnswer(AsyncIterator[Piece]):
    """The pieces of one answer that may be shown, in order; read by one task.

    ``decision``, ``rule`` and ``score`` are the guard's on the whole answer, known after the last piece.
    May be used as ``async with``, which ends the answer when the block is left. An answer that is read no
    more, and that nobody holds, ends by itself.
    """

    def __init__(self, client: GuardClient, stream: Stream, source: AsyncIterable[str] | None) -> None:
        self._client = client
        self._stream = stream
        self._source = source
        self._begun = False
        self._loop = stream.loop

    @property
    def response_id(self) -> str:
        """The id under which the guard knows the answer."""
        return self._stream.response_id

    @property
    def decision(self) -> Decision | None:
        """RELEASE, FLAG, REDACT or BLOCK; None until the end, and where the guard decided nothing."""
        final = self._stream.final
        if final is None:
            return None
        return Decision.BLOCK if isinstance(final, DeliveryBlocked) else final.decision

    @property
    def rule(self) -> str | None:
        """The rule of the policy that made the decision."""
        return None if self._stream.final is None else self._stream.final.rule

    @property
    def score(self) -> float | None:
        """How much of the answer is supported, 0 to 1; None where nothing was to check."""
        return None if self._stream.final is None else self._stream.final.score

    async def __anext__(self) -> Piece:
        stream = self._stream
        try:
            if not self._begun:
                self._begun = True
                await self._client.begin(stream, self._source)
                self._source = None
            piece = await stream.next()
        except BaseException:
            stream.leave()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the answer, if it has not ended: no more tokens are taken, and the guard is told so."""
        self._stream.leave()
        pump = self._stream.pump
        if pump is not None:
            await asyncio.wait([pump])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._stream.left:
            # Any thread may collect it. A loop that has gone has taken the answer with it.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stream.leave)
