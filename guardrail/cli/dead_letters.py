"""``guardrail dead-letters``: look at what was refused, and write it back when the cause is gone.

Everything in a dead letter may be hostile: it is escaped for terminals, and values are shown only when asked.
"""

from __future__ import annotations

import asyncio
import base64
import heapq
import json
import os
import sys
import time
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from guardrail.cli.options import (
    FILTERS,
    BootstrapOption,
    ConfigOption,
    filter_option,
    group_option,
    option,
    settings_from,
    since_option,
)
from guardrail.cli.sources import since_time_ms
from guardrail.cli.terminal import EXIT_FAILURE, err, out
from guardrail.printable import escape_controls, shorten
from guardrail.render import counted

if TYPE_CHECKING:
    from rich.console import Console

    from consumers.dead_letter_replay import DeadLetter, DeadLetterFilter, ReplayReport
    from consumers.settings import KafkaSettings

DEFAULT_ROWS: Final = 100
_COLUMNS: Final = ("at", "refused", "reason", "from", "key", "bytes", "message")
_MAX_CELL: Final = 60
_MAX_MESSAGE: Final = 200
_MAX_REASONS: Final = 20
_NO_REASON: Final = "(not written by a guard)"
_LATEST_S: Final = 253_402_300_799
"""The end of the year 9999: datetime knows no later one."""

dead_letters_app = typer.Typer(
    no_args_is_help=True, help="Look at input that could not be used, and write it back."
)

LIST_EPILOG = """[bold]Examples[/]

guardrail dead-letters list --bootstrap-servers localhost:9092 --since 2h

guardrail dead-letters list --reason invalid_json --json --show-values | jq -r .value"""

REPLAY_EPILOG = """[bold]Examples[/]

guardrail dead-letters replay --bootstrap-servers localhost:9092 --dry-run

guardrail dead-letters replay --reason unknown_schema --since 2026-03-01 --yes

guardrail dead-letters replay --to rag.responses.repair --limit 10

[bold]Status[/]: 0 done; 1 something failed or could not be written back, the message says what; 2 wrong
usage or settings."""

ReasonOption = Annotated[str | None, filter_option("--reason CODE", "Only those refused for this reason.")]
KeyOption = Annotated[
    str | None, filter_option("--key KEY", "Only those with this key: the id of a response.")
]
RefusedSinceOption = Annotated[str | None, since_option("Only those refused", panel=FILTERS)]


@dead_letters_app.command("list", epilog=LIST_EPILOG)
def list_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    reason: ReasonOption = None,
    key: KeyOption = None,
    since: RefusedSinceOption = None,
    limit: Annotated[
        int | None,
        filter_option(
            "--limit -n",
            "Show the newest N; the summary counts all.",
            default=f"{DEFAULT_ROWS}, all with --json",
            min=1,
        ),
    ] = None,
    as_json: Annotated[
        bool, option("--json", "One JSON object a line, with all headers; the summary on stderr.")
    ] = False,
    show_values: Annotated[
        bool, option("--show-values", "With --json: key and value, too, in base64 where they are no UTF-8.")
    ] = False,
) -> None:
    """Print the dead letters that are there now, oldest first, and how many there are of each reason.

    'at' is partition:offset of the dead letter, 'from' that of the record that was refused.
    What they hold is not shown unless asked for. Nothing is changed by it.
    """
    if show_values and not as_json:
        raise typer.BadParameter("goes with --json only", param_hint="--show-values")
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    listing = Listing(limit if as_json else limit or DEFAULT_ROWS, as_json=as_json, show_values=show_values)
    asyncio.run(_list(settings.kafka, _selection(reason, key, since), listing))
    listing.finish()


async def _list(settings: KafkaSettings, selection: DeadLetterFilter, listing: Listing) -> None:
    from consumers.dead_letter_replay import read_letter
    from consumers.reading import open_topic

    async with (
        open_topic(settings, settings.topics.dead_letters) as reader,
        aclosing(reader.until_end()) as records,
    ):
        async for record in records:
            if selection.wants(letter := read_letter(record)):
                listing.add(letter)


@dead_letters_app.command("replay", epilog=REPLAY_EPILOG)
def replay_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    group_id: Annotated[
        str | None,
        group_option("The guards' group; a replay keeps its progress in NAME-dead-letters-replay."),
    ] = None,
    reason: ReasonOption = None,
    key: KeyOption = None,
    since: RefusedSinceOption = None,
    limit: Annotated[int | None, filter_option("--limit -n", "Write at most the first N.", min=1)] = None,
    to: Annotated[
        str | None, option("--to TOPIC", "Write all to this topic.", default="where each came from")
    ] = None,
    from_beginning: Annotated[
        bool,
        option(
            "--from-beginning --all",
            "Also what was written back before. Without filters, progress starts over.",
        ),
    ] = False,
    dry_run: Annotated[bool, option("--dry-run", "Say what would be written, and end.")] = False,
    yes: Annotated[bool, option("--yes -y", "Don't ask.")] = False,
) -> None:
    """Write dead letters back to the topic they came from: key, value and headers as they were.

    Each once: what was written back is noted in the same transaction, so the next replay goes on where this
    one ended, also where it was killed. What a filter leaves out stays to be replayed. Order holds within a
    key. One header is added, guardrail-replayed, which counts how often.
    """
    from consumers.dead_letter_replay import ReplayRequest, plan_replay, run_replay

    if not (yes or dry_run or sys.stdin.isatty()):
        raise typer.BadParameter(
            "there is no terminal to ask for confirmation; give --yes, or --dry-run", param_hint="--yes"
        )
    settings = settings_from(
        config, {"kafka": {"bootstrap_servers": bootstrap_servers, "group_id": group_id}}
    )
    request = ReplayRequest(_selection(reason, key, since), to, from_beginning, limit)
    plan = asyncio.run(plan_replay(settings.kafka, request))
    print_plan(plan)
    if dry_run or not (plan.written or plan.unusable):
        raise typer.Exit(EXIT_FAILURE if plan.unusable else 0)
    if not yes:
        typer.confirm(f"Write {counted(plan.written, 'record')}?", abort=True, err=True)
    report = asyncio.run(run_replay(settings.kafka, plan))
    _print_unusable(err(), report)
    print_counts(out(), report.by_reason, " written back")
    raise typer.Exit(EXIT_FAILURE if report.unusable else 0)


def _selection(reason: str | None, key: str | None, since: str | None) -> DeadLetterFilter:
    from consumers.dead_letter_replay import DeadLetterFilter
    from consumers.dead_letters import REASONS

    if reason is not None and reason not in REASONS:
        raise typer.BadParameter(
            f"unknown reason {reason!r}; known reasons: {', '.join(REASONS)}", param_hint="--reason"
        )
    since_ms = None if since is None else since_time_ms(since, time.time())
    # Bytes that are no UTF-8 come as an argument in the form that os.fsencode takes back.
    return DeadLetterFilter(reason, None if key is None else os.fsencode(key), since_ms)


# --------------------------------------------------------------------------------------- printing


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
        record = letter.record
        if not self._show_values:  # a hundred values of megabytes are not kept for their sizes
            letter = replace(letter, record=record._replace(value=None), omitted_bytes=letter.size)
        at = record.timestamp_ms, record.partition.index, record.offset
        heapq.heappush(self._kept, (at, letter))
        if self._limit is not None and len(self._kept) > self._limit:
            heapq.heappop(self._kept)

    def finish(self) -> None:
        """Print what was kept, and the summary."""
        letters = [letter for _, letter in sorted(self._kept, key=lambda kept: kept[0])]
        if self._as_json:
            for letter in letters:
                self._print_json(letter)
        elif letters:
            print_letters(self._out, letters)
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


def print_letters(console: Console, letters: list[DeadLetter]) -> None:
    """Folded to its width on a terminal; elsewhere a line each, for grep."""
    from guardrail.render import print_table

    rows = [[Text(cell) for cell in _row(letter)] for letter in letters]
    print_table(console, _COLUMNS, rows, right=("bytes",))


def _row(letter: DeadLetter) -> tuple[str, ...]:
    record, origin = letter.record, letter.origin
    key = "-" if record.key is None else record.key.decode("utf-8", "backslashreplace")
    cells = (
        f"{record.partition.index}:{record.offset}",
        iso_time(record.timestamp_ms),
        letter.reason or "-",
        f"{origin.topic}[{origin.partition}]:{origin.offset}" if origin else "-",
        key or '""',
        str(letter.size),
    )
    told = tuple(shorten(escape_controls(cell), _MAX_CELL) for cell in cells)
    return (*told, shorten(escape_controls(letter.message or letter.error or "-"), _MAX_MESSAGE))


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
    line = f"{counted(total, 'dead letter')}{what}" + (f": {', '.join(parts)}" if parts else "")
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
        are, stay = ("is", "stays") if plan.left == 1 else ("are", "stay")
        say(f"  {plan.left:,} {are} left out by the filters and {stay} to be replayed")
    _print_unusable(console, plan)
    if plan.came_back:
        were = "was" if plan.came_back == 1 else "were"
        say(f"warning: {plan.came_back:,} of them {were} replayed before and came back", "yellow")
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


def _print_unusable(console: Console, report: ReplayReport) -> None:
    for line in report.told:
        console.print(Text(f"can't be written back: {escape_controls(line)}", "red"), soft_wrap=True)
    if report.unusable > len(report.told):
        from consumers.dead_letter_replay import MAX_TOLD

        more = f"… and {report.unusable - MAX_TOLD:,} more that can't be written back"
        console.print(Text(more, "red"), soft_wrap=True)
