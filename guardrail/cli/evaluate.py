"""``guardrail evaluate``: complete answers from files or a topic, judged and scored offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from guardrail.cli.options import (
    BootstrapOption,
    ConfigOption,
    SinceOption,
    UntilOption,
    argument,
    naming_places,
    option,
    output_option,
    settings_from,
)
from guardrail.cli.sources import range_of

EPILOG = """[bold]Examples[/]

guardrail evaluate answers.jsonl

guardrail evaluate ragas.csv --out results.jsonl --report report.html

guardrail evaluate ragas.csv --out results.jsonl --resume

guardrail evaluate kafka:rag.responses --since 2h -b localhost:9092

zcat answers.jsonl.gz | guardrail evaluate - -o - -c my.yaml --policy strict | jq .verdict.score

[bold]Status[/]: 0 all answers were judged; 1 some could not be read (the first are named on stderr, all in
--out, and the others are judged), there is no answer, claims could not be judged, or the mean is below
--fail-under; 2 wrong usage or settings, or a file that can't be read as a whole."""

_LIVE: Final = "severity_weighted"
VerdictForm = Literal["event", "four", "binary", "four-batch", "binary-batch"]


def evaluate_command(
    sources: Annotated[
        list[str],
        argument("SOURCE", "JSON lines, JSON, CSV or Parquet, gzipped or not; kafka:TOPIC; - for stdin."),
    ],
    source_format: Annotated[
        str,
        option(
            "--format NAME",
            "guardrail, ragas, deepeval, haystack, promptfoo, ragtruth, openinference or langfuse; auto "
            "recognises it by the names of the fields.",
        ),
    ] = "auto",
    scores: Annotated[
        list[str] | None,
        option(
            "--score NAME[,…]",
            "Scores to compute from the verdicts; may be given several times.",
            default=_LIVE,
        ),
    ] = None,
    fail_under: Annotated[
        float | None,
        option(
            "--fail-under X", "End with status 1 if the mean of the first score is below X, or undefined."
        ),
    ] = None,
    explain: Annotated[
        Literal["template", "llm"] | None,
        option(
            "--explain HOW",
            "Put the reason of each result into words: by template, or by llm, the model of judge.llm.",
        ),
    ] = None,
    labels: Annotated[
        Path | None, option("--labels FILE", "Labels: people's verdicts on the answers, one a line.")
    ] = None,
    out: Annotated[
        str | None,
        output_option(
            "--out -o FILE",
            "Where one 'evaluation.result' event a line goes, in the order of the input, or "
            "from stdin to stdout as each is done; - for stdout, and the table then goes to stderr.",
            default="nowhere: the table alone",
        ),
    ] = None,
    resume: Annotated[bool, output_option("--resume", "Go on with the interrupted run in --out.")] = False,
    force: Annotated[bool, output_option("--force", "Replace any --out and --verdicts.")] = False,
    verdicts: Annotated[
        str | None,
        output_option("--verdicts FILE", "Where the verdicts alone go, one a line; - for stdout."),
    ] = None,
    verdicts_as: Annotated[
        VerdictForm,
        output_option(
            "--verdicts-as",
            "event: 'verdict.response'. four, binary: as the four-verdict prompt replies, or its binary "
            "variant. …-batch: one document, as for a batch of answers.",
        ),
    ] = "event",
    report_file: Annotated[
        Path | None,
        output_option("--report FILE.html", "Write the report of the run, as guardrail report does."),
    ] = None,
    config: ConfigOption = None,
    policy: Annotated[
        str | None,
        option("--policy NAME", "Apply this policy to all responses.", default="by route and tenant"),
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
    from guardrail.cli import evaluate_sources as asked
    from guardrail.cli.evaluate_run import evaluate_files
    from guardrail.cli.results_file import STDOUT, is_stdout, refuse_one_for_two

    refuse_one_for_two(
        {"--config": config, "--labels": labels}
        | {"--out": out, "--verdicts": verdicts, "--report": report_file}
    )
    options = {"kafka": {"bootstrap_servers": bootstrap_servers}}
    settings = settings_from(config, options)
    request = asked.EvaluateRequest(
        settings=settings,
        sources=sources,
        source_format=asked.format_named(source_format),
        part=range_of(since, until),
        labels=asked.labels_in(labels),
        router=asked.router_of(settings, policy),
        policy=policy,
        scores=asked.score_names(scores or [_LIVE]),
        explain=explain,
        out=STDOUT if is_stdout(out) else out,
        resume=resume,
        force=force,
        verdicts=STDOUT if is_stdout(verdicts) else verdicts,
        verdicts_as=verdicts_as,
        report=report_file,
        fail_under=fail_under,
    )
    asked.check(request)
    with naming_places(config, options):
        evaluate_files(request)
