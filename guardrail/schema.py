"""The published contracts: a JSON Schema of every event and one AsyncAPI document, generated from the models.

The schemas of input events and of labels say what a producer may send: fields with a default may be omitted,
``type`` may not. The schemas of output events say what this program writes: every field, always, but for
those that it leaves out where there is nothing to say. Neither forbids unknown fields, because readers on
both sides tolerate them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, models_json_schema

from guardrail.events import (
    GROUP_HEADER,
    INPUT_EVENTS,
    OUTPUT_EVENTS,
    SCHEMA_VERSION,
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Event,
    FlaggedCase,
    Label,
    ResponseVerdict,
)

JSON_SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
ASYNCAPI_VERSION: Final = "3.0.0"
KAFKA_BINDING_VERSION: Final = "0.5.0"
WS_BINDING_VERSION: Final = "0.1.0"
SCHEMAS_FOLDER: Final = "schemas"
ASYNCAPI_FILE: Final = "asyncapi.yaml"

# Version-format of https://www.w3.org/TR/trace-context/#traceparent-header, any version but the invalid ff.
_TRACEPARENT: Final = "^(?!ff)[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"

_REMEDY: Final = "run 'guardrail config schema events' and commit the result"

_DEAD_LETTER: Final = "dead.letter"
_DEAD_LETTER_HEADERS: Final = {
    "guardrail-dead-letter-reason": "A stable code for why it was refused, such as invalid_json.",
    "guardrail-dead-letter-error": "Class of the error.",
    "guardrail-dead-letter-message": "What was wrong, without the record's text.",
    "guardrail-dead-letter-stage": "What refused it: decode, session, or guard (it failed itself).",
    "guardrail-dead-letter-topic": "Topic it was read from.",
    "guardrail-dead-letter-partition": "Partition it was read from, in decimal.",
    "guardrail-dead-letter-offset": "Its offset there, in decimal.",
    "guardrail-dead-letter-timestamp": "Its timestamp, in milliseconds since 1970, in decimal.",
}


class _Generator(GenerateJsonSchema):
    """Pydantic's schemas in a form that is valid in draft 2020-12 and in AsyncAPI's own dialect (draft 7)."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        # "Response Id" above response_id says nothing and makes code generators name a type for each field.
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Outputs have every field, so that readers need no defaults of their own; but for those that the
        guard leaves out.
        """
        left_out = field.get("serialization_exclude_if") is not None
        return (self.mode == "serialization" and not left_out) or super().field_is_required(field, total)

    def tuple_schema(self, schema: Any) -> JsonSchemaValue:
        """A tuple of equal members as an ``items`` array: ``prefixItems`` does not exist in draft 7."""
        made = super().tuple_schema(schema)
        members = made.get("prefixItems")
        if members and made.get("minItems") == made.get("maxItems") and all(m == members[0] for m in members):
            del made["prefixItems"]
            made["items"] = members[0]
        return made


def event_type(model: type[Event]) -> str:
    """The value of ``type`` of this event, such as ``verdict.claim``."""
    return str(model.model_fields["type"].default)


def json_schemas() -> dict[str, dict[str, Any]]:
    """A JSON Schema (draft 2020-12) per event type, inputs first, with the field names used on the wire."""
    schemas = {}
    for model, mode in _modes():
        body = model.model_json_schema(by_alias=True, schema_generator=_Generator, mode=mode)
        name = event_type(model)
        schemas[name] = {
            "$schema": JSON_SCHEMA_DIALECT,
            "$id": f"urn:streaming-guardrail:event:{name}:{SCHEMA_VERSION}",
            **_with_type_required(body),
        }
    return schemas


def asyncapi_document(topics: Mapping[str, str]) -> dict[str, Any]:
    """An AsyncAPI 3 document of the guard's topics, written from the guard's point of view.

    Channels are topics, with the names that ``topics`` gives to responses, deliveries, verdicts, flagged,
    dead_letters and labels as addresses; the internal session topic is not part of the contract and left out.
    """
    deliveries: tuple[type[Event], ...] = (DeliverySegment, DeliveryCompleted, DeliveryBlocked)
    verdicts: tuple[type[Event], ...] = (ClaimVerdict, ResponseVerdict)
    channels: dict[str, tuple[str, str, Iterable[str]]] = {
        "responses": (topics["responses"], "Answers as they are written.", map(event_type, INPUT_EVENTS)),
        "deliveries": (topics["deliveries"], "What the chat service may show.", map(event_type, deliveries)),
        "verdicts": (
            topics["verdicts"],
            "A verdict per claim as it is known, and one per response at the end.",
            map(event_type, verdicts),
        ),
        "flagged": (
            topics["flagged"],
            "The whole case of every flagged, redacted or blocked response.",
            [event_type(FlaggedCase)],
        ),
        "deadLetters": (
            topics["dead_letters"],
            "Input that could not be used, byte for byte.",
            [_DEAD_LETTER],
        ),
        "labels": (
            topics["labels"],
            "Labels: people's verdicts on claims and responses; read by tune and replay, not by the guard.",
            [event_type(Label)],
        ),
    }
    made = {key: _channel(*channel) for key, channel in channels.items()}
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": "Streaming guardrail",
            "version": f"{SCHEMA_VERSION}.0.0",
            "description": "Reads RAG answers as they stream, verifies their claims against the retrieved "
            "contexts, and releases, flags, redacts or blocks the text. Every record's key is the "
            "response_id, so that the events of one response are in one partition, in order.",
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": made,
        "operations": {
            _operation_name(key): _operation(key, made[key]["messages"], _action(key)) for key in channels
        },
        "components": {
            "messages": _messages(),
            "schemas": component_schemas(_modes()),
        },
    }


def connection_document(address: str, description: str, refused: type[Event]) -> dict[str, Any]:
    """An AsyncAPI 3 document of a WebSocket on which the guard receives the input events and sends the output
    events, and ``refused`` for what it can't use.
    """
    modes = connection_modes(refused)
    names = {model: event_type(model) for model, _ in modes}
    channel = {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names.values()},
        "bindings": {"ws": {"method": "GET", "bindingVersion": WS_BINDING_VERSION}},
    }
    ways = {"receive": "validation", "send": "serialization"}
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {"title": "guardrail serve", "version": f"{SCHEMA_VERSION}.0.0"},
        "defaultContentType": "application/json",
        "channels": {"guard": channel},
        "operations": {
            f"{action}Events": _operation(
                "guard", [names[each] for each, mode in modes if mode == way], action
            )
            for action, way in ways.items()
        },
        "components": {
            "messages": {names[model]: _message(model) for model, _ in modes},
            "schemas": component_schemas(modes),
        },
    }


def connection_modes(refused: type[Event]) -> list[tuple[type[Event], JsonSchemaMode]]:
    """The events of a connection, and which way they go."""
    return _modes(INPUT_EVENTS, (*OUTPUT_EVENTS, refused))


def write_schemas(folder: Path, topics: Mapping[str, str]) -> list[Path]:
    """Write ``schemas/*.json`` and ``asyncapi.yaml`` under ``folder``; returns the files, in a stable
    order.
    """
    written = []
    for name, text in _rendered(topics).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def check_schemas(folder: Path, topics: Mapping[str, str]) -> list[str]:
    """How the files under ``folder`` differ from what ``write_schemas`` writes, one line each; empty: not at
    all.
    """
    problems = []
    rendered = _rendered(topics)
    for name, text in rendered.items():
        path = folder / name
        if not path.is_file():
            problems.append(f"{path} is missing; {_REMEDY}")
        elif path.read_text(encoding="utf-8") != text:
            problems.append(f"{path} is out of date; {_REMEDY}")
    wanted = {folder / name for name in rendered}
    stray = sorted(path for path in (folder / SCHEMAS_FOLDER).glob("*.json") if path not in wanted)
    return problems + [f"{path} belongs to no event; delete it" for path in stray]


def _rendered(topics: Mapping[str, str]) -> dict[str, str]:
    """Text of every file, by its name relative to the folder."""
    files = {
        f"{SCHEMAS_FOLDER}/{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in json_schemas().items()
    }
    body = yaml.dump(
        asyncapi_document(topics), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=100
    )
    files[ASYNCAPI_FILE] = (
        f"# Generated by 'guardrail config schema events' from guardrail/events.py; don't edit.\n{body}"
    )
    return files


class _PlainDumper(yaml.SafeDumper):
    """YAML without anchors: shared Python objects are written out each time, for readers."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _modes(
    taken: Iterable[type[Event]] = (*INPUT_EVENTS, Label), told: Iterable[type[Event]] = OUTPUT_EVENTS
) -> list[tuple[type[Event], JsonSchemaMode]]:
    inputs: list[tuple[type[Event], JsonSchemaMode]] = [(model, "validation") for model in taken]
    return inputs + [(model, "serialization") for model in told]


def _with_type_required(schema: dict[str, Any]) -> dict[str, Any]:
    """``type`` has a default in the models, but on the wire it is what distinguishes events."""
    required = schema.get("required", [])
    if "type" in required:
        return schema
    return {**schema, "required": ["type", *required]}


def _channel(address: str, description: str, messages: Iterable[str]) -> dict[str, Any]:
    return {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
        "bindings": {"kafka": {"topic": address, "bindingVersion": KAFKA_BINDING_VERSION}},
    }


def _operation_name(channel: str) -> str:
    return _action(channel) + channel[0].upper() + channel[1:]


def _action(channel: str) -> Literal["receive", "send"]:
    return "receive" if channel in {"responses", "labels"} else "send"


def _operation(channel: str, messages: Iterable[str], action: str) -> dict[str, Any]:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in messages],
    }


def _message(model: type[Event], **more: Any) -> dict[str, Any]:
    return {
        "name": event_type(model),
        "title": model.__name__,
        "summary": _first_line(model),
        "contentType": "application/json",
        **more,
        "payload": {"$ref": f"#/components/schemas/{model.__name__}"},
    }


def _messages() -> dict[str, Any]:
    key = {"type": "string", "minLength": 1, "maxLength": 256, "description": "The response_id."}
    binding = {"kafka": {"key": key, "bindingVersion": KAFKA_BINDING_VERSION}}
    trace = "W3C trace context; carried from the input of a response to all its outputs."
    carried = {
        "traceparent": {"type": "string", "pattern": _TRACEPARENT, "description": trace},
        "tracestate": {"type": "string", "description": trace},
    }
    group = {"type": "string", "description": "The consumer group of the guard that wrote it."}
    headers: dict[JsonSchemaMode, dict[str, Any]] = {
        "validation": {"type": "object", "properties": carried},
        "serialization": {"type": "object", "properties": {**carried, GROUP_HEADER: group}},
    }
    messages: dict[str, Any] = {
        event_type(model): {**_message(model, headers=headers[mode]), "bindings": binding}
        for model, mode in _modes()
    }
    messages[_DEAD_LETTER] = {
        "name": _DEAD_LETTER,
        "title": "DeadLetter",
        "summary": "An input record as it came; headers say why it was refused and where it stood.",
        "contentType": "application/octet-stream",
        "headers": {
            "type": "object",
            "description": "The refused record's own headers, and these.",
            "properties": {
                name: {"type": "string", "description": description}
                for name, description in _DEAD_LETTER_HEADERS.items()
            },
            "required": list(_DEAD_LETTER_HEADERS),
        },
        "payload": {"description": "The value of the refused record, unchanged: any bytes, or none."},
        "bindings": {
            "kafka": {
                "key": {"description": "The key of the refused record, unchanged: any bytes, or none."},
                "bindingVersion": KAFKA_BINDING_VERSION,
            }
        },
    }
    return messages


def _first_line(model: type[Event]) -> str:
    return (model.__doc__ or "").strip().split("\n")[0]


def component_schemas(modes: Sequence[tuple[type[Event], JsonSchemaMode]]) -> dict[str, Any]:
    """Every model once, by its name; ``NAME-Input`` and ``NAME-Output`` where the two directions differ."""
    _, combined = models_json_schema(
        modes,
        by_alias=True,
        ref_template="#/components/schemas/{model}",
        schema_generator=_Generator,
    )
    schemas: dict[str, Any] = combined["$defs"]
    for model, _ in modes:
        schemas[model.__name__] = _with_type_required(schemas[model.__name__])
    return dict(sorted(schemas.items()))
