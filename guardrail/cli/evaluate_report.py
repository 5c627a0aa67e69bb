"""What ``guardrail evaluate`` writes while it works: events, a table, errors, progress.

The table is made row by row, so that it needs no memory of what was judged. Under a response that is not
simply released stands why: the rule, and the claim that it was about.
"""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TextIO, cast

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from guardrail.cli.terminal import discard
from guardrail.events import Decision, Response, ResponseVerdict, Usage, Verdict, claim_that_decided
from guardrail.offline.evaluation import OWN_SCORE
from guardrail.offline.formats import unread_told
from guardrail.offline.results import EvaluationResult, ScoreSummary, summary_lines, write_line
from guardrail.printable import escape_controls, shorten
from guardrail.render import VERDICT_STYLES, Card, Symbols, finished_card, symbols_for
from guardrail.routing import PolicyRouter
from guardrail.verdicts import total

if TYPE_CHECKING:
    from guardrail.cli.evaluate_sources import Sources
    from guardrail.cli.results_file import ResultsFile

ID_WIDTH: Final = 26
_TOLD_WIDTH: Final = 72
_TOLD_SHOWN: Final = 5
_MOST_TOLD: Final = 200
_OTHER: Final = "for other reasons"
_DECISION_STYLES: Final = {
    Decision.RELEASE: "green",
    Decision.FLAG: "yellow",
    Decision.REDACT: "dark_orange",
    Decision.BLOCK: "red",
}
_COLUMNS: Final = (
    ("supp", Verdict.SUPPORTED),
    ("part", Verdict.PARTIALLY_SUPPORTED),
    ("unsup", Verdict.UNSUPPORTED),
    ("contr", Verdict.CONTRADICTED),
    ("unver", Verdict.UNVERIFIED),
)


def header() -> Text:
    """Names of the columns; the last five count claims by verdict. 79 characters wide, as every row."""
    names = "".join(f" {name:>5}" for name, _ in _COLUMNS)
    return Text(f"{'response':<{ID_WIDTH}} {'score':>5}  {'decision':<8} {'claims':>6}{names}", "bold")


def row(verdict: ResponseVerdict) -> Text:
    """One response. Its id is made harmless and cut to the column."""
    counts = verdict.counts.model_dump()
    score = "-" if verdict.score is None else f"{verdict.score:.3f}"
    text = Text(f"{shorten(escape_controls(verdict.response_id), ID_WIDTH):<{ID_WIDTH}} {score:>5}  ")
    text.append(f"{verdict.decision:<8}", _DECISION_STYLES[verdict.decision])
    text.append(f" {len(verdict.claims):>6}")
    for _, each in _COLUMNS:
        text.append(f" {counts[each.lower()] or '.':>5}")
    return text


def why(verdict: ResponseVerdict, symbols: Symbols, width: int) -> Text:
    """Rule, claim and reason of a decision, a line each of at most ``width`` characters, after a line break.

    Empty for a response that is simply released.
    """
    text = Text()
    if verdict.decision is Decision.RELEASE:
        return text
    told = [("rule", verdict.rule, "")]
    claim = claim_that_decided(verdict)
    if claim is not None:
        mark = f"{symbols.verdicts[claim.verdict]} {claim.text}"
        told += [("claim", mark, VERDICT_STYLES[claim.verdict]), ("reason", claim.reasoning, "")]
    for name, value, style in told:
        value = shorten(escape_controls(" ".join(value.split())), max(20, width - 10))
        if value:
            text.append(f"\n  {name:<7} ", "dim").append(value, style)
    return text


SHOW_WORDS: Final = {
    "blocked": frozenset({Decision.BLOCK}),
    "redacted": frozenset({Decision.REDACT}),
    "flagged": frozenset({Decision.FLAG}),
    "released": frozenset({Decision.RELEASE}),
    "all": frozenset(Decision),
}
"""What --show takes beside the id of a response."""


class Tally:
    """How often what was told, in bounded memory: what comes after many others is counted as one."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, told: str) -> None:
        told = shorten(" ".join(escape_controls(told).split()), _TOLD_WIDTH)
        if told:
            self._counts[told if told in self._counts or len(self._counts) < _MOST_TOLD else _OTHER] += 1

    def lines(self) -> list[Text]:
        """The most frequent, a line each; how many more there are on the last."""
        shown = [(told, count) for told, count in self._counts.most_common() if told != _OTHER][:_TOLD_SHOWN]
        rest = self._counts.total() - sum(count for _, count in shown)
        return [Text(f"{count:>7,} {told}") for told, count in [*shown, *([(_OTHER, rest)] if rest else [])]]


@dataclass(slots=True)
class Totals:
    """Sums over all lines."""

    responses: int = 0
    unreadable: int = 0
    claims: int = 0
    scored: int = 0
    score_sum: float = 0.0
    decisions: dict[Decision, int] = field(default_factory=lambda: dict.fromkeys(Decision, 0))
    verdicts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    usage: Usage = field(default_factory=Usage)
    degraded: int = 0
    unverified: Tally = field(default_factory=Tally)
    missed: Tally = field(default_factory=Tally)
    rules: Tally = field(default_factory=Tally)
    unrouted: Tally = field(default_factory=Tally)
    """Routes of responses that no entry of ``routes`` names."""
    first_unverified: str = ""
    """Why the first claim was not judged that was not."""
    unanswered: int = 0
    """Claims that no judge could say anything about; those left open are UNVERIFIED too."""

    @property
    def nothing_judged(self) -> bool:
        """Were there claims, and no verdict on any of them?"""
        return 0 < self.claims == self.unanswered

    def add(self, verdict: ResponseVerdict) -> None:
        self.responses += 1
        self.claims += len(verdict.claims)
        self.decisions[verdict.decision] += 1
        if verdict.decision is not Decision.RELEASE:
            self.rules.add(f"{verdict.decision} by rule: {verdict.rule}")
        for name, count in verdict.counts.model_dump().items():
            self.verdicts[Verdict(name.upper())] += count
        if verdict.score is not None:
            self.scored += 1
            self.score_sum += verdict.score
        self.usage = total(self.usage, verdict.usage)
        for claim in verdict.claims:
            if claim.unanswered:
                self.unanswered += 1
                self.unverified.add(claim.reasoning)
                self.first_unverified = self.first_unverified or claim.reasoning
            if claim.degraded_from:
                self.degraded += 1
                for missed in claim.degraded_from:
                    self.missed.add(missed)

    def lines(self) -> list[Text]:
        """What stands under the table."""
        decisions = ", ".join(f"{count} {decision}" for decision, count in self.decisions.items() if count)
        verdicts = ", ".join(
            f"{count} {verdict.lower().replace('_', ' ')}"
            for verdict, count in self.verdicts.items()
            if count
        )
        mean = f", mean score {self.score_sum / self.scored:.3f}" if self.scored else ""
        answers = f"{self.responses:,} response{'' if self.responses == 1 else 's'}"
        lines = [
            Text(f"{answers}: {decisions or 'none judged'}{mean}", "bold"),
            *self.rules.lines(),
            Text(f"{self.claims:,} claim{'' if self.claims == 1 else 's'}: {verdicts or 'none'}"),
        ]
        if self.unanswered:
            share = f"{self.unanswered:,} of {self.claims:,} claims were not judged"
            lines.append(Text(f"{share}, and count in no score: the events say why", "bold yellow"))
            lines += self.unverified.lines()
        if self.degraded:
            share = f"{self.degraded:,} of {self.claims:,} claims were degraded: who was to judge did not"
            lines.append(Text(share, "bold yellow"))
            lines += self.missed.lines()
        if unrouted := self.unrouted.lines():
            lines.append(Text("no entry of routes names these, so the default policy holds:", "bold yellow"))
            lines += unrouted
        if self.usage.judge_calls:
            lines.append(Text(self._consumed()))
        if self.unreadable:
            lines.append(
                Text(f"{self.unreadable:,} answer{'' if self.unreadable == 1 else 's'} could not be judged")
            )
        return lines

    def _consumed(self) -> str:
        usage = self.usage
        calls = f"{usage.judge_calls:,} call{'' if usage.judge_calls == 1 else 's'} of the judge"
        cost = f", {usage.cost_usd:.4f} USD" if usage.cost_usd else ""
        tokens = (
            f"{usage.input_tokens:,} tokens in ({usage.cached_input_tokens:,} cached), "
            f"{usage.output_tokens:,} out"
        )
        return f"{calls}: {tokens}{cost}"


class _Mean:
    """The mean of one score, without its values."""

    def __init__(self) -> None:
        self._sum, self._defined, self._undefined = 0.0, 0, 0

    def add(self, value: float | None) -> None:
        if value is None:
            self._undefined += 1
        else:
            self._sum, self._defined = self._sum + value, self._defined + 1

    def summary(self, errors: int) -> ScoreSummary:
        mean = self._sum / self._defined if self._defined else None
        return ScoreSummary(mean, self._defined, self._undefined, errors)


_REFRESH_PER_S: Final = 8
_MOST_WIDE: Final = 140
_NO_SCORE: Final = 2.0
MAX_ROWS: Final = 50
"""Rows of the table; of more responses those with the lowest scores are shown."""


class _PatientConsole(Console):
    """A console whose reader may go away (``| head``): then it is silent, and the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


class Report:
    """Takes the results in order. Use as a context manager; the totals are written at the end.

    Results and verdicts go at once to the files that ``writes_to`` names, so that a reader downstream sees
    them as they come. The cards that ``show`` asks for come with them, before the table. The table goes to
    stdout, or to stderr when the events are there, at the end: in the order of the input, or of many
    responses the worst ones, lowest score first. The bar is on stderr, and only on a terminal.
    """

    def __init__(
        self,
        sources: Sources,
        *,
        table_on_stderr: bool,
        router: PolicyRouter | None = None,
        show: str | None = None,
        scores: Sequence[str] = (),
    ) -> None:
        """``router`` tells which routes no entry names. ``show``: one of SHOW_WORDS, or an id."""
        self.totals = Totals()
        self.cards = 0
        """Printed."""
        self.keeps = False
        """Whether results are kept in ``kept``, for those who want all of them at the end."""
        self.kept: list[EvaluationResult] = []
        self._router = router
        self._show = show
        self._sources = sources
        self._scores = {name: _Mean() for name in scores}
        self._results: ResultsFile | None = None
        self._verdicts: BinaryIO | None = None
        self._verdicts_as = "event"
        self._before = 0
        self._worst: list[tuple[float, int, Text]] = []
        self._errors = _PatientConsole(stderr=True, highlight=False)
        # A terminal has one cursor: where the table is on it too, the bar's console has to write the rows.
        together = table_on_stderr or (sys.stdout.isatty() and sys.stderr.isatty())
        self._table = self._errors if together else _PatientConsole(highlight=False)
        self._symbols = symbols_for(self._table.encoding)
        # Rows keep their width where the terminal is narrower; lines about why use what there is.
        self._width = max(header().cell_len, min(_MOST_WIDE, self._table.width - 1))
        self._progress = Progress(
            TextColumn("judged {task.fields[judged]:,}"),
            BarColumn(),
            TaskProgressColumn(show_speed=False),
            TimeElapsedColumn(),
            console=self._errors,
            disable=not sys.stderr.isatty(),
            transient=True,
            refresh_per_second=_REFRESH_PER_S,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=sources.size, judged=0)

    def writes_to(
        self, results: ResultsFile | None, verdicts: BinaryIO | None, verdicts_as: str = "event"
    ) -> None:
        """Where results go from now on; None is nowhere. ``verdicts_as``: event, four or binary."""
        self._results, self._verdicts, self._verdicts_as = results, verdicts, verdicts_as

    @property
    def log_stream(self) -> TextIO:
        """Where logs may go meanwhile: stderr, above the bar where there is one."""
        return sys.stderr if self._progress.disable else cast("TextIO", FileProxy(self._errors, sys.stderr))

    def __enter__(self) -> Self:
        self._progress.start()
        if self._before:
            told = f"{self._before:,} results were there already"
            self._errors.print(Text(told, "dim"), soft_wrap=True)
        if self._show is None:
            self._table.print(header(), soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if error is None:
            if self._show is not None:
                self._table.print(header(), soft_wrap=True)
            self._print_rows()
            for line in self.totals.lines():
                self._table.print(line, soft_wrap=True)
            # What a table shows anyway, the mean of the policy's own score, needs no line of its own.
            if list(self._scores) != [OWN_SCORE]:
                summary = {name: each.summary(self.totals.unreadable) for name, each in self._scores.items()}
                for told in summary_lines(summary):
                    self._table.print(Text(told), soft_wrap=True)

    def _print_rows(self) -> None:
        left_out = self.totals.responses - len(self._worst)
        # Places in the heap are (-score, -number): from the end, the lowest score and the first line.
        rows = sorted(self._worst, key=lambda kept: kept[:2] if left_out else kept[1:2], reverse=True)
        for _, _, text in rows:
            self._table.print(text, soft_wrap=True)
        if left_out:
            shown = f"the {len(rows)} lowest scores, lowest first; {left_out:,} more responses are left out"
            self._table.print(Text(shown, "dim"), soft_wrap=True)

    def _keep(self, verdict: ResponseVerdict) -> None:
        """Keep the row if it is among the worst so far; what has no score comes after all that have one."""
        score = _NO_SCORE if verdict.score is None else verdict.score
        text = row(verdict) + why(verdict, self._symbols, self._width)
        kept = (-score, -self.totals.responses, text)
        if len(self._worst) < MAX_ROWS:
            heapq.heappush(self._worst, kept)
        else:
            heapq.heappushpop(self._worst, kept)

    def add(self, result: EvaluationResult) -> None:
        """One more result. Raises BrokenPipeError when nobody reads the events any more."""
        if self._results is not None:
            self._results.write(result)
        if self._verdicts is not None:
            self._write_verdict(self._verdicts, result)
        self._take(result)
        self._progress.update(self._task, completed=self._sources.position, judged=self.totals.responses)

    def _write_verdict(self, file: BinaryIO, result: EvaluationResult) -> None:
        if self._verdicts_as == "event":
            if result.verdict is not None:
                write_line(file, result.verdict)
            return
        from guardrail.offline.four_verdicts import binary_verdicts_batch, four_verdicts_batch

        batch = four_verdicts_batch if self._verdicts_as == "four" else binary_verdicts_batch
        file.write(batch([result]).evaluations[0].model_dump_json().encode() + b"\n")
        file.flush()

    def note(self, result: EvaluationResult) -> None:
        """A result that was there before this run: it counts, and is not written again."""
        self._before += 1
        self._take(result)

    def print_lines(self, lines: Iterable[str]) -> None:
        """Text under the table."""
        for line in lines:
            self._table.print(Text(escape_controls(line)), soft_wrap=True)

    def _take(self, result: EvaluationResult) -> None:
        if self.keeps:
            self.kept.append(result)
        verdict = result.verdict
        if verdict is None:
            self.totals.unreadable += 1
            reason = escape_controls(f"{self._sources.name}{result.place}: {result.error}")
            self._errors.print(Text(reason), soft_wrap=True)
            return
        self.totals.add(verdict)
        for name, value in result.scores.items():
            if name in self._scores:
                self._scores[name].add(value.value)
        if result.response is not None:
            self._note_route(result.response)
            if self._wanted(verdict):
                self._print_card(result.response, verdict)
        self._keep(verdict)

    def below(self, name: str, bound: float) -> str:
        """What is wrong if the mean of a score is below ``bound`` or undefined, else ""."""
        mean = self._scores[name].summary(0).mean
        if mean is None:
            return f"{name} is undefined, so it is not at least {bound:g}: no answer has a value"
        return f"mean {name} {mean:.3f} is below {bound:g}" if mean < bound else ""

    def tell_sources(self) -> None:
        """What a reader has to know of the sources as a whole."""
        told = []
        if before := self._sources.begun_before:
            told.append(
                f"{before:,} records are of answers that began earlier; read from before with --since"
            )
        told += unread_told(self._sources.unread)
        if proofs := self._sources.proofs:
            told.append(f"{proofs:,} answers are proofs of guardrail doctor; they are left out")
        if self._results is not None and (changed := self._results.changed):
            told.append(
                f"{len(changed):,} answers changed since they were judged, first {changed[0]}; their old "
                "results stand: give --overwrite to judge all anew"
            )
        if self._results is not None and self._results.vanished:
            told.append(f"{self._results.vanished:,} results are of answers that the source no longer has")
        for each in told:
            self._errors.print(Text(escape_controls(each), "yellow"), soft_wrap=True)

    def _note_route(self, response: Response) -> None:
        router = self._router
        if router and router.misses(response.route, response.tenant, response.generator_model):
            self.totals.unrouted.add(f"route {response.route}")

    def _wanted(self, verdict: ResponseVerdict) -> bool:
        if self._show is None:
            return False
        decisions = SHOW_WORDS.get(self._show)
        return verdict.response_id == self._show if decisions is None else verdict.decision in decisions

    def _print_card(self, response: Response, verdict: ResponseVerdict) -> None:
        self.cards += 1
        card = Card(response, response.answer, list(verdict.claims), verdict=verdict)
        width = min(_MOST_WIDE, self._table.width)
        self._table.print(finished_card(card, verdict, self._symbols, width, delivered=False))
