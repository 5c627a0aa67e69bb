"""``guardrail report``: the report of an evaluation as one HTML file, or its results over OTLP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from guardrail.cli.options import argument, option
from guardrail.cli.terminal import err, out, print_error, safe
from guardrail.errors import ConfigError, install_hint
from guardrail.render import counted

if TYPE_CHECKING:
    from guardrail.evaluation_export import Exported

EPILOG = """[bold]Examples[/]

guardrail report results.jsonl

guardrail report results.jsonl yesterday.jsonl --out report.html --title "Support bot, November"

guardrail report results.jsonl --json | jq .mean_score

guardrail report results.jsonl --otlp openinference --endpoint http://localhost:6006

[bold]Status[/]: 0 the report was written, or every result that can be sent was; 1 a file could not be read or
written, the receiver did not take some results, or none could be sent; 2 wrong usage, or an extra is \
missing."""

_MOST: Final = 1000
_otlp_option: Final = partial(option, panel="Send the results")


def report_command(
    results: Annotated[Path, argument("RESULTS.jsonl", "What guardrail evaluate --out wrote.")],
    other: Annotated[
        Path | None, argument("[OTHER.jsonl]", "An earlier run over the same answers, to compare with.")
    ] = None,
    target: Annotated[
        Path | None, option("--out -o FILE.html", "Where the report goes.", default="report.html")
    ] = None,
    title: Annotated[str | None, option("--title TEXT", "Its title.", default="Faithfulness report")] = None,
    worst: Annotated[
        int | None,
        option(
            "--worst N",
            "How many of the worst answers it shows whole, with claims and evidence.",
            default="20",
            min=0,
            max=_MOST,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        option(
            "--labels FILE",
            "Labels: people's verdicts on the answers, one a line, added to those in the results.",
            default="those in the results",
        ),
    ] = None,
    as_json: Annotated[bool, option("--json", "Print the report's figures as JSON too.")] = False,
    otlp: Annotated[
        Literal["events", "openinference"] | None,
        _otlp_option(
            "--otlp",
            "Write no page, and send the results over OTLP. events: a gen_ai.evaluation.result for each "
            "verdict and score, as a log record. openinference: a span for each result with its evaluations, "
            "linked to the span that was evaluated.",
        ),
    ] = None,
    endpoint: Annotated[
        str | None,
        _otlp_option(
            "--endpoint URL",
            "Root of an OTLP/HTTP receiver. Headers, such as keys, come from OTEL_EXPORTER_OTLP_HEADERS.",
            default="OTEL_EXPORTER_OTLP_ENDPOINT, http://localhost:4318",
        ),
    ] = None,
    texts: Annotated[
        bool, _otlp_option("--texts", "Send the reasons in words too, which quote the answers.")
    ] = False,
) -> None:
    """Write the report of an evaluation: one HTML file, readable without network, printable.

    It has scores, decisions and their rules, verdicts by severity, routes and models, time and cost, errors,
    agreement with labels, and the worst answers with claims marked and evidence beside them. With a second
    file it says what changed. It needs Jinja2, which the extra report installs.

    With --otlp the results go to where traces are kept instead. A response's metadata names the span that
    wrote it: in traceparent, or in trace_id and span_id.
    """
    of_page = {
        "[OTHER.jsonl]": other,
        "--out": target,
        "--title": title,
        "--worst": worst,
        "--labels": labels,
        "--json": as_json or None,
    }
    if otlp is not None:
        _refuse(of_page, "is of the page, which --otlp does not write; give one of the two")
        _send(results, otlp, endpoint, texts)
        return
    _refuse({"--endpoint": endpoint, "--texts": texts or None}, "goes with --otlp only")
    target = Path("report.html") if target is None else target
    from guardrail.cli.results_file import refuse_foreign
    from guardrail.evals.formats import read_labels
    from guardrail.evals.overview import WORST
    from guardrail.evals.report import write_report
    from guardrail.evals.results import StoredResults

    refuse_foreign(target, "a report", "--out")
    said = None if labels is None else read_labels(labels)
    with err().status("reading", spinner="dots"):
        run = StoredResults(results, labels=said)
        before = None if other is None else StoredResults(other)
        try:
            figures = write_report(run, target, before, title=title, worst=WORST if worst is None else worst)
        except OSError as error:
            if error.filename is None:  # only writing fails so, and the system does not say where
                raise OSError(error.errno, error.strerror, str(target)) from error
            raise
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
    told = _summary(figures)
    (err() if as_json else out()).print(f"wrote {safe(str(target))}: {told}", soft_wrap=True)


def _refuse(options: Mapping[str, object], why: str) -> None:
    """Raises typer.BadParameter for the first that was given."""
    for name, given in options.items():
        if given is not None:
            raise typer.BadParameter(why, param_hint=name)


def _summary(figures: dict[str, Any]) -> str:
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


def _send(results: Path, otlp: str, endpoint: str | None, texts: bool) -> None:
    from guardrail.config import LoggingSettings
    from guardrail.logs import configure_logging

    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    except ImportError:
        message = f"--otlp needs OpenTelemetry, which is not installed; {install_hint('otel')}"
        raise ConfigError(message) from None
    from guardrail.evals.results import StoredResults
    from guardrail.evaluation_export import export_events, export_spans

    configure_logging(LoggingSettings(level="warning"))
    resource = Resource.create({"service.name": "guardrail"}).merge(OTELResourceDetector().detect())
    root = None if endpoint is None else endpoint.rstrip("/")
    exporter: Any
    send: Any
    if otlp == "events":
        send, exporter = export_events, OTLPLogExporter(None if root is None else f"{root}/v1/logs")
    else:
        send, exporter = export_spans, OTLPSpanExporter(None if root is None else f"{root}/v1/traces")
    try:
        told: Exported = send(StoredResults(results), exporter, resource, texts=texts)
    finally:
        exporter.shutdown()
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
