"""Kong's AI Custom Guardrail plug-in, whose templates make the request and read the reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from consumers.gateway.answers import wrong
from consumers.gateway.dialects.dialect import DialectCall, GatewayDialect, texts_in
from guardrail.chat import EXTENSION


def _read(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
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
    read=_read,
    allow=lambda *_: {"block": False, "block_message": ""},
    deny=lambda message, _rule, _completion: {"block": True, "block_message": message},
    cannot=(
        "Kong sends a stream on in pieces of response_buffer_size, each judged for itself: make it larger "
        "than any answer. Its templates know nothing of a single request: documents are those of its "
        "configuration. It can't replace text: a redaction is a block."
    ),
)
