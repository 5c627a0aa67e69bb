"""The demo on a terminal, or as plain lines for files, pipes and simple terminals.

On a terminal finished answers stay above as panels, running ones move below. Text is put into
``rich.text.Text`` and never parsed as markup, after its control characters are made visible. Colour never
says what a word or symbol does not say too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, Protocol, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from guardrail.demo.board import LANES, Board, BoardEvent
from guardrail.events import (
    ClaimVerdict,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Response,
    ResponseStarted,
    ResponseVerdict,
    Verdict,
)
from guardrail.render import (
    DECISION_WORDS,
    VERDICT_STYLES,
    Card,
    Symbols,
    answer_text,
    counted,
    decided,
    duration,
    finished_card,
    one_line,
    score,
    verdict_words,
)


class View(Protocol):
    """Shows the demo. All calls come from one task, in the order of the events."""

    def open(self, responses: Sequence[Response]) -> None:
        """Called once, first: what is to come."""
        ...

    def show(self, event: BoardEvent, card: Card) -> None:
        """An event was applied to this card."""
        ...

    def tick(self, board: Board) -> None:
        """Called several times a second; where a moving picture is drawn."""
        ...

    def close(self) -> None:
        """Called once, last, however the demo ended; leaves the terminal as it was found."""
        ...


def running_card(card: Card, symbols: Symbols, console: Console, width: int, height: int) -> RenderableType:
    """A response being written, in exactly ``height`` lines: title, end of the text, latest claim."""
    counts = Text()
    for claim in card.claims[-30:]:
        counts.append(symbols.verdicts[claim.verdict], VERDICT_STYLES[claim.verdict])
    title = Text.assemble(
        (f"{symbols.arrow} ", "bold cyan"),
        (one_line(card.response_id, 40, symbols.ellipsis), "bold"),
        (f" {symbols.dot} {one_line(card.head.route or 'default', 20, symbols.ellipsis)} ", "cyan"),
        counts,
    )
    lines = [title]
    if height >= 6:
        lines.append(Text(one_line(f"Q: {card.head.question}", width - 2, symbols.ellipsis), "italic"))
    room = height - len(lines) - 1
    wrapped = answer_text(card, symbols, running=True).wrap(console, width - 2)
    tail = list(wrapped[-room:])
    lines += tail + [Text()] * (room - len(tail))
    lines.append(_latest_claim(card, symbols, width - 2))
    for line in lines:
        line.truncate(width - 2, overflow="crop")
        line.no_wrap = True
    return Group(lines[0], *(Text("  ") + line for line in lines[1:]))


def _latest_claim(card: Card, symbols: Symbols, width: int) -> Text:
    """One line on the claim judged last, or on the last one that did not pass."""
    if not card.claims:
        return Text("no claim judged yet", "dim")
    claim = next(
        (claim for claim in reversed(card.claims) if claim.verdict is not Verdict.SUPPORTED), card.claims[-1]
    )
    line = verdict_words(claim, symbols)
    if claim.verdict is Verdict.SUPPORTED:
        # A quote that is cut off would often lack the very words.
        names = list(dict.fromkeys(evidence.context_id for evidence in claim.evidence))
        line.append(f" {symbols.dot} {one_line(', '.join(names), width, symbols.ellipsis)}", "dim")
    elif claim.evidence:
        room = max(12, width - line.cell_len - 4)
        quote = one_line(claim.evidence[0].quote, room, symbols.ellipsis)
        line.append(f" {symbols.dot} {symbols.quotes[0]}{quote}{symbols.quotes[1]}", "dim")
    elif claim.reasoning:
        line.append(f" {symbols.dot} {one_line(claim.reasoning, width, symbols.ellipsis)}", "dim")
    return line


_MAX_WIDTH: Final = 140
"""Longer lines are hard to read."""
_MAX_CARD_HEIGHT: Final = 8
_MIN_CARD_HEIGHT: Final = 4


class LiveView:
    """Drawn anew at every tick, in the caller's task: no thread, so nothing is left when it ends."""

    def __init__(self, console: Console, symbols: Symbols) -> None:
        self._console = console
        self._symbols = symbols
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._answers = 0
        self._printed: set[str] = set()
        self._started_s = 0.0

    def open(self, responses: Sequence[Response]) -> None:
        self._answers = len(responses)
        self._started_s = time.monotonic()
        self._live.start()

    def show(self, event: BoardEvent, card: Card) -> None:  # noqa: ARG002 - the card has it already
        if card.finished and card.verdict is not None and card.response_id not in self._printed:
            self._printed.add(card.response_id)
            self._console.print(finished_card(card, card.verdict, self._symbols, self._width))

    def tick(self, board: Board) -> None:
        self._live.update(self._picture(board), refresh=True)

    def close(self) -> None:
        self._live.stop()

    @property
    def _width(self) -> int:
        return min(self._console.width, _MAX_WIDTH)

    def _picture(self, board: Board) -> RenderableType:
        """The running cards over one line of totals; at most two thirds of the terminal's height."""
        running = board.running[-LANES:]
        room = self._console.height * 2 // 3 - 2
        height = max(_MIN_CARD_HEIGHT, min(_MAX_CARD_HEIGHT, room // max(1, LANES)))
        shown = running[-max(1, (self._console.height - 2) // height) :]
        cards = [running_card(card, self._symbols, self._console, self._width, height) for card in shown]
        return Group(*cards, self._totals(board))

    def _totals(self, board: Board) -> Text:
        counts = dict.fromkeys(Verdict, 0)
        for card in board.cards.values():
            for claim in card.claims:
                counts[claim.verdict] += 1
        dot = self._symbols.dot
        line = Text(f"{self._symbols.rule * 3} guardrail demo {dot} ", "dim")
        line.append(f"{len(board.finished)}/{self._answers} answers {dot} {sum(counts.values())} claims ")
        for verdict, count in counts.items():
            if count:
                line.append(f" {self._symbols.verdicts[verdict]} {count}", VERDICT_STYLES[verdict])
        line.append(f" {dot} {time.monotonic() - self._started_s:.0f} s", "dim")
        line.truncate(self._width, overflow="ellipsis")
        return line


_TEXT_LIMIT: Final = 160


class PlainView:
    """Writes lines of the form ``WORD RESPONSE_ID detail…``: no escape sequence, no moving cursor.

    Words: ``started``; ``claim`` with its ``evidence`` and ``reason``; ``released``, ``flagged`` and
    ``redacted`` for a piece of text that was shown, ``blocked`` for the message in its place; ``decided``.
    """

    def __init__(self, out: TextIO, symbols: Symbols) -> None:
        self._out = out
        self._symbols = symbols
        self._id_width = 0

    def open(self, responses: Sequence[Response]) -> None:
        self._id_width = max(len(response.response_id) for response in responses)

    def show(self, event: BoardEvent, card: Card) -> None:
        match event:
            case ResponseStarted():
                self._line("started", card, self._quote(event.question))
            case ClaimVerdict():
                self._claim(event, card)
            case DeliverySegment():
                # Blank segments carry the text's line breaks, and observed text leaves token by token.
                if event.segment is not None and event.text.strip():
                    self._line(DECISION_WORDS[event.decision].lower(), card, self._quote(event.text))
            case DeliveryCompleted():
                if card.observed:
                    self._line("released", card, f"at once: {self._quote(card.delivered)}")
            case DeliveryBlocked():
                shown = f"{event.released_chars} characters were shown before, now replaced by"
                self._line("blocked", card, f"{shown} {self._quote(event.message)}")
            case ResponseVerdict():
                self._decided(event, card)

    def tick(self, board: Board) -> None:
        pass

    def close(self) -> None:
        """Nothing is held back: every line was flushed as it was written."""

    def _claim(self, claim: ClaimVerdict, card: Card) -> None:
        reasons = f" ({', '.join(claim.severity_reasons)})" if claim.severity_reasons else ""
        mark = self._symbols.verdicts[claim.verdict]
        number = f"#{claim.index + 1}"
        judged = f"{number} {mark} {claim.verdict} {claim.severity}{reasons}"
        self._line("claim", card, f"{judged} {self._quote(claim.text)}")
        for evidence in claim.evidence[:1]:
            source = one_line(evidence.context_id, 40)
            self._line("evidence", card, f"{number} {source} {self._quote(evidence.quote)}")
        if claim.verdict is not Verdict.SUPPORTED and claim.reasoning:
            reasoning = one_line(claim.reasoning, _TEXT_LIMIT, self._symbols.ellipsis)
            self._line("reason", card, f"{number} {reasoning}")

    def _decided(self, verdict: ResponseVerdict, card: Card) -> None:
        claims = counted(len(verdict.claims), "claim")
        parts = [
            decided(verdict.decision, verdict.mode)[0],
            f"policy {one_line(verdict.policy.name, 40)} ({verdict.mode})",
            f"rule: {one_line(verdict.rule, 80)}",
            f"score {score(verdict.score)}",
            claims,
            f"delay p50 {duration(card.delay_p50_ms)}",
        ]
        self._line("decided", card, "; ".join(parts))

    def _quote(self, text: str) -> str:
        opening, closing = self._symbols.quotes
        return opening + one_line(text, _TEXT_LIMIT, self._symbols.ellipsis) + closing

    def _line(self, word: str, card: Card, detail: str) -> None:
        self._out.write(f"{word:<8} {one_line(card.response_id, 64):<{self._id_width}}  {detail}\n")
        self._out.flush()
