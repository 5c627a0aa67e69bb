"""Answers put together from the records of a topic: whole ones, streamed ones, and those with a hole."""

from __future__ import annotations

from guardrail.cli.evaluate_sources import Assembler
from guardrail.evals import BadSample, Sample
from guardrail.events import (
    Context,
    Event,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
)
from tests.support.cases import flagged_case
from tests.unit.demo.events import verdict


def started(response_id: str = "r") -> ResponseStarted:
    contexts = (Context(id="c", text="It costs 49 euros."),)
    return ResponseStarted(response_id=response_id, question="How much?", contexts=contexts, route="sales")


def delta(seq: int, text: str, response_id: str = "r") -> ResponseDelta:
    return ResponseDelta(response_id=response_id, seq=seq, text=text)


def completed(seq: int, response_id: str = "r") -> ResponseCompleted:
    return ResponseCompleted(response_id=response_id, seq=seq)


def taken(assembler: Assembler, *events: Event) -> list[Sample | BadSample]:
    return [
        each
        for offset, event in enumerate(events)
        for each in assembler.add(event.to_json(), f"offset {offset}")
    ]


def problem(found: list[Sample | BadSample]) -> tuple[str, str]:
    (only,) = found
    assert isinstance(only, BadSample)
    return only.place, only.error


def test_deltas_are_joined_and_a_repeated_one_counts_once() -> None:
    events = (
        started(),
        delta(0, "It costs "),
        started("s"),
        delta(0, "It costs "),
        delta(1, "49."),
        completed(2),
    )
    (found,) = taken(assembler := Assembler(), *events)
    assert isinstance(found, Sample)
    response = found.response
    assert (response.answer, response.route, response.question) == ("It costs 49.", "sales", "How much?")
    assert response.contexts == started().contexts
    assert found.place == "offset 0"
    assert problem(list(assembler.end())) == (
        "offset 2",
        "the answer that began here had no end in the range; read further with --until",
    )


def test_whole_responses_and_flagged_cases_are_samples_at_once() -> None:
    whole = Response(response_id="w", answer="Yes.")
    flagged = flagged_case(answer="No.", route="sales")
    first, second = taken(Assembler(), whole, flagged)
    assert isinstance(first, Sample)
    assert isinstance(second, Sample)
    assert first.response == whole
    assert (second.response.answer, second.response.route) == ("No.", "sales")


def test_an_answer_with_a_hole_or_without_an_end_is_an_error_at_its_beginning() -> None:
    for events, words in (
        ((started(), delta(1, "x")), "delta 0 is missing"),
        ((started(), delta(0, "x"), completed(2)), "2 deltas were sent, 1 came"),
        ((started(), ResponseAborted(response_id="r")), "was aborted"),
        ((started(), started()), "began a second time"),
    ):
        place, error = problem(taken(Assembler(), *events))
        assert place == "offset 0"
        assert words in error


def test_what_began_before_the_range_is_counted() -> None:
    assembler = Assembler()
    assert taken(assembler, delta(3, "x"), completed(4)) == []
    assert assembler.begun_before == 2


def test_records_that_are_no_answers_are_errors() -> None:
    assert "type 'verdict.response': not an answer" in problem(taken(Assembler(), verdict()))[1]
    assert "not valid JSON" in problem(list(Assembler().add(b"{", "offset 0")))[1]
    omitted = flagged_case(omitted=("contexts",))
    assert "without its documents" in problem(taken(Assembler(), omitted))[1]


def test_memory_is_bounded_by_giving_up_the_oldest() -> None:
    assembler = Assembler(max_chars=100)
    found = taken(assembler, started("old"), started("new"), delta(0, "x" * 90, "new"), completed(1, "new"))
    assert isinstance(found[0], BadSample)
    assert found[0].place == "offset 0"
    assert isinstance(found[1], Sample)
    assert list(assembler.end()) == []
