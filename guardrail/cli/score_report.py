"""What ``guardrail score`` writes while it works: events, table, unreadable lines, progress."""

from __future__ import annotations

import heapq
import sys
from types import TracebackType
from typing import BinaryIO, Final, Self, TextIO, cast

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from guardrail.cli.pipes import discard
from guardrail.events import ResponseVerdict
from guardrail.offline.scorer import Outcome
from guardrail.offline.table import Totals, header, row
from guardrail.printable import escape_controls

_REFRESH_PER_S: Final = 8
_NO_SCORE: Final = 2.0
MAX_ROWS: Final = 50
"""Rows of the table; of more responses those with the lowest scores are shown."""


class _PatientConsole(Console):
    """A console whose reader may go away (``| head``): then it is silent, and the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


class Report:
    """Takes the outcomes in order. Use as a context manager; the totals are written at the end.

    Events go to ``events`` at once, so that a reader downstream sees them as they come. The table goes to
    stdout, or to stderr when the events are there, at the end: in the order of the input, or of many
    responses the worst ones, lowest score first. The bar is on stderr, and only on a terminal.
    """

    def __init__(self, source: str, size: int | None, events: BinaryIO, *, table_on_stderr: bool) -> None:
        self.totals = Totals()
        self._source = escape_controls(source)
        self._events = events
        self._worst: list[tuple[float, int, Text]] = []
        self._errors = _PatientConsole(stderr=True, highlight=False)
        # A terminal has one cursor: where the table is on it too, the bar's console has to write the rows.
        together = table_on_stderr or (sys.stdout.isatty() and sys.stderr.isatty())
        self._table = self._errors if together else _PatientConsole(highlight=False)
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
        self._task = self._progress.add_task("", total=size, judged=0)

    @property
    def log_stream(self) -> TextIO:
        """Where logs may go meanwhile: stderr, above the bar where there is one."""
        return sys.stderr if self._progress.disable else cast("TextIO", FileProxy(self._errors, sys.stderr))

    def __enter__(self) -> Self:
        self._progress.start()
        self._table.print(header(), soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if error is None:
            self._print_rows()
            for line in self.totals.lines():
                self._table.print(line, soft_wrap=True)
        self._events.flush()

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
        kept = (-score, -self.totals.responses, row(verdict))
        if len(self._worst) < MAX_ROWS:
            heapq.heappush(self._worst, kept)
        else:
            heapq.heappushpop(self._worst, kept)

    def add(self, outcome: Outcome) -> None:
        """One line of the input is done. Raises BrokenPipeError when nobody reads the events any more."""
        if outcome.verdict is None:
            self.totals.unreadable += 1
            reason = escape_controls(outcome.problem or "")
            self._errors.print(Text(f"{self._source}:{outcome.line}: {reason}"), soft_wrap=True)
        else:
            self.totals.add(outcome.verdict)
            self._events.write(outcome.verdict.to_json() + b"\n")
            self._events.flush()
            self._keep(outcome.verdict)
        self._progress.update(self._task, advance=outcome.size, judged=self.totals.responses)
