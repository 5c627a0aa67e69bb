"""The board gathers what the topics say of a response."""

from __future__ import annotations

from guardrail.demo import Board
from guardrail.events import Decision, ResponseDelta, ResponseStarted
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
