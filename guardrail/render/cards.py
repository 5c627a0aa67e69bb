"""How verdicts and decisions look on a terminal: words, colours and marks, tables without lines, answers and
cases.

Colour never says what a word or mark does not say too.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from guardrail.decisions import decided_by_score
from guardrail.events import (
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    ResponseHead,
    ResponseVerdict,
    Verdict,
    claim_that_decided,
)
from guardrail.render.words import counted, one_line, score, visible, when

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


def table(*columns: str, right: Collection[str] = (), fold: bool = False) -> Table:
    """An empty table, columns in ``right`` flush right. With ``fold`` long cells break anywhere."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        shown.add_column(
            name, justify="right" if name in right else "left", overflow="fold" if fold else "ellipsis"
        )
    return shown


def print_table(
    console: Console, columns: Sequence[str], rows: Sequence[Sequence[Text]], *, right: Collection[str] = ()
) -> None:
    """Rows folded to the width of a terminal; elsewhere a line each, for grep."""
    if console.is_terminal:
        shown = table(*columns, right=right, fold=True)
        for row in rows:
            shown.add_row(*row)
        console.print(shown)
        return
    lines = [columns, *([cell.plain for cell in row] for row in rows)]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        padded = (set_cell_size(cell, width) for cell, width in zip(line, widths, strict=True))
        console.print(Text("  ".join(padded).rstrip()), soft_wrap=True)


# --------------------------------------------------------------------------------------- answers and cases
#
# An answer with what was judged of it, for a terminal: as it is written, when it is finished, as a flagged
# case. Text is put into rich.text.Text and never parsed as markup, after its control characters are made
# visible.


@dataclass(slots=True)
class Card:
    """One response: what was written, what was judged, what was shown."""

    head: ResponseHead
    text: str = ""
    claims: list[ClaimVerdict] = field(default_factory=list)
    segments: list[DeliverySegment] = field(default_factory=list)
    end: DeliveryCompleted | DeliveryBlocked | None = None
    verdict: ResponseVerdict | None = None
    case: FlaggedCase | None = None
    delays_ms: list[float] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _times_s: list[float] = field(default_factory=list)

    @property
    def response_id(self) -> str:
        return self.head.response_id

    @property
    def finished(self) -> bool:
        """Has every topic said its last word on this response?"""
        if self.verdict is None or self.end is None:
            return False
        return self.case is not None or self.verdict.decision is Decision.RELEASE

    @property
    def delivered(self) -> str:
        """What the user reads, a blocked answer's fallback message left out."""
        return "".join(segment.text for segment in self.segments)

    @property
    def observed(self) -> bool:
        """Did the text leave as it came, before any verdict?"""
        return any(segment.segment is None for segment in self.segments)

    @property
    def delay_p50_ms(self) -> float | None:
        """Median wait of a piece of text from its last character being written to its release."""
        return statistics.median(self.delays_ms) if self.delays_ms else None

    def wrote(self, text: str, now_s: float) -> None:
        """A delta arrived."""
        self.text += text
        self._ends.append(len(self.text))
        self._times_s.append(now_s)

    def showed(self, segment: DeliverySegment, now_s: float) -> None:
        """A piece of text was released."""
        self.segments.append(segment)
        at = bisect_left(self._ends, segment.span[1])
        if at < len(self._ends):
            self.delays_ms.append(max(0.0, now_s - self._times_s[at]) * 1000)


_PENDING_STYLE: Final = "dim"
_UNSUPPORTED_STYLE: Final = "underline"
_NOT_SHOWN_STYLE: Final = "dim strike"


def answer_text(card: Card, symbols: Symbols, *, running: bool, shown_to: int | None = None) -> Text:
    """The answer as written so far: judged claims in the colour of their verdict with its symbol behind,
    words that have no support underlined, text not released yet dim, text that was kept back struck
    through. It was released up to ``shown_to``; when left out, as the card's segments say."""
    raw = visible(card.text)
    text = Text(raw)
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


def finished_card(card: Card, verdict: ResponseVerdict, symbols: Symbols, width: int) -> RenderableType:
    """A response when everything is known of it: what it was written from, what was written and what of it
    the user reads, what was wrong."""
    facts = (
        f"rule: {verdict.rule}",
        f"policy: {verdict.policy.name}, {verdict.mode} mode",
        f"score {score(verdict.score)}",
        counted(len(verdict.claims), "claim"),
    )
    parts: list[RenderableType] = [
        Text(one_line(f"Q: {card.head.question}", 2 * (width - 4), symbols.ellipsis), "italic"),
        _side_by_side(_documents(card, verdict, symbols), _texts(card, verdict, symbols), width),
    ]
    doubtful = [claim for claim in verdict.claims if claim.verdict is not Verdict.SUPPORTED]
    told = deciding_first(doubtful, verdict)
    parts += [claim_rows(claim, symbols, width, said=said if told[1:] else "") for claim, said in told]
    if not doubtful and verdict.claims:
        mark = symbols.verdicts[Verdict.SUPPORTED]
        parts.append(Text(f"{mark} all supported; what backs them is bold in the documents", "green"))
    outcome = _outcome(card, verdict, symbols)
    if outcome is not None:
        parts.append(outcome)
    parts.append(
        Text(one_line(f" {symbols.dot} ".join(facts), 3 * max(1, width - 4), symbols.ellipsis), "dim")
    )
    return _panel(parts, verdict, symbols, width)


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


def _texts(card: Card, verdict: ResponseVerdict, symbols: Symbols) -> RenderableType:
    """What the model wrote, and what of it the user reads."""
    wrote = answer_text(card, symbols, running=False)
    parts = [Text("THE MODEL WROTE", "dim"), wrote, Text("THE USER READS", "dim")]
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


def verdict_words(claim: ClaimVerdict, symbols: Symbols, limit: int = 48) -> Text:
    """Verdict and severity of a claim, with the reasons of the latter."""
    reasons = f" ({', '.join(claim.severity_reasons)})" if claim.severity_reasons else ""
    return Text.assemble(
        (f"{symbols.verdicts[claim.verdict]} {claim.verdict}", VERDICT_STYLES[claim.verdict]),
        " " + one_line(f"{claim.severity}{reasons}", limit, symbols.ellipsis),
    )


def deciding_first(
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
    head = verdict_words(claim, symbols, limit)
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
        return Text(f"{symbols.arrow} {counted(cut, 'passage')} replaced, the rest shown", "dark_orange")
    if verdict.decision is Decision.RELEASE:
        if verdict.claims:
            return None
        return Text(f"{symbols.arrow} nothing to check; released as it is", "green")
    if verdict.mode == "observe":
        why = "shown at once: in observe mode nothing is held back"
    else:
        why = "shown: the policy of this route only flags"
    return Text(f"{symbols.arrow} {why}; the case went to the reviewers", "yellow")


def _without_blank_lines(text: Text) -> Text:
    lines = [line for line in text.split("\n", allow_blank=True) if line.plain.strip()]
    return Text("\n").join(lines)


def _panel(
    parts: Sequence[RenderableType],
    told: ResponseVerdict | FlaggedCase,
    symbols: Symbols,
    width: int,
    subtitle: Text | None = None,
) -> Panel:
    """In the colour of the decision, which stands at the head with the id."""
    style = DECISION_STYLES[told.decision]
    words, bold = decided(told.decision, told.mode)
    title = Text.assemble(
        (f"{symbols.decisions[told.decision]} {words}", bold),
        (f" {symbols.dot} ", style),
        (one_line(told.response_id, 40, symbols.ellipsis), "bold"),
    )
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=subtitle,
        subtitle_align="left",
        border_style=style,
        box=box.ROUNDED,
        width=width,
    )


# ----------------------------------------------------- a flagged case as a reviewer reads it

MOST_CHARS: Final = 4_000
"""Of each text that is shown: else a long one scrolls what is wrong out of sight."""


def case_card(
    case: FlaggedCase,
    symbols: Symbols,
    width: int,
    *,
    at_ms: int | None = None,
    whole: bool = False,
    documents: bool = False,
    most_chars: int | None = MOST_CHARS,
    remedy: str = "",
) -> RenderableType:
    """The case as a panel: question, answer with its claims highlighted, and what was wrong, the claim that
    decided first.

    With ``whole`` the claims that are supported follow, and with ``documents`` the documents. Texts are
    escaped, and each is cut after ``most_chars``; ``remedy`` tells there how to see the rest. With None
    nothing is cut.
    """
    cut = _Cut(most_chars, symbols, remedy)
    dot = symbols.dot
    policy = f"{case.policy.name} policy" + (", observe" if case.mode == "observe" else "")
    facts = [case.rule, policy, f"score {score(case.score)}"]
    facts += [f"route {case.route}"] if case.route is not None else []
    facts += [when(at_ms)] if at_ms is not None else []
    subtitle = one_line(f" {dot} ".join(facts), width - 8, symbols.ellipsis)
    parts: list[RenderableType] = [_question(case, symbols, width, cut, whole=whole)]
    answer = cut.off(case.answer)
    claims = [claim for claim in case.claims if claim.span[0] < len(answer)]
    card = Card(ResponseHead(response_id=case.response_id), answer, claims=claims)
    text = answer_text(card, symbols, running=False, shown_to=_shown_to(case))
    parts.append(text.append_text(cut.left(case.answer)))
    doubtful = [claim for claim in case.claims if claim.verdict is not Verdict.SUPPORTED]
    wanted = deciding_first(doubtful, case)
    parts += [claim_rows(claim, symbols, width, whole=whole, said=_said(claim, say)) for claim, say in wanted]
    parts += _delivered(case, symbols, width, cut, whole=whole)
    shown = [claim for claim, _ in wanted]
    rest = [claim for claim in case.claims if claim not in shown]
    if whole and rest:
        parts.append(Text(counted(len(rest), "supported claim"), "bold dim"))
        parts += [claim_rows(claim, symbols, width, whole=True, said=_said(claim)) for claim in rest]
    if documents:
        parts.append(Text(counted(len(case.contexts), "document"), "bold dim"))
        parts += _documents_of(case, symbols, cut)
    elif whole and case.contexts:
        parts.append(Text(f"{counted(len(case.contexts), 'document')}: --documents shows them", "dim"))
    if case.omitted:
        names = one_line(", ".join(case.omitted), width, symbols.ellipsis)
        parts.append(Text(f"left out, as too large for a record: {names}", "yellow"))
    if whole:
        about = {"case": case.id, "tenant": case.tenant, "model": case.generator_model}
        known = f" {dot} ".join(f"{name} {value}" for name, value in about.items() if value is not None)
        parts.append(Text(one_line(known, width - 4, symbols.ellipsis), "dim"))
    told = Text(subtitle, "dim")
    return _panel(parts, case, symbols, width, told)


def _said(claim: ClaimVerdict, say: str = "") -> str:
    """The claim's number, by which ``guardrail cases label`` knows it, and what else is said of it."""
    return f"claim {claim.index + 1}" + (f", {say}" if say else "")


@dataclass(frozen=True, slots=True)
class _Cut:
    most: int | None
    symbols: Symbols
    remedy: str

    def off(self, text: str) -> str:
        """What is shown of a text."""
        return text[: self.most]

    def left(self, text: str) -> Text:
        """The words about the rest, if there is one."""
        left = 0 if self.most is None else len(text) - self.most
        if left <= 0:
            return Text()
        return Text(f" {self.symbols.ellipsis} {left:,} more characters{self.remedy}", "dim")


def _question(case: FlaggedCase, symbols: Symbols, width: int, cut: _Cut, *, whole: bool) -> Text:
    if whole:
        return Text(visible(f"Q: {cut.off(case.question)}"), "italic").append_text(cut.left(case.question))
    return Text(one_line(f"Q: {case.question}", width - 4, symbols.ellipsis), "italic")


def _documents_of(case: FlaggedCase, symbols: Symbols, cut: _Cut) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for context in case.contexts:
        line = Text(one_line(context.id, 80, symbols.ellipsis), "cyan")
        if context.source:
            line.append(f" {one_line(context.source, 120, symbols.ellipsis)}", "dim")
        shown.append(line)
        shown.append(Text(visible(cut.off(context.text))).append_text(cut.left(context.text)))
    return shown


def _shown_to(case: FlaggedCase) -> int:
    """How far the answer was shown before a block. After a redaction in it, only the part before that."""
    if case.decision is not Decision.BLOCK or case.mode == "observe":
        return len(case.answer)
    pairs = zip(case.delivered, case.answer, strict=False)
    return next((at for at, (one, two) in enumerate(pairs) if one != two), len(case.delivered))


def _delivered(
    case: FlaggedCase, symbols: Symbols, width: int, cut: _Cut, *, whole: bool
) -> list[RenderableType]:
    if case.mode == "observe":
        return [Text(f"{symbols.arrow} all of it was shown: the policy only observes", "yellow")]
    opening, closing = symbols.quotes
    match case.decision:
        case Decision.BLOCK if not case.delivered:
            return [Text(f"{symbols.arrow} nothing of it was shown", "red")]
        case Decision.BLOCK:
            shown = (
                "all" if case.delivered == case.answer else f"a part of {len(case.delivered):,} characters"
            )
            return [Text(f"{symbols.arrow} {shown} of it was shown before the decision", "red")]
        case Decision.REDACT:
            line = Text(f"{symbols.arrow} the user read: ", "dark_orange")
            if not whole:
                words = one_line(case.delivered, 3 * width, symbols.ellipsis)
                return [line.append(opening + words + closing)]
            line.append(opening + visible(cut.off(case.delivered)) + closing)
            return [line.append_text(cut.left(case.delivered))]
        case _:
            return []
