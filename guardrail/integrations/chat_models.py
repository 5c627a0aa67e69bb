"""Chat models of frameworks as the model of the LLM judge.

An object is asked as its framework asks it, so that its keys, proxies and callbacks hold. Where somebody
waits on an event loop, it is asked there: connections that the application has opened belong to that loop.
Elsewhere its plain call is made in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from guardrail.config import Settings
from guardrail.errors import ConfigError
from guardrail.integrations.background import CALLER, there
from guardrail.judges.base import Judge
from guardrail.judges.factory import build_judge
from guardrail.judges.openai_client import httpx

Messages = list[tuple[str, str]]
"""Roles, system or user, and texts."""
Reply = tuple[str | None, Any]
"""The text, and what tells the tokens that it took, if anything does."""
_NOWHERE: Final = "http://chat-model.invalid/v1"
_OURS: Final = {"reasoning", "decompose", "prompts", "max_context_chars", "max_concurrency"}
"""The settings of the LLM judge that are not about its model."""
_NAMES: Final = ("model_name", "model", "model_id")
_TOKENS: Final = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
"""What OpenAI calls them, and what others do."""


@dataclass(frozen=True, eq=False)
class ChatModel(httpx.AsyncBaseTransport):
    """Stands where the judge's HTTP client expects a server. Of a request it passes on the messages only:
    what else is asked of a model, and how often, is a matter of the object.
    """

    model: object
    messages: Callable[[Messages], Any]
    """Messages as ``ask`` and ``aask`` take them. ``reply`` reads what these return."""
    ask: Callable[[Any], Any]
    aask: Callable[[Any], Coroutine[Any, Any, Any]] | None
    """None if the model is not asynchronous."""
    reply: Callable[[Any], Reply]

    @property
    def name(self) -> str:
        named = (getattr(self.model, name, None) for name in _NAMES)
        return next((each for each in named if isinstance(each, str) and each), type(self.model).__name__)

    def settings(self, judge: Mapping[str, Any]) -> dict[str, Any]:
        """``judge``, the section of that name, with this model. Raises ConfigError if it says otherwise."""
        own = judge.get("llm") or {}
        if judge.get("kind", "llm") not in {"llm", "cascade"}:
            raise ConfigError(f"judge.kind: {judge['kind']} asks no LLM, and you give {self.name}")
        if beyond := sorted(own.keys() - _OURS):
            raise ConfigError(f"judge.llm.{beyond[0]}: {self.name}, which you give, decides it; take it out")
        return {"kind": "llm", **judge, "llm": {**own, "model": self.name, "base_url": _NOWHERE}}

    def asked_by(self, settings: Settings) -> Settings:
        """``settings`` whose LLM judge asks it."""
        llm = settings.judge.llm.model_copy(update={"api_key": None, "fallbacks": ()})
        llm._transport = self
        return settings.model_copy(update={"judge": settings.judge.model_copy(update={"llm": llm})})

    def judge(self) -> Judge:
        """The LLM judge that asks it, by default settings."""
        return build_judge(self.asked_by(Settings.model_validate({"judge": self.settings({})})).judge)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(await request.aread())["messages"]
        messages = self.messages([(each["role"], each["content"]) for each in asked])
        here, caller = asyncio.get_running_loop(), CALLER.get()
        try:
            if caller is None or caller is here or self.aask is None:
                answer = await asyncio.to_thread(self.ask, messages)
            else:
                answer = await there(caller, self.aask(messages))
            text, told = self.reply(answer)
        except Exception as error:  # noqa: BLE001 - whatever the object raises, the client reads as HTTP
            status = getattr(error, "status_code", None)
            failed = {"error": {"message": str(error), "code": type(error).__name__}}
            again = {"x-should-retry": "false"}  # the object has tried as often as its user wants
            return httpx.Response(status if isinstance(status, int) else 500, headers=again, json=failed)
        choice = {"message": {"content": text}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice], "usage": _usage(told)})


def _usage(told: Any) -> dict[str, Any] | None:
    given = told if isinstance(told, Mapping) else getattr(told, "__dict__", {})
    counts = {name: given.get(name) or given.get(other) for name, other in _TOKENS}
    return counts if any(counts.values()) else None
