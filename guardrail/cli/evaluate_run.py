"""One run of ``guardrail evaluate``: judged, scored, said and written."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

import typer

from guardrail.cli.evaluate_report import Report
from guardrail.cli.evaluate_sources import EvaluateRequest, Sources, paths_of
from guardrail.cli.results_file import open_results, opened_for_writing, refuse_source, stdout
from guardrail.cli.terminal import (
    EXIT_FAILURE,
    EXIT_PIPE_CLOSED,
    discard,
    err,
    print_error,
    replace_unencodable,
    safe,
)
from guardrail.evals.evaluation import Asked, checker, counts_parts, default_concurrency, evaluate_each
from guardrail.evals.overview import EvaluationRun
from guardrail.evals.results import BadSample, Evaluation, Sample, StoredResults
from guardrail.judges.cache import fingerprint
from guardrail.judges.factory import JudgeSet
from guardrail.logs import configure_logging

_WRITE_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def evaluate_files(request: EvaluateRequest) -> None:
    """Judge everything, write it, and say what there is to say. Raises typer.Exit with the status."""
    replace_unencodable()
    with _naming(request), ExitStack() as stack:
        read = Sources(request, stack)
        report = Report(read, request)
        told = _conditions(request)
        _open(request, told, read, report, stack)
        try:
            asyncio.run(_judge(request, read, report))
        except KeyboardInterrupt:
            _tell_partial(request)
            raise typer.Exit(128 + signal.SIGINT) from None
        except BrokenPipeError:
            # Whoever read the events has enough; whatever the reader did not consume can be dropped.
            stack.pop_all()
            for stream in (report.results.stream if report.results else None, report.verdicts):
                if stream is not None:
                    _silence(stream)
            raise typer.Exit(EXIT_PIPE_CLOSED) from None
    _tell_the_rest(request, report, told)
    problems = _problems(request, report)
    for problem in problems:
        print_error(problem)
    if problems or report.run.whole.errors:
        raise typer.Exit(EXIT_FAILURE)


def _problems(request: EvaluateRequest, report: Report) -> list[str]:
    """Why the status is a failure, beside answers that could not be judged: those are named already."""
    whole, unverified = report.run.whole, report.run.unverified.counts
    problems = []
    if not whole.results:
        problems.append(
            f"there is no answer in {', '.join(request.sources)}; in a file, give each an object with its "
            "question, contexts and answer, one a line"
        )
    if unverified:
        none = unverified.total() == whole.claims
        which = "no claim could" if none else f"{unverified.total():,} of the claims could not"
        problems.append(f"{which} be judged: {next(iter(unverified))}")
    if request.fail_under is not None and (why := report.below(request.scores[0], request.fail_under)):
        problems.append(why)
    return problems


async def _judge(request: EvaluateRequest, sources: Sources, report: Report) -> None:
    """Judge everything and write it. Raises what writing raises."""
    from guardrail.judges.llm import LlmExplainer

    settings, results = request.settings, report.results
    logging = settings.logging
    if "level" not in logging.model_fields_set:  # the default level is that of a service
        logging = logging.model_copy(update={"level": "warning"})
    configure_logging(logging, report.log_stream)
    workers = default_concurrency(settings.judge.kind)
    judges = JudgeSet(settings.judge, request.router.policies)
    explainer = LlmExplainer(settings.judge.llm) if request.explain == "llm" else None

    async def new() -> AsyncIterator[Sample | BadSample]:
        """The samples that have no result yet."""
        async for sample in sources.samples(workers):
            if results is None or results.is_new(sample):
                yield sample

    try:
        with report:
            await evaluate_each(
                new(),
                checker(
                    judges.default,
                    request.router,
                    settings.limits,
                    judges.by_kind,
                    {name: each.mode for name, each in settings.policies.items()},
                    parts=counts_parts(request.scores) or request.verdicts_as != "event",
                ),
                report.add,
                concurrency=workers,
                asked=Asked(request.scores, request.explain is not None, explainer),
                in_order=not (request.out == "-" and list(request.sources) == ["-"]),
            )
            if results is not None:
                results.complete()
            report.tell_sources()
    finally:
        await judges.aclose()
        if explainer is not None:
            await explainer.aclose()


def _tell_the_rest(request: EvaluateRequest, report: Report, told: dict[str, str]) -> None:
    """What is made of all results at the end: the agreement where there are labels, and the report."""
    if (agreement := report.run.agreement) is not None:
        report.print_lines(agreement.lines())
    if request.report is None:
        return
    from guardrail.evals.report import write_page

    run: EvaluationRun = Evaluation((), settings=told)
    if request.out is not None and Path(request.out).is_file():  # it can be read again, unlike a pipe
        run = StoredResults(request.out)
    write_page(request.report, run, report.run)
    report.print_lines([f"wrote {request.report}"])


def _conditions(request: EvaluateRequest) -> dict[str, str]:
    """What the results depend on, for their readers, and for --resume to tell this run from others."""
    settings, judge = request.settings, request.settings.judge
    model = f" {judge.llm.model}" if judge.kind == "llm" and judge.llm.model else ""
    decides = {
        "policies": {name: each.ref.digest for name, each in settings.policies.items()},
        "routes": [each.model_dump(mode="json") for each in settings.routes],
        "default": settings.default_policy,
        "policy": request.policy,
    }
    digest = blake2b(json.dumps(decides, sort_keys=True).encode(), digest_size=6).hexdigest()
    return {
        "source": ", ".join(paths_of(request.sources)),
        "format": request.source_format,
        "judge": f"{judge.kind}{model}",
        "judge settings": fingerprint(judge.kind, judge)[:12],
        "policy": request.policy or "by route and tenant",
        "policy settings": digest,
        "scores": ", ".join(request.scores),
        **({} if request.explain is None else {"explain": request.explain}),
    }


def _open(
    request: EvaluateRequest, told: dict[str, str], read: Sources, report: Report, stack: ExitStack
) -> None:
    """Results and verdicts are written from now on; what the file of results has already is noted."""
    if request.verdicts == "-":
        report.verdicts = stdout()
    elif request.verdicts is not None:
        path = Path(request.verdicts)
        refuse_source(path, read.files, "--verdicts")
        kind = None if request.force else "verdicts"
        report.verdicts = stack.enter_context(opened_for_writing(path, "--verdicts", kind))
    if request.out is not None:
        report.results = open_results(
            request.out, told, read.files, stack, report.note, resume=request.resume, force=request.force
        )


@contextmanager
def _naming(request: EvaluateRequest) -> Iterator[None]:
    """Name the file in errors that only writing raises: the system does not say which it was."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _WRITE_ERRORS:
            name = request.out or request.verdicts or "-"
            raise OSError(error.errno, error.strerror, "stdout" if name == "-" else name) from error
        raise


def _tell_partial(request: EvaluateRequest) -> None:
    name = request.out or request.verdicts
    if name is None:
        return
    told = "stdout" if name == "-" else safe(name)
    more = "" if request.out in {None, "-"} else "; the same command with --resume goes on"
    err().print(f"interrupted: {told} is partial, it holds the answers judged so far{more}", soft_wrap=True)


def _silence(events: BinaryIO) -> None:
    """Close without an error what can't be written any more."""
    try:
        events.close()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
    discard(sys.stdout)
