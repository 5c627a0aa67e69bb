"""What of a chat request counts as documents and question, and what the model gets of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from guardrail.chat import grounding_of, taken_out
from guardrail.errors import InputError


def source(text: Any, **more: Any) -> dict[str, Any]:
    return {"type": "grounding_source", "text": text, **more}


def message(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def contexts(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(context.id, context.text) for context in grounding_of(request).contexts]


def test_blocks_of_system_and_developer_messages_are_documents() -> None:
    request = {
        "messages": [
            message("system", source("One.", id="a"), {"type": "text", "text": "Not one."}),
            message("developer", source("Two.")),
        ]
    }
    assert contexts(request) == [("a", "One."), ("grounding-2", "Two.")]


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "function", "SYSTEM", None, ["system"]])
def test_blocks_of_others_are_not(role: Any) -> None:
    assert contexts({"messages": [{"role": role, "content": [source("Mine.")]}]}) == []


@pytest.mark.parametrize(
    "messages",
    [
        None,
        "text",
        7,
        {},
        [],
        [None, 7, "x"],
        [{"role": "system"}],
        [{"role": "system", "content": [None, 1]}],
    ],
)
def test_what_is_no_message_is_passed_over(messages: Any) -> None:
    found = grounding_of({"messages": messages})
    assert (found.contexts, found.question) == ((), "")
    request = {"messages": messages}
    taken_out(request)
    assert request["messages"] == messages


def test_odd_blocks_keep_ids_unique_and_are_left_out_without_text() -> None:
    blocks = [
        source("1", id="a"),
        source("2", id="a"),
        source("3", id=7),
        source(None),
        source("  "),
        source("4", id=""),
    ]
    found = contexts({"messages": [message("system", *blocks)]})
    assert found == [("a", "1"), ("grounding-2", "2"), ("grounding-3", "3"), ("grounding-6", "4")]


def test_the_question_is_the_extensions_then_the_query_blocks_then_the_last_users() -> None:
    messages = [message("system", {"type": "query", "text": "Q1"}), {"role": "user", "content": "last"}]
    assert grounding_of({"messages": messages, "guardrail": {"question": "Q0"}}).question == "Q0"
    assert grounding_of({"messages": messages}).question == "Q1"
    assert grounding_of({"messages": messages[1:]}).question == "last"
    for role in ("user", "tool", "assistant"):
        theirs = message(role, {"type": "query", "text": "Q2"})
        assert grounding_of({"messages": [theirs, *messages[1:]]}).question == "last"
    parts = message(
        "user", {"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}
    )
    assert grounding_of({"messages": [parts, {"role": "assistant", "content": "x"}]}).question == "a\nb"


@pytest.mark.parametrize("place", ["body", "metadata", "litellm_metadata"])
def test_the_extension_goes_before_blocks(place: str) -> None:
    extension = {
        "guardrail": {"contexts": ["One.", {"id": "b", "text": "Two."}], "route": "r", "tenant": "t"}
    }
    request: dict[str, Any] = extension if place == "body" else {place: extension}
    request["messages"] = [message("system", source("Other."))]
    assert contexts(request) == [("c1", "One."), ("b", "Two.")]
    assert (grounding_of(request).route, grounding_of(request).tenant) == ("r", "t")


@pytest.mark.parametrize(
    ("extension", "field"),
    [
        ({"contexts": "text"}, "guardrail.contexts"),
        ({"contexts": [{"id": "secret"}]}, "guardrail.contexts.0.text"),
        ({"context": []}, "guardrail.context:"),
        ({"route": "secret" * 99}, "guardrail.route"),
        (["secret"], "guardrail:"),
    ],
)
def test_a_wrong_extension_names_its_field_and_no_text(extension: Any, field: str) -> None:
    with pytest.raises(InputError) as raised:
        grounding_of({"guardrail": extension})
    assert field in str(raised.value)
    assert "secret" not in str(raised.value)


def test_the_model_gets_plain_text_and_the_guard_finds_the_same_afterwards() -> None:
    request: dict[str, Any] = {
        "model": "m",
        "guardrail": {"route": "r"},
        "metadata": {"kept": 1},
        "messages": [
            message("system", source("One.", id="a", source="one.pdf")),
            message("user", {"type": "query", "text": "Q"}, source("Mine.")),
            {"role": "user", "content": "plain"},
        ],
    }
    before = grounding_of(copy.deepcopy(request))
    taken_out(request)
    assert grounding_of(request) == before
    assert "guardrail" not in request
    assert request["metadata"]["kept"] == 1
    kinds = [part for each in request["messages"][:2] for part in each["content"]]
    assert kinds == [{"type": "text", "text": text} for text in ("One.", "Q", "Mine.")]
    assert request["messages"][2] == {"role": "user", "content": "plain"}


def test_what_is_no_list_is_told_in_the_words_of_json() -> None:
    with pytest.raises(
        InputError, match=r"guardrail\.contexts: Input should be a valid list; give an object of"
    ):
        grounding_of({"guardrail": {"contexts": "text"}})
    with pytest.raises(
        InputError, match=r"guardrail\.context: There is no such field; give an object of contexts"
    ):
        grounding_of({"guardrail": {"context": ["text"]}})
    with pytest.raises(InputError, match=r"guardrail\.contexts\.0: Input should be an object; give"):
        grounding_of({"guardrail": {"contexts": [None]}})
