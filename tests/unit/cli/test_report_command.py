"""``guardrail report``: files in, a page and figures out, and what is said when it can't be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.events import Decision, Label, Verdict
from tests.support.records import written
from tests.unit.cli.conftest import Program
from tests.unit.evals.results import failed, result


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    now = written(tmp_path / "now.jsonl", [result("a", Decision.BLOCK), result("b"), failed("no JSON")])
    return str(now), str(written(tmp_path / "before.jsonl", [result("a"), result("b")]))


def test_it_writes_a_page_and_says_what_is_in_it(
    runner: CliRunner, files: tuple[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "page.html"
    done = runner.invoke(app, ["report", *files, "--out", str(target), "--title", "Nightly <run>"])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip().endswith(
        "page.html: 3 results: 1 release, 1 block, mean score 0.900, 1 error; 1 decision changed"
    )
    assert '<h1 dir="auto">Nightly &lt;run&gt;</h1>' in target.read_text("utf-8")


def test_a_full_disk_names_the_file(program: Program, files: tuple[str, str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = program("report", files[0], "--out", "/dev/full")
    assert (done.returncode, "/dev/full: No space left" in done.stderr) == (1, True)


def test_json_alone_is_on_stdout(runner: CliRunner, files: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    done = runner.invoke(app, ["report", *files, "-o", str(target), "--json"])
    figures = json.loads(done.stdout)
    assert figures["name"] == "now.jsonl"
    assert figures["decisions"]["block"]["count"] == 1
    assert figures["comparison"]["changed_decisions"] == 1
    assert "wrote" in done.stderr
    assert target.exists()


def test_worst_bounds_what_is_shown_whole(runner: CliRunner, files: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    for worst in (0, 1):
        done = runner.invoke(app, ["report", files[0], "-o", str(target), "--worst", str(worst)])
        assert done.exit_code == 0
        assert target.read_text("utf-8").count('<article class="card') == worst


def test_labels_from_elsewhere_join_by_id(runner: CliRunner, files: tuple[str, str], tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"
    labels.write_bytes(Label(response_id="b", verdict=Verdict.CONTRADICTED).to_json() + b"\n")
    arguments = ["report", files[0], "-o", str(tmp_path / "page.html"), "--labels", str(labels), "--json"]
    done = runner.invoke(app, arguments)
    assert json.loads(done.stdout)["labelled"]["wrong"]["release"]["count"] == 1
    labels.write_text("{}\n", encoding="utf-8")
    done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert "labels.jsonl line 1" in done.stderr


@pytest.mark.parametrize("held", ["<!doctype html>\n<p>my notes", "x" * 1_000, "x"])
def test_it_replaces_reports_and_nothing_else(
    runner: CliRunner, files: tuple[str, str], tmp_path: Path, held: str
) -> None:
    notes = tmp_path / "notes.html"
    notes.write_text(held, "utf-8")
    done = runner.invoke(app, ["report", *files, "--out", str(notes)])
    assert done.exit_code == 2
    assert "something else than a report" in " ".join(done.stderr.replace("│", "").split())
    assert notes.read_text("utf-8") == held
    notes.write_text("", "utf-8")
    for _ in range(2):  # the second replaces the first
        assert runner.invoke(app, ["report", *files, "--out", str(notes)]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("before.jsonl --otlp events", "[OTHER.jsonl]: is of the page, which --otlp does not write"),
        ("--otlp events --out page.html", "--out: is of the page"),
        ("--otlp events --title Nightly", "--title: is of the page"),
        ("--otlp events --worst 0", "--worst: is of the page"),
        ("--otlp events --labels before.jsonl", "--labels: is of the page"),
        ("--otlp openinference --json", "--json: is of the page"),
        ("--endpoint http://localhost:1", "--endpoint: goes with --otlp only"),
        ("--texts", "--texts: goes with --otlp only"),
    ],
)
def test_an_option_that_would_say_nothing_is_refused(
    called: Program, files: tuple[str, str], tmp_path: Path, options: str, told: str
) -> None:
    done = called("report", "now.jsonl", *options.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.replace("│", "").split())
    assert {each.suffix for each in tmp_path.iterdir()} == {".jsonl"}


@pytest.mark.parametrize("missing", ["results", "folder"])
def test_a_file_that_is_not_there_is_named(program: Program, tmp_path: Path, missing: str) -> None:
    written(tmp_path / "now.jsonl", [result("a")])
    done = (
        program("report", "nowhere.jsonl")
        if missing == "results"
        else program("report", "now.jsonl", "-o", "nowhere/page.html")
    )
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_jinja2_the_remedy_is_told(program: Program, tmp_path: Path) -> None:
    written(tmp_path / "now.jsonl", [result("a")])
    done = program("report", "now.jsonl", before="import sys; sys.modules['jinja2'] = None")
    assert done.returncode == 2
    assert "pip install '.[report]'" in done.stderr
