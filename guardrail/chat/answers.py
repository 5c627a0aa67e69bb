"""Guarding the choices of a chat completion, whole or streamed, whatever the chunks are made of.

A choice's text goes to the guard as it comes; what is released of it comes out as deltas of the running
completion. A block is the policy's message as content and ``finish_reason: content_filter``. After that, or
after the end, nothing more comes of a choice.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from traceback import clear_frames
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from guardrail.chat.requests import Grounding
from guardrail.errors import InputError, only_cause
from guardrail.events import AnyOutputEvent, Decision, DeliveryBlocked, DeliveryCompleted, DeliverySegment
from guardrail.guard import Guard
from guardrail.log_events import EventLog
from guardrail.policy import MissingContexts

FAILED: Final = "This answer was withheld because it could not be checked. Please try again later."
BLOCK: Final = "content_filter"
TEXTS: Final = ("content", "refusal")
"""The fields of a message that are the answer; a refusal says what the model likes, too."""
APART: Final = "\n\n"
"""Between texts of different fields, and between what was shown and the message of a block."""

_log = EventLog(__name__)
_Chunk = TypeVar("_Chunk")


class UpstreamFailed(Exception):
    """The model's stream broke."""


async def decide(
    guard: Guard | Awaitable[Guard],
    grounding: Grounding,
    deltas: Any,
    answer: WholeAnswer | StreamedChoice,
    *,
    missing: MissingContexts | None,
    generator_model: str,
    seen: Callable[[AnyOutputEvent], None] = lambda _: None,
) -> None:
    """Guard one choice's text, and hand ``answer`` what becomes of it: text to show, and at last a block or
    the end; ``seen`` gets all events.

    ``guard`` is open, or opens when awaited. Whatever fails withholds the rest. Raises UpstreamFailed if
    ``deltas`` do.
    """
    try:
        opened = await guard if isinstance(guard, Awaitable) else guard
        stream = opened.stream(
            grounding.question,
            grounding.contexts,
            deltas,
            missing_contexts=missing,
            route=grounding.route,
            tenant=grounding.tenant,
            generator_model=generator_model[:256] or None,
        )
        async with aclosing(cast("AsyncGenerator[AnyOutputEvent, None]", stream)) as events:  # which it is
            async for event in events:
                seen(event)
                match event:
                    case DeliverySegment() if event.text:
                        answer.show(event.text)
                    case DeliveryBlocked():
                        told = _report(event, Decision.BLOCK)
                        # A stream can't take back what it has sent: the client is to replace it.
                        more = {"replace_all": True} if event.released_chars else {}
                        answer.block(event.message, {**told, **more})
                    case DeliveryCompleted():
                        answer.end(_report(event, event.decision))
    except UpstreamFailed:
        raise
    except InputError as error:
        _log.warning("chat.not_checkable", reason=error.reason)
        answer.block(FAILED, {"decision": "block", "rule": error.reason})
    except Exception as error:  # noqa: BLE001 - closed rather than open, whatever it is
        # Its message may quote texts.
        _log.error("chat.guard_failed", error=type(error).__name__)
        answer.block(FAILED, {"decision": "block", "rule": "guard failed"})


def _report(event: DeliveryBlocked | DeliveryCompleted, decision: Decision) -> dict[str, Any]:
    return {
        "response_id": event.response_id,
        "decision": decision.value,
        "rule": event.rule,
        "score": event.score,
    }


class WholeAnswer:
    """One choice that nobody reads before it is decided."""

    def __init__(self) -> None:
        self.text = ""
        self.finish: str | None = None
        self.told: dict[str, Any] = {}

    def show(self, text: str) -> None:
        self.text += text

    def block(self, message: str, told: dict[str, Any]) -> None:
        # Nothing of it has been read yet: the message stands in its place.
        self.text, self.finish, self.told = message, BLOCK, told
        told.pop("replace_all", None)

    def end(self, told: dict[str, Any]) -> None:
        self.told = told


def parts_of(texts: Iterable[str]) -> list[str]:
    """The texts of a whole message's fields as pieces of one answer."""
    first, *others = texts
    return [first, *(APART + each for each in others)]


class StreamedChoice:
    """One choice of a stream: what came of it goes in, what is released of it comes out."""

    def __init__(self, stream: StreamedCompletion[Any], index: int) -> None:
        self._stream = stream
        self._shown = False
        self._field = ""  # that its text came in
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._begun = False
        self._finish: str | None = None
        self.index = index
        self.closed = False

    @property
    def waiting(self) -> int:
        """Pieces of text that the guard has not taken."""
        return 0 if self.closed else self._inbox.qsize()

    @property
    def ended(self) -> bool:
        """Whether the model has said why it ends."""
        return self._finish is not None

    async def deltas(self) -> AsyncIterator[str]:
        """The text as it comes. Raises UpstreamFailed where it breaks off."""
        while (text := await self._inbox.get()) is not None:
            self._stream.moved()
            yield text
        if self._finish is None:
            raise UpstreamFailed

    def take(self, texts: Iterable[tuple[str, str]], finish: str | None, group: asyncio.TaskGroup) -> None:
        """What has come of it: texts by their fields, and why it ended."""
        for name, text in texts:
            if not self._begun:
                self._begun = True
                group.create_task(self._guarded(), name="guarded-choice")
            self._inbox.put_nowait(text if self._field in {"", name} else APART + text)
            self._field = name
        # Some servers say it with every piece: it has ended when the completion has.
        if finish and (self._finish is None or finish != "stop"):
            self._finish = finish

    def upstream_ended(self, *, broken: bool) -> None:
        """No more comes. An end in order without a reason is a stop."""
        self._finish = None if broken else self._finish or "stop"
        self._inbox.put_nowait(None)
        if not broken and not self._begun and not self.closed:
            self._close(self._finish or "stop", None)

    async def _guarded(self) -> None:
        try:
            await self._stream.decide(self)
        except UpstreamFailed:
            return  # what was verified is out; the completion says how it ended

    def show(self, text: str) -> None:
        self._shown = True
        self._stream.put(self.index, {"content": text})

    def block(self, message: str, told: dict[str, Any]) -> None:
        if not self.closed:
            # What was shown can't be taken back here: the message stands apart from it.
            self._stream.put(self.index, {"content": APART + message if self._shown else message})
            self._close(BLOCK, told)

    def end(self, told: dict[str, Any]) -> None:
        if not self.closed and self._finish is not None:
            self._close(self._finish, told)

    def _close(self, finish: str, told: dict[str, Any] | None) -> None:
        self.closed = True
        told = None if told is None else {"choice": self.index, **told}
        self._stream.put(self.index, {}, finish, told)
        if told is not None:
            self._stream.told.append(told)
        self._stream.moved()


class StreamedCompletion(ABC, Generic[_Chunk]):
    """One completion under way. No more is read of the model's than ``most_held`` pieces ahead of the guard
    and of the client.
    """

    most_held: ClassVar[int] = 32

    def __init__(self) -> None:
        self.choices: dict[int, StreamedChoice] = {}
        self.told: list[dict[str, Any]] = []
        self._out: asyncio.Queue[_Chunk | None] = asyncio.Queue()
        self._moved = asyncio.Event()

    @abstractmethod
    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        """A chunk of the model's: ``choice`` takes what it says of one, ``send`` what may go at once."""

    @abstractmethod
    async def decide(self, choice: StreamedChoice) -> None:
        """Guard a choice. Raises UpstreamFailed."""

    @abstractmethod
    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> _Chunk:
        """A chunk of the running completion: its id, its model, its time."""

    @abstractmethod
    def last(self) -> _Chunk | None:
        """What comes after all choices: the usage."""

    def enough(self) -> bool:
        """Whether what still comes of the model's is of no use."""
        return False

    def waits(self) -> bool:
        """Whether no more is to be read now."""
        held = self._out.qsize() + sum(choice.waiting for choice in self.choices.values())
        return held > self.most_held

    def choice(self, index: int) -> StreamedChoice:
        """The choice of this index."""
        choice = self.choices.get(index)
        if choice is None:
            choice = self.choices[index] = StreamedChoice(self, index)
        return choice

    def put(self, index: int, delta: dict[str, Any], finish: str | None = None, told: Any = None) -> None:
        self.send(self.chunk(index, delta, finish, told))

    def send(self, chunk: _Chunk) -> None:
        self._out.put_nowait(chunk)

    def moved(self) -> None:
        """The guard or the client has taken something."""
        self._moved.set()

    async def guarded(
        self, chunks: AsyncIterator[Any], silence_s: float | None = None, deadline: float | None = None
    ) -> AsyncGenerator[_Chunk | None, None]:
        """What may go of ``chunks``, each choice in its order, and None where there was nothing for
        ``silence_s``. Raises what ``chunks`` raise, or TimeoutError at the ``deadline`` by the event loop's
        clock, once what was verified is out.
        """
        # A task of its own: a group of tasks must not live across the yields of a generator.
        work = asyncio.ensure_future(self._run(chunks, deadline))
        work.add_done_callback(lambda _: self._out.put_nowait(None))
        try:
            while True:
                try:
                    async with asyncio.timeout(silence_s):
                        chunk = await self._out.get()
                except TimeoutError:
                    yield None
                    continue
                self.moved()
                if chunk is None:
                    break
                yield chunk
            try:
                await work
            except BaseExceptionGroup as group:
                raise only_cause(group) from None
        finally:
            work.cancel()
            await asyncio.wait([work])
            # Cycles would keep request and answer until a full collection.
            self.choices.clear()
            try:
                work.exception()  # raised above, unless the client left
            except asyncio.CancelledError as left:
                clear_frames(left.__traceback__)

    async def _run(self, chunks: AsyncIterator[Any], deadline: float | None) -> None:
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            try:
                async with asyncio.timeout_at(deadline):
                    async for chunk in chunks:
                        self.take(chunk, group)
                        while self.waits():
                            self._moved.clear()
                            await self._moved.wait()
                        if self.enough():
                            break
            except Exception as error:  # noqa: BLE001 - raised again, once what was verified is out
                failure = error
            finally:
                if isinstance(chunks, AsyncGenerator):
                    await chunks.aclose()
            for choice in self.choices.values():
                choice.upstream_ended(broken=failure is not None)
        if failure is not None:
            raise failure
        if (last := self.last()) is not None:
            self.send(last)
