"""The guard in LangChain: a runnable that judges answers, and one that releases them as they are written.

Both take what a RAG chain carries, a mapping with the question, the documents that were retrieved and the
answer::

    chain = (
        RunnablePassthrough.assign(contexts=itemgetter("question") | retriever)
        | RunnablePassthrough.assign(answer=prompt | model | StrOutputParser())
        | GuardStream()
    )

The documents may be LangChain's, or whatever ``Guard`` takes as contexts. Question and documents come from
fields that the chain fills; nothing is read out of prompts.
"""

# ruff: noqa: A002 - LangChain names its arguments

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.callbacks.manager import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from guardrail.errors import AnswerBlocked, InputError
from guardrail.events import (
    AnyOutputEvent,
    Context,
    DeliveryBlocked,
    DeliverySegment,
    Response,
    ResponseVerdict,
)
from guardrail.inputs import ContextLike, event_of
from guardrail.integrations.background import BackgroundGuard
from guardrail.policy import MissingContexts

if TYPE_CHECKING:
    from guardrail.integrations.chat_models import ChatModel, Reply

VERDICT_EVENT: Final = "guardrail.verdict"
"""The custom event at the end of each answer; its data is the ``verdict.response``."""

OnBlock = Literal["message", "raise"]


@dataclass(frozen=True, slots=True)
class Keys:
    """What the chain calls the fields of its mapping; LangChain's tutorials say ``context``."""

    question: str
    contexts: str
    answer: str


class _Guarded:
    """What both runnables are made with."""

    def __init__(
        self,
        guard: BackgroundGuard | None = None,
        *,
        llm: Runnable[Any, Any] | None = None,
        settings: str | Path | None = None,
        question_key: str = "question",
        contexts_key: str = "contexts",
        answer_key: str = "answer",
        missing_contexts: Literal["refuse", "flag"] = "refuse",
        missing_contexts_message: str = MissingContexts.message,
        **head: Any,
    ) -> None:
        """``settings`` is the path of a file as ``guardrail run`` takes it, which names judge and policies;
        without it the local judge and the default policy hold. Give ``llm``, a chat model, instead for the
        LLM judge to ask, or ``guard`` to share one, or to close it. ``missing_contexts`` is what happens to
        the claims of an answer without documents. ``head`` takes the other fields of a response: route,
        tenant, generator_model, …. Raises ConfigError, and TypeError for an unknown one.
        """
        if (guard, settings, llm).count(None) < 2:
            raise ValueError("guard, settings, llm: each names the judge; give one of them")
        judge = None if llm is None else chat_model_of(llm).judge()
        self.guard = guard or BackgroundGuard(settings, judge=judge)
        self._keys = Keys(question_key, contexts_key, answer_key)
        event_of(Response, None, {"question": "", "contexts": (), "answer": "", **head})  # names a wrong one
        missing = MissingContexts(missing_contexts, missing_contexts_message)
        self._head = {**head, "missing_contexts": missing}


class GuardCheck(_Guarded, Runnable[Mapping[str, Any], ResponseVerdict]):
    """Judges whole answers: a mapping with question, contexts and answer in, a ``ResponseVerdict`` out.

    ``batch`` and ``abatch`` judge as many at a time as the config's ``max_concurrency`` allows. Raises
    InputError, which names a field that is missing or wrong.
    """

    def invoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> ResponseVerdict:
        return self._call_with_config(self._check, input, config, **kwargs)

    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> ResponseVerdict:
        return await self._acall_with_config(self._acheck, input, config, **kwargs)

    def _check(self, given: Mapping[str, Any]) -> ResponseVerdict:
        parts = _Parts.whole(self._keys, given)
        return self.guard.check(parts.question, parts.contexts, parts.answer, **self._head)

    async def _acheck(self, given: Mapping[str, Any]) -> ResponseVerdict:
        parts = _Parts.whole(self._keys, given)
        return await self.guard.acheck(parts.question, parts.contexts, parts.answer, **self._head)


class GuardStream(_Guarded, Runnable[Mapping[str, Any], str]):
    """Releases answers while they are written: the chain's mapping in, the text that passed out.

    Comes last in a chain, after a step that assigns the answer. ``stream`` and ``astream`` of the chain then
    yield each piece of text once its claims have passed, redacted text as the policy replaces it. After a
    block the model is read no further. With ``on_block="message"`` the policy's message follows, after an
    empty line if text had been shown, which nobody can take back in a chain of texts; with ``"raise"``
    AnswerBlocked is raised, whose ``released_chars`` tell the same.

    The verdict on the whole answer comes as the custom event ``guardrail.verdict``, which ``astream_events``
    and callback handlers see.
    """

    def __init__(
        self, guard: BackgroundGuard | None = None, *, on_block: OnBlock = "message", **options: Any
    ) -> None:
        """``options`` are those of ``GuardCheck``."""
        if on_block not in {"message", "raise"}:
            raise ValueError(f"on_block: {on_block!r} is unknown; give 'message' or 'raise'")
        super().__init__(guard, **options)
        self._on_block = on_block

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> str:
        return "".join(self.stream(input, config, **kwargs))

    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> str:
        return "".join([text async for text in self.astream(input, config, **kwargs)])

    def stream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[str]:
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[str, None]:
        async def once() -> AsyncGenerator[Mapping[str, Any], None]:
            yield input

        async with aclosing(self.atransform(once(), config, **kwargs)) as texts:
            async for text in texts:
                yield text

    def transform(
        self, input: Iterator[Mapping[str, Any]], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[str]:
        source = _Source()

        def guarded(
            chunks: Iterator[Any], run_manager: CallbackManagerForChainRun, config: RunnableConfig
        ) -> Iterator[str]:
            del run_manager
            try:
                yield from self.released(chunks, config)
            finally:
                source.over = True

        chunks = source.chunks(input)
        texts = self._transform_stream_with_config(chunks, guarded, config, **kwargs)
        with closing(chunks), closing(cast("Any", texts)):
            yield from texts

    async def atransform(
        self, input: AsyncIterator[Mapping[str, Any]], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncGenerator[str, None]:
        source = _Source()

        async def guarded(
            chunks: AsyncIterator[Any], run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig
        ) -> AsyncIterator[str]:
            del run_manager
            try:
                async with aclosing(self.areleased(chunks, config)) as texts:
                    async for text in texts:
                        yield text
            finally:
                source.over = True

        chunks = source.achunks(input)
        texts = self._atransform_stream_with_config(chunks, guarded, config, **kwargs)
        async with aclosing(chunks), aclosing(cast("Any", texts)):
            async for text in texts:
                yield text

    def released(self, chunks: Iterator[Any], config: RunnableConfig) -> Iterator[str]:
        """As ``transform``, without a run of its own, whose input callbacks would see."""
        parts = _Parts(self._keys)
        out = _Out(self._on_block)
        for chunk in chunks:
            if parts.add(chunk):
                break
        deltas = parts.deltas(chunks)
        with closing(
            cast("Any", self.guard.stream(parts.question, parts.contexts, deltas, **self._head))
        ) as events:
            for event in events:
                if text := out.text_of(event):
                    yield text
                if isinstance(event, ResponseVerdict):
                    dispatch_custom_event(VERDICT_EVENT, event.model_dump(mode="json"), config=config)
        if message := out.end():
            yield message

    async def areleased(
        self, chunks: AsyncIterator[Any], config: RunnableConfig
    ) -> AsyncGenerator[str, None]:
        """As ``released``, on an event loop."""
        parts = _Parts(self._keys)
        out = _Out(self._on_block)
        async for chunk in chunks:
            if parts.add(chunk):
                break
        deltas = parts.adeltas(chunks)
        async with aclosing(
            self.guard.astream(parts.question, parts.contexts, deltas, **self._head)
        ) as events:
            async for event in events:
                if text := out.text_of(event):
                    yield text
                if isinstance(event, ResponseVerdict):
                    await adispatch_custom_event(VERDICT_EVENT, event.model_dump(mode="json"), config=config)
        if message := out.end():
            yield message


class _Source:
    """The chunks of a chain, which end when the answer is decided.

    LangChain reads what a step left of its input, for its traces; after a block that would let the model go
    on writing.
    """

    def __init__(self) -> None:
        self.over = False

    def chunks(self, given: Iterator[Any]) -> Generator[Any, None, None]:
        try:
            for chunk in given:
                yield chunk
                if self.over:
                    return
        finally:
            close = getattr(given, "close", None)
            if close is not None:
                close()

    async def achunks(self, given: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
        try:
            async for chunk in given:
                yield chunk
                if self.over:
                    return
        finally:
            if isinstance(given, AsyncGenerator):
                await given.aclose()


class _Out:
    """What is shown of the events of an answer."""

    def __init__(self, on_block: OnBlock) -> None:
        self._on_block = on_block
        self._shown = False
        self._blocked: DeliveryBlocked | None = None

    def text_of(self, event: AnyOutputEvent) -> str:
        if isinstance(event, DeliverySegment):
            self._shown = self._shown or bool(event.text)
            return event.text
        if isinstance(event, DeliveryBlocked):
            self._blocked = event
        return ""

    def end(self) -> str:
        """What follows the text of an answer that was blocked. Raises AnswerBlocked, if that is asked for."""
        found = self._blocked
        if found is None:
            return ""
        if self._on_block == "raise":
            raise AnswerBlocked(
                found.response_id, found.message, found.rule, found.released_chars, found.score
            )
        return f"\n\n{found.message}" if self._shown else found.message


@dataclass(slots=True)
class _Parts:
    """The fields of a chain's mapping, put together from its chunks."""

    keys: Keys
    found: dict[str, Any] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    answered: bool = False

    @classmethod
    def whole(cls, keys: Keys, given: Mapping[str, Any]) -> _Parts:
        parts = cls(keys)
        parts.add(given)
        return parts

    def add(self, chunk: Any) -> bool:
        """Take a chunk in; true when the answer has begun and what it is checked with is there."""
        if not isinstance(chunk, Mapping):
            raise InputError(
                "invalid_event",
                f"a {type(chunk).__name__} came, not a mapping with {self.keys.question}, "
                f"{self.keys.contexts} and {self.keys.answer}; assign the answer with "
                "RunnablePassthrough.assign before this step",
            )
        for name in (self.keys.question, self.keys.contexts):
            if name in chunk:
                self.found[name] = self.found[name] + chunk[name] if name in self.found else chunk[name]
        self.answered = self.answered or self.keys.answer in chunk
        if text := self.text_of(chunk):
            self.waiting.append(text)
        return bool(self.waiting) and {self.keys.question, self.keys.contexts} <= self.found.keys()

    @property
    def question(self) -> str:
        return _text(self.keys.question, self._of(self.keys.question))

    @property
    def contexts(self) -> Sequence[ContextLike]:
        contexts = self._of(self.keys.contexts)
        if isinstance(contexts, str) or not isinstance(contexts, Sequence):
            raise InputError(
                "invalid_event",
                f"{self.keys.contexts}: give the list of documents, not a {type(contexts).__name__}; join "
                "them to one text in the prompt's step only",
            )
        return contexts_of(contexts)

    @property
    def answer(self) -> str:
        return "".join(self.given())

    def text_of(self, chunk: Mapping[str, Any]) -> str:
        """What a chunk has of the answer. Raises InputError if that is not text."""
        return _text(self.keys.answer, chunk[self.keys.answer]) if self.keys.answer in chunk else ""

    def given(self) -> list[str]:
        """The text that has come. Raises InputError if nothing of the answer did, not even an empty text."""
        if not self.answered:
            raise InputError("invalid_event", self._missing(self.keys.answer))
        return self.waiting

    def deltas(self, chunks: Iterator[Any]) -> Iterator[str]:
        """The text that came so far, and all that comes."""
        yield from self.given()
        for chunk in chunks:
            if text := self.text_of(chunk):
                yield text

    async def adeltas(self, chunks: AsyncIterator[Any]) -> AsyncGenerator[str, None]:
        for text in self.given():
            yield text
        async for chunk in chunks:
            if text := self.text_of(chunk):
                yield text

    def _of(self, name: str) -> Any:
        if name not in self.found:
            raise InputError("invalid_event", self._missing(name))
        return self.found[name]

    def _missing(self, name: str) -> str:
        return (
            f"{name}: missing; the mapping needs {self.keys.question}, {self.keys.contexts} and "
            f"{self.keys.answer}, or other names given as question_key, contexts_key and answer_key"
        )


def chat_model_of(llm: Runnable[Any, Any]) -> ChatModel:
    """A chat model as that of the LLM judge, also one with retries, fallbacks or arguments bound to it."""
    if not isinstance(llm, Runnable):
        raise TypeError(f"llm: give a chat model of LangChain, not a {type(llm).__name__}")
    from guardrail.integrations.chat_models import ChatModel  # loads the client, which others don't need

    # Its own callbacks hold. Those of a chain would show its reader what the judge is asked and says.
    config = RunnableConfig(callbacks=[])
    return ChatModel(
        llm, list, partial(llm.invoke, config=config), partial(llm.ainvoke, config=config), _reply
    )


def _reply(message: Any) -> Reply:
    return str(getattr(message, "text", message)), getattr(message, "usage_metadata", None)


def contexts_of(documents: Sequence[Document | ContextLike]) -> list[ContextLike]:
    """LangChain's documents as contexts, in their order; other contexts stay as they are.

    A document's id names it; without one, or where another has it, ``c1``, ``c2``, … by its place. The
    metadata's ``source`` is kept.
    """
    taken: set[str] = set()
    contexts: list[ContextLike] = []
    for number, each in enumerate(documents, start=1):
        if not isinstance(each, Document):
            contexts.append(each)
            continue
        name = each.id if each.id and each.id not in taken else f"c{number}"
        taken.add(name)
        source = each.metadata.get("source")
        contexts.append(
            Context(id=name[:512], text=each.page_content, source=None if source is None else str(source))
        )
    return contexts


def _text(name: str, value: Any) -> str:
    """A text, or that of a message. Raises InputError for what has none: nobody could check it."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage):
        text = str(value.text)
        part = isinstance(value, AIMessageChunk) or not value.content
        if text or part or getattr(value, "tool_calls", None):
            return text
    raise InputError(
        "invalid_event",
        f"{name}: a {type(value).__name__} without text came; give a text, or a message that has one: of an "
        "output with a form, the text of it that the reader sees",
    )
