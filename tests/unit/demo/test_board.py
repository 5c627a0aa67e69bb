"""The board, which gathers what the topics say of a response; the feed; and the examples that are played."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.demo import (
    LANES,
    Board,
    DemoAnswer,
    StreamEvent,
    cut_tokens,
    kinds,
    load_demo_settings,
    load_examples,
    play,
    schedule,
)
from guardrail.events import Decision, Response, ResponseCompleted, ResponseDelta, ResponseStarted
from tests.support.cases import flagged_case
from tests.unit.demo.events import blocked, card_of, claim, completed, segment, verdict


def test_a_released_response_is_finished_by_its_verdict_and_the_end_of_its_delivery() -> None:
    board, card = card_of("Take one.")
    board.apply(verdict(), 1.0)
    assert board.running == [card]
    board.apply(completed(), 1.0)
    assert board.finished == [card]


def test_any_other_response_is_finished_by_its_case_too() -> None:
    board, card = card_of("Take nine.")
    board.apply(verdict(Decision.BLOCK), 1.0)
    board.apply(blocked("Ask a doctor.", 0), 1.0)
    assert not card.finished
    board.apply(flagged_case(response_id="r"), 1.0)
    assert card.finished


def test_text_that_comes_after_a_block_is_noted_but_changes_nothing() -> None:
    board, card = card_of("Take nine.")
    for event in (verdict(Decision.BLOCK), blocked("Ask.", 0), flagged_case(response_id="r")):
        board.apply(event, 1.0)
    board.apply(ResponseDelta(response_id="r", seq=1, text=" More."), 2.0)
    assert card.finished
    assert card.text == "Take nine. More."


def test_delay_is_from_the_last_character_written_to_its_release() -> None:
    board = Board()
    card = board.apply(ResponseStarted(response_id="r"), 0.0)
    assert card is not None
    for seq, (text, at_s) in enumerate([("Take ", 1.0), ("one.", 2.0), (" Then", 3.0)]):
        board.apply(ResponseDelta(response_id="r", seq=seq, text=text), at_s)
    board.apply(segment("Take one. ", (0, 10)), 3.25)
    assert card.delays_ms == [250.0]
    assert card.delay_p50_ms == 250.0
    assert card.delivered == "Take one. "


def test_a_response_without_a_delivery_has_no_delay() -> None:
    _, card = card_of("Take one.")
    assert card.delay_p50_ms is None


def test_an_event_of_a_response_that_never_started_is_passed_over() -> None:
    assert Board().apply(claim("x", (0, 1)), 0.0) is None


def test_observed_text_is_told_from_judged_text() -> None:
    board, card = card_of("Take one.")
    board.apply(segment("Take one.", (0, 9), index=None), 0.0)
    assert card.observed


# ------------------------------------------------------------------------------------------------ the feed

RESPONSES = [example.response for example in load_examples()]


@given(st.text(), st.integers())
def test_tokens_joined_give_the_text(text: str, seed: int) -> None:
    tokens = cut_tokens(text, random.Random(seed))
    assert "".join(tokens) == text
    assert all(1 <= len(token) <= 7 for token in tokens)


def test_every_run_sends_the_same() -> None:
    assert schedule(RESPONSES) == schedule(RESPONSES)


def test_each_response_is_started_written_in_order_and_completed() -> None:
    by_id: dict[str, list[StreamEvent]] = {}
    for step in schedule(RESPONSES):
        by_id.setdefault(step.event.response_id, []).append(step.event)
    assert len(by_id) == len(RESPONSES)
    for response in RESPONSES:
        first, *deltas, last = by_id[response.response_id]
        assert isinstance(first, ResponseStarted)
        assert first.contexts == response.contexts
        assert first.route == response.route
        assert [delta.seq for delta in deltas if isinstance(delta, ResponseDelta)] == list(range(len(deltas)))
        assert "".join(delta.text for delta in deltas if isinstance(delta, ResponseDelta)) == response.answer
        assert isinstance(last, ResponseCompleted)
        assert last.seq == len(deltas)


def test_a_few_responses_are_written_at_the_same_time_and_no_more() -> None:
    open_ids: set[str] = set()
    most = 0
    for step in schedule(RESPONSES):
        if isinstance(step.event, ResponseCompleted):
            open_ids.discard(step.event.response_id)
        else:
            open_ids.add(step.event.response_id)
        most = max(most, len(open_ids))
    assert most == LANES


def test_the_whole_feed_takes_less_than_a_minute_but_can_be_read() -> None:
    assert 25 <= schedule(RESPONSES)[-1].at_s <= 48


def test_an_empty_answer_is_completed_after_no_delta() -> None:
    response = Response(response_id="empty", answer="")
    assert [type(step.event) for step in schedule([response])] == [ResponseStarted, ResponseCompleted]


async def test_playing_sends_everything_in_order_and_never_ahead_of_time() -> None:
    steps = schedule(RESPONSES[:3])
    now = 0.0
    sent: list[tuple[float, StreamEvent]] = []

    def clock() -> float:
        nonlocal now
        now += 0.5  # every look at the clock takes half a second, so that nothing has to be waited for
        return now

    await play(steps, lambda event: sent.append((now, event)), speed=1.0, clock=clock)
    assert [event for _, event in sent] == [step.event for step in steps]


# -------------------------------------------------------------------------------------------- the examples

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
