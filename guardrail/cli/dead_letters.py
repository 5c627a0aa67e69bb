"""``guardrail dead-letters``: look at what was refused, and write it back when the cause is gone."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from guardrail.cli.options import KAFKA_PANEL, BootstrapOption, ConfigOption, settings_from

if TYPE_CHECKING:
    from consumers.dead_letter_replay import DeadLetterFilter, ReplayReport
    from consumers.settings import KafkaSettings
    from guardrail.cli.dead_letter_report import Listing

DEFAULT_ROWS: Final = 100
_EXIT_UNUSABLE: Final = 1
_FILTERS: Final = "Filters"
_AGE: Final = re.compile(r"(\d{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

dead_letters_app = typer.Typer(
    no_args_is_help=True,
    help="Look at input that could not be used, and write it back.",
    rich_markup_mode="rich",
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

ReasonOption = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="CODE",
        rich_help_panel=_FILTERS,
        show_default=False,
        help="Only those refused for this reason.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        rich_help_panel=_FILTERS,
        show_default=False,
        help="Only those with this key: the id of a response.",
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        rich_help_panel=_FILTERS,
        show_default=False,
        help="Only those refused since: 30m, 2h, 7d, or an ISO time, UTC where it names no zone.",
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(
        "--group-id",
        metavar="NAME",
        show_default="kafka.group_id, guardrail",
        rich_help_panel=KAFKA_PANEL,
        help="The guards' group; a replay keeps its progress in NAME-dead-letters-replay.",
    ),
]


@dead_letters_app.command("list", epilog=LIST_EPILOG)
def list_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    reason: ReasonOption = None,
    key: KeyOption = None,
    since: SinceOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            rich_help_panel=_FILTERS,
            show_default=f"{DEFAULT_ROWS}, all with --json",
            help="Show the newest N; the summary counts all.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object a line, with all headers; the summary on stderr.")
    ] = False,
    show_values: Annotated[
        bool,
        typer.Option(
            "--show-values", help="With --json: key and value, too, in base64 where they are no UTF-8."
        ),
    ] = False,
) -> None:
    """Print the dead letters that are there now, oldest first, and how many there are of each reason.

    What they hold is not shown unless asked for. Nothing is changed by it.
    """
    from guardrail.cli.dead_letter_report import Listing

    if show_values and not as_json:
        raise typer.BadParameter("goes with --json only", param_hint="--show-values")
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    listing = Listing(limit if as_json else limit or DEFAULT_ROWS, as_json=as_json, show_values=show_values)
    asyncio.run(_list(settings.kafka, _selection(reason, key, since), listing))
    listing.finish()


async def _list(settings: KafkaSettings, selection: DeadLetterFilter, listing: Listing) -> None:
    from consumers.dead_letter_replay import open_reader

    async with open_reader(settings) as reader:
        for partition, span in reader.spans.items():
            async for letter in reader.read(partition, *span):
                if selection.wants(letter):
                    listing.add(letter)


@dead_letters_app.command("replay", epilog=REPLAY_EPILOG)
def replay_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    group_id: GroupOption = None,
    reason: ReasonOption = None,
    key: KeyOption = None,
    since: SinceOption = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            rich_help_panel=_FILTERS,
            show_default=False,
            help="Write at most the first N.",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", show_default="where each came from", help="Write all to this topic."),
    ] = None,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            "--all",
            help="Also what was written back before. Without filters, progress starts over.",
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and end.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
) -> None:
    """Write dead letters back to the topic they came from: key, value and headers as they were.

    Each once: what was written back is noted in the same transaction, so the next replay goes on where this
    one ended, also where it was killed. What a filter leaves out stays to be replayed. Order holds within a
    key. One header is added, guardrail-replayed, which counts how often.
    """
    from consumers.dead_letter_replay import ReplayRequest, plan_replay, run_replay
    from guardrail.cli.dead_letter_report import print_done, print_plan

    if not (yes or dry_run or sys.stdin.isatty()):
        raise typer.BadParameter(
            "stdin is no terminal to confirm at; give --yes, or --dry-run", param_hint="--yes"
        )
    settings = settings_from(
        config, {"kafka": {"bootstrap_servers": bootstrap_servers, "group_id": group_id}}
    )
    request = ReplayRequest(_selection(reason, key, since), to, from_beginning, limit)
    plan = asyncio.run(plan_replay(settings.kafka, request))
    print_plan(plan)
    if dry_run or not (plan.written or plan.unusable):
        raise typer.Exit(_status(plan))
    if not yes:
        typer.confirm(f"Write {plan.written} records?", abort=True, err=True)
    report = asyncio.run(run_replay(settings.kafka, plan))
    print_done(report)
    raise typer.Exit(_status(report))


def _status(report: ReplayReport) -> int:
    return _EXIT_UNUSABLE if report.unusable else 0


def _selection(reason: str | None, key: str | None, since: str | None) -> DeadLetterFilter:
    from consumers.dead_letter_replay import DeadLetterFilter

    since_ms = None if since is None else since_time_ms(since, time.time())
    # Bytes that are no UTF-8 come as an argument in the form that os.fsencode takes back.
    return DeadLetterFilter(reason, None if key is None else os.fsencode(key), since_ms)


def since_time_ms(text: str, now_s: float) -> int:
    """``2h`` before now, or an ISO time, as milliseconds since 1970. Raises typer.BadParameter."""
    age = _AGE.fullmatch(text)
    if age is not None:
        return int((now_s - int(age[1]) * _SECONDS[age[2]]) * 1000)
    try:
        when = datetime.fromisoformat(text)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is neither an age like 30m, 2h or 7d nor a time like 2026-03-01T12:00",
            param_hint="--since",
        ) from None
