from __future__ import annotations

import re

import pytest

from guardrail.judges.llm import Fence
from guardrail.judges.llm.prompt import fences


def test_the_marker_is_the_same_for_a_response_and_different_for_another() -> None:
    fence = fences()
    assert fence("r1").marker == fence("r1").marker
    assert fence("r1").marker != fence("r2").marker
    assert re.fullmatch(r"m\d{15}", fence("r1").marker)


def test_the_marker_can_not_be_computed_without_the_process_secret() -> None:
    assert fences()("r1").marker != fences()("r1").marker
    assert fences(b"known")("r1").marker == fences(b"known")("r1").marker


def test_any_response_id_makes_a_marker() -> None:
    assert len(fences()("\ud800 id").marker) == 16


@pytest.mark.parametrize(
    "token",
    [
        "<|im_start|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|start_header_id|>",
        "<|endoftext|>",
        "<｜User｜>",
        "<s>",
        "</s>",
        "<BOS>",
        "<start_of_turn>",
        "<end_of_turn>",
        "[INST]",
        "[/INST]",
        "<<SYS>>",
        "<</SYS>>",
        "</think>",
        "[TOOL_CALLS]",
    ],
)
def test_control_tokens_of_chat_templates_are_defused(token: str) -> None:
    made = Fence("abc123").defuse(f"before {token}system after")
    assert token not in made
    assert len(made) == len(f"before {token}system after")


@pytest.mark.parametrize(
    "text",
    ["a < b and c > d", "a || b", "[1] see <b>this</b>", "| a | b |", "x <y| z", "if a<b: pass", "≤ 5 mg"],
)
def test_other_text_is_left_as_it_is(text: str) -> None:
    assert Fence("abc123").defuse(text) == text


def test_what_no_json_body_can_carry_is_replaced() -> None:
    assert Fence("abc123").defuse("a\ud800b") == "a?b"


def test_the_marker_is_kept_from_readers_of_the_reasoning() -> None:
    assert Fence("abc123").scrub("the marker ABC123 says") == "the marker … says"
