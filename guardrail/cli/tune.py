"""``guardrail tune``: a policy's thresholds, and calibrations of judges, chosen from labelled answers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from guardrail.cli.options import ConfigOption, argument, option, output_option, policy_named, settings_from
from guardrail.errors import ConfigError

EPILOG = """[bold]Examples[/]

guardrail tune results.jsonl --labels labels.jsonl --catch 0.95 --of critical --by withhold --out tuned.yaml

guardrail tune results.jsonl --catch 0.9 --report tuning.html

guardrail tune verdicts.jsonl --share 0.02 --out suggested.yaml

guardrail tune results.jsonl --max-false 0.05 --calibration calibration.yaml --out tuned.yaml

[bold]Status[/]: 0 done, also if the policy should be kept as it is; 1 too few labels, nothing to tune, or a \
line that can't be read; 2 wrong usage or settings."""

_aim_option: Final = partial(option, panel="Aim")


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
        Literal["minor", "normal", "major", "critical"],
        _aim_option("--of", "Errors of this severity or a graver one count; minor: any error."),
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
    from guardrail.cli import tune_run as asked

    settings = settings_from(config, {})
    asked.check_share(share, "--share")
    asked.check_share(bands, "--bands")
    if calibration is not None and settings.judge.calibration is not None:
        raise ConfigError(
            f"judge.calibration: {settings.judge.calibration} is applied already, and --calibration would be "
            "fitted on top of it; take the setting out, and judge the answers again"
        )
    request = asked.TuneRequest(
        records=records,
        labels=labels or [],
        base=policy_named(policy or settings.default_policy, settings),
        aim=asked.aim_of(catch, max_false, of, by, share, calibration or bands),
        share=share,
        by=by,
        vary=asked.varied(vary),
        first_judge=settings.judge.cascade.first,
        out=out,
        calibration=calibration,
        bands=bands,
        report=report,
        force=force,
    )
    asked.check_places(config, request)
    asked.tune_files(request)
