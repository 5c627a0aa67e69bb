"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.config import SettingsFile

KAFKA_PANEL = "Kafka"
LOGS_PANEL = "Logs"

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
