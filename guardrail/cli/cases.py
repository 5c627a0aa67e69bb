"""``guardrail cases``: what was flagged, from the store of ``guardrail flagged`` or from Kafka; labels,
people's verdicts on answers: made of cases, checked, exported for other tools. ``guardrail tail``: verdicts
or cases as they come.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import time
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.text import Text

from guardrail.cli.options import (
    FILTERS,
    BootstrapOption,
    ConfigOption,
    Options,
    StoreOption,
    argument,
    filter_option,
    option,
    settings_from,
    since_option,
)
from guardrail.cli.sources import read_labels, since_time_ms
from guardrail.cli.terminal import EXIT_FAILURE, err, out, print_error, replace_unencodable
from guardrail.errors import DecodeError, GuardrailError
from guardrail.printable import escape_controls, escape_in_json, shorten
from guardrail.render import counted, one_line, score, when

if TYPE_CHECKING:
    from rich.console import RenderableType

    from consumers.cases import CaseFilter, CaseRow
    from consumers.settings import GuardSettings, KafkaSettings
    from consumers.transport import Record
    from guardrail.evals.labels import TraceOf
    from guardrail.events import ResponseVerdict
    from guardrail.render import Symbols

_SETTING: Final = "flagged.store"
_MAX_NAMED: Final = 20
MAX_WIDTH: Final = 110
_COLUMNS: Final = ("at", "response", "decision", "rule", "route", "policy", "score", "deciding claim")
_CELL: Final = 60

cases_app = typer.Typer(no_args_is_help=True, help="Look at flagged answers, and label them.")

LIST_EPILOG = """[bold]Examples[/]

guardrail cases list --store sqlite:///cases.db --decision block --since 7d

guardrail cases list --bootstrap-servers localhost:9092 --route support

Without a store the cases are read from Kafka, as far as the topic keeps them."""

SHOW_EPILOG = """[bold]Examples[/]

guardrail cases show 3f9b2c --store sqlite:///cases.db

guardrail cases show 3f9b2c --bootstrap-servers localhost:9092 --documents --full

guardrail cases show 3f9b2c --json | jq .claims"""

LABEL_EPILOG = """[bold]Examples[/]

guardrail cases label 3f9b2c SUPPORTED --store sqlite:///cases.db >> labels.jsonl

guardrail cases label 3f9b2c CONTRADICTED --claim 2 --correction "It costs $50." --reviewer ada"""


@cases_app.command("list", epilog=LIST_EPILOG)
def list_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    store: StoreOption = None,
    decision: Annotated[
        Literal["flag", "redact", "block"] | None, filter_option("--decision", "Only those decided so.")
    ] = None,
    route: Annotated[str | None, filter_option("--route NAME", "Only those of this route.")] = None,
    since: Annotated[str | None, since_option("Only those", panel=FILTERS)] = None,
    limit: Annotated[int, filter_option("--limit -n", "The newest N.", min=1)] = 50,
    as_json: Annotated[bool, option("--json", "One JSON object a line.")] = False,
) -> None:
    """Print a table of the cases, newest first.

    It shows of each the claim that decided, which is text of an answer; where the score alone decided, the
    claim that weighs most in it. What guardrail doctor sent as a proof is not a case.
    """
    from consumers.cases import CaseFilter
    from guardrail.events import Decision

    wanted = CaseFilter(
        None if decision is None else Decision(decision),
        route,
        None if since is None else since_time_ms(since, time.time()),
    )
    settings, url = _source(config, bootstrap_servers, store)
    replace_unencodable()
    rows, total, routes = asyncio.run(_rows(settings, url, wanted, limit))
    if route is not None and route not in routes:
        raise typer.BadParameter(_unknown_route(route, routes), param_hint="--route")
    if as_json:
        for row in rows:
            typer.echo(json.dumps(asdict(row)))
        return
    from guardrail.render import print_table

    if not rows:
        err().print(Text("no cases", "dim"))
        return
    print_table(out(), _COLUMNS, [_cells(row) for row in rows], right=("score",))
    if total > len(rows):
        err().print(Text(f"the newest {len(rows):,} of {total:,}", "dim"))


@cases_app.command("show", epilog=SHOW_EPILOG)
def show_command(
    id_: Annotated[str, argument("ID", "The id of a response, or of a case, as the list shows it.")],
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    store: StoreOption = None,
    as_json: Annotated[bool, option("--json", "The event as the guard wrote it; controls escaped.")] = False,
    documents: Annotated[bool, option("--documents", "Print the documents too, below the rest.")] = False,
    full: Annotated[bool, option("--full", "Cut no text, however long.")] = False,
) -> None:
    """Print one case: question, answer, the claim that decided, and every other with verdict and evidence."""
    from guardrail.events import FlaggedCase, parse_output
    from guardrail.render import MOST_CHARS, case_card, symbols_for

    settings, url = _source(config, bootstrap_servers, store)
    replace_unencodable()
    row, body = _found(settings, url, id_)
    if as_json:
        typer.echo(escape_in_json(body.decode("utf-8", "replace")))
        return
    case = parse_output(body)
    assert isinstance(case, FlaggedCase)  # noqa: S101 - nothing else is stored
    console = out()
    card = case_card(
        case,
        symbols_for(console.encoding),
        min(console.width, MAX_WIDTH),
        at_ms=row.at_ms,
        whole=True,
        documents=documents,
        most_chars=None if full else MOST_CHARS,
        remedy="; --full",
    )
    console.print(card)


@cases_app.command("label", epilog=LABEL_EPILOG)
def label_command(
    id_: Annotated[str, argument("ID", "The id of a response, or of a case.")],
    verdict: Annotated[
        Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED", "UNVERIFIED"],
        argument("", "What is right; UNVERIFIED: you can't tell."),
    ],
    claim: Annotated[
        str | None,
        option(
            "--claim N|ID",
            "The claim that it is about: its number in the case, from 1, or its id.",
            default="the whole response",
        ),
    ] = None,
    category: Annotated[str | None, option("--category", "The kind of error, in your words.")] = None,
    correction: Annotated[str | None, option("--correction", "What the text should say.")] = None,
    reviewer: Annotated[str | None, option("--reviewer", "Who says so.")] = None,
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    store: StoreOption = None,
) -> None:
    """Print a label for a case: what you say is right, as one line of a file of labels.

    A later label of the same reviewer on the same claim replaces an earlier one.
    """
    from datetime import UTC, datetime

    from pydantic import ValidationError

    from guardrail.events import FlaggedCase, Label, Verdict, decode_error, parse_output

    settings, url = _source(config, bootstrap_servers, store)
    case = parse_output(_found(settings, url, id_)[1])
    assert isinstance(case, FlaggedCase)  # noqa: S101 - nothing else is stored
    claims = {each.claim_id: each for each in case.claims}
    claims |= {str(each.index + 1): each for each in case.claims}
    if claim is not None and claim not in claims:
        raise typer.BadParameter(
            f"{claim!r} is not a claim of the case, which has {len(case.claims)}; give a number or an id",
            param_hint="--claim",
        )
    about = None if claim is None else claims[claim]
    try:
        label = Label(
            id="-".join(filter(None, ("label", about.claim_id if about else case.id, reviewer))),
            response_id=case.response_id,
            claim_id=about.claim_id if about else None,
            span=about.span if about else None,
            verdict=Verdict(verdict),
            category=category,
            correction=correction,
            reviewer=reviewer,
            policy=case.policy,
            time=datetime.now(UTC),
        )
    except ValidationError as error:
        raise typer.BadParameter(str(decode_error(error))) from None
    typer.echo(label.to_json())


def _found(settings: GuardSettings, url: str | None, id_: str) -> tuple[CaseRow, bytes]:
    """The case of this id. Raises GuardrailError if there is none."""
    found = asyncio.run(_find(settings, url, id_))
    if found is None:
        raise GuardrailError(
            f"there is no case of {shorten(id_, _CELL)!r}; 'guardrail cases list' shows those that there are"
        )
    return found


def _source(
    config: ConfigOption, bootstrap_servers: str | None, store: str | None
) -> tuple[GuardSettings, str | None]:
    """The settings, and the URL of the store to read; None: read from Kafka."""
    if store is not None and bootstrap_servers is not None:
        raise typer.BadParameter(
            "cases are read from a store or from Kafka; give one of --store and --bootstrap-servers",
            param_hint="--store",
        )
    options: Options = {"kafka": {"bootstrap_servers": bootstrap_servers}, "flagged": {"store": store}}
    settings = settings_from(config, options)
    if bootstrap_servers is not None or settings.flagged.store is None:
        return settings, None
    return settings, settings.flagged.store.read(_SETTING, "store's URL")


async def _rows(
    settings: GuardSettings, url: str | None, wanted: CaseFilter, limit: int
) -> tuple[Sequence[CaseRow], int, Collection[str]]:
    """The newest, how many there are of them, and all routes."""
    from consumers.cases import open_store, row_of
    from consumers.flagged import read_cases
    from guardrail.doctor import is_proof

    if url is not None:
        async with open_store(url, _SETTING, create=False) as store:
            routes = await store.routes() if wanted.route is not None else ()
            return await store.newest(wanted, limit), await store.count(wanted), routes
    rows: dict[str, CaseRow] = {}
    async with aclosing(read_cases(settings.kafka)) as cases:
        async for case in cases:
            if not is_proof(case.case):
                row = row_of(case)
                rows[row.id] = row
    found = [row for row in rows.values() if wanted.wants(row)]
    newest = heapq.nlargest(limit, found, key=lambda row: row.at_ms)
    return newest, len(found), {row.route for row in rows.values() if row.route is not None}


async def _find(settings: GuardSettings, url: str | None, id_: str) -> tuple[CaseRow, bytes] | None:
    from consumers.cases import open_store, row_of
    from consumers.flagged import read_cases

    if url is not None:
        async with open_store(url, _SETTING, create=False) as store:
            return await store.get(id_)
    found = None
    async with aclosing(read_cases(settings.kafka)) as cases:
        async for case in cases:
            if id_ in {case.case.id, case.case.response_id}:
                found = case
    return None if found is None else (row_of(found), found.body)


def _unknown_route(route: str, routes: Collection[str]) -> str:
    named = sorted(routes)[:_MAX_NAMED]
    known = ", ".join(escape_controls(shorten(name, _CELL)) for name in named)
    more = f" and {len(routes) - len(named):,} more" if len(routes) > len(named) else ""
    return f"no case has the route {route!r}; there are {known}{more}" if known else "no case has a route"


def _cells(row: CaseRow) -> tuple[Text, ...]:
    from guardrail.events import Decision
    from guardrail.render import DECISION_STYLES

    return (
        Text(when(row.at_ms)),
        Text(one_line(row.response_id, _CELL)),
        Text(row.decision, DECISION_STYLES[Decision(row.decision)]),
        Text(one_line(row.rule, _CELL)),
        Text(one_line(row.route or "-", _CELL)),
        Text(one_line(row.policy, _CELL)),
        Text(score(row.score)),
        Text(one_line(row.deciding_claim or "-", 2 * _CELL)),
    )


# ------------------------------------------------------------------ guardrail tail: as they come

TAIL_EPILOG = """[bold]Examples[/]

guardrail tail --bootstrap-servers localhost:9092

guardrail tail --flagged --since 1h"""

_TAIL_CHARS: Final = 2_000


def tail_command(
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
    flagged: Annotated[
        bool, option("--flagged", "The cases of flagged, redacted and blocked answers, wrong claims marked.")
    ] = False,
    since: Annotated[str | None, since_option("Begin with those", default="now")] = None,
    number: Annotated[
        int | None, option("--number -n", "End after so many.", default="no end", min=1)
    ] = None,
) -> None:
    """Show decisions as they come, a line for each answer, or with --flagged a card for each case.

    Cases show questions and answers of users. Ctrl-C ends it; nothing is changed by it.
    """
    since_ms = None if since is None else since_time_ms(since, time.time())
    settings = settings_from(config, {"kafka": {"bootstrap_servers": bootstrap_servers}})
    replace_unencodable()
    with suppress(KeyboardInterrupt):
        asyncio.run(_tail(settings.kafka, since_ms, number, flagged=flagged))


async def _tail(settings: KafkaSettings, since_ms: int | None, number: int | None, *, flagged: bool) -> None:
    from consumers.reading import Range, open_topic
    from guardrail.render import symbols_for

    topics = settings.topics
    console = out()
    symbols = symbols_for(console.encoding)
    shown = 0
    async with open_topic(
        settings, topics.flagged if flagged else topics.verdicts, part=Range(since_ms), at_end=True
    ) as reader:
        err().print(Text("waiting for what comes; Ctrl-C ends it", "dim"))
        async with aclosing(reader.follow()) as records:
            async for record in records:
                picture = picture_of(record, symbols, min(console.width, MAX_WIDTH), flagged=flagged)
                if picture is not None:
                    console.print(picture, soft_wrap=isinstance(picture, Text))
                    shown += 1
                if number is not None and shown >= number:
                    return


def picture_of(record: Record, symbols: Symbols, width: int, *, flagged: bool) -> RenderableType | None:
    """What is shown of a record: a case's card, a verdict's line, or nothing, as of a proof of the doctor."""
    from guardrail.doctor import is_proof
    from guardrail.events import FlaggedCase, ResponseVerdict, parse_output
    from guardrail.render import case_card

    try:
        event = parse_output(record.value or b"")
    except DecodeError as error:
        where = f"{record.partition.index}:{record.offset}"
        return Text(f"record {where} can't be read ({error.reason})", "yellow")
    if flagged and isinstance(event, FlaggedCase) and not is_proof(event):
        return case_card(
            event,
            symbols,
            width,
            at_ms=record.timestamp_ms,
            most_chars=_TAIL_CHARS,
            remedy="; guardrail cases show ID --full",
        )
    if not flagged and isinstance(event, ResponseVerdict):
        return verdict_line(event, record.timestamp_ms, symbols)
    return None


def verdict_line(verdict: ResponseVerdict, at_ms: int, symbols: Symbols) -> Text:
    """Time, decision, id, rule, policy, score and number of claims; no text of the answer."""
    from guardrail.render import decided

    dot = f" {symbols.dot} "
    words, style = decided(verdict.decision, verdict.mode)
    line = Text.assemble(
        (f"{when(at_ms)} ", "dim"),
        (f"{symbols.decisions[verdict.decision]} {words:<8} ", style),
        (one_line(verdict.response_id, 64, symbols.ellipsis), "bold"),
    )
    policy = f"{verdict.policy.name} policy, {verdict.mode}"
    for fact in (
        verdict.rule,
        policy,
        f"score {score(verdict.score)}",
        counted(len(verdict.claims), "claim"),
    ):
        line.append(dot + one_line(fact, 80, symbols.ellipsis))
    return line


# ------------------------------------------------------------------------- labels, checked and exported

CHECK_EPILOG = """[bold]Examples[/]

guardrail cases check labels.jsonl

guardrail cases check kafka: -b localhost:9092

[bold]Status[/]: 0 all are sound; 1 some are not; 2 wrong usage or settings."""

EXPORT_EPILOG = """[bold]Examples[/]

guardrail cases export labels.jsonl --to langfuse > scores.jsonl

guardrail cases export kafka: --to openinference --traces traces.jsonl --out annotations.jsonl

guardrail cases export results.jsonl --to ragas --results results.jsonl --out annotations.json"""

_MOST_SHOWN: Final = 20

SourceArgument = Annotated[
    str,
    argument(
        "LABELS",
        "A file of 'label' events, or of results with labels, one a line, plain or gzip's; - for stdin; "
        "or kafka:TOPIC, kafka: for kafka.topics.labels.",
    ),
]


@cases_app.command("check", epilog=CHECK_EPILOG)
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
    console = out()
    responses = len({label.response_id for label in labels})
    console.print(f"{counted(len(labels), 'label')} on {counted(responses, 'response')}", soft_wrap=True)
    for verdict, count in sorted(Counter(label.verdict.value for label in labels).items()):
        console.print(f"  {verdict:<20} {count:,}", soft_wrap=True)
    if problems:
        raise typer.Exit(EXIT_FAILURE)


@cases_app.command("export", epilog=EXPORT_EPILOG)
def export_command(
    source: SourceArgument,
    to: Annotated[
        Literal["ragas", "langfuse", "openinference"],
        option(
            "--to",
            "ragas: a MetricAnnotation, one JSON document. langfuse: bodies for POST /api/public/scores; "
            "openinference: annotations as Phoenix takes them; both one a line.",
        ),
    ],
    results: Annotated[
        Path | None,
        option(
            "--results FILE",
            "For ragas: the results of guardrail evaluate, with the answers and their verdicts.",
        ),
    ] = None,
    traces: Annotated[
        Path | None,
        option(
            "--traces FILE",
            "Which traces and spans the responses are: {response_id, trace_id, span_id}, one a line.",
            default="the response's id is the trace's",
        ),
    ] = None,
    config_id: Annotated[
        str | None,
        option(
            "--config-id ID",
            "For langfuse: the score configuration; the scores' source is ANNOTATION then.",
            default="none, and the scores' source is API",
        ),
    ] = None,
    out_file: Annotated[Path | None, option("--out -o FILE", "Where it goes.", default="stdout")] = None,
    config: ConfigOption = None,
    bootstrap_servers: BootstrapOption = None,
) -> None:
    """Write labels in the form that another tool reads. Nothing is sent anywhere.

    Corrections go along, which may hold texts of answers; for ragas, the answers themselves.
    """
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


def _traces(path: Path) -> dict[str, TraceOf]:
    from pydantic import ValidationError

    from guardrail.evals.labels import TraceOf
    from guardrail.evals.lines import lines_of, open_unpacked
    from guardrail.events import decode_error

    found = {}
    with open_unpacked(path) as file:
        for line, place in lines_of(file, path.name):
            try:
                trace = TraceOf.model_validate_json(line.whole)
            except ValidationError as error:
                wrong = decode_error(error)
                raise DecodeError(wrong.reason, f"{place}: {wrong}") from None
            found[trace.response_id] = trace
    return found
