"""The two views and the summary, over the same events; and their cards, with hostile text, in any room."""

from __future__ import annotations

import io
from collections.abc import Iterable

import pytest
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
    running_card,
    summary,
)
from guardrail.events import Context, Decision, Response, ResponseDelta, ResponseStarted
from guardrail.judges import Verdict
from guardrail.render import Card, answer_text, finished_card, symbols_for
from tests.support.cases import flagged_case
from tests.unit.demo.events import blocked, card_of, claim, completed, segment, verdict
from tests.unit.render.shown import shown

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


# --------------------------------------------------------------------------------------------------- cards

UNICODE = symbols_for("utf-8")
ASCII = symbols_for("ascii")
PROSE = "Take one. Take nine. Rest."
HOSTILE = "[red]x[/red] \x1b[2J\x1b]0;t\x07 [/] \u202e[link=a]"


def test_judged_claims_are_followed_by_their_symbol() -> None:
    board, card = card_of(PROSE)
    board.apply(claim("Take one.", (0, 9)), 0.0)
    board.apply(claim("Take nine.", (10, 20), Verdict.CONTRADICTED, index=1), 0.0)
    assert answer_text(card, UNICODE, running=False).plain == "Take one. ✔ Take nine. ✘ Rest."


def test_verdicts_that_come_out_of_order_are_marked_in_their_places() -> None:
    board, card = card_of(PROSE)
    board.apply(claim("Take nine.", (10, 20), Verdict.CONTRADICTED, index=1), 0.0)
    board.apply(claim("Take one.", (0, 9)), 0.0)
    assert answer_text(card, ASCII, running=False).plain == "Take one. + Take nine. x Rest."


def test_text_that_was_never_shown_is_struck_through() -> None:
    board, card = card_of(PROSE)
    board.apply(segment("Take one. ", (0, 10)), 0.0)
    text = answer_text(card, UNICODE, running=False)
    struck = [span for span in text.spans if "strike" in str(span.style)]
    assert [(span.start, span.end) for span in struck] == [(10, len(PROSE))]


def test_words_without_support_are_underlined_where_they_stand() -> None:
    board, card = card_of(PROSE)
    marked = claim("Take nine.", (10, 20), Verdict.CONTRADICTED, index=1)
    board.apply(marked.model_copy(update={"unsupported_spans": ((15, 19),)}), 0.0)
    board.apply(claim("Take one.", (0, 9)), 0.0)
    text = answer_text(card, UNICODE, running=False)
    underlined = [text.plain[s.start : s.end] for s in text.spans if s.style == "underline"]
    assert underlined == ["nine"]


@pytest.mark.parametrize("height", [4, 5, 6, 8, 12])
@pytest.mark.parametrize("text", ["", "Short.", "word " * 300, "a\n" * 50, HOSTILE])
def test_a_running_card_has_the_height_it_was_given_and_no_line_is_too_wide(text: str, height: int) -> None:
    board, card = card_of(text, question="Why? " * 40, response_id="an-id-" * 20)
    if len(text) > 4:
        board.apply(claim(text[:4], (0, 4), quote="source " * 40, response_id="an-id-" * 20), 0.0)
    console = Console(file=io.StringIO(), width=80)
    lines = shown(running_card(card, UNICODE, console, 80, height)).splitlines()
    assert len(lines) == height
    assert all(len(line) <= 80 for line in lines)


def test_a_running_card_shows_the_end_of_the_text_and_the_last_claim_that_did_not_pass() -> None:
    board, card = card_of("begin " + "middle " * 100 + "the end")
    board.apply(claim("begin", (0, 5), Verdict.CONTRADICTED, quote="not begin"), 0.0)
    board.apply(claim("middle", (6, 12), index=1), 0.0)
    text = shown(running_card(card, UNICODE, Console(file=io.StringIO(), width=80), 80, 6))
    assert "the end▌" in text
    assert "✘ CONTRADICTED critical (dosage)" in text
    assert "not begin" in text


@pytest.mark.parametrize("width", [40, 80, 110])
def test_a_finished_card_says_without_colour_what_happened_and_why(width: int) -> None:
    board, card = card_of(PROSE)
    bad = claim(
        "Take nine.",
        (10, 20),
        Verdict.CONTRADICTED,
        index=1,
        quote="Take no more than three.",
        reasoning="9 is not 3",
    )
    judged = verdict(Decision.BLOCK, (claim("Take one.", (0, 9)), bad), score=0.5)
    events: tuple[BoardEvent, ...] = (segment("Take one. ", (0, 10)), blocked("Ask a doctor.", 10), judged)
    for event in (*judged.claims, *events):
        board.apply(event, 0.0)
    text = shown(finished_card(card, judged, UNICODE, width), width)
    flat = " ".join(text.replace("│", " ").split())
    for words in ("✘ BLOCKED", "CONTRADICTED", "Take no more than three.", "9 is not 3", "Ask a doctor."):
        assert words in flat
    assert "10 verified characters were shown, then withdrawn" in flat
    assert all(len(line) <= width for line in text.splitlines())


def test_a_redacted_card_says_what_stands_in_place_of_the_segment() -> None:
    board, card = card_of(PROSE)
    bad = claim("Take nine.", (10, 20), Verdict.UNSUPPORTED, quote=None)
    judged = verdict(Decision.REDACT, (bad,), score=0.0)
    cut = segment("[removed]", (10, 20), Decision.REDACT)
    events: tuple[BoardEvent, ...] = (bad, cut, completed(Decision.REDACT), judged)
    for event in events:
        board.apply(event, 0.0)
    lines = [line.strip("│ \n") for line in shown(finished_card(card, judged, UNICODE, 80)).splitlines()]
    assert lines[lines.index("THE USER READS") + 1] == "[removed]"
    assert "→ 1 passage replaced, the rest shown" in lines


@pytest.mark.parametrize("width", [80, 140])
def test_a_card_shows_the_documents_and_what_was_written_and_read_apart(width: int) -> None:
    board = Board()
    source = "Some history first, of no use here. " * 9 + "Take no more than three. Then rest."
    span = (source.index("Take no"), source.index(" Then"))
    contexts = (Context(id="leaflet", text=source), Context(id="other", text="Not quoted. " * 40))
    board.apply(ResponseStarted(response_id="r", question="How many?", contexts=contexts), 0.0)
    card = board.apply(ResponseDelta(response_id="r", seq=0, text="Take nine."), 0.0)
    assert card is not None
    bad = claim("Take nine.", (0, 10), Verdict.CONTRADICTED, quote=source[slice(*span)])
    evidence = bad.evidence[0].model_copy(update={"span": span})
    bad = bad.model_copy(update={"evidence": (evidence,)})
    judged = verdict(Decision.FLAG, (bad,), score=0.0)
    for event in (bad, segment("Take nine.", (0, 10)), completed(Decision.FLAG), judged):
        board.apply(event, 0.0)
    text = shown(finished_card(card, judged, UNICODE, width), width)
    flat = " ".join(text.replace("│", " ").split())
    assert text.index("THE DOCUMENTS (2)") < text.index("THE MODEL WROTE") < text.index("THE USER READS")
    assert ("THE MODEL WROTE" in next(line for line in text.splitlines() if "THE DOC" in line)) == (
        width == 140
    )
    assert "leaflet: …" in flat
    assert "other: Not quoted." in flat
    assert "the policy of this route only flags" in flat
    bold = shown(finished_card(card, judged, UNICODE, width), width, colour=True)
    assert "\x1b[1mTake" in bold


def test_an_answer_with_nothing_to_check_says_so() -> None:
    board, card = card_of("I don't know.")
    judged = verdict(score=None)
    board.apply(judged, 0.0)
    text = shown(finished_card(card, judged, UNICODE, 80))
    assert "nothing to check" in text
    assert "score -" in text


@pytest.mark.parametrize("colour", [False, True])
def test_hostile_text_is_neither_markup_nor_a_command_to_the_terminal(colour: bool) -> None:
    board, card = card_of(HOSTILE, question=HOSTILE)
    bad = claim(HOSTILE, (0, 5), Verdict.UNSUPPORTED, quote=HOSTILE, reasoning=HOSTILE)
    judged = verdict(Decision.BLOCK, (bad,))
    for event in (bad, blocked(HOSTILE, 0), judged):
        board.apply(event, 0.0)
    text = shown(finished_card(card, judged, UNICODE, 80), colour=colour)
    text += shown(running_card(card, UNICODE, Console(file=io.StringIO(), width=80), 80, 8), colour=colour)
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "[link=a]" in text


@pytest.mark.parametrize("width", [1, 10, 20])
def test_no_terminal_is_too_narrow_to_draw_in(width: int) -> None:
    board, card = card_of(HOSTILE + "価格は三千円です。" * 20, question="価格は？" * 20)
    bad = claim(HOSTILE, (0, 5), Verdict.CONTRADICTED, reasoning="三" * 99)
    judged = verdict(Decision.BLOCK, (bad,))
    events: tuple[BoardEvent, ...] = (bad, blocked(HOSTILE, 0), judged)
    for event in events:
        board.apply(event, 0.0)
    console = Console(file=io.StringIO(), width=width)
    lines = shown(running_card(card, UNICODE, console, width, 4), width).splitlines()
    assert len(lines) == 4
    assert "✘" in shown(finished_card(card, judged, UNICODE, width), max(width, 4)) or width < 10
