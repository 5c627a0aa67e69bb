"""What ``guardrail score`` writes while it works: events, table, unreadable lines, progress."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import BinaryIO, Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from guardrail.cli.pipes import discard
from guardrail.offline.scorer import Outcome
from guardrail.offline.table import Totals, header, row
from guardrail.printable import escape_controls

_REFRESH_PER_S: Final = 8


class _PatientConsole(Console):
    """A console whose reader may go away (``| head``): then it is silent, and the work goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(self.file)


class Report:
    """Takes the outcomes in order. Use as a context manager; the totals are written at the end.

    Events go to ``events`` at once, so that a reader downstream sees them as they come. The table goes to
    stdout, or to stderr when the events are there. The bar is on stderr, and only on a terminal.
    """

    def __init__(self, source: str, size: int | None, events: BinaryIO, *, table_on_stderr: bool) -> None:
        self.totals = Totals()
        self._source = escape_controls(source)
        self._events = events
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

    def __enter__(self) -> Self:
        self._progress.start()
        self._table.print(header(), soft_wrap=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()
        if error is None:
            for line in self.totals.lines():
                self._table.print(line, soft_wrap=True)
        self._events.flush()

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
            self._table.print(row(outcome.verdict), soft_wrap=True)
        self._progress.update(self._task, advance=outcome.size, judged=self.totals.responses)
