"""The guardrail as LiteLLM's proxy calls it, with the local judge: no proxy is needed, only LiteLLM.

``tests/integration/in_litellm.py`` has the proxy. pytest collects both only by name.
"""

from __future__ import annotations

from typing import Any

import pytest
from litellm.types.utils import Choices, Message, ModelResponse

from guardrail.integrations.litellm import LiteLlmGuardrail

RIGHT = "The basic plan costs $49 a month."
REQUEST: dict[str, Any] = {
    "model": "any",
    "messages": [{"role": "user", "content": "What does it cost?"}],
    "guardrail": {"contexts": [{"id": "plans", "text": RIGHT}]},
}


@pytest.mark.parametrize(
    ("answer", "decision", "finish"),
    [(RIGHT, "release", "stop"), ("The basic plan costs $79 a month.", "block", "content_filter")],
)
async def test_a_completion_is_judged(answer: str, decision: str, finish: str) -> None:
    guardrail = LiteLlmGuardrail(guardrail_name="guard", event_hook=["pre_call", "post_call"])
    completion = ModelResponse(choices=[Choices(finish_reason="stop", message=Message(content=answer))])
    request = await guardrail.async_pre_call_hook(None, None, dict(REQUEST), "acompletion")
    done = await guardrail.async_post_call_success_hook(request, None, completion)
    assert done.choices[0].finish_reason == finish
    assert (done.choices[0].message.content == answer) is (decision == "release")
    assert done.guardrail["decision"] == decision
