"""Pieces of the live view: a response's text with its claims marked, a card while it runs, a card when done.

Text is put into ``rich.text.Text`` and never parsed as markup, after its control characters are made visible.
"""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.demo.board import Card
from guardrail.demo.style import (
    DECISION_STYLES,
    DECISION_WORDS,
    VERDICT_STYLES,
    Symbols,
    one_line,
    score,
    visible,
)
from guardrail.events import ClaimVerdict, Decision, DeliveryBlocked, ResponseVerdict, Verdict

_PENDING_STYLE: Final = "dim"
_UNSUPPORTED_STYLE: Final = "underline"
_NOT_SHOWN_STYLE: Final = "dim strike"


def answer_text(card: Card, symbols: Symbols, *, running: bool) -> Text:
    """The answer as written so far: judged claims in the colour of their verdict with its symbol behind,
    words that have no support underlined, text not released yet dim, text that was kept back struck
    through."""
    raw = visible(card.text)
    text = Text(raw)
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


def finished_card(card: Card, verdict: ResponseVerdict, symbols: Symbols, width: int) -> RenderableType:
    """A response when everything is known of it: the text, what was wrong, what the user got."""
    style = DECISION_STYLES[verdict.decision]
    title = Text.assemble(
        (f"{symbols.decisions[verdict.decision]} {DECISION_WORDS[verdict.decision]}", f"bold {style}"),
        (f" {symbols.dot} ", style),
        (one_line(card.response_id, 40, symbols.ellipsis), "bold"),
    )
    facts = (
        verdict.rule,
        f"{verdict.policy.name} policy, {verdict.mode} mode",
        f"score {score(verdict.score)}",
        f"{len(verdict.claims)} claim{'' if len(verdict.claims) == 1 else 's'}",
    )
    subtitle = one_line(f" {symbols.dot} ".join(facts), width - 8, symbols.ellipsis)
    parts: list[RenderableType] = [
        Text(one_line(f"Q: {card.head.question}", width - 4, symbols.ellipsis), "italic"),
        answer_text(card, symbols, running=False),
    ]
    doubtful = [claim for claim in verdict.claims if claim.verdict is not Verdict.SUPPORTED]
    parts += [_claim_rows(claim, symbols, width) for claim in doubtful]
    if not doubtful and verdict.claims:
        parts.append(_backed(verdict.claims, symbols, width))
    outcome = _outcome(card, verdict, symbols)
    if outcome is not None:
        parts.append(outcome)
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=Text(subtitle, "dim"),
        subtitle_align="left",
        border_style=style,
        box=box.ROUNDED,
        width=width,
    )


def _latest_claim(card: Card, symbols: Symbols, width: int) -> Text:
    """One line on the claim judged last, or on the last one that did not pass."""
    if not card.claims:
        return Text("no claim judged yet", "dim")
    claim = next(
        (claim for claim in reversed(card.claims) if claim.verdict is not Verdict.SUPPORTED), card.claims[-1]
    )
    line = _verdict_words(claim, symbols)
    if claim.evidence:
        room = max(12, width - line.cell_len - 4)
        quote = one_line(claim.evidence[0].quote, room, symbols.ellipsis)
        line.append(f" {symbols.dot} {symbols.quotes[0]}{quote}{symbols.quotes[1]}", "dim")
    elif claim.reasoning:
        line.append(f" {symbols.dot} {one_line(claim.reasoning, width, symbols.ellipsis)}", "dim")
    return line


def _verdict_words(claim: ClaimVerdict, symbols: Symbols) -> Text:
    reasons = f" ({', '.join(claim.severity_reasons)})" if claim.severity_reasons else ""
    return Text.assemble(
        (f"{symbols.verdicts[claim.verdict]} {claim.verdict}", VERDICT_STYLES[claim.verdict]),
        " " + one_line(f"{claim.severity}{reasons}", 48, symbols.ellipsis),
    )


def _claim_rows(claim: ClaimVerdict, symbols: Symbols, width: int) -> RenderableType:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(width=8, style="dim")
    rows.add_column(ratio=1)
    limit = 2 * max(20, width - 14)
    opening, closing = symbols.quotes
    words = one_line(claim.text, limit, symbols.ellipsis)
    rows.add_row(Text("claim"), Text(words, VERDICT_STYLES[claim.verdict]))
    for evidence in claim.evidence[:1]:
        quote = Text(opening + one_line(evidence.quote, limit, symbols.ellipsis) + closing)
        quote.append(f" {one_line(evidence.context_id, 40, symbols.ellipsis)}", "cyan")
        rows.add_row(Text("evidence"), quote)
    if claim.reasoning:
        rows.add_row(Text("reason"), Text(one_line(claim.reasoning, limit, symbols.ellipsis)))
    return Group(_verdict_words(claim, symbols), rows)


def _backed(claims: tuple[ClaimVerdict, ...], symbols: Symbols, width: int) -> Text:
    """Of claims that are all supported: the weightiest one's evidence, as a sample."""
    with_evidence = [claim for claim in claims if claim.evidence]
    sample = max(with_evidence, key=lambda claim: claim.severity.rank, default=None)
    line = Text(f"{symbols.verdicts[Verdict.SUPPORTED]} all supported", "green")
    if sample is None:
        return line
    evidence = sample.evidence[0]
    context = one_line(evidence.context_id, 24, symbols.ellipsis)
    room = max(12, width - 4 - line.cell_len - len(context) - 12)
    quote = one_line(evidence.quote, room, symbols.ellipsis)
    line.append(f" {symbols.dot} e.g. {symbols.quotes[0]}{quote}{symbols.quotes[1]} ", "dim")
    line.append(context, "cyan")
    return line


def _outcome(card: Card, verdict: ResponseVerdict, symbols: Symbols) -> Text | None:
    """What the user got, where that is not simply the answer."""
    end = card.end
    if isinstance(end, DeliveryBlocked):
        shown = "nothing was shown"
        if end.released_chars:
            shown = f"{end.released_chars} characters were shown, then withdrawn"
        line = Text(f"{symbols.arrow} {shown}; the user reads: ", "red")
        return line.append(symbols.quotes[0] + visible(end.message) + symbols.quotes[1])
    cut = [segment.text.strip() for segment in card.segments if segment.decision is Decision.REDACT]
    if cut:
        line = Text(f"{symbols.arrow} in its place the user reads: ", "dark_orange")
        return line.append(symbols.quotes[0] + one_line(cut[0], 200, symbols.ellipsis) + symbols.quotes[1])
    if verdict.decision is Decision.RELEASE:
        if verdict.claims:
            return None
        return Text(f"{symbols.arrow} nothing to check; released as it is", "green")
    word = "shown at once, as policy says" if verdict.mode == "observe" else "shown"
    return Text(f"{symbols.arrow} {word}; the case went to the reviewers", "yellow")


def _without_blank_lines(text: Text) -> Text:
    lines = [line for line in text.split("\n", allow_blank=True) if line.plain.strip()]
    return Text("\n").join(lines)
