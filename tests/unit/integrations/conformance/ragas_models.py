"""Models of Ragas that answer by a script, under the names by which its tests make theirs."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from ragas.llms.base import InstructorBaseRagasLLM

from tests.unit.integrations.conformance.script import Script


class ChatOpenAI(BaseChatModel):
    """A chat model of LangChain."""

    script: Any = None

    def __init__(self, model: str = "scripted", temperature: float = 0.0, **script: Any) -> None:
        super().__init__()
        self.script = Script(**script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = self.script.reply("\n".join(str(each.content) for each in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])


class Instructed(InstructorBaseRagasLLM):
    """A model that fills in forms."""

    is_async = True

    def __init__(self, **script: Any) -> None:
        self.script = Script(**script)

    def generate(self, prompt: str, response_model: Any) -> Any:
        return response_model.model_validate_json(self.script.reply(prompt))

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        return self.generate(prompt, response_model)


def llm_factory(model: str = "scripted", **_: Any) -> Instructed:
    return Instructed()
