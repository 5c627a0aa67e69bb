"""The guard as a guardrail of LiteLLM's proxy: checks chat completions in the proxy's own process.

In the proxy's configuration::

    guardrails:
      - guardrail_name: streaming-guardrail
        litellm_params:
          guardrail: guardrail.integrations.litellm.LiteLlmGuardrail
          mode: [pre_call, post_call]
          default_on: true
          settings: guardrail.yaml      # judge and policies; the defaults when left out
          missing_contexts: refuse      # or flag

Text leaves as the policy releases it, as deltas of the running completion. A block is its message as content
and ``finish_reason: content_filter``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Final, Literal

from litellm.integrations.custom_guardrail import CustomGuardrail
from litellm.types.guardrails import GuardrailEventHooks
from litellm.types.llms.openai import OpenAIModerationResponse
from litellm.types.rerank import RerankResponse
from litellm.types.utils import (
    Delta,
    EmbeddingResponse,
    ImageResponse,
    Message,
    ModelResponse,
    ModelResponseStream,
    StreamingChoices,
)

from guardrail.chat import (
    EXTENSION,
    TEXTS,
    StreamedChoice,
    StreamedCompletion,
    WholeAnswer,
    decide,
    grounding_of,
    parts_of,
    taken_out,
)
from guardrail.errors import ConfigError, InputError
from guardrail.events import Decision
from guardrail.guard import Guard
from guardrail.integrations.background import guard_by_settings
from guardrail.policy import MissingContexts

GUARDED: Final = frozenset({"completion", "acompletion"})
"""The calls that the guard can hold, by LiteLLM's names."""
WITHOUT_PROSE: Final = frozenset(
    prefix + name
    for prefix in ("", "a")
    for name in ("embedding", "rerank", "moderation", "image_generation", "image_edit", "speech")
)
"""The calls that answer in no words of a model. Every other call is refused, unknown ones too: LiteLLM adds
protocols that answer in prose with most of its releases.
"""
_WITHOUT_PROSE: Final = (EmbeddingResponse, RerankResponse, OpenAIModerationResponse, ImageResponse)
"""What those come to."""
_PASSED: Final = ("role", "tool_calls", "function_call", "annotations", "images")
"""What else of a message passes. All other fields are dropped: reasoning, audio and what providers add may be
prose, which nobody has checked.
"""
_PASSED_OF_CHOICE: Final = frozenset({"index", "finish_reason", "message", "logprobs"})
_PASSED_OF_RESPONSE: Final = frozenset(
    {"id", "created", "model", "object", "system_fingerprint", "service_tier", "usage", "choices"}
)
"""What passes of a choice, and of a response or a chunk of one. Citations, grounding, traces and whatever
else providers add there may quote the answer.
"""


class LiteLlmGuardrail(CustomGuardrail):
    """Guards every choice of a chat completion, streamed or not, against the request's contexts.

    Calls that are no chat completions are refused, unless they are known to answer without prose.
    ``settings`` is the path of a file as ``guardrail run`` takes it; ``missing_contexts`` is what happens to
    the claims of an answer whose request gives none: ``refuse`` it, or let it through marked as flagged.
    Raises ConfigError.
    """

    def __init__(
        self,
        *,
        settings: str | None = None,
        missing_contexts: Literal["refuse", "flag"] = "refuse",
        missing_contexts_message: str = MissingContexts.message,
        guard: Guard | None = None,
        **options: Any,
    ) -> None:
        """``guard`` is an open one, which stays open; ``options`` are LiteLLM's."""
        self._missing = MissingContexts(missing_contexts, missing_contexts_message)
        supported = [GuardrailEventHooks.pre_call, GuardrailEventHooks.post_call]
        modes = options.get("event_hook")
        named = modes if isinstance(modes, list) else [modes]
        if modes is not None and not all(hook.value in named for hook in supported):
            raise ConfigError(
                "mode: pre_call refuses calls that can't be guarded, and post_call guards the others; write "
                "[pre_call, post_call]"
            )
        if options.get("run_in_parallel"):
            raise ConfigError(
                "run_in_parallel: LiteLLM would drop what is decided about a text; leave it out"
            )
        super().__init__(**{**options, "supported_event_hooks": supported})
        self._settings = None if settings is None else Path(settings)
        self._guard = guard
        self._closing = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def aclose(self) -> None:
        """Close what was opened for the first answer."""
        self._guard = None
        await self._closing.aclose()

    async def _opened(self) -> Guard:
        async with self._opening:
            if self._guard is None:
                self._guard = await guard_by_settings(self._settings, self._closing)
            return self._guard

    # ------------------------------------------------------------------------------- LiteLLM's hooks

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002 - LiteLLM names its arguments
        cache: Any,  # noqa: ARG002
        data: dict[str, Any],
        call_type: str,
    ) -> dict[str, Any]:
        """Refuse a call that can't be guarded, before a model is asked. Take the documents' marks out of what
        the model gets; a wrong extension is the caller's error.
        """
        from litellm.proxy.common_utils.callback_utils import add_guardrail_to_applied_guardrails_header

        name = str(getattr(call_type, "value", call_type))
        if name in WITHOUT_PROSE:
            return data
        if name not in GUARDED:
            raise _refusal(_unsupported(name))
        try:
            taken_out(data)
        except InputError as error:
            raise _refusal(str(error)) from None
        # Not when it has been guarded: the headers of a stream go before its text.
        add_guardrail_to_applied_guardrails_header(data, self.guardrail_name)
        return data

    async def async_post_call_success_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,  # noqa: ARG002
        response: Any,
    ) -> Any:
        """Guard a completion that came whole. Other responses are refused, unless they can hold no prose."""
        if isinstance(response, _WITHOUT_PROSE):
            return response
        if not isinstance(response, ModelResponse):
            raise _refusal(_unsupported(type(response).__name__))
        told: list[dict[str, Any]] = []
        _strip(response, _PASSED_OF_RESPONSE)
        for choice in response.choices:
            texts = [text for _, text in _texts_of(choice.message)]
            choice.message = Message(**_passed(choice.message), content=None)
            _strip(choice, _PASSED_OF_CHOICE)
            if not texts:
                continue
            answer = WholeAnswer()
            await self._decide(data, parts_of(texts), answer, str(response.model or ""))
            choice.message.content = answer.text
            if [answer.text] != texts and getattr(choice, "logprobs", None) is not None:
                choice.logprobs = None  # they spell out what was kept back
            choice.finish_reason = answer.finish or choice.finish_reason
            told.append({"choice": choice.index, **answer.told})
        self._tell(data, told)
        if told:
            setattr(response, EXTENSION, told[0] if len(told) == 1 else told)
        return response

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,  # noqa: ARG002
        response: Any,
        request_data: dict[str, Any],
    ) -> AsyncGenerator[ModelResponseStream, None]:
        """Guard a completion while it is written: what is released is yielded, each choice in its order."""
        stream = _Stream(self, request_data)
        try:
            async with aclosing(stream.guarded(response)) as chunks:
                async for chunk in chunks:
                    if chunk is not None:
                        yield chunk
        finally:
            self._tell(request_data, stream.told)

    # --------------------------------------------------------------------------------------- inside

    async def _decide(
        self, request: dict[str, Any], deltas: Any, answer: WholeAnswer | StreamedChoice, generator_model: str
    ) -> None:
        await decide(
            self._opened(),
            grounding_of(request),
            deltas,
            answer,
            missing=self._missing,
            generator_model=generator_model,
        )

    def _tell(self, request: dict[str, Any], told: list[dict[str, Any]]) -> None:
        """Leave in LiteLLM's logs what was decided; no texts."""
        if not told:
            return
        changed = any(each["decision"] in {Decision.BLOCK, Decision.REDACT} for each in told)
        self.add_standard_logging_guardrail_information_to_request_data(
            guardrail_json_response=told,
            request_data=request,
            guardrail_status="guardrail_intervened" if changed else "success",
        )


class _Stream(StreamedCompletion[ModelResponseStream]):
    """One completion under way."""

    def __init__(self, guardrail: LiteLlmGuardrail, request: dict[str, Any]) -> None:
        super().__init__()
        self._guardrail = guardrail
        self._request = request
        self._latest: ModelResponseStream | None = None
        self._last: ModelResponseStream | None = None

    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        if not isinstance(chunk, ModelResponseStream):
            raise _refusal(_unsupported(type(chunk).__name__))
        self._latest = chunk.model_copy()
        _strip(self._latest, _PASSED_OF_RESPONSE)
        if getattr(chunk, "usage", None) is not None:
            # Of the whole completion: after what is still to come of it.
            self._last = self._latest.model_copy(update={"choices": []})
        elif not chunk.choices:
            self.send(self._latest.model_copy())
        for part in chunk.choices:
            choice = self.choice(part.index)
            if choice.closed:
                continue
            if passed := _passed(part.delta):
                self.put(part.index, passed)
            # LiteLLM leaves out why choices but the first end.
            choice.take(_texts_of(part.delta), part.finish_reason, group)

    async def decide(self, choice: StreamedChoice) -> None:
        model = str(getattr(self._latest, "model", None) or "")
        await self._guardrail._decide(self._request, choice.deltas(), choice, model)

    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> ModelResponseStream:
        assert self._latest is not None  # noqa: S101 - a chunk came first
        part = StreamingChoices(index=index, delta=Delta(**delta), finish_reason=finish)
        chunk = self._latest.model_copy(update={"choices": [part]})
        if getattr(chunk, "usage", None) is not None:
            del chunk.usage
        if told is not None:
            setattr(chunk, EXTENSION, told)
            # The proxy writes a chunk without these by a short way, which knows no other field.
            chunk.provider_specific_fields = {EXTENSION: told}
        return chunk

    def last(self) -> ModelResponseStream | None:
        return self._last


def _texts_of(message: Any) -> list[tuple[str, str]]:
    """The answer in a message, or in a part of one, by its fields."""
    return [(name, text) for name in TEXTS if (text := getattr(message, name, None))]


def _passed(message: Any) -> dict[str, Any]:
    """What passes of a message, or of a part of one, beside its answer: role, calls of tools."""
    return {name: found for name in _PASSED if (found := getattr(message, name, None)) is not None}


def _strip(found: Any, passed: frozenset[str]) -> None:
    """Drop all fields but those that pass. What LiteLLM keeps for itself is none: its proxy needs it."""
    for name in type(found).model_fields.keys() - passed:
        if getattr(found, name, None) is not None:
            setattr(found, name, None)
    extra = found.model_extra or {}
    for name in extra.keys() - passed:
        del extra[name]


def _unsupported(what: str) -> str:
    return f"{what}: only chat completions can be guarded; ask /v1/chat/completions, or exempt this route"


def _refusal(message: str) -> Exception:
    from fastapi import HTTPException

    refusal: Exception = HTTPException(status_code=400, detail={"error": message})
    return refusal
