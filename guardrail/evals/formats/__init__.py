"""Answers to evaluate, in the formats that other tools write: what a file holds, as samples; and labels in a
file of their own, for the samples that they are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from guardrail.errors import ConfigError, DecodeError, InputError
from guardrail.evals.formats.files import read_rows
from guardrail.evals.formats.rows import (
    ANSWERS_FILE,
    RowReader,
    deepeval_row,
    guardrail_row,
    haystack_row,
    lettucedetect_row,
    promptfoo_row,
    ragas_row,
    ragtruth_row,
    read_sources,
)
from guardrail.evals.formats.traces import is_observation, langfuse_samples, openinference_samples
from guardrail.evals.formats.values import FORMATS, Fields, Format, Row, missing, named, unread_messages
from guardrail.evals.lines import lines_of, open_unpacked
from guardrail.evals.records import is_end, parse_record
from guardrail.evals.results import BadSample, EvaluationResult, Sample
from guardrail.evals.truths import LabelsByResponse
from guardrail.events import Label, parse_label

__all__ = [
    "FORMATS",
    "Format",
    "labelled",
    "labels_in",
    "read_labels",
    "read_samples",
    "samples_in",
    "samples_of",
    "unread_messages",
]

_BY_ROW: Final[Mapping[str, RowReader]] = {
    "guardrail": guardrail_row,
    "ragas": ragas_row,
    "deepeval": deepeval_row,
    "haystack": haystack_row,
    "promptfoo": promptfoo_row,
}
_MOST_NAMES: Final = 8


def read_samples(path: str | Path, source_format: Format = "auto") -> Iterator[Sample | BadSample]:
    """The samples of a file, or of a folder with RAGTruth's two files, as they are read.

    ``auto`` recognises the format by the names of the columns. What can't be read is a ``BadSample`` in its
    place. Raises OSError, and ConfigError for a file that makes no sense as a whole.
    """
    path = Path(path)
    if path.is_dir() and (path / ANSWERS_FILE).is_file():
        path = path / ANSWERS_FILE
    with path.open("rb") as stream:
        yield from samples_in(stream, path, source_format)


def samples_in(
    stream: BinaryIO, path: Path | None = None, source_format: Format = "auto"
) -> Iterator[Sample | BadSample]:
    """As ``read_samples``, from an open file. ``path`` is None for stdin."""
    return samples_of(read_rows(stream, path), source_format, path)


def samples_of(
    rows: Iterable[Row], source_format: Format = "auto", path: Path | None = None
) -> Iterator[Sample | BadSample]:
    """The samples that rows hold. With ``auto``, the first row with a known format has that of all."""
    rows = iter(rows)
    if source_format == "auto":
        for row in rows:
            found = recognise(row.fields)
            if found is None:
                yield BadSample(row.place, row.problem or _unknown(row.fields))
            else:
                source_format, rows = found, chain([row], rows)
                break
        else:
            return
    if source_format == "openinference":
        yield from openinference_samples(rows)
    elif source_format == "langfuse":
        yield from langfuse_samples(rows)
    else:
        read = _ragtruth(path) if source_format == "ragtruth" else _BY_ROW[source_format]
        if source_format == "promptfoo":
            read = partial(promptfoo_row, folder=None if path is None else path.parent)
        for row in rows:
            try:
                yield BadSample(row.place, row.problem) if row.problem else read(row)
            except InputError as error:
                yield BadSample(row.place, str(error))


def recognise(fields: Fields) -> Format | None:
    """The format of a row, by the names of its fields; None for an unknown one."""
    names = fields.keys()
    if "resourceSpans" in names or any(name.startswith(("attributes", "context.")) for name in names):
        return "openinference"
    if is_observation(fields):
        return "langfuse"
    if "vars" in names:
        return "promptfoo"
    if "user_input" in names:
        return "ragas"
    if names & {"actual_output", "actualOutput"}:
        return "deepeval"
    if names & {"predicted_answers", "predicted_answer"}:
        return "haystack"
    if {"source_id", "response"} <= names or (
        {"prompt", "answer", "labels"} <= names and "contexts" not in names
    ):
        return "ragtruth"
    # Last, since it takes what is incomplete: its reader says what is missing.
    if names & {"answer", "contexts", "response_id"} or isinstance(fields.get("type"), (str, list)):
        return "guardrail"
    return None


def _ragtruth(path: Path | None) -> RowReader:
    """Reads both forms of RAGTruth; the file of sources only if an answer needs it."""
    sources = cache(read_sources)

    def read(row: Row) -> Sample:
        if "source_id" not in row.fields or "response" not in row.fields:
            return lettucedetect_row(row)
        if path is None:
            raise missing("source_info.jsonl", "it can't be found beside stdin; give the file's name")
        return ragtruth_row(row, sources(path))

    return read


def _unknown(fields: Fields) -> str:
    names = ", ".join(named(each) for each in list(fields)[:_MOST_NAMES]) or "none"
    return (
        f"no known format by its fields ({names}); give {{question, contexts: [texts], answer}}, from pandas "
        'by to_json(orient="records"), or name the format with --format'
    )


# ------------------------------------------------- labels in a file of their own, or with results


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
    found = LabelsByResponse()
    with open_unpacked(path) as stream:
        for line, place in lines_of(stream, str(path)):
            try:
                found.add(labels_in(line.whole))
            except DecodeError as error:
                raise ConfigError(f"{place}: {error}; give one label event a line") from None
    return found


def labelled(sample: Sample | BadSample, labels: LabelsByResponse) -> Sample | BadSample:
    """The sample with the labels of its id added to its own."""
    if isinstance(sample, Sample) and (all_of_it := labels.of(sample.response.response_id, sample.labels)):
        return replace(sample, labels=all_of_it)
    return sample
