"""The guard as an interceptor in Microsoft's agent framework, which is a host of agent-hooks 0.1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    create_agent_hooks_middleware,
    tool,
)
from agent_hooks import InterceptionBlocked

from guardrail import Guard
from guardrail.integrations.agent_hooks import GuardBinding, GuardInterceptor
from guardrail.policy import Policy
from tests.support.judges import WordJudge

pytestmark = pytest.mark.filterwarnings("ignore:.AGENT_HOOKS.")
RIGHT = "The basic plan costs $49 a month. "
WRONG = "The wrong plan costs $79 a month. "
ODD = "The unbacked plan has 3 seats. "


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Asks a tool, then says what a test wants."""

    def __init__(self, *says: Content) -> None:
        super().__init__(middleware=[])
        call = Content.from_function_call(call_id="1", name="search", arguments={"query": "price"})
        self.script = [[call], list(says)]

    def _inner_get_response(self, *, stream: bool, **_: Any) -> Any:
        contents = self.script.pop(0)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(contents=[content], role="assistant")

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", contents)], finish_reason="stop")

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else whole()


@tool(approval_mode="never_require")
def search(query: str) -> str:
    """Search the price list."""
    return f"{query}: The basic plan costs $49 a month."


async def said(guard: Guard, *says: Content, stream: bool) -> str:
    hooks = create_agent_hooks_middleware(
        [GuardInterceptor(guard, GuardBinding(tools=frozenset({"search"})))]
    )
    agent = Agent(client=ScriptedClient(*says), tools=[search], middleware=[hooks])
    if stream:
        return "".join([update.text async for update in agent.run("What does it cost?", stream=True)])
    return (await agent.run("What does it cost?")).text


@pytest.mark.parametrize("stream", [False, True])
async def test_answers_leave_as_the_guard_decides(stream: bool) -> None:
    judge = WordJudge()
    async with Guard(
        judge, Policy(rules=("verdict CONTRADICTED: block", "verdict UNSUPPORTED: redact"))
    ) as guard:
        assert await said(guard, Content.from_text(RIGHT), stream=stream) == RIGHT
        assert await said(guard, Content.from_text(RIGHT + ODD), stream=stream) == (
            RIGHT + "[removed: not backed by the sources] "
        )
        with pytest.raises(InterceptionBlocked):
            await said(guard, Content.from_text(RIGHT + WRONG), stream=stream)
    assert [context.text for context in judge.requests[0].evidence.contexts] == [
        "price: The basic plan costs $49 a month."
    ]


async def test_a_reasoning_that_nobody_has_checked_goes() -> None:
    async with Guard(WordJudge()) as guard:
        hooks = create_agent_hooks_middleware(
            [GuardInterceptor(guard, GuardBinding(tools=frozenset({"search"})))]
        )
        thought = Content.from_text_reasoning(text="wrong, I think")
        client = ScriptedClient(thought, Content.from_text(RIGHT))
        agent = Agent(client=client, tools=[search], middleware=[hooks])
        reply = await agent.run("What does it cost?")
    assert reply.text == RIGHT
    assert "wrong" not in str([message.to_dict() for message in reply.messages])
