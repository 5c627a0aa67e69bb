"""A flagged case as a reviewer reads it, from the event alone."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from guardrail.events import ClaimVerdict, Decision, FlaggedCase, ResponseHead, Verdict
from guardrail.render.cards import Card, answer_text, claim_rows, told_first
from guardrail.render.styles import DECISION_STYLES, Symbols, decided
from guardrail.render.words import counted, one_line, score, visible, when

MOST_CHARS = 4_000
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
    style = DECISION_STYLES[case.decision]
    dot = symbols.dot
    words, bold = decided(case.decision, case.mode)
    title = Text.assemble(
        (f"{symbols.decisions[case.decision]} {words}", bold),
        (f" {dot} ", style),
        (one_line(case.response_id, 40, symbols.ellipsis), "bold"),
    )
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
    wanted = told_first(doubtful, case)
    parts += [claim_rows(claim, symbols, width, whole=whole, said=_said(claim, say)) for claim, say in wanted]
    parts += _delivered(case, symbols, width, cut, whole=whole)
    shown = [claim for claim, _ in wanted]
    rest = [claim for claim in case.claims if claim not in shown]
    if whole and rest:
        parts.append(_heading(counted(len(rest), "supported claim")))
        parts += [claim_rows(claim, symbols, width, whole=True, said=_said(claim)) for claim in rest]
    if documents:
        parts.append(_heading(counted(len(case.contexts), "document")))
        parts += _documents(case, symbols, cut)
    elif whole and case.contexts:
        parts.append(Text(f"{counted(len(case.contexts), 'document')}: --documents shows them", "dim"))
    if case.omitted:
        names = one_line(", ".join(case.omitted), width, symbols.ellipsis)
        parts.append(Text(f"left out, as too large for a record: {names}", "yellow"))
    if whole:
        about = {"case": case.id, "tenant": case.tenant, "model": case.generator_model}
        told = f" {dot} ".join(f"{name} {value}" for name, value in about.items() if value is not None)
        parts.append(Text(one_line(told, width - 4, symbols.ellipsis), "dim"))
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


def _heading(words: str) -> Text:
    return Text(words, "bold dim")


def _documents(case: FlaggedCase, symbols: Symbols, cut: _Cut) -> list[RenderableType]:
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
