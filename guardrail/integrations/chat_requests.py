"""What a chat-completions request says of the documents its answer rests on.

Contexts come from an extension field, which the calling application writes, or from ``grounding_source``
blocks of system and developer messages, which it writes too. Such a block in a message of a user or a tool is
text: whoever can write it could ground any claim in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field, ValidationError, field_validator

from guardrail.errors import InputError
from guardrail.events import Context, decode_error
from guardrail.frozen import Frozen

EXTENSION: Final = "guardrail"
"""The field, at the top of the request or in its metadata."""
_TRUSTED: Final = frozenset({"system", "developer"})
_BLOCKS: Final = frozenset({"grounding_source", "query"})


class GroundingExtension(Frozen):
    """The extension field. A context may be a mere text."""

    contexts: tuple[Context, ...] = ()
    question: str | None = None
    route: str | None = Field(default=None, max_length=256)
    tenant: str | None = Field(default=None, max_length=256)

    @field_validator("contexts", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return [
            {"id": f"c{number}", "text": each} if isinstance(each, str) else each
            for number, each in enumerate(value, start=1)
        ]


@dataclass(frozen=True, slots=True)
class Grounding:
    """What an answer is checked against."""

    contexts: tuple[Context, ...]
    question: str
    route: str | None = None
    tenant: str | None = None


def grounding_of(request: Mapping[str, Any]) -> Grounding:
    """What a request says. Raises InputError, which names the field of a wrong extension."""
    extension = _extension(request)
    messages = request.get("messages")
    messages = messages if isinstance(messages, Sequence) and not isinstance(messages, str) else ()
    contexts = extension.contexts or _numbered(_blocks(messages, "grounding_source", _TRUSTED))
    question = extension.question
    if question is None:
        asked = [block.get("text") for block in _blocks(messages, "query", None)]
        question = "\n".join(text for text in asked if isinstance(text, str)) or _last_user_text(messages)
    return Grounding(contexts, question, extension.route, extension.tenant)


def taken_out(request: dict[str, Any]) -> None:
    """Make the request fit for a model: the extension goes to the metadata, blocks become plain text.

    ``grounding_of`` finds the same afterwards. Raises InputError.
    """
    grounding = grounding_of(request)
    request.pop(EXTENSION, None)
    metadata = request.get("metadata")
    metadata = request["metadata"] = metadata if isinstance(metadata, dict) else {}
    metadata[EXTENSION] = {
        "contexts": [context.model_dump(mode="json") for context in grounding.contexts],
        "question": grounding.question,
        "route": grounding.route,
        "tenant": grounding.tenant,
    }
    messages = request.get("messages")
    if isinstance(messages, list):
        request["messages"] = [_as_text(message) for message in messages]


def _extension(request: Mapping[str, Any]) -> GroundingExtension:
    places = [request, request.get("metadata"), request.get("litellm_metadata")]
    found = next(
        (place[EXTENSION] for place in places if isinstance(place, Mapping) and EXTENSION in place), None
    )
    if found is None:
        return GroundingExtension()
    if not isinstance(found, Mapping):
        raise InputError(
            "invalid_extension", f"{EXTENSION}: give an object with contexts, question, route, tenant"
        )
    try:
        return GroundingExtension.model_validate(found)
    except ValidationError as error:
        wrong = decode_error(error)
        raise InputError("invalid_extension", f"{EXTENSION}.{wrong}") from None


def _blocks(messages: Sequence[Any], kind: str, roles: frozenset[str] | None) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        role = message.get("role")
        if roles is not None and not (isinstance(role, str) and role in roles):
            continue
        content = message.get("content")
        if isinstance(content, list):
            yield from (each for each in content if isinstance(each, Mapping) and each.get("type") == kind)


def _numbered(blocks: Iterator[Mapping[str, Any]]) -> tuple[Context, ...]:
    """With the ids that the blocks give, where they are texts and none has it yet."""
    found: dict[str, Context] = {}
    for number, block in enumerate(blocks, start=1):
        text, id_, source = block.get("text"), block.get("id"), block.get("source")
        if not isinstance(text, str) or not text.strip():
            continue
        if not isinstance(id_, str) or not 0 < len(id_) <= 512 or id_ in found:
            id_ = f"grounding-{number}"
        found[id_] = Context(id=id_, text=text, source=source if isinstance(source, str) else None)
    return tuple(found.values())


def _last_user_text(messages: Sequence[Any]) -> str:
    for message in reversed(messages):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            if isinstance(content, list):
                texts = (part.get("text") for part in content if isinstance(part, Mapping))
                return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _as_text(message: Any) -> Any:
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    content = [
        {"type": "text", "text": part.get("text", "")}
        if isinstance(part, Mapping) and part.get("type") in _BLOCKS
        else part
        for part in message["content"]
    ]
    return {**message, "content": content}
