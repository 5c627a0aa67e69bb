"""``guardrail topics``: the topics, made with sensible settings."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

import typer
from rich.text import Text

from guardrail.cli.options import BootstrapOption, ConfigOption, kafka_option, settings_from
from guardrail.cli.terminal import err, out
from guardrail.printable import escape_controls

_STYLES: Final = {"created": "green", "exists": "dim", "differs": "yellow"}

topics_app = typer.Typer(no_args_is_help=True, help="Make the topics that the guard reads and writes.")

EPILOG = """[bold]Examples[/]

guardrail topics create --bootstrap-servers localhost:9092

guardrail topics create -b kafka-1:9092,kafka-2:9092 --partitions 12 --replication-factor 3

It may be run again: topics that exist are left as they are, and what differs from what was asked is told."""


@topics_app.command("create", epilog=EPILOG)
def create_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    partitions: Annotated[
        int,
        kafka_option(
            "--partitions -p",
            "Partitions of every topic: at most this many guards share the work. Raising it later moves "
            "responses in flight to other partitions, so begin with enough.",
            min=1,
            max=10000,
        ),
    ] = 6,
    replication_factor: Annotated[
        int,
        kafka_option(
            "--replication-factor -r",
            "Copies of every record; 3 where it matters. A single broker can only hold 1.",
            min=1,
            max=32,
        ),
    ] = 1,
) -> None:
    """Create the topics of kafka.topics, and print which were created, existed, or differ.

    Status 0 when all are there, whether made now or before.
    """
    from consumers.topics import create_topics

    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    reports = asyncio.run(create_topics(settings.kafka, partitions, replication_factor))
    # A line for each topic, never wrapped, so that it can be read by people and by grep.
    console = out()
    width = max(len("topic"), *(len(report.name) for report in reports))
    console.print(Text(f"{'topic':<{width}}  {'state':<7}  detail", style="bold"), soft_wrap=True)
    for report in reports:
        line = Text.assemble(
            f"{escape_controls(report.name):<{width}}  ",
            (f"{report.outcome:<7}", _STYLES[report.outcome]),
            f"  {escape_controls(report.detail)}",
        )
        console.print(line, soft_wrap=True)
    if any(report.outcome == "differs" for report in reports):
        err().print(
            "What differs was left as it is: change it with Kafka's own tools, or name other topics under "
            "kafka.topics.",
            soft_wrap=True,
        )
