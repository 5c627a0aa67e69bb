"""``guardrail evaluate``: complete answers from files or a topic, judged and scored offline."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal

import typer

from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    SinceOption,
    UntilOption,
    naming_places,
    settings_from,
)
from guardrail.cli.sources import range_of
from guardrail.cli.terminal import (
    EXIT_FAILURE,
    EXIT_PIPE_CLOSED,
    discard,
    print_error,
    replace_unencodable,
)

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.cli.evaluate_report import Report
    from guardrail.cli.evaluate_sources import Sources
    from guardrail.cli.results_file import ResultsFile
    from guardrail.config import LoggingSettings
    from guardrail.judges.llm import LlmExplainer
    from guardrail.offline.formats import Format
    from guardrail.offline.results import BadSample, Sample
    from guardrail.offline.truths import LabelsByResponse
    from guardrail.routing import PolicyRouter

EPILOG = """[bold]Examples[/]

guardrail evaluate answers.jsonl

guardrail evaluate ragas.csv --out results.jsonl --report report.html

guardrail evaluate ragas.csv --out results.jsonl --resume

guardrail evaluate kafka:rag.responses --since 2h -b localhost:9092

zcat answers.jsonl.gz | guardrail evaluate - -o - -c my.yaml --policy strict | jq .verdict.score

[bold]Status[/]: 0 all answers were judged; 1 some could not be read (they are named on stderr, and the others
are judged), there is no answer, claims could not be judged, or the mean is below --fail-under; 2 wrong usage
or settings."""

_WRITE_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_OUTPUT: Final = "Output"
_LIVE: Final = "severity_weighted"
VerdictForm = Literal["event", "four", "binary"]


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Where results go beside the table."""

    out: str | None
    verdicts: str | None
    resume: bool
    force: bool

    @property
    def on_stdout(self) -> bool:
        return "-" in {self.out, self.verdicts}

    @property
    def to_a_file(self) -> bool:
        """Whether the results can be read again from --out."""
        return self.out is not None and Path(self.out).is_file()


def evaluate_command(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="JSON lines, JSON, CSV or Parquet, gzipped or not; kafka:TOPIC; - for stdin.",
            show_default=False,
        ),
    ],
    source_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="guardrail, ragas, deepeval, haystack, promptfoo, ragtruth, openinference or langfuse; auto "
            "recognises it by the names of the fields.",
        ),
    ] = "auto",
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="NAME[,…]",
            show_default=_LIVE,
            help="Scores to compute from the verdicts; may be given several times.",
        ),
    ] = None,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under",
            metavar="X",
            show_default=False,
            help="End with status 1 if the mean of the first score is below X, or undefined.",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="HOW",
            show_default=False,
            help="Put the reason of each result into words: by template, or by llm, the model of judge.llm.",
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            show_default=False,
            help="Labels: people's verdicts on the answers, one a line.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
            show_default="nowhere: the table alone",
            help="Where one 'evaluation.result' event a line goes, in the order of the input; - for stdout, "
            "and the table then goes to stderr.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", rich_help_panel=_OUTPUT, help="Go on with the interrupted run in --out."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", rich_help_panel=_OUTPUT, help="Replace --out, whatever it holds."),
    ] = False,
    verdicts: Annotated[
        str | None,
        typer.Option(
            "--verdicts",
            metavar="FILE",
            rich_help_panel=_OUTPUT,
            show_default=False,
            help="Where the verdicts alone go, one a line; - for stdout.",
        ),
    ] = None,
    verdicts_as: Annotated[
        VerdictForm,
        typer.Option(
            "--verdicts-as",
            rich_help_panel=_OUTPUT,
            help="event: 'verdict.response'. four: as the four-verdict prompt replies. binary: as its binary "
            "variant does.",
        ),
    ] = "event",
    report_file: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE.html",
            rich_help_panel=_OUTPUT,
            show_default=False,
            help="Write the report of the run, as guardrail report does.",
        ),
    ] = None,
    config: ConfigOption = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default="by route and tenant", help="Apply this policy to all responses."
        ),
    ] = None,
    bootstrap_servers: BootstrapOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Judge complete answers: a verdict with every claim, scores, and a decision for each.

    The table says of every decision which rule made it, and for which claim.
    Every claim is judged, also those after one that would end a live answer.
    Sources of any length are read and written as they go. Warnings go to stderr, more with logging.level.
    """
    from guardrail.cli.evaluate_report import Report
    from guardrail.cli.evaluate_sources import Sources

    outputs = _Outputs(out, verdicts, resume, force)
    _refuse(outputs)
    _check_report(report_file)
    names = _score_names(scores)
    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    settings = settings_from(config, options)
    router = _router(settings, policy)
    part = range_of(since, until)
    replace_unencodable()
    with _naming(outputs), naming_places(config, options), ExitStack() as stack:
        read = stack.enter_context(
            Sources(sources, _known(source_format), _labels(labels), settings.kafka, part)
        )
        report = Report(read, table_on_stderr=outputs.on_stdout, router=router, scores=names)
        told = _told(settings, policy, sources, source_format, names)
        if explain is not None:
            told["explain"] = explain
        report.keeps = report_file is not None and not outputs.to_a_file
        results, events = _opened(outputs, told, read, report, stack)
        report.writes_to(results, events, verdicts_as)
        run = _Run(settings, router, read, report, results, names, _how(explain))
        try:
            asyncio.run(run.evaluate())
        except KeyboardInterrupt:
            _tell_partial(outputs)
            raise typer.Exit(128 + signal.SIGINT) from None
        except BrokenPipeError:
            # Whoever read the events has enough; what they left unread is nobody's loss.
            stack.pop_all()
            for stream in (results.stream if results else None, events):
                if stream is not None:
                    _silence(stream)
            raise typer.Exit(EXIT_PIPE_CLOSED) from None
    _tell_the_rest(report, report_file, Path(out) if out is not None and outputs.to_a_file else None, told)
    whole, unverified = report.run.whole, report.run.unverified.counts
    failed = whole.errors > 0
    if not whole.results:
        print_error(f"there is no answer in {', '.join(sources)}")
        failed = True
    if unverified:
        none = unverified.total() == whole.claims
        which = "no claim could" if none else f"{unverified.total():,} of the claims could not"
        print_error(f"{which} be judged: {next(iter(unverified))}")
        failed = True
    if fail_under is not None and (why := report.below(names[0], fail_under)):
        print_error(why)
        failed = True
    if failed:
        raise typer.Exit(EXIT_FAILURE)


@dataclass(frozen=True, slots=True)
class _Run:
    """One run, ready to begin."""

    settings: GuardSettings
    router: PolicyRouter
    sources: Sources
    report: Report
    results: ResultsFile | None
    scores: Sequence[str]
    explain: str | None

    async def evaluate(self) -> None:
        """Judge everything and write it. Raises what writing raises."""
        from guardrail.judges.factory import JudgeSet
        from guardrail.logs import configure_logging
        from guardrail.offline.evaluation import Asked, checker, default_concurrency, evaluate_each

        settings, report = self.settings, self.report
        configure_logging(_logged(settings.logging), report.log_stream)
        workers = default_concurrency(settings.judge.kind)
        judges = JudgeSet(settings.judge, self.router.policies)
        explainer = self._explainer()
        asked = Asked(self.scores, self.explain is not None, explainer)
        try:
            with report:
                await evaluate_each(
                    self._new(workers),
                    checker(
                        judges.default,
                        self.router,
                        settings.limits,
                        judges.by_kind,
                        {name: each.mode for name, each in settings.policies.items()},
                    ),
                    report.add,
                    concurrency=workers,
                    asked=asked,
                )
                if self.results is not None:
                    self.results.complete()
                report.tell_sources()
        finally:
            await judges.aclose()
            if explainer is not None:
                await explainer.aclose()

    def _explainer(self) -> LlmExplainer | None:
        from guardrail.judges.llm import LlmExplainer

        return LlmExplainer(self.settings.judge.llm) if self.explain == "llm" else None

    async def _new(self, ahead: int) -> AsyncIterator[Sample | BadSample]:
        """The samples that have no result yet."""
        async for sample in self.sources.samples(ahead):
            if self.results is None or self.results.is_new(sample):
                yield sample


def _refuse(outputs: _Outputs) -> None:
    if outputs.out == "-" == outputs.verdicts:
        raise typer.BadParameter("only one of --out and --verdicts can be stdout", param_hint="--verdicts")
    if outputs.resume and outputs.out is None:
        raise typer.BadParameter("give the --out of the interrupted run", param_hint="--resume")
    if outputs.resume and outputs.force:
        raise typer.BadParameter("either go on or begin anew: not with --force", param_hint="--resume")
    if outputs.resume and outputs.verdicts is not None:
        message = "--verdicts is written anew each time; take .verdict of the lines of --out instead"
        raise typer.BadParameter(message, param_hint="--resume")


def _check_report(path: Path | None) -> None:
    """Fail before anything is judged where the report could not be written. Raises typer.BadParameter."""
    if path is None:
        return
    import guardrail.offline.report  # noqa: F401 - raises ConfigError where Jinja2 is missing
    from guardrail.cli.results_file import refuse_unless_report

    if not path.parent.is_dir():
        raise typer.BadParameter(f"{path.parent}: no such folder; make it first", param_hint="--report")
    refuse_unless_report(path, "--report")


def _tell_the_rest(report: Report, path: Path | None, out: Path | None, told: dict[str, str]) -> None:
    """What is made of all results at the end: the agreement where there are labels, and the report."""
    if (agreement := report.run.agreement) is not None:
        report.print_lines(agreement.lines())
    if path is None:
        return
    from guardrail.offline.report import write_report
    from guardrail.offline.results import Evaluation, StoredResults

    write_report(Evaluation(tuple(report.kept), settings=told) if out is None else StoredResults(out), path)
    report.print_lines([f"wrote {path}"])


def _score_names(given: list[str] | None) -> list[str]:
    from guardrail.errors import ConfigError
    from guardrail.offline.evaluation import check_scores

    names = [name.strip() for each in given or [_LIVE] for name in each.split(",") if name.strip()]
    try:
        check_scores(names)
    except ConfigError as error:
        raise typer.BadParameter(str(error), param_hint="--score") from None
    return list(dict.fromkeys(names))


def _how(explain: str | None) -> str | None:
    if explain not in {None, "template", "llm"}:
        message = f"{explain!r} is none of: template, llm"
        raise typer.BadParameter(message, param_hint="--explain")
    return explain


def _known(source_format: str) -> Format:
    from guardrail.offline.formats import FORMATS

    for each in FORMATS:
        if each == source_format:
            return each
    message = f"{source_format!r} is no format; there are: {', '.join(FORMATS)}"
    raise typer.BadParameter(message, param_hint="--format")


def _labels(path: Path | None) -> LabelsByResponse:
    from guardrail.offline.formats import read_labels
    from guardrail.offline.truths import LabelsByResponse

    if path is None:
        return LabelsByResponse()
    try:
        return read_labels(path)
    except OSError as error:
        message = f"{path}: {error.strerror}; give a file with one label event a line"
        raise typer.BadParameter(message, param_hint="--labels") from None


def _told(
    settings: GuardSettings,
    policy: str | None,
    sources: Sequence[str],
    source_format: str,
    names: Sequence[str],
) -> dict[str, str]:
    """What the results depend on, for their readers, and for --resume to tell this run from others."""
    from guardrail.cli.evaluate_sources import paths_of
    from guardrail.judges.fingerprint import fingerprint

    judge = settings.judge
    model = f" {judge.llm.model}" if judge.kind == "llm" and judge.llm.model else ""
    decides = {
        "policies": {name: each.ref.digest for name, each in settings.policies.items()},
        "routes": [each.model_dump(mode="json") for each in settings.routes],
        "default": settings.default_policy,
        "policy": policy,
    }
    digest = blake2b(json.dumps(decides, sort_keys=True).encode(), digest_size=6).hexdigest()
    return {
        "source": ", ".join(paths_of(sources)),
        "format": source_format,
        "judge": f"{judge.kind}{model}",
        "judge settings": fingerprint(judge.kind, judge)[:12],
        "policy": policy or "by route and tenant",
        "policy settings": digest,
        "scores": ", ".join(names),
    }


def _opened(
    outputs: _Outputs, told: dict[str, str], read: Sources, report: Report, stack: ExitStack
) -> tuple[ResultsFile | None, BinaryIO | None]:
    """Where results and verdicts are written; nothing is opened before both names are known to be usable."""
    from guardrail.cli.results_file import open_results, opened_for_writing, refuse_source, stdout

    events: BinaryIO | None = None
    if outputs.verdicts == "-":
        events = stdout()
    elif outputs.verdicts is not None:
        path = Path(outputs.verdicts)
        refuse_source(path, read.files, "--verdicts")
        events = stack.enter_context(opened_for_writing(path, "--verdicts"))
    if outputs.out is None:
        return None, events
    results = open_results(
        outputs.out,
        told,
        read.files,
        stack,
        report.note,
        resume=outputs.resume,
        force=outputs.force,
    )
    return results, events


def _logged(logging: LoggingSettings) -> LoggingSettings:
    """Warnings and errors, unless a level is set: the default level is that of a service."""
    return logging if "level" in logging.model_fields_set else logging.model_copy(update={"level": "warning"})


def _router(settings: GuardSettings, policy: str | None) -> PolicyRouter:
    from guardrail.offline.evaluation import judging_everything
    from guardrail.routing import PolicyRouter

    policies = {name: judging_everything(each) for name, each in settings.policies.items()}
    if policy is None:
        return PolicyRouter(policies, settings.routes, settings.default_policy, settings.challengers)
    if policy not in policies:
        known = ", ".join(sorted(policies))
        message = f"{policy!r} is no policy; there are: {known}. Give one of them, or add it to --config"
        raise typer.BadParameter(message, param_hint="--policy")
    return PolicyRouter.single(policies[policy])


@contextmanager
def _naming(outputs: _Outputs) -> Iterator[None]:
    """Name the file in errors that only writing raises: the system does not say which it was."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in _WRITE_ERRORS:
            name = outputs.out or outputs.verdicts or "-"
            raise OSError(error.errno, error.strerror, "stdout" if name == "-" else name) from error
        raise


def _tell_partial(outputs: _Outputs) -> None:
    from guardrail.cli.terminal import err, safe

    name = outputs.out or outputs.verdicts
    if name is None:
        return
    told = "stdout" if name == "-" else safe(name)
    more = "" if outputs.out in {None, "-"} else "; the same command with --resume goes on"
    err().print(f"interrupted: {told} is partial, it holds the answers judged so far{more}", soft_wrap=True)


def _silence(events: BinaryIO) -> None:
    """Close without an error what can't be written any more."""
    try:
        events.close()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise
    discard(sys.stdout)
