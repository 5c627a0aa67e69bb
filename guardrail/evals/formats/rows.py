"""Formats in which a row is an answer: ours, Ragas, DeepEval, Haystack, promptfoo, LettuceDetect; and
RAGTruth as it is published: answers in ``response.jsonl``, what they answer in ``source_info.jsonl``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from guardrail.errors import ConfigError, DecodeError, said_wrong
from guardrail.evals.formats.files import read_rows
from guardrail.evals.formats.values import (
    Fields,
    Row,
    as_text,
    contexts_of,
    first_of,
    kind_of,
    labels_of,
    missing,
    named,
    text_of,
    unpacked,
    wrong,
)
from guardrail.evals.lines import MAX_LINE_BYTES
from guardrail.evals.results import Sample
from guardrail.events import SCHEMA_VERSION, Context, Label, LabelSource, Response, Verdict
from guardrail.inputs import named_contexts

_MOST_PROBLEMS: Final = 10
_MEANT: Final = {
    "string_type": "a text",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object, or in a line without a type a text",
}
"""What should stand where something of another kind does, by the type of pydantic's error."""
_IDS: Final = ("response_id", "id")
_QUESTIONS: Final = ("question", "questions", "query", "user_input", "input")
_CONTEXTS: Final = ("contexts", "context", "documents", "retrieved_contexts", "retrieval_context")
_OUTPUTS: Final = ("answer", "output", "response", "text")
_ROUTES: Final = ("route", "tenant", "generator_model", "language")
_CONFLICTS: Final = ("conflict", "contradict")

_FILE: Final = "file://"
_PROGRAMS: Final = frozenset((".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py"))

RowReader = Callable[[Row], Sample]
"""Raises DecodeError."""


def built(
    row: Row,
    *,
    question: str,
    contexts: list[Context],
    answer: str,
    labels: tuple[Label, ...] | None = None,
    metadata: Mapping[str, Any] | None = None,
    **head: Any,
) -> Sample:
    """A sample of these parts; the row has the id, the route and the like, and labels if none are given."""
    given = first_of(row.fields, _IDS)[1]
    response_id = str(given) if isinstance(given, (str, int)) and given != "" else row.name
    routed = {key: row.fields[key] for key in _ROUTES if isinstance(row.fields.get(key), str)}
    values = {
        "response_id": response_id,
        "question": question,
        "contexts": contexts,
        "answer": answer,
        "metadata": {key: value for key, value in (metadata or {}).items() if value is not None},
        **routed,
        **head,
    }
    response = _validated(values)
    said = labels_of(row.fields, response_id) if labels is None else (labels, ())
    return Sample(response, said[0], row.place, said[1])


def guardrail_row(row: Row) -> Sample:
    """A ``response`` event, a flagged case, or an object without a type.

    Such a plain object has ``answer`` and ``contexts``, which may be mere texts, and any other field of the
    event. Its id is ``response_id`` or ``id``, else the row's name.
    """
    found = dict(row.fields)
    kind = found.get("type")
    if kind is None:
        found = _plain(found, row.name)
    elif kind == "case.flagged":
        if found.get("omitted"):
            raise DecodeError("case_incomplete", "a flagged case without its documents can't be judged")
        found = {**found, "type": "response"}
    elif kind != "response":
        raise DecodeError(
            "no_response",
            f"type {named(kind)}: only whole answers can be judged, those of type 'response' or "
            "'case.flagged', or without a type",
        )
    if found.get("schema", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise DecodeError(
            "unknown_schema", f"field 'schema': this program reads version {SCHEMA_VERSION} only"
        )
    response = _validated(found)
    labels, unread = labels_of(row.fields, response.response_id)
    return Sample(response, labels, row.place, unread)


def _plain(found: dict[str, Any], name: str) -> dict[str, Any]:
    """What a line without a type stands for, as the fields of a response."""
    # Without documents nothing is supported: a misspelt name must not pass for "none".
    absent = [each for each in ("answer", "contexts") if found.get(each) is None]
    if absent:
        raise DecodeError(
            "invalid_event",
            f"{' and '.join(absent)}: missing; give {{question, contexts: [texts], answer}}, or a "
            "'response' event with its type",
        )
    fields = {**found, "response_id": found.get("response_id", found.get("id", name))}
    if isinstance(fields["response_id"], int) and not isinstance(fields["response_id"], bool):
        fields["response_id"] = str(fields["response_id"])
    if isinstance(fields["contexts"], str):  # a cell of a table
        fields["contexts"] = contexts_of(fields, ("contexts",))
    elif isinstance(fields["contexts"], list):
        fields["contexts"] = named_contexts(fields["contexts"])
    return {**fields, "metadata": unpacked(fields.get("metadata", {}))}


def _validated(values: Mapping[str, Any]) -> Response:
    try:
        return Response.model_validate(values)
    except ValidationError as error:
        raise DecodeError("invalid_event", _problems(error)) from None


def _problems(error: ValidationError) -> str:
    """Every field that is wrong and why, the first few of them; quotes no value."""
    found = error.errors(include_url=False, include_context=False)
    told = []
    for each in found[:_MOST_PROBLEMS]:
        meant = _MEANT.get(each["type"])
        problem = said_wrong(each) if meant is None else f"{kind_of(each['input'])}; give {meant}"
        told.append(f"{'.'.join(map(str, each['loc']))}: {problem}")
    more = len(found) - len(told)
    return "; ".join([*told, *([f"and {more} more"] if more else [])])


@dataclass(frozen=True, slots=True)
class Columns:
    """A format whose rows have question, contexts and answer in columns of their own, by their names; the
    first that is there counts. ``metadata`` goes along. ``delimiter``: what lists in cells are joined with.
    """

    question: tuple[str, ...]
    contexts: tuple[str, ...]
    answer: tuple[str, ...]
    context_ids: str = ""
    metadata: tuple[str, ...] = ()
    delimiter: str | None = None

    def __call__(self, row: Row) -> Sample:
        """The sample of a row. Raises DecodeError."""
        fields = row.fields
        ids = fields.get(self.context_ids)
        return built(
            row,
            question=text_of(fields, self.question, required=False),
            contexts=contexts_of(fields, self.contexts, ids, delimiter=self.delimiter),
            answer=text_of(fields, self.answer),
            metadata={key: fields.get(key) for key in self.metadata},
        )


_RAGAS: Final = Columns(
    ("user_input",), ("retrieved_contexts",), ("response",), "retrieved_context_ids", ("reference",)
)
deepeval_row: Final = Columns(
    ("input",),
    ("retrieval_context", "retrievalContext", "context"),
    ("actual_output", "actualOutput"),
    metadata=("name", "expected_output", "expectedOutput"),
    delimiter="|",  # what DeepEval joins a list with in a cell
)
"""A golden, test case or result of DeepEval; ``retrieval_context`` is what was retrieved."""
haystack_row: Final = Columns(
    _QUESTIONS, _CONTEXTS, ("predicted_answers", "predicted_answer", "replies", "answers", "answer")
)
"""A row of a Haystack ``EvaluationRunResult``, from its JSON or its detailed report."""


def ragas_row(row: Row) -> Sample:
    """A single-turn sample of Ragas (``EvaluationDataset.to_jsonl``, ``to_csv``, ``to_pandas``)."""
    if isinstance(unpacked(row.fields.get("user_input")), list):
        raise wrong(
            "user_input", [], "a multi-turn sample has no retrieved contexts; give single-turn samples"
        )
    return _RAGAS(row)


def promptfoo_row(row: Row, folder: Path | None = None) -> Sample:
    """A result of promptfoo's output in ``folder``, with the variables and the provider's response.

    Its contexts are those that promptfoo graded, which are a ``contextTransform``'s if there is one; else the
    variables'; else the response's.
    """
    fields = row.fields
    variables = fields.get("vars")
    if not isinstance(variables, Mapping):
        raise wrong("vars", variables, "give promptfoo's output as JSON or JSON lines")
    response, grading = _mapping(fields.get("response")), _mapping(fields.get("gradingResult"))
    output = response.get("output") if response else fields.get("output")
    if output is None:
        why = "the provider failed" if fields.get("error") else "there is none"
        raise missing("response.output", f"{why}; leave out what has no output")
    provider = fields.get("provider")
    model = provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider
    if isinstance(output, Mapping):  # of a chain, which may hold its contexts too
        output = first_of(output, _OUTPUTS)[1] or output
    given = (_graded(grading), variables, _mapping(response.get("metadata")))
    contexts = next((each for each in given if first_of(each, _CONTEXTS)[0]), {})

    def read(part: Fields, names: tuple[str, ...]) -> Fields:
        key, value = first_of(part, names)
        return {key: _file_text(key, value, folder)}

    return built(
        row,
        question=text_of(read(variables, _QUESTIONS), _QUESTIONS, required=False),
        contexts=contexts_of(read(contexts, _CONTEXTS), _CONTEXTS),
        answer=as_text(output) or "",
        generator_model=model[:256] if isinstance(model, str) else None,
        metadata={"description": fields.get("description"), "promptfoo_pass": grading.get("pass")},
    )


def _mapping(value: Any) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _graded(grading: Fields) -> Fields:
    """What has the contexts of an assertion, of context-faithfulness before any other; else nothing."""
    parts = grading.get("componentResults")
    parts = [each for each in parts if isinstance(each, Mapping)] if isinstance(parts, list) else []
    parts.sort(key=lambda each: _mapping(each.get("assertion")).get("type") != "context-faithfulness")
    kept = (_mapping(each.get("metadata")) for each in parts)
    return next(({"context": each["context"]} for each in kept if each.get("context")), {})


def _file_text(name: str, value: Any, folder: Path | None) -> Any:
    """A variable's value, or the text of the file that it names, also in a list. Raises DecodeError.

    Whoever wrote the results chose the name, so that only texts in or below their folder are read, unless it
    is the root: nothing hidden, and nothing through a link that leads out. A program's text isn't kept.
    """
    if isinstance(value, list):
        return [_file_text(f"{name}.{at}", each, folder) for at, each in enumerate(value)]
    if not isinstance(value, str) or not value.startswith(_FILE):
        return value
    with suppress(OSError, ValueError, RuntimeError):  # the last: links in a circle
        root = (folder or Path("/")).resolve()
        path = (root / value.removeprefix(_FILE)).resolve()
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if root.name and not hidden and path.suffix.lower() not in _PROGRAMS and path.is_file():
            with path.open("rb") as file:
                data = file.read(MAX_LINE_BYTES + 1)
            if len(data) <= MAX_LINE_BYTES:
                return data.decode("utf-8-sig")
    remedy = "put the results' file where the names in it lead, or write the text in its place"
    raise DecodeError("invalid_sample", f"{name}: {named(value)} is no text in the results' folder; {remedy}")


def lettucedetect_row(row: Row) -> Sample:
    """A sample of LettuceDetect and of RAGTruth in its form: the whole prompt is the context."""
    fields = row.fields
    answer = text_of(fields, ("answer",))
    response_id = str(first_of(fields, _IDS)[1] or row.name)
    return built(
        row,
        question=text_of(fields, ("question",), required=False),
        contexts=contexts_of(fields, ("context", "prompt")),
        answer=answer,
        labels=span_labels(fields.get("labels"), response_id, answer),
        route=as_text(fields.get("task_type")),
        metadata={key: fields.get(key) for key in ("dataset", "split")},
    )


def span_labels(given: Any, response_id: str, answer: str) -> tuple[Label, ...]:
    """Labelled spans, and a label for the answer: its worst span's, or SUPPORTED. Raises DecodeError."""
    given = unpacked(given)
    if not isinstance(given, list):
        raise wrong("labels", given, "give a list of {start, end, label}")
    labels: list[Label] = []
    for at, each in enumerate(given):
        if not isinstance(each, Mapping):
            raise wrong(f"labels.{at}", each, "give an object with start, end and label")
        start, end = each.get("start"), each.get("end")
        whole = isinstance(start, int) and isinstance(end, int)
        if not whole or not 0 <= start < end <= len(answer):  # type: ignore[operator]
            raise DecodeError(
                "invalid_sample",
                f"labels.{at}: start and end are no span of the answer; count in Unicode code points",
            )
        category = as_text(first_of(each, ("label_type", "label", "category"))[1]) or ""
        conflict = any(word in category.lower() for word in _CONFLICTS)
        labels.append(
            Label(
                response_id=response_id,
                span=(start, end),
                verdict=Verdict.CONTRADICTED if conflict else Verdict.UNSUPPORTED,
                category=category[:256] or None,
                source=LabelSource.DATASET,
                id=f"{response_id}:{at}",
            )
        )
    found = {label.verdict for label in labels}
    order = (Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
    worst = next((each for each in order if each in found), Verdict.SUPPORTED)
    name = f"{response_id}:whole"
    whole_answer = Label(response_id=response_id, verdict=worst, source=LabelSource.DATASET, id=name)
    return (*labels, whole_answer)


# ------------------------------------------------------------------------------------------ RAGTruth

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
    found = {}
    with stream:
        for row in read_rows(stream, path):
            if row.problem:
                raise ConfigError(f"{SOURCES_FILE} {row.place}: {row.problem}")
            found[str(row.fields.get("source_id"))] = row.fields
    return found


def ragtruth_row(row: Row, sources: Mapping[str, Fields]) -> Sample:
    """An answer with its source and its labelled spans. The route is the kind of task."""
    fields = row.fields
    source_id = str(fields.get("source_id"))
    source = sources.get(source_id)
    if source is None:
        raise DecodeError(
            "invalid_sample", f"source_id: not in {SOURCES_FILE}; give both files of one release"
        )
    answer = text_of(fields, ("response",))
    response_id = str(fields.get("id", row.name))
    info = source.get("source_info")
    question = info.get("question", "") if isinstance(info, Mapping) else ""
    return built(
        row,
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
