"""The checks of NeMo Guardrails' server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from consumers.gateway.answers import wrong
from consumers.gateway.dialects.dialect import DialectCall, GatewayDialect, ShowableText, part, texts_in
from guardrail.chat import EXTENSION


def _read(_path: str, body: Mapping[str, Any], _headers: Any) -> DialectCall:
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


def _allow(call: DialectCall, shown: Sequence[ShowableText], _: Any) -> dict[str, Any]:
    if call.texts is None:
        return {"status": "passed", "content": str(["", *_said_by("user", call.rests_on)][-1])}
    return {"status": "passed" if shown[0].text == call.texts[0] else "modified", "content": shown[0].text}


NEMO: Final = GatewayDialect(
    paths=("/v1/checks",),
    read=_read,
    allow=_allow,
    deny=lambda message, rule, _: {"status": "blocked", "content": message, "rail": f"guardrail: {rule}"},
    cannot=(
        "It is asked about whole answers. What is shown in the meantime, and whether the reply is heeded, is "
        "the caller's."
    ),
)
