"""How other gateways ask ours about an answer: where things stand in a request, and what the reply is; and
the desk that judges and replies.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, NamedTuple

from starlette.responses import JSONResponse, Response

from consumers.gateway.admission import ApiCaller, ApiKey, Refused
from consumers.gateway.answers import Flagged, as_json, extension, in_reply, wrong
from consumers.gateway.completions import GuardedCompletion, asked_by
from consumers.gateway.settings import DialectName, ServeSettings
from guardrail.chat import (
    APART,
    BLOCK,
    EXTENSION,
    FAILED,
    Grounding,
    WholeAnswer,
    decide,
    for_model,
    grounding_of,
)
from guardrail.events import AnyOutputEvent, Decision, DeliverySegment, ResponseVerdict
from guardrail.guard import Guard


class ShowableText(NamedTuple):
    """What becomes of a text, and how many characters at its end may go only if nothing more comes."""

    text: str
    held: int


@dataclass(frozen=True, slots=True)
class DialectCall:
    """One request, whatever its dialect. Without texts and completion there is nothing to judge yet."""

    rests_on: Mapping[str, Any] = field(default_factory=dict)
    """What says what the answer rests on, where a chat request says it."""
    texts: tuple[str, ...] | None = None
    """The answer, each text judged for itself."""
    completion: Mapping[str, Any] | None = None
    """The answer as a chat completion, where the product takes one back; ``rests_on`` is its request."""
    id: Any = None
    """Names the call of the model, by which an answer finds what its request said."""
    headers: Mapping[str, Any] = field(default_factory=dict)
    """Those of the product's own caller."""
    model: Any = None
    redacts: bool = False
    """The product surely shows the texts of a reply in place of the model's."""
    grows: bool = False
    """The texts are what has come so far, and the product takes back what may be shown of them."""


@dataclass(frozen=True, slots=True)
class GatewayDialect:
    """How one product asks, and how it is answered."""

    paths: tuple[str, ...]
    read: Callable[[str, Mapping[str, Any], Mapping[str, str]], DialectCall]
    """The request, by its path, body and headers. Raises Refused."""
    allow: Callable[[DialectCall, Sequence[ShowableText], Mapping[str, Any]], dict[str, Any]]
    """The reply that lets it pass, with its texts, or with its completion."""
    deny: Callable[[str, str, Mapping[str, Any]], dict[str, Any]]
    """The reply that blocks: a message, a rule, and the completion that shows the message."""
    cannot: str
    """What it can't enforce, for people."""

    def refused(self, refused: Refused) -> Response:
        """A refusal as a block: all of the products can be told to take an error for a pass, and one does."""
        return JSONResponse(self.deny(str(refused), refused.reason, {}), headers={"Connection": "close"})


def part(found: Any, name: str) -> Mapping[str, Any]:
    """An object within an object; nothing where there is none."""
    inner = found.get(name) if isinstance(found, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def texts_in(found: Any, name: str) -> tuple[str, ...]:
    """A list of texts. Raises Refused: what is no text can't be judged."""
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise wrong(f"{name}: give a list of texts")
    return tuple(found)


# ------------------------------------------------------------------------------------------- litellm
#
# LiteLLM's generic guardrail API. Calls about an answer have no messages: it rests on what the call about the
# request said, by the id of LiteLLM's call. Of a stream it asks about all that has come so far, round by
# round, and doesn't say which is the last; what that is told to hold back goes out. So what is held back must
# be fit to be the end: text that has passed as it stands, or the message of a block.


def _read_litellm(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
    stage, params = body.get("input_type"), part(body, "additional_provider_specific_params")
    if stage not in ("request", "response"):
        raise wrong("input_type: give request or response")
    grows = params.get("streaming_transform_mode") == "incremental_diff"
    id_, user = body.get("litellm_call_id"), part(body, "request_data").get("user_api_key_hash")
    return DialectCall(
        {
            "messages": body.get("structured_messages") or [],
            **{name: params[name] for name in (EXTENSION, "documents") if name in params},
        },
        texts_in(body.get("texts") or [], "texts") if stage == "response" else None,
        # LiteLLM's callers may choose the id, but not whose they are.
        id=f"{id_}/{user}" if id_ else None,
        headers=part(body, "request_headers"),
        model=body.get("model"),
        redacts=grows,
        grows=grows,
    )


def _allow_litellm(call: DialectCall, shown: Sequence[ShowableText], _: Any) -> dict[str, Any]:
    if call.texts is None:
        return {"action": "NONE", **_as_text(call.rests_on["messages"])}
    texts = [each.text for each in shown]
    held = {"stream_holdback_chars": [each.held for each in shown]} if call.grows else {}
    return {"action": "NONE" if texts == [*call.texts] else "GUARDRAIL_INTERVENED", "texts": texts, **held}


def _as_text(messages: Any) -> dict[str, Any]:
    """The documents' marks taken out of what the model gets, unless LiteLLM lost something of the messages on
    the way, which older versions do with parts and fields they don't know.
    """
    changed = for_model({"messages": messages})["messages"]
    if changed == messages:
        return {}
    others = [each for each, before in zip(changed, messages, strict=True) if each == before]
    known = all(isinstance(each, Mapping) and each.keys() == {"role", "content"} for each in others)
    plain = known and all(isinstance(each["content"], str) for each in others)
    return {"structured_messages": changed} if plain else {}


LITELLM: Final = GatewayDialect(
    paths=("/beta/litellm_basic_guardrail_api",),
    read=_read_litellm,
    allow=_allow_litellm,
    deny=lambda message, _rule, _completion: {"action": "BLOCKED", "blocked_reason": message},
    cannot=(
        "Without streaming_transform_mode: incremental_diff, which is for chat completions only, LiteLLM "
        "sends a stream on before it asks, unless it buffers it; a redaction is then a block. It shows what "
        "providers put beside the answer, such as reasoning."
    ),
)

# ------------------------------------------------------------------------------------------- kong
#
# Kong's AI Custom Guardrail plug-in, whose templates make the request and read the reply.


def _read_kong(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
    source = body.get("source")
    if source not in ("INPUT", "OUTPUT"):
        raise wrong("source: give INPUT or OUTPUT")
    said = {EXTENSION: body[EXTENSION]} if EXTENSION in body else {}
    if isinstance(said.get(EXTENSION), str):  # a template's value, which nobody has read as JSON
        with suppress(ValueError):
            said[EXTENSION] = json.loads(said[EXTENSION])
    return DialectCall(said, texts_in([body.get("content")], "content") if source == "OUTPUT" else None)


KONG: Final = GatewayDialect(
    paths=("/webhooks/kong",),
    read=_read_kong,
    allow=lambda *_: {"block": False, "block_message": ""},
    deny=lambda message, _rule, _completion: {"block": True, "block_message": message},
    cannot=(
        "Kong sends a stream on in pieces of response_buffer_size, each judged for itself: make it larger "
        "than any answer. Its templates know nothing of a single request: documents are those of its "
        "configuration. It can't replace text: a redaction is a block."
    ),
)

# ------------------------------------------------------------------------------------------- portkey
#
# Portkey's webhook guardrail, which asks with the whole completion, and takes that back.


def _read_portkey(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
    event, kind, request = body.get("eventType"), body.get("requestType"), part(body, "request")
    if event not in ("beforeRequestHook", "afterRequestHook"):
        raise wrong("eventType: give beforeRequestHook or afterRequestHook")
    if kind == "embed":
        return DialectCall()
    asked = part(request, "json")
    if kind != "chatComplete":
        raise wrong("only chat completions can be guarded")
    if request.get("isStreamingRequest") or asked.get("stream"):
        raise wrong("Portkey hands no stream to its guardrails; ask without stream, or the gateway itself")
    completion = part(part(body, "response"), "json")
    judged = event == "afterRequestHook"
    return DialectCall({"model": "any", **asked} if judged else {}, completion=completion if judged else None)


def _replaced(completion: Mapping[str, Any]) -> dict[str, Any]:
    return {"transformedData": {"response": {"json": completion}}} if completion else {}


PORTKEY: Final = GatewayDialect(
    paths=("/webhooks/portkey",),
    read=_read_portkey,
    allow=lambda _call, _shown, completion: {"verdict": True, **_replaced(completion)},
    deny=lambda message, rule, completion: {
        "verdict": False,
        "data": {"explanation": message, "rule": rule},
        **_replaced(completion),
    },
    cannot=(
        "Portkey hands no stream to its guardrails: streams are refused before the model is asked where the "
        "webhook is a before-request guardrail too; else they pass unguarded. When the webhook can't be "
        "reached within its timeout (3 s unless set), answers pass, unless failOnError is true."
    ),
)

# ------------------------------------------------------------------------------------------- agentgateway
#
# agentgateway's webhook guard: one path for what is asked, one for what is answered.

STREAMED: Final = "x-guardrail-streamed"
"""A header that agentgateway may be told to set on calls about requests: whether they are for a stream."""


def _read_agentgateway(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> DialectCall:
    found = part(body, "body")
    if path.endswith("/request"):
        if headers.get(STREAMED, "false") != "false":
            raise wrong("agentgateway judges streams in pieces; ask without stream, or the gateway itself")
        return DialectCall({"messages": found.get("messages")})
    choices = found.get("choices")
    if not isinstance(choices, list):
        raise wrong("body.choices: give a list of choices")
    texts = [part(each, "message").get("content") for each in choices]
    return DialectCall(texts=texts_in(texts, "body.choices.message.content"))


AGENTGATEWAY: Final = GatewayDialect(
    paths=("/request", "/response"),
    read=_read_agentgateway,
    allow=lambda *_: {"action": {"reason": "passed"}},
    deny=lambda message, rule, _: {"action": {"body": message, "status_code": 403, "reason": rule}},
    cannot=(
        "agentgateway asks about streams only with streaming: Enabled, and then in windows of about 1,000 "
        f"bytes, each judged for itself; let it set {STREAMED}, so that they are refused. It drops masks on "
        "streams, so that a redaction is a block. It hands on no documents unless a header has them."
    ),
)

# ------------------------------------------------------------------------------------------- nemo
#
# The checks of NeMo Guardrails' server.


def _read_nemo(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
    options = part(body, "guardrails")
    answers, rails = _said_by("assistant", body), options.get("rail_types")
    if rails is not None and not set(texts_in(rails, "guardrails.rail_types")) <= {"input", "output"}:
        raise wrong("guardrails.rail_types: give input, output")
    said = {name: body[name] for name in ("messages", EXTENSION, "documents") if name in body}
    if not ("output" in rails if rails is not None else answers):
        return DialectCall(said)
    if not answers:
        raise wrong("messages: there is no answer of the assistant")
    chunks = part(options, "context").get("relevant_chunks")
    if chunks is not None and EXTENSION not in said:
        said[EXTENSION] = {"contexts": [chunks] if isinstance(chunks, str) else chunks}
    texts = texts_in([answers[-1] or ""], "content")
    return DialectCall(said, texts, model=body.get("model"), redacts=True)


def _said_by(role: str, body: Mapping[str, Any]) -> list[Any]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(each, Mapping) for each in messages):
        raise wrong("messages: give a list of messages")
    return [each.get("content") for each in messages if each.get("role") == role]


def _allow_nemo(call: DialectCall, shown: Sequence[ShowableText], _: Any) -> dict[str, Any]:
    if call.texts is None:
        return {"status": "passed", "content": str(["", *_said_by("user", call.rests_on)][-1])}
    return {"status": "passed" if shown[0].text == call.texts[0] else "modified", "content": shown[0].text}


NEMO: Final = GatewayDialect(
    paths=("/v1/checks",),
    read=_read_nemo,
    allow=_allow_nemo,
    deny=lambda message, rule, _: {"status": "blocked", "content": message, "rail": f"guardrail: {rule}"},
    cannot=(
        "It is asked about whole answers. What is shown in the meantime, and whether the reply is heeded, is "
        "the caller's."
    ),
)

DIALECTS: Final[Mapping[DialectName, GatewayDialect]] = {
    "litellm": LITELLM,
    "kong": KONG,
    "portkey": PORTKEY,
    "agentgateway": AGENTGATEWAY,
    "nemo": NEMO,
}
"""All of them, by the names that ``serve.dialects`` takes."""


# ------------------------------------------------------------------------------------------------ the desk
#
# It answers other gateways, whatever their dialect.

CALL: Final = "x-guardrail-call"
"""Names the call of the model, where the dialect itself doesn't."""
GROUNDING: Final = "x-guardrail-grounding"
"""The extension field in base64, where the product passes on no field of a request."""
_SENTENCE_END: Final = re.compile(r"[.!?…:;][\"'”’)\]*]*\s*\Z")
_NEAR: Final = 8
"""So many more characters may move the end of a sentence, as after "No."."""
_Key = tuple[ApiKey | None, str, str]
_Reply = tuple[dict[str, Any], list[dict[str, Any]]]


class GroundingMemory:
    """What requests said, until their answers come: of this process, bounded, and forgotten in time."""

    def __init__(self, lasts_s: float, most: int = 10_000, most_chars: int = 64 * 1024 * 1024) -> None:
        self._lasts_s, self._most, self._most_chars = lasts_s, most, most_chars
        self._chars = 0
        self._kept: dict[_Key, tuple[float, int, Grounding | None]] = {}  # the oldest first

    def keep(self, key: _Key, grounding: Grounding) -> None:
        """Requests of one name that say different things say nothing."""
        now = time.monotonic()
        _, freed, said = self._kept.pop(key, (0.0, 0, grounding))
        same = said == grounding
        chars = sum(len(each.text) for each in grounding.contexts) + len(grounding.question) if same else 0
        self._kept[key] = now + self._lasts_s, chars, said if same else None
        self._chars += chars - freed
        while len(self._kept) > self._most or self._chars > self._most_chars or self._oldest[0] < now:
            self._chars -= self._oldest[1]
            del self._kept[next(iter(self._kept))]

    def get(self, key: _Key) -> Grounding | None:
        until, _, grounding = self._kept.get(key, (0.0, 0, None))
        return grounding if until >= time.monotonic() else None

    @property
    def _oldest(self) -> tuple[float, int, Grounding | None]:
        return next(iter(self._kept.values()), (inf, 0, None))


class DeskText(WholeAnswer):
    """What becomes of a text: whole, or where more of it may come."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.original = text
        self.flagged = Flagged()
        self._shown = ""
        self._near = 0
        self._verdict: ResponseVerdict | None = None

    def seen(self, event: AnyOutputEvent) -> None:
        self.flagged.seen(event)
        match event:
            case DeliverySegment() if event.span[1] > len(self.original) - _NEAR:
                self._near += len(event.text)
            case ResponseVerdict():
                self._verdict = event

    def block(self, message: str, told: dict[str, Any]) -> None:
        self._shown = self.text
        super().block(message, told)

    def becomes(self, *, grows: bool) -> ShowableText | None:
        """None where a block is certain."""
        verdict = self._verdict
        if self.finish != BLOCK:
            held = len(self.text) if verdict and verdict.mode == "hold" else self._near
            return ShowableText(self.text, 0 if self.flagged.observed else held)
        if verdict is None or not grows:
            return None
        end = next((each.span[1] for each in verdict.claims if each.claim_id == verdict.deciding_claim), 0)
        if len(self.original) - end > _NEAR and _SENTENCE_END.search(self.original[:end]):
            return None
        # The claim may be half of one. If nothing more comes, the message stands in its place.
        message = APART + self.text if self._shown else self.text
        return ShowableText(self._shown + message, len(message))


class DialectDesk:
    """Reads a request of a dialect, judges what it has of an answer, and replies as the dialect does."""

    def __init__(self, settings: ServeSettings, guard: Guard) -> None:
        """``guard`` is open."""
        self._settings = settings
        self._guard = guard
        self._memory = GroundingMemory(settings.answer_timeout_ms / 1000)

    async def reply(
        self, dialect: GatewayDialect, path: str, headers: Mapping[str, str], body: Any, caller: ApiCaller
    ) -> _Reply:
        """The reply, and what is told of each text. Raises Refused and InputError."""
        if not isinstance(body, Mapping):
            raise wrong("give a JSON object")
        call = dialect.read(path, body, headers)
        said = _said(call.rests_on, {**call.headers, **headers})
        if call.completion is not None:
            asked = asked_by(said, self._settings, caller.grounding)
            return await self._completion(dialect, call, asked)
        found = grounding_of(said, self._settings.contexts_from, self._settings.tools)
        grounding = caller.grounding(found)
        name = call.id or headers.get(CALL)
        key = (caller.key, dialect.paths[0], name) if isinstance(name, str) and len(name) <= 512 else None
        if call.texts is None:
            if key is not None:
                self._memory.keep(key, grounding)
            return dialect.allow(call, (), {}), []
        if len(call.texts) > self._settings.most_choices:
            raise wrong(f"there are more than {self._settings.most_choices} texts")
        if key is not None and not grounding.contexts:
            grounding = self._memory.get(key) or grounding
        judged = await asyncio.gather(*(self._judged(text, grounding, call.model) for text in call.texts))
        told = [extension({"choice": n, **each.told}, each.flagged) for n, each in enumerate(judged)]
        shown = []
        for each, one in zip(judged, told, strict=True):
            becomes = each.becomes(grows=call.grows)
            if becomes is None:
                return self._blocked(dialect, each.text, told)
            if becomes.text != each.original and not call.redacts:
                one.update(decision=Decision.BLOCK.value, rule=f"{one['rule']}: redactions can't be shown")
                return self._blocked(dialect, FAILED, told)
            shown.append(becomes)
        return {**dialect.allow(call, shown, {}), **in_reply(told)}, told

    async def _judged(self, text: str, grounding: Grounding, model: Any) -> DeskText:
        judged = DeskText(text)
        await decide(
            self._guard,
            grounding,
            [text] if text else [],
            judged,
            missing=self._settings.missing,
            generator_model=str(model or ""),
            seen=judged.seen,
        )
        return judged

    async def _completion(self, dialect: GatewayDialect, call: DialectCall, asked: Any) -> _Reply:
        answer = GuardedCompletion(asked, self._guard, self._settings)
        completion, told = await answer.whole(as_json(call.completion or {}))
        blocks = [each["choice"] for each in told if each["decision"] == Decision.BLOCK]
        if blocks:
            message = completion["choices"][blocks[0]]["message"]
            return self._blocked(dialect, message["content"] or message["refusal"], told, completion)
        return {**dialect.allow(call, (), completion), **in_reply(told)}, told

    def _blocked(self, dialect: GatewayDialect, message: str, told: Any, completion: Any = None) -> _Reply:
        rule = next(str(each["rule"]) for each in told if each["decision"] == Decision.BLOCK)
        return {**dialect.deny(message, rule, completion or {}), **in_reply(told)}, told


def _said(rests_on: Mapping[str, Any], headers: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the extension of the header, where the request has none."""
    if GROUNDING not in headers or EXTENSION in rests_on:
        return rests_on
    try:
        return {**rests_on, EXTENSION: json.loads(base64.b64decode(headers[GROUNDING], validate=True))}
    except (TypeError, ValueError, RecursionError):
        raise wrong(f"{GROUNDING}: give an object as JSON in base64") from None
