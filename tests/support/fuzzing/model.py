"""What may become of an input event: the protocol of docs/events.md, in the plainest form."""

from __future__ import annotations

from guardrail.engine import digest
from guardrail.events import (
    InputEvent,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
)
from tests.support.fuzzing.accounts import BEGAN, PASSED_OVER, REPEATED, TOOK_EFFECT, Life

Text = ResponseDelta | ResponseCompleted | ResponseAborted
TOO_LARGE = "contexts_too_large"
TOO_LONG = "answer_too_long"
FINISHED = "response_finished"
UNKNOWN = "unknown_response"
GAP = "sequence_gap"
WRONG_LANE = "wrong_partition"


def expected(
    event: InputEvent,
    life: Life | None,
    finished: Life | None,
    now: float,
    max_answer_chars: int,
    forgets: bool,
) -> set[str]:
    """The outcomes that are right; more than one only where time or a bound on memory leaves it open.

    ``life`` is the response in flight, ``finished`` the last one with this id that is over. ``forgets``:
    finished ids may have been forgotten by now.
    """
    if isinstance(event, ResponseStarted | Response):
        return _for_start(event, life, finished, forgets)
    if life is not None:
        may_be_over, must_be_over = life.overdue(now)
        found = set() if must_be_over else _in_flight(event, life, max_answer_chars)
        return found | (_ended(event, life) if may_be_over else set())
    outcomes: set[str] = set()
    if finished is None or forgets:
        outcomes.add(UNKNOWN)
    if finished is not None:
        outcomes |= _ended(event, finished)
    return outcomes


def _for_start(
    event: ResponseStarted | Response, life: Life | None, finished: Life | None, forgets: bool
) -> set[str]:
    outcomes: set[str] = set()
    known = life or finished
    if known is not None:
        wrong = "duplicate_start" if life is not None else FINISHED
        outcomes.add(REPEATED if known.digest == digest(event) else wrong)
    if known is None or (life is None and forgets):
        outcomes |= {BEGAN, TOO_LARGE}
        if isinstance(event, Response):
            outcomes.add(TOO_LONG)
    return outcomes


def _in_flight(event: Text, life: Life, max_answer_chars: int) -> set[str]:
    if isinstance(event, ResponseAborted):
        return {TOOK_EFFECT}
    if isinstance(event, ResponseCompleted):
        return {GAP} if life.reading and event.seq != life.next_seq else {TOOK_EFFECT}
    if event.seq < life.next_seq:
        return {REPEATED}
    if not life.reading:
        return {PASSED_OVER}
    if event.seq > life.next_seq:
        return {GAP}
    return {TOO_LONG} if len(life.text) + len(event.text) > max_answer_chars else {TOOK_EFFECT}


def _ended(event: Text, life: Life) -> set[str]:
    if not isinstance(event, ResponseDelta):
        return {REPEATED}
    if event.seq >= life.next_seq:
        return {FINISHED}
    return {REPEATED, FINISHED} if life.miscounted else {REPEATED}


def happened(event: Text, life: Life, outcome: str, now: float) -> None:
    """Carry the outcome over into the model, except the text, which is put there before."""
    if outcome == FINISHED:
        life.end_input()
    elif isinstance(event, ResponseCompleted) and outcome in {GAP, TOOK_EFFECT} and not life.input_ended:
        # A response that ended early ignores what was sent of it, also what comes late.
        life.next_seq = max(life.next_seq, event.seq)
        life.end_input()
    elif outcome in {GAP, TOO_LONG, WRONG_LANE}:
        life.reading = False
    elif outcome in {TOOK_EFFECT, PASSED_OVER}:
        if isinstance(event, ResponseDelta):
            life.next_seq = event.seq + 1
            life.noted(now)
        else:
            life.end_input()
    elif life.miscounted:
        # To the engine it may have been a new one, so that the time limit begins anew.
        life.last_event_at = now
