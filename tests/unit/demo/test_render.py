"""Cards of the live view: what they say, in how much room, without colour and with hostile text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from guardrail.demo import Board, BoardEvent, running_card
from guardrail.events import Context, Decision, ResponseDelta, ResponseStarted
from guardrail.judges import Verdict
from guardrail.render import answer_text, finished_card, symbols_for
from tests.unit.demo.events import blocked, card_of, claim, completed, segment, verdict
from tests.unit.render.shown import shown

UNICODE = symbols_for("utf-8")
ASCII = symbols_for("ascii")
TEXT = "Take one. Take nine. Rest."
HOSTILE = "[red]x[/red] \x1b[2J\x1b]0;t\x07 [/] \u202e[link=a]"


def test_judged_claims_are_followed_by_their_symbol() -> None:
    board, card = card_of(TEXT)
    board.apply(claim("Take one.", (0, 9)), 0.0)
    board.apply(claim("Take nine.", (10, 20), Verdict.CONTRADICTED, index=1), 0.0)
    assert answer_text(card, UNICODE, running=False).plain == "Take one. ✔ Take nine. ✘ Rest."


def test_verdicts_that_come_out_of_order_are_marked_in_their_places() -> None:
    board, card = card_of(TEXT)
    board.apply(claim("Take nine.", (10, 20), Verdict.CONTRADICTED, index=1), 0.0)
    board.apply(claim("Take one.", (0, 9)), 0.0)
    assert answer_text(card, ASCII, running=False).plain == "Take one. + Take nine. x Rest."


def test_text_that_was_never_shown_is_struck_through() -> None:
    board, card = card_of(TEXT)
    board.apply(segment("Take one. ", (0, 10)), 0.0)
    text = answer_text(card, UNICODE, running=False)
    struck = [span for span in text.spans if "strike" in str(span.style)]
    assert [(span.start, span.end) for span in struck] == [(10, len(TEXT))]


def test_words_without_support_are_underlined_where_they_stand() -> None:
    board, card = card_of(TEXT)
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
    board, card = card_of(TEXT)
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
    board, card = card_of(TEXT)
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
