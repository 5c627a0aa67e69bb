"""The guard in LangChain's agents: a middleware that lets nothing of an answer out before its claims passed.

::

    agent = create_agent(model, tools=[search], middleware=[GuardMiddleware()])

It puts a model of its own in front of the agent's, which answers with what the guard releases. So every way
to read an agent shows guarded text only, also those that show it while it is written: ``stream_mode=
"messages"``, ``astream_events``. The documents are what the agent's tools returned.

A module of its own, since ``langchain.agents`` takes seconds to import, which chains don't need.
"""

# ruff: noqa: ARG002 - LangChain names its arguments

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream, generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables.config import ensure_config, var_child_runnable_config

from guardrail import events
from guardrail.errors import ConfigError
from guardrail.inputs import ContextLike
from guardrail.integrations.background import BackgroundGuard
from guardrail.integrations.langchain import GuardStream

ContextsOf = Callable[[Mapping[str, Any]], Sequence[Document | ContextLike]]

_TOLD: Final = frozenset({"finish_reason", "stop_reason", "model_name", "model_provider"})
"""What is told of a reply beside its text; log probabilities and the like spell the text out."""
_CALLS: Final = frozenset({"tool_call", "tool_use", "function_call", "custom_tool_call", "input_json_delta"})
_REASONING: Final = frozenset({"reasoning", "reasoning_content", "thinking", "redacted_thinking"})
_KEPT: Final = _CALLS | _REASONING
"""The blocks of a message with calls of tools that providers want back. All others may be unchecked text."""
_KEPT_BESIDE: Final = frozenset(
    {
        "tool_calls",
        "function_call",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "__openai_function_call_ids__",
        "__gemini_function_call_thought_signatures__",
    }
)
"""The same of its ``additional_kwargs``."""
_APART: Final = "\n\n"


class GuardMiddleware(AgentMiddleware[Any, Any]):
    """Guards what an agent's model writes, before it reaches a reader or the agent's state.

    Put it last in ``middleware``: one behind it that calls another model goes around it, which raises
    ConfigError. ``contexts`` returns the documents from the agent's state. Without it they are what tools
    returned: the documents in a message's artifact, as retriever tools leave them there, else its text; of
    the ``tools`` named, or of all. Leave out those whose output is not a source. ``options`` are those of
    ``GuardStream``. A structured answer can't be guarded; asking for one raises ConfigError.
    """

    def __init__(
        self,
        guard: BackgroundGuard | None = None,
        *,
        contexts: ContextsOf | None = None,
        tools: Collection[str] | None = None,
        **options: Any,
    ) -> None:
        if contexts is not None and tools is not None:
            raise ValueError("tools: contexts returns the documents already; give contexts or tools")
        super().__init__()
        self._stream = GuardStream(guard, **options)
        self._contexts = contexts or _OfTools(None if tools is None else frozenset(tools))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        reply, guarded = self._guarded(request)
        return reply.taken_from(handler(guarded))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        reply, guarded = self._guarded(request)
        return reply.taken_from(await handler(guarded))

    def _guarded(self, request: ModelRequest[Any]) -> tuple[_ModelReply, ModelRequest[Any]]:
        if request.response_format is not None:
            raise ConfigError(
                "response_format: a structured answer can't be guarded; leave it out, or check its text with "
                "GuardCheck in place of GuardMiddleware"
            )
        asked = [each for each in request.state["messages"] if isinstance(each, HumanMessage)]
        reply = _ModelReply()
        model = _GuardedModel(
            inner=request.model,
            stream_of=self._stream,
            head={
                "question": str(asked[-1].text) if asked else "",
                "contexts": list(self._contexts(request.state)),
            },
            reply=reply,
            cache=False,  # what is released depends on the documents, too
        )
        return reply, request.override(model=model)


@dataclass(frozen=True, slots=True)
class _OfTools:
    names: frozenset[str] | None

    def __call__(self, state: Mapping[str, Any]) -> list[Document | ContextLike]:
        found: list[Document | ContextLike] = []
        for message in state["messages"]:
            if not isinstance(message, ToolMessage) or message.status == "error":
                continue
            name = message.name or "tool"
            if self.names is not None and name not in self.names:
                continue
            kept = message.artifact if isinstance(message.artifact, list | tuple) else ()
            documents = [each for each in kept if isinstance(each, Document)]
            text = events.Context(id=f"{name[:480]}-{len(found) + 1}", text=str(message.text), source=name)
            found += documents or [text]
        return found


class _ModelReply:
    """One reply of the agent's model: what came of it, and what was released."""

    def __init__(self) -> None:
        self._came: Any = None
        self._released: str | None = None
        self._kind = ""  # of its text that came last

    def begin(self) -> None:
        """Forget what came before: other middlewares may ask again."""
        self._came = self._released = None
        self._kind = ""

    def add(self, part: BaseMessage) -> str:
        """Take a part in; returns its text. A refusal says what the model likes, too."""
        self._came = part if self._came is None else self._came + part
        added = ""
        for kind, text in (("text", str(part.text)), ("refusal", _refusal_of(part))):
            if text:
                added += text if self._kind in {"", kind} else _APART + text
                self._kind = kind
        return added

    def end(self, released: str) -> AIMessageChunk:
        """What ends the reply behind its text: calls of tools, usage."""
        self._released = released
        came = self._came
        return AIMessageChunk(
            content="",
            tool_call_chunks=[
                tool_call_chunk(name=each["name"], args=_written(each["args"]), id=each["id"], index=number)
                for number, each in enumerate([*came.tool_calls, *came.invalid_tool_calls])
            ],
            usage_metadata=came.usage_metadata,
            response_metadata={name: each for name, each in came.response_metadata.items() if name in _TOLD},
        )

    def taken_from(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        """The agent's response, if it is what was released. Raises ConfigError for any other."""
        message = response.result[-1]
        if len(response.result) != 1 or self._released is None or str(message.text) != self._released:
            raise ConfigError(
                "middleware: one behind GuardMiddleware answers with another model; put GuardMiddleware last"
            )
        if self._came.tool_calls:
            # Providers want the reasoning before their calls of tools back. No stream has shown it.
            message.content = _with_text(self._came.content, self._released)
            message.additional_kwargs = {
                name: each for name, each in self._came.additional_kwargs.items() if name in _KEPT_BESIDE
            }
        return response


def _written(args: Any) -> Any:
    return json.dumps(args, ensure_ascii=False) if isinstance(args, dict) else args


def _refusal_of(part: BaseMessage) -> str:
    if beside := part.additional_kwargs.get("refusal"):
        return str(beside)
    blocks = [each for each in part.content if isinstance(each, dict) and each.get("type") == "refusal"]
    return "".join(str(each.get("refusal") or "") for each in blocks)


def _with_text(content: Any, text: str) -> Any:
    """The content of a message with what was released in place of its text; of the rest, what is kept."""
    if isinstance(content, str):
        return text
    blocks: list[Any] = []
    for each in content:
        if isinstance(each, dict) and each.get("type") in _KEPT:
            blocks.append(each)
        elif text:
            blocks.append({"type": "text", "text": text})
            text = ""
    if text:
        blocks.append({"type": "text", "text": text})
    return blocks


class _GuardedModel(BaseChatModel):
    """The agent's model, of whose text comes what the guard releases, while it is written."""

    inner: Any
    stream_of: Any
    head: dict[str, Any]
    reply: _ModelReply

    @property
    def _llm_type(self) -> str:
        return "guarded"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.model_copy(update={"inner": self.inner.bind_tools(tools, **options)})

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        def whole() -> Iterator[BaseMessage]:
            yield self.inner.invoke(messages, stop=stop, **options)

        return generate_from_stream(self._released(whole()))

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        async def whole() -> AsyncIterator[BaseMessage]:
            yield await self.inner.ainvoke(messages, stop=stop, **options)

        return await agenerate_from_stream(self._areleased(whole()))

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._released(self.inner.stream(messages, stop=stop, **options))

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in self._areleased(self.inner.astream(messages, stop=stop, **options)):
            yield chunk

    def _released(self, parts: Any) -> Iterator[ChatGenerationChunk]:
        self.reply.begin()
        released = ""
        with closing(parts):
            texts = (text for part in _unseen(parts) if (text := self.reply.add(part)))
            if first := next(texts, ""):
                chain = self._chain(first, texts)
                for text in self.stream_of.released(chain, ensure_config()):
                    released += text
                    yield _chunk(AIMessageChunk(content=text))
                for _ in texts:  # calls of tools may follow a text that was blocked
                    pass
        yield _chunk(self.reply.end(released))

    async def _areleased(self, parts: Any) -> AsyncIterator[ChatGenerationChunk]:
        self.reply.begin()
        released = ""
        async with aclosing(parts):
            texts = (text async for part in _aunseen(parts) if (text := self.reply.add(part)))
            if first := await anext(texts, ""):
                chain = self._achain(first, texts)
                async with aclosing(self.stream_of.areleased(chain, ensure_config())) as passed:
                    async for text in passed:
                        released += text
                        yield _chunk(AIMessageChunk(content=text))
                async for _ in texts:
                    pass
        yield _chunk(self.reply.end(released))

    def _chain(self, first: str, texts: Iterator[str]) -> Generator[dict[str, Any], None, None]:
        """What ``GuardStream`` reads in a chain."""
        yield {**self.head, "answer": first}
        for text in texts:
            yield {"answer": text}

    async def _achain(self, first: str, texts: AsyncIterator[str]) -> AsyncGenerator[dict[str, Any], None]:
        yield {**self.head, "answer": first}
        async for text in texts:
            yield {"answer": text}


def _outside() -> Context:
    """Where a model runs unseen: streams and events come from callbacks, which it finds in the context."""
    context = copy_context()
    context.run(var_child_runnable_config.set, None)
    return context


def _unseen(parts: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
    context = _outside()
    while (part := context.run(next, parts, None)) is not None:
        yield part


async def _aunseen(parts: AsyncIterator[BaseMessage]) -> AsyncIterator[BaseMessage]:
    async def step() -> BaseMessage | None:
        return await anext(parts, None)

    context = _outside()
    while (part := await asyncio.create_task(step(), context=context)) is not None:
        yield part


def _chunk(message: AIMessageChunk) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=message)
