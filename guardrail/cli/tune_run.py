"""One run of ``guardrail tune``: what it computes, says and writes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import typer
import yaml
from rich.table import Table

from guardrail.cli.results_file import refuse_foreign, refuse_one_for_two
from guardrail.cli.terminal import EXIT_FAILURE, err, out, print_error, safe
from guardrail.errors import GuardrailError
from guardrail.evals.aims import THRESHOLD, Aim, By
from guardrail.evals.calibration import (
    Fitted,
    FittedBand,
    calibrated,
    calibrating,
    calibrations_of,
    fit_bands,
    fit_calibrations,
)
from guardrail.evals.records import LabelledAnswers, read_labelled
from guardrail.evals.search import Vary
from guardrail.evals.tuning import (
    Tuned,
    differences,
    figures,
    for_share,
    number,
    provenance,
    rate,
    shares,
    tune,
    written,
)
from guardrail.events import Severity
from guardrail.judges.calibrated import Calibrations
from guardrail.policy import Policy
from guardrail.printable import escape_controls

if TYPE_CHECKING:
    from guardrail.evals.tuning_report import TuningPage


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """What one run is asked for: what it reads, what it aims at, and where it writes.

    ``aim`` is None with ``share``, or where only ``calibration`` or ``bands`` are wanted.
    """

    records: Sequence[Path]
    labels: Sequence[Path]
    base: Policy
    aim: Aim | None
    share: float | None
    by: By
    vary: Sequence[Vary]
    first_judge: str
    """The cascade's first judge, whose bands are fitted."""
    out: Path | None
    calibration: Path | None
    bands: float | None
    report: Path | None
    force: bool

    @property
    def files(self) -> list[Path]:
        """All that is read, each once."""
        return list(dict.fromkeys([*self.records, *self.labels]))


def aim_of(
    catch: float | None, max_false: float | None, of: str, by: By, share: float | None, other: object
) -> Aim | None:
    """The aim that options give; None if they ask for something else. Raises typer.BadParameter."""
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


def varied(text: str) -> tuple[Vary, ...]:
    """What --vary names, each once. Raises typer.BadParameter."""
    known = get_args(Vary)
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for part in given:
        if part not in known:
            raise typer.BadParameter(
                f"{part!r} can't change; name one or more of {', '.join(known)}", param_hint="--vary"
            )
    return cast("tuple[Vary, ...]", given)


def check_share(value: float | None, option: str) -> None:
    """Raises typer.BadParameter."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(
            f"{value:g} is not a fraction; give a number between 0 and 1, such as 0.02", param_hint=option
        )


def check_places(config: Path | None, request: TuneRequest) -> None:
    """Nothing is written over that is read or not ours, and a report is one that can be written."""
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


def tune_files(request: TuneRequest) -> None:
    """Read, search, say and write. Raises GuardrailError, or typer.Exit with the status."""
    found = read_labelled(request.records, request.labels)
    _tell_left_out(found)
    if not found.responses:
        raise GuardrailError("there is no answer in the records that was judged to its end; nothing to tune")
    run = _TuneRun(request, found)
    if request.share is not None:
        run.suggest(request.share)
    elif any(each.labels for each in found.responses):
        run.learn()
    else:
        raise GuardrailError(
            f"none of the {len(found.responses)} answers has a label; give --labels FILE with their response "
            "ids, or --share for a suggestion without labels"
        )


class _TuneRun:
    """One run: what it says and writes of what was found."""

    def __init__(self, request: TuneRequest, found: LabelledAnswers) -> None:
        self._request = request
        self._found = found
        self._bands: Sequence[FittedBand] = ()
        self._fitted: Sequence[Fitted] = ()
        self._calibrations = Calibrations()

    def suggest(self, share: float) -> None:
        """A threshold from the distribution of scores alone."""
        request = self._request
        by, base = request.by, request.base
        found = for_share(self._found.responses, base, share, by)
        setting = THRESHOLD[by]
        then, now = (getattr(policy, setting) for policy in (base, found.policy))
        lines = [
            "WITHOUT LABELS: it says how many answers are acted on, and nothing of right and wrong.",
            f"Aim: {by} {share:.2%} of all answers.",
            f"  {setting} {number(then)} -> {number(now)}",
            f"  acted on: {rate(found.after)}, before {rate(found.before)}",
        ]
        findings = []
        useless = found.policy == base or not found.after.count
        if found.policy == base:
            findings.append("No threshold comes closer than the policy as it is: keep it.")
        elif useless:
            more = "" if found.next is None else f"; the next one acts on {rate(found.next)}"
            findings.append(f"Below {share:.2%} there is only a threshold that acts on nothing{more}.")
        lines += findings
        for line in lines:
            out().print(line, soft_wrap=True, markup=False)
        writes, text = not useless or request.force, self._policy_text(found.policy, lines)
        self._write_policy(text, writes=writes, wanted=request.out is not None)
        if request.report is not None:
            from guardrail.evals.tuning_report import write_suggestion_report

            page = self._page(text, findings, lines[:1], written=writes)
            write_suggestion_report(request.report, page, found, base, by, share, self._found.responses)
            _tell_written(request.report)

    def learn(self) -> None:
        """What labels tell: bands and calibrations, and a policy if there is an aim."""
        request = self._request
        if request.bands is not None:
            self._bands = fit_bands(self._found.responses, request.bands, first=request.first_judge)
            self._tell_bands()
        if request.calibration is not None:
            self._fitted = fit_calibrations(self._found.responses)
            self._calibrations = calibrations_of(self._fitted)
            self._tell_calibrations()
        if request.aim is not None:
            self._write(self._tune(request.aim))
            return
        if self._write_calibration():
            err().print(
                "thresholds mean something else on calibrated probabilities: give an aim to tune them along",
                soft_wrap=True,
            )
        elif request.calibration is not None and not any(each.losses for each in self._fitted):
            raise GuardrailError("no judge has the labels for a calibration")
        if self._bands:
            lines = ["The policy as it was, with the cascade's bands."]
            self._write_policy(self._policy_text(request.base, lines), writes=True, wanted=True)

    def _tell_calibrations(self) -> None:
        table = Table(
            "judge", "probability", "claims", "method", "log loss, held out", "calibration error", box=None
        )
        for each in self._fitted:
            losses = dict(each.losses)
            loss = f"{losses['none']:.3f} → {losses[each.method]:.3f}" if losses else "–"
            error = "→".join(f" {value:.3f} " for value in each.errors).strip() if losses else "–"
            method = each.method if not each.problem else f"none: {each.problem}"
            table.add_row(safe(each.judge), each.probability, f"{each.claims:,}", method, loss, error)
        out().print(table)

    def _tell_bands(self) -> None:
        table = Table("severity", "accept_support", "right, held out", "settled", box=None)
        for each in self._bands:
            if each.problem:
                table.add_row(each.severity, f"{each.before:g}, kept: {each.problem}", "–", "–")
            else:
                change = f"{each.before:g} → {each.accept_support:g}"
                shares = (rate(share, counts=False) for share in (each.right, each.settled))
                table.add_row(each.severity, change, *shares)
        out().print(table)

    def _tune(self, aim: Aim) -> Tuned:
        """The search, and what is said of what it found."""
        calibrate = None if self._request.calibration is None else calibrating
        with err().status("searching …"):
            tuned = tune(
                self._found.responses, self._request.base, aim, vary=self._request.vary, calibrate=calibrate
            )
        out().print(f"Aim: {aim}.", soft_wrap=True, markup=False)
        table = Table("on answers held out", "now", "tuned", box=None)
        for name, before, after in shares(tuned):
            told = (rate(each, counts=False) for each in (before, after))
            table.add_row(f"{name}, of {after.total}", *told)
        gains = Table("difference", "tuned − now", box=None)
        for row in differences(tuned).items():
            gains.add_row(*row)
        settings = Table("setting", "now", "tuned", "in the folds", box=None)
        for each in tuned.settings:
            spread = " ".join(number(value) for value in each.folds)
            settings.add_row(each.name, number(each.before), number(each.after), spread)
        for part in (table, gains, settings):
            out().print(part)
        for line in _left_out(tuned):
            out().print(line, soft_wrap=True)
        for line in reversed(tuned.conclusions):
            out().print(line, soft_wrap=True, style="bold")
        return tuned

    def _write(self, tuned: Tuned) -> None:
        """The files, unless there is a reason not to. Raises typer.Exit with the status."""
        request = self._request
        for problem in tuned.problems:
            print_error(f"too few labels: {problem}")
        wanted = request.out is not None or request.calibration is not None
        writes = wanted and (request.force or (tuned.better and not tuned.problems))
        text = self._policy_text(tuned.policy, figures(tuned), calibrated=True)
        if writes:
            self._write_calibration()
        self._write_policy(text, writes=writes, wanted=wanted)
        if request.report is not None:
            from guardrail.evals.tuning_report import write_tuning_report

            warnings = [f"Too few labels: {problem}." for problem in tuned.problems]
            page = self._page(text, [*tuned.conclusions, *_left_out(tuned)], warnings, written=writes)
            responses = [calibrated(each, self._calibrations) for each in self._found.responses]
            write_tuning_report(request.report, page, tuned, responses)
            _tell_written(request.report)
        if tuned.problems and not request.force:
            raise typer.Exit(EXIT_FAILURE)

    def _page(
        self, text: str, findings: Sequence[str], warnings: Sequence[str], *, written: bool
    ) -> TuningPage:
        from guardrail.evals.tuning_report import TuningPage

        where = f"Written to {self._request.out}."
        if self._request.out is None:
            where = "Not written to a file: --out FILE.yaml would."
        elif not written:
            where = "Not written to a file: see the summary."
        return TuningPage(
            name=f"policy {self._request.base.name}",
            settings={
                "answers": f"{len(self._found.responses):,}",
                "claims": f"{self._found.claims():,}",
                "labels": f"{self._found.labels():,}",
                "files": ", ".join(str(path) for path in self._request.files),
            },
            findings=findings,
            warnings=warnings,
            policy_text=text,
            where=where,
            fitted=self._fitted,
            bands=self._bands,
        )

    def _write_calibration(self) -> bool:
        path = self._request.calibration
        if path is None:
            return False
        if not self._calibrations.judges:
            told = "no judge needs a calibration, or has the labels for one: none is written"
            err().print(f"[yellow]note:[/] {told}", soft_wrap=True)
            return False
        lines = self._provenance()
        for each in self._fitted:
            told = f"{each.judge}, {each.probability}, {each.claims:,} claims: {each.method}"
            lines.append(escape_controls(told + (f" ({each.problem})" if each.problem else "")))
            lines += [f"  log loss held out, {method}: {loss:.4f}" for method, loss in each.losses]
        values = self._calibrations.model_dump(mode="json", exclude_none=True)
        body = yaml.safe_dump(values, sort_keys=False, default_flow_style=None)
        _write(path, "".join(f"# {line}\n" for line in lines) + body)
        return True

    def _write_policy(self, text: str, *, writes: bool, wanted: bool) -> None:
        if writes and self._request.out is not None:
            _write(self._request.out, text)
        elif wanted and not writes:
            err().print("nothing is written; --force writes it all the same", soft_wrap=True)

    def _policy_text(self, policy: Policy, lines: Sequence[str], *, calibrated: bool = False) -> str:
        """With ``calibrated`` it names the calibrations, if there are any.

        Empty where it goes nowhere: for it the records, which may be pipes, are read once more.
        """
        if self._request.out is None and self._request.report is None:
            return ""
        beside = None
        if calibrated and self._request.calibration is not None and self._calibrations.judges:
            place = "." if self._request.out is None else self._request.out.parent or "."
            beside = os.path.relpath(self._request.calibration, place)
        update = {"version": f"tuned-{policy.ref.digest}", "name": policy.name}
        return written(
            policy.model_copy(update=update),
            [*self._provenance(), *(escape_controls(line) for line in lines)],
            calibration=beside,
            bands={
                each.severity.value: {"accept_support": each.accept_support}
                for each in self._bands
                if not each.problem
            },
        )

    def _provenance(self) -> list[str]:
        return provenance(shlex.join(["guardrail", *sys.argv[1:]]), self._request.files, self._found)


def _tell_written(path: Path) -> None:
    err().print(f"wrote {safe(str(path))}", soft_wrap=True)


def _left_out(tuned: Tuned) -> list[str]:
    left = [f"{tuned.unknown:,} answers without a label that tells"] if tuned.unknown else []
    left += [f"{tuned.others:,} answers with lesser errors only"] if tuned.others else []
    return [f"Left out: {' and '.join(left)}."] if left else []


def _write(path: Path, text: str) -> None:
    """Raises OSError that names the file, also where the system does not say which it was."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    _tell_written(path)


def _tell_left_out(found: LabelledAnswers) -> None:
    told = (
        (found.failed, "results have an error and no verdict; they are left out"),
        (
            found.cut_short,
            "answers were not judged to their end, as a block or their text ended first, and are left out: "
            "blocked ones count only if they are judged again (guardrail evaluate), or under mode observe",
        ),
        (found.proofs, "answers are proofs of guardrail doctor; they are left out"),
        (found.repeated, "answers stand there more than once; the last verdict counts"),
        (found.stray, "labels belong to no answer of the records"),
        (
            found.unknown(),
            "labels name claims that the records don't have, and no words; they are left out. Labels made "
            "under another policy need their 'policy' or a 'span'",
        ),
        (
            found.ambiguous,
            "labels are of ids that stand there more than once; they count for the last verdict",
        ),
    )
    for count, what in told:
        if count:
            err().print(f"[yellow]note:[/] {count:,} {what}", soft_wrap=True)
