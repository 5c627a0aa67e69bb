"""What ``guardrail dead-letters`` prints: a table or JSON lines, a summary, and what a replay does.

Everything in a dead letter may be hostile: it is escaped for terminals, and values are shown only when asked.
"""

from __future__ import annotations

import base64
import heapq
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from consumers.dead_letter_replay import MAX_TOLD, DeadLetter, ReplayReport
from guardrail.cli.terminal import err, out
from guardrail.printable import escape_controls, shorten

_COLUMNS: Final = ("at", "refused", "reason", "error", "stage", "from", "key", "bytes")
_MAX_CELL: Final = 60
_MAX_REASONS: Final = 20
_NO_REASON: Final = "(not written by a guard)"
_LATEST_S: Final = 253_402_300_799
"""The end of the year 9999: datetime knows no later one."""


class Listing:
    """Takes dead letters in any order and prints the newest ``limit``, oldest first; None is all.

    JSON lines without a limit are printed as they come; otherwise memory is bounded by the limit.
    """

    def __init__(self, limit: int | None, *, as_json: bool, show_values: bool) -> None:
        self._limit = limit
        self._as_json = as_json
        self._show_values = show_values
        self._kept: list[tuple[tuple[int, int, int], DeadLetter]] = []
        self._by_reason: Counter[str] = Counter()
        self._out = out()

    def add(self, letter: DeadLetter) -> None:
        """One that is wanted."""
        self._by_reason[letter.reason] += 1
        if self._as_json and self._limit is None:
            self._print_json(letter)
            return
        if not self._show_values:
            letter = _without_value(letter)
        record = letter.record
        kept = ((record.timestamp_ms, record.partition.index, record.offset), letter)
        if self._limit is None or len(self._kept) < self._limit:
            heapq.heappush(self._kept, kept)
        else:
            heapq.heappushpop(self._kept, kept)

    def finish(self) -> None:
        """Print what was kept, and the summary."""
        letters = [letter for _, letter in sorted(self._kept, key=lambda kept: kept[0])]
        if self._as_json:
            for letter in letters:
                self._print_json(letter)
        elif letters:
            print_table(self._out, letters)
        # JSON lines are for programs; the summary is for whoever looks on.
        console = err() if self._as_json else self._out
        total = self._by_reason.total()
        if self._limit is not None and total > self._limit:
            more = f"the newest {self._limit} are shown; {total - self._limit:,} more are left out"
            console.print(Text(more, "dim"), soft_wrap=True)
        print_counts(console, self._by_reason, "")

    def _print_json(self, letter: DeadLetter) -> None:
        # ASCII only: json escapes everything else, so nothing in it can reach a terminal's controls.
        self._out.out(json.dumps(as_dict(letter, show_values=self._show_values)), highlight=False)


def as_dict(letter: DeadLetter, *, show_values: bool) -> dict[str, Any]:
    """A dead letter as JSON has it; ``headers`` are all headers of the record, as pairs, in order."""
    record = letter.record
    found: dict[str, Any] = {
        "topic": record.partition.topic,
        "partition": record.partition.index,
        "offset": record.offset,
        "time": iso_time(record.timestamp_ms),
        "reason": letter.reason,
        "error": letter.error,
        "message": letter.message,
        "stage": letter.stage,
        "origin": letter.origin._asdict() if letter.origin else None,
        "bytes": letter.size,
        "replays": letter.replays,
        "headers": [[name, _bytes(value)] for name, value in record.headers],
    }
    if show_values:
        found["key"] = _bytes(record.key)
        found["value"] = _bytes(record.value)
    return found


def _bytes(value: bytes | None) -> str | dict[str, str] | None:
    """Text where it is UTF-8, else an object with its base64."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _without_value(letter: DeadLetter) -> DeadLetter:
    """As the table needs it: a hundred values of megabytes are not kept for their sizes."""
    return replace(letter, record=letter.record._replace(value=None), omitted_bytes=letter.size)


def print_table(console: Console, letters: list[DeadLetter]) -> None:
    """Folded to its width on a terminal; elsewhere a line each, for grep."""
    rows = [_row(letter) for letter in letters]
    if console.is_terminal:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in _COLUMNS:
            table.add_column(name, overflow="fold", justify="right" if name == "bytes" else "left")
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        return
    widths = [max(len(row[column]) for row in (_COLUMNS, *rows)) for column in range(len(_COLUMNS))]
    for row in (_COLUMNS, *rows):
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(Text(line.rstrip()), soft_wrap=True)


def _row(letter: DeadLetter) -> tuple[str, ...]:
    record, origin = letter.record, letter.origin
    key = "-" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    cells = (
        f"{record.partition.index}:{record.offset}",
        iso_time(record.timestamp_ms),
        letter.reason or "-",
        letter.error or "-",
        letter.stage or "-",
        f"{origin.topic}[{origin.partition}]:{origin.offset}" if origin else "-",
        key or '""',
        str(letter.size),
    )
    return tuple(shorten(escape_controls(cell), _MAX_CELL) for cell in cells)


def iso_time(timestamp_ms: int) -> str:
    """UTC, to the second; a time that no calendar has is told as it is."""
    seconds = timestamp_ms // 1000
    if not 0 <= seconds <= _LATEST_S:
        return str(timestamp_ms)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def print_counts(console: Console, counts: Counter[str], what: str) -> None:
    """``3 dead letters: 2 invalid_json, 1 unknown_schema``, the most frequent reasons first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = [
        f"{count:,} {shorten(escape_controls(name), _MAX_CELL) or _NO_REASON}"
        for name, count in ranked[:_MAX_REASONS]
    ]
    if len(ranked) > _MAX_REASONS:
        parts.append(f"{sum(count for _, count in ranked[_MAX_REASONS:]):,} of other reasons")
    total = counts.total()
    line = f"{total:,} dead letter{'' if total == 1 else 's'}{what}" + (
        f": {', '.join(parts)}" if parts else ""
    )
    console.print(Text(line, "bold"), soft_wrap=True)


def print_plan(plan: ReplayReport) -> None:
    """On stderr, what would be written where, what would not and why, and what to expect of it."""
    console = err()

    def say(text: str, style: str = "") -> None:
        console.print(Text(escape_controls(text), style), soft_wrap=True)

    print_counts(console, plan.by_reason, " to write back")
    for topic, count in sorted(plan.by_topic.items()):
        say(f"  {count:,} to {shorten(topic, _MAX_CELL)}")
    if plan.left:
        say(f"  {plan.left:,} are left out by the filters and stay to be replayed")
    _print_unusable(console, plan)
    if plan.came_back:
        say(f"warning: {plan.came_back:,} of them were replayed before and came back", "yellow")
    if plan.written:
        say(
            "note: an event of a response that has ended comes back as a dead letter; replay responses whole",
            "dim",
        )
    say(f"progress is kept in the consumer group {plan.group_id}", "dim")
    if plan.request.from_beginning and plan.request.selection.everything:
        say("progress starts over: what was written back before is written again", "yellow")
    elif plan.request.from_beginning:
        say("what was written back before is written again", "yellow")


def print_done(report: ReplayReport) -> None:
    """On stdout, what was written; on stderr, what could not be."""
    _print_unusable(err(), report)
    print_counts(out(), report.by_reason, " written back")


def _print_unusable(console: Console, report: ReplayReport) -> None:
    for line in report.told:
        console.print(Text(f"can't be written back: {escape_controls(line)}", "red"), soft_wrap=True)
    if report.unusable > len(report.told):
        more = f"… and {report.unusable - MAX_TOLD:,} more that can't be written back"
        console.print(Text(more, "red"), soft_wrap=True)
