"""``guardrail replay``, and the labels of ``guardrail cases``: what goes where, and with which status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.cli.sources import range_of
from guardrail.evals.results import Evaluation, EvaluationResult
from guardrail.events import Decision, Label, Response, SegmentKind, Verdict
from tests.support.records import claim, recorded

CONFIG = """
policies:
  default: {rules: ["verdict UNSUPPORTED: flag"], flag_below: 0}
  strict: {mode: hold, rules: ["verdict UNSUPPORTED: block"], flag_below: 0}
  code: {segment_kinds: {code: flag}}
routes:
  - {route: legal, policy: strict}
"""
HOSTILE = "A phone\x1b[31m [bold]is free[/]."
GOOD = recorded("good", [claim()], [SegmentKind.SENTENCE], judged_to_end=True)
BAD = recorded(
    "bad",
    [claim(Verdict.UNSUPPORTED, text=HOSTILE)],
    [SegmentKind.SENTENCE],
    judged_to_end=True,
    route="legal",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "new.yaml").write_text(CONFIG)
    (tmp_path / "records.jsonl").write_bytes(GOOD.to_json() + b"\n" + BAD.to_json() + b"\n")
    return tmp_path


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


Program = Callable[..., Done]


@pytest.fixture
def program(runner: CliRunner, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Runs a command in this process, in ``folder``."""
    monkeypatch.chdir(folder)

    def run(*arguments: str) -> Done:
        result = runner.invoke(app, arguments)
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


def told(done: Done) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def moves(found: dict[str, Any]) -> set[tuple[str, str, int]]:
    return {(each["from"], each["to"], each["count"]) for each in found["moves"]}


def test_tables_say_what_changes_and_escape_what_answers_say(program: Program, folder: Path) -> None:
    done = program("replay", "records.jsonl", "-c", "new.yaml")
    assert done.returncode == 0, done.stderr
    assert "2 responses, 2 claims; policies by route against as recorded" in done.stdout
    assert "changed 1 of 2" in done.stdout
    assert r"A phone\x1b[31m [bold]is free[/]." in done.stdout
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 110


def test_policies_apply_by_route_or_alone_against_a_name_or_a_file(program: Program, folder: Path) -> None:
    by_route = told(program("replay", "records.jsonl", "-c", "new.yaml", "--json"))
    assert moves(by_route) == {("release", "release", 1), ("release", "block", 1)}
    alone = told(program("replay", "records.jsonl", "-c", "new.yaml", "--policy", "default", "--json"))
    assert moves(alone) == {("release", "release", 1), ("release", "flag", 1)}
    arguments = "replay records.jsonl -c new.yaml --policy strict --against default --json"
    named = told(program(*arguments.split()))
    assert moves(named) == {("release", "release", 1), ("flag", "block", 1)}
    (folder / "old.yaml").write_text("policies:\n  default: {rules: [], flag_below: 0}\n")
    by_file = told(program("replay", "records.jsonl", "-c", "new.yaml", "--against", "old.yaml", "--json"))
    assert by_file["before"] == "old.yaml"
    assert moves(by_file) == {("release", "release", 1), ("release", "block", 1)}


def test_changes_go_to_a_file_without_texts(program: Program, folder: Path) -> None:
    done = program("replay", "records.jsonl", "-c", "new.yaml", "--changed", "changed.jsonl")
    assert done.returncode == 0, done.stderr
    (line,) = (folder / "changed.jsonl").read_text().splitlines()
    change = json.loads(line)
    assert (change["response_id"], change["place"], change["route"]) == (
        "bad",
        "records.jsonl line 2",
        "legal",
    )
    assert (change["before"]["decision"], change["after"]["decision"]) == ("release", "block")
    assert "phone" not in line
    again = program("replay", "records.jsonl", "-c", "new.yaml", "--changed", "changed.jsonl")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("name", ["records.jsonl", "new.yaml"])
def test_changes_replace_changes_and_nothing_else(program: Program, folder: Path, name: str) -> None:
    before = (folder / name).read_bytes()
    done = program("replay", "records.jsonl", "-c", "new.yaml", "--changed", name)
    assert done.returncode == 2
    assert "something else than changes" in " ".join(done.stderr.replace("│", "").split())
    assert (folder / name).read_bytes() == before


def test_labels_tell_wrongful_blocks_and_misses(program: Program, folder: Path) -> None:
    labels = [
        Label(response_id="good", verdict=Verdict.SUPPORTED),
        Label(response_id="bad", verdict=Verdict.UNSUPPORTED),
    ]
    (folder / "labels.jsonl").write_bytes(b"\n".join(label.to_json() for label in labels))
    found = told(program("replay", "records.jsonl", "-c", "new.yaml", "--labels", "labels.jsonl", "--json"))
    assert [found["misses"][when]["count"] for when in ("before", "after")] == [1, 0]
    assert found["wrongful_blocks"]["after"]["count"] == 0
    done = program("replay", "records.jsonl", "-c", "new.yaml", "--labels", "labels.jsonl")
    assert "1 answers are right by their labels, 1 wrong" in done.stdout


def test_what_can_not_be_read_is_named_and_the_rest_counts(program: Program, folder: Path) -> None:
    with (folder / "records.jsonl").open("ab") as file:
        file.write(
            b'{"type": "verdict.response"}\n' + GOOD.claims[0].to_json() + b"\n" + GOOD.to_json() + b"\n"
        )
    done = program("replay", "records.jsonl", "-c", "new.yaml", "--json")
    assert done.returncode == 1
    assert "records.jsonl line 3: id: Field required" in done.stderr
    found = json.loads(done.stdout)
    assert found["compared"] == 2
    assert found["passed_over"] == {
        "other_events": 1,
        "proofs_of_doctor": 0,
        "repeated": 1,
        "results_without_verdict": 0,
        "unreadable": 1,
    }


def test_nothing_to_compare_is_a_failure(program: Program, folder: Path) -> None:
    (folder / "none.jsonl").write_bytes(GOOD.claims[0].to_json())
    done = program("replay", "none.jsonl", "-c", "new.yaml")
    assert done.returncode == 1
    assert "no record of a response" in done.stderr
    blocked = {"decision": Decision.BLOCK, "judged_to_end": False}
    (folder / "cut.jsonl").write_bytes(GOOD.model_copy(update=blocked).to_json())
    done = program("replay", "cut.jsonl", "-c", "new.yaml")
    assert done.returncode == 1
    assert "a block ended the judging" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.jsonl"], "give a file, - for stdin, or kafka:TOPIC"),
        (["records.jsonl", "--policy", "nobody"], "unknown policy 'nobody'"),
        (["records.jsonl", "--against", "nobody"], "unknown policy 'nobody'"),
        (["records.jsonl", "--since", "1h"], "choose from a topic"),
        (["kafka:", "--partition", "x"], "'x' names no partition"),
    ],
)
def test_wrong_usage_is_told(program: Program, folder: Path, arguments: list[str], message: str) -> None:
    done = program("replay", *arguments, "-c", "new.yaml")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_part_of_a_topic_is_named_by_partitions_offsets_and_times() -> None:
    assert range_of(None, None, None) is None
    part = range_of("2026-03-01T12:00", "2026-03-01T13:00", ["0", "1:5", "2:5-9"])
    assert part is not None
    assert part.partitions == {0: (None, None), 1: (5, None), 2: (5, 9)}
    assert part.since_ms is not None
    assert part.until_ms == part.since_ms + 3_600_000


# ----------------------------------------------------------------------------------------- labels

LABEL = Label(response_id="bad", claim_id="bad-0", verdict=Verdict.UNSUPPORTED, id="l1")


def test_labels_are_checked_line_by_line(program: Program, folder: Path) -> None:
    (folder / "labels.jsonl").write_bytes(LABEL.to_json() + b'\n{"type": "label", "response_id": "x"}\n')
    done = program("cases", "check", "labels.jsonl")
    assert done.returncode == 1
    assert "labels.jsonl line 2: verdict" in done.stderr
    assert "1 label on 1 response" in done.stdout
    (folder / "labels.jsonl").write_bytes(LABEL.to_json())
    assert program("cases", "check", "labels.jsonl").returncode == 0


def test_labels_are_exported_and_unsound_ones_are_refused(program: Program, folder: Path) -> None:
    (folder / "labels.jsonl").write_bytes(LABEL.to_json())
    (folder / "traces.jsonl").write_text('{"response_id": "bad", "trace_id": "t1"}\n')
    done = program("cases", "export", "labels.jsonl", "--to", "langfuse", "--traces", "traces.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["traceId"] == "t1"
    done = program("cases", "export", "labels.jsonl", "--to", "openinference", "--out", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "out.jsonl").read_text())["annotator_kind"] == "HUMAN"
    (folder / "labels.jsonl").write_bytes(b"{}")
    done = program("cases", "export", "labels.jsonl", "--to", "langfuse")
    assert (done.returncode, done.stdout) == (1, "")
    assert "labels.jsonl line 1" in done.stderr


def test_ragas_needs_the_answers(program: Program, folder: Path) -> None:
    response = Response(response_id="bad", answer="A phone is free.")
    result = EvaluationResult(response=response, verdict=BAD, labels=(LABEL,))
    Evaluation((result,)).write(folder / "results.jsonl.gz")
    checked = program("cases", "check", "results.jsonl.gz")
    assert (checked.returncode, "1 label on 1 response" in checked.stdout) == (0, True), checked.stderr
    (folder / "results.jsonl").write_bytes(result.to_json())  # without a line end
    done = program("cases", "export", "results.jsonl", "--to", "ragas", "--results", "results.jsonl")
    assert done.returncode == 0, done.stderr
    (sample,) = json.loads(done.stdout)["faithfulness"]
    assert sample["is_accepted"] is True
    assert "1 answers of 1 that are labelled" in done.stderr
    done = program("cases", "export", "results.jsonl", "--to", "ragas")
    assert done.returncode == 2
    assert "--results" in done.stderr
