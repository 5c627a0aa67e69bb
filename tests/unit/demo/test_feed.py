"""The feed: same events in every run, whole texts, some responses at a time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from guardrail.demo import LANES, StreamEvent, cut_tokens, load_examples, play, schedule
from guardrail.events import Response, ResponseCompleted, ResponseDelta, ResponseStarted

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
