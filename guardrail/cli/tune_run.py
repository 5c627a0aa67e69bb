"""One run of ``guardrail tune``: what it computes, says and writes."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
import yaml
from rich.table import Table

from guardrail import __version__
from guardrail.cli.terminal import err, out, print_error, safe
from guardrail.evals.aims import Aim, By
from guardrail.evals.bands import FittedBand, fit_bands
from guardrail.evals.calibration import Fitted, calibrated, calibrating, calibrations_of, fit_calibrations
from guardrail.evals.curves import tuning_curves
from guardrail.evals.labelled import LabelledAnswers, read_labelled
from guardrail.evals.policy_file import difference, figures, number, provenance, rate, written
from guardrail.evals.search import Vary
from guardrail.evals.tuning import Tuned, for_share, tune
from guardrail.policy import Policy
from guardrail.printable import escape_controls

if TYPE_CHECKING:
    from guardrail.evals.tuning_report import TuningPage

_EXIT_FAILED: Final = 1


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


def tune_files(request: TuneRequest) -> None:
    """Read, search, say and write. Raises typer.Exit with the status."""
    found = read_labelled(request.records, request.labels)
    _tell_left_out(found)
    if not found.responses:
        print_error("there is no answer in the records that was judged to its end; nothing to tune")
        raise typer.Exit(_EXIT_FAILED)
    run = _TuneRun(request, found)
    if request.share is not None:
        run.suggest(request.share)
        return
    if not any(each.labels for each in found.responses):
        print_error(
            f"none of the {len(found.responses)} answers has a label; give --labels FILE with their response "
            "ids, or --share for a suggestion without labels"
        )
        raise typer.Exit(_EXIT_FAILED)
    bands = [] if request.bands is None else run.fit_bands(request.bands)
    fitted = [] if request.calibration is None else run.calibrate()
    if request.aim is None:
        run.write_calibration_alone(fitted)
        run.write_bands_alone(bands)
    else:
        run.write(run.tune(request.aim), fitted, bands)


class _TuneRun:
    """One run: what it says and writes of what was found."""

    def __init__(self, request: TuneRequest, found: LabelledAnswers) -> None:
        self._request = request
        self._found = found

    def suggest(self, share: float) -> None:
        """A threshold from the distribution of scores alone."""
        by = self._request.by
        found = for_share(self._found.responses, self._request.base, share, by)
        setting = "flag_below" if by == "flag" else "block_below"
        then, now = (getattr(policy, setting) for policy in (self._request.base, found.policy))
        lines = [
            "WITHOUT LABELS: it says how many answers are acted on, and nothing of right and wrong.",
            f"Aim: {by} {share:.2%} of all answers.",
            f"  {setting} {number(then)} -> {number(now)}",
            f"  acted on: {rate(found.after)}, before {rate(found.before)}",
        ]
        findings = []
        useless = found.policy == self._request.base or not found.after.count
        if found.policy == self._request.base:
            findings.append("No threshold comes closer than the policy as it is: keep it.")
        elif useless:
            more = "" if found.next is None else f"; the next one acts on {rate(found.next)}"
            findings.append(f"Below {share:.2%} there is only a threshold that acts on nothing{more}.")
        lines += findings
        for line in lines:
            out().print(line, soft_wrap=True, markup=False)
        if useless and not self._request.force and self._request.out is not None:
            self._tell_unwritten()
        else:
            self._write_policy(found.policy, lines)
        if self._request.report is not None:
            from guardrail.evals.tuning_report import write_suggestion_report

            page = self._page(
                found.policy, lines, findings, lines[:1], written=not useless or self._request.force
            )
            write_suggestion_report(
                self._request.report, page, found, self._request.base, by, share, self._found.responses
            )
            err().print(f"wrote {safe(str(self._request.report))}", soft_wrap=True)

    def calibrate(self) -> list[Fitted]:
        """Calibrations, and what is said of them."""
        fitted = fit_calibrations(self._found.responses)
        table = Table(
            "judge", "probability", "claims", "method", "log loss, held out", "calibration error", box=None
        )
        for each in fitted:
            losses = dict(each.losses)
            loss = f"{losses['none']:.3f} → {losses[each.method]:.3f}" if losses else "–"
            error = "→".join(f" {value:.3f} " for value in each.errors).strip() if losses else "–"
            method = each.method if not each.problem else f"none: {each.problem}"
            table.add_row(safe(each.judge), each.probability, f"{each.claims:,}", method, loss, error)
        out().print(table)
        return fitted

    def fit_bands(self, right: float) -> list[FittedBand]:
        """Bands, and what is said of them."""
        fitted = fit_bands(self._found.responses, right, first=self._request.first_judge)
        table = Table("severity", "accept_support", "right, held out", "settled", box=None)
        for each in fitted:
            if each.problem:
                table.add_row(each.severity, f"{each.before:g}, kept: {each.problem}", "–", "–")
            else:
                change = f"{each.before:g} → {each.accept_support:g}"
                shares = (rate(share, counts=False) for share in (each.right, each.settled))
                table.add_row(each.severity, change, *shares)
        out().print(table)
        return fitted

    def tune(self, aim: Aim) -> Tuned:
        """The search, and what is said of what it found."""
        with err().status("searching …"):
            tuned = tune(
                self._found.responses,
                self._request.base,
                aim,
                vary=self._request.vary,
                calibrate=None if self._request.calibration is None else calibrating,
            )
        self._tell(tuned)
        return tuned

    def write(self, tuned: Tuned, fitted: Sequence[Fitted], bands: Sequence[FittedBand]) -> None:
        """The files, unless there is a reason not to. Raises typer.Exit with the status."""
        for problem in tuned.problems:
            print_error(f"too few labels: {problem}")
        useless = bool(tuned.problems) or tuned.verdict == "keep"
        wanted = self._request.out is not None or self._request.calibration is not None
        writes = wanted and (not useless or self._request.force)
        if wanted and not writes:
            self._tell_unwritten()
        calibrated = writes and self._write_calibration(fitted)
        if writes:
            self._write_policy(tuned.policy, figures(tuned), calibrated=calibrated, bands=bands)
        if self._request.report is not None:
            self._write_report(self._request.report, tuned, fitted, bands, written=writes)
        if tuned.problems and not self._request.force:
            raise typer.Exit(_EXIT_FAILED)

    def _write_report(
        self,
        path: Path,
        tuned: Tuned,
        fitted: Sequence[Fitted],
        bands: Sequence[FittedBand],
        *,
        written: bool,
    ) -> None:
        from guardrail.evals.tuning_report import write_tuning_report

        findings = [f"{tuned.why[0].upper()}{tuned.why[1:]}."]
        if tuned.shortfall:
            findings.append(f"The aim is not reached on answers held out: {tuned.shortfall}.")
        findings += _left_out(tuned)
        warnings = [f"Too few labels: {problem}." for problem in tuned.problems]
        page = self._page(tuned.policy, figures(tuned), findings, warnings, fitted, bands, written=written)
        calibrations = calibrations_of(fitted)
        responses = [calibrated(each, calibrations) for each in self._found.responses]
        write_tuning_report(path, page, tuned, tuning_curves(tuned, responses))
        err().print(f"wrote {safe(str(path))}", soft_wrap=True)

    def _page(
        self,
        policy: Policy,
        lines: Sequence[str],
        findings: Sequence[str],
        warnings: Sequence[str],
        fitted: Sequence[Fitted] = (),
        bands: Sequence[FittedBand] = (),
        *,
        written: bool,
    ) -> TuningPage:
        from guardrail.evals.tuning_report import TuningPage

        if written and self._request.out is not None:
            where = f"Written to {self._request.out}."
        elif self._request.out is not None:
            where = "Not written to a file: see the summary."
        else:
            where = "Not written to a file: --out FILE.yaml would."
        calibrates = self._request.calibration is not None and bool(calibrations_of(fitted).judges)
        return TuningPage(
            name=f"policy {self._request.base.name}",
            settings={
                "answers": f"{len(self._found.responses):,}",
                "claims": f"{self._found.claims():,}",
                "labels": f"{self._labels():,}",
                "files": ", ".join(str(path) for path in self._request.files),
            },
            findings=findings,
            warnings=warnings,
            policy_text=self._policy_text(policy, lines, calibrated=calibrates, bands=bands),
            where=where,
            fitted=fitted,
            bands=bands,
        )

    def write_calibration_alone(self, fitted: Sequence[Fitted]) -> None:
        """Without an aim: the calibrations, with a word on thresholds."""
        if self._request.calibration is None:
            return
        if self._write_calibration(fitted):
            err().print(
                "thresholds mean something else on calibrated probabilities: give an aim to tune them along",
                soft_wrap=True,
            )
        elif not any(each.losses for each in fitted):
            print_error("no judge has the labels for a calibration")
            raise typer.Exit(_EXIT_FAILED)

    def write_bands_alone(self, bands: Sequence[FittedBand]) -> None:
        """Without an aim: the policy as it is, with the bands."""
        if bands:
            self._write_policy(
                self._request.base, ["The policy as it was, with the cascade's bands."], bands=bands
            )

    def _tell_unwritten(self) -> None:
        err().print("nothing is written; --force writes it all the same", soft_wrap=True)

    def _tell(self, tuned: Tuned) -> None:
        aim = tuned.aim
        out().print(f"Aim: {aim}.", soft_wrap=True, markup=False)
        before, after = (counts.rates(aim.by) for counts in (tuned.baseline_counts, tuned.held_out))
        table = Table("on answers held out", "now", "tuned", box=None)
        for name in after:
            shares = (rate(each[name], counts=False) for each in (before, after))
            table.add_row(f"{name}, of {after[name].total}", *shares)
        out().print(table)
        gains = Table("difference", "tuned − now", box=None)
        for name, gain in tuned.gains.items():
            if name != "cost" or aim.cost_miss is not None:  # nobody gave a cost otherwise
                gains.add_row(name, difference(gain, name))
        out().print(gains)
        settings = Table("setting", "now", "tuned", "in the folds", box=None)
        for each in tuned.settings:
            spread = " ".join(number(value) for value in each.folds)
            settings.add_row(each.name, number(each.before), number(each.after), spread)
        out().print(settings)
        for told in _left_out(tuned):
            out().print(told, soft_wrap=True)
        if tuned.shortfall:
            told = f"The aim is not reached on answers held out: {tuned.shortfall}."
            out().print(told, soft_wrap=True, style="bold")
        out().print(f"{tuned.why[0].upper()}{tuned.why[1:]}.", soft_wrap=True, style="bold")

    def _write_calibration(self, fitted: Sequence[Fitted]) -> bool:
        calibrations = calibrations_of(fitted)
        if self._request.calibration is None:
            return False
        if not calibrations.judges:
            told = "no judge needs a calibration, or has the labels for one: none is written"
            err().print(f"[yellow]note:[/] {told}", soft_wrap=True)
            return False
        lines = self._provenance()
        for each in fitted:
            told = f"{each.judge}, {each.probability}, {each.claims:,} claims: {each.method}"
            lines.append(escape_controls(told + (f" ({each.problem})" if each.problem else "")))
            lines += [f"  log loss held out, {method}: {loss:.4f}" for method, loss in each.losses]
        body = yaml.safe_dump(
            calibrations.model_dump(mode="json", exclude_none=True), sort_keys=False, default_flow_style=None
        )
        _write(self._request.calibration, "".join(f"# {line}\n" for line in lines) + body)
        err().print(f"wrote {safe(str(self._request.calibration))}", soft_wrap=True)
        return True

    def _write_policy(
        self,
        policy: Policy,
        lines: Sequence[str],
        *,
        calibrated: bool = False,
        bands: Sequence[FittedBand] = (),
    ) -> None:
        if self._request.out is None:
            return
        _write(self._request.out, self._policy_text(policy, lines, calibrated=calibrated, bands=bands))
        err().print(f"wrote {safe(str(self._request.out))}", soft_wrap=True)

    def _policy_text(
        self, policy: Policy, lines: Sequence[str], *, calibrated: bool, bands: Sequence[FittedBand]
    ) -> str:
        beside = None
        if calibrated and self._request.calibration is not None:
            place = "." if self._request.out is None else self._request.out.parent or "."
            beside = os.path.relpath(self._request.calibration, place)
        update = {"version": f"tuned-{policy.ref.digest}", "name": policy.name}
        return written(
            policy.model_copy(update=update),
            [*self._provenance(), *(escape_controls(line) for line in lines)],
            calibration=beside,
            bands={
                each.severity.value: {"accept_support": each.accept_support}
                for each in bands
                if not each.problem
            },
        )

    def _provenance(self) -> list[str]:
        responses = self._found.responses
        return provenance(
            shlex.join(["guardrail", *sys.argv[1:]]),
            self._request.files,
            version=__version__,
            date=datetime.now(UTC).date().isoformat(),
            responses=len(responses),
            claims=self._found.claims(),
            labels=self._labels(),
        )

    def _labels(self) -> int:
        return sum(len(each.labels) for each in self._found.responses)


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
