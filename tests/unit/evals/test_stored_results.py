"""A results file as a run: read again and again, whole or cut off, and errors that name the line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from guardrail.errors import DecodeError
from guardrail.evals.results import StoredResults
from tests.unit.evals.results import failed, result

LINES = [each.to_json() + b"\n" for each in (result("a"), failed("no JSON"), result("b"))]
HEAD = (
    b'{"type": "evaluation.started", "schema": 1, "name": "nightly", "settings": {"judge": "local"},'
    b' "time": "2026-11-24T10:00:00Z"}\n'
)


@pytest.mark.parametrize("zipped", [False, True])
def test_it_can_be_gone_through_twice(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "results.jsonl"
    data = b"".join([HEAD, b"\n", *LINES, b'{"type": "evaluation.completed", "results": 3}\n'])
    path.write_bytes(gzip.compress(data) if zipped else data)
    run = StoredResults(path)
    assert (run.name, run.settings) == ("nightly", {"judge": "local", "time": "2026-11-24T10:00:00+00:00"})
    for _ in range(2):
        assert [each.error for each in run.results] == [None, "no JSON", None]


def test_without_a_head_the_file_gives_the_name(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(LINES[0])
    assert (StoredResults(path).name, StoredResults(path).settings) == ("results.jsonl", {})
    path.write_bytes(b"")
    assert list(StoredResults(path)) == []


@pytest.mark.parametrize("zipped", [False, True])
def test_of_a_run_that_was_killed_the_whole_lines_count(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "results.jsonl"
    data = b"".join(LINES)
    path.write_bytes(gzip.compress(data)[:-12] if zipped else data[:-40])
    assert len(list(StoredResults(path))) == 2


def test_a_line_that_cannot_be_read_is_named_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for line in (b"secret words\n", b'["secret"]\n', LINES[0].replace(b'"labels":[]', b'"labels":"secret"')):
        path.write_bytes(LINES[0] + line)
        with pytest.raises(DecodeError, match=r"line 2.*guardrail evaluate --out") as raised:
            list(StoredResults(path))
        assert "secret" not in str(raised.value)
