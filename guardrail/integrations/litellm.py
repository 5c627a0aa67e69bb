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
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any, Final, Literal, Protocol, cast

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

from guardrail.errors import ConfigError, InputError, only_cause
from guardrail.events import AnyOutputEvent, Decision, DeliveryBlocked, DeliveryCompleted, DeliverySegment
from guardrail.guard import Guard
from guardrail.integrations.background import guard_by_settings
from guardrail.integrations.chat_requests import EXTENSION, grounding_of, taken_out
from guardrail.log_events import EventLog
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
FAILED: Final = "This answer was withheld because it could not be checked. Please try again later."
_BLOCK: Final = "content_filter"
_TEXTS: Final = ("content", "refusal")
"""The fields of a message that are the answer; a refusal says what the model likes, too."""
_APART: Final = "\n\n"
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

_log = EventLog(__name__)


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
            answer = _WholeAnswer()
            parts = [texts[0], *(_APART + each for each in texts[1:])]
            await self._decide(data, parts, answer, str(response.model or ""))
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
        # A task of its own: a group of tasks must not live across the yields of a generator.
        work = asyncio.ensure_future(stream.run(response))
        work.add_done_callback(lambda _: stream.out.put_nowait(None))
        try:
            while (chunk := await stream.out.get()) is not None:
                yield chunk
            try:
                await work
            except BaseExceptionGroup as group:
                raise only_cause(group) from None
        finally:
            work.cancel()
            await asyncio.wait([work])
            if not work.cancelled():
                work.exception()  # raised above, unless the client left
            self._tell(request_data, stream.told)

    # --------------------------------------------------------------------------------------- inside

    async def _decide(
        self, request: Mapping[str, Any], deltas: Any, answer: _Answer, generator_model: str
    ) -> None:
        """Guard one choice's text, and hand ``answer`` what becomes of it. Whatever fails withholds it."""
        try:
            grounding = grounding_of(request)
            stream = (await self._opened()).stream(
                grounding.question,
                grounding.contexts,
                deltas,
                missing_contexts=self._missing,
                route=grounding.route,
                tenant=grounding.tenant,
                generator_model=generator_model[:256] or None,
            )
            async with aclosing(
                cast("AsyncGenerator[AnyOutputEvent, None]", stream)
            ) as events:  # which it is
                async for event in events:
                    match event:
                        case DeliverySegment() if event.text:
                            answer.show(event.text)
                        case DeliveryBlocked():
                            told = _report(event, Decision.BLOCK)
                            # A stream can't take back what it has sent: the client is to replace it.
                            more = {"replace_all": True} if event.released_chars else {}
                            answer.block(event.message, {**told, **more})
                        case DeliveryCompleted():
                            answer.end(_report(event, event.decision))
        except UpstreamFailed:
            raise
        except InputError as error:
            _log.warning("litellm.not_checkable", reason=error.reason)
            answer.block(FAILED, {"decision": "block", "rule": error.reason})
        except Exception as error:  # noqa: BLE001 - closed rather than open, whatever it is
            # Its message may quote texts.
            _log.error("litellm.guard_failed", error=type(error).__name__)
            answer.block(FAILED, {"decision": "block", "rule": "guard failed"})

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


class UpstreamFailed(Exception):
    """The model's stream broke."""


class _Answer(Protocol):
    """Where the text of one choice goes. After ``block`` or ``end`` nothing more comes."""

    def show(self, text: str) -> None: ...

    def block(self, message: str, told: dict[str, Any]) -> None: ...

    def end(self, told: dict[str, Any]) -> None: ...


class _WholeAnswer:
    def __init__(self) -> None:
        self.text = ""
        self.finish: str | None = None
        self.told: dict[str, Any] = {}

    def show(self, text: str) -> None:
        self.text += text

    def block(self, message: str, told: dict[str, Any]) -> None:
        # Nothing of it has been read yet: the message stands in its place.
        self.text, self.finish, self.told = message, _BLOCK, told
        told.pop("replace_all", None)

    def end(self, told: dict[str, Any]) -> None:
        self.told = told


class _StreamedChoice:
    """One choice of a stream: what came of it goes in, what is released of it comes out."""

    def __init__(self, stream: _Stream, index: int) -> None:
        self._stream = stream
        self._shown = False
        self.index = index
        self.field = ""  # that its text came in
        self.inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        self.finish: str | None = None
        self.closed = False

    async def deltas(self) -> AsyncIterator[str]:
        """The text as it comes. Raises UpstreamFailed where it breaks off."""
        while (text := await self.inbox.get()) is not None:
            yield text
        if self.finish is None:
            raise UpstreamFailed

    def upstream_ended(self, *, broken: bool) -> None:
        """No more comes. LiteLLM leaves out why choices but the first end: an end in order is a stop."""
        if not broken and self.finish is None:
            self.finish = "stop"
        self.inbox.put_nowait(None)
        if not broken and self.task is None and not self.closed:
            self._close(self.finish or "stop", None)

    def show(self, text: str) -> None:
        self._shown = True
        self._stream.put(self.index, Delta(content=text))

    def block(self, message: str, told: dict[str, Any]) -> None:
        if not self.closed:
            # What was shown can't be taken back here: the message stands apart from it.
            self._stream.put(self.index, Delta(content=_APART + message if self._shown else message))
            self._close(_BLOCK, told)

    def end(self, told: dict[str, Any]) -> None:
        if not self.closed and self.finish is not None:
            self._close(self.finish, told)

    def _close(self, finish: str, told: dict[str, Any] | None) -> None:
        self.closed = True
        self._stream.close(self.index, finish, told)


class _Stream:
    """One completion under way."""

    def __init__(self, guardrail: LiteLlmGuardrail, request: dict[str, Any]) -> None:
        self._guardrail = guardrail
        self._request = request
        self._choices: dict[int, _StreamedChoice] = {}
        self._latest: ModelResponseStream | None = None
        self._last: ModelResponseStream | None = None
        self.out: asyncio.Queue[ModelResponseStream | None] = asyncio.Queue()
        self.told: list[dict[str, Any]] = []

    async def run(self, response: Any) -> None:
        """Take all that comes, and put into ``out`` what may go; raises what the model's stream raised."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            try:
                async for chunk in response:
                    self._take(chunk, group)
            except Exception as error:  # noqa: BLE001 - raised again, once what was verified is out
                failure = error
            finally:
                if isinstance(response, AsyncGenerator):
                    await response.aclose()
            for choice in self._choices.values():
                choice.upstream_ended(broken=failure is not None)
        if failure is not None:
            raise failure
        if self._last is not None:
            self.out.put_nowait(self._last)

    def _take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        if not isinstance(chunk, ModelResponseStream):
            raise _refusal(_unsupported(type(chunk).__name__))
        self._latest = chunk.model_copy()
        _strip(self._latest, _PASSED_OF_RESPONSE)
        if getattr(chunk, "usage", None) is not None:
            # Of the whole completion: after what is still to come of it.
            self._last = self._latest.model_copy(update={"choices": []})
        elif not chunk.choices:
            self.out.put_nowait(self._latest.model_copy())
        for part in chunk.choices:
            choice = self._choices.setdefault(part.index, _StreamedChoice(self, part.index))
            if choice.closed:
                continue
            if passed := _passed(part.delta):
                self.put(part.index, Delta(**passed))
            for name, text in _texts_of(part.delta):
                if choice.task is None:
                    choice.task = group.create_task(self._guarded(choice), name="guarded-choice")
                choice.inbox.put_nowait(text if choice.field in {"", name} else _APART + text)
                choice.field = name
            if part.finish_reason:
                choice.finish = part.finish_reason
                choice.upstream_ended(broken=False)

    async def _guarded(self, choice: _StreamedChoice) -> None:
        model = str(getattr(self._latest, "model", None) or "")
        try:
            await self._guardrail._decide(self._request, choice.deltas(), choice, model)
        except UpstreamFailed:
            return  # what was verified is out; run says how it ended

    def put(self, index: int, delta: Delta, finish: str | None = None, told: Any = None) -> None:
        """A chunk of the running completion: its id, its model, its time."""
        assert self._latest is not None  # noqa: S101 - a chunk came first
        part = StreamingChoices(index=index, delta=delta, finish_reason=finish)
        chunk = self._latest.model_copy(update={"choices": [part]})
        if getattr(chunk, "usage", None) is not None:
            del chunk.usage
        if told is not None:
            setattr(chunk, EXTENSION, told)
            # The proxy writes a chunk without these by a short way, which knows no other field.
            chunk.provider_specific_fields = {EXTENSION: told}
        self.out.put_nowait(chunk)

    def close(self, index: int, finish: str, told: dict[str, Any] | None) -> None:
        """The last chunk of a choice."""
        told = None if told is None else {"choice": index, **told}
        self.put(index, Delta(), finish, told)
        if told is not None:
            self.told.append(told)


def _texts_of(message: Any) -> list[tuple[str, str]]:
    """The answer in a message, or in a part of one, by its fields."""
    return [(name, text) for name in _TEXTS if (text := getattr(message, name, None))]


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


def _report(event: DeliveryBlocked | DeliveryCompleted, decision: Decision) -> dict[str, Any]:
    return {
        "response_id": event.response_id,
        "decision": decision.value,
        "rule": event.rule,
        "score": event.score,
    }


def _unsupported(what: str) -> str:
    return f"{what}: only chat completions can be guarded; ask /v1/chat/completions, or exempt this route"


def _refusal(message: str) -> Exception:
    from fastapi import HTTPException

    refusal: Exception = HTTPException(status_code=400, detail={"error": message})
    return refusal
