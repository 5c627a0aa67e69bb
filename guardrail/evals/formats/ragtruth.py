"""RAGTruth as it is published: answers in ``response.jsonl``, what they answer in ``source_info.jsonl``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from guardrail.errors import ConfigError, DecodeError
from guardrail.evals.formats.files import read_rows
from guardrail.evals.formats.model import Fields, Row, missing, wrong
from guardrail.evals.formats.rows import built, span_labels
from guardrail.evals.formats.values import as_text, text_of
from guardrail.evals.results import Sample
from guardrail.events import Context

SOURCES_FILE: Final = "source_info.jsonl"
ANSWERS_FILE: Final = "response.jsonl"
_PASSAGE: Final = re.compile(r"^passage (\d+):", re.MULTILINE)


def read_sources(answers: Path) -> Mapping[str, Fields]:
    """The sources beside the file of answers, by their id. Raises ConfigError without such a file."""
    path = answers.with_name(SOURCES_FILE)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}; RAGTruth's answers need {SOURCES_FILE} in the same folder"
        ) from None
    with stream:
        return _by_id(read_rows(stream, path.name))


def _by_id(rows: Iterable[Row]) -> Mapping[str, Fields]:
    found = {}
    for row in rows:
        if row.fields is None:
            raise ConfigError(f"{SOURCES_FILE} {row.place}: {row.problem}")
        found[str(row.fields.get("source_id"))] = row.fields
    return found


def ragtruth_row(fields: Fields, name: str, place: str, sources: Mapping[str, Fields]) -> Sample:
    """An answer with its source and its labelled spans. The route is the kind of task."""
    source_id = str(fields.get("source_id"))
    source = sources.get(source_id)
    if source is None:
        raise DecodeError(
            "invalid_sample", f"source_id: not in {SOURCES_FILE}; give both files of one release"
        )
    answer = text_of(fields, ("response",))
    response_id = str(fields.get("id", name))
    info = source.get("source_info")
    question = info.get("question", "") if isinstance(info, Mapping) else ""
    return built(
        fields,
        name,
        place,
        question=question if isinstance(question, str) else "",
        contexts=_contexts(info),
        answer=answer,
        labels=span_labels(fields.get("labels"), response_id, answer),
        route=as_text(source.get("task_type")),
        generator_model=as_text(fields.get("model")),
        metadata={
            "dataset": "RAGTruth",
            "source_id": source_id,
            "split": fields.get("split"),
            "quality": fields.get("quality"),
        },
    )


def _contexts(info: Any) -> list[Context]:
    """The passages of a question, the text of a summary, the record that was to be put into words."""
    if isinstance(info, str):
        return [Context(id="source", text=info)]
    if info is None:
        raise missing("source_info", f"give it in {SOURCES_FILE}")
    if not isinstance(info, Mapping):
        raise wrong("source_info", info, "give a text or an object")
    passages = info.get("passages")
    if not isinstance(passages, str):
        return [Context(id="source", text=json.dumps(info, ensure_ascii=False, indent=1))]
    starts = list(_PASSAGE.finditer(passages))
    ends = [*(found.start() for found in starts[1:]), len(passages)]
    found = [
        Context(id=f"passage {start[1]}", text=passages[start.end() : end].strip())
        for start, end in zip(starts, ends, strict=True)
    ]
    return found or [Context(id="source", text=passages)]
