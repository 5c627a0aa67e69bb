"""The examples are what the demo's users are told they are."""

from __future__ import annotations

import pytest

from guardrail.demo import DemoAnswer, kinds, load_demo_settings, load_examples
from guardrail.events import Decision

EXAMPLES = load_examples()


def test_a_dozen_answers_about_half_of_them_faithful() -> None:
    faithful = sum(example.bad_claim is None for example in EXAMPLES)
    assert len(EXAMPLES) >= 12
    assert 0.4 <= faithful / len(EXAMPLES) <= 0.6


def test_the_kinds_that_people_deploy_a_guard_for_are_there() -> None:
    wanted = {"medication", "pricing", "travel", "contract", "support", "list", "table", "unknown"}
    assert wanted <= set(kinds(EXAMPLES))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.response.response_id)
def test_the_contexts_are_passages_of_a_realistic_size(example: DemoAnswer) -> None:
    assert 2 <= len(example.response.contexts) <= 4
    assert all(80 <= len(context.text.split()) <= 250 for context in example.response.contexts)


def test_the_wrong_detail_stands_in_the_answer_and_in_no_context() -> None:
    for example in EXAMPLES:
        assert (example.bad_claim is None) == (example.decision is Decision.RELEASE)
        if example.bad_claim is not None:
            assert example.bad_claim in example.response.answer
            assert all(example.bad_claim not in context.text for context in example.response.contexts)


def test_the_guard_is_not_told_what_is_expected_of_it() -> None:
    for example in EXAMPLES:
        assert example.response.metadata == {"kind": example.kind}


def test_every_mode_and_every_action_is_shown() -> None:
    router = load_demo_settings().router()
    modes = {router.choose(example.response.route, example.response.tenant).mode for example in EXAMPLES}
    assert modes == {"hold", "stream", "observe"}
    assert {example.decision for example in EXAMPLES} == set(Decision)


def test_one_kind_can_be_chosen() -> None:
    assert {example.kind for example in load_examples("medication")} == {"medication"}
