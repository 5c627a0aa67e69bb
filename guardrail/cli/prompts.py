"""``guardrail prompts``: what the LLM judge is told, word for word."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from guardrail.cli.options import ConfigOption, settings_from

if TYPE_CHECKING:
    from guardrail.judges.llm.settings import LlmJudgeSettings

prompts_app = typer.Typer(
    no_args_is_help=True, help="Show what the LLM judge is told.", rich_markup_mode="rich"
)

SHOW_EPILOG = """[bold]Examples[/]

guardrail prompts show

guardrail prompts show --config guardrail.yaml --name user

guardrail prompts show --name system --template > judge-system.md

The last prints a file to begin your own from; name it as judge.llm.prompts.system."""

_NAMES: tuple[Literal["system", "user"], ...] = ("system", "user")


@prompts_app.command("show", epilog=SHOW_EPILOG)
def show_command(
    config: ConfigOption = None,
    name: Annotated[
        Literal["system", "user"] | None,
        typer.Option(
            "--name",
            "-n",
            show_default="both",
            help="Which prompt: the instructions, or the message that holds the data.",
        ),
    ] = None,
    template: Annotated[
        bool,
        typer.Option("--template", "-t", help="As the file has it, its variables not filled in."),
    ] = False,
) -> None:
    """Print the prompts of the LLM judge as the settings make them, filled in with a small example.

    Without --name both are printed, each after a line with its name.
    """
    settings = settings_from(config, {}).judge.llm
    texts = _templates(settings) if template else _filled_in(settings)
    for each in (name,) if name else _NAMES:
        # Not through rich: it is to be saved as a file too, and must not be wrapped.
        if name is None:
            sys.stdout.write(f"--- {each} ---\n")
        sys.stdout.write(f"{texts[each]}\n")
        sys.stdout.flush()


def _templates(settings: LlmJudgeSettings) -> dict[str, str]:
    from guardrail.judges.llm.prompt import template

    return {name: template(name, settings.prompts).template for name in _NAMES}


def _filled_in(settings: LlmJudgeSettings) -> dict[str, str]:
    from guardrail.judges.llm.prompt import Prompts, sample

    prompts = Prompts(settings)
    request, fence = sample()
    system, user = prompts.build(request, fence).messages
    return {"system": system["content"], "user": user["content"]}
