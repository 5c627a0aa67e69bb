"""The demo on a terminal, or as plain lines for files, pipes and simple terminals.

On a terminal finished answers stay above as panels, running ones move below. Text is put into
``rich.text.Text`` and never parsed as markup, after its control characters are made visible. Colour never
says what a word or symbol does not say too.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.decisions import decided_by_score
from guardrail.demo.board import LANES, Board, BoardEvent, Card
from guardrail.events import (
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    Response,
    ResponseStarted,
    ResponseVerdict,
    Verdict,
    claim_that_decided,
)
from guardrail.printable import escape_controls


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


VERDICT_STYLES: Final = {
    Verdict.SUPPORTED: "green",
    Verdict.PARTIALLY_SUPPORTED: "yellow",
    Verdict.UNSUPPORTED: "yellow",
    Verdict.CONTRADICTED: "bold red",
    Verdict.UNVERIFIED: "magenta",
}
DECISION_STYLES: Final = {
    Decision.RELEASE: "green",
    Decision.FLAG: "yellow",
    Decision.REDACT: "dark_orange",
    Decision.BLOCK: "red",
}
DECISION_WORDS: Final = {
    Decision.RELEASE: "RELEASED",
    Decision.FLAG: "FLAGGED",
    Decision.REDACT: "REDACTED",
    Decision.BLOCK: "BLOCKED",
}


def counted(number: int, what: str) -> str:
    """``1 claim``, ``1,200 claims``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def decided(decision: Decision, mode: str | None) -> tuple[str, str]:
    """The decision in words and its style; of an answer that was only observed, what it would have been."""
    words, style = DECISION_WORDS[decision], DECISION_STYLES[decision]
    if mode == "observe" and decision is not Decision.RELEASE:
        return f"would be {words}", style
    return words, f"bold {style}"


@dataclass(frozen=True, slots=True)
class Symbols:
    """Marks of one cell each, in what the output's encoding can carry."""

    verdicts: dict[Verdict, str]
    decisions: dict[Decision, str]
    ellipsis: str
    dot: str
    cursor: str
    arrow: str
    quotes: tuple[str, str]
    rule: str


_UNICODE: Final = Symbols(
    verdicts={
        Verdict.SUPPORTED: "✔",
        Verdict.PARTIALLY_SUPPORTED: "≈",
        Verdict.UNSUPPORTED: "?",
        Verdict.CONTRADICTED: "✘",
        Verdict.UNVERIFIED: "!",
    },
    decisions={Decision.RELEASE: "✔", Decision.FLAG: "⚑", Decision.REDACT: "▒", Decision.BLOCK: "✘"},
    ellipsis="…",
    dot="·",
    cursor="▌",
    arrow="→",
    quotes=("“", "”"),
    rule="─",
)
_ASCII: Final = Symbols(
    verdicts={
        Verdict.SUPPORTED: "+",
        Verdict.PARTIALLY_SUPPORTED: "~",
        Verdict.UNSUPPORTED: "?",
        Verdict.CONTRADICTED: "x",
        Verdict.UNVERIFIED: "!",
    },
    decisions={Decision.RELEASE: "+", Decision.FLAG: "!", Decision.REDACT: "#", Decision.BLOCK: "x"},
    ellipsis="...",
    dot="-",
    cursor="_",
    arrow="->",
    quotes=('"', '"'),
    rule="-",
)


def symbols_for(encoding: str) -> Symbols:
    """Unicode marks where the encoding has them, ASCII ones elsewhere."""
    return _UNICODE if encoding.lower().replace("-", "").startswith("utf") else _ASCII


def visible(text: str) -> str:
    """Text of unknown origin, made harmless for a terminal.

    Control characters (escape sequences begin with one), direction overrides, zero-width and unassigned
    characters, line separators and lone surrogates become U+FFFD, one for one, so that spans stay true. New
    lines stay and tabs become spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char == "\n":
        return char
    if char == "\t":
        return " "
    category = unicodedata.category(char)
    if char == "\u200d" or not (category.startswith("C") or category in {"Zl", "Zp"}):
        return char
    return "\ufffd"


def one_line(text: str, limit: int, ellipsis: str = "…") -> str:
    """Text of unknown origin on one line of at most ``limit`` characters, white space folded."""
    # The slice keeps the cost bounded for a text of megabytes of which one line is shown.
    line = escape_controls(" ".join(text[: 8 * limit + 64].split()))
    return line if len(line) <= limit else line[: max(0, limit - len(ellipsis))].rstrip() + ellipsis


def milliseconds(value: float | None) -> str:
    """A duration to read: ``-`` for none, ms under a second, then seconds."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def score(value: float | None) -> str:
    """Two decimals, never rounded up to 1.00; ``-`` when nothing was checked."""
    if value is None:
        return "-"
    return "1.00" if value >= 1.0 else f"{min(value, 0.99):.2f}"


_PENDING_STYLE: Final = "dim"
_UNSUPPORTED_STYLE: Final = "underline"
_NOT_SHOWN_STYLE: Final = "dim strike"


def answer_text(
    card: Card, symbols: Symbols, *, running: bool, delivered: bool = True, shown_to: int | None = None
) -> Text:
    """The answer as written so far: judged claims in the colour of their verdict with its symbol behind,
    words that have no support underlined, text not released yet dim, text that was kept back struck
    through. ``delivered`` is False where there was nobody to show it to. It was released up to ``shown_to``;
    when left out, as the card's segments say."""
    raw = visible(card.text)
    text = Text(raw)
    if delivered:
        if shown_to is None:
            shown_to = max((segment.span[1] for segment in card.segments), default=0)
        text.stylize(_PENDING_STYLE if running else _NOT_SHOWN_STYLE, shown_to)
    for claim in card.claims:
        text.stylize(VERDICT_STYLES[claim.verdict], *claim.span)
        for span in claim.unsupported_spans:
            text.stylize(_UNSUPPORTED_STYLE, *span)
    for segment in card.segments:
        if segment.decision is Decision.REDACT:
            text.stylize("strike", *segment.span)
    # Last to first, so that the spans before stay true.
    for claim in sorted(card.claims, key=lambda claim: claim.span[1], reverse=True):
        mark = Text(f" {symbols.verdicts[claim.verdict]}", VERDICT_STYLES[claim.verdict])
        text = text[: claim.span[1]] + mark + text[claim.span[1] :]
    if running and not card.finished:
        text.append(symbols.cursor, "bold")
    if not running and isinstance(card.end, DeliveryBlocked):
        text.append(" [stopped here]", "dim")
    return _without_blank_lines(text)


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


def finished_card(
    card: Card,
    verdict: ResponseVerdict,
    symbols: Symbols,
    width: int,
    *,
    delivered: bool = True,
) -> RenderableType:
    """A response when everything is known of it: what it was written from, what was written and what of it
    the user reads, what was wrong. ``delivered`` is False for one that was judged for nobody to read."""
    style = DECISION_STYLES[verdict.decision]
    words, bold = decided(verdict.decision, verdict.mode)
    title = Text.assemble(
        (f"{symbols.decisions[verdict.decision]} {words}", bold),
        (f" {symbols.dot} ", style),
        (one_line(card.response_id, 40, symbols.ellipsis), "bold"),
    )
    facts = (
        f"rule: {verdict.rule}",
        f"policy: {verdict.policy.name}, {verdict.mode} mode",
        f"score {score(verdict.score)}",
        f"{len(verdict.claims)} claim{'' if len(verdict.claims) == 1 else 's'}",
    )
    parts: list[RenderableType] = [
        Text(one_line(f"Q: {card.head.question}", 2 * (width - 4), symbols.ellipsis), "italic"),
        _side_by_side(_documents(card, verdict, symbols), _texts(card, verdict, symbols, delivered), width),
    ]
    doubtful = [claim for claim in verdict.claims if claim.verdict is not Verdict.SUPPORTED]
    told = told_first(doubtful, verdict)
    parts += [claim_rows(claim, symbols, width, said=said if told[1:] else "") for claim, said in told]
    if not doubtful and verdict.claims:
        mark = symbols.verdicts[Verdict.SUPPORTED]
        parts.append(Text(f"{mark} all supported; what backs them is bold in the documents", "green"))
    outcome = _outcome(card, verdict, symbols) if delivered else _would(verdict, symbols)
    if outcome is not None:
        parts.append(outcome)
    parts.append(
        Text(one_line(f" {symbols.dot} ".join(facts), 3 * max(1, width - 4), symbols.ellipsis), "dim")
    )
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        border_style=style,
        box=box.ROUNDED,
        width=width,
    )


_WIDE: Final = 100
"""From here on documents stand beside the answer, and not above it."""
_MOST_DOCUMENTS: Final = 8
_MOST_OF_A_DOCUMENT: Final = 600
_BEGINNING: Final = 90
_AROUND: Final = 70
"""Characters shown of a document: in all, of one that was not quoted, before and after a quote."""


def _side_by_side(left: RenderableType, right: RenderableType, width: int) -> RenderableType:
    if width < _WIDE:
        return Group(left, right)
    columns = Table.grid(padding=(0, 2))
    columns.add_column(ratio=9)
    columns.add_column(ratio=11)
    columns.add_row(left, right)
    return columns


def _documents(card: Card, verdict: ResponseVerdict, symbols: Symbols) -> RenderableType:
    """What the answer was written from, as far as claims rest on it; what they rest on is bold."""
    contexts = card.head.contexts
    count = len(contexts)
    lines = [Text(f"THE DOCUMENTS ({count})" if count else "NO DOCUMENTS", "dim")]
    for context in contexts[:_MOST_DOCUMENTS]:
        spans = sorted(
            {
                evidence.span
                for claim in verdict.claims
                for evidence in claim.evidence
                if evidence.context_id == context.id
            }
        )
        name = f"{one_line(context.id, 40, symbols.ellipsis)}: "
        lines.append(Text.assemble((name, "cyan"), _excerpt(context.text, spans, symbols)))
    if count > _MOST_DOCUMENTS:
        lines.append(Text(f"and {count - _MOST_DOCUMENTS} more", "dim"))
    return Group(*lines)


def _excerpt(text: str, spans: Sequence[tuple[int, int]], symbols: Symbols) -> Text:
    """The text around ``spans``, those bold; of a text without any, its beginning."""
    if not spans:
        return Text(one_line(text, _BEGINNING, symbols.ellipsis), "dim")
    excerpt, at, room = Text(), 0, _MOST_OF_A_DOCUMENT
    for start, end in spans:
        start = max(start, at)
        if start >= min(end, len(text)) or room <= 0:
            continue
        begin = _word_start(text, max(at, start - _AROUND))
        if begin > at:
            excerpt.append(f"{symbols.ellipsis} " if not excerpt else f" {symbols.ellipsis} ", "dim")
        excerpt.append(_flat(text[begin:start]), "dim")
        quote = text[start:end]
        excerpt.append(one_line(quote, room, symbols.ellipsis) if len(quote) > room else _flat(quote), "bold")
        room -= end - begin
        at = end
    after = text[at : at + _AROUND]
    excerpt.append(_flat(after if at + _AROUND >= len(text) else after.rpartition(" ")[0]), "dim")
    if at + _AROUND < len(text):
        excerpt.append(f" {symbols.ellipsis}", "dim")
    return excerpt


def _word_start(text: str, at: int) -> int:
    """The start of the first word from ``at`` on, within reason."""
    if at == 0 or text[at - 1].isspace():
        return at
    space = text.find(" ", at, at + 30)
    return at if space < 0 else space + 1


def _flat(text: str) -> str:
    """On one line, and harmless; spaces at its ends stay."""
    return visible(text).replace("\n", " ")


def _texts(card: Card, verdict: ResponseVerdict, symbols: Symbols, delivered: bool) -> RenderableType:
    """What the model wrote, and what of it the user reads."""
    wrote = answer_text(card, symbols, running=False, delivered=delivered)
    parts = [Text("THE MODEL WROTE", "dim"), wrote]
    if not delivered:
        return Group(*parts)
    parts.append(Text("THE USER READS", "dim"))
    if isinstance(card.end, DeliveryBlocked):
        parts.append(Text(visible(card.end.message), "red"))
    elif verdict.decision is Decision.REDACT:
        reads = Text()
        for segment in card.segments:
            reads.append(visible(segment.text), "dark_orange" if segment.decision is Decision.REDACT else "")
        parts.append(_without_blank_lines(reads))
    else:
        parts.append(Text("the same", "green"))
    return Group(*parts)


def _latest_claim(card: Card, symbols: Symbols, width: int) -> Text:
    """One line on the claim judged last, or on the last one that did not pass."""
    if not card.claims:
        return Text("no claim judged yet", "dim")
    claim = next(
        (claim for claim in reversed(card.claims) if claim.verdict is not Verdict.SUPPORTED), card.claims[-1]
    )
    line = _verdict_words(claim, symbols)
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


def _verdict_words(claim: ClaimVerdict, symbols: Symbols, limit: int = 48) -> Text:
    reasons = f" ({', '.join(claim.severity_reasons)})" if claim.severity_reasons else ""
    return Text.assemble(
        (f"{symbols.verdicts[claim.verdict]} {claim.verdict}", VERDICT_STYLES[claim.verdict]),
        " " + one_line(f"{claim.severity}{reasons}", limit, symbols.ellipsis),
    )


def told_first(
    claims: Sequence[ClaimVerdict], decided: ResponseVerdict | FlaggedCase
) -> list[tuple[ClaimVerdict, str]]:
    """``claims`` with the one first that decided, each with what is said of that. A decision by the score is
    about every claim: there the one that costs it most is first, even if it is SUPPORTED."""
    first = claim_that_decided(decided)
    others = [(claim, "") for claim in claims if claim is not first]
    if first is None:
        return others
    return [(first, "weighs most in the score" if decided_by_score(decided.rule) else "decided"), *others]


def claim_rows(
    claim: ClaimVerdict, symbols: Symbols, width: int, *, whole: bool = False, said: str = ""
) -> RenderableType:
    """What was judged of a claim: verdict, evidence, reason; in two lines each, or ``whole``."""
    rows = Table.grid(padding=(0, 1))
    rows.add_column(width=8, style="dim")
    rows.add_column(ratio=1)
    limit = 2_000 if whole else 2 * max(20, width - 14)
    opening, closing = symbols.quotes
    words = one_line(claim.text, limit, symbols.ellipsis)
    rows.add_row(Text("claim"), Text(words, VERDICT_STYLES[claim.verdict]))
    for evidence in claim.evidence[: None if whole else 1]:
        quote = Text(opening + one_line(evidence.quote, limit, symbols.ellipsis) + closing)
        quote.append(f" {one_line(evidence.context_id, 40, symbols.ellipsis)}", "cyan")
        rows.add_row(Text("evidence"), quote)
    if claim.reasoning:
        rows.add_row(Text("reason"), Text(one_line(claim.reasoning, limit, symbols.ellipsis)))
    head = _verdict_words(claim, symbols, limit)
    return Group(head.append(f" {symbols.dot} {said}", "bold") if said else head, rows)


def _outcome(card: Card, verdict: ResponseVerdict, symbols: Symbols) -> Text | None:
    """What became of the answer, where it was not simply released."""
    end = card.end
    if isinstance(end, DeliveryBlocked):
        shown = "nothing of it was shown"
        if end.released_chars:
            shown = (
                f"{end.released_chars} verified characters were shown, then withdrawn; "
                "the sentence that was stopped never was"
            )
        return Text(f"{symbols.arrow} {shown}", "red")
    cut = sum(segment.decision is Decision.REDACT for segment in card.segments)
    if cut:
        passages = "passage" if cut == 1 else "passages"
        return Text(f"{symbols.arrow} {cut} {passages} replaced, the rest shown", "dark_orange")
    if verdict.decision is Decision.RELEASE:
        if verdict.claims:
            return None
        return Text(f"{symbols.arrow} nothing to check; released as it is", "green")
    if verdict.mode == "observe":
        why = "shown at once: in observe mode nothing is held back"
    else:
        why = "shown: the policy of this route only flags"
    return Text(f"{symbols.arrow} {why}; the case went to the reviewers", "yellow")


_WOULD: Final = {
    Decision.FLAG: "is shown, and the case goes to the reviewers",
    Decision.REDACT: "is shown without what the rule is about",
    Decision.BLOCK: "is withheld",
}


def _would(verdict: ResponseVerdict, symbols: Symbols) -> Text | None:
    """What becomes of such an answer when it is guarded live."""
    if verdict.decision not in _WOULD:
        return None
    live = _WOULD[verdict.decision]
    if verdict.mode == "observe":
        live = "is shown at once: in observe mode nothing is held back"
    return Text(f"{symbols.arrow} live, this answer {live}", DECISION_STYLES[verdict.decision])


def _without_blank_lines(text: Text) -> Text:
    lines = [line for line in text.split("\n", allow_blank=True) if line.plain.strip()]
    return Text("\n").join(lines)


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
_FIRST_WORDS: Final = {
    Decision.RELEASE: "released",
    Decision.FLAG: "flagged",
    Decision.REDACT: "redacted",
    Decision.BLOCK: "blocked",
}


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
                    self._line(_FIRST_WORDS[event.decision], card, self._quote(event.text))
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
        claims = f"{len(verdict.claims)} claim{'' if len(verdict.claims) == 1 else 's'}"
        parts = [
            decided(verdict.decision, verdict.mode)[0],
            f"policy {one_line(verdict.policy.name, 40)} ({verdict.mode})",
            f"rule: {one_line(verdict.rule, 80)}",
            f"score {score(verdict.score)}",
            claims,
            f"delay p50 {milliseconds(card.delay_p50_ms)}",
        ]
        self._line("decided", card, "; ".join(parts))

    def _quote(self, text: str) -> str:
        opening, closing = self._symbols.quotes
        return opening + one_line(text, _TEXT_LIMIT, self._symbols.ellipsis) + closing

    def _line(self, word: str, card: Card, detail: str) -> None:
        self._out.write(f"{word:<8} {one_line(card.response_id, 64):<{self._id_width}}  {detail}\n")
        self._out.flush()
