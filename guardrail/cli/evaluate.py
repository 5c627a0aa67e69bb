"""``guardrail evaluate``: complete answers from files or a topic, judged and scored offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

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

if TYPE_CHECKING:
    from consumers.settings import GuardSettings
    from guardrail.cli.evaluate_run import EvaluateRequest
    from guardrail.offline.formats import Format
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

_OUTPUT: Final = "Output"
_LIVE: Final = "severity_weighted"
VerdictForm = Literal["event", "four", "binary"]


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
    from guardrail.cli.evaluate_run import EvaluateRequest, evaluate_files

    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    settings = settings_from(config, options)
    request = EvaluateRequest(
        settings=settings,
        sources=sources,
        source_format=_known(source_format),
        part=range_of(since, until),
        labels=_labels(labels),
        router=_router(settings, policy),
        policy=policy,
        scores=_score_names(scores),
        explain=_how(explain),
        out=out,
        resume=resume,
        force=force,
        verdicts=verdicts,
        verdicts_as=verdicts_as,
        report=report_file,
        fail_under=fail_under,
    )
    _refuse(request)
    with naming_places(config, options):
        evaluate_files(request)


def _refuse(request: EvaluateRequest) -> None:
    if request.out == "-" == request.verdicts:
        raise typer.BadParameter("only one of --out and --verdicts can be stdout", param_hint="--verdicts")
    if request.resume and request.out is None:
        raise typer.BadParameter("give the --out of the interrupted run", param_hint="--resume")
    if request.resume and request.force:
        raise typer.BadParameter("either go on or begin anew: not with --force", param_hint="--resume")
    if request.resume and request.verdicts is not None:
        message = "--verdicts is written anew each time; take .verdict of the lines of --out instead"
        raise typer.BadParameter(message, param_hint="--resume")
    _check_report(request.report)


def _check_report(path: Path | None) -> None:
    """Fail before anything is judged where the report could not be written. Raises typer.BadParameter."""
    if path is None:
        return
    import guardrail.offline.report  # noqa: F401 - raises ConfigError where Jinja2 is missing
    from guardrail.cli.results_file import refuse_unless_report

    if not path.parent.is_dir():
        raise typer.BadParameter(f"{path.parent}: no such folder; make it first", param_hint="--report")
    refuse_unless_report(path, "--report")


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
