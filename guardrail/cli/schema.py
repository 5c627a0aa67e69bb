"""``guardrail schema``: the published contracts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EPILOG = """[bold]Examples[/]

guardrail schema

guardrail schema --out docs --check"""


def schema_command(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where schemas/*.json and asyncapi.yaml go.")
    ] = Path("docs"),
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; status 1 when what lies there is not current (for CI)."),
    ] = False,
) -> None:
    """Write the JSON Schema of every event, and an AsyncAPI 3 document of the topics."""
    from consumers.settings import Topics
    from guardrail.cli.terminal import err, print_error, safe
    from guardrail.cli.terminal import out as stdout
    from guardrail.schema import check_schemas, write_schemas

    topics = Topics().model_dump()
    if not check:
        for path in write_schemas(out, topics):
            stdout().print(safe(str(path)), soft_wrap=True)
        return
    problems = check_schemas(out, topics)
    for problem in problems:
        print_error(problem)
    if problems:
        raise typer.Exit(1)
    err().print(f"the schemas in {safe(str(out))} are current", soft_wrap=True)
