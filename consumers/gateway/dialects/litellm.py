"""LiteLLM's generic guardrail API.

Calls about an answer have no messages: it rests on what the call about the request said, by the id of
LiteLLM's call. Of a stream it asks about all that has come so far, round by round, and doesn't say which is
the last; what that is told to hold back goes out. So what is held back must be fit to be the end: text that
has passed as it stands, or the message of a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from consumers.gateway.answers import wrong
from consumers.gateway.dialects.dialect import DialectCall, GatewayDialect, ShowableText, part, texts_in
from guardrail.chat import EXTENSION, for_model


def _read(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
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


def _allow(call: DialectCall, shown: Sequence[ShowableText], _: Any) -> dict[str, Any]:
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
    read=_read,
    allow=_allow,
    deny=lambda message, _rule, _completion: {"action": "BLOCKED", "blocked_reason": message},
    cannot=(
        "Without streaming_transform_mode: incremental_diff, which is for chat completions only, LiteLLM "
        "sends a stream on before it asks, unless it buffers it; a redaction is then a block. It shows what "
        "providers put beside the answer, such as reasoning."
    ),
)
