"""``guardrail config``: check, describe and show the settings."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from guardrail.cli.options import ConfigOption, naming_places, settings_from

config_app = typer.Typer(
    no_args_is_help=True, help="Check, describe and show the settings.", rich_markup_mode="rich"
)

CHECK_EPILOG = """[bold]Example[/]

guardrail config check guardrail.yaml && guardrail run --config guardrail.yaml"""

SCHEMA_EPILOG = """[bold]Example[/]

guardrail config schema > guardrail.schema.json

Editors that know YAML schemas complete and check the file when its first line is
'# yaml-language-server: $schema=guardrail.schema.json'."""

SHOW_EPILOG = """[bold]Examples[/]

guardrail config show

GUARDRAIL_LIMITS__MAX_SESSIONS=500 guardrail config show --config guardrail.yaml --format json"""


@config_app.command("check", epilog=CHECK_EPILOG)
def check_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            envvar="GUARDRAIL_CONFIG",
            show_default="the environment alone",
            help="YAML file with the settings.",
        ),
    ] = None,
) -> None:
    """Check FILE with the environment over it, or the environment alone.

    Status 2 and every problem with its remedy if something is wrong. What a start on this machine would miss
    (keys, programs, models, packages, files) is noted, with status 0: it may be where the guard runs. Those
    files of the local judge that are here are looked into.
    """
    from guardrail.cli.named_files import unreadable_files
    from guardrail.cli.start_notes import start_notes
    from guardrail.cli.terminal import out, safe
    from guardrail.judges.factory import check_files, check_judge, check_time

    settings = settings_from(file, {})
    with naming_places(file, {}):
        check_judge(settings.judge)
        check_files(settings.judge)
        too_short = check_time(settings.judge, settings.policies)
    policies = ", ".join(f"{policy.name} ({policy.mode})" for policy in settings.policies.values())
    console = out()
    source = "defaults and environment" if file is None else str(file)
    console.print(f"[green]ok[/] {safe(source)}", soft_wrap=True)
    for name, value in (
        ("judge", settings.judge.kind),
        ("brokers", settings.kafka.bootstrap_servers),
        ("group", settings.kafka.group_id),
        ("policies", policies),
        ("routes", f"{len(settings.routes)}, else {settings.default_policy}"),
    ):
        console.print(f"   {name:<9} {safe(value)}", soft_wrap=True)
    for told in (*too_short, *start_notes(settings.judge)):
        console.print(f"   [yellow]note[/]      {safe(told)}", soft_wrap=True)
    # No errors: the check may run where the secrets are not mounted, on a build machine.
    for path, why in unreadable_files(settings):
        console.print(f"   [yellow]note[/]      {safe(path)} can't be read here: {safe(why)}", soft_wrap=True)


@config_app.command("schema", epilog=SCHEMA_EPILOG)
def schema_command() -> None:
    """Print the JSON Schema of the settings: every name, its meaning, its default and what it may hold."""
    from consumers.settings import Settings

    _write(json.dumps(Settings.model_json_schema(), indent=2))


@config_app.command("show", epilog=SHOW_EPILOG)
def show_command(
    config: ConfigOption = None,
    output_format: Annotated[
        Literal["yaml", "json"], typer.Option("--format", "-f", help="Form of the output.")
    ] = "yaml",
) -> None:
    """Print all settings as they hold, defaults included, secrets masked."""
    import yaml

    values = settings_from(config, {}).masked()
    if output_format == "json":
        _write(json.dumps(values, indent=2))
    else:
        _write(yaml.safe_dump(values, sort_keys=False, allow_unicode=True).rstrip("\n"))


def _write(text: str) -> None:
    # Not through rich: programs read it too, and it must not be wrapped. JSON and YAML escape by themselves.
    sys.stdout.write(text + "\n")
