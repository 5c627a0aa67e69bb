"""``guardrail report``: the report of an evaluation as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from guardrail.cli.terminal import err, out, safe

EPILOG = """[bold]Examples[/]

guardrail report results.jsonl

guardrail report results.jsonl yesterday.jsonl --out report.html --title "Support bot, November"

guardrail report results.jsonl --json | jq .mean_score

[bold]Status[/]: 0 the report was written; 1 a file could not be read or written; 2 wrong usage, or Jinja2 is
missing."""

_WORST: Final = 20
_MOST: Final = 1000


def report_command(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS.jsonl", help="What guardrail evaluate --out wrote.", show_default=False
        ),
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER.jsonl]",
            help="An earlier run over the same answers, to compare with.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE.html", help="Where the report goes.")
    ] = Path("report.html"),
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", show_default="Faithfulness report", help="Its title."),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            "--worst",
            min=0,
            max=_MOST,
            metavar="N",
            help="How many of the worst answers it shows whole, with claims and evidence.",
        ),
    ] = _WORST,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            show_default="those in the results",
            help="Labels: people's verdicts on the answers, one a line, added to those in the results.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report's figures as JSON too.")] = False,
) -> None:
    """Write the report of an evaluation: one HTML file, readable without network, printable.

    It has scores, decisions and their rules, verdicts by severity, routes and models, time and cost, errors,
    agreement with labels, and the worst answers with claims marked and evidence beside them. With a second
    file it says what changed. It needs Jinja2, which the extra report installs.
    """
    from guardrail.cli.results_file import refuse_unless_report
    from guardrail.offline.formats import read_labels
    from guardrail.offline.report import counted, write_report
    from guardrail.offline.results import StoredResults

    for source in (results, other):
        if source is not None and target.exists() and source.exists() and target.samefile(source):
            raise typer.BadParameter(f"{target} is a file that is read; give another one", param_hint="--out")
    refuse_unless_report(target, "--out")
    said = None if labels is None else read_labels(labels)
    with err().status("reading", spinner="dots"):
        run = StoredResults(results, labels=said)
        before = None if other is None else StoredResults(other)
        try:
            figures = write_report(run, target, before, title=title, worst=worst)
        except OSError as error:
            if error.filename is None:  # only writing fails so, and the system does not say where
                raise OSError(error.errno, error.strerror, str(target)) from error
            raise
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
    told = _told(figures, counted)
    (err() if as_json else out()).print(f"wrote {safe(str(target))}: {told}", soft_wrap=True)


def _told(figures: dict[str, Any], counted: Callable[[int, str], str]) -> str:
    decisions = ", ".join(
        f"{each['count']:,} {name}" for name, each in figures["decisions"].items() if each["count"]
    )
    mean = figures["mean_score"]["value"]
    told = f"{counted(figures['results'], 'result')}: {decisions or 'none judged'}"
    told += "" if mean is None else f", mean score {mean:.3f}"
    told += f", {counted(figures['errors'], 'error')}" if figures["errors"] else ""
    changed = figures["comparison"]
    return told + (
        "" if changed is None else f"; {counted(changed['changed_decisions'], 'decision')} changed"
    )
