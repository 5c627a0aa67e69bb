"""``POST /v1/check``: answers that are there already, one or many in a call; and the OpenAPI document."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Final
from uuid import uuid4

from pydantic import Field, ValidationError
from pydantic.json_schema import models_json_schema

from consumers.gateway.dialects import DIALECTS
from consumers.gateway.duplex import NDJSON, EventError, renamed
from consumers.gateway.keys import HEADER, ApiCaller
from consumers.gateway.refusals import CHECK, COMPLETIONS, GUARD, PASSED, RESPONSES, Refused
from guardrail import __version__
from guardrail.chat import GroundingExtension
from guardrail.events import Name, Response, ResponseVerdict, decode_error
from guardrail.frozen import Frozen
from guardrail.guard import Guard
from guardrail.inputs import event_of
from guardrail.policy import MissingContexts
from guardrail.schema import component_schemas, connection_document, connection_modes

_MOST: Final = 100


class CheckItem(GroundingExtension):
    """An answer, and what it was written from."""

    answer: Annotated[str, Field(description="The whole text.")]
    response_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Made where none is given. In logs and on topics the key's name stands before it, "
            "and more letters follow.",
        ),
    ] = None
    language: Name | None = None


class CheckBatch(Frozen):
    """Several answers, judged at the same time."""

    checks: Annotated[tuple[CheckItem, ...], Field(min_length=1, max_length=_MOST)]


class CheckResults(Frozen):
    """The verdicts, in the order of the answers."""

    results: tuple[ResponseVerdict, ...]


Named = list[tuple[Response, str | None]]
"""Answers that are to be judged, each with what the caller calls it."""


def answers_in(request: Any, caller: ApiCaller) -> Named:
    """The answers of a request. Raises Refused and InputError."""
    if not isinstance(request, dict):
        raise Refused(400, "give one object, or {checks: [...]}", "invalid_request")
    try:
        many = "checks" in request
        items = CheckBatch.model_validate(request).checks if many else (CheckItem.model_validate(request),)
    except ValidationError as error:
        raise Refused(400, str(decode_error(error)), "invalid_request") from None
    found: Named = []
    for item in items:
        route, tenant = caller.scoped(item.route, item.tenant)
        fields = {**dict(item), "question": item.question or "", "route": route, "tenant": tenant}
        # Who asks again, or somebody else, may give the same id, which the guard takes once.
        name = fields.pop("response_id")
        known = caller.named(f"{name}-{uuid4().hex}") if name else None
        found.append((event_of(Response, known, fields), name))
    return found


async def checked(guard: Guard, answers: Named, missing: MissingContexts | None) -> list[ResponseVerdict]:
    """The verdicts, in the order of the answers. Raises InputError in a group."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(guard.check_event(event, missing)) for event, _ in answers]
    return [renamed(task.result(), name) for task, (_, name) in zip(tasks, answers, strict=True)]


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document: the gateway's own endpoints from their models, the others by name."""
    _, of_check = models_json_schema(
        [
            *((model, "validation") for model in (CheckItem, CheckBatch)),
            *((model, "serialization") for model in (ResponseVerdict, CheckResults)),
        ],
        ref_template="#/components/schemas/{model}",
    )

    def one_of(*models: str, kind: str = "application/json") -> dict[str, Any]:
        refs = [{"$ref": f"#/components/schemas/{model}"} for model in models]
        return {"content": {kind: {"schema": {"oneOf": refs}}}}

    events = connection_modes(EventError)
    taken, told = (
        one_of(*(model.__name__ for model, mode in events if mode == way), kind=NDJSON)
        for way in ("validation", "serialization")
    )
    guard = {
        "operationId": "guard",
        "summary": "Guard answers while they are written: the response comes while the request is sent.",
        "description": "Each line of both bodies is one event; the schemas are those of a line. "
        "GET /asyncapi.json describes the same over a WebSocket.",
        "requestBody": {"required": True, **taken},
        "responses": {"200": {"description": "What may be shown, and why.", **told}},
    }
    check = {
        "operationId": "check",
        "summary": "Judge answers that are there already.",
        "requestBody": {"required": True, **one_of("CheckItem", "CheckBatch")},
        "responses": {
            "200": {"description": "The verdicts.", **one_of("ResponseVerdict", "CheckResults")},
            "400": {"description": "The request is wrong; the message names the field."},
        },
    }
    others = {
        COMPLETIONS: {"post": _passing("A chat completion of the upstream, guarded.")},
        RESPONSES: {"post": _passing("A response of the upstream, guarded.")},
        **{
            path: {"post": _passing(f"What {name} asks, if serve.dialects names it.", f"{name} says")}
            for name, dialect in DIALECTS.items()
            for path in dialect.paths
        },
        **{
            path.replace(":path", ""): {
                **{method.lower(): _passing("Passed on to the upstream.") for method in methods},
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                    for name in re.findall(r"\{(\w+)", path)
                ],
            }
            for path, methods in PASSED.items()
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "guardrail serve", "version": __version__},
        "paths": {CHECK: {"post": check}, GUARD: {"post": guard}, **others},
        "components": {
            "schemas": {**of_check["$defs"], **component_schemas(events)},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": HEADER}},
        },
        "security": [{"key": []}, {}],
    }


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3 document of ``/v1/guard`` as a WebSocket."""
    told = f"Answers are guarded while they are written; each message is one event. A key comes as {HEADER}."
    return connection_document(GUARD, told, EventError)


def _passing(summary: str, told: str = "the upstream's API says") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": f"As {told}."}}}
