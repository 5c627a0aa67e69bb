"""The command line: the outermost ring, the only part of guardrail that knows consumers.

Commands import what they need when they run, so that ``--help`` and a typing error cost no Kafka client.
"""

from __future__ import annotations

from typing import Annotated

import typer

from guardrail import __version__
from guardrail.cli import (
    cases,
    config,
    dead_letters,
    demo,
    doctor,
    evaluate,
    replay,
    report,
    run,
    serve,
    top,
    topics,
    tune,
)
from guardrail.cli.terminal import GuardrailGroup

__all__ = ["app", "main"]

app = typer.Typer(
    cls=GuardrailGroup,
    name="guardrail",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""[bold]Examples[/]

guardrail demo

guardrail evaluate answers.jsonl --out results.jsonl

guardrail topics create --bootstrap-servers localhost:9092

guardrail run --bootstrap-servers localhost:9092 --group-id guardrail

[bold]Status[/]: 0 done; 1 something failed, the message says what; 2 wrong usage or settings; \
130 interrupted.""",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"guardrail {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Check every claim of a RAG answer against its documents while it is being written.

    Text that is not backed by the retrieved documents is flagged, redacted or blocked before it is read.
    """


app.command("demo", epilog=demo.EPILOG)(demo.demo_command)
app.command("run", epilog=run.EPILOG)(run.run_command)
app.command("serve", epilog=serve.EPILOG)(serve.serve_command)
app.command("doctor", epilog=doctor.EPILOG)(doctor.doctor_command)
app.command("evaluate", epilog=evaluate.EPILOG)(evaluate.evaluate_command)
app.command("report", epilog=report.EPILOG)(report.report_command)
app.command("tune", epilog=tune.EPILOG)(tune.tune_command)
app.command("replay", epilog=replay.EPILOG)(replay.replay_command)
app.command("top", epilog=top.EPILOG)(top.top_command)
app.command("tail", epilog=cases.TAIL_EPILOG)(cases.tail_command)
app.command("flagged", epilog=run.FLAGGED_EPILOG)(run.flagged_command)
app.add_typer(cases.cases_app, name="cases")
app.add_typer(topics.topics_app, name="topics")
app.add_typer(dead_letters.dead_letters_app, name="dead-letters")
app.add_typer(config.config_app, name="config")


def main() -> None:
    """Entry point of the ``guardrail`` program; leaves by SystemExit."""
    app()
