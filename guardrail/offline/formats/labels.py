"""Labels in a file of their own, or with results, and samples with those that are about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from guardrail.errors import ConfigError, DecodeError
from guardrail.events import Label, parse_label
from guardrail.offline.lines import InputLine, lines_of, open_unpacked
from guardrail.offline.records import is_end, parse_record
from guardrail.offline.results import BadSample, EvaluationResult, Sample
from guardrail.offline.truths import LabelsByResponse


def labels_in(value: bytes) -> tuple[Label, ...]:
    """The label of a line, or the labels of a line of a results file. Raises DecodeError."""
    record = parse_record(value)
    if isinstance(record, EvaluationResult):
        return record.labels
    if isinstance(record, Label):
        return (record,)
    return () if is_end(value) else (parse_label(value),)


def read_labels(path: str | Path) -> LabelsByResponse:
    """The labels of a file with one a line, or of a file of results, gzipped or not.

    Raises OSError, DecodeError for a compressed file that is damaged, and ConfigError naming the line that is
    no label.
    """
    with open_unpacked(path) as stream:
        return LabelsByResponse(label for labels in _read(lines_of(stream, str(path))) for label in labels)


def _read(lines: Iterator[tuple[InputLine, str]]) -> Iterator[tuple[Label, ...]]:
    for line, place in lines:
        try:
            yield labels_in(line.whole)
        except DecodeError as error:
            raise ConfigError(f"{place}: {error}; give one label event a line") from None


def labelled(sample: Sample | BadSample, labels: LabelsByResponse) -> Sample | BadSample:
    """The sample with the labels of its id added to its own."""
    if isinstance(sample, Sample) and (all_of_it := labels.of(sample.response.response_id, sample.labels)):
        return replace(sample, labels=all_of_it)
    return sample
