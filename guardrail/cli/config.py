"""``guardrail config``: check and show the settings, and what follows from them: schemas and prompts.

``check`` also looks at the files that the settings in use name, and tells what a start on this machine would
refuse or warn of.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from guardrail.cli.options import ConfigOption, argument, naming_places, once, option, settings_from
from guardrail.cli.terminal import EXIT_FAILURE, err, out, print_error, safe
from guardrail.printable import escape_controls

if TYPE_CHECKING:
    from guardrail.judges.llm.settings import LlmJudgeSettings


config_app = typer.Typer(
    no_args_is_help=True, help="Check and show the settings, and the schemas of settings and events."
)

CHECK_EPILOG = """[bold]Example[/]

guardrail config check guardrail.yaml && guardrail run --config guardrail.yaml"""

SCHEMA_EPILOG = """[bold]Examples[/]

guardrail config schema > guardrail.schema.json

guardrail config schema reference > settings.md

guardrail config schema events --out docs --check

Editors that know YAML schemas complete and check the settings when their first line is
'# yaml-language-server: $schema=guardrail.schema.json'."""

SHOW_EPILOG = """[bold]Examples[/]

guardrail config show policies.default.flag_below --config guardrail.yaml

GUARDRAIL_LOGGING__LEVEL=debug guardrail config show --config guardrail.yaml --format json

guardrail config show --prompt system --template > judge-system.md

The last prints a file to begin your own from; name it as judge.llm.prompts.system."""

_PROMPTS: Final = ("system", "user")


@config_app.command("check", epilog=CHECK_EPILOG)
def check_command(
    file: Annotated[
        Path | None,
        argument(
            "FILE", "YAML file with the settings.", default="the environment alone", envvar="GUARDRAIL_CONFIG"
        ),
    ] = None,
) -> None:
    """Check FILE with the environment over it, or the environment alone.

    Status 2 and every problem with its remedy if something is wrong. What a start on this machine would miss
    (keys, programs, models, packages, files) is noted, with status 0: it may be where the guard runs. Those
    files of the local judge that are here are looked into.
    """
    from guardrail.doctor import policy_notes, start_notes, unreadable_files
    from guardrail.judges.factory import check_files, check_judge, check_time

    content = once(file)
    settings = settings_from(content, {})
    with naming_places(content, {}):
        check_judge(settings.judge, settings.policies.values())
        check_files(settings.judge, settings.policies.values())
        too_short = check_time(settings.judge, settings.policies)
    policies = ", ".join(f"{policy.name} ({policy.mode})" for policy in settings.policies.values())
    console = out()
    source = "defaults and environment" if file is None else str(file)
    console.print(f"[green]ok[/] {safe(source)}", soft_wrap=True)
    for name, value in (
        ("judge", settings.judge.kind),
        *([("gateway", settings.serve.told)] if "serve" in settings.model_fields_set else []),
        ("brokers", settings.kafka.bootstrap_servers),
        ("group", settings.kafka.group_id),
        *([("producers", settings.kafka.producers.told)] if settings.kafka.producers else []),
        ("policies", policies),
        ("routes", f"{len(settings.routes)}, else {settings.default_policy}"),
    ):
        console.print(f"   {name:<9} {safe(value)}", soft_wrap=True)
    notes = (
        *policy_notes(settings),
        *start_notes(settings),
        *settings.flagged.notes(),
        *settings.serve.notes(),
        # No errors: the check may run where the secrets are not mounted, on a build machine.
        *(f"{path} can't be read here: {why}" for path, why in unreadable_files(settings)),
    )
    for told in dict.fromkeys((*too_short, *notes)):
        console.print(f"   [yellow]note[/]      {safe(told)}", soft_wrap=True)


@config_app.command("schema", epilog=SCHEMA_EPILOG)
def schema_command(
    what: Annotated[
        Literal["settings", "reference", "events"],
        argument(
            "",
            "The JSON Schema of the settings; their reference, as Markdown; or the schemas of events with an "
            "AsyncAPI 3 document of the topics, which are files.",
        ),
    ] = "settings",
    folder: Annotated[
        Path | None,
        option("--out -o FOLDER", "Of events: where schemas/*.json and asyncapi.yaml go.", default="docs"),
    ] = None,
    check: Annotated[
        bool, option("--check", "Of events: write nothing; status 1 when the files are not current.")
    ] = False,
) -> None:
    """Print what settings there are, or write what events look like."""
    from consumers.settings import GuardSettings

    if what != "events":
        for option, given in (("--out", folder is not None), ("--check", check)):
            if given:
                raise typer.BadParameter("goes with events only: config schema events", param_hint=option)
    folder = folder or Path("docs")
    if what == "settings":
        _write(json.dumps(GuardSettings.model_json_schema(), indent=2))
    elif what == "reference":
        from guardrail.config.reference import markdown

        _write(markdown(GuardSettings).rstrip("\n"))
    else:
        _events(folder, check=check)


def _events(folder: Path, *, check: bool) -> None:
    from consumers.settings import Topics
    from guardrail.schema import check_schemas, write_schemas

    topics = Topics().model_dump()
    if not check:
        for path in write_schemas(folder, topics):
            _write(escape_controls(str(path)))
        return
    problems = check_schemas(folder, topics)
    for problem in problems:
        print_error(problem)
    if problems:
        raise typer.Exit(EXIT_FAILURE)
    err().print(f"the schemas in {safe(str(folder))} are current", soft_wrap=True)


@config_app.command("show", epilog=SHOW_EPILOG)
def show_command(
    key: Annotated[
        str | None,
        argument(
            "[KEY]",
            "What a setting or section means, may hold, is called in the environment and holds now.",
            default="all settings as they hold, secrets masked",
        ),
    ] = None,
    config: ConfigOption = None,
    output_format: Annotated[Literal["yaml", "json"], option("--format -f", "Form of the output.")] = "yaml",
    prompt: Annotated[
        Literal["system", "user", "both"] | None,
        option(
            "--prompt",
            "Instead: the instructions to the LLM judge, or the message that holds the data, filled in with "
            "a small example.",
        ),
    ] = None,
    template: Annotated[
        bool, option("--template", "The prompt as its file has it, variables not filled in.")
    ] = False,
) -> None:
    """Print all settings as they hold, or what one of them means, or the prompts that they make."""
    if key is not None and prompt is not None:
        raise typer.BadParameter("give a KEY or a prompt, not both", param_hint="--prompt")
    if template and prompt is None:
        raise typer.BadParameter("goes with --prompt only", param_hint="--template")
    if key is not None:
        from consumers.settings import GuardSettings
        from guardrail.config.reference import describe, in_effect

        _write(describe(GuardSettings, key))  # first: who mends settings that don't load may look it up
        settings = settings_from(config, {})
        try:
            shown = _shown(in_effect(settings, key), output_format)
        except LookupError:
            shown = "not set"
        _write("  in effect " + shown.replace("\n", "\n            "))
    elif prompt is not None:
        texts = _prompts(settings_from(config, {}).judge.llm, template=template)
        for name in _PROMPTS if prompt == "both" else (prompt,):
            if prompt == "both":
                _write(f"--- {name} ---")
            _write(texts[name])
    else:
        _write(_shown(settings_from(config, {}).masked(), output_format))


def _shown(values: Any, output_format: Literal["yaml", "json"]) -> str:
    if output_format == "json":
        return json.dumps(values, indent=2)
    import yaml

    # YAML ends a value that stands alone with a line of dots.
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True).rstrip("\n").removesuffix("\n...")


def _prompts(settings: LlmJudgeSettings, *, template: bool) -> dict[str, str]:
    from guardrail.judges.llm import prompt

    if template:
        return {name: prompt.template(name, settings.prompts).template for name in _PROMPTS}
    prompts = prompt.Prompts(settings)
    request, fence = prompt.sample()
    system, user = prompts.build(request, fence).messages
    return {"system": system["content"], "user": user["content"]}


def _write(text: str) -> None:
    # Not through rich: programs read it too, and it must not be wrapped. JSON and YAML escape by themselves.
    sys.stdout.write(text + "\n")
