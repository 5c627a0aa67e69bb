"""A chat model of LangChain that replies by a script, under the name by which Ragas' tests make theirs."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.unit.integrations.conformance.script import Script


class ChatOpenAI(BaseChatModel):
    script: Any = None

    def __init__(self, model: str = "scripted", temperature: float = 0.0, **script: Any) -> None:
        super().__init__()
        self.script = Script(**script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = self.script.reply("\n".join(each.text for each in messages))
        used: Any = {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply, usage_metadata=used))])
