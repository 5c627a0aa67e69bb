"""The guardrail as LiteLLM's proxy calls it, with the local judge: no proxy is needed, only LiteLLM.

``tests/integration/in_litellm.py`` has the proxy. pytest collects both only by name.
"""

from __future__ import annotations

from typing import Any

import pytest
from litellm.types.utils import (
    CallTypes,
    Choices,
    Delta,
    EmbeddingResponse,
    Message,
    ModelResponse,
    ModelResponseStream,
    StreamingChoices,
    TextCompletionResponse,
    TranscriptionResponse,
    Usage,
)

from guardrail import ConfigError
from guardrail.integrations.litellm import GUARDED, WITHOUT_PROSE, LiteLlmGuardrail

RIGHT = "The basic plan costs $49 a month."
REQUEST: dict[str, Any] = {
    "model": "any",
    "messages": [{"role": "user", "content": "What does it cost?"}],
    "guardrail": {"contexts": [{"id": "plans", "text": RIGHT}]},
}


WRONG = "The basic plan costs $79 a month."


@pytest.fixture
def guardrail() -> LiteLlmGuardrail:
    return LiteLlmGuardrail(guardrail_name="guard", event_hook=["pre_call", "post_call"])


@pytest.fixture
def refusal(monkeypatch: pytest.MonkeyPatch) -> type[Exception]:
    """What is raised in place of FastAPI's exception, which comes with the proxy only."""

    class Refused(Exception):
        pass

    monkeypatch.setattr("guardrail.integrations.litellm._refusal", Refused)
    return Refused


def whole(**fields: Any) -> ModelResponse:
    return ModelResponse(choices=[Choices(finish_reason="stop", message=Message(**fields))])


@pytest.mark.parametrize("call", [*CallTypes, "of_a_later_release", ""])
async def test_each_call_is_guarded_or_without_prose_or_refused(
    guardrail: LiteLlmGuardrail, refusal: type[Exception], call: str
) -> None:
    """LiteLLM's own list, of the release that is installed."""
    name = getattr(call, "value", call)
    for given in {call, name}:
        if name in GUARDED | WITHOUT_PROSE:
            assert await guardrail.async_pre_call_hook(None, None, dict(REQUEST), given)
            continue
        with pytest.raises(refusal, match="only chat completions can be guarded"):
            await guardrail.async_pre_call_hook(None, None, dict(REQUEST), given)


def test_the_lists_name_calls_of_litellm() -> None:
    assert {each.value for each in CallTypes} >= GUARDED | WITHOUT_PROSE


@pytest.mark.parametrize(
    "response",
    [TextCompletionResponse(), TranscriptionResponse(text=WRONG), {"type": "message"}, None, b"x", [WRONG]],
)
async def test_a_response_of_no_known_kind_is_refused(
    guardrail: LiteLlmGuardrail, refusal: type[Exception], response: Any
) -> None:
    with pytest.raises(refusal, match="only chat completions can be guarded"):
        await guardrail.async_post_call_success_hook(dict(REQUEST), None, response)


async def test_a_response_that_can_hold_no_prose_passes(guardrail: LiteLlmGuardrail) -> None:
    response = EmbeddingResponse()
    assert await guardrail.async_post_call_success_hook({}, None, response) is response


@pytest.mark.parametrize("also", [None, RIGHT])
async def test_a_refusal_is_checked_like_the_answer(guardrail: LiteLlmGuardrail, also: str | None) -> None:
    completion = whole(content=also)
    completion.choices[0].message.refusal = WRONG
    done = await guardrail.async_post_call_success_hook(dict(REQUEST), None, completion)
    assert WRONG not in done.model_dump_json()
    assert done.choices[0].finish_reason == "content_filter"


async def test_what_providers_add_to_a_message_is_dropped(guardrail: LiteLlmGuardrail) -> None:
    more = {"refusal": WRONG, "citations": [[{"cited_text": WRONG}]]}
    completion = whole(content=RIGHT, provider_specific_fields=more, reasoning_content=WRONG)
    completion.choices[0].provider_specific_fields = {"said": WRONG}
    done = await guardrail.async_post_call_success_hook(dict(REQUEST), None, completion)
    assert done.choices[0].message.content == RIGHT
    assert WRONG not in done.model_dump_json()


BESIDE = ("citations", "trace", "vertex_ai_grounding_metadata", "provider_specific_fields", "guardrail")


def quoting(found: Any) -> Any:
    """It, with the answer in all that providers set beside it."""
    for name in BESIDE:
        setattr(found, name, {"said": [WRONG]})
    return found


@pytest.mark.parametrize("answer", [RIGHT, WRONG])
async def test_what_providers_add_to_a_response_or_a_choice_is_dropped(
    guardrail: LiteLlmGuardrail, answer: str
) -> None:
    completion = quoting(whole(content=answer))
    quoting(completion.choices[0])
    completion.usage = Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)
    completion.service_tier = "flex"
    completion._hidden_params = {"model_id": "of-the-proxy"}
    before = completion.id, completion.created
    done = await guardrail.async_post_call_success_hook(dict(REQUEST), None, completion)
    assert WRONG not in done.model_dump_json()
    assert (done.id, done.created) == before
    assert done.usage.total_tokens == 7
    assert done.service_tier == "flex"
    assert done._hidden_params == {"model_id": "of-the-proxy"}
    assert set(done.model_extra) == {"usage", "service_tier", "guardrail"}


@pytest.mark.parametrize("answer", [RIGHT, WRONG])
async def test_what_providers_add_to_a_chunk_is_dropped(guardrail: LiteLlmGuardrail, answer: str) -> None:
    def part(**fields: Any) -> StreamingChoices:
        return quoting(StreamingChoices(index=0, **fields))

    async def written() -> Any:
        for choices in (
            [part(delta=Delta(content=answer, role="assistant"))],
            [],
            [part(delta=Delta(), finish_reason="stop")],
            [],
        ):
            yield quoting(ModelResponseStream(id="one", model="any", choices=choices))
        yield quoting(ModelResponseStream(id="one", choices=[], usage=Usage(prompt_tokens=3)))

    stream = guardrail.async_post_call_streaming_iterator_hook(None, written(), dict(REQUEST))
    chunks = [each async for each in stream]
    assert WRONG not in "".join(each.model_dump_json() for each in chunks)
    assert {each.id for each in chunks} == {"one"}
    assert chunks[-1].usage.prompt_tokens == 3
    (closing,) = [each for each in chunks if each.choices and each.choices[0].finish_reason]
    assert closing.provider_specific_fields == {"guardrail": closing.guardrail}
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    assert (text == answer) is (answer == RIGHT)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"event_hook": "post_call"}, "mode: pre_call refuses"),
        ({"event_hook": ["pre_call"]}, "mode: pre_call refuses"),
        ({"run_in_parallel": True}, "run_in_parallel"),
        ({"missing_contexts": "pass"}, "missing_contexts: 'pass' is unknown"),
    ],
)
def test_options_that_leave_a_way_around_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        LiteLlmGuardrail(guardrail_name="guard", **options)


@pytest.mark.parametrize(
    ("answer", "decision", "finish"),
    [(RIGHT, "release", "stop"), (WRONG, "block", "content_filter")],
)
async def test_a_completion_is_judged(
    guardrail: LiteLlmGuardrail, answer: str, decision: str, finish: str
) -> None:
    completion = whole(content=answer)
    request = await guardrail.async_pre_call_hook(None, None, dict(REQUEST), "acompletion")
    done = await guardrail.async_post_call_success_hook(request, None, completion)
    assert done.choices[0].finish_reason == finish
    assert (done.choices[0].message.content == answer) is (decision == "release")
    assert done.guardrail["decision"] == decision
