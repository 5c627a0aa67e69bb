"""``guardrail config``: check and show the settings, and what follows from them: schemas and prompts.

``check`` also looks at the files that the settings in use name, and tells what a start on this machine would
refuse or warn of.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from guardrail.cli.options import ConfigOption, argument, naming_places, once, option, settings_from
from guardrail.errors import ConfigError
from guardrail.printable import escape_controls

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.judges.cache import CacheSettings
    from guardrail.judges.llm.settings import LlmJudgeSettings
    from guardrail.judges.local.settings import VerifierSettings
    from guardrail.judges.settings import JudgeSettings
    from guardrail.secrets import Secret


def unreadable_files(settings: GuardSettings) -> list[tuple[str, str]]:
    """The settings that name a file which can't be opened, with their value, and why."""
    found = []
    for setting, path in _named_files(settings):
        if path.is_dir():
            continue
        try:
            path.open("rb").close()
        except OSError as error:
            found.append((f"{setting} {path}", error.strerror or type(error).__name__))
    return found


def _named_files(settings: GuardSettings) -> Iterator[tuple[str, Path]]:
    from guardrail.judges.factory import all_kinds, uses_local

    judge = settings.judge
    every = all_kinds(judge, settings.policies.values())
    used = frozenset().union(*(each.kinds() for each in every))
    yield from _below(settings.kafka, "kafka")
    for kind in sorted(used | {"local"} if any(map(uses_local, every)) else used):
        yield from _below(getattr(judge, kind, None), f"judge.{kind}")
    yield from _below(judge.calibration, "judge.calibration")
    if judge.cache.enabled and used != {"local"}:
        yield from _below(judge.cache, "judge.cache")


def _below(section: object, name: str) -> Iterator[tuple[str, Path]]:
    from guardrail.leaves import leaves
    from guardrail.secrets import Secret

    for leaf in leaves(section, (name,)):
        if isinstance(leaf.value, Path):
            yield leaf.dotted, leaf.value
        elif isinstance(leaf.value, Secret) and leaf.value.file is not None:
            yield f"{leaf.dotted}.file", leaf.value.file


def start_notes(judge: JudgeSettings) -> list[str]:
    """A line for each thing that ``build_judge`` would find missing here, without building anything.

    Notes and no errors: keys, programs, models and packages may be where the guard runs and not where its
    settings are checked. Files that settings name are ``unreadable_files``'.
    """
    from guardrail.judges.factory import uses_local

    kinds = judge.kinds()
    notes: list[str] = []
    if uses_local(judge):
        notes += _of_verifier(judge.local.verifier)
    if "llm" in kinds:
        notes += _of_llm(judge.llm)
    if "classifier" in kinds:
        from guardrail.judges.model import start_notes as of_classifier

        notes += of_classifier(judge.classifier)
    if "custom" in kinds and judge.factory is not None:
        from guardrail.judges.own import load_factory

        notes += _refused(partial(load_factory, judge.factory))
    if judge.cache.enabled and judge.cache.redis_url is not None and kinds != {"local"}:
        notes += _of_redis(judge.cache)
    return list(dict.fromkeys(notes))


_TEN_MINUTES_MS: Final = 600_000
_DAY_MS: Final = 86_400_000
_NO_GLOB: Final = re.compile(r"\.\*|[][?{}|\\^$]")


def policy_notes(settings: GuardSettings) -> Iterator[str]:
    """A line for each setting of policies and routes that is allowed and hardly meant."""
    from guardrail.doctor.policies import inert_rules

    for name, policy in settings.policies.items():
        place = f"policies.{name}"
        yield from (f"{each.about}: {each.detail}; {each.remedy}" for each in inert_rules(place, policy))
        for field, does in (("flag_below", "flags"), ("block_below", "blocks")):
            if getattr(policy, field) == 1:
                yield f"{place}.{field}: 1, or true, {does} nearly every answer: few have a score of 1"
        for field, most in (("claim_timeout_ms", _TEN_MINUTES_MS), ("incomplete_timeout_ms", _DAY_MS)):
            if (value := getattr(policy, field)) > most:
                yield f"{place}.{field}: {value} is {value / 3_600_000:,.1f} hours; readers may wait for them"
    for number, route in enumerate(settings.routes):
        for field in ("route", "tenant", "generator_model"):
            pattern = getattr(route, field) or ""
            if pattern != pattern.strip():
                yield f"routes.{number}.{field}: {pattern!r} has a space at an end; values must have it, too"
            if _NO_GLOB.search(pattern):
                yield f"routes.{number}.{field}: {pattern!r} is no regular expression: only * is special"


def flagged_notes(settings: GuardSettings) -> list[str]:
    """A line for each thing that ``guardrail flagged`` would refuse or warn of here."""
    flagged = settings.flagged
    if flagged.store is None and flagged.webhook_url is None:
        return []  # most guards run without it, and doctor must not need its packages
    from consumers.cases import check_store
    from consumers.webhook import IN_CLEAR, in_clear, receiver, signing_key

    def store() -> None:
        if flagged.store is not None:
            check_store(flagged.store.read("flagged.store", "store's URL"), "flagged.store")

    def secret() -> None:
        if flagged.webhook_secret is not None:
            name = "flagged.webhook_secret"
            signing_key(flagged.webhook_secret.read(name, "webhook's secret"), name)

    def url() -> None:
        if flagged.webhook_url is not None:
            place = receiver(flagged.webhook_url.read("flagged.webhook_url", "webhook's URL"))
            if in_clear(place):
                raise ConfigError(f"flagged.webhook_url: {IN_CLEAR}; use https://")

    return [*_refused(store), *_refused(secret), *_refused(url)]


def _refused(attempt: Callable[[], object]) -> list[str]:
    try:
        attempt()
    except ConfigError as error:
        return [str(error)]
    return []


def _of_llm(llm: LlmJudgeSettings) -> Iterator[str]:
    models = llm.models()
    for number, each in enumerate(models):
        place = f"judge.llm.fallbacks.{number - 1}" if number else "judge.llm"
        if _opens(each.api_key):
            yield from _refused(partial(each.resolve_api_key, place))
        same = next((other for other in models[:number] if _one_server_model(other, each)), None)
        if same is not None:
            yield f"{place}: the same model on the same server as before it; when that fails, so will this"


def _of_verifier(verifier: VerifierSettings) -> Iterator[str]:
    from guardrail.judges.model import missing_runtime
    from guardrail.judges.model.files import RUNTIME

    if not verifier.enabled:
        yield "judge.local.verifier.enabled is false: claims are judged by words and figures alone"
        return
    for module in RUNTIME:
        if not _installed(module):
            yield str(missing_runtime(module))


def _one_server_model(one: LlmJudgeSettings, other: LlmJudgeSettings) -> bool:
    return (one.model, one.base_url) == (other.model, other.base_url)


def _of_redis(cache: CacheSettings) -> Iterator[str]:
    if not _installed("redis"):
        yield (
            "judge.cache.redis_url: the Redis client is not installed; run: "
            "pip install 'streaming-guardrail[redis]'"
        )
    if _opens(cache.redis_url):
        yield from _refused(cache.resolve_redis_url)
    if _opens(cache.signing_key):
        yield from _refused(cache.resolve_signing_key)


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _opens(secret: Secret | None) -> bool:
    """Whether its file can be opened, if it stands in one: those that can't be are ``unreadable_files``'."""
    if secret is None or secret.file is None:
        return True
    try:
        secret.file.open("rb").close()
    except OSError:
        return False
    return True


config_app = typer.Typer(
    no_args_is_help=True,
    help="Check and show the settings, and the schemas of settings and events.",
    rich_markup_mode="rich",
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
    from guardrail.cli.terminal import out, safe
    from guardrail.judges.factory import all_kinds, check_files, check_judge, check_time

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
        ("brokers", settings.kafka.bootstrap_servers),
        ("group", settings.kafka.group_id),
        ("policies", policies),
        ("routes", f"{len(settings.routes)}, else {settings.default_policy}"),
    ):
        console.print(f"   {name:<9} {safe(value)}", soft_wrap=True)
    every = all_kinds(settings.judge, settings.policies.values())
    notes = (note for each in every for note in start_notes(each))
    for told in dict.fromkeys((*too_short, *policy_notes(settings), *notes, *flagged_notes(settings))):
        console.print(f"   [yellow]note[/]      {safe(told)}", soft_wrap=True)
    # No errors: the check may run where the secrets are not mounted, on a build machine.
    for path, why in unreadable_files(settings):
        console.print(f"   [yellow]note[/]      {safe(path)} can't be read here: {safe(why)}", soft_wrap=True)


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
    elif check:
        _check_events(folder)
    else:
        from consumers.settings import Topics
        from guardrail.schema import write_schemas

        for path in write_schemas(folder, Topics().model_dump()):
            _write(escape_controls(str(path)))


def _check_events(folder: Path) -> None:
    from consumers.settings import Topics
    from guardrail.cli.terminal import EXIT_FAILURE, err, print_error, safe
    from guardrail.schema import check_schemas

    problems = check_schemas(folder, Topics().model_dump())
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
