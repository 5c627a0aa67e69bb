"""A model of Ragas that fills in forms by a script."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from ragas.llms.base import InstructorBaseRagasLLM

from tests.unit.integrations.conformance.script import Script


class Instructed(InstructorBaseRagasLLM):
    model = "their-model"

    def __init__(self, *, is_async: bool = True, **script: Any) -> None:
        self.is_async = is_async
        self.script = Script(**script)
        self.threads: list[int] = []

    def generate(self, prompt: str, response_model: Any) -> Any:
        self.threads.append(threading.get_ident())
        filled = response_model.model_validate_json(self.script.reply(prompt))
        filled._raw_response = SimpleNamespace(usage=SimpleNamespace(prompt_tokens=50, completion_tokens=5))
        return filled

    async def agenerate(self, prompt: str, response_model: Any) -> Any:
        assert self.is_async
        return self.generate(prompt, response_model)


def llm_factory(model: str, **_: Any) -> Instructed:
    """As Ragas' tests call it."""
    return Instructed()
