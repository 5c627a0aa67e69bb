"""Options that several commands share, and how they become settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.config import Settings, SettingsFile
    from guardrail.policy import Policy


def option(
    usage: str, help_text: str, *, panel: str | None = None, default: str | bool = True, **more: Any
) -> Any:
    """An option as its help shows it: ``--out -o FILE``, the value's name last, if it has one.

    ``panel`` is the part of the help where it stands, ``default`` what it says of a default that is None.
    """
    names = [word for word in usage.split() if word.startswith("-")]
    value = " ".join(word for word in usage.split() if not word.startswith("-"))
    return typer.Option(
        *names, metavar=value or None, rich_help_panel=panel, show_default=default, help=help_text, **more
    )


def argument(metavar: str, help_text: str, *, default: str | bool = True, **more: Any) -> Any:
    """What is given without a name, as its help shows it."""
    return typer.Argument(metavar=metavar or None, show_default=default, help=help_text, **more)


FILTERS: Final = "Filters"
filter_option: Final = partial(option, panel=FILTERS)
output_option: Final = partial(option, panel="Output")
kafka_option: Final = partial(option, panel="Kafka")
_logs_option: Final = partial(option, panel="Logs")


def group_option(help_text: str) -> Any:
    """``--group-id``, whose help says what the group is to the command."""
    return kafka_option("--group-id NAME", help_text, default="kafka.group_id, guardrail")


def since_option(which: str, *, panel: str | None = None, default: str | bool = False) -> Any:
    """``--since``, which ``guardrail.cli.sources.since_time_ms`` reads. Its help begins with ``which``."""
    told = f"{which} since: 30m, 2h, 7d, or an ISO time, UTC where it names no zone."
    return option("--since TIME", told, panel=panel, default=default)


ConfigOption = Annotated[
    Path | None,
    option(
        "--config -c FILE",
        "YAML file with the settings. Environment variables (GUARDRAIL_KAFKA__GROUP_ID=…) go over it, "
        "options of this command over both.",
        default="all settings at their defaults",
        envvar="GUARDRAIL_CONFIG",
    ),
]
JudgeOption = Annotated[
    Literal["local", "llm", "decisions", "hhem", "classifier", "custom", "http", "cascade"] | None,
    option("--judge", "What gives the verdicts.", default="judge.kind, local"),
]
BootstrapOption = Annotated[
    str | None,
    kafka_option(
        "--bootstrap-servers -b HOST:PORT[,…]",
        "Kafka brokers to ask first.",
        default="kafka.bootstrap_servers, localhost:9092",
    ),
]
SinceOption = Annotated[str | None, since_option("Of a topic, those", panel="Kafka", default="the beginning")]
UntilOption = Annotated[
    str | None, kafka_option("--until TIME", "Of a topic, those before: as --since.", default="now")
]
PartitionOption = Annotated[
    list[str] | None,
    kafka_option(
        "--partition N[:FROM[-TO]]",
        "Of a topic, this partition, from offset FROM to before TO. May be given several times.",
        default="all",
    ),
]
StoreOption = Annotated[
    str | None,
    option(
        "--store URL",
        "sqlite:///FILE or postgresql://USER@HOST/DATABASE. Others on this machine can read options; a "
        "password belongs in flagged.store as {env: …} or {file: …}, or in ~/.pgpass.",
        default="flagged.store",
    ),
]
LogFormatOption = Annotated[
    Literal["auto", "json", "console"] | None,
    _logs_option(
        "--log-format",
        "auto: console in a terminal, else one JSON object a line.",
        default="logging.format, auto",
    ),
]
LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    _logs_option("--log-level", "The least level that is logged.", default="logging.level, info"),
]


Options = dict[str, dict[str, Any]]


def once(config: Path | None) -> SettingsFile | None:
    """The file of ``--config``, for those that look at it twice, which no pipe allows. Raises ConfigError."""
    from guardrail.config import SettingsFile

    return None if config is None else SettingsFile.read(config)


def settings_from(config: Path | SettingsFile | None, options: Options) -> GuardSettings:
    """The settings with the options given over them; one that is None was not given. Raises ConfigError."""
    from consumers.settings import load_settings

    return load_settings(config, _given(options))


def policy_named(name: str, settings: Settings, hint: str = "--policy") -> Policy:
    """The policy of this name. Raises typer.BadParameter that says which there are."""
    if name not in settings.policies:
        known = ", ".join(sorted(settings.policies))
        raise typer.BadParameter(
            f"unknown policy {name!r}; known: {known}. Give one of them, or add it to --config",
            param_hint=hint,
        )
    return settings.policies[name]


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
