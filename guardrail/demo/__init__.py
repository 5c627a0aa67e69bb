"""The answers of ``guardrail demo``, how they are fed, and how what comes back is shown.

Nothing in here knows how the guard runs: ``guardrail.cli.demo`` puts the feed, the guard and a view together.

The feed imitates a chat service, which writes answers token by token. Everything it writes follows from a
seed: the cuts, the pauses and the interleaving are the same in every run.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Protocol, TextIO

import yaml
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from guardrail.config import Settings
from guardrail.errors import InputError
from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    FlaggedCase,
    Response,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseHead,
    ResponseStarted,
    ResponseVerdict,
    Verdict,
)
from guardrail.render import (
    DECISION_STYLES,
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
from guardrail.verdicts import total

BoardEvent = ResponseStarted | ResponseDelta | ResponseCompleted | ResponseAborted | AnyOutputEvent


class Board:
    """The cards of all responses seen, in the order they began."""

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}

    @property
    def running(self) -> list[Card]:
        return [card for card in self.cards.values() if not card.finished]

    @property
    def finished(self) -> list[Card]:
        return [card for card in self.cards.values() if card.finished]

    def apply(self, event: BoardEvent, now_s: float) -> Card | None:
        """Note one event; the card it belongs to, None for a response whose start was not seen."""
        if isinstance(event, ResponseStarted):
            return self.cards.setdefault(event.response_id, Card(event))
        card = self.cards.get(event.response_id)
        if card is None:
            return None
        match event:
            case ResponseDelta():
                card.wrote(event.text, now_s)
            case ClaimVerdict():
                card.claims.append(event)
            case DeliverySegment():
                card.showed(event, now_s)
            case DeliveryCompleted() | DeliveryBlocked():
                card.end = event
            case ResponseVerdict():
                card.verdict = event
            case FlaggedCase():
                card.case = event
        return card


StreamEvent = ResponseStarted | ResponseDelta | ResponseCompleted

TOKENS_PER_S: Final = 12.0
"""Pace of one answer; three of them at once are still readable."""
LANES: Final = 3
_PAUSE_BETWEEN_S: Final = 0.8


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """``event`` is sent ``at_s`` seconds after the start."""

    at_s: float
    event: StreamEvent


def cut_tokens(text: str, rng: random.Random) -> list[str]:
    """Pieces of 1 to 7 characters, 4 on average, as tokens are; joined they give ``text``."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = rng.choice((1, 2, 3, 4, 4, 5, 6, 7))
        pieces.append(text[at : at + size])
        at += size
    return pieces


def schedule(responses: Sequence[Response]) -> list[TimedEvent]:
    """The events of all responses in the order they are sent, ``LANES`` responses at a time."""
    free_at = [0.4 + 1.1 * lane for lane in range(LANES)]
    steps: list[TimedEvent] = []
    for response in responses:
        lane = min(range(LANES), key=free_at.__getitem__)
        rng = random.Random(f"20:{response.response_id}")
        written = _write(response, free_at[lane], rng)
        free_at[lane] = written[-1].at_s + _PAUSE_BETWEEN_S
        steps += written
    # Stable: events of one response keep their order even where two have the same time.
    return sorted(steps, key=lambda step: step.at_s)


def _write(response: Response, start_s: float, rng: random.Random) -> list[TimedEvent]:
    response_id = response.response_id
    head = {name: getattr(response, name) for name in ResponseHead.model_fields}
    steps = [TimedEvent(start_s, ResponseStarted(**head))]
    now = start_s + 0.3
    tokens = cut_tokens(response.answer, rng)
    for seq, text in enumerate(tokens):
        steps.append(TimedEvent(now, ResponseDelta(response_id=response_id, seq=seq, text=text)))
        now += rng.uniform(0.2, 1.8) / TOKENS_PER_S
    end = ResponseCompleted(response_id=response_id, seq=len(tokens), finish_reason="stop")
    steps.append(TimedEvent(now, end))
    return steps


async def play(
    steps: Sequence[TimedEvent],
    send: Callable[[StreamEvent], None],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Send every event at its time, ``speed`` times as fast. Never ahead of time; late ones at once."""
    start = clock()
    for step in steps:
        # Sleeping for nothing still lets the guard run, so that a fast feed does not starve it.
        await asyncio.sleep(max(0.0, start + step.at_s / speed - clock()))
        send(step.event)


# ------------------------------------------------------------------------------------ the table at its end


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


# ------------------------------------------------------------------------------------------- on a terminal
#
# Or as plain lines for files, pipes and simple terminals. On a terminal finished answers stay above as
# panels, running ones move below. Text is put into rich.text.Text and never parsed as markup, after its
# control characters are made visible. Colour never says what a word or symbol does not say too.


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


class View(Protocol):
    """Shows the demo. All calls come from one task: ``open`` first, with what is to come; ``show`` for each
    event, once it is applied to its card; ``tick`` several times a second; ``close`` last, however the demo
    ended.
    """

    def open(self, responses: Sequence[Response]) -> None: ...

    def show(self, event: BoardEvent, card: Card) -> None: ...

    def tick(self, board: Board) -> None: ...

    def close(self) -> None: ...


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
