"""The examples of docs/events.md are events."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from jsonschema import Draft202012Validator

from consumers.settings import Topics
from guardrail import Guard
from guardrail.events import INPUT_EVENTS, AnyOutputEvent, Event, parse_input, parse_label, parse_output
from guardrail.schema import event_type, json_schemas

TEXT = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
EXAMPLES: list[dict[str, Any]] = [
    json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
]
SCHEMAS = json_schemas()
INPUTS = {event_type(model) for model in INPUT_EVENTS}


def test_every_event_has_an_example_under_its_own_heading() -> None:
    assert sorted(example["type"] for example in EXAMPLES) == sorted(SCHEMAS)
    assert re.findall(r"^### (\S+)$", TEXT, re.MULTILINE) == [example["type"] for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["type"])
def test_an_example_is_valid_and_can_be_read(example: dict[str, Any]) -> None:
    Draft202012Validator(SCHEMAS[example["type"]]).validate(example)
    text = json.dumps(example)
    event: Event
    if example["type"] == "label":
        event = parse_label(text)
    else:
        event = parse_input(text) if example["type"] in INPUTS else parse_output(text)
    assert event.model_dump()["type"] == example["type"]


def test_evidence_in_the_examples_stands_where_it_says() -> None:
    (case,) = (example for example in EXAMPLES if example["type"] == "case.flagged")
    texts = {context["id"]: context["text"] for context in case["contexts"]}
    quotes = [evidence for claim in case["claims"] for evidence in claim["evidence"]]
    assert quotes
    for evidence in quotes:
        start, end = evidence["span"]
        assert texts[evidence["context_id"]][start:end] == evidence["quote"]


def test_words_without_support_in_the_examples_stand_in_their_claim() -> None:
    (case,) = (example for example in EXAMPLES if example["type"] == "case.flagged")
    for claim in case["claims"]:
        first, last = claim["span"]
        told = [case["answer"][start:end] for start, end in claim["unsupported_spans"]]
        assert told == ["$60 a month"]
        assert all(first <= start and end <= last for start, end in claim["unsupported_spans"])


def test_the_examples_are_what_the_guard_says() -> None:
    by_type = {example["type"]: example for example in EXAMPLES}
    head = {name: value for name, value in by_type["response.started"].items() if name != "type"}
    asked = (head.pop("question"), head.pop("contexts"))
    answer = by_type["case.flagged"]["answer"]
    first = by_type["response.delta"]["text"]
    assert answer.startswith(first)

    async def said() -> list[AnyOutputEvent]:
        async with Guard() as guard:
            blocked = [e async for e in guard.stream(*asked, [first, answer.removeprefix(first)], **head)]
            released = by_type["delivery.segment"]
            right = guard.stream(*asked, [released["text"]], response_id=released["response_id"])
            return blocked + [e async for e in right if e.type.startswith("delivery.")]

    events = [json.loads(event.model_dump_json()) for event in asyncio.run(said())]
    outputs = {example["type"] for example in EXAMPLES} - INPUTS - {"label"}
    assert {event["type"] for event in events} == outputs
    for event in events:
        assert event == _as_run(by_type[event["type"]])


def _as_run(value: Any) -> Any:
    """An example as a run may say it: any times, probabilities within 0.05."""
    if isinstance(value, dict):
        return {
            name: ANY if name in ("latency_ms", "timings") else _as_run(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_as_run(inner) for inner in value]
    return pytest.approx(value, abs=0.05) if isinstance(value, float) else value


def test_the_topics_are_named_as_they_are_by_default() -> None:
    for name in (*Topics().names(), Topics().labels):
        assert f"`{name}`" in TEXT
