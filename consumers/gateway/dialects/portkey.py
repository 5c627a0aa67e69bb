"""Portkey's webhook guardrail, which asks with the whole completion, and takes that back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from consumers.gateway.answers import wrong
from consumers.gateway.dialects.dialect import DialectCall, GatewayDialect, part


def _read(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
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
    read=_read,
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
