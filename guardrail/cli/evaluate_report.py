"""What ``guardrail evaluate`` writes: events, errors and progress while it works, a table at the end.

The table keeps the rows that it shows, and of all results no more than figures. Under a response that is not
simply released stands why: the rule, and the claim that it was about.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, BinaryIO, Final, Self, TextIO, cast

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from guardrail.cli.evaluate_sources import EvaluateRequest, Sources
from guardrail.cli.results_file import ResultsFile
from guardrail.cli.terminal import discard
from guardrail.evals.evaluation import OWN_SCORE
from guardrail.evals.formats import unread_messages
from guardrail.evals.four_verdicts import VerdictsBatch, binary_verdicts_batch, four_verdicts_batch
from guardrail.evals.overview import NO_REASON, OTHERS, WORST, Overview, Published, Reasons, Worst
from guardrail.evals.results import EvaluationResult, ScoreSummary, summary_lines, write_line
from guardrail.events import Decision, ResponseVerdict, Usage, Verdict, claim_that_decided
from guardrail.printable import escape_controls, shorten
from guardrail.render import DECISION_STYLES, VERDICT_STYLES, Symbols, counted, symbols_for

ID_WIDTH: Final = 26
TOLD_WIDTH: Final = 72
_TOLD_SHOWN: Final = 5
_OTHER: Final = "for other reasons"
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


def row(verdict: ResponseVerdict, score: float | None) -> Text:
    """One response. Its id is made harmless and cut to the column."""
    counts = verdict.counts.model_dump()
    value = "-" if score is None else f"{score:.3f}"
    text = Text(f"{shorten(escape_controls(verdict.response_id), ID_WIDTH):<{ID_WIDTH}} {value:>5}  ")
    text.append(f"{verdict.decision:<8}", DECISION_STYLES[verdict.decision])
    text.append(f" {len(verdict.claims):>6}")
    for _, each in _COLUMNS:
        text.append(f" {counts[each.lower()] or '.':>5}")
    return text


def why(verdict: ResponseVerdict, symbols: Symbols, width: int) -> Text:
    """Rule, claim and reason, a line each of at most ``width``, after a line break; nothing of a release."""
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


def most_frequent(counts: Counter[str], width: int = TOLD_WIDTH) -> list[Text]:
    """The most frequent of what was said, cut to ``width``, a line each; how many more are on the last.

    Where no reason was given there is nothing to tell. Texts that look the same on a line count as one.
    """
    told: Counter[str] = Counter()
    for said, count in counts.items():
        if said not in {OTHERS, NO_REASON}:
            told[shorten(escape_controls(said), width)] += count
    # The last of one more takes the line that would count it.
    shown = told.most_common(None if len(told) == _TOLD_SHOWN + 1 and not counts[OTHERS] else _TOLD_SHOWN)
    if rest := told.total() + counts[OTHERS] - sum(count for _, count in shown):
        shown.append((_OTHER, rest))
    return [Text(f"{count:>7,} {said}") for said, count in shown]


def totals(
    run: Overview, unrouted: Reasons, width: int = TOLD_WIDTH, *, own_score: bool = True
) -> list[Text]:
    """What stands under the table. ``unrouted``: routes of responses that no entry of ``routes`` names.
    ``own_score``: the table shows the policy's score, whose mean stands here then.
    """
    whole = run.whole
    decisions = ", ".join(f"{whole.decisions[each]} {each}" for each in Decision if whole.decisions[each])
    verdicts = ", ".join(
        f"{count} {verdict.lower().replace('_', ' ')}"
        for verdict in Verdict
        if (count := whole.claims_with([verdict]))
    )
    has_mean = own_score and whole.scores
    mean = f", mean score {math.fsum(whole.scores) / len(whole.scores):.3f}" if has_mean else ""
    rules: Counter[str] = Counter()
    for (decision, rule), count in run.rules.items():
        if decision is not Decision.RELEASE:
            rules[OTHERS if rule == OTHERS else f"{decision} by rule: {rule}"] += count
    lines = [
        Text(f"{counted(whole.judged, 'response')}: {decisions or 'none judged'}{mean}", "bold"),
        *most_frequent(rules, width),
        Text(f"{counted(whole.claims, 'claim')}: {verdicts or 'none'}"),
    ]
    if unanswered := run.unverified.counts.total():
        share = f"{unanswered:,} of {whole.claims:,} claims were not judged"
        lines.append(Text(f"{share}, and count in no score: the events say why", "bold yellow"))
        lines += most_frequent(run.unverified.counts, width)
    if run.degraded_claims:
        share = f"{run.degraded_claims:,} of {whole.claims:,} claims were judged by a fallback judge"
        lines.append(Text(share, "bold yellow"))
        lines += most_frequent(run.degraded.counts, width)
    if unrouted.counts:
        lines.append(Text("no entry of routes names these, so the default policy holds:", "bold yellow"))
        lines += most_frequent(unrouted.counts, width)
    if run.usage.judge_calls:
        lines.append(Text(_consumed(run.usage)))
    if whole.errors:
        lines.append(Text(f"{counted(whole.errors, 'answer')} could not be judged"))
    return lines


def _consumed(usage: Usage) -> str:
    cost = f", {usage.cost_usd:.4f} USD" if usage.cost_usd else ""
    read = f"{usage.input_tokens:,} tokens in ({usage.cached_input_tokens:,} cached)"
    return f"{counted(usage.judge_calls, 'call')} of the judge: {read}, {usage.output_tokens:,} out{cost}"


_REFRESH_PER_S: Final = 8
_MOST_WIDE: Final = 140
_MOST_ERRORS: Final = 5
_NO_SCORE: Final = 2.0
MAX_ROWS: Final = 50
"""Rows of the table; of more responses those with the lowest scores are shown."""


class _PatientConsole(Console):
    """A console whose reader may go away (``| head``): then it is silent, and the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


class Report:
    """Takes the results in order. Use as a context manager; after an error there are no rows and no totals.

    Results and verdicts go at once to ``results`` and ``verdicts``, so that a reader downstream sees them as
    they come. The table goes to stdout, or to stderr where events are on stdout, all of it at the end. Rows
    are in the order of the input, or of many responses the worst ones, by the first of ``--score``. On a
    terminal with both, the table is on stderr too. The bar is on stderr, and only on a terminal.
    """

    def __init__(self, sources: Sources, request: EvaluateRequest) -> None:
        self.run = Overview(worst=0 if request.report is None else WORST)
        """The figures so far."""
        self.results: ResultsFile | None = None
        self.verdicts: BinaryIO | None = None
        self._unrouted = Reasons()
        self._request = request
        self._sources = sources
        self._before = 0
        self._batch: list[EvaluationResult] | None = [] if request.verdicts_as.endswith("-batch") else None
        self._as_batch: Callable[[list[EvaluationResult]], VerdictsBatch[Any]]
        self._as_batch = four_verdicts_batch if "four" in request.verdicts_as else binary_verdicts_batch
        self._worst = Worst[tuple[int, Text]](MAX_ROWS)
        self._errors = _PatientConsole(stderr=True, highlight=False)
        # A terminal has one cursor: where the table is on it too, the bar's console has to write the rows.
        together = sys.stdout.isatty() and sys.stderr.isatty()
        on_stdout = "-" in {request.out, request.verdicts}  # where the table makes room
        self._table = self._errors if together or on_stdout else _PatientConsole(highlight=False)
        self._symbols = symbols_for(self._table.encoding)
        # Rows keep their width where the terminal is narrower; lines about why use what there is.
        self._width = max(header().cell_len, min(_MOST_WIDE, self._table.width - 1))
        self._told_width = TOLD_WIDTH
        if not self._table.is_terminal:  # nothing is cut for a file, or a program
            self._width = self._told_width = sys.maxsize
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

    @property
    def log_stream(self) -> TextIO:
        """Where logs may go meanwhile: stderr, above the bar where there is one."""
        return sys.stderr if self._progress.disable else cast("TextIO", FileProxy(self._errors, sys.stderr))

    def __enter__(self) -> Self:
        self._progress.start()
        if self._before:
            told = f"{self._before:,} results were there already"
            self._errors.print(Text(told, "dim"), soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if self._batch is not None and self.verdicts is not None and not isinstance(error, OSError):
            write_line(self.verdicts, self._as_batch(self._batch))
        if error is None:
            self._print_rows()
            own = self._request.scores[0] == OWN_SCORE
            for line in totals(self.run, self._unrouted, self._told_width, own_score=own):
                self._table.print(line, soft_wrap=True)
            # What a table shows anyway, the mean of the policy's own score, needs no line of its own.
            if self._request.scores != [OWN_SCORE]:
                summary = {name: self._summary(name) for name in self._request.scores}
                for told in summary_lines(summary):
                    self._table.print(Text(told), soft_wrap=True)

    def _print_rows(self) -> None:
        rows = self._worst.in_order()
        if rows:
            self._table.print(header(), soft_wrap=True)
        left_out = self.run.whole.judged - len(rows)
        for _, text in rows if left_out else sorted(rows, key=lambda row: row[0]):
            self._table.print(text, soft_wrap=True)
        if left_out:
            shown = f"the {len(rows)} lowest scores, lowest first; {left_out:,} more responses are left out"
            self._table.print(Text(shown, "dim"), soft_wrap=True)

    def add(self, result: EvaluationResult) -> None:
        """One more result. Raises BrokenPipeError when nobody reads the events any more."""
        if self.results is not None:
            self.results.write(result)
        if self.verdicts is not None:
            self._write_verdict(self.verdicts, result)
        self._take(result)
        self._progress.update(self._task, completed=self._sources.position, judged=self.run.whole.judged)

    def _write_verdict(self, file: BinaryIO, result: EvaluationResult) -> None:
        if self._batch is not None:
            self._batch.append(result)  # one document, written at the end
        elif self._request.verdicts_as != "event":
            # The prompt has no word for a failure, which has its line all the same.
            entry = self._as_batch([result]).evaluations[0]
            write_line(file, entry.evaluation or entry)
        elif result.verdict is not None:
            write_line(file, result.verdict)

    def note(self, result: EvaluationResult) -> None:
        """A result from before this run: it counts, and isn't written. Entering tells how many there were."""
        self._before += 1
        self._take(result)

    def print_lines(self, lines: Iterable[str]) -> None:
        """Text under the table."""
        for line in lines:
            self._table.print(Text(escape_controls(line)), soft_wrap=True)

    def _take(self, result: EvaluationResult) -> None:
        self.run.add(result)
        if result.verdict is None:
            if self.run.whole.errors <= _MOST_ERRORS:
                reason = escape_controls(f"{self._sources.name}{result.place}: {result.error}")
                self._errors.print(Text(reason), soft_wrap=True)
            return
        head, router = result.response, self._request.router
        if head is not None and router.misses(head.route, head.tenant, head.generator_model):
            self._unrouted.add(f"route {head.route}", "")
        first = result.scores.get(self._request.scores[0])
        score = result.verdict.score if first is None else first.value
        text = row(result.verdict, score) + why(result.verdict, self._symbols, self._width)
        # What has no score comes after all that have one.
        self._worst.add(-(_NO_SCORE if score is None else score), 0.0, (self.run.whole.judged, text))

    def _summary(self, name: str) -> ScoreSummary:
        values, whole = self.run.published.get(name, Published()).values, self.run.whole
        mean = math.fsum(values) / len(values) if values else None
        return ScoreSummary(mean, len(values), whole.judged - len(values), whole.errors)

    def below(self, name: str, bound: float) -> str:
        """What is wrong if the mean of a score is below ``bound`` or undefined, else ""."""
        mean = self._summary(name).mean
        if mean is None:
            return f"{name} is undefined, so it is not at least {bound:g}: no answer has a value"
        return f"mean {name} {mean:.3f} is below {bound:g}" if mean < bound else ""

    def tell_sources(self) -> None:
        """What a reader has to know of the sources as a whole."""
        told = []
        if (more := self.run.whole.errors - _MOST_ERRORS) > 0:
            where = "the results in --out say why" if self._request.out else "--out FILE names each"
            told.append(f"{more:,} more answers could not be judged; {where}")
        if before := self._sources.begun_before:
            told.append(
                f"{before:,} records are of answers that began earlier; read from before with --since"
            )
        told += unread_messages(self._sources.unread)
        if proofs := self._sources.proofs:
            told.append(f"{proofs:,} answers are proofs of guardrail doctor; they are left out")
        if self.results is not None and (changed := self.results.changed):
            told.append(
                f"{len(changed):,} answers changed since they were judged, first {changed[0]}; their old "
                "results stand: give --force to judge all anew"
            )
        if self.results is not None and self.results.vanished:
            told.append(f"{self.results.vanished:,} results are of answers that the source no longer has")
        for each in told:
            self._errors.print(Text(escape_controls(each), "yellow"), soft_wrap=True)
