"""The demo's answers and settings, and the table at its end."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

import yaml
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from guardrail.config import Settings
from guardrail.demo.board import Board
from guardrail.errors import InputError
from guardrail.events import ClaimVerdict, Decision, Response, ResponseVerdict, Verdict
from guardrail.render import (
    DECISION_STYLES,
    DECISION_WORDS,
    VERDICT_STYLES,
    Card,
    Symbols,
    counted,
    duration,
    one_line,
    score,
)
from guardrail.verdicts import total


@dataclass(frozen=True, slots=True)
class DemoAnswer:
    """An answer, and what a guard should make of it.

    ``bad_claim`` is the text of the one wrong detail, None in a faithful answer. ``kind`` is the sort of
    product the answer could come from (medication, pricing, …).
    """

    response: Response
    kind: str
    decision: Decision
    bad_claim: str | None


def load_examples(kind: str | None = None) -> tuple[DemoAnswer, ...]:
    """All examples, or those of one kind, in the order of the file.

    Raises InputError, whose message names the kinds there are, when none is of this kind.
    """
    lines = (files(__package__) / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    examples = tuple(_example(line) for line in lines)
    chosen = tuple(example for example in examples if kind in {None, example.kind})
    if not chosen:
        known = ", ".join(kinds(examples))
        raise InputError("unknown_kind", f"no answer is of the kind {kind!r}; choose from: {known}")
    return chosen


def kinds(examples: Sequence[DemoAnswer]) -> tuple[str, ...]:
    """The kinds of the examples, each once, in their order."""
    return tuple(dict.fromkeys(example.kind for example in examples))


def load_demo_settings() -> Settings:
    """The demo's configuration. The environment of the host has no say in it."""
    text = (files(__package__) / "guardrail.yaml").read_text(encoding="utf-8")
    return Settings.model_validate(yaml.safe_load(text))


def _example(line: str) -> DemoAnswer:
    response = Response.model_validate_json(line)
    kind, expected = response.metadata["kind"], response.metadata["expected"]
    # What the example expects is for its readers; the guard is not to see it, nor are its reviewers.
    bare = response.model_copy(update={"metadata": {"kind": kind}})
    return DemoAnswer(bare, kind, Decision(expected["decision"]), expected["bad_claim"])


_WIDTH_WITH_KIND: Final = 96
_LONGEST_NAME: Final = 60
_LONGEST_WHY: Final = 300
_SHOWS: Final = {
    "careful": "a wrong sentence stops the answer",
    "cutting": "it is taken out, and the rest goes on",
    "strict": "nothing is shown before the last verdict (hold mode)",
    "advisory": "all is shown, and reviewers get what is doubtful",
    "shadow": "as advisory, and without any wait (observe mode)",
}
"""What the policies of the demo's guardrail.yaml do, in the words of a viewer."""


def introduction(examples: Sequence[DemoAnswer], settings: Settings, judge: str, symbols: Symbols) -> Text:
    """What is to be seen, and what the marks and the policies' names mean."""
    wrong = sum(example.bad_claim is not None for example in examples)
    router = settings.router()
    policies = dict.fromkeys(
        router.choose(example.response.route, example.response.tenant).name for example in examples
    )
    text = Text()
    text.append(f"{counted(len(examples), 'prepared answer')} ", "bold")
    text.append(
        f"{'is' if len(examples) == 1 else 'are'} written token by token, as a language model does, each "
        f"from documents that are shown with it. {_of(wrong)} one wrong detail. The guard checks every claim "
        "before the user reads it. The answers were chosen to show each case; measured quality is in "
        "docs/benchmarks.md.\n"
    )
    text.append(_legend(symbols))
    for name in policies:
        text.append(f"\n{name + ' policy':<17}", "bold")
        text.append(_SHOWS.get(name, ""))
    text.append(f"\n{'judge':<17}", "bold")
    text.append(one_line(judge, _LONGEST_NAME, symbols.ellipsis))
    return text.append("\n")


def _of(wrong: int) -> str:
    return f"{wrong} of them {'has' if wrong == 1 else 'have'}" if wrong else "None of them has"


def _legend(symbols: Symbols) -> Text:
    text = Text()
    for verdict in Verdict:
        text.append("  " if text else "")
        text.append(symbols.verdicts[verdict], VERDICT_STYLES[verdict])
        text.append(f" {verdict.lower().replace('_', ' ')}")
    return text


def as_expected(example: DemoAnswer, card: Card) -> bool:
    """Was the answer treated as it was written for, and the wrong detail among what did not pass?"""
    verdict = card.verdict
    if verdict is None or verdict.decision is not example.decision:
        return False
    return example.bad_claim is None or any(
        example.bad_claim in claim.text and claim.verdict is not Verdict.SUPPORTED for claim in verdict.claims
    )


def summary(board: Board, examples: Sequence[DemoAnswer], symbols: Symbols, width: int) -> RenderableType:
    """A row for every response, then the totals. The kind is left out where ``width`` has no room for it."""
    with_kind = width >= _WIDTH_WITH_KIND
    lines = box.ASCII if symbols.rule.isascii() else box.SIMPLE_HEAD
    table = Table(box=lines, show_edge=False, pad_edge=False, padding=0)
    table.add_column("response", no_wrap=True)
    if with_kind:
        table.add_column("kind", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("rule", overflow="fold")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("claims", no_wrap=True)
    table.add_column("delay p50", justify="right", no_wrap=True)
    for example in examples:
        card = board.cards.get(example.response.response_id)
        if card is not None and card.verdict is not None:
            name, kind, *rest = _cells(example, card, card.verdict, symbols)
            table.add_row(name, *((kind,) if with_kind else ()), *rest)
    return Group(Text(), table, _totals(board, examples, symbols))


def _cells(
    example: DemoAnswer, card: Card, verdict: ResponseVerdict, symbols: Symbols
) -> tuple[RenderableType, ...]:
    style = DECISION_STYLES[verdict.decision]
    return (
        Text(one_line(card.response_id, 24, symbols.ellipsis)),
        Text(one_line(example.kind, 12, symbols.ellipsis), "dim"),
        Text(f"{symbols.decisions[verdict.decision]} {DECISION_WORDS[verdict.decision]}", style),
        Text(one_line(verdict.rule, 60, symbols.ellipsis), "dim"),
        Text(score(verdict.score)),
        _counts([claim.verdict for claim in verdict.claims], symbols),
        Text(duration(card.delay_p50_ms)),
    )


def _counts(verdicts: Sequence[Verdict], symbols: Symbols) -> Text:
    text = Text()
    for verdict in Verdict:
        count = verdicts.count(verdict)
        if count:
            text.append(f"{' ' if text else ''}{count}{symbols.verdicts[verdict]}", VERDICT_STYLES[verdict])
    return text or Text("none", "dim")


def _totals(board: Board, examples: Sequence[DemoAnswer], symbols: Symbols) -> Text:
    pairs = [(example, board.cards[example.response.response_id]) for example in examples]
    decided = [card.verdict for _, card in pairs if card.verdict is not None]
    words = []
    for decision in Decision:
        count = sum(verdict.decision is decision for verdict in decided)
        if count:
            words.append(f"{count} {DECISION_WORDS[decision].lower()}")
    claims = [claim for verdict in decided for claim in verdict.claims]
    text = Text(f"{counted(len(decided), 'answer')}: {', '.join(words)}; {counted(len(claims), 'claim')}: ")
    text += _counts([claim.verdict for claim in claims], symbols)
    wrong = [(example, card) for example, card in pairs if example.bad_claim is not None]
    faithful = [(example, card) for example, card in pairs if example.bad_claim is None]
    caught = [card for example, card in wrong if as_expected(example, card)]
    released = sum(as_expected(example, card) for example, card in faithful)
    if wrong:
        text.append(f"\ncaught: {len(caught)} of {counted(len(wrong), 'answer')} with one wrong detail")
        text.append(_how_caught(caught))
    if faithful:
        text.append(f"\nreleased untouched: {released} of {counted(len(faithful), 'faithful answer')}")
    streamed = [
        delay
        for _, card in pairs
        if card.verdict is not None and card.verdict.mode == "stream"
        for delay in card.delays_ms
    ]
    if streamed:
        wait = duration(statistics.median(streamed))
        text.append(f"\nstream mode: text was released {wait} (median) after its last character was written")
    return text.append(_not_judged(claims, symbols)).append(_taken(decided))


def _not_judged(claims: Sequence[ClaimVerdict], symbols: Symbols) -> str:
    """How many claims the judge could say nothing of, and why it couldn't of the first."""
    open_ = [claim for claim in claims if claim.verdict is Verdict.UNVERIFIED]
    if not open_:
        return ""
    why = one_line(open_[0].reasoning or "no reason was given", _LONGEST_WHY, symbols.ellipsis)
    return f"\nwithout a verdict: {counted(len(open_), 'claim')}; the first because {why}"


def _taken(verdicts: Sequence[ResponseVerdict]) -> str:
    """What calls of a model took; nothing for a judge that makes none."""
    taken = total(*(verdict.usage for verdict in verdicts))
    if not taken.judge_calls:
        return ""
    cost = f", {taken.cost_usd:.4f} USD" if taken.cost_usd else ""
    tokens = f"{taken.input_tokens:,} tokens read, {taken.output_tokens:,} written"
    return f"\nthe judge took {counted(taken.judge_calls, 'call')}: {tokens}{cost}"


_CAUGHT: Final = {Decision.BLOCK: "blocked", Decision.REDACT: "redacted", Decision.FLAG: "shown and flagged"}


def _how_caught(cards: Sequence[Card]) -> str:
    """``: 3 blocked, 3 redacted, 2 shown and flagged, as their policies say``."""
    decisions = [card.verdict.decision for card in cards if card.verdict is not None]
    words = [f"{decisions.count(each)} {word}" for each, word in _CAUGHT.items() if each in decisions]
    return f": {', '.join(words)}, as their policies say" if words else ""
