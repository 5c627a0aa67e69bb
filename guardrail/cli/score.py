"""``guardrail score``: complete responses from a file, judged offline."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from guardrail.cli.options import ConfigOption, naming_places, settings_from
from guardrail.cli.terminal import EXIT_PIPE_CLOSED, discard, print_error, replace_unencodable

if TYPE_CHECKING:
    from guardrail.cli.score_report import Report
    from guardrail.config import LoggingSettings, Settings
    from guardrail.routing import PolicyRouter

EPILOG = """[bold]Examples[/]

guardrail score answers.jsonl

guardrail score answers.jsonl --show blocked

guardrail score answers.jsonl --out - | jq .score

zcat answers.jsonl.gz | guardrail score - -o out.jsonl -c my.yaml --policy strict

[bold]Status[/]: 0 all lines were judged; 1 some could not be read (they are named on stderr, and the others
are judged), no claim could be judged, or no answer has the id of --show; 2 wrong usage or settings."""

_EXIT_FAILED: Final = 1
_WRITE_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def score_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN.jsonl",
            help="One answer a line: {question, contexts: [texts], answer}, or a 'response' event; - for "
            "stdin.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT.jsonl",
            show_default="nowhere: the table alone",
            help="Where one 'verdict.response' event a line goes, in the order of the input; - for stdout, "
            "and the table then goes to stderr.",
        ),
    ] = None,
    show: Annotated[
        str | None,
        typer.Option(
            "--show",
            metavar="ID|WHICH",
            show_default=False,
            help="Print the whole case of one answer, or of all that were blocked, redacted, flagged or "
            "released, or of all: documents, claims, verdicts and reasons.",
        ),
    ] = None,
    config: ConfigOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default="by route and tenant", help="Apply this policy to all responses."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-j",
            min=1,
            max=1024,
            metavar="N",
            show_default="the processors for the local judge, 16 for others",
            help="Responses judged at the same time.",
        ),
    ] = None,
) -> None:
    """Judge complete answers from a file: a verdict with every claim, a score and a decision for each.

    The table says of every decision which rule made it, and for which claim.
    Every claim is judged, also those after one that would end a live answer.
    Files of any length are read and written as they go. Warnings go to stderr, more with logging.level.
    """
    from guardrail.cli.score_report import SHOW_WORDS

    settings = settings_from(config, {})
    router = _router(settings, policy)
    replace_unencodable()
    with _naming(out), naming_places(config, {}), ExitStack() as stack:
        lines = _open_source(source)
        if source != "-":  # closing stdin would wait for the thread that waits in it
            stack.enter_context(lines)
        events = None if out is None else stack.enter_context(_open_out(out, lines))
        try:
            report = asyncio.run(
                _score(settings, router, source, lines, events, out == "-", concurrency, show)
            )
        except KeyboardInterrupt:
            _tell_partial(out)
            raise typer.Exit(128 + signal.SIGINT) from None
        except BrokenPipeError:
            # Whoever read the events has enough; what they left unread is nobody's loss.
            stack.pop_all()
            if events is not None:
                _silence(events)
            raise typer.Exit(EXIT_PIPE_CLOSED) from None
    if report.totals.nothing_judged:
        print_error(f"no claim could be judged: {report.totals.first_unverified}")
    not_found = show is not None and show not in SHOW_WORDS and not report.cards
    if not_found:
        print_error(f"no answer has the id {show!r}; give one of the ids, or {', '.join(SHOW_WORDS)}")
    if report.totals.unreadable or report.totals.nothing_judged or not_found:
        raise typer.Exit(_EXIT_FAILED)


async def _score(
    settings: Settings,
    router: PolicyRouter,
    source: str,
    lines: BinaryIO,
    events: BinaryIO | None,
    events_on_stdout: bool,
    concurrency: int | None,
    show: str | None,
) -> Report:
    from guardrail.cli.score_report import Report
    from guardrail.judges.factory import JudgeSet
    from guardrail.logs import configure_logging
    from guardrail.offline.lines import beside_the_loop, read_lines
    from guardrail.offline.scorer import checker, score_lines

    workers = concurrency or (os.cpu_count() or 1 if settings.judge.kind == "local" else 16)
    name = "<stdin>" if source == "-" else source
    report = Report(
        name,
        _size(lines),
        events,
        table_on_stderr=events_on_stdout,
        router=router,
        show=show,
    )
    configure_logging(_logged(settings.logging), report.log_stream)
    judges = JudgeSet(settings.judge, router.policies)
    try:
        with report:
            await score_lines(
                beside_the_loop(read_lines(lines), ahead=workers),
                checker(
                    judges.default,
                    router,
                    settings.limits,
                    judges.by_kind,
                    {name: each.mode for name, each in settings.policies.items()},
                ),
                report.add,
                concurrency=workers,
            )
    finally:
        await judges.aclose()
    return report


def _logged(logging: LoggingSettings) -> LoggingSettings:
    """Warnings and errors, unless a level is set: the default level is that of a service."""
    return logging if "level" in logging.model_fields_set else logging.model_copy(update={"level": "warning"})


def _router(settings: Settings, policy: str | None) -> PolicyRouter:
    from guardrail.offline.scorer import judging_everything
    from guardrail.routing import PolicyRouter

    policies = {name: judging_everything(each) for name, each in settings.policies.items()}
    if policy is None:
        return PolicyRouter(policies, settings.routes, settings.default_policy, settings.challengers)
    if policy not in policies:
        known = ", ".join(sorted(policies))
        message = f"{policy!r} is no policy; there are: {known}. Give one of them, or add it to --config"
        raise typer.BadParameter(message, param_hint="--policy")
    return PolicyRouter.single(policies[policy])


def _open_source(source: str) -> BinaryIO:
    if source == "-":
        # Not sys.stdin itself: a thread may still wait in it when the process ends.
        return open(0, "rb", closefd=False)
    try:
        return Path(source).open("rb")
    except OSError as error:
        message = f"{source}: {error.strerror}; give a file with one response event a line, or - for stdin"
        raise typer.BadParameter(message, param_hint="IN.jsonl") from None


def _open_out(out: str, lines: BinaryIO) -> BinaryIO:
    if out == "-":
        return open(1, "wb", closefd=False)
    path = Path(out)
    try:
        if path.exists() and os.path.samestat(path.stat(), os.fstat(lines.fileno())):
            message = f"{out} is the file that is read; give another one"
            raise typer.BadParameter(message, param_hint="--out")
        return path.open("wb")
    except OSError as error:
        message = f"{out}: {error.strerror}; give a file that can be written, or - for stdout"
        raise typer.BadParameter(message, param_hint="--out") from None


@contextmanager
def _naming(out: str | None) -> Iterator[None]:
    """Name the file in errors that only writing raises: the system does not say which it was."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _WRITE_ERRORS:
            name = "stdout" if out in {None, "-"} else out
            raise OSError(error.errno, error.strerror, name) from error
        raise


def _tell_partial(out: str | None) -> None:
    from guardrail.cli.terminal import err, safe

    if out is None:
        return
    name = "stdout" if out == "-" else safe(out)
    err().print(f"interrupted: {name} is partial, it holds the lines judged so far", soft_wrap=True)


def _size(lines: BinaryIO) -> int | None:
    """Bytes of a regular file; None for a pipe or a terminal, which have no known end."""
    status = os.fstat(lines.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _silence(events: BinaryIO) -> None:
    """Close without an error what can't be written any more."""
    try:
        events.close()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
    discard(sys.stdout)
