"""``guardrail tune``: a policy's thresholds, and calibrations of judges, chosen from labelled answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, cast, get_args

import typer

from guardrail.cli.options import ConfigOption, argument, option, output_option, policy_named, settings_from
from guardrail.errors import ConfigError

if TYPE_CHECKING:
    from guardrail.cli.tune_run import TuneRequest
    from guardrail.evals.aims import Aim
    from guardrail.evals.search import Vary

EPILOG = """[bold]Examples[/]

guardrail tune results.jsonl --labels labels.jsonl --catch 0.95 --of critical --by withhold --out tuned.yaml

guardrail tune results.jsonl --catch 0.9 --report tuning.html

guardrail tune verdicts.jsonl --share 0.02 --out suggested.yaml

guardrail tune results.jsonl --max-false 0.05 --calibration calibration.yaml --out tuned.yaml

[bold]Status[/]: 0 done, also if the policy should be kept as it is; 1 too few labels, nothing to tune, or a \
line that can't be read; 2 wrong usage or settings."""

_aim_option: Final = partial(option, panel="Aim")
SeverityName = Literal["minor", "normal", "major", "critical"]


def tune_command(
    records: Annotated[
        list[Path],
        argument(
            "RECORDS...",
            "Files of results (evaluation.result) or verdicts (verdict.response), one a line, plain or "
            "gzip's; - for stdin.",
        ),
    ],
    labels: Annotated[
        list[Path] | None,
        option(
            "--labels -l FILE",
            "Labels, one a line, of answers in the records. May be given several times.",
            default="those in the records",
        ),
    ] = None,
    config: ConfigOption = None,
    policy: Annotated[
        str | None, option("--policy NAME", "The policy to begin with.", default="default_policy")
    ] = None,
    catch: Annotated[
        float | None,
        _aim_option(
            "--catch SHARE",
            "Catch this share of the answers with an error, at the fewest false alarms: 0.95.",
        ),
    ] = None,
    max_false: Annotated[
        float | None,
        _aim_option(
            "--max-false SHARE",
            "Catch most with at most this share of faithful answers as false alarms: 0.01.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        _aim_option(
            "--share SHARE",
            "Without labels: act on this share of all answers. It knows nothing of right and wrong.",
        ),
    ] = None,
    by: Annotated[
        Literal["flag", "withhold", "block"],
        _aim_option(
            "--by", "What catches an answer: at least a flag; at least a part withheld (redact); a block."
        ),
    ] = "flag",
    of: Annotated[
        SeverityName, _aim_option("--of", "Errors of this severity or a graver one count; minor: any error.")
    ] = "minor",
    vary: Annotated[
        str,
        option(
            "--vary WHAT[,…]",
            "What may change: thresholds, those that the policy has; weights of severities; bounds, on "
            "support, for rules that lack one.",
            panel="Search",
        ),
    ] = "thresholds",
    out: Annotated[
        Path | None,
        output_option("--out -o FILE.yaml", "Write the policy there, with where it comes from in comments."),
    ] = None,
    calibration: Annotated[
        Path | None,
        output_option(
            "--calibration FILE.yaml",
            "Calibrate the judges from the labels, too, and write it there (judge.calibration).",
        ),
    ] = None,
    bands: Annotated[
        float | None,
        output_option(
            "--bands SHARE",
            "Fit the cascade's bands, too: this share of what its first judge settles is right.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        output_option(
            "--report FILE.html", "Write what was found, with charts, as one page there (extra report)."
        ),
    ] = None,
    force: Annotated[
        bool,
        output_option(
            "--force", "Write also what has too few labels or is no better than the policy as it is."
        ),
    ] = False,
) -> None:
    """Choose a policy's thresholds from labelled answers, for a stated aim; no judge is asked.

    Every figure is of answers held out, with 95 % intervals, beside the policy as it is.
    Without --force nothing is written that is no better than it, or that has too few labels.
    """
    from guardrail.cli.tune_run import TuneRequest, tune_files

    settings = settings_from(config, {})
    _check_share(share, "--share")
    _check_share(bands, "--bands")
    if calibration is not None and settings.judge.calibration is not None:
        raise ConfigError(
            f"judge.calibration: {settings.judge.calibration} is applied already, and --calibration would be "
            "fitted on top of it; take the setting out, and judge the answers again"
        )
    request = TuneRequest(
        records=records,
        labels=labels or [],
        base=policy_named(policy or settings.default_policy, settings),
        aim=_aim(catch, max_false, of, by, share, calibration or bands),
        share=share,
        by=by,
        vary=_varied(vary),
        first_judge=settings.judge.cascade.first,
        out=out,
        calibration=calibration,
        bands=bands,
        report=report,
        force=force,
    )
    _check_places(config, request)
    tune_files(request)


def _aim(
    catch: float | None,
    max_false: float | None,
    of: SeverityName,
    by: Literal["flag", "withhold", "block"],
    share: float | None,
    other: object,
) -> Aim | None:
    """The aim that options give; None if they ask for something else. Raises typer.BadParameter."""
    from guardrail.evals.aims import Aim
    from guardrail.events import Severity

    given = catch is not None or max_false is not None
    if not given and (share is not None or other is not None):
        return None
    if given and share is not None:
        raise typer.BadParameter(
            "--share is for answers without labels; give it alone, or an aim without it", param_hint="--share"
        )
    if not given:
        raise typer.BadParameter(
            "no aim: give --catch SHARE, --max-false SHARE, or without labels --share SHARE"
        )
    try:
        return Aim(catch, max_false, of=Severity(of), by=by)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _varied(text: str) -> tuple[Vary, ...]:
    from guardrail.evals.search import Vary

    known = get_args(Vary)
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for part in given:
        if part not in known:
            raise typer.BadParameter(
                f"{part!r} can't change; name one or more of {', '.join(known)}", param_hint="--vary"
            )
    return cast("tuple[Vary, ...]", given)


def _check_share(value: float | None, option: str) -> None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(
            f"{value:g} is not a fraction; give a number between 0 and 1, such as 0.02", param_hint=option
        )


def _check_places(config: Path | None, request: TuneRequest) -> None:
    """Nothing is written over that is read or not ours, and a report is one that can be written."""
    from guardrail.cli.results_file import refuse_foreign, refuse_one_for_two

    places = {"--out": request.out, "--calibration": request.calibration, "--report": request.report}
    refuse_one_for_two({"--config": config} | places)
    refuse_foreign(request.out, "what tune writes", "--out")
    refuse_foreign(request.calibration, "what tune writes", "--calibration")
    if request.report is None:
        return
    if request.aim is None and request.share is None:
        raise typer.BadParameter("--report needs an aim, or --share", param_hint="--report")
    import guardrail.evals.tuning_report  # noqa: F401 - says now if the extra is missing

    refuse_foreign(request.report, "a report", "--report")
