"""What is sent to the model: its order, and its sameness from call to call.

That data stays data is shown by tests/injection, on the wire.
"""

from __future__ import annotations

import re

import pytest

from guardrail.judges import JudgeRequest
from guardrail.judges.llm import Fence
from guardrail.judges.llm.prompt import Prompt, Prompts, fences
from tests.unit.judges.llm.asking import claim, request, settings

FENCE = fences(b"secret of the test")("r1")


def build(asked: JudgeRequest, fence: Fence = FENCE) -> Prompt:
    return Prompts(settings()).build(asked, fence)


def fenced(user: str) -> list[tuple[str, str]]:
    """Name and content of every text, as the instructions say to read them."""
    parts = re.split(rf"^\[{FENCE.marker} (.+)\]\n", user, flags=re.MULTILINE)[1:]
    found = zip(parts[::2], parts[1::2], strict=True)
    return [(name, text.removesuffix("\n")) for name, text in found if name != "end"]


def test_what_changes_least_comes_first() -> None:
    prompt = build(request("It costs $50.", claim("It is open at 9.", 1, lead_in="The desk is in Rome.")))
    system, user = (message["content"] for message in prompt.messages)
    assert fenced(user) == [
        ("document d1", "[1] The basic plan costs $50 a month."),
        ("document d2", "[2] Support is open from 9 to 17 on weekdays."),
        ("question", "What does it cost?"),
        ("claim c1", "It costs $50."),
        ("lead-in of c2", "The desk is in Rome."),
        ("claim c2", "It is open at 9."),
    ]
    assert user.endswith("Give the verdicts on c1, c2, as one JSON object of the form described.")
    assert system.endswith(f"The marker is {FENCE.marker}")


def test_instructions_are_alike_for_all_responses_up_to_the_marker() -> None:
    one, two = fences()("r1"), fences()("r2")
    texts = [
        build(request(), fence).messages[0]["content"].removesuffix(fence.marker) for fence in (one, two)
    ]
    assert texts[0] == texts[1]


def test_empty_contexts_are_left_out_and_the_others_keep_their_numbers() -> None:
    prompt = build(request(contexts=["", "x"]))
    assert fenced(prompt.messages[1]["content"])[0] == ("document d2", "[1] x")
    assert prompt.sentences.evidence([1])[0].context_id == "doc-1"


@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize("reasoning", ["none", "not_supported"])
def test_all_variables_of_the_instructions_are_filled(reasoning: str, *, decompose: bool) -> None:
    made = settings(reasoning=reasoning, decompose=decompose)
    prompt = Prompts(made).build(request(), FENCE)
    system = prompt.messages[0]["content"]
    assert not re.search(r"\$[a-z{]", system)
    assert "at most 3;" in system
    reasons = reasoning != "none"
    assert ("Give no reasons." in system) is not reasons
    assert ("REASON" in system) is ("$5, not $10" in system) is reasons
    assert ("c1a and c1b" in system) is ('"c1a 1 supported' in system) is decompose
    assert "JSON" in system  # JSON mode is refused by OpenAI where the prompt doesn't say it


def test_texts_that_no_body_can_carry_are_replaced_and_control_tokens_defused() -> None:
    assert Fence("abc123").defuse("a\ud800b <BOS>") == "a?b ‹BOS>"
    assert len(fences()("\ud800 id").marker) == 16
