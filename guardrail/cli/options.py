"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.config import SettingsFile

KAFKA_PANEL = "Kafka"
LOGS_PANEL = "Logs"


def group_option(help_text: str) -> Any:
    """``--group-id``, whose help says what the group is to the command."""
    return typer.Option(
        "--group-id",
        metavar="NAME",
        show_default="kafka.group_id, guardrail",
        rich_help_panel=KAFKA_PANEL,
        help=help_text,
    )


def since_option(which: str, *, panel: str | None = None, show_default: str | bool = False) -> Any:
    """``--since``, which ``guardrail.cli.sources.since_time_ms`` reads. Its help begins with ``which``."""
    return typer.Option(
        "--since",
        metavar="TIME",
        show_default=show_default,
        rich_help_panel=panel,
        help=f"{which} since: 30m, 2h, 7d, or an ISO time, UTC where it names no zone.",
    )


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="GUARDRAIL_CONFIG",
        show_default="all settings at their defaults",
        help="YAML file with the settings. Environment variables (GUARDRAIL_KAFKA__GROUP_ID=…) go over it, "
        "options of this command over both.",
    ),
]
BootstrapOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT[,…]",
        show_default="kafka.bootstrap_servers, localhost:9092",
        rich_help_panel=KAFKA_PANEL,
        help="Kafka brokers to ask first.",
    ),
]
SinceOption = Annotated[
    str | None, since_option("Of a topic, those", panel=KAFKA_PANEL, show_default="the beginning")
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        show_default="now",
        rich_help_panel=KAFKA_PANEL,
        help="Of a topic, those before: as --since.",
    ),
]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--partition",
        metavar="N[:FROM[-TO]]",
        show_default="all",
        rich_help_panel=KAFKA_PANEL,
        help="Of a topic, this partition, from offset FROM to before TO. May be given several times.",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        show_default="flagged.store",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE. Others on this machine can read options; a "
        "password belongs in flagged.store as {env: …} or {file: …}, or in ~/.pgpass.",
    ),
]
LogFormatOption = Annotated[
    Literal["auto", "json", "console"] | None,
    typer.Option(
        "--log-format",
        show_default="logging.format, auto",
        rich_help_panel=LOGS_PANEL,
        help="auto: console in a terminal, else one JSON object a line.",
    ),
]
LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    typer.Option(
        "--log-level",
        show_default="logging.level, info",
        rich_help_panel=LOGS_PANEL,
        help="The least level that is logged.",
    ),
]


Options = dict[str, dict[str, Any]]


def once(config: Path | None) -> SettingsFile | None:
    """The file of ``--config``, read: for commands that look at it twice, which a pipe doesn't allow.

    Raises ConfigError.
    """
    from guardrail.config import SettingsFile

    return None if config is None else SettingsFile.read(config)


def settings_from(config: Path | SettingsFile | None, options: Options) -> GuardSettings:
    """The settings with the options given over them; one that is None was not given. Raises ConfigError."""
    from consumers.settings import load_settings

    return load_settings(config, _given(options))


@contextmanager
def naming_places(config: Path | SettingsFile | None, options: Options) -> Iterator[None]:
    """Tell with a ConfigError raised within which line or variable gave the settings that it names."""
    from consumers.settings import with_places

    try:
        yield
    except ConfigError as error:
        raise with_places(error, config, _given(options)) from error


def _given(options: Options) -> Options:
    given = {
        section: {name: value for name, value in values.items() if value is not None}
        for section, values in options.items()
    }
    return {section: values for section, values in given.items() if values}
