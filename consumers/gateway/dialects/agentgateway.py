"""agentgateway's webhook guard: one path for what is asked, one for what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from consumers.gateway.answers import wrong
from consumers.gateway.dialects.dialect import DialectCall, GatewayDialect, part, texts_in

STREAMED: Final = "x-guardrail-streamed"
"""A header that agentgateway may be told to set on calls about requests: whether they are for a stream."""


def _read(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> DialectCall:
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
    read=_read,
    allow=lambda *_: {"action": {"reason": "passed"}},
    deny=lambda message, rule, _: {"action": {"body": message, "status_code": 403, "reason": rule}},
    cannot=(
        "agentgateway asks about streams only with streaming: Enabled, and then in windows of about 1,000 "
        f"bytes, each judged for itself; let it set {STREAMED}, so that they are refused. It drops masks on "
        "streams, so that a redaction is a block. It hands on no documents unless a header has them."
    ),
)
