"""``guardrail export``: the results of an evaluation, where traces are kept."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from guardrail.evaluation_export import Exported

EPILOG = """[bold]Examples[/]

guardrail export results.jsonl --to otlp --endpoint http://localhost:4318

guardrail export results.jsonl --to openinference --endpoint http://localhost:6006

[bold]Status[/]: 0 every result that can be sent was; 1 the receiver did not take some, or none could be sent;
2 wrong usage or settings."""


class Destination(StrEnum):
    """In whose words results are sent."""

    OTLP = "otlp"
    OPENINFERENCE = "openinference"


def export_command(
    results: Annotated[
        Path,
        typer.Argument(metavar="RESULTS", help="What 'guardrail evaluate --out' wrote.", show_default=False),
    ],
    to: Annotated[
        Destination,
        typer.Option(
            "--to",
            help="otlp: an event gen_ai.evaluation.result for each verdict and score, as a log record. "
            "openinference: a span for each result with its evaluations, linked to the span that "
            "was evaluated.",
        ),
    ],
    endpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default="OTEL_EXPORTER_OTLP_ENDPOINT, http://localhost:4318",
            help="Root of an OTLP/HTTP receiver. Headers, such as keys, come from "
            "OTEL_EXPORTER_OTLP_HEADERS.",
        ),
    ] = None,
    texts: Annotated[
        bool,
        typer.Option("--texts", help="Send the reasons in words too, which quote the answers."),
    ] = False,
) -> None:
    """Send the results of an evaluation to where traces are kept, over OTLP.

    A response's metadata names the span that wrote it: in traceparent, or in trace_id and span_id.
    """
    from guardrail.cli.terminal import err, print_error, safe

    told = _export(results, to, endpoint, texts)
    err().print(f"results of {safe(str(results))} that were sent: {told.sent:,}", soft_wrap=True)
    if told.unjudged:
        err().print(f"not sent, since they have no verdict: {told.unjudged:,}", soft_wrap=True)
    if told.without_target:
        err().print(
            f"not sent, since they name no span to link to: {told.without_target:,}; put its traceparent, or "
            "its trace_id and span_id, into the metadata of the responses before they are evaluated",
            soft_wrap=True,
        )
    if told.refused:
        print_error(f"the receiver did not take {told.refused:,} of the results; see the warning above")
    if told.refused or not told.sent:
        raise typer.Exit(1)


def _export(results: Path, to: Destination, endpoint: str | None, texts: bool) -> Exported:
    from guardrail.config import LoggingSettings
    from guardrail.logs import configure_logging

    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    except ImportError:
        raise ConfigError(
            "guardrail export needs OpenTelemetry, which is not installed; run: pip install "
            "'streaming-guardrail[otel]'"
        ) from None
    from guardrail.evaluation_export import export_events, export_spans
    from guardrail.offline.results import StoredResults

    configure_logging(LoggingSettings(level="warning"))
    resource = Resource.create({"service.name": "guardrail"}).merge(OTELResourceDetector().detect())
    root = None if endpoint is None else endpoint.rstrip("/")
    exporter: Any
    send: Any
    if to is Destination.OTLP:
        send, exporter = export_events, OTLPLogExporter(None if root is None else f"{root}/v1/logs")
    else:
        send, exporter = export_spans, OTLPSpanExporter(None if root is None else f"{root}/v1/traces")
    try:
        told: Exported = send(StoredResults(results), exporter, resource, texts=texts)
    finally:
        exporter.shutdown()
    return told
