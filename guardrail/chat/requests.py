"""What a chat-completions request says of the documents its answer rests on.

Contexts come from an extension field, which the calling application writes, or from ``grounding_source``
blocks of system and developer messages, which it writes too. Such a block in a message of a user or a tool is
text: whoever can write it could ground any claim in it. Where somebody says so, the field ``documents`` and
the results of named tools are contexts too. What users and models have said never is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import Field, ValidationError, field_validator

from guardrail.errors import InputError
from guardrail.events import Context, decode_error
from guardrail.frozen import Frozen

EXTENSION: Final = "guardrail"
"""The field, at the top of the request or in its metadata."""
ContextSource = Literal["extension", "blocks", "documents", "file_search"]
"""Where contexts may come from, beside the results of tools. A chat completion has no file search."""
_FORM: Final = (
    "give an object of contexts (a list; each a text, or an object with id and text), question, route, tenant"
)
_TRUSTED: Final = ("system", "developer")
_BLOCKS: Final = ("grounding_source", "query")


def with_ids(contexts: Any) -> Any:
    """Contexts, of which each may be a mere text, as their models read them."""
    if not isinstance(contexts, list | tuple):
        return contexts
    return [
        {"id": f"c{number}", "text": each} if isinstance(each, str) else each
        for number, each in enumerate(contexts, start=1)
    ]


class GroundingExtension(Frozen):
    """The extension field. A context may be a mere text."""

    contexts: tuple[Context, ...] = Field(default=(), description="The documents; each may be a mere text.")
    question: str | None = Field(default=None, description="What the user asked.")
    route: str | None = Field(default=None, max_length=256)
    tenant: str | None = Field(default=None, max_length=256)

    _named = field_validator("contexts", mode="before")(with_ids)


@dataclass(frozen=True, slots=True)
class Grounding:
    """What an answer is checked against."""

    contexts: tuple[Context, ...]
    question: str
    route: str | None = None
    tenant: str | None = None


def objects(found: Any, name: str) -> list[Mapping[str, Any]]:
    """The objects in a list that an object has under this name; none where it is no such list."""
    inner = found.get(name) if isinstance(found, Mapping) else None
    return [each for each in inner if isinstance(each, Mapping)] if isinstance(inner, Sequence) else []


def grounding_of(
    request: Mapping[str, Any],
    sources: Collection[ContextSource] = ("extension", "blocks"),
    tools: Collection[str] = (),
) -> Grounding:
    """What a request says; contexts come from ``sources``, and from results of ``tools``.

    Blocks don't count beside contexts of the extension. Raises InputError, which names the field of a wrong
    extension.
    """
    extension = _extension(request)
    messages = objects(request, "messages")
    found = extension.contexts if "extension" in sources else ()
    if not found and "blocks" in sources:
        found = _named("grounding", _blocks(messages, "grounding_source"))
    documents = request.get("documents") if "documents" in sources else None
    more = [
        *_named("document", documents if isinstance(documents, list) else ()),
        *_named("tool", _results(messages, tools)),
    ]
    found = _and_more(found, more)
    question = extension.question
    if question is None:
        asked = [block.get("text") for block in _blocks(messages, "query")]
        said = (_text_of(message) for message in reversed(messages) if message.get("role") == "user")
        question = "\n".join(text for text in asked if isinstance(text, str)) or next(said, "")
    return Grounding(found, question, extension.route, extension.tenant)


def with_results(grounding: Grounding, results: Iterable[Mapping[str, Any]]) -> Grounding:
    """The grounding with all that file searches have found; several results may be of one file."""
    found = ({"text": each.get("text"), "source": each.get("filename")} for each in results)
    return replace(grounding, contexts=_and_more(grounding.contexts, _named("file-search", found)))


def for_model(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request as a model gets it: without the extension, blocks as plain text."""
    asked = {name: value for name, value in request.items() if name != EXTENSION}
    metadata = request.get("metadata")
    if isinstance(metadata, Mapping) and EXTENSION in metadata:
        asked["metadata"] = {name: value for name, value in metadata.items() if name != EXTENSION}
    for field, kind in (("messages", "text"), ("input", "input_text")):
        if isinstance(messages := request.get(field), list):
            asked[field] = [_as_text(message, kind) for message in messages]
    return asked


def taken_out(request: dict[str, Any]) -> None:
    """Make the request fit for a model, with the extension in the metadata, which a gateway keeps to itself.

    ``grounding_of`` finds the same afterwards. Raises InputError.
    """
    grounding = grounding_of(request)
    asked = for_model(request)
    request.clear()
    request.update(asked)
    metadata = request.get("metadata")
    metadata = request["metadata"] = metadata if isinstance(metadata, dict) else {}
    metadata[EXTENSION] = {
        "contexts": [context.model_dump(mode="json") for context in grounding.contexts],
        "question": grounding.question,
        "route": grounding.route,
        "tenant": grounding.tenant,
    }


def _extension(request: Mapping[str, Any]) -> GroundingExtension:
    places = [request, request.get("metadata"), request.get("litellm_metadata")]
    found = next(
        (place[EXTENSION] for place in places if isinstance(place, Mapping) and EXTENSION in place), None
    )
    if found is None:
        return GroundingExtension()
    if not isinstance(found, Mapping):
        raise InputError("invalid_extension", f"{EXTENSION}: {_FORM}")
    try:
        return GroundingExtension.model_validate(found)
    except ValidationError as error:
        wrong = decode_error(error)
        raise InputError("invalid_extension", f"{EXTENSION}.{wrong}; {_FORM}") from None


def _blocks(messages: Iterable[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    """Those of the messages that the calling application writes."""
    for message in messages:
        if message.get("role") in _TRUSTED:
            yield from (each for each in objects(message, "content") if each.get("type") == kind)


def _results(messages: Iterable[Mapping[str, Any]], tools: Collection[str]) -> Iterator[Mapping[str, Any]]:
    """What these tools gave. A result names its call, and the call before it the tool."""
    called: dict[str, Any] = {}
    for message in messages if tools else ():
        if message.get("role") == "assistant":
            named: dict[str, Any] = {}  # one id for two tools at once tells of neither
            for call in objects(message, "tool_calls"):
                id_, function = call.get("id"), call.get("function")
                if isinstance(function, Mapping) and isinstance(id_, str):
                    name = function.get("name")
                    named[id_] = name if named.get(id_, name) == name else None
            called |= named
        id_ = message.get("tool_call_id")
        name = called.get(id_) if message.get("role") == "tool" and isinstance(id_, str) else None
        if isinstance(name, str) and name in tools:
            yield {"text": _text_of(message), "source": name}


def _named(kind: str, found: Iterable[Any]) -> tuple[Context, ...]:
    """With the ids that the documents give, where they are texts and none has it yet."""
    contexts: dict[str, Context] = {}
    for number, each in enumerate(found, start=1):
        document = {"text": each} if isinstance(each, str) else each
        if not isinstance(document, Mapping):
            continue
        text, id_ = document.get("text"), document.get("id")
        source = document.get("source") or document.get("title")
        if not isinstance(text, str) or not text.strip():
            continue
        if not isinstance(id_, str) or not 0 < len(id_) <= 512 or id_ in contexts:
            id_ = f"{kind}-{number}"
        contexts[id_] = Context(id=id_, text=text, source=source if isinstance(source, str) else None)
    return tuple(contexts.values())


def _and_more(contexts: tuple[Context, ...], more: Iterable[Context]) -> tuple[Context, ...]:
    taken = {context.id for context in contexts}
    return (*contexts, *(context for context in more if context.id not in taken))


def _text_of(message: Mapping[str, Any]) -> str:
    texts = [part.get("text") for part in objects(message, "content")]
    content = message.get("content")
    return content if isinstance(content, str) else "\n".join(each for each in texts if isinstance(each, str))


def _as_text(message: Any, kind: str) -> Any:
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    content = [
        {"type": kind, "text": part.get("text", "")}
        if isinstance(part, Mapping) and part.get("type") in _BLOCKS
        else part
        for part in message["content"]
    ]
    return {**message, "content": content}
