"""``guardrail cases check`` and ``export``: labels, people's verdicts on answers, checked and exported."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from guardrail.cli.options import BootstrapOption, ConfigOption, settings_from
from guardrail.cli.terminal import err, out, print_error, replace_unencodable

if TYPE_CHECKING:
    from consumers.settings import KafkaSettings
    from guardrail.evals.labels import TraceOf
    from guardrail.events import Label

CHECK_EPILOG = """[bold]Examples[/]

guardrail cases check labels.jsonl

guardrail cases check kafka: -b localhost:9092

[bold]Status[/]: 0 all are sound; 1 some are not; 2 wrong usage or settings."""

EXPORT_EPILOG = """[bold]Examples[/]

guardrail cases export labels.jsonl --to langfuse > scores.jsonl

guardrail cases export kafka: --to openinference --traces traces.jsonl --out annotations.jsonl

guardrail cases export results.jsonl --to ragas --results results.jsonl --out annotations.json"""

_MOST_SHOWN: Final = 20
_EXIT_FAILED: Final = 1

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="LABELS",
        help="A file of 'label' events, or of results with labels, one a line, plain or gzip's; - for stdin; "
        "or kafka:TOPIC, kafka: for kafka.topics.labels.",
        show_default=False,
    ),
]


def check_command(
    source: SourceArgument, config: ConfigOption = None, bootstrap_servers: BootstrapOption = None
) -> None:
    """Say which labels can't be read and why, and how many there are of each verdict."""
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    replace_unencodable()
    labels, problems = asyncio.run(read_labels(source, settings.kafka))
    for place, problem in problems[:_MOST_SHOWN]:
        print_error(f"{place}: {problem}")
    if len(problems) > _MOST_SHOWN:
        print_error(f"and {len(problems) - _MOST_SHOWN} more")
    from guardrail.render import counted

    console = out()
    responses = len({label.response_id for label in labels})
    console.print(f"{counted(len(labels), 'label')} on {counted(responses, 'response')}", soft_wrap=True)
    for verdict, count in sorted(Counter(label.verdict.value for label in labels).items()):
        console.print(f"  {verdict:<20} {count:,}", soft_wrap=True)
    if problems:
        raise typer.Exit(_EXIT_FAILED)


def export_command(
    source: SourceArgument,
    to: Annotated[
        Literal["ragas", "langfuse", "openinference"],
        typer.Option(
            "--to",
            help="ragas: a MetricAnnotation, one JSON document. langfuse: bodies for POST "
            "/api/public/scores; openinference: annotations as Phoenix takes them; both one a line.",
            show_default=False,
        ),
    ],
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="For ragas: the results of guardrail evaluate, with the answers and their verdicts.",
        ),
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default="the response's id is the trace's",
            help="Which traces and spans the responses are: {response_id, trace_id, span_id}, one a line.",
        ),
    ] = None,
    config_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default="none, and the scores' source is API",
            help="For langfuse: the score configuration; the scores' source is ANNOTATION then.",
        ),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", show_default="stdout", help="Where it goes.")
    ] = None,
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
) -> None:
    """Write labels in the form that another tool reads. Nothing is sent anywhere.

    Corrections go along, which may hold texts of answers; for ragas, the answers themselves.
    """
    from guardrail.errors import DecodeError
    from guardrail.evals.labels import to_langfuse, to_openinference, to_ragas
    from guardrail.evals.results import read_results

    if (to == "ragas") != (results is not None):
        raise typer.BadParameter("--to ragas needs --results, and nothing else does", param_hint="--results")
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    labels, problems = asyncio.run(read_labels(source, settings.kafka))
    if problems:
        place, problem = problems[0]
        raise DecodeError("invalid_event", f"{place}: {problem}; guardrail cases check names all")
    known = {} if traces is None else _traces(traces)
    if results is not None:
        annotation = to_ragas(labels, read_results(results).results)
        left = {each.response_id for each in labels}
        count = sum(map(len, annotation.values()))
        text = f"{json.dumps(annotation, indent=1, ensure_ascii=True)}\n"
        err().print(f"{count:,} answers of {len(left):,} that are labelled", soft_wrap=True)
    else:
        lines: list[dict[str, Any]] = (
            to_langfuse(labels, known, config_id=config_id)
            if to == "langfuse"
            else to_openinference(labels, known)
        )
        text = "".join(f"{json.dumps(line, ensure_ascii=True)}\n" for line in lines)
    if out_file is None:
        typer.echo(text, nl=False)
    else:
        out_file.write_text(text, encoding="utf-8")


async def read_labels(source: str, kafka: KafkaSettings) -> tuple[list[Label], list[tuple[str, str]]]:
    """The labels of a file or a topic, those in results too, and what can't be read, by its place."""
    from guardrail.cli.sources import values_of
    from guardrail.errors import DecodeError
    from guardrail.evals.formats import labels_in
    from guardrail.evals.records import RecordReader

    found: list[Label] = []
    problems: list[tuple[str, str]] = []
    refused = RecordReader()
    async with aclosing(values_of(source, kafka, kafka.topics.labels, None, refused, "LABELS")) as values:
        async for value, place in values:
            try:
                found += labels_in(value)
            except DecodeError as error:
                problems.append((place, str(error)))
    return found, [*problems, *refused.passed.problems]


def _traces(path: Path) -> dict[str, TraceOf]:
    from pydantic import ValidationError

    from guardrail.errors import DecodeError
    from guardrail.evals.labels import TraceOf
    from guardrail.events import decode_error

    found = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                trace = TraceOf.model_validate_json(line)
            except ValidationError as error:
                wrong = decode_error(error)
                raise DecodeError(wrong.reason, f"{path.name} line {number}: {wrong}") from None
            found[trace.response_id] = trace
    return found
