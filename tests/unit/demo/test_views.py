"""The two views and the summary, over the same events."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from guardrail.demo import (
    Board,
    BoardEvent,
    DemoAnswer,
    LiveView,
    PlainView,
    View,
    as_expected,
    introduction,
    load_demo_settings,
    load_examples,
    summary,
)
from guardrail.events import Decision, Response, ResponseDelta, ResponseStarted
from guardrail.judges import Verdict
from guardrail.render import Card, symbols_for
from tests.support.cases import flagged_case
from tests.unit.demo.events import blocked, claim, completed, segment, verdict

TEXT = "Take one. Take nine."
GOOD = Response(response_id="good", question="How many?", answer="Take one.")
BAD = Response(response_id="bad", question="How many?\x1b[2J", answer=TEXT)
WRONG = claim(
    "Take nine.", (10, 20), Verdict.CONTRADICTED, response_id="bad", index=1, reasoning="9 is not 3"
)
EVENTS: tuple[BoardEvent, ...] = (
    ResponseStarted(response_id="good", question=GOOD.question),
    ResponseStarted(response_id="bad", question=BAD.question),
    ResponseDelta(response_id="good", seq=0, text="Take one."),
    ResponseDelta(response_id="bad", seq=0, text=TEXT),
    claim("Take one.", (0, 9), response_id="good"),
    segment("Take one.", (0, 9), response_id="good"),
    completed(response_id="good"),
    verdict(claims=(claim("Take one.", (0, 9), response_id="good"),), response_id="good"),
    claim("Take one.", (0, 9), response_id="bad"),
    segment("Take one. ", (0, 10), response_id="bad"),
    WRONG,
    blocked("Ask a doctor.", 10, response_id="bad"),
    verdict(
        Decision.BLOCK, (claim("Take one.", (0, 9), response_id="bad"), WRONG), response_id="bad", score=0.5
    ),
    flagged_case(response_id="bad"),
)
EXAMPLES = (
    DemoAnswer(GOOD, "medication", Decision.RELEASE, None),
    DemoAnswer(BAD, "medication", Decision.BLOCK, "Take nine."),
)


def played(view: View, events: Iterable[BoardEvent] = EVENTS) -> Board:
    board = Board()
    view.open([GOOD, BAD])
    for event in events:
        card = board.apply(event, 0.0)
        assert card is not None
        view.show(event, card)
        view.tick(board)
    view.close()
    return board


def test_the_plain_view_writes_one_line_an_event_with_a_stable_first_word() -> None:
    out = io.StringIO()
    played(PlainView(out, symbols_for("utf-8")))
    lines = out.getvalue().splitlines()
    words = "started started claim evidence released decided"
    words += " claim evidence released claim evidence reason blocked decided"
    assert [line.split()[0] for line in lines] == words.split()
    assert all(line.split()[1] in {"good", "bad"} for line in lines)
    assert "✘ CONTRADICTED critical (dosage) “Take nine.”" in lines[9]
    assert "10 characters were shown before, now replaced by “Ask a doctor.”" in lines[12]
    assert "\x1b" not in out.getvalue()


def test_the_plain_view_shows_observed_text_once_and_not_token_by_token() -> None:
    out = io.StringIO()
    events = (
        *EVENTS[:1],
        EVENTS[2],
        segment("Take ", (0, 5), response_id="good", index=None),
        segment("one.", (5, 9), response_id="good", index=None),
        completed(response_id="good"),
    )
    played(PlainView(out, symbols_for("utf-8")), events)
    assert out.getvalue().splitlines()[1:] == ["released good  at once: “Take one.”"]


def live(height: int = 24, *, no_color: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        width=80,
        height=height,
        force_terminal=True,
        color_system="standard",
        no_color=no_color,
        _environ={},  # not the TERM of a machine whose terminal is dumb
    )
    played(LiveView(console, symbols_for("utf-8")))
    return out.getvalue()


def test_the_live_view_leaves_a_panel_of_every_finished_answer_and_the_cursor_visible() -> None:
    text = live()
    assert text.count("RELEASED") == 1
    assert text.count("BLOCKED") == 1
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_the_live_view_obeys_no_color() -> None:
    assert "\x1b[32m" in live()
    plain = live(no_color=True)
    assert not any(f"\x1b[{code}m" in plain for code in (*range(30, 38), *range(90, 98)))
    assert "✘ CONTRADICTED" in plain


def test_the_live_view_fits_into_a_terminal_of_a_few_lines() -> None:
    assert "BLOCKED" in live(height=6)


def test_the_summary_has_a_row_for_every_answer_and_says_what_was_caught() -> None:
    board = played(PlainView(io.StringIO(), symbols_for("utf-8")))
    out = io.StringIO()
    Console(file=out, width=80).print(summary(board, EXAMPLES, symbols_for("utf-8"), 80))
    text = out.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "2 answers: 1 released, 1 blocked; 3 claims: 2✔ 1✘" in text
    assert "caught: 1 of 1 answer with one wrong detail: 1 blocked, as their policies say" in text
    assert "released untouched: 1 of 1 faithful answer" in text


def test_what_was_caught_is_counted_by_what_became_of_it() -> None:
    examples = load_examples()
    cards = {}
    for example in examples:
        head = example.response
        wrong = example.bad_claim or ""
        found = claim(wrong, (0, 1), Verdict.CONTRADICTED, response_id=head.response_id)
        card = Card(head, verdict=verdict(example.decision, (found,), response_id=head.response_id))
        cards[head.response_id] = card
    board = Board()
    board.cards = cards
    out = io.StringIO()
    Console(file=out, width=120).print(summary(board, examples, symbols_for("utf-8"), 120))
    assert (
        "caught: 8 of 8 answers with one wrong detail: 3 blocked, 3 redacted, 2 shown and flagged, as their "
        "policies say" in out.getvalue()
    )


def test_the_introduction_says_what_is_seen_and_what_marks_and_policies_mean() -> None:
    settings, examples = load_demo_settings(), load_examples()
    text = introduction(examples, settings, "local", symbols_for("utf-8")).plain
    assert text.startswith("14 prepared answers are written token by token")
    assert "8 of them have one wrong detail" in text
    assert "✔ supported  ≈ partially supported  ? unsupported  ✘ contradicted  ! unverified" in text
    lines = [line.split(maxsplit=2) for line in text.splitlines() if " policy" in line]
    assert {name for name, _, _ in lines} == {"careful", "cutting", "strict", "advisory", "shadow"}
    assert all(what for *_, what in lines)
    assert text.splitlines()[-1].split() == ["judge", "local"]
    assert introduction(examples, settings, "local", symbols_for("ascii")).plain.isascii()


def test_the_summary_does_not_count_as_caught_what_was_blocked_for_another_claim() -> None:
    board = played(PlainView(io.StringIO(), symbols_for("utf-8")))
    assert as_expected(EXAMPLES[1], board.cards["bad"])
    other = DemoAnswer(BAD, "medication", Decision.BLOCK, "Take one.")
    assert not as_expected(other, board.cards["bad"])
