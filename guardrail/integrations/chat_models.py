"""Chat models of frameworks as the model of the LLM judge.

An object is asked as its framework asks it, so that its keys, proxies and callbacks hold. Where somebody
waits on an event loop, it is asked there: connections that the application has opened belong to that loop.
Elsewhere its plain call is made in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final

from guardrail.config import Settings
from guardrail.errors import ConfigError
from guardrail.integrations.background import CALLER, FAILURES, there
from guardrail.judges.base import Judge
from guardrail.judges.factory import build_judge
from guardrail.judges.openai_client import httpx
from guardrail.judges.spending import ModelPrice

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
        if not isinstance(own, Mapping):
            return {**judge}  # which the settings refuse in words
        if judge.get("kind", "llm") not in {"llm", "cascade"}:
            raise ConfigError(f"judge.kind: {judge['kind']} asks no LLM, and you give {self.name}")
        if beyond := sorted(own.keys() - _OURS):
            raise ConfigError(f"judge.llm.{beyond[0]}: {self.name}, which you give, decides it; take it out")
        return {"kind": "llm", **judge, "llm": {**own, "model": self.name, "base_url": _NOWHERE}}

    def asked_by(self, settings: Settings) -> Settings:
        """``settings`` whose LLM judge asks it."""
        judge = settings.judge
        llm = judge.llm.model_copy(update={"api_key": None, "fallbacks": ()})
        llm._transport = self
        budgets = [each.budget for each in settings.policies.values() if each.budget is not None]
        counted = judge.budgets.needs_prices or any(each.usd is not None for each in budgets)
        # Nobody has to know what an object costs, unless a budget counts it.
        free = {} if judge.prices or counted else {"prices": {self.name: ModelPrice(input=0, output=0)}}
        return settings.model_copy(update={"judge": judge.model_copy(update={"llm": llm, **free})})

    def judge(self) -> Judge:
        """The LLM judge that asks it, by default settings."""
        return build_judge(self.asked_by(Settings.model_validate({"judge": self.settings({})})).judge)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(await request.aread())["messages"]
        messages = self.messages([(each["role"], each["content"]) for each in asked])
        here, caller = asyncio.get_running_loop(), CALLER.get()
        try:
            if caller is None or caller is here or self.aask is None:
                answer = await _in_thread(self.ask, messages)
            else:
                answer = await there(caller, self.aask(messages))
            text, told = self.reply(answer)
            for (
                each
            ) in asked:  # the prompt's examples, given back before the reply or in its place, say nothing
                text = (text or "").rpartition(each["content"])[2]
            choice = {"message": {"content": text}, "finish_reason": "stop"}
            return httpx.Response(200, json={"choices": [choice], "usage": _usage(told)})
        except BaseException as error:  # whatever the object raises, the client reads as HTTP
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # else the object was cancelled, and nobody who waits for it
            if (failures := FAILURES.get()) is not None:
                failures.append(error)
            status = getattr(error, "status_code", None)
            status = status if isinstance(status, int) and 400 <= status < 600 else None
            raised = f"{self.name} raised {type(error).__name__}{f' ({status})' if status else ''}"
            said = str(error).encode(errors="replace").decode()
            return httpx.Response(
                status or 500,
                headers={"x-should-retry": "false"},  # the object has tried as often as its user wants
                json={"error": {"message": said, "code": type(error).__name__}},
                extensions={"raised": raised},
            )


async def _in_thread(ask: Callable[[Messages], Any], given: Any) -> Any:
    """Unlike ``asyncio.to_thread``, a call that never ends holds up neither closing nor the process's end."""
    told: Future[tuple[Any, BaseException | None]] = Future()
    told.set_running_or_notify_cancel()  # so that a late outcome has a place

    def work() -> None:
        try:
            told.set_result((ask(given), None))
        except BaseException as error:  # noqa: BLE001 - raised below
            told.set_result((None, error))  # as a value: no future takes StopIteration

    Thread(target=copy_context().run, args=(work,), name="chat-model", daemon=True).start()
    answer, error = await asyncio.wrap_future(told)
    if error is not None:
        raise error
    return answer


def _usage(told: Any) -> dict[str, Any] | None:
    given = told if isinstance(told, Mapping) else getattr(told, "__dict__", {})
    counts = {name: given.get(name) or given.get(other) for name, other in _TOKENS}
    return counts if any(counts.values()) else None
