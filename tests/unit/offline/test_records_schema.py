"""Results of another version of the schema are refused; the ends of a results file are passed over."""

from __future__ import annotations

from guardrail.offline.record_reading import RecordReader


def test_results_of_another_schema_are_refused_and_the_ends_of_a_file_are_not_counted() -> None:
    reader = RecordReader()
    reader.read(b'{"schema": 99, "type": "evaluation.result", "verdict": null}', "a:1")
    reader.read(b'{"schema": 1, "type": "evaluation.started"}', "a:2")
    reader.read(b'{"schema": 1, "type": "evaluation.completed"}', "a:3")
    assert (reader.passed.unreadable, reader.passed.others, reader.passed.failed) == (1, 0, 0)
    assert "schema" in reader.passed.problems[0][1]
