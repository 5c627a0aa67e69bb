"""``guardrail tune``: files in, a policy with its evidence out, and nothing written without reason."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner, Result

from consumers.settings import load_settings
from guardrail.cli import app
from guardrail.decisions import by_segment, redecide
from guardrail.evals.records import Judged
from guardrail.evals.results import EvaluationResult
from guardrail.events import Decision, Severity, Verdict
from guardrail.judges.calibrated import Isotonic, read_calibrations
from tests.support.records import written
from tests.unit.evals.test_report import opened
from tests.unit.evals.tuning_cases import claim, judged, label

S, U = Verdict.SUPPORTED, Verdict.UNSUPPORTED
Tune = Callable[..., Result]


def answers(count: int = 160, cut: float = 0.7) -> list[Judged]:
    """Answers of one claim with spread support; those below ``cut`` are wrong."""
    found = []
    for number, support in enumerate(np.linspace(0.01, 0.99, count)):
        one = claim(f"r{number}", 0, S, round(float(support), 4))
        found.append(judged(one.response_id, [one], [label(one, U if support < cut else S)]))
    return found


def records(folder: Path, responses: Sequence[Judged]) -> tuple[Path, Path]:
    """Verdicts, and labels beside them."""
    verdicts = written(folder / "verdicts.jsonl", [each.verdict for each in responses])
    return verdicts, written(folder / "labels.jsonl", [one for each in responses for one in each.labels])


@pytest.fixture
def tune(runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tune:
    def run(*arguments: str | Path) -> Result:
        monkeypatch.chdir(tmp_path)
        result = runner.invoke(app, ["tune", *map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


def test_a_policy_is_written_with_its_evidence_and_decides_so(
    tune: Tune, runner: CliRunner, tmp_path: Path
) -> None:
    responses = answers()
    verdicts, labels = records(tmp_path, responses)
    result = tune(verdicts, "--labels", labels, "--catch", "0.95", "--out", tmp_path / "tuned.yaml")
    assert result.exit_code == 0, result.stderr
    assert "false alarms" in result.stdout
    text = (tmp_path / "tuned.yaml").read_text("utf-8")
    for path in (verdicts, labels):
        assert f"{path}, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}" in text
    assert "# Aim: catch 95% of answers with any error" in text
    assert "160 answers with 160 claims, 160 labels" in text
    checked = runner.invoke(app, ["config", "check", str(tmp_path / "tuned.yaml")])
    assert checked.exit_code == 0, checked.stderr
    policy = load_settings(tmp_path / "tuned.yaml").policies["default"]
    assert policy.version.startswith("tuned-")
    caught = [redecide(policy, by_segment(each.claims)).decision for each in responses]
    wrong = [each.labels[0].verdict is U for each in responses]
    share = sum(d is not Decision.RELEASE for d, w in zip(caught, wrong, strict=True) if w) / sum(wrong)
    assert 0.95 <= share < 1


def test_a_policy_of_a_configuration_is_tuned_and_keeps_what_the_aim_does_not_change(
    tune: Tune, tmp_path: Path
) -> None:
    config = tmp_path / "guardrail.yaml"
    config.write_text(
        "policies:\n  strict:\n    extends: default\n    fallback_message: 'No: # sorry'\n"
        "    rules_before: ['verdict SUPPORTED and severity <= minor: flag']\n",
        encoding="utf-8",
    )
    verdicts, labels = records(tmp_path, answers())
    arguments = ("--config", config, "--policy", "strict", "--max-false", "0.05")
    assert tune(verdicts, "-l", labels, *arguments, "--out", "tuned.yaml").exit_code == 0
    settings = load_settings(tmp_path / "tuned.yaml")
    assert settings.default_policy == "strict"
    before, after = load_settings(config).policies["strict"], settings.policies["strict"]
    assert after.rules[0] == before.rules[0]
    assert after.fallback_message == before.fallback_message
    assert after.flag_below != before.flag_below


@pytest.mark.parametrize("option", ["--out", "--calibration", "--report"])
def test_it_replaces_its_own_files_and_nothing_else(tune: Tune, tmp_path: Path, option: str) -> None:
    verdicts, labels = records(tmp_path, answers())
    held = tmp_path / "held"
    arguments = (verdicts, "-l", labels, "--catch", "0.95", option, held)
    held.write_text("policies:\n  default: {}  # mine\n", "utf-8")
    refused = tune(*arguments, "--force")
    assert refused.exit_code == 2
    assert "is a file of something else than" in " ".join(refused.stderr.replace("│", "").split())
    assert "# mine" in held.read_text("utf-8")
    held.unlink()
    for _ in range(2):  # the second replaces the first
        assert tune(*arguments).exit_code == 0


def test_too_few_labels_write_nothing_and_say_how_many_are_needed(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers(16))
    arguments = (verdicts, "-l", labels, "--catch", "0.95", "--out", "tuned.yaml")
    result = tune(*arguments)
    assert result.exit_code == 1
    assert "labelled faithful answers: at least" in result.stderr
    assert not (tmp_path / "tuned.yaml").exists()
    assert tune(*arguments, "--force").exit_code == 0
    assert "# Too few labels: " in (tmp_path / "tuned.yaml").read_text("utf-8")


def test_what_is_no_better_is_not_written(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers(cut=0.55))
    aim = ("--max-false", "0.05")
    result = tune(verdicts, "-l", labels, *aim, "--out", "tuned.yaml")
    assert result.exit_code == 0
    assert "keep" in result.stdout
    assert not (tmp_path / "tuned.yaml").exists()
    assert tune(verdicts, "-l", labels, *aim, "--out", "tuned.yaml", "--force").exit_code == 0
    assert load_settings(tmp_path / "tuned.yaml").policies["default"].flag_below == pytest.approx(
        0.55, abs=0.01
    )


def test_a_share_without_labels_is_marked_as_such(tune: Tune, tmp_path: Path) -> None:
    verdicts, _ = records(tmp_path, answers(200))
    result = tune(verdicts, "--share", "0.02", "--out", "suggested.yaml")
    assert result.exit_code == 0, result.stderr
    assert "WITHOUT LABELS" in result.stdout
    text = (tmp_path / "suggested.yaml").read_text("utf-8")
    assert "# WITHOUT LABELS" in text
    assert "acted on: 2.0" in text
    load_settings(tmp_path / "suggested.yaml")


def test_a_share_that_ties_leave_out_of_reach_is_written_only_with_force(tune: Tune, tmp_path: Path) -> None:
    tied = [judged(f"r{n}", [claim(f"r{n}", 0, S, 0.5)]) for n in range(20)]
    verdicts, _ = records(tmp_path, tied)
    arguments = (verdicts, "--share", "0.1", "--out", "suggested.yaml")
    result = tune(*arguments)
    assert result.exit_code == 0, result.stderr
    assert "acts on nothing; the next one acts on 100.0" in result.stdout
    assert "nothing is written" in result.stderr
    assert not (tmp_path / "suggested.yaml").exists()
    assert tune(*arguments, "--force").exit_code == 0
    assert (tmp_path / "suggested.yaml").exists()


def test_a_calibration_without_the_labels_for_it_is_an_error_alone_and_a_note_beside_a_policy(
    tune: Tune, tmp_path: Path
) -> None:
    verdicts, labels = records(tmp_path, answers(60))
    alone = tune(verdicts, "-l", labels, "--calibration", "c.yaml")
    assert (alone.exit_code, "error: no judge has the labels" in alone.stderr) == (1, True)
    beside = tune(verdicts, "-l", labels, "--catch", "0.9", "--calibration", "c.yaml", "--force")
    assert (beside.exit_code, "note: no judge needs" in beside.stderr) == (0, True)
    assert "cost" not in beside.stdout
    assert not (tmp_path / "c.yaml").exists()


def test_calibrations_are_written_beside_the_policy_and_named_by_it(
    tune: Tune, runner: CliRunner, tmp_path: Path
) -> None:
    random = np.random.default_rng(2)
    responses = []
    for number, support in enumerate(random.uniform(0, 1, 1200)):
        one = claim(f"r{number}", 0, S, round(float(support), 4))
        right = random.random() < (0.1 if support < 0.6 else 0.95)
        responses.append(judged(one.response_id, [one], [label(one, S if right else U)]))
    verdicts, labels = records(tmp_path, responses)
    arguments = (verdicts, "-l", labels, "--max-false", "0.05", "--out", "made/tuned.yaml")
    (tmp_path / "made").mkdir()
    result = tune(*arguments, "--calibration", "calibration.yaml", "--bands", "0.9")
    assert result.exit_code == 0, result.stderr
    support = read_calibrations(tmp_path / "calibration.yaml").judges["local"].support
    assert isinstance(support, Isotonic)
    settings = load_settings(tmp_path / "made" / "tuned.yaml")
    assert settings.judge.calibration is not None
    assert settings.judge.calibration.resolve() == tmp_path / "calibration.yaml"
    assert 0.5 <= settings.judge.cascade.bands[Severity.NORMAL].accept_support < 0.92
    assert runner.invoke(app, ["config", "check", "made/tuned.yaml"]).exit_code == 0
    (tmp_path / "calibration.yaml").unlink()
    missing = runner.invoke(app, ["config", "check", "made/tuned.yaml"])
    assert missing.exit_code == 0  # the file may be where the guard runs
    assert "judge.calibration" in missing.output
    again = tune(*arguments, "--config", "made/tuned.yaml", "--calibration", "calibration.yaml")
    assert again.exit_code == 2
    assert "judge the answers again" in again.stderr


def test_calibrations_alone_need_no_aim(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers(400, cut=0.5))
    result = tune(verdicts, "-l", labels, "--calibration", "calibration.yaml")
    assert result.exit_code == 0, result.stderr
    assert "give an aim to tune them along" in result.stderr
    assert read_calibrations(tmp_path / "calibration.yaml").judges.keys() == {"local"}


async def test_the_report_shows_the_evidence_in_a_browser(
    tune: Tune, tmp_path: Path, browser_path: str
) -> None:
    verdicts, labels = records(tmp_path, answers(400))
    hostile = tmp_path / "<img src=x onerror=window.hit=1>.jsonl"
    hostile.write_bytes(labels.read_bytes())
    result = tune(verdicts, "-l", hostile, "--catch", "0.9", "--report", "t.html", "--calibration", "c.yaml")
    assert result.exit_code == 0, result.stderr
    assert "wrote t.html" in result.stderr
    async with opened(tmp_path / "t.html", browser_path) as (page, seen):
        assert await page.locator("svg.chart").count() == 3
        assert await page.locator("#curves polyline.curve").count() == 3  # two curves and a key
        assert await page.locator("#calibration .square").count() == 2
        text = await page.locator("main").inner_text()
        assert await page.evaluate("window.hit") is None
    assert not seen.console
    assert "catch 90% of answers with any error" in text
    assert "Written to" not in text
    assert "<img src=x onerror=window.hit=1>.jsonl, sha256" in text
    assert "policies:\n  default:" in text


async def test_the_report_without_labels_shows_the_distribution_and_says_so(
    tune: Tune, tmp_path: Path, browser_path: str
) -> None:
    verdicts, _ = records(tmp_path, answers(400))
    result = tune(verdicts, "--share", "0.1", "--report", "t.html", "--out", "t.yaml")
    assert result.exit_code == 0, result.stderr
    async with opened(tmp_path / "t.html", browser_path) as (page, seen):
        assert await page.locator("svg.chart").count() == 1
        text = await page.locator("body").inner_text()
    assert not seen.console
    assert "WITHOUT LABELS" in text
    assert "Written to t.yaml" in text
    assert "10.0 %" in text


def test_the_report_is_written_also_where_the_labels_are_too_few(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers(12))
    result = tune(verdicts, "-l", labels, "--catch", "0.95", "--out", "t.yaml", "--report", "t.html")
    assert result.exit_code == 1
    assert not (tmp_path / "t.yaml").exists()
    assert "Too few labels" in (tmp_path / "t.html").read_text("utf-8")


def test_a_file_of_labels_that_is_given_twice_counts_once(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers())
    twice = tune(verdicts, "-l", labels, "-l", labels, "--catch", "0.95", "--out", "t.yaml")
    assert twice.exit_code == 0, twice.stderr
    assert "160 labels" in (tmp_path / "t.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ((), 2, "no aim"),
        (("--catch", "95"), 2, "not a fraction"),
        (("--catch", "0.9", "--max-false", "0.1"), 2, "one aim"),
        (("--share", "0.1", "--catch", "0.9"), 2, "--share"),
        (("--catch", "0.9", "--vary", "everything"), 2, "can't change"),
        (("--catch", "0.9", "--policy", "nobody"), 2, "unknown policy"),
        (("--calibration", "c.yaml", "--report", "t.html"), 2, "needs an aim"),
    ],
)
def test_wrong_usage_is_told(
    tune: Tune, tmp_path: Path, arguments: tuple[str, ...], status: int, told: str
) -> None:
    verdicts, labels = records(tmp_path, answers())
    result = tune(verdicts, "-l", labels, *arguments)
    assert result.exit_code == status, result.stderr
    assert told in " ".join(result.stderr.replace("│", " ").split())


def test_records_without_labels_or_without_answers_are_told(tune: Tune, tmp_path: Path) -> None:
    verdicts, _ = records(tmp_path, answers())
    result = tune(verdicts, "--catch", "0.9")
    assert (result.exit_code, "none of the 160 answers has a label" in result.stderr) == (1, True)
    failed = written(tmp_path / "failed.jsonl", [EvaluationResult(error="x")] * 3)
    result = tune(failed, "--catch", "0.9")
    assert result.exit_code == 1
    assert "3 results have an error" in result.stderr
    assert "nothing to tune" in result.stderr


def test_the_file_that_is_read_is_not_written_over(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers())
    config = tmp_path / "guardrail.yaml"
    config.write_text("policies: {}\n", encoding="utf-8")
    result = tune(verdicts, "-l", labels, "--catch", "0.9", "-c", config, "-o", config)
    assert result.exit_code == 2
    assert config.read_text("utf-8") == "policies: {}\n"


def test_a_file_name_can_not_end_its_comment(tune: Tune, tmp_path: Path) -> None:
    verdicts, labels = records(tmp_path, answers())
    hostile = tmp_path / "a\npolicies: {evil: {}}\n.jsonl"
    verdicts.rename(hostile)
    assert tune(hostile, "-l", labels, "--catch", "0.9", "--out", "tuned.yaml").exit_code == 0
    assert yaml.safe_load((tmp_path / "tuned.yaml").read_text("utf-8"))["policies"].keys() == {"default"}
