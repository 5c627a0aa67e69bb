"""The middleware in LangChain's own agents, with a model that is scripted: no way to read them shows more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

from guardrail import AnswerBlocked, ConfigError, ResponseVerdict
from guardrail.integrations.background import BackgroundGuard
from guardrail.integrations.langchain import VERDICT_EVENT
from guardrail.integrations.langchain_agents import GuardMiddleware
from tests.support.judges import WordJudge

RIGHT = "Paris is in France. "
WRONG = "It costs wrong $79. "
MARK = "$79"
ASKED: dict[str, Any] = {"messages": [HumanMessage("Where is Paris?")]}
THOUGHT = {"type": "reasoning", "reasoning": f"Perhaps {MARK}."}


def call(name: str = "atlas", text: str = "", content: Any = None) -> AIMessage:
    """A reply that calls a tool, with text beside it."""
    calls = [{"name": name, "args": {"city": "Paris"}, "id": "call-1", "type": "tool_call"}]
    return AIMessage(content if content is not None else text, tool_calls=calls)


class Model(BaseChatModel):
    """Gives its replies one after the other, word by word where it is asked to."""

    replies: list[AIMessage]
    asked: list[Any] = []  # noqa: RUF012 - a field

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.bind(tools=[each.name for each in tools])

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self.asked.append(options)
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        self.asked.append(options)
        reply = self.replies.pop(0)
        parts: list[Any] = [f"{word} " for word in reply.text.split()]
        if isinstance(reply.content, list):
            parts = [[each] for each in reply.content]
        for part in parts:
            yield ChatGenerationChunk(message=AIMessageChunk(content=part))
        chunks: Any = [
            {"name": each["name"], "args": '{"city": "Paris"}', "id": each["id"], "index": 0}
            for each in reply.tool_calls
        ]
        usage: Any = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        told = {"finish_reason": "stop", "logprobs": {"content": [{"token": MARK}]}}
        last = AIMessageChunk(
            content="", tool_call_chunks=chunks, usage_metadata=usage, response_metadata=told
        )
        yield ChatGenerationChunk(message=last)


class Whole(Model):
    """Gives them whole, with what stands beside their text."""

    def _stream(self, *args: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        reply = self._generate(*args, **options).generations[0].message
        calls: Any = [
            {"name": each["name"], "args": '{"city": "Paris"}', "id": each["id"], "index": 0}
            for each in getattr(reply, "tool_calls", ())
        ]
        more: Any = {"additional_kwargs": reply.additional_kwargs, "tool_call_chunks": calls}
        yield ChatGenerationChunk(message=AIMessageChunk(content=reply.content, **more))


@tool
def atlas(city: str) -> str:
    """Look a city up."""
    return f"{city} is in France."


@tool(response_format="content_and_artifact")
def shelf(city: str) -> Any:
    """Find pages."""
    return "two pages", [Document(f"{city} is in France.", id="atlas"), Document("It costs $49.")]


@tool
def broken(city: str) -> str:
    """Fail."""
    raise ValueError(city)


def agent(middleware: Any, *replies: AIMessage, tools: Sequence[Any] = (atlas, shelf), **more: Any) -> Any:
    others = middleware if isinstance(middleware, list) else [middleware]
    return create_agent(Model(replies=list(replies)), list(tools), middleware=others, **more)


def of_a_search(guard: BackgroundGuard, text: str, **options: Any) -> Any:
    return agent(GuardMiddleware(guard, **options), call(), AIMessage(text))


def contexts(judge: WordJudge) -> list[tuple[str, str]]:
    return [(each.id, each.text) for each in judge.requests[-1].evidence.contexts]


async def test_an_answer_is_checked_against_what_the_tools_returned(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    for result in (
        await of_a_search(guard, RIGHT).ainvoke(ASKED),
        of_a_search(guard, RIGHT).invoke(ASKED),
    ):
        assert result["messages"][-1].text.strip() == RIGHT.strip()
        assert contexts(judge) == [("atlas-1", "Paris is in France.")]
        assert judge.requests[-1].question == "Where is Paris?"


async def test_what_is_wrong_reaches_neither_the_reader_nor_the_state(guard: BackgroundGuard) -> None:
    for result in (
        await of_a_search(guard, RIGHT + WRONG).ainvoke(ASKED),
        of_a_search(guard, RIGHT + WRONG).invoke(ASKED),
    ):
        assert MARK not in str(result)
        assert "withheld" in result["messages"][-1].text


async def test_a_stream_of_messages_shows_what_is_released_while_it_is_written(
    guard: BackgroundGuard,
) -> None:
    streamed = [each async for each in of_a_search(guard, RIGHT * 3).astream(ASKED, stream_mode="messages")]
    plain = list(of_a_search(guard, RIGHT * 3).stream(ASKED, stream_mode="messages"))
    for parts in (streamed, plain):
        texts = [each.text for each, told in parts if told["langgraph_node"] == "model" and each.text]
        assert "".join(texts).split() == (RIGHT * 3).split()
        assert len(texts) >= 2


@pytest.mark.parametrize("mode", ["messages", "updates", "values", "debug"])
async def test_no_stream_shows_what_was_not_released(guard: BackgroundGuard, mode: Any) -> None:
    parts = [each async for each in of_a_search(guard, RIGHT + WRONG).astream(ASKED, stream_mode=mode)]
    parts += of_a_search(guard, RIGHT + WRONG).stream(ASKED, stream_mode=mode)
    assert "withheld" in str(parts)
    assert MARK not in str(parts)


async def test_no_event_shows_what_was_not_released(guard: BackgroundGuard) -> None:
    chain = of_a_search(guard, RIGHT + WRONG)
    events = [each async for each in chain.astream_events(ASKED, version="v2")]
    (told,) = [each["data"] for each in events if each["name"] == VERDICT_EVENT]
    assert ResponseVerdict.model_validate(told).decision == "block"
    # The verdict alone quotes what it is about.
    assert MARK not in str([each for each in events if each["name"] != VERDICT_EVENT])
    assert {each["event"] for each in events} >= {"on_chat_model_stream", "on_tool_end"}


async def test_calls_of_tools_and_the_usage_pass(guard: BackgroundGuard) -> None:
    model = Model(replies=[call(), AIMessage(RIGHT)])
    built: Any = create_agent(model, [atlas], middleware=[GuardMiddleware(guard)])
    parts = [each async for each in built.astream(ASKED, stream_mode="updates")]
    (asking,), (told,), (answer,) = (each["messages"] for part in parts for each in part.values())
    assert asking.tool_calls[0]["args"] == {"city": "Paris"}
    assert isinstance(told, ToolMessage)
    assert answer.text.strip() == RIGHT.strip()
    assert [each["tools"] for each in model.asked] == [["atlas"]] * 2


async def test_usage_passes_and_log_probabilities_do_not(guard: BackgroundGuard) -> None:
    chain = of_a_search(guard, RIGHT)
    last = None
    async for mode, part in chain.astream(ASKED, stream_mode=["messages", "values"]):
        last = part["messages"][-1] if mode == "values" else last
    assert last is not None
    assert last.usage_metadata["total_tokens"] == 7
    assert last.response_metadata["finish_reason"] == "stop"
    assert "logprobs" not in last.response_metadata


async def test_text_that_is_blocked_does_not_keep_a_tool_from_being_called(guard: BackgroundGuard) -> None:
    built = agent(GuardMiddleware(guard), call(text=WRONG), AIMessage(RIGHT))
    parts = [each async for each in built.astream(ASKED, stream_mode=["messages", "values"])]
    assert MARK not in str(parts)
    messages = parts[-1][1]["messages"]
    assert [type(each) for each in messages] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
    assert messages[-1].text.strip() == RIGHT.strip()


async def test_reasoning_is_kept_for_the_provider_and_shown_by_no_stream(guard: BackgroundGuard) -> None:
    thought = [THOUGHT, {"type": "text", "text": RIGHT}]
    built = agent(GuardMiddleware(guard), call(content=thought), AIMessage(content=list(thought)))
    parts = [each async for each in built.astream(ASKED, stream_mode=["messages", "values"])]
    assert MARK not in str([part for mode, part in parts if mode == "messages"])
    _, asking, _, answer = parts[-1][1]["messages"]
    assert asking.content[0] == THOUGHT
    assert MARK not in str(answer)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "refusal", "refusal": WRONG},
        {"type": "output_text", "text": WRONG},
        {"type": "non_standard", "value": {"said": WRONG}},
        {"type": "text", "text": "", "annotations": [{"cited_text": WRONG}]},
        {"type": "of_a_later_release", "text": WRONG},
        {"text": WRONG},
    ],
)
async def test_a_call_of_a_tool_brings_no_block_along_that_was_not_checked(
    guard: BackgroundGuard, block: dict[str, Any]
) -> None:
    used = {"type": "tool_use", "id": "call-1", "name": "atlas", "input": {"city": "Paris"}}
    thought = {"type": "thinking", "thinking": "Where?", "signature": "sealed"}
    asking = call(content=[thought, block, used])
    asking.additional_kwargs = dict.fromkeys(("refusal", "audio", "parsed", "tool_outputs"), WRONG)
    asking.additional_kwargs["__gemini_function_call_thought_signatures__"] = {"call-1": "sealed"}
    built: Any
    for built in (
        agent(GuardMiddleware(guard), asking, AIMessage(RIGHT)),
        create_agent(Whole(replies=[asking, AIMessage(RIGHT)]), [atlas], middleware=[GuardMiddleware(guard)]),
    ):
        modes: Any = ["messages", "updates", "values"]
        parts = [each async for each in built.astream(ASKED, stream_mode=modes)]
        assert MARK not in str(parts)
        message = parts[-1][1]["messages"][1]
        assert [each for each in message.content if each["type"] != "text"] == [thought, used]
    assert message.additional_kwargs == {"__gemini_function_call_thought_signatures__": {"call-1": "sealed"}}


@pytest.mark.parametrize("text", [RIGHT, WRONG])
@pytest.mark.parametrize("in_block", [True, False])
@pytest.mark.parametrize("calls", [True, False])
async def test_a_refusal_is_checked_like_the_answer(
    guard: BackgroundGuard, text: str, in_block: bool, calls: bool
) -> None:
    reply = call() if calls else AIMessage("")
    if in_block:
        reply.content = [{"type": "refusal", "refusal": text}]
    else:
        reply.additional_kwargs = {"refusal": text}
    given = {
        "messages": [*ASKED["messages"], call(), ToolMessage(RIGHT, tool_call_id="call-1", name="atlas")]
    }
    model = Whole(replies=[reply, AIMessage(RIGHT)])
    built: Any = create_agent(model, [atlas], middleware=[GuardMiddleware(guard)])
    message = (await built.ainvoke(given))["messages"][3]
    assert message.text.strip() == RIGHT.strip() if text == RIGHT else "withheld" in message.text
    assert MARK not in str(message)


async def test_documents_are_those_of_an_artifact_of_the_tools_named_and_of_none_that_failed(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    await agent(GuardMiddleware(guard), call("shelf"), AIMessage(RIGHT)).ainvoke(ASKED)
    assert contexts(judge) == [("atlas", "Paris is in France."), ("c2", "It costs $49.")]
    built = agent(GuardMiddleware(guard, tools=["shelf"]), call("atlas"), call("shelf"), AIMessage(RIGHT))
    await built.ainvoke(ASKED)
    assert [name for name, _ in contexts(judge)] == ["atlas", "c2"]
    failed = ToolMessage(RIGHT, tool_call_id="1", name="atlas", status="error")
    given = {"messages": [*ASKED["messages"], call(), failed]}
    result = await agent(GuardMiddleware(guard), AIMessage(RIGHT)).ainvoke(given)
    assert "documents" in result["messages"][-1].text
    assert RIGHT.strip() not in result["messages"][-1].text


async def test_documents_may_come_from_a_function_of_the_state(
    guard: BackgroundGuard, judge: WordJudge
) -> None:
    middleware = GuardMiddleware(guard, contexts=lambda state: [f"{len(state['messages'])} messages"])
    await agent(middleware, AIMessage(RIGHT)).ainvoke(ASKED)
    assert contexts(judge) == [("c1", "1 messages")]


async def test_a_block_can_be_raised(guard: BackgroundGuard) -> None:
    with pytest.raises(AnswerBlocked):
        await of_a_search(guard, WRONG, on_block="raise").ainvoke(ASKED)


class OtherModel(AgentMiddleware[Any, Any]):
    """Has another model answer."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request.override(model=Model(replies=[AIMessage(WRONG)])))


def test_another_model_goes_around_it_only_in_front(guard: BackgroundGuard) -> None:
    guarded = GuardMiddleware(guard)
    with pytest.raises(ConfigError, match="put GuardMiddleware last"):
        agent([guarded, OtherModel()], AIMessage(RIGHT)).invoke(ASKED)
    result = agent([OtherModel(), guarded], AIMessage(RIGHT)).invoke(ASKED)
    assert MARK not in str(result)


class Reply(BaseModel):
    """An answer with a form."""

    text: str


def test_a_structured_answer_is_refused(guard: BackgroundGuard) -> None:
    with pytest.raises(ConfigError, match="response_format: a structured answer can't be guarded"):
        agent(GuardMiddleware(guard), AIMessage(RIGHT), response_format=Reply).invoke(ASKED)


def test_wrong_options_are_named(guard: BackgroundGuard) -> None:
    with pytest.raises(ValueError, match="give contexts or tools"):
        GuardMiddleware(guard, contexts=lambda state: [], tools=["atlas"])
    with pytest.raises(ConfigError, match="missing_contexts: 'pass' is unknown"):
        GuardMiddleware(guard, missing_contexts="pass")
