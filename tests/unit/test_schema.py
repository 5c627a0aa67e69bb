from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from consumers.dead_letters import dead_letter
from consumers.settings import Topics
from consumers.transport import Partition, Record
from guardrail.errors import DecodeError
from guardrail.events import (
    INPUT_EVENTS,
    OUTPUT_EVENTS,
    Context,
    Event,
    Label,
    Response,
    parse_input,
    parse_output,
)
from guardrail.schema import asyncapi_document, check_schemas, event_type, json_schemas, write_schemas
from tests.support.docs import DOCS, blocks

TOPICS = Topics().model_dump()
SCHEMAS = json_schemas()
OUTPUT_TYPES = {event_type(model) for model in OUTPUT_EVENTS}
EXAMPLES = [text for text in blocks("events.md", "json") if json.loads(text)["type"] in OUTPUT_TYPES]
OUTPUTS = [parse_output(text) for text in EXAMPLES]
"""The examples of the page, which are what the guard says."""
GOOD_INPUTS: list[dict[str, Any]] = [
    {"type": "response.started", "response_id": "r"},
    {"type": "response.started", "schema": 1, "response_id": "r", "contexts": [{"id": "a", "text": ""}]},
    {"type": "response.started", "response_id": "r", "tenant": None, "deadline_ms": 1, "not_known": [1]},
    {"type": "response.delta", "response_id": "r", "seq": 0, "text": ""},
    {"type": "response.completed", "response_id": "r", "seq": 0},
    {"type": "response.aborted", "response_id": "r"},
    {"type": "response", "response_id": "r", "answer": "x", "metadata": {"a": {"b": None}}},
]
BAD_INPUTS: list[tuple[str, dict[str, Any]]] = [
    ("response.started", {"response_id": "r"}),
    ("response.started", {"type": "response.started"}),
    ("response.started", {"type": "response.started", "response_id": ""}),
    ("response.started", {"type": "response.started", "response_id": "r" * 257}),
    ("response.started", {"type": "response.started", "response_id": "r", "schema": 2}),
    ("response.started", {"type": "response.started", "response_id": "r", "deadline_ms": 0}),
    ("response.started", {"type": "response.started", "response_id": "r", "contexts": [{"id": "a"}]}),
    ("response.started", {"type": "response.started", "response_id": "r", "metadata": None}),
    ("response.delta", {"type": "response.delta", "response_id": "r", "seq": -1, "text": ""}),
    ("response.delta", {"type": "response.delta", "response_id": "r", "text": ""}),
    ("response.completed", {"type": "response.completed", "response_id": "r"}),
    ("response", {"type": "response", "response_id": "r"}),
]


def _valid(name: str, value: Any) -> bool:
    return Draft202012Validator(SCHEMAS[name]).is_valid(value)


def test_the_committed_files_are_current() -> None:
    assert check_schemas(DOCS, TOPICS) == []


def test_there_is_one_valid_schema_per_event_with_an_id_and_a_title_of_its_own() -> None:
    models: tuple[type[Event], ...] = (*INPUT_EVENTS, Label, *OUTPUT_EVENTS)
    assert list(SCHEMAS) == [event_type(model) for model in models]
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)
    assert len({schema["$id"] for schema in SCHEMAS.values()}) == len(SCHEMAS)
    assert len({schema["title"] for schema in SCHEMAS.values()}) == len(SCHEMAS)


@pytest.mark.parametrize("event", OUTPUTS, ids=lambda event: event.type)
def test_what_is_written_is_what_the_schema_says(event: Event) -> None:
    """Every field of an output is there, so the schema can require it and still hold."""
    schema = SCHEMAS[event_type(type(event))]
    written = json.loads(event.to_json())
    assert [error.message for error in Draft202012Validator(schema).iter_errors(written)] == []
    assert set(schema["required"]) == set(written) - {"deciding_claim"}


@pytest.mark.parametrize("value", GOOD_INPUTS, ids=lambda value: f"{value['type']}-{len(value)}")
def test_what_the_reader_takes_the_schema_takes(value: dict[str, Any]) -> None:
    parse_input(json.dumps(value))
    assert _valid(value["type"], value)


@pytest.mark.parametrize(("name", "value"), BAD_INPUTS)
def test_what_the_reader_refuses_the_schema_refuses(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        parse_input(json.dumps(value))
    assert not _valid(name, value)


def test_a_written_input_event_is_valid_too() -> None:
    event = Response(response_id="r", answer="x", contexts=(Context(id="a", text="b"),))
    assert _valid("response", json.loads(event.to_json()))


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _refs(child)
    elif isinstance(node, list):
        for child in node:
            yield from _refs(child)


def _resolve(document: Any, ref: str) -> Any:
    assert ref.startswith("#/")
    for part in ref[2:].split("/"):
        document = document[part]
    return document


def test_every_reference_of_the_asyncapi_document_resolves() -> None:
    document = asyncapi_document(TOPICS)
    refs = set(_refs(document))
    assert len(refs) > 20
    for ref in refs:
        _resolve(document, ref)


def test_the_asyncapi_operations_use_messages_of_their_own_channel() -> None:
    """AsyncAPI 3 asks for references into the channel, not into the components."""
    document = asyncapi_document(TOPICS)
    assert {operation["action"] for operation in document["operations"].values()} == {"receive", "send"}
    for operation in document["operations"].values():
        channel = operation["channel"]["$ref"]
        assert operation["messages"]
        for message in operation["messages"]:
            assert message["$ref"].startswith(f"{channel}/messages/")


def test_every_event_stands_in_exactly_one_channel() -> None:
    document = asyncapi_document(TOPICS)
    named = [name for channel in document["channels"].values() for name in channel["messages"]]
    assert sorted(named) == sorted([*SCHEMAS, "dead.letter"])
    assert set(named) == set(document["components"]["messages"])


def test_no_component_schema_is_left_over() -> None:
    document = asyncapi_document(TOPICS)
    used = {ref.rsplit("/", 1)[1] for ref in _refs(document) if ref.startswith("#/components/schemas/")}
    assert used == set(document["components"]["schemas"])


@pytest.mark.parametrize("event", OUTPUTS, ids=lambda event: event.type)
def test_the_asyncapi_payload_describes_the_same_events(event: Event) -> None:
    document = asyncapi_document(TOPICS)
    payload = document["components"]["messages"][event_type(type(event))]["payload"]
    schema = {**payload, "components": document["components"]}
    Draft202012Validator(schema).validate(json.loads(event.to_json()))
    assert not Draft202012Validator(schema).is_valid({})


def test_the_headers_of_dead_letters_are_those_that_are_written() -> None:
    record = Record(Partition("rag.responses", 3), 42, None, b"{", timestamp_ms=1_700_000_000_000)
    written = dead_letter(
        "rag.dead-letters", record, DecodeError("invalid_json", "not JSON"), 1_000_000
    ).headers
    described = asyncapi_document(TOPICS)["components"]["messages"]["dead.letter"]["headers"]
    assert described["required"] == [name for name, _ in written]


def test_configured_topics_are_the_addresses() -> None:
    topics = Topics(
        responses="in", deliveries="out", verdicts="v", flagged="f", dead_letters="d", labels="l"
    ).model_dump()
    channels = asyncapi_document(topics)["channels"]
    assert [channel["address"] for channel in channels.values()] == ["in", "out", "v", "f", "d", "l"]
    assert channels["responses"]["bindings"]["kafka"]["topic"] == "in"


def test_files_are_written_in_a_stable_order_and_read_back(tmp_path: Path) -> None:
    files = write_schemas(tmp_path, TOPICS)
    assert files == write_schemas(tmp_path, TOPICS)
    assert check_schemas(tmp_path, TOPICS) == []
    assert yaml.safe_load((tmp_path / "asyncapi.yaml").read_text("utf-8")) == asyncapi_document(TOPICS)
    for file in files:
        if file.suffix == ".json":
            assert json.loads(file.read_text("utf-8")) == SCHEMAS[file.stem]


def test_missing_stale_and_stray_files_are_named_with_the_remedy(tmp_path: Path) -> None:
    write_schemas(tmp_path, TOPICS)
    (tmp_path / "schemas" / "response.json").unlink()
    (tmp_path / "asyncapi.yaml").write_text("asyncapi: 2.6.0\n", "utf-8")
    (tmp_path / "schemas" / "old.event.json").write_text("{}", "utf-8")
    problems = check_schemas(tmp_path, TOPICS)
    assert len(problems) == 3
    assert "response.json is missing; run 'guardrail config schema events'" in problems[0]
    assert "asyncapi.yaml is out of date; run 'guardrail config schema events'" in problems[1]
    assert "old.event.json belongs to no event; delete it" in problems[2]
