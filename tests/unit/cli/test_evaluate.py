"""``guardrail evaluate`` as a process: what goes where, and with which status."""

from __future__ import annotations

import functools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.evals import EvaluationResult, read_results
from guardrail.evals.agreement import agreement
from guardrail.events import Decision, Label, ResponseVerdict, Verdict, parse_output
from guardrail.judges.calibrated import Calibrations, JudgeCalibration, Temperature
from tests.unit.cli.conftest import Program, clean_environment

LEAFLET = "Take one tablet of 400 mg every eight hours. Do not take more than 1,200 mg in 24 hours."


def answer(response_id: str = "r1", text: str = LEAFLET, **changes: Any) -> str:
    event = {
        "type": "response",
        "schema": 1,
        "response_id": response_id,
        "question": "How much may I take?",
        "contexts": [{"id": "leaflet", "text": LEAFLET}],
        "answer": text,
    }
    return json.dumps(event | changes)


WRONG_CLAIM = "Do not take more than 2,400 mg in 24 hours."
WRONG = f"{WRONG_CLAIM} Take one tablet of 400 mg every eight hours."


def verdicts(text: str) -> list[ResponseVerdict]:
    found = [parse_output(line) for line in text.splitlines()]
    assert all(isinstance(event, ResponseVerdict) for event in found)
    return [event for event in found if isinstance(event, ResponseVerdict)]


def test_a_verdict_for_every_line_in_their_order_and_a_table(called: Program, tmp_path: Path) -> None:
    lines = [answer("good"), answer("bad", WRONG), answer("none", "I don't know.")]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    done = called("evaluate", "in.jsonl", "--verdicts", "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = verdicts((tmp_path / "out.jsonl").read_text())
    assert [each.response_id for each in found] == ["good", "bad", "none"]
    assert [each.hallucinated_claims for each in found] == [(), (WRONG_CLAIM,), ()]
    assert [each.decision is Decision.RELEASE for each in found] == [True, False, True]
    assert found[2].score is None
    table = done.stdout.splitlines()
    rows = [line for line in table[1:7] if not line.startswith(" ")]
    assert [row.split()[0] for row in rows] == ["good", "bad", "none"]
    assert [line.split(maxsplit=1)[0] for line in table[3:6]] == ["rule", "claim", "reason"]
    assert WRONG_CLAIM in table[4]
    assert "2,400" in table[5]
    assert table[7].startswith("3 responses: 2 release, 1 ")
    assert " by rule: " in table[8]
    assert all(len(line) <= 80 for line in [*table[:4], *table[6:]])
    (wrong,) = (claim for claim in found[1].claims if claim.text == WRONG_CLAIM)
    assert table[5] == f"  reason  {wrong.reasoning}"  # whole, since no terminal reads it
    assert len(table[5]) > 80
    assert [each.mode for each in found] == ["stream"] * 3


def test_without_out_there_is_the_table_alone_and_an_answer_cannot_steer_the_terminal(
    called: Program, tmp_path: Path
) -> None:
    evil = "Do not take more than 9,999 mg\x1b[2J in 24 hours."
    done = called("evaluate", "-", stdin=answer(text=evil))
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()[:2]] == ["response", "r1"]
    assert list(tmp_path.iterdir()) == []
    assert "9,999" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_route_that_nothing_names_is_told(called: Program, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        "policies: {other: {mode: observe}}\nroutes: [{route: sales, policy: other}]\n"
    )
    lines = "\n".join(answer(f"r{route}", route=route) for route in ("sales", "slaes", None))
    done = called("evaluate", "-", "-c", "my.yaml", stdin=lines)
    table = done.stdout.splitlines()
    at = table.index("no entry of routes names these, so the default policy holds:")
    assert table[at + 1 :] == ["      1 route slaes"]


def test_of_stdin_verdicts_go_to_stdout_and_the_table_makes_room(called: Program) -> None:
    """Plain lines get ids, an id may stand twice, and claims behind one that blocks are judged too."""
    plain: list[dict[str, Any]] = [
        {"question": "How much?", "contexts": [LEAFLET], "answer": WRONG},
        {"id": 17, "contexts": [{"text": LEAFLET}, {"id": "x", "text": "No more."}], "answer": LEAFLET},
        {"id": 17, "contexts": [LEAFLET], "answer": WRONG},
    ]
    done = called("evaluate", "-", "--verdicts", "-", stdin="\n".join([answer(), *map(json.dumps, plain)]))
    assert done.returncode == 0, done.stderr
    found = verdicts(done.stdout)
    assert [each.response_id for each in found] == ["r1", "line-2", "17", "17"]
    assert [each.hallucinated_claims for each in found] == [(), (WRONG_CLAIM,), (), (WRONG_CLAIM,)]
    assert [len(each.claims) for each in found] == [2] * 4
    assert {evidence.context_id for claim in found[2].claims for evidence in claim.evidence} == {"c1"}
    assert "response" in done.stderr
    assert "4 responses: 2 release" in done.stderr


def test_of_many_lines_that_cannot_be_read_the_first_are_named_and_the_rest_counted(called: Program) -> None:
    bad = "nope\n" * 300
    told = called("evaluate", "-", stdin=bad + answer()).stderr.splitlines()
    assert [line.split(": ")[0] for line in told[:5]] == [f"<stdin> line {n}" for n in range(1, 6)]
    assert told[5:] == ["295 more answers could not be judged; --out FILE names each"]
    told = called("evaluate", "-", "--out", "out.jsonl", stdin=bad + answer()).stderr.splitlines()
    assert told[5:] == ["295 more answers could not be judged; the results in --out say why"]


def test_lines_that_cannot_be_read_are_named_and_the_others_judged(called: Program, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(
        b"\xef\xbb\xbf"
        + answer("first").encode()
        + b"\r\n\r\n{nope\r\n"
        + b'{"type": "response", "answer": "\xff"}\n'
        + b'{"type":"response.delta","schema":1,"response_id":"r","seq":0,"text":"secret words"}\n'
        + answer("last").encode()
    )
    done = called("evaluate", "in.jsonl", "--verdicts", "out.jsonl")
    assert done.returncode == 1
    named = [line.split(": ")[0] for line in done.stderr.splitlines()]
    assert named == ["in.jsonl line 3", "in.jsonl line 4", "in.jsonl line 5"]
    assert "not valid JSON" in done.stderr
    assert "not UTF-8" in done.stderr
    assert "only whole answers can be judged" in done.stderr
    assert "secret words" not in done.stderr
    assert [each.response_id for each in verdicts((tmp_path / "out.jsonl").read_text())] == ["first", "last"]
    assert "3 answers could not be judged" in done.stdout


def test_warnings_are_told_and_what_failed_is_in_the_summary(called: Program, tmp_path: Path) -> None:
    """A judge that nobody answers for, and whose model wrote the answer."""
    (tmp_path / "my.yaml").write_text(
        "judge: {kind: llm, llm: {base_url: 'http://127.0.0.1:1/v1', model: good}}\n"
    )
    (tmp_path / "in.jsonl").write_text(answer(generator_model="openai/good"))

    def judged(**env: str) -> tuple[str, list[tuple[str, str]]]:
        done = called("evaluate", "in.jsonl", "--verdicts", "out.jsonl", "-c", "my.yaml", env=env)
        assert done.returncode == 1
        *told, error = done.stderr.splitlines()
        assert error.startswith(
            "error: no claim could be judged: JudgeUnavailable: no connection to 127.0.0.1:1"
        )
        logged = [json.loads(line) for line in told]
        failed = [each for each in logged if each["event"] == "judge.failed"]
        assert all("no connection to 127.0.0.1:1" in each["error"] for each in failed)
        return done.stdout, [(each["level"], each["event"]) for each in logged]

    table, logged = judged()
    assert {level for level, _ in logged} == {"warning"}
    assert {event for _, event in logged} >= {"judge.self_judging", "judge.price_unknown", "judge.failed"}
    summary = table.splitlines()[table.splitlines().index("2 claims: 2 unverified") :]
    assert summary[1].startswith("2 of 2 claims were not judged")
    assert summary[2].split(maxsplit=1)[0] == "2"
    assert "connection" in summary[2]
    assert summary[3].startswith("3 calls of the judge: ")
    assert any(event == "judge.usage" for _, event in judged(GUARDRAIL_LOGGING__LEVEL="info")[1])
    assert judged(GUARDRAIL_LOGGING__LEVEL="error")[1] == []


def test_nothing_in_is_nothing_out(called: Program) -> None:
    done = called("evaluate", "-", "--verdicts", "-", stdin="\n\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: there is no answer in -" in done.stderr


def test_a_policy_can_be_named_for_all_lines(called: Program, tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text(
        "policies:\n  lenient:\n    rules: ['always: flag']\n    block_below: 0\n"
    )
    done = called(
        "evaluate", "-", "--verdicts", "-", "-c", "my.yaml", "--policy", "lenient", stdin=answer("bad", WRONG)
    )
    (found,) = verdicts(done.stdout)
    assert (str(found.decision), found.policy.name) == ("flag", "lenient")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.jsonl", "--out", "out.jsonl"), "missing.jsonl"),
        ((".", "--out", "out.jsonl"), "directory"),
        (("in.jsonl", "--out", "no/such/folder/out.jsonl"), "folder"),
        (("in.jsonl", "--out", "in.jsonl"), "is the file that is read"),
        (("in.jsonl", "--verdicts", "in.jsonl"), "is the file that is read"),
        (("in.jsonl", "--out", "-", "--verdicts", "-"), "only one of"),
        (("in.jsonl", "--resume"), "the --out of the interrupted run"),
        (("in.jsonl", "--out", "out.jsonl", "--resume", "--force"), "not with --force"),
        (("in.jsonl", "--out", "-", "--resume"), "can't be resumed"),
        (("in.jsonl", "--score", "nope"), "severity_weighted, strict"),
        (("in.jsonl", "--explain", "nope"), "'template'"),
        (("in.jsonl", "--until", "nope"), "--until"),
        (("in.jsonl", "--report", "no/such/folder/r.html"), "folder"),
        (("in.jsonl", "--report", "in.jsonl"), "in.jsonl is a file"),
        (("in.jsonl", "--report", "."), "is a folder"),
        (("in.jsonl", "--verdicts-as", "four"), "give --verdicts"),
        (("in.jsonl", "--out", "one", "--verdicts", "./one"), "is the file of --out"),
        (("in.jsonl", "--out", "one", "--report", "one"), "is the file of --out"),
        (("in.jsonl", "--config", "in.jsonl", "--out", "in.jsonl", "--force"), "is the file of --config"),
        (("in.jsonl", "--format", "nope"), "promptfoo"),
        (("in.jsonl", "--labels", "missing.jsonl"), "missing.jsonl"),
        (("in.jsonl", "--out", "out.jsonl", "--policy", "nope"), "known: default"),
        (("in.jsonl", "--out", "out.jsonl", "--frobnicate"), "frobnicate"),
        (("in.jsonl", "--out", "out.jsonl", "--config", "missing.yaml"), "missing.yaml"),
    ],
)
def test_wrong_usage_is_status_2_with_the_remedy(
    runner: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(answer())
    done = runner.invoke(app, ["evaluate", *arguments])
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert Path("in.jsonl").read_text() == answer()


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[tuple[IO[bytes], IO[bytes], subprocess.Popen[bytes]]]:
    """A running ``guardrail evaluate``: stdin, stdout and the process; stderr goes to ``errors.txt``."""
    with (cwd / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", "from guardrail.cli import main; main()", "evaluate", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=cwd,
            env=clean_environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            try:
                yield process.stdin, process.stdout, process
            finally:
                process.kill()
                process.wait()


def test_a_verdict_is_written_while_the_next_line_is_still_to_come(tmp_path: Path) -> None:
    with started("-", "--verdicts", "-", cwd=tmp_path) as (stdin, stdout, process):
        stdin.write(answer("early").encode() + b"\n")
        stdin.flush()
        assert b'"early"' in stdout.readline()
        stdin.close()
        assert process.wait() == 0


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A folder with more lines in ``in.jsonl`` than a pipe holds of verdicts."""
    (tmp_path / "in.jsonl").write_text("\n".join(answer(f"r{number}") for number in range(100)))
    return tmp_path


def test_events_that_nobody_reads_any_more_end_it_quietly(many: Path) -> None:
    with started("in.jsonl", "--verdicts", "-", cwd=many) as (_, stdout, process):
        stdout.readline()
        stdout.close()
        assert process.wait() == 128 + 13
    assert "Traceback" not in (many / "errors.txt").read_text()


def test_a_table_that_nobody_reads_any_more_does_not_stop_the_events(many: Path) -> None:
    with started("in.jsonl", "--verdicts", "out.jsonl", cwd=many) as (_, stdout, process):
        stdout.readline()
        stdout.close()
        assert process.wait() == 0
    assert (many / "errors.txt").read_text() == ""
    assert len((many / "out.jsonl").read_text().splitlines()) == 100


def test_of_many_responses_the_table_shows_the_worst_and_says_how_many_it_leaves_out(
    called: Program, tmp_path: Path
) -> None:
    lines = [answer(f"r{number}", WRONG if number in {7, 58} else LEAFLET) for number in range(60)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    done = called("evaluate", "in.jsonl", "--verdicts", "out.jsonl")
    table = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert [line.split()[0] for line in table[1:4]] == ["r7", "r58", "r0"]
    assert table[51] == "the 50 lowest scores, lowest first; 10 more responses are left out"
    assert table[52].startswith("60 responses")
    assert len(verdicts((tmp_path / "out.jsonl").read_text())) == 60


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_is_told_with_the_name_of_the_file(called: Program) -> None:
    done = called("evaluate", "-", "--verdicts", "/dev/full", stdin=answer())
    assert done.returncode == 1
    assert done.stderr == "error: /dev/full: No space left on device\n"


def test_on_a_terminal_a_bar_runs_under_the_table_and_is_taken_away(many: Path) -> None:
    pytest.importorskip("pty", reason="pseudo terminals are a thing of POSIX")
    from tests.support.terminal import OnTerminal

    status, text = OnTerminal(many, "evaluate", "in.jsonl", "--verdicts", "out.jsonl").ended()
    assert status == 0, text
    assert "judged" in text
    assert "%" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "100 responses" in text


def test_an_id_that_the_output_cannot_encode_is_no_reason_to_fail(program: Program) -> None:
    done = program(
        "evaluate", "-", "--verdicts", "-", stdin=answer("größe-三"), env={"PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0, done.stderr
    assert verdicts(done.stdout)[0].response_id == "größe-三"
    assert "gr??e-?" in done.stderr


def test_an_interrupt_ends_it_although_stdin_stays_open(tmp_path: Path) -> None:
    """The reading thread waits in a pipe from which nothing comes; Ctrl-C must not wait for it."""
    with started("-", "--verdicts", "-", cwd=tmp_path) as (stdin, stdout, process):
        stdin.write(answer("early").encode() + b"\n")
        stdin.flush()
        assert b'"early"' in stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert "is partial" in (tmp_path / "errors.txt").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------ results and resuming


def results(path: Path) -> list[EvaluationResult]:
    return list(read_results(path).results)


def judged(found: list[EvaluationResult]) -> list[tuple[str, str | None, float | None]]:
    """What must be the same however often a run was interrupted; times are not."""
    return [
        (
            each.place,
            each.verdict.id if each.verdict else None,
            each.scores["severity_weighted"].value if each.scores else None,
        )
        for each in found
    ]


def test_results_are_lines_with_what_was_judged_scored_and_said_by_people(
    called: Program, tmp_path: Path
) -> None:
    rows = [answer("good"), answer("bad", WRONG, labels=[{"verdict": "CONTRADICTED"}]), "{nope"]
    (tmp_path / "in.jsonl").write_text("\n".join(rows))
    label = Label(response_id="good", verdict=Verdict.SUPPORTED)
    (tmp_path / "labels.jsonl").write_bytes(label.to_json())
    done = called("evaluate", "in.jsonl", "--out", "out.jsonl", "--labels", "labels.jsonl")
    assert done.returncode == 1
    good, bad, unreadable = results(tmp_path / "out.jsonl")
    assert good.response is not None
    assert (good.response.answer, good.labels) == (LEAFLET, (label,))
    assert [each.verdict for each in bad.labels] == [Verdict.CONTRADICTED]
    assert bad.verdict is not None
    assert bad.verdict.hallucinated_claims == (WRONG_CLAIM,)
    assert (unreadable.place, unreadable.verdict, unreadable.scores) == ("line 3", None, {})
    assert "not valid JSON" in (unreadable.error or "")
    assert read_results(tmp_path / "out.jsonl").settings["judge"] == "local"


def test_a_run_killed_at_any_moment_goes_on_where_it_stopped(called: Program, tmp_path: Path) -> None:
    """SIGKILL while it writes, then a line cut off in its middle: what is there stays, the rest follows."""
    out = tmp_path / "out.jsonl"
    (tmp_path / "in.jsonl").write_text("\n".join(answer(f"r{number}") for number in range(60)))
    with started("in.jsonl", "--verdicts", "-", "--out", "out.jsonl", cwd=tmp_path) as (_, stdout, process):
        for _ in range(5):
            stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = out.read_bytes()
    kept = results(out)
    assert 5 <= len(kept) < 60
    run = functools.partial(called, "evaluate", "in.jsonl", "-o", "out.jsonl")
    refused = run()
    assert refused.returncode == 2
    assert "--resume to go on" in refused.stderr
    for cut in (len(before), before.rindex(b"\n", 0, -1) + 30, before.index(b"\n") - 5):
        out.write_bytes(before[:cut])
        there = results(out)
        done = run("--resume")
        assert done.returncode == 0, done.stderr
        assert "60 responses" in done.stdout
        found = results(out)
        assert found[: len(there)] == there
        assert [each.place for each in found] == [f"line {number}" for number in range(1, 61)]
        assert b'"evaluation.completed"' in out.read_bytes().splitlines()[-1]
    whole = judged(results(out))
    again = run("--resume")
    assert (again.returncode, again.stderr) == (0, "60 results were there already\n")
    assert judged(results(out)) == whole


def test_a_run_is_resumed_only_with_what_it_was_begun_with(called: Program, tmp_path: Path) -> None:
    """A policy and a calibration, which is applied once."""
    (tmp_path / "in.jsonl").write_text(answer())
    (tmp_path / "my.yaml").write_text("judge: {calibration: calibration.yaml}\n")
    (tmp_path / "policy.yaml").write_text("policies: {default: {flag_below: 0.9}}\n")
    calibration = Temperature(temperature=2.0)

    def write(given: Temperature) -> None:
        calibrations = Calibrations(judges={"local": JudgeCalibration(support=given)})
        (tmp_path / "calibration.yaml").write_text(calibrations.model_dump_json(exclude_none=True))

    def run(name: str, *options: str) -> tuple[int, str]:
        done = called("evaluate", "in.jsonl", "-o", name, *options)
        return done.returncode, " ".join(done.stderr.replace("│", " ").split())

    def refused(*arguments: str, told: str) -> None:
        status, said = run(*arguments)
        assert status == 2
        assert told in said

    def supports(name: str) -> list[float]:
        return [
            claim.support
            for result in results(tmp_path / name)
            for claim in (result.verdict.claims if result.verdict else ())
            if claim.support is not None
        ]

    write(calibration)
    assert run("plain.jsonl") == (0, "")
    assert run("out.jsonl", "-c", "my.yaml") == (0, "")
    assert supports("plain.jsonl")
    assert supports("out.jsonl") == pytest.approx(
        [calibration.apply(each) for each in supports("plain.jsonl")], abs=1e-6
    )
    refused("plain.jsonl", "--resume", "-c", "policy.yaml", told="another policy settings")
    write(Temperature(temperature=3.0))
    refused("out.jsonl", "--resume", "-c", "my.yaml", told="another judge settings")
    refused("out.jsonl", "-c", "my.yaml", told="a finished run")
    assert run("out.jsonl", "-c", "my.yaml", "--force") == (0, "")


def test_a_source_that_grew_or_changed_is_told_when_a_run_goes_on(called: Program, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n".join([answer("a"), answer("b"), answer("c")]))
    called("evaluate", "in.jsonl", "-o", "out.jsonl")
    (tmp_path / "in.jsonl").write_text(
        "\n".join([answer("a"), answer("b", "Other."), answer("d"), answer("e")])
    )
    done = called("evaluate", "in.jsonl", "-o", "out.jsonl", "--resume")
    assert done.returncode == 0
    assert "1 answers changed since they were judged, first line 2" in done.stderr
    assert "1 results are of answers that the source no longer has" in done.stderr
    found = results(tmp_path / "out.jsonl")
    assert [each.response.response_id for each in found if each.response] == ["a", "b", "c", "d", "e"]


def test_a_file_that_a_run_still_writes_is_no_other_runs(called: Program, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(answer())
    with started("-", "--out", "out.jsonl", "--verdicts", "-", cwd=tmp_path) as (stdin, stdout, process):
        stdin.write(answer("first").encode() + b"\n")
        stdin.flush()
        assert b'"first"' in stdout.readline()
        for option in ("--resume", "--force"):
            done = called("evaluate", "-", "--out", "out.jsonl", option, stdin=answer("second"))
            assert done.returncode == 2
            assert "is being written by another run" in " ".join(done.stderr.replace("│", "").split())
        stdin.close()
        assert process.wait() == 0
    assert [each.response.response_id for each in results(tmp_path / "out.jsonl") if each.response] == [
        "first"
    ]
    with started("-", "--out", "-", "--verdicts", "v.jsonl", cwd=tmp_path) as (stdin, stdout, process):
        stdin.write(answer("first").encode() + b"\n")
        stdin.flush()
        assert b"started" in stdout.readline()
        assert b'"first"' in stdout.readline()
        done = called("evaluate", "-", "--verdicts", "v.jsonl", "--force", stdin=answer("second"))
        assert done.returncode == 2
        assert "is being written by another run" in " ".join(done.stderr.replace("│", "").split())
        stdin.close()
        assert process.wait() == 0
    assert b'"response_id":"first"' in (tmp_path / "v.jsonl").read_bytes()


def test_stdout_by_another_name_is_stdout(tmp_path: Path) -> None:
    with started("-", "--verdicts", "/dev/stdout", cwd=tmp_path) as (stdin, stdout, process):
        stdin.write(answer("r").encode())
        stdin.close()
        assert [each.response_id for each in verdicts(stdout.read().decode())] == ["r"]
        assert process.wait() == 0


def test_a_file_of_something_else_is_not_overwritten_by_mistake(called: Program, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(answer())
    (tmp_path / "notes.txt").write_text("dear diary\n")
    done = called("evaluate", "in.jsonl", "-o", "notes.txt")
    assert done.returncode == 2
    assert (tmp_path / "notes.txt").read_text() == "dear diary\n"
    assert called("evaluate", "in.jsonl", "-o", "notes.txt", "--force").returncode == 0
    assert len(results(tmp_path / "notes.txt")) == 1


def test_several_sources_of_several_formats_are_one_run(called: Program, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(answer("a"))
    table = f'user_input,retrieved_contexts,response\nq,"[""{LEAFLET}""]",Take one tablet of 400 mg.\n'
    (tmp_path / "b.csv").write_text(table)
    done = called("evaluate", "a.jsonl", "b.csv", "--out", "-", "--score", "severity_weighted")
    assert done.returncode == 0, done.stderr
    places = [json.loads(line).get("place") for line in done.stdout.splitlines()]
    assert places == [None, "a.jsonl line 1", "b.csv row 1", None]


@pytest.mark.parametrize(
    ("text", "bound", "told"),
    [
        (WRONG, "0.1", ""),
        (WRONG, "0.9", "is below 0.9"),
        ("I don't know.", "0", "severity_weighted is undefined"),
    ],
)
def test_a_mean_that_is_not_above_the_bound_fails_the_command(
    called: Program, text: str, bound: str, told: str
) -> None:
    done = called("evaluate", "-", "--fail-under", bound, stdin=answer(text=text))
    assert done.returncode == (1 if told else 0)
    assert told in done.stderr


def test_scores_and_reasons_are_in_the_results_if_asked_for(called: Program, tmp_path: Path) -> None:
    done = called(
        *("evaluate", "-", "--out", "out.jsonl", "--score", "strict,mastra", "--score", "ragas"),
        *("--explain", "template"),
        stdin=answer("bad", WRONG),
    )
    assert done.returncode == 0, done.stderr
    (found,) = results(tmp_path / "out.jsonl")
    assert {name: score.value for name, score in found.scores.items()} == {
        "strict": 0.5,
        "mastra": 0.5,
        "ragas": 0.5,
    }
    assert WRONG_CLAIM in (found.explanation or "")
    assert found.verdict is not None
    assert found.verdict.score != 0.5
    assert done.stdout.splitlines()[1].split()[:2] == ["bad", "0.500"]
    assert "mean score" not in done.stdout
    assert done.stdout.splitlines()[-3] == "strict: mean 0.500 over 1 answer"


@pytest.mark.parametrize("out", [(), ("--out", "out.jsonl")])
def test_agreement_with_labels_and_the_report_come_at_the_end(
    called: Program, tmp_path: Path, out: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Mock(wraps=agreement)
    monkeypatch.setattr("guardrail.evals.overview.agreement", measured)
    lines = [answer("good", label="yes"), answer("bad", WRONG, label="no")]
    done = called("evaluate", "-", *out, "--report", "r.html", stdin="\n".join(lines))
    assert done.returncode == 0, done.stderr
    assert "Answers" in done.stdout
    assert done.stdout.splitlines()[-1] == "wrote r.html"
    assert measured.call_count == 1  # its intervals take most of the time
    page = (tmp_path / "r.html").read_text()
    assert WRONG_CLAIM.split(",")[0] in page
    if out:
        assert called("report", "out.jsonl", "--out", "again.html").returncode == 0
        assert undated((tmp_path / "again.html").read_text()) == undated(page)


def undated(page: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page)


@pytest.mark.parametrize(
    ("form", "verdict", "hallucinated"), [("four", "CONTRADICTED", 1), ("binary", "UNSUPPORTED", 1)]
)
def test_verdicts_are_written_as_the_four_verdict_prompt_replies(
    called: Program, form: str, verdict: str, hallucinated: int
) -> None:
    lines = answer("bad", WRONG) + "\n{}"
    done = called("evaluate", "-", "--verdicts", "-", "--verdicts-as", form, stdin=lines)
    wrong, unreadable = map(json.loads, done.stdout.splitlines())
    assert [*wrong][:4] == ["claims", "faithfulness_score", "hallucinated_claims", "overall_assessment"]
    assert verdict in {claim["verdict"] for claim in wrong["claims"]}
    assert {claim["severity"] for claim in wrong["claims"]} >= {"critical"}
    assert len(wrong["hallucinated_claims"]) == hallucinated
    assert wrong["faithfulness_score"] == 0.5
    assert wrong["severity_weighted_score"] is not None
    assert "claims" not in unreadable
    assert "missing" in unreadable["error"]
    batch = called("evaluate", "-", "--verdicts", "-", "--verdicts-as", f"{form}-batch", stdin=lines)
    (document,) = map(json.loads, batch.stdout.splitlines())
    assert [each["id"] for each in document["evaluations"]] == ["bad", "line 2"]
    assert document["evaluations"][0]["evaluation"] == wrong
    assert (document["mean_faithfulness_score"], document["evaluated"], document["failed"]) == (0.5, 1, 1)


@pytest.mark.parametrize("form", ["event", "four", "binary", "four-batch"])
def test_verdicts_replace_verdicts_and_nothing_else(called: Program, tmp_path: Path, form: str) -> None:
    held = tmp_path / "held.jsonl"
    for text in (
        *("dear diary\n", json.dumps({"claims": [], "faithfulness_score": 1.0})),
        *('{"schema":1,"id":"l","response_id":"r","type":"label","verdict":"SUPPORTED"}', answer("a")),
    ):
        held.write_text(text)
        done = called("evaluate", "-", "--verdicts", "held.jsonl", "--verdicts-as", form, stdin=answer())
        assert done.returncode == 2
        assert "something else than verdicts" in " ".join(done.stderr.replace("│", "").split())
        assert held.read_text() == text
    force: tuple[str, ...] = ("--force",)
    for stdin in (f"{{}}\n{answer()}", answer(), answer()):  # in the first, a failure comes first
        options = ("--verdicts", "held.jsonl", "--verdicts-as", form, *force)
        assert called("evaluate", "-", *options, stdin=stdin).returncode < 2
        force = ()


def test_some_claims_that_nobody_judged_are_a_failure_too(called: Program, tmp_path: Path) -> None:
    """A claim without documents needs no model, so not all claims fail where the model can't be reached."""
    (tmp_path / "my.yaml").write_text(
        "judge: {kind: llm, llm: {model: m, base_url: 'http://127.0.0.1:1/v1'}}\n"
    )
    bare = json.dumps({"question": "q", "contexts": [], "answer": "The plan costs $49."})
    done = called("evaluate", "-", "-c", "my.yaml", stdin=f"{answer()}\n{bare}")
    assert done.returncode == 1
    assert "of the claims could not be judged: JudgeUnavailable" in done.stderr


def test_labels_that_are_not_understood_are_told_with_their_values(program: Program, tmp_path: Path) -> None:
    lines = [
        answer("good", label="right"),
        answer("bad", WRONG, label="wrong"),
        answer("odd", label="so \x1b[2J so"),
        answer("meh", label="meh"),
    ]
    done = program("evaluate", "-", stdin="\n".join(lines))
    assert done.returncode == 0
    assert "Labels: 2 of 4 answers" in done.stdout
    told = done.stderr.splitlines()[-1]
    assert told.startswith("'label': 2 values not read")
    assert "'meh' (1)" in told
    assert "known are right, wrong, correct, incorrect" in told
    assert "\x1b" not in done.stderr
