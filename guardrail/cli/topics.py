"""``guardrail topics``: the topics, made with sensible settings."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from guardrail.cli.options import KAFKA_PANEL, BootstrapOption, ConfigOption, settings_from

topics_app = typer.Typer(
    no_args_is_help=True, help="Make the topics that the guard reads and writes.", rich_markup_mode="rich"
)

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
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            max=10_000,
            rich_help_panel=KAFKA_PANEL,
            help="Partitions of every topic: at most this many guards share the work. Raising it later moves "
            "responses in flight to other partitions, so begin with enough.",
        ),
    ] = 6,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            "-r",
            min=1,
            max=32,
            rich_help_panel=KAFKA_PANEL,
            help="Copies of every record; 3 where it matters. A single broker can only hold 1.",
        ),
    ] = 1,
) -> None:
    """Create the topics of kafka.topics, and print which were created, existed, or differ.

    Status 0 when all are there, whether made now or before.
    """
    from consumers.topics import create_topics


    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    asyncio.run(
        create_topics(settings.kafka, partitions=partitions, replication_factor=replication_factor)
    )
